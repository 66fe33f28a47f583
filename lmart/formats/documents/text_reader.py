"""What the readers of text formats share: whole lines in big blocks, cut in chunks that kernels read side by side."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from typing import NamedTuple, TypeVarTuple, Unpack

import numpy as np
import numpy.typing as npt

from lmart.array_types import Float64Array, Int64Array
from lmart.errors import DataError
from lmart.formats.documents.blocks import ReusedBuffer, RowBlock, RowReader, RowSource, join_blocks, refuse
from lmart.formats.documents.diagnostics import decode_documents, encoding_fault, id_fault
from lmart.formats.format_records import BYTE_ORDER_MARK
from lmart.kernels.text import decimals, parsed_text
from lmart.kernels.text import letor as letor_text
from lmart.streams import InputStream

Ts = TypeVarTuple("Ts")

FIRST_BLOCK = 1 << 16  # small: after it, the table knows most features
BLOCK = 1 << 23
CHUNK = 1 << 19
LONGEST_LINE = 1 << 26
powers_of_five = cache(decimals.powers_of_five)


class Buffers:
    """Output buffers of one call of a parsing kernel, apart from cells; reused for every chunk, and they only grow."""

    def __init__(self) -> None:
        self._rows = self._numbers = -1

    def reserve(self, rows: int, numbers: int, max_errors: int) -> None:
        """Make the buffers large enough for rows, and for numbers: their cells and labels together."""
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


class QueryRuns(NamedTuple):
    """The queries of a block of rows: fields of RowBlock."""

    query_ids: list[str] | None
    query_offsets: Int64Array
    continues: bool


class TextReader(RowReader):
    """Splits text into blocks of whole lines, which `parse` of a subclass turns into rows."""

    def __init__(self, source: RowSource) -> None:
        self.path = source.stream.path
        self.table = source.table
        self.options = source.options
        self.pool = source.pool
        self.faults: list[DataError] = []
        self.line = 0  # lines before the current block
        self._stream = source.stream
        self._head = source.head
        self._seen_queries = source.seen_queries
        self._query: bytes | None = None
        self._buffers: list[Buffers] = []
        self._cell_buffer = source.cell_buffer or ReusedBuffer()
        self._lasting = True
        self._progress = 0.0
        self._next: BlockRead | None = None

    def close(self) -> None:
        """Close the input."""
        self._stream.close()

    @property
    def progress(self) -> float:
        """The fraction of the input read so far, 0 if unknown."""
        return self._progress

    def __iter__(self) -> Iterator[RowBlock]:
        for parts in self._blocks(whole_input=False):
            yield join_blocks(parts)

    def volatile_batches(self) -> Iterator[list[RowBlock]]:
        """Yield lists of adjacent blocks, which share buffers with those of the next list."""
        return self._blocks(whole_input=True)

    @abc.abstractmethod
    def parse(self, buffer: bytearray, stop: int) -> list[RowBlock]:
        """Return the rows of the whole lines buffer[:stop] as blocks; add to `faults` and `line`.

        The blocks may be views of `buffers`: they are valid until the next call.
        """

    def _blocks(self, whole_input: bool) -> Iterator[list[RowBlock]]:
        self._lasting = not whole_input
        try:
            for buffer, stop in self._texts():
                parts = self.parse(buffer, stop)
                if self.faults and (not whole_input or len(self.faults) >= self.options.max_errors):
                    break
                if parts and not self.faults:
                    yield parts
            if not self.faults:
                self.end()
        except DataError as fault:
            if not self.faults:
                raise
            self.faults.append(fault.with_traceback(None))  # whose frames hold this reader
        refuse(self.faults, self.options.max_errors)

    def end(self) -> None:
        """Check what is known only at the end of the input; DataError when it is wrong."""

    def _texts(self) -> Iterator[tuple[bytearray, int]]:
        """Yield (buffer, stop): buffer[:stop] holds whole lines and ends with a newline."""
        head = self._head
        few = bytearray(len(BYTE_ORDER_MARK))
        while len(head) < len(few) and BYTE_ORDER_MARK.startswith(head):
            count = self._stream.read_block(memoryview(few)[len(head) :])
            if not count:
                break
            head += few[len(head) : len(head) + count]
        head = head.removeprefix(BYTE_ORDER_MARK)
        if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
            raise self.fault(1, "the text is UTF-16; convert it to UTF-8, as with 'iconv -f utf-16 -t utf-8'")
        buffer, spare = bytearray(max(FIRST_BLOCK, len(head) + 1) + parsed_text.MARGIN), bytearray()
        buffer[: len(head)] = head
        filled = len(head)
        cut = buffer.rfind(b"\n", 0, filled) + 1
        while True:
            if filled - cut > LONGEST_LINE:
                what = f"the line is longer than {LONGEST_LINE >> 20} MiB"
                raise self.fault(self.line + 1, f"{what}; is it the right file, and are its line ends newlines?")
            start, limit = filled, len(buffer) - parsed_text.MARGIN - 1
            if cut or filled == limit:
                start = filled - cut
                limit = start + (self._next_size() if cut else max(start, FIRST_BLOCK))
                if len(spare) < limit + 1 + parsed_text.MARGIN:
                    spare = bytearray(limit + limit // 8 + 1 + parsed_text.MARGIN)  # so that it is rarely done again
                spare[:start] = memoryview(buffer)[cut:filled]
                self._progress = self._stream.progress
                self._next = BlockRead(self._stream, memoryview(spare)[:limit], start)
                if cut:
                    yield buffer, cut
                buffer, spare = spare, buffer
            else:  # a line longer than the buffer so far: append to it
                self._next = BlockRead(self._stream, memoryview(buffer)[:limit], start)
            count = self._next.result()
            filled = start + count
            if not count:
                self._progress = self._stream.progress
                if filled:
                    buffer[filled] = 10
                    yield buffer, filled + 1
                return
            cut = buffer.rfind(b"\n", start, filled) + 1

    def _next_size(self) -> int:
        """Return the bytes to read next: BLOCK, or the rest of a plain file if less, since allocation costs time."""
        progress = self._stream.progress if self._stream.can_read_ahead else 0.0
        if progress <= 0.0:
            return BLOCK
        left = int(self._stream.taken * (1.0 / progress - 1.0)) + 1
        return min(BLOCK, max(left, FIRST_BLOCK))

    def run(self, function: Callable[[Unpack[Ts]], None], arguments: Sequence[tuple[*Ts]]) -> None:
        """Call the function for each tuple of arguments on the pool, and read the next block meanwhile.

        There is no reading ahead from pipes and compressed files, which could keep a worker waiting.
        """
        if self._next is None or not self._stream.can_read_ahead:
            self.pool.run(function, arguments)
        else:
            jobs: list[Callable[[], None]] = [self._next.run, *(partial(function, *chunk) for chunk in arguments)]
            self.pool.run(_call, [(job,) for job in jobs])

    def fault(self, line: int, message: str) -> DataError:
        """Return a DataError at a line of this input."""
        return DataError(message, self.path, line)

    def refuse_gains(self, labels: Iterable[tuple[int, float]]) -> None:
        """Add faults for the labels that have no gain; labels : (line, label) pairs."""
        for line, label in labels:
            if message := self.options.gain_fault(np.array([label])):
                self.faults.append(DataError(message, self.path, line, kind=message))

    def buffers(self, count: int) -> Sequence[Buffers]:
        """Return `count` sets of buffers."""
        while len(self._buffers) < count:
            self._buffers.append(Buffers())
        return self._buffers[:count]

    def read_runs(self, runs: Sequence[tuple[int, bytes, int]], n_rows: int) -> QueryRuns:
        """Return the queries of a block of rows from the first row, id and line of each run of equal ids."""
        query_ids: list[str] = []
        continues = False
        for _, raw, line in runs:
            if not query_ids and raw == self._query:
                continues = True
                query_ids.append(raw.decode("utf-8", "backslashreplace"))
            else:
                query_ids.append(self._enter_query(raw, line))
                self._query = raw
        return QueryRuns(query_ids, np.array([*(row for row, _, _ in runs), n_rows], np.int64), continues)

    def runs_in(self, buffer: bytearray, runs: Int64Array) -> list[tuple[int, bytes, int]]:
        """Return the runs of equal query ids that a kernel noted: first row, start and stop of the id, line."""
        return [(row, bytes(buffer[start:stop]), self.line + line + 1) for row, start, stop, line in runs.tolist()]

    def one_query(self, n_rows: int) -> QueryRuns:
        """Return the queries of rows without ids, which are all of one query."""
        continues = n_rows > 0 and self._query is not None
        if n_rows:
            self._query = b""
        return QueryRuns(None, np.array([0, n_rows], np.int64), continues)

    def _enter_query(self, raw: bytes, line: int) -> str:
        """Return the id of a query that begins, and remember it; add a fault if seen before or not UTF-8."""
        try:
            query_id = raw.decode("utf-8")
        except UnicodeDecodeError:
            self.faults.append(self.fault(line, encoding_fault(raw, "query id")))
            return raw.decode("utf-8", "backslashreplace")
        if message := id_fault(query_id, "query id", self.options):
            self.faults.append(self.fault(line, message))
        elif fault := self._seen_queries.enter(query_id, self.path, line):
            self.faults.append(fault)
        return query_id

    def read_documents(self, buffer: bytearray, documents: Int64Array, begin: int) -> list[str]:
        """Return the document ids of a chunk, from `begin` in the buffer on, and add their faults."""
        raw_ids = [bytes(buffer[start:stop]) for start, stop in documents.tolist()]
        return self.decode(raw_ids, lambda row: self.line + buffer.count(b"\n", begin, int(documents[row, 0])) + 1)

    def decode(self, raw_ids: Sequence[bytes], line_of: Callable[[int], int]) -> list[str]:
        """Return the document ids of rows as text, and add their faults."""
        texts, faults = decode_documents(raw_ids, self.options)
        self.faults += [self.fault(line_of(row), message) for row, message in faults[: self.options.max_errors]]
        return texts

    def finish_numbers(
        self, buffer: bytearray, numbers: Int64Array, labels: Float64Array, values: Float64Array
    ) -> list[tuple[int, int, int]]:
        """Parse the `numbers` that `decimals.read_numbers` left with float(), and write them to `labels` and `values`.

        Return (line, start, stop) of invalid tokens, one a line, at most `max_errors`.
        """
        wrong: dict[int, tuple[int, int, int]] = {}
        for place, start, stop, line, status in numbers.tolist():
            if len(wrong) == self.options.max_errors:
                break
            value = float(bytes(buffer[start:stop])) or 0.0 if status == decimals.HARD else np.nan  # no minus zero
            if status == decimals.WRONG or not self._is_data(value, place < 0):
                wrong.setdefault(line, (line, start, stop))
            elif place < 0:
                labels[~place] = value
            else:
                values[place] = value
        return list(wrong.values())

    def _is_data(self, value: float, is_label: bool) -> bool:
        if is_label:
            return 0 <= value < np.inf
        return self.options.allow_inf or not np.isinf(value)


def _call(job: Callable[[], None]) -> None:
    job()


def count_lines(text: npt.NDArray[np.uint8], start: int, stop: int) -> int:
    """Return the number of newlines in text[start:stop]."""
    return int(np.count_nonzero(text[start:stop] == ord("\n")))


def cut_at_newlines(buffer: bytearray, stop: int, threads: int, start: int = 0) -> list[tuple[int, int]]:
    """Return ranges of whole lines that cover buffer[start:stop], which ends with a newline.

    Guided self-scheduling: each range is remaining / (threads + 1), at least CHUNK bytes, so ranges are few and the
    last ones small.
    """
    bounds = []
    while start < stop:
        size = max(CHUNK, (stop - start) // (threads + 1))
        end = stop if start + size >= stop else buffer.find(b"\n", start + size, stop) + 1
        bounds.append((start, end))
        start = end
    return bounds
