"""What the readers of text formats share: whole lines in big blocks, cut in chunks that kernels read side by side."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from typing import TypeVarTuple, Unpack

import numpy as np
import numpy.typing as npt

from lmart.array_types import Float64Array, Int64Array
from lmart.data.dataset import SparseRows
from lmart.errors import DataError
from lmart.formats.documents.cell_buffers import CellBuffer, ReusedBuffer, joined
from lmart.formats.documents.feature_table import FeatureTable
from lmart.formats.documents.ids import decode_documents, encoding_fault, id_fault
from lmart.formats.documents.row_blocks import RowBlock, RowReader, SeenQueries, refuse
from lmart.formats.read_options import ReadOptions
from lmart.kernels import decimal_numbers, letor_arrays
from lmart.streams import InputStream
from lmart.threads import WorkerPool

Ts = TypeVarTuple("Ts")

FIRST_BLOCK = 1 << 16  # small: after it, the table knows most features
BLOCK = 1 << 23
CHUNK = 1 << 19
LONGEST_LINE = 1 << 26
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@lru_cache(maxsize=1)
def powers() -> npt.NDArray[np.uint64]:
    """Return the powers of five that kernels parse decimal numbers with."""
    return decimal_numbers.powers_of_five()


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
            self.odd = np.empty((numbers, 5), np.int64)
        self.faults = np.empty((min(max_errors, rows), 3), np.int64)
        self.counts = np.zeros(letor_arrays.N_COUNTS, np.int64)


class _Reading:
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


class TextReader(RowReader):
    """Splits text into blocks of whole lines, which `parse` of a subclass turns into rows.

    stream       : the text, without its first bytes
    head         : those first bytes, which were read to recognise the format
    options      : of reading
    pool         : the workers
    table        : the features met so far; new ones are added
    seen_queries : the query ids met so far
    cell_buffer  : where cells are written; None: in a buffer of the reader
    """

    def __init__(
        self,
        stream: InputStream,
        head: bytes,
        options: ReadOptions,
        pool: WorkerPool,
        table: FeatureTable,
        seen_queries: SeenQueries,
        cell_buffer: CellBuffer | None = None,
    ) -> None:
        self.path = stream.path
        self.table = table
        self.options = options
        self.pool = pool
        self.faults: list[DataError] = []
        self.line = 0  # lines before the current block
        self._stream = stream
        self._head = head
        self._seen_queries = seen_queries
        self._query: bytes | None = None
        self._buffers: list[Buffers] = []
        self._cell_buffer = cell_buffer or ReusedBuffer()
        self._lasting = True
        self._progress = 0.0
        self._next: _Reading | None = None

    def close(self) -> None:
        self._stream.close()

    @property
    def progress(self) -> float:
        return self._progress

    def __iter__(self) -> Iterator[RowBlock]:
        for parts in self._blocks(whole_input=False):
            yield join_blocks(parts)

    def volatile_batches(self) -> Iterator[list[RowBlock]]:
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
        buffer, spare = bytearray(max(FIRST_BLOCK, len(head) + 1) + letor_arrays.MARGIN), bytearray()
        buffer[: len(head)] = head
        filled = len(head)
        cut = buffer.rfind(b"\n", 0, filled) + 1
        while True:
            if filled - cut > LONGEST_LINE:
                what = f"the line is longer than {LONGEST_LINE >> 20} MiB"
                raise self.fault(self.line + 1, f"{what}; is it the right file, and are its line ends newlines?")
            start, limit = filled, len(buffer) - letor_arrays.MARGIN - 1
            if cut or filled == limit:
                start = filled - cut
                limit = start + (self._next_size() if cut else max(start, FIRST_BLOCK))
                if len(spare) < limit + 1 + letor_arrays.MARGIN:
                    spare = bytearray(limit + limit // 8 + 1 + letor_arrays.MARGIN)  # so that it is rarely done again
                spare[:start] = memoryview(buffer)[cut:filled]
                self._progress = self._stream.progress
                self._next = _Reading(self._stream, memoryview(spare)[:limit], start)
                if cut:
                    yield buffer, cut
                buffer, spare = spare, buffer
            else:  # a line longer than the buffer so far: append to it
                self._next = _Reading(self._stream, memoryview(buffer)[:limit], start)
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
            jobs: list[Callable[[], None]] = [self._next.run, *(partial(function, *one) for one in arguments)]
            self.pool.run(_call, [(job,) for job in jobs])

    def fault(self, line: int, message: str) -> DataError:
        """Return a DataError at a line of this input."""
        return DataError(message, self.path, line)

    def refuse_gains(self, labels: Iterable[tuple[int, float]]) -> None:
        """Add faults for the labels that have no gain; labels : (line, label) pairs."""
        for line, label in labels:
            if message := self.options.gain_fault(np.array([label])):
                self.faults.append(self.fault(line, message))

    def buffers(self, count: int) -> Sequence[Buffers]:
        """Return `count` sets of buffers."""
        while len(self._buffers) < count:
            self._buffers.append(Buffers())
        return self._buffers[:count]

    def read_runs(self, buffer: bytearray, runs: Int64Array) -> tuple[list[str], bool]:
        """Return the query ids of runs of rows, and whether the first run continues that of the block before.

        buffer : the text
        runs   : int64[n, 4]: first row, start and stop of the id in `buffer`, line
        """
        query_ids: list[str] = []
        continues = False
        for _, start, stop, line in runs.tolist():
            raw = bytes(buffer[start:stop])
            if not query_ids and raw == self._query:
                continues = True
                query_ids.append(raw.decode("utf-8", "backslashreplace"))
            else:
                query_ids.append(self.enter_query(raw, self.line + line + 1))
                self._query = raw
        return query_ids, continues

    def enter_query(self, raw: bytes, line: int) -> str:
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
        """Return the document ids of a chunk, and add their faults.

        documents : int64[n, 2], start and stop of each id in `buffer`
        begin     : where the chunk begins in `buffer`
        """
        texts, faults = decode_documents(
            [bytes(buffer[start:stop]) for start, stop in documents.tolist()], self.options
        )
        for row, message in faults[: self.options.max_errors]:
            line = self.line + buffer.count(b"\n", begin, int(documents[row, 0])) + 1
            self.faults.append(self.fault(line, message))
        return texts

    def finish_numbers(
        self, buffer: bytearray, numbers: Int64Array, labels: Float64Array, values: Float64Array
    ) -> list[tuple[int, int, int]]:
        """Parse with float() the numbers that the kernels could not, and write them to `labels` and `values`.

        numbers : int64[n, 5] as `decimal_numbers.read_numbers` leaves them: index into `values`, or ~index into
                  `labels`; start and stop in `buffer`; line; status
        Return (line, start, stop) of tokens that are invalid, one a line, at most `max_errors`.
        """
        wrong: dict[int, tuple[int, int, int]] = {}
        for place, start, stop, line, status in numbers.tolist():
            if len(wrong) == self.options.max_errors:
                break
            value = (
                float(bytes(buffer[start:stop])) or 0.0 if status == decimal_numbers.HARD else np.nan
            )  # no minus zero
            if status == decimal_numbers.WRONG or not self._is_data(value, place < 0):
                wrong.setdefault(line, (line, start, stop))
            elif place < 0:
                labels[~place] = value
            else:
                values[place] = value
        return list(wrong.values())

    def _is_data(self, value: float, is_label: bool) -> bool:
        if is_label:
            return 0 <= value < np.inf
        return self.options.allow_infinite or not np.isinf(value)


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
