"""What the text readers read into: the buffers of parsing kernels, and one block of text read ahead of time."""

from __future__ import annotations

import numpy as np

from lmart.errors import DataError
from lmart.kernels.text import letor as letor_text
from lmart.streams import InputStream


class Buffers:
    """Output buffers of one call of a parsing kernel, apart from cells; reused for every chunk, and they only grow."""

    def __init__(self) -> None:
        self._rows = self._numbers = -1

    def reserve(self, rows: int, numbers: int, max_errors: int) -> None:
        """Make the buffers large enough.

        rows       : number of rows
        numbers    : number of cells and labels together
        max_errors : number of faults that are reported, at most one a row
        """
        if rows > self._rows:
            self._rows = rows
            self.labels = np.empty(rows)
            self.offsets = np.empty(rows + 1, np.int64)
            self.runs = np.empty((rows, 4), np.int64)
            self.documents = np.empty((rows, 2), np.int64)
            self.unsorted = np.empty((rows, 4), np.int64)
        if numbers > self._numbers:  # hardly ever touched, so it costs no memory
            self._numbers = numbers
            self.unknown = np.empty(numbers, np.int64)
            self.slow_numbers = np.empty((numbers, 5), np.int64)
        self.faults = np.empty((min(max_errors, rows), 3), np.int64)
        self.counts = np.zeros(letor_text.N_COUNTS, np.int64)


class BlockRead:
    """One read from a stream into view[start:], which runs on a worker ahead of time, or at the latest in `result`."""

    def __init__(self, stream: InputStream, view: memoryview, start: int) -> None:
        self._stream = stream
        self._view = view
        self._start = start
        self._done = False
        self._count = 0
        self._fault: DataError | None = None

    def run(self) -> None:
        """Read, unless that is done already."""
        if not self._done:
            self._done = True
            try:
                self._count = self._stream.read_block(self._view[self._start :])
            except DataError as fault:
                self._fault = fault

    def result(self) -> int:
        """Return how many bytes were read, 0 at the end of the stream; DataError."""
        self.run()
        self._view.release()
        fault, self._fault = self._fault, None
        if fault is not None:
            try:
                raise fault
            finally:
                del fault  # else it holds this frame, and this frame the fault
        return self._count
