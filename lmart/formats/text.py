"""What the readers of text formats share: whole lines in big blocks, cut in chunks that kernels read side by side."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from typing import TypeVarTuple, Unpack

import numpy as np
import numpy.typing as npt

from lmart.dataset import SparseRows
from lmart.errors import DataError
from lmart.formats.cells import CellRoom, ReusedRoom, joined
from lmart.formats.ids import decode_documents, encoding_fault, id_fault
from lmart.formats.options import ReadOptions
from lmart.formats.rows import FeatureTable, Floats, Longs, QueryLedger, RowBlock, RowReader, refuse
from lmart.kernels import decimals, parsing
from lmart.streams import InputStream
from lmart.threads import WorkerPool

Ts = TypeVarTuple("Ts")

FIRST_BLOCK = 1 << 16  # small: it teaches the table which features there are
BLOCK = 1 << 23
CHUNK = 1 << 19
LONGEST_LINE = 1 << 26
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@lru_cache(maxsize=1)
def powers() -> npt.NDArray[np.uint64]:
    """Return the table of powers that the kernels read numbers with."""
    return decimals.powers_of_five()


class Buffers:
    """The outputs of one call of a reading kernel but its cells, used again for every chunk; they only grow."""

    def __init__(self) -> None:
        self._rows = self._numbers = -1

    def reserve(self, rows: int, numbers: int, max_errors: int) -> None:
        """Make room for `rows` rows with `numbers` cells and labels together, and for `max_errors` faults,
        at most one a row."""
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
        self.counts = np.zeros(parsing.N_COUNTS, np.int64)


class _Reading:
    """One read from a stream to fill view[start:]: done at once when asked for, else in time."""

    def __init__(self, stream: InputStream, view: memoryview, start: int) -> None:
        self._stream = stream
        self._view = view
        self._start = start
        self._done = False
        self._count = 0
        self._fault: DataError | None = None

    def run(self) -> None:
        """Read, unless it is done."""
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
    """Reads lines from `stream`, of which `head` was read already; `parse` says what the lines hold."""

    def __init__(
        self,
        stream: InputStream,
        head: bytes,
        options: ReadOptions,
        pool: WorkerPool,
        table: FeatureTable,
        ledger: QueryLedger,
        room: CellRoom | None = None,
    ) -> None:
        self.path = stream.path
        self.table = table
        self.options = options
        self.pool = pool
        self.faults: list[DataError] = []
        self.line = 0  # lines before the text at hand
        self._stream = stream
        self._head = head
        self._ledger = ledger
        self._query: bytes | None = None
        self._buffers: list[Buffers] = []
        self._room = room or ReusedRoom()
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
        """Read the whole lines buffer[:stop], add to `faults`, move `line` on; blocks may use `buffers` again."""

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
        """Check what can only be known at the end of the input; DataError."""

    def _texts(self) -> Iterator[tuple[bytearray, int]]:
        """Yield buffers with whole lines up to a stop, the last of them a newline."""
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
        buffer, spare = bytearray(max(FIRST_BLOCK, len(head) + 1) + parsing.MARGIN), bytearray()
        buffer[: len(head)] = head
        filled = len(head)
        cut = buffer.rfind(b"\n", 0, filled) + 1
        while True:
            if filled - cut > LONGEST_LINE:
                what = f"the line is longer than {LONGEST_LINE >> 20} MiB"
                raise self.fault(self.line + 1, f"{what}; is it the right file, and are its line ends newlines?")
            start, room = filled, len(buffer) - parsing.MARGIN - 1
            if cut or filled == room:
                start = filled - cut
                room = start + (self._next_size() if cut else max(start, FIRST_BLOCK))
                if len(spare) < room + 1 + parsing.MARGIN:
                    spare = bytearray(room + room // 8 + 1 + parsing.MARGIN)  # not again for a slightly longer rest
                spare[:start] = memoryview(buffer)[cut:filled]
                self._progress = self._stream.progress
                self._next = _Reading(self._stream, memoryview(spare)[:room], start)
                if cut:
                    yield buffer, cut
                buffer, spare = spare, buffer
            else:  # more of a long line, behind what is there
                self._next = _Reading(self._stream, memoryview(buffer)[:room], start)
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
        """Return how much to read next: a block, or what is left of a plain file, as room costs time too."""
        progress = self._stream.progress if self._stream.can_read_ahead else 0.0
        if progress <= 0.0:
            return BLOCK
        left = int(self._stream.taken * (1.0 / progress - 1.0)) + 1
        return min(BLOCK, max(left, FIRST_BLOCK))

    def run(self, function: Callable[[Unpack[Ts]], None], arguments: Sequence[tuple[*Ts]]) -> None:
        """Call the function for each tuple of arguments on the threads of the pool; read ahead meanwhile if that cannot
        wait.
        """
        if self._next is None or not self._stream.can_read_ahead:
            self.pool.run(function, arguments)
        else:
            jobs: list[Callable[[], None]] = [self._next.run, *(partial(function, *one) for one in arguments)]
            self.pool.run(_call, [(job,) for job in jobs])

    def fault(self, line: int, message: str) -> DataError:
        """Return a fault of this input."""
        return DataError(message, self.path, line)

    def refuse_gains(self, labels: Iterable[tuple[int, float]]) -> None:
        """Add the faults of labels that have no gain; they come with their lines."""
        for line, label in labels:
            if message := self.options.gain_fault(np.array([label])):
                self.faults.append(self.fault(line, message))

    def buffers(self, count: int) -> Sequence[Buffers]:
        """Return `count` sets of buffers."""
        while len(self._buffers) < count:
            self._buffers.append(Buffers())
        return self._buffers[:count]

    def read_runs(self, buffer: bytearray, runs: Longs) -> tuple[list[str], bool]:
        """Return the query ids of runs (int64[n, 4]: row, start, stop, line), and whether the first one goes on."""
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
        """Return the id of a query that begins, and note it; a fault when it stood before or is no UTF-8."""
        try:
            query_id = raw.decode("utf-8")
        except UnicodeDecodeError:
            self.faults.append(self.fault(line, encoding_fault(raw, "query id")))
            return raw.decode("utf-8", "backslashreplace")
        if message := id_fault(query_id, "query id", self.options):
            self.faults.append(self.fault(line, message))
        elif fault := self._ledger.enter(query_id, self.path, line):
            self.faults.append(fault)
        return query_id

    def read_documents(self, buffer: bytearray, documents: Longs, begin: int) -> list[str]:
        """Return the document ids at the places int64[n, 2] of a chunk that begins at `begin`; adds their faults."""
        texts, faults = decode_documents(
            [bytes(buffer[start:stop]) for start, stop in documents.tolist()], self.options
        )
        for row, message in faults[: self.options.max_errors]:
            line = self.line + buffer.count(b"\n", begin, int(documents[row, 0])) + 1
            self.faults.append(self.fault(line, message))
        return texts

    def finish_numbers(
        self, buffer: bytearray, numbers: Longs, labels: Floats, values: Floats
    ) -> list[tuple[int, int, int]]:
        """Fill in numbers that the kernels left to float(), as `decimals.read_numbers` lays them out.

        Return (line, start, stop) of those that are no data, one a line, as many as may be told.
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
        return self.options.allow_infinite or not np.isinf(value)


def _call(job: Callable[[], None]) -> None:
    job()


def count_lines(text: npt.NDArray[np.uint8], start: int, stop: int) -> int:
    """Return how many newlines stand in text[start:stop]."""
    return int(np.count_nonzero(text[start:stop] == ord("\n")))


def cut_at_newlines(buffer: bytearray, stop: int, threads: int, start: int = 0) -> list[tuple[int, int]]:
    """Return pieces of buffer[start:stop], which ends with a newline, that end with one too.

    Each is the share that leaves as much to every other thread: few in all, and the last ones, of CHUNK bytes, so small
    that no thread waits long for another.
    """
    bounds = []
    while start < stop:
        size = max(CHUNK, (stop - start) // (threads + 1))
        end = stop if start + size >= stop else buffer.find(b"\n", start + size, stop) + 1
        bounds.append((start, end))
        start = end
    return bounds


def join_blocks(parts: Sequence[RowBlock]) -> RowBlock:
    """Return one block, of its own arrays, from adjacent ones."""
    offsets = [np.zeros(1, np.int64)]
    runs: list[Longs] = []
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
    labels: list[Floats] = [part.labels for part in parts if part.labels is not None]
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
