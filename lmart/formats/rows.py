"""Rows as they are read: blocks in the order of the input, and what the readers of all formats share."""

from __future__ import annotations

import abc
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType

import numpy as np
import numpy.typing as npt

from lmart.dataset import SparseRows
from lmart.errors import DataError, quote
from lmart.kernels.feature_ids import register_ids
from lmart.kernels.parsing import COLUMN, ID, LENGTH, MASK, N_SPELLINGS, SPELLING

Floats = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]

NAMED = 3  # ids named in a message
DIRECT_IDS = 1 << 20  # feature ids below it are found by the reading kernel itself, those above afterwards


@dataclass(frozen=True)
class RowBlock:
    """n adjacent rows of the input, in its order.

    features      : the rows; `features.columns` are positions in `RowReader.feature_ids`; the cells of a row stand by
                    ascending feature id (not by ascending column)
    labels        : float64[n], or None when the input has none
    query_ids     : one text a run of equal query ids, or None when the input has none
    query_offsets : int64[n_runs + 1], where the runs start in the block; [0, n] without query ids
    continues     : the first run goes on from the last run of the block before
    document_ids  : n texts, '' where there is none, when they were asked for
    first_line    : line (1-based) or row of the input where the block starts
    """

    features: SparseRows
    labels: Floats | None
    query_ids: list[str] | None
    query_offsets: Longs
    continues: bool
    document_ids: list[str] | None
    first_line: int

    def __len__(self) -> int:
        return len(self.features)


def spell(ids: Longs, columns: Longs) -> npt.NDArray[np.uint64]:
    """Return uint64[n + 1, 5], the `spellings` of `parse_letor` for ids and their columns; long ones like no text."""
    n = len(ids)
    length = np.searchsorted(10 ** np.arange(1, 8), ids, "right").astype(np.uint64) + np.uint64(2)
    word, rest = np.full(n, ord(":"), np.uint64), ids.astype(np.uint64)
    for digit in range(7):  # from the last one
        longer = np.uint64(digit + 1) < length
        word = np.where(longer, (word << np.uint64(8)) | (rest % np.uint64(10) + np.uint64(ord("0"))), word)
        rest //= np.uint64(10)
    out = np.zeros((n + 1, N_SPELLINGS), np.uint64)
    out[:n, SPELLING] = word
    out[:n, MASK] = ~np.uint64(0) >> (np.uint64(64) - np.uint64(8) * np.minimum(length, np.uint64(8)))
    out[:n, LENGTH], out[:n, ID], out[:n, COLUMN] = length, ids, columns
    without = np.append(length > 8, True)
    out[without, SPELLING], out[without, MASK] = 1, 0  # no word under an empty mask is 1
    return out


class FeatureTable:
    """The features met so far, numbered in the order of their first appearance; grows by distinct features only."""

    def __init__(self) -> None:
        self.names: list[str] | None = None
        self.of_tables: dict[str, Longs] = {}  # by input with a header: the ids that it has a column for
        self.ignored: dict[int, bool] = {}  # ids of LETOR text that are to be left out, and whether they were met
        self._count = 0
        self._ids = np.empty(64, np.int64)
        self._keys = np.full(256, -1, np.int64)
        self._columns = np.zeros(256, np.int32)
        self._spellings = np.empty((0, N_SPELLINGS), np.uint64)
        self._places = np.empty(0, np.int32)
        self._spelled = 0

    def __len__(self) -> int:
        return self._count

    @property
    def ids(self) -> Longs:
        """int64[n]: the id of each column; a view that stays as it is when the table grows."""
        return self._ids[: self._count]

    def ascending(self) -> tuple[Longs, npt.NDArray[np.int32]]:
        """Return the columns by ascending id, int64[n], and each column's place there, int32[n]."""
        order = np.argsort(self.ids, kind="stable")
        places = np.empty(len(order), np.int32)
        places[order] = np.arange(len(order))
        return order, places

    def names_of(self, columns: Longs) -> tuple[str, ...] | None:
        """Return the names of columns; None when they have none."""
        return None if self.names is None else tuple(self.names[column] for column in columns.tolist())

    @property
    def spellings(self) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int32]]:
        """How ids are written, by ascending id, and the place there of each id below DIRECT_IDS, for `parse_letor`.

        A table with very many features leaves the newest ones out for a while.
        """
        new = self._count - self._spelled
        if (new > 0 or not len(self._spellings)) and (self._count < 1 << 16 or new > self._count // 8):
            order, _ = self.ascending()
            ids = self.ids[order]
            self._spellings, self._spelled = spell(ids, order), self._count
            direct = ids[: np.searchsorted(ids, DIRECT_IDS)]
            self._places = np.full(int(direct.max(initial=-1)) + 1, -1, np.int32)
            self._places[direct] = np.arange(len(direct))
        return self._spellings, self._places

    def register(self, ids: Longs) -> npt.NDArray[np.int32]:
        """Return the column of each id, int32[n]; those not met before get the next ones in order."""
        columns = np.empty(len(ids), np.int32)
        start = 0
        while start < len(ids):
            stop = min(start + len(self._keys) // 4, len(ids))
            self._reserve(self._count + stop - start)
            self._count = register_ids(
                ids[start:stop], self._keys, self._columns, self._ids, self._count, columns[start:stop]
            )
            start = stop
        return columns

    def register_but(self, ids: Longs) -> npt.NDArray[np.int32]:
        """Return the column of each id, as `register`, but -1 for those that are ignored; note that they were met."""
        left_out = np.isin(ids, list(self.ignored))
        for one in np.unique(ids[left_out]).tolist():
            self.ignored[one] = True
        columns = np.full(len(ids), -1, np.int32)
        columns[~left_out] = self.register(ids[~left_out])
        return columns

    def never_met(self) -> str | None:
        """Return a warning that no row of LETOR text had some of the ids to ignore; None if all were met.

        Tables refuse such names by their header; in sparse text an index that no row has may only be rare.
        """
        never = [] if self.of_tables else [str(index) for index, met in self.ignored.items() if not met]
        if not never:
            return None
        which = "feature" if len(never) == 1 else "features"
        return f"no row has the {which} to ignore {', '.join(map(quote, never[:NAMED]))}; check --ignore-columns"

    def register_names(self, names: list[str]) -> npt.NDArray[np.int32]:
        """Return the column of each name; a name not met before gets the next column, and as id its number from 1."""
        if self.names is None:
            self.names = []
        position = {name: i for i, name in enumerate(self.names)}
        before = len(position)
        for name in names:
            position.setdefault(name, len(position))
        self.names += list(position)[before:]
        self.register(np.arange(before + 1, len(position) + 1))
        return np.array([position[name] for name in names], np.int32)

    def _reserve(self, count: int) -> None:
        if count > len(self._ids):
            self._ids = np.concatenate([self._ids, np.empty(max(count - len(self._ids), len(self._ids)), np.int64)])
        if 2 * count > len(self._keys):
            size = len(self._keys)
            while 2 * count > size:
                size *= 2
            self._keys = np.full(size, -1, np.int64)
            self._columns = np.zeros(size, np.int32)
            known = self.ids.copy()
            register_ids(known, self._keys, self._columns, self._ids, 0, np.empty(len(known), np.int32))


class QueryLedger:
    """Which query ids were met and where, so that one that comes back is refused."""

    def __init__(self, group_by_qid: bool) -> None:
        self._group_by_qid = group_by_qid
        self._first: dict[str, tuple[str, int]] = {}

    def enter(self, query_id: str, path: str, line: int) -> DataError | None:
        """Note a run of rows of one query; return the fault when the query stood before."""
        if self._group_by_qid:
            return None
        entry = path, line
        before = self._first.setdefault(query_id, entry)
        if before is entry:  # not ==: a file may be given twice
            return None
        where = f"line {before[1]}" if before[0] == path else f"{before[0]}:{before[1]}"
        return DataError(
            f"query {quote(query_id)} comes back: it first stood at {where}, and its rows are not adjacent; "
            "put them together, or use --group-by-qid",
            path,
            line,
        )


class RowReader(abc.ABC):
    """One input, read block by block in constant memory: iterate over it; a context manager.

    Memory grows only with the number of distinct features, and of queries (a query that comes back is refused).
    With `group_by_qid` a query may come back; its runs arrive as they stand.
    """

    path: str
    table: FeatureTable
    alone = False  # no other input follows it

    @property
    def feature_ids(self) -> Longs:
        """int64[n]: id of each column, in the order of first appearance; longer after each block with new features."""
        return self.table.ids

    @property
    def feature_names(self) -> list[str] | None:
        """Name of each column, or None when the input has no names but indices."""
        return self.table.names

    @abc.abstractmethod
    def __iter__(self) -> Iterator[RowBlock]:
        """Yield the blocks; DataError at the first block with faults."""

    def volatile_batches(self) -> Iterator[list[RowBlock]]:
        """Yield adjacent blocks whose arrays last until the next are asked for; faults of the input come together."""
        return ([block] for block in self)

    @property
    def progress(self) -> float:
        """The share of the input that was read, as far as known, else 0."""
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


def refuse(faults: list[DataError], max_errors: int) -> None:
    """Raise the first fault (by line), with those that follow it, at most `max_errors` in all."""
    if faults:
        ordered = sorted(faults, key=lambda fault: fault.line or 0)[:max_errors]
        first = ordered[0]
        raise DataError(first.message, first.path, first.line, more=tuple(ordered[1:]))
