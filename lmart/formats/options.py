"""How data is to be read: what the options of the commands say, as one value. Light: the command line imports it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lmart.errors import DataError
from lmart.gains import Gain

if TYPE_CHECKING:
    from lmart.gains import Floats


@dataclass(frozen=True)
class ReadOptions:
    """How to read data.

    group_by_qid      : collect the rows of a query that comes back, instead of refusing it
    duplicates        : an index that stands twice in a row: 'error', or 'last' (the later one counts)
    max_errors        : list at most this many faults before giving up
    allow_infinite    : infinite values are data; else they are refused
    query_sizes       : file with one row count a query, for data without query ids
    label_column, query_column, ignore_columns : column names of CSV, TSV and Parquet; ignore_columns also of indices in
                        LETOR text
    format            : name of the format; None: found from name and content
    require_labels, require_queries : refuse rows without
    keep_document_ids : keep the document ids of LETOR comments and of a docid column
    gain              : refuse labels without an entry in its table
    beside_others     : column options need not fit this input, as they may be meant for others: a --valid file
    """

    group_by_qid: bool = False
    duplicates: str = "error"
    max_errors: int = 10
    allow_infinite: bool = False
    query_sizes: str | None = None
    label_column: str | None = None
    query_column: str | None = None
    ignore_columns: tuple[str, ...] = ()
    format: str | None = None
    require_labels: bool = True
    require_queries: bool = True
    keep_document_ids: bool = False
    gain: Gain | None = None
    beside_others: bool = False

    def gain_fault(self, labels: Floats) -> str | None:
        """Return what is wrong with the first of the labels that has no gain, None if all have."""
        try:
            if self.gain is not None:
                self.gain.check_labels(labels)
        except DataError as fault:
            return fault.message
        return None
