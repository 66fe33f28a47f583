"""What a worker reads: adjacent parts of a data set, in batches of rows, and what it finds in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from lmart.array_types import Float64Array, Int64Array, UInt64Array
from lmart.distributed.query_places import Place, codes_of, places_of
from lmart.formats.documents.dataset_builder import LabelAndIdBuilder
from lmart.formats.documents.feature_table import FeatureTable
from lmart.formats.documents.reading import Batch, read_batches, source_name
from lmart.formats.documents.row_blocks import SeenQueries
from lmart.formats.read_options import ReadOptions
from lmart.streams import refuse_changed_files, state_of
from lmart.threads import WorkerPool


class PartsFound(NamedTuple):
    """What was found in parts of a data set.

    n_documents, n_queries, n_single : rows, queries, and queries of one row
    label_rows, labels : int64[n], float64[n], the rows with a label above those of all rows before, and these labels
    ids         : int64[n_columns], of its features, in the order of first appearance
    names       : of the columns; None: they have none
    of_tables   : by part with a header: the ids that it has a column for
    ignored     : the indices to ignore, and whether a row had them
    query_codes : uint64[n_queries], a hash of each query id
    told        : what readers told, and whether it is a warning
    empty       : parts without rows
    n_parts     : parts
    """

    n_documents: int
    n_queries: int
    n_single: int
    label_rows: Int64Array
    labels: Float64Array
    ids: Int64Array
    names: tuple[str, ...] | None
    of_tables: dict[str, Int64Array]
    ignored: dict[int, bool]
    query_codes: UInt64Array
    told: list[tuple[str, bool]]
    empty: list[str]
    n_parts: int


class PartsReader:
    """Reads adjacent parts of one data set.

    paths   : the parts, in order, all of which may be without rows
    options : how they are read
    pool    : the workers
    check   : called from time to time; raises when the run was given up
    """

    def __init__(self, paths: Sequence[str], options: ReadOptions, pool: WorkerPool, check: Callable[[], None]) -> None:
        self.paths, self.table, self.source = paths, FeatureTable(), source_name(paths) if paths else "data"
        self.told: list[tuple[str, bool]] = []
        self._options = replace(options, tell=self._tell, may_be_empty=True)
        self._pool, self._check = pool, check
        self._queries = SeenQueries(group_by_qid=False, can_group=False)
        self.labels: Float64Array = np.zeros(0)
        self.query_offsets: Int64Array = np.zeros(1, np.int64)
        self.part_rows = [0] * len(paths)
        self._states = {path: state_of(path) for path in paths}

    def _tell(self, text: str, is_warning: bool) -> None:
        if text != f"{self.source}: {self.table.never_met()}":  # which all parts together decide
            self.told.append((text, is_warning))

    def batches(self, table: FeatureTable | None = None, queries: SeenQueries | None = None) -> Iterator[Batch]:
        """Yield the rows of all parts, in batches of blocks.

        table   : the features met so far; None: those of this reader
        queries : the queries met so far; None: they were all met before
        """
        table = self.table if table is None else table
        seen = SeenQueries(group_by_qid=True) if queries is None else queries
        if queries is not None:
            self.part_rows = [0] * len(self.paths)
        for batch in read_batches(self.paths, self._options, self._pool, table, seen_queries=seen):
            self._check()
            if queries is not None:
                self.part_rows[self.paths.index(batch.path)] += sum(map(len, batch.blocks))
            yield batch

    def found(self, ids_and_labels: LabelAndIdBuilder) -> PartsFound:
        """Keep the labels and queries of all parts, and return what was found."""
        self.labels, self.query_offsets = ids_and_labels.finish_labels()
        sizes, names = np.diff(self.query_offsets), self.table.names
        rows = rows_above_all_before(self.labels)
        return PartsFound(
            len(self.labels),
            len(sizes),
            int((sizes == 1).sum()),
            rows,
            self.labels[rows],
            self.table.ids.copy(),
            None if names is None else tuple(names),
            dict(self.table.of_tables),
            dict(self.table.ignored),
            codes_of(ids_and_labels.query_ids),
            self.told,
            [path for path, n_rows in zip(self.paths, self.part_rows, strict=True) if not n_rows],
            len(self.paths),
        )

    def first_places(self, codes: Sequence[int]) -> dict[str, Place]:
        """Return part and line of the first row of each query with one of these hashes, by id."""
        return places_of(self._queries.places, codes)

    def refuse_changed(self) -> None:
        """Raise DataError when a part is no longer what it was at first."""
        refuse_changed_files(self._states)


def rows_above_all_before(labels: Float64Array) -> Int64Array:
    """Return the rows whose label is above those of all rows before, int64; the first row is one.

    labels : float64[n_documents], >= 0
    """
    before = np.concatenate([[-1.0], np.maximum.accumulate(labels)[:-1]])
    return np.flatnonzero(labels > before)
