"""GrowableArray: an array that takes elements at its end."""

from __future__ import annotations

from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

Scalar = TypeVar("Scalar", bound=np.generic)


class GrowableArray(Generic[Scalar]):
    """A one-dimensional array that takes elements at its end.

    It allocates more than it holds; the operating system provides memory only for what is written. It grows by copying
    to a new array, so views returned earlier keep their memory and their elements.
    """

    def __init__(self, dtype: type[Scalar]) -> None:
        self._array: npt.NDArray[Scalar] = np.empty(0, dtype)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def expect(self, count: int) -> None:
        """Prepare for about `count` elements in all, unless much of it is there already and would have to be copied."""
        if count > len(self._array) and self._count < count // 8:
            self._move(count)

    def extend(self, count: int) -> npt.NDArray[Scalar]:
        """Append `count` elements and return the view of them, whose content the caller has to write."""
        needed = self._count + count
        if needed > len(self._array):
            self._move(max(needed, 2 * len(self._array)))
        added = self._array[self._count : needed]
        self._count = needed
        return added

    def shrink(self, count: int) -> None:
        """Drop all but the first `count` elements; their memory serves the next ones."""
        self._count = count

    @property
    def view(self) -> npt.NDArray[Scalar]:
        """The elements so far; those that are appended later are not in it."""
        return self._array[: self._count]

    def finish(self) -> npt.NDArray[Scalar]:
        """Return the elements. The array must not be used any more."""
        return self.view

    def _move(self, size: int) -> None:
        larger = np.empty(size, self._array.dtype)
        larger[: self._count] = self.view
        self._array = larger
