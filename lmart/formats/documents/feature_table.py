"""The features of an input: the column of each id or name, in the order of first appearance."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lmart.array_types import Int64Array
from lmart.data.categories import CategoryTexts
from lmart.errors import quote
from lmart.kernels.text.feature_ids import register_ids
from lmart.kernels.text.letor import COLUMN, ID, LENGTH, MASK, N_PATTERN_COLUMNS, PATTERN, KnownFeatures

NAMED = 3  # ids named in a message
DIRECT_IDS = 1 << 20  # the parsing kernel looks up smaller ids itself; larger ones are resolved after it


def token_patterns(ids: Int64Array, columns: Int64Array) -> npt.NDArray[np.uint64]:
    """Return uint64[n + 1, 5], the `KnownFeatures.patterns` by which `parse_letor` recognises ascending ids.

    Ids of more than seven digits, and the last row, match no text.
    """
    n = len(ids)
    length = np.searchsorted(10 ** np.arange(1, 8), ids, "right").astype(np.uint64) + np.uint64(2)
    word, rest = np.full(n, ord(":"), np.uint64), ids.astype(np.uint64)
    for digit in range(7):  # from the last one
        longer = np.uint64(digit + 1) < length
        word = np.where(longer, (word << np.uint64(8)) | (rest % np.uint64(10) + np.uint64(ord("0"))), word)
        rest //= np.uint64(10)
    patterns = np.zeros((n + 1, N_PATTERN_COLUMNS), np.uint64)
    patterns[:n, PATTERN] = word
    patterns[:n, MASK] = ~np.uint64(0) >> (np.uint64(64) - np.uint64(8) * np.minimum(length, np.uint64(8)))
    patterns[:n, LENGTH], patterns[:n, ID], patterns[:n, COLUMN] = length, ids, columns
    unmatched = np.append(length > 8, True)
    patterns[unmatched, PATTERN], patterns[unmatched, MASK] = 1, 0  # no word under an empty mask is 1
    return patterns


def ascending(ids: Int64Array) -> tuple[Int64Array, npt.NDArray[np.int32]]:
    """Return the columns by ascending id, int64[n], and each column's place there, int32[n]."""
    order = np.argsort(ids, kind="stable")
    places = np.empty(len(order), np.int32)
    places[order] = np.arange(len(order))
    return order, places


class FeatureTable:
    """The distinct features met so far; their columns are numbered in the order of first appearance."""

    def __init__(self) -> None:
        self.names: list[str] | None = None
        self.of_tables: dict[str, Int64Array] = {}  # by input with a header: the ids that it has a column for
        self.categories: dict[int, CategoryTexts] = {}  # by column, of tables
        self.ignored: dict[int, bool] = {}  # ids to ignore in LETOR text, and whether a row had them
        self._count = 0
        self._ids = np.empty(64, np.int64)
        self._keys = np.full(256, -1, np.int64)
        self._columns = np.zeros(256, np.int32)
        self._known = KnownFeatures(np.empty((0, N_PATTERN_COLUMNS), np.uint64), np.empty(0, np.int32))
        self._n_known = 0  # features in it

    def __len__(self) -> int:
        return self._count

    @property
    def ids(self) -> Int64Array:
        """int64[n]: the id of each column; a view that stays as it is when the table grows."""
        return self._ids[: self._count]

    def ascending(self) -> tuple[Int64Array, npt.NDArray[np.int32]]:
        """Return the columns by ascending id, int64[n], and each column's place there, int32[n]."""
        return ascending(self.ids)

    def names_of(self, columns: Int64Array) -> tuple[str, ...] | None:
        """Return the names of columns; None when they have none."""
        return None if self.names is None else tuple(self.names[column] for column in columns.tolist())

    @property
    def known(self) -> KnownFeatures:
        """The patterns of the ids, as `token_patterns` returns them, and the row there of each id below DIRECT_IDS.

        A table of many features is not rebuilt for a few new ones: those are missing until there are enough of them.
        """
        new = self._count - self._n_known
        if (new > 0 or not len(self._known.patterns)) and (self._count < 1 << 16 or new > self._count // 8):
            order, _ = self.ascending()
            ids = self.ids[order]
            direct = ids[: np.searchsorted(ids, DIRECT_IDS)]
            pattern_of_id = np.full(int(direct.max(initial=-1)) + 1, -1, np.int32)
            pattern_of_id[direct] = np.arange(len(direct))
            self._known, self._n_known = KnownFeatures(token_patterns(ids, order), pattern_of_id), self._count
        return self._known

    def register(self, ids: Int64Array) -> npt.NDArray[np.int32]:
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

    def register_but(self, ids: Int64Array) -> npt.NDArray[np.int32]:
        """Return the column of each id as `register` does, but -1 for ignored ids, which are marked as met."""
        left_out = np.isin(ids, list(self.ignored))
        for index in np.unique(ids[left_out]).tolist():
            self.ignored[index] = True
        columns = np.full(len(ids), -1, np.int32)
        columns[~left_out] = self.register(ids[~left_out])
        return columns

    def never_met(self) -> str | None:
        """Return a warning that no row of LETOR text had some of the ids to ignore; None if all were met.

        Tables with a header refuse unknown names at once; in sparse text an index may only be rare.
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
        start = len(position)
        for name in names:
            position.setdefault(name, len(position))
        self.names += list(position)[start:]
        self.register(np.arange(start + 1, len(position) + 1))
        return np.array([position[name] for name in names], np.int32)

    def is_before(self, column: int, path: str) -> bool:
        """Return whether a table before this one has the column."""
        return any(self._ids[column] in ids for other, ids in self.of_tables.items() if other != path)

    def _reserve(self, count: int) -> None:
        if count > len(self._ids):
            self._ids = np.concatenate([self._ids, np.empty(max(count - len(self._ids), len(self._ids)), np.int64)])
        if 2 * count > len(self._keys):
            size = len(self._keys)
            while 2 * count > size:
                size *= 2
            self._keys = np.full(size, -1, np.int64)
            self._columns = np.zeros(size, np.int32)
            ids = self.ids.copy()
            register_ids(ids, self._keys, self._columns, self._ids, 0, np.empty(len(ids), np.int32))
