"""GrowingArray: room for what arrives bit by bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


class GrowingArray:
    """An array that takes room for what is expected, of which the system gives memory only as it is written."""

    def __init__(self, dtype: Any) -> None:
        self._array = np.empty(0, dtype)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def expect(self, count: int) -> None:
        """Prepare for about `count` elements in all, as long as there is little to copy."""
        if count > len(self._array) and self._count < count // 8:
            fresh = np.empty(count, self._array.dtype)
            fresh[: self._count] = self._array[: self._count]
            self._array = fresh

    def extend(self, count: int) -> npt.NDArray[Any]:
        """Return the place for `count` further elements, to be written before the next call."""
        needed = self._count + count
        if needed > len(self._array):
            self._array.resize(max(needed, len(self._array) + len(self._array) // 4), refcheck=False)
        place = self._array[self._count : needed]
        self._count = needed
        return place

    def shrink(self, count: int) -> None:
        """Forget what stands after the first `count` elements, and keep the room."""
        self._count = count

    @property
    def view(self) -> npt.NDArray[Any]:
        """The elements so far; valid until the array grows."""
        return self._array[: self._count]

    def finish(self) -> npt.NDArray[Any]:
        """Return the array, without the room that was not used."""
        self._array.resize(self._count, refcheck=False)
        return self._array
