"""Blocks of rows, the interface of the readers that make them, and the buffers that cells are read to."""

from __future__ import annotations

import abc
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from lmart.array_types import Float64Array, Int32Array, Int64Array
from lmart.data.dataset import SparseRows
from lmart.errors import DataError, counted, quote
from lmart.formats.documents.feature_table import FeatureTable
from lmart.formats.read_options import ReadOptions
from lmart.streams import InputStream
from lmart.threads import WorkerPool

if TYPE_CHECKING:
    from lmart.scoring.feature_matching import FeatureMatcher

Scalar = TypeVar("Scalar", bound=np.generic)


class CellBuffer(Protocol):
    """Hands out arrays to write cells to."""

    def take(self, count: int, lasting: bool) -> tuple[Int32Array, Float64Array]:
        """Return uninitialised columns and values, int32[count] and float64[count].

        Only `lasting` arrays stay valid after the next call, which may return others again.
        """


class ReusedBuffer:
    """Returns the same arrays again, unless they are to last or there are more cells than before."""

    def __init__(self) -> None:
        self._columns: Int32Array = np.empty(0, np.int32)
        self._values: Float64Array = np.empty(0)

    def take(self, count: int, lasting: bool) -> tuple[Int32Array, Float64Array]:
        """Return uninitialised columns and values of `count` cells, as `CellBuffer` says."""
        if lasting:
            return np.empty(count, np.int32), np.empty(count)
        if count > len(self._columns):
            size = count + count // 8
            self._columns, self._values = np.empty(size, np.int32), np.empty(size)
        return self._columns[:count], self._values[:count]


class CellBatch:
    """The cells of adjacent chunks of text: each chunk is parsed into its own slice of one buffer, in parallel."""

    def __init__(self, cell_buffer: CellBuffer, n_cells: Sequence[int], lasting: bool) -> None:
        """Take a slice for each chunk, of at least as many cells as it has."""
        self._starts = np.concatenate([[0], np.cumsum(n_cells, dtype=np.int64)]).tolist()
        self._columns, self._values = cell_buffer.take(self._starts[-1], lasting)
        self._filled = 0

    def place(self, chunk: int) -> tuple[Int32Array, Float64Array]:
        """Return columns and values of the slice of a chunk."""
        between = slice(self._starts[chunk], self._starts[chunk + 1])
        return self._columns[between], self._values[between]

    def close_up(self, chunk: int, count: int) -> tuple[Int32Array, Float64Array]:
        """Move the first `count` cells of a chunk up to the end of the chunk before, and return them.

        Call it once for each chunk, in their order.
        """
        start, stop = self._filled, self._filled + count
        if start != self._starts[chunk]:
            for cells in (self._columns, self._values):
                cells[start:stop] = cells[self._starts[chunk] : self._starts[chunk] + count]
        self._filled = stop
        return self._columns[start:stop], self._values[start:stop]


def joined(pieces: Sequence[npt.NDArray[Scalar]]) -> npt.NDArray[Scalar]:
    """Return the concatenated pieces: a view where they are adjacent slices of one array, else a copy."""
    base = pieces[0].base
    if not isinstance(base, np.ndarray) or base.ndim != 1 or base.dtype != pieces[0].dtype:
        return np.concatenate(pieces)
    start = place = address(pieces[0])
    for piece in pieces:
        if piece.base is not base or address(piece) != place:
            return np.concatenate(pieces)
        place += piece.nbytes
    first, size = address(base), base.itemsize
    return base[(start - first) // size : (place - first) // size]


def address(array: npt.NDArray[np.generic]) -> int:
    """Return the address of the array's first byte."""
    place: int = array.__array_interface__["data"][0]
    return place


@dataclass(frozen=True)
class RowBlock:
    """n adjacent rows of the input, in its order.

    features      : the rows; `features.columns` are positions in `RowReader.feature_ids`; the cells of a row are
                    ordered by ascending feature id (not by ascending column)
    labels        : float64[n], or None when the input has none
    query_ids     : one text a run of equal query ids, or None when the input has none
    query_offsets : int64[n_runs + 1], where the runs start in the block; [0, n] without query ids
    continues     : the first run continues the last run of the block before
    document_ids  : n texts, '' where there is none, when they were asked for
    first_line    : line (1-based) or row of the input where the block starts
    """

    features: SparseRows
    labels: Float64Array | None
    query_ids: list[str] | None
    query_offsets: Int64Array
    continues: bool
    document_ids: list[str] | None
    first_line: int

    def __len__(self) -> int:
        return len(self.features)


class SeenQueries:
    """The query ids seen so far and where each was first, so that one whose rows are not adjacent is refused.

    remembers : whether queries are remembered even so
    can_group : whether a refusal advises --group-by-qid
    """

    def __init__(self, group_by_qid: bool, remembers: bool = False, can_group: bool = True) -> None:
        self._group_by_qid, self._remembers = group_by_qid, remembers or not group_by_qid
        self._can_group = can_group
        self.places: dict[str, tuple[str, int]] = {}  # input and line of the first row of each query

    def enter(self, query_id: str, path: str, line: int) -> DataError | None:
        """Remember a run of rows of one query; return the fault when the query was seen before."""
        if not self._remembers:
            return None
        entry = path, line
        first = self.places.setdefault(query_id, entry)
        if first is entry or self._group_by_qid:  # not ==: a file may be given twice
            return None
        return not_adjacent(query_id, first, path, line, self._can_group)


def not_adjacent(query_id: str, first: tuple[str, int], path: str, line: int, can_group: bool = True) -> DataError:
    """Return the refusal of a query whose rows are not adjacent; `first` is the input and line of its first row."""
    where = f"line {first[1]}" if first[0] == path else f"{first[0]}:{first[1]}"
    what = f"rows of query {quote(query_id)} are not adjacent (first seen at {where})"
    how = f"put them together{', or use --group-by-qid' if can_group else ''}"
    return DataError(f"{what}; {how}", path, line, kind="rows not adjacent")


class RowReader(abc.ABC):
    """One input, read block by block in constant memory: iterate over it; a context manager.

    Memory grows only with the number of distinct features, and of queries: one whose rows are not adjacent is refused.
    With `group_by_qid` a query may have several runs of rows; they are yielded in the order of the input.
    """

    path: str
    table: FeatureTable
    alone = False  # no other input follows it

    @property
    def feature_ids(self) -> Int64Array:
        """int64[n]: id of each column, in the order of first appearance; longer after each block with new features."""
        return self.table.ids

    @property
    def feature_names(self) -> list[str] | None:
        """Name of each column, or None when the input has no names but indices."""
        return self.table.names

    def match(self, matcher: FeatureMatcher) -> Int32Array:
        """Return the model's feature of each column so far, int32[n]; DataError for numbers in a category of texts."""
        column_map = matcher.column_map(self.feature_ids, self.feature_names)
        matcher.tables = self.table.of_tables
        matcher.refuse_numbers(self.path)
        return column_map

    @abc.abstractmethod
    def __iter__(self) -> Iterator[RowBlock]:
        """Yield the blocks; DataError at the first block with faults."""

    def volatile_batches(self) -> Iterator[list[RowBlock]]:
        """Yield lists of adjacent blocks, valid until the next list; all faults of the input are raised together."""
        return ([block] for block in self)

    @property
    def progress(self) -> float:
        """The fraction of the input read so far, 0 if unknown."""
        return 0.0

    @abc.abstractmethod
    def close(self) -> None:
        """Close the input."""

    def __enter__(self) -> RowReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class WrappedReader(RowReader):
    """A reader of what another one reads."""

    def __init__(self, reader: RowReader) -> None:
        self.path = reader.path
        self.table = reader.table
        self._reader = reader

    def close(self) -> None:
        """Close the input."""
        self._reader.close()

    @property
    def progress(self) -> float:
        """The fraction of the input read so far, 0 if unknown."""
        return self._reader.progress


class RowSource(NamedTuple):
    """One input, as the reader of its format gets it.

    head        : those first bytes, which were read to recognise the format
    table       : the features met so far; new ones are added
    cell_buffer : where text formats write cells; None: in a buffer of the reader
    """

    stream: InputStream
    head: bytes
    options: ReadOptions
    pool: WorkerPool
    table: FeatureTable
    seen_queries: SeenQueries
    cell_buffer: CellBuffer | None = None


class FeatureColumns(NamedTuple):
    """The features of blocks to be written.

    ids   : int64[n], one id a column of the blocks
    names : one a column, as a header has them; empty for formats without names
    """

    ids: Int64Array
    names: Sequence[str] = ()


class RowWriter(Protocol):
    """Writes blocks of rows to one output."""

    def write(self, block: RowBlock, features: FeatureColumns) -> None:
        """Append the rows; OutputError when the format cannot hold them.

        The first block decides which columns there are besides the features.
        """

    def finish(self) -> None:
        """Write what must stand at the end; after the last block."""


def refuse(faults: list[DataError], max_errors: int) -> None:
    """Raise the first fault (by line), with those that follow it, at most `max_errors`; of a kind only its first."""
    kinds: dict[str | int, list[DataError]] = {}
    for number, fault in enumerate(sorted(faults, key=lambda fault: fault.line or 0)):
        kinds.setdefault(fault.kind or number, []).append(fault)
    if kinds:
        first, *more = [_with_count(alike) for alike in kinds.values()][:max_errors]
        raise DataError(first.message, first.path, first.line, more=tuple(more))


def _with_count(alike: Sequence[DataError]) -> DataError:
    """Return the first of faults of one kind, and how many others were met."""
    first, n_more = alike[0], len(alike) - 1
    if not n_more:
        return first
    return DataError(f"{first.message} ({counted(n_more, 'more such line')} so far)", first.path, first.line)


def join_blocks(parts: Sequence[RowBlock]) -> RowBlock:
    """Return adjacent blocks as one, in arrays of its own."""
    offsets = [np.zeros(1, np.int64)]
    runs: list[Int64Array] = []
    query_ids: list[str] = []
    n_cells = n_rows = 0
    for i, part in enumerate(parts):
        offsets.append(part.features.offsets[1:] + n_cells)
        n_cells += int(part.features.offsets[-1])
        skip = int(part.continues and i > 0)
        runs.append(part.query_offsets[skip:-1] + n_rows)
        query_ids += (part.query_ids or [])[skip:]
        n_rows += len(part)
    first = parts[0]
    labels: list[Float64Array] = [part.labels for part in parts if part.labels is not None]
    return RowBlock(
        SparseRows(
            np.concatenate(offsets),
            joined([part.features.columns for part in parts]),
            joined([part.features.values for part in parts]),
        ),
        np.concatenate(labels) if labels else None,
        None if first.query_ids is None else query_ids,
        np.append(np.concatenate(runs), n_rows).astype(np.int64),
        first.continues,
        None if first.document_ids is None else [text for part in parts for text in part.document_ids or ()],
        first.first_line,
    )


def without_cells(block: RowBlock) -> RowBlock:
    """Return the same rows without features."""
    features = SparseRows(np.zeros(len(block) + 1, np.int64), np.zeros(0, np.int32), np.zeros(0))
    return replace(block, features=features)
