"""How data is to be read: what the options of the commands say, as one value. Light: the command line imports it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from lmart.errors import DataError, quote
from lmart.gains import Gain
from lmart.settings.declared import declared

if TYPE_CHECKING:
    from lmart.array_types import Float64Array


class ReadState(NamedTuple):
    """How far the reading of an input is.

    share : of its bytes, from 0 to 1; 0 if unknown, as of a pipe
    taken : bytes so far, before decompression
    ended : whether that is all
    """

    path: str
    share: float
    taken: int
    rows: int
    ended: bool


@dataclass(frozen=True)
class ReadOptions:
    """How to read data: the options of commands, and what they add.

    format            : name of the format; None: found from name and content
    require_labels, require_queries : refuse rows without
    use_labels        : False: labels are neither parsed nor judged, and no block has any
    keep_document_ids : keep the document ids of LETOR comments and of a docid column
    ids_for_letor     : refuse query and document ids that are invalid in LETOR text
    fold_column       : the column of tables whose texts are kept in place of document ids; not every table has it
    gain              : refuse labels without an entry in its table
    known_features    : names of the features that a model has, or their numbers as text; other columns of a table are
                        not parsed, so they may hold text. None: every column counts
    categories        : by name of a column of tables whose texts are categories, the number of each text, as a model
                        has it; None: they are numbered in the order of first appearance
    auto_categories   : so are the texts of every other column that holds texts in its first row
    refuse_unknown    : refuse columns that `known_features` lacks
    watch             : called with how far the reading of an input is, after each block
    tell              : called with a line for the user, and whether it is a warning (else a notice)
    may_be_empty      : the input may have no rows, as there are others
    beside_others     : column options need not fit this input, such as a --valid file: they may be for another one
    others_from       : the first of several inputs whose queries are others than those before, whatever their ids
    """

    group_by_qid: bool = declared(
        False, "Group the rows of a query even if not adjacent.", "Without this option, such data is an error."
    )
    duplicates: str = declared(
        "error",
        "What to do with an index that occurs twice in a row.",
        "error: refuse the row; last: use the last value.",
        choices=("error", "last"),
    )
    max_errors: int = declared(10, "Maximum number of data errors to list.", low=1, high=1_000_000)
    allow_inf: bool = declared(False, "Accept infinite values.", "Without this option, such data is an error.")
    query_sizes: str | None = declared(
        None,
        "Query sizes, for data without query ids.",
        "The number of rows of each query, one per line, in input order.",
        metavar="FILE",
    )
    label_column: str | None = declared(
        None,
        "Column of the labels.",
        "In CSV, TSV and Parquet.",
        metavar="NAME",
        shown="label, relevance, rel, target or y",
    )
    query_column: str | None = declared(
        None,
        "Column of the query ids.",
        "In CSV, TSV and Parquet.",
        metavar="NAME",
        shown="qid, query_id, query, group or srch_id",
    )
    document_column: str | None = declared(
        None,
        "Column of the document ids.",
        "In CSV, TSV and Parquet.",
        metavar="NAME",
        shown="docid, doc_id, document_id or docno",
    )
    ignore_columns: tuple[str, ...] = declared(
        (),
        "Columns to leave out; in LETOR text, indices.",
        "A name may be in double quotes, as in CSV: '\"a,b\",c'; '\"\"' is the column without a name.",
        metavar="NAMES",
        multiple=True,
    )
    format: str | None = None
    require_labels: bool = True
    require_queries: bool = True
    use_labels: bool = True
    keep_document_ids: bool = False
    ids_for_letor: bool = False
    fold_column: str | None = None
    gain: Gain | None = None
    known_features: frozenset[str] | None = None
    categories: Mapping[str, Mapping[str, int] | None] = field(default_factory=dict, compare=False)
    auto_categories: bool = False
    refuse_unknown: bool = False
    tell: Callable[[str, bool], None] | None = field(default=None, compare=False)
    may_be_empty: bool = False
    beside_others: bool = False
    others_from: int | None = None
    watch: Callable[[ReadState], None] | None = field(default=None, compare=False)

    def telling(
        self,
        notice: Callable[[str], None],
        warning: Callable[[str], None],
        watch: Callable[[ReadState], None] | None = None,
    ) -> ReadOptions:
        """Return the options with functions that readers call."""
        reported: set[str] = set()

        def tell(text: str, is_warning: bool) -> None:
            """Hand on a text, unless that was done before."""
            if text not in reported:
                reported.add(text)
                (warning if is_warning else notice)(text)

        return replace(self, tell=tell, watch=watch)

    def for_scoring(self, refuse_unknown: bool = False, keep_document_ids: bool = False) -> ReadOptions:
        """Return the options for rows that are only scored: their labels are not looked at, nor need there be any."""
        return replace(
            self,
            require_labels=False,
            require_queries=False,
            use_labels=False,
            refuse_unknown=refuse_unknown,
            keep_document_ids=keep_document_ids,
        )

    @property
    def row_text(self) -> str:
        """What messages call the text that is kept of each row."""
        return "document id" if self.fold_column is None else f"value of column {quote(self.fold_column)}"

    def notice(self, text: str) -> None:
        """Pass on a remark about the data."""
        if self.tell is not None:
            self.tell(text, False)

    def warning(self, text: str) -> None:
        """Pass on a warning that something may be wrong with the data."""
        if self.tell is not None:
            self.tell(text, True)

    def gain_fault(self, labels: Float64Array) -> str | None:
        """Return what is wrong with the first of the labels that has no gain, None if all have."""
        try:
            if self.gain is not None:
                self.gain.check_labels(labels)
        except DataError as fault:
            return fault.message
        return None
