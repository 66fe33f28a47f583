"""From blocks of rows to one RankingDataset, without holding the data twice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from lmart.array_types import Float64Array, Int32Array, Int64Array
from lmart.data.dataset import RankingDataset, SparseRows, take_rows
from lmart.data.growable_array import GrowableArray
from lmart.errors import DataError, input_name
from lmart.formats.documents.blocks import RowBlock, RowReader, WrappedReader, address
from lmart.formats.documents.feature_table import FeatureTable
from lmart.formats.line_reader import MANY_MORE
from lmart.kernels.text.feature_ids import renumber_columns
from lmart.threads import WorkerPool, chunks


class LabelAndIdBuilder:
    """Collects labels, queries and document ids of blocks of rows.

    query_ids    : of the queries so far
    document_ids : of the rows so far, '' where there is none; None without any
    """

    def __init__(self) -> None:
        self._labels = GrowableArray(np.float64)
        self._starts: list[int] = []
        self.query_ids: list[str] = []
        self.document_ids: list[str] | None = None
        self._with_labels: dict[bool, str] = {}
        self._with_queries: dict[bool, str] = {}

    @property
    def n_documents(self) -> int:
        """The number of rows so far."""
        return len(self._labels)

    def add(self, block: RowBlock, path: str) -> None:
        """Append the rows of one block; DataError when one input has labels or query ids and another has not."""
        for seen, there, what in (
            (self._with_labels, block.labels is not None, "labels"),
            (self._with_queries, block.query_ids is not None, "query ids"),
        ):
            seen.setdefault(there, path)
            if len(seen) == 2:
                raise DataError(f"{seen[False]} has no {what} but {seen[True]} has; give them the same layout", path)
        n_rows, start_row = len(block), self.n_documents
        np.copyto(self._labels.extend(n_rows), 0.0 if block.labels is None else block.labels)
        skip = int(block.continues and bool(self._starts))
        self._starts += (block.query_offsets[skip:-1] + start_row).tolist()
        self.query_ids += (block.query_ids or [""])[skip:]
        if block.document_ids is not None:
            if self.document_ids is None:
                self.document_ids = [""] * start_row
            self.document_ids += block.document_ids
        elif self.document_ids is not None:
            self.document_ids += [""] * n_rows

    def finish_labels(self) -> tuple[Float64Array, Int64Array]:
        """Return the labels, float64[n], and the query offsets, int64[n_queries + 1]."""
        labels: Float64Array = self._labels.finish()
        return labels, np.array([*self._starts, len(labels)], np.int64)


class DatasetBuilder(LabelAndIdBuilder):
    """Collects the blocks of one or more inputs, in order, into one data set; a `CellBuffer` for their readers."""

    def __init__(self, pool: WorkerPool) -> None:
        super().__init__()
        self._pool = pool
        self._offsets = GrowableArray(np.int64)
        self._columns = GrowableArray(np.int32)
        self._values = GrowableArray(np.float64)
        self._offsets.extend(1)[0] = 0

    def expect(self, share: float) -> None:
        """Reserve memory for all rows, of which the fraction `share` was added so far."""
        if 0.0 < share < 1.0:
            for array in (self._offsets, self._columns, self._values, self._labels):
                array.expect(int(len(array) / share * 1.1) + 1000)

    def add(self, block: RowBlock, path: str) -> None:
        """Append the rows of one block; DataError when one input has labels or query ids and another has not."""
        super().add(block, path)
        n_rows, n_cells = len(block), len(block.features.columns)
        start_cell = len(self._columns)
        copies: list[tuple[npt.NDArray[np.generic], npt.NDArray[np.generic]]] = []
        for array, cells in ((self._columns, block.features.columns), (self._values, block.features.values)):
            place = array.extend(n_cells)
            if address(place) != address(cells):  # else the reader wrote to the arrays of `take`
                copies += [(place[start:stop], cells[start:stop]) for start, stop in chunks(n_cells, 1 << 17)]
        self._pool.run(np.copyto, copies)
        np.add(block.features.offsets[1:], start_cell, out=self._offsets.extend(n_rows))

    def take(self, count: int, lasting: bool) -> tuple[Int32Array, Float64Array]:
        """Return arrays for the next `count` cells: what a reader writes there need not be copied by `add`."""
        start = len(self._columns)
        columns, values = self._columns.extend(count), self._values.extend(count)
        self._columns.shrink(start)
        self._values.shrink(start)
        return columns, values

    def finish(self, table: FeatureTable, source: str, group_by_qid: bool) -> RankingDataset:
        """Return all rows as one data set, its features by ascending id."""
        columns: npt.NDArray[np.int32] = self._columns.finish()
        order, places = table.ascending()
        if not np.array_equal(order, np.arange(len(order))):
            self._pool.run(renumber_columns, [(columns, *bound, places) for bound in chunks(len(columns), 1 << 20)])
        rows = SparseRows(self._offsets.finish(), columns, self._values.finish())
        labels, offsets = self.finish_labels()
        query_ids, document_ids = self.query_ids, self.document_ids
        input_rows: Int64Array | None = None
        if group_by_qid and len(set(query_ids)) < len(query_ids):
            first: dict[str, int] = {}
            run_queries = np.array([first.setdefault(query_id, len(first)) for query_id in query_ids])
            query_ids = list(first)
            doc_queries = np.repeat(run_queries, np.diff(offsets))
            input_rows = doc_order = np.argsort(doc_queries, kind="stable")
            sizes = np.bincount(doc_queries, minlength=len(query_ids))
            offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
            rows, labels = take_rows(rows, doc_order), labels[doc_order]
            document_ids = None if document_ids is None else [document_ids[doc] for doc in doc_order.tolist()]
        names = table.names_of(order)
        texts = {int(places[column]): of_column.found for column, of_column in table.categories.items()}
        ids = table.ids[order]
        made = RankingDataset(rows, ids, labels, offsets, query_ids, names, document_ids, input_rows, source)
        return replace(made, table_features=table.of_tables, texts=texts)


class SizedRows(WrappedReader):
    """A reader that adds query ids '1', '2', ... to rows without any, by query sizes; inputs share one `QuerySizes`."""

    def __init__(self, reader: RowReader, sizes: QuerySizes) -> None:
        super().__init__(reader)
        self._sizes = sizes

    def __iter__(self) -> Iterator[RowBlock]:
        for block in self._reader:
            yield self._sizes.divide(block, self.path)
        self._sizes.check_end(self.path)

    def volatile_batches(self) -> Iterator[list[RowBlock]]:
        """Yield the reader's lists of blocks, with query ids."""
        for blocks in self._reader.volatile_batches():
            yield [self._sizes.divide(block, self.path) for block in blocks]


class QuerySizes:
    """Divides rows into queries by a list of query sizes, which is read from its file only as far as rows need it."""

    def __init__(self, path: str, sizes: Int64Array | Iterator[Int64Array]) -> None:
        self.path = path
        self._more = sizes if isinstance(sizes, Iterator) else iter([sizes])
        self._ends: Int64Array = np.zeros(0, np.int64)  # rows up to the end of each query, from the current one on
        self._n_ended = 0  # queries before these
        self._last_end = 0  # where the last of those ends
        self._total = 0  # rows of the queries read
        self._row = 0
        self._first_source: str | None = None
        self._read_to(1)  # a faulty file is refused before the data is read

    def divide(self, block: RowBlock, source: str = "the data") -> RowBlock:
        """Return the block with query ids; DataError when `source` has more rows than the sizes say."""
        stop = self._row + len(block)
        self._first_source = self._first_source or source
        self._read_to(stop)
        if stop > self._total:
            several = source != self._first_source
            raise self._mismatch(f"the data up to {source}" if several else source, f"more than {self._total}")
        last = int(np.searchsorted(self._ends, stop, "left"))
        starts = np.concatenate([[self._row], self._ends[:last], [stop]]) - self._row
        continues = self._row > self._last_end
        ids = [str(self._n_ended + number + 1) for number in range(last + 1)]
        self._row = stop
        self._drop_ended()
        return RowBlock(block.features, block.labels, ids, starts, continues, block.document_ids, block.first_line)

    def check_end(self, source: str = "the data") -> None:
        """Raise DataError when `source` had fewer rows than the sizes say."""
        n_more = 0
        while n_more < MANY_MORE and (more := next(self._more, None)) is not None:
            self._total += int(more.sum())
            n_more += len(more)
        if self._row != self._total:
            raise self._mismatch(source, str(self._row), n_more >= MANY_MORE)

    def _read_to(self, row: int) -> None:
        """Read sizes until they cover `row` rows, if there are enough."""
        parts = [self._ends]
        while self._total < row and (more := next(self._more, None)) is not None:
            parts.append(self._total + np.cumsum(more))
            self._total += int(more.sum())
        if len(parts) > 1:
            self._ends = np.concatenate(parts)

    def _drop_ended(self) -> None:
        n_ended = int(np.searchsorted(self._ends, self._row, "right"))
        if n_ended:
            self._last_end = int(self._ends[n_ended - 1])
            self._ends = self._ends[n_ended:]
            self._n_ended += n_ended

    def _mismatch(self, source: str, rows: str, may_be_more: bool = False) -> DataError:
        total = f"{'more than ' if may_be_more else ''}{self._total}"
        data = input_name(source)
        return DataError(
            f"the query sizes sum to {total}, but {data} has {rows} rows; give the sizes that belong to it, or first "
            "put the queries of each file into it, with 'lmart convert DATA OUT --query-sizes FILE'",
            self.path,
        )
