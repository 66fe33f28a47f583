"""LETOR text: `label qid:ID index:value ... # comment`, one document a line; its reader and its writer.

Kernels read the lines; a line that they find faulty is read again here, slowly, to say what is wrong with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from lmart.dataset import SparseRows
from lmart.errors import DataError, quote
from lmart.formats.options import ReadOptions
from lmart.formats.rows import FeatureTable, Floats, Longs, QueryLedger, RowBlock, RowReader, refuse
from lmart.kernels import parsing
from lmart.streams import InputStream
from lmart.threads import WorkerPool

FIRST_BLOCK = 1 << 16  # small: it teaches the table which features there are
BLOCK = 1 << 23
CHUNK = 1 << 20
LONGEST_LINE = 1 << 30
LARGEST_INDEX = 2**63 - 1
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\Z")
_INFINITE = re.compile(rb"[+-]?inf(inity)?\Z", re.IGNORECASE)
_MISSING = re.compile(rb"[+-]?nan\Z", re.IGNORECASE)
_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f]")


@lru_cache(maxsize=1)
def _powers() -> npt.NDArray[np.uint64]:
    return parsing.powers_of_five()


@dataclass(frozen=True)
class Layout:
    """What stands before the cells of each row of a file."""

    has_label: bool
    has_query: bool


class _Buffers:
    """The outputs of one call of the kernel, used again for every chunk; they only grow."""

    def __init__(self) -> None:
        self.rows = self.cells = -1

    def reserve(self, rows: int, cells: int, max_errors: int) -> None:
        if rows > self.rows:
            self.rows = rows
            self.labels = np.empty(rows)
            self.offsets = np.empty(rows + 1, np.int64)
            self.runs = np.empty((rows, 4), np.int64)
            self.documents = np.empty((rows, 2), np.int64)
        if cells > self.cells:
            self.cells = cells
            self.columns = np.empty(cells, np.int32)
            self.values = np.empty(cells)
            self.row_ids = np.empty(cells, np.int64)
            self.unknown = np.empty(cells, np.int64)
        self.hard = np.empty((self.rows + self.cells, 4), np.int64)  # hardly ever touched, so it costs no memory
        self.faults = np.empty((max_errors, 3), np.int64)
        self.counts = np.zeros(parsing.N_COUNTS, np.int64)


class LetorReader(RowReader):
    """Reads LETOR text from `stream`, of which `head` was read already."""

    def __init__(
        self,
        stream: InputStream,
        head: bytes,
        options: ReadOptions,
        pool: WorkerPool | None = None,
        table: FeatureTable | None = None,
        ledger: QueryLedger | None = None,
    ) -> None:
        self.path = stream.path
        self.table = FeatureTable() if table is None else table
        self._stream = stream
        self._head = head
        self._options = options
        self._pool = pool or WorkerPool(1)
        self._ledger = ledger or QueryLedger(options.group_by_qid)
        self._layout: Layout | None = None
        self._buffers: list[_Buffers] = []
        self._line = 0  # lines before the text at hand
        self._unfinished = False  # the last line has no newline
        self._faults: list[DataError] = []
        self._query: bytes | None = None

    def close(self) -> None:
        self._stream.close()

    def __iter__(self) -> Iterator[RowBlock]:
        for parts in self._blocks(whole_input=False):
            yield _join(parts)

    def volatile_blocks(self) -> Iterator[RowBlock]:
        """Yield blocks whose arrays last until the next one; faults are collected over the whole input."""
        for parts in self._blocks(whole_input=True):
            yield from parts

    def _blocks(self, whole_input: bool) -> Iterator[list[RowBlock]]:
        try:
            for buffer, stop in self._texts():
                parts = self._parse(buffer, stop)
                if self._faults and (not whole_input or len(self._faults) >= self._options.max_errors):
                    break
                if parts and not self._faults:
                    yield parts
        except DataError as fault:
            if not self._faults:
                raise
            self._faults.append(fault)
        refuse(self._faults, self._options.max_errors)

    def _texts(self) -> Iterator[tuple[bytearray, int]]:
        """Yield buffers with whole lines up to a stop, the last of them a newline."""
        head = self._head.removeprefix(BYTE_ORDER_MARK)
        if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
            raise self._fault(1, "the text is UTF-16; convert it to UTF-8, as with 'iconv -f utf-16 -t utf-8'")
        buffer = bytearray(max(FIRST_BLOCK, len(head) + 1))
        buffer[: len(head)] = head
        filled = len(head)
        cut = buffer.rfind(b"\n", 0, filled) + 1
        if cut:
            yield buffer, cut
        while True:
            rest = buffer[cut:filled]
            size = len(rest) + BLOCK if cut else 2 * len(rest) + FIRST_BLOCK
            if len(rest) > LONGEST_LINE:
                raise self._fault(self._line + 1, f"the line is longer than {LONGEST_LINE} bytes; is this LETOR text?")
            if len(buffer) < size + 1:
                buffer = bytearray(size + 1)
            buffer[: len(rest)] = rest
            with memoryview(buffer) as view:
                count = self._stream.read_block(view[len(rest) : size])
            filled = len(rest) + count
            if not count:
                if filled:
                    self._unfinished = True
                    buffer[filled] = 10
                    yield buffer, filled + 1
                return
            cut = buffer.rfind(b"\n", len(rest), filled) + 1
            if cut:
                yield buffer, cut

    def _parse(self, buffer: bytearray, stop: int) -> list[RowBlock]:
        if self._layout is None:
            self._layout = self._find_layout(buffer, stop)
            if self._layout is None:
                self._line += buffer.count(b"\n", 0, stop)
                return []
        text = np.frombuffer(buffer, np.uint8)
        bounds = _cut_at_newlines(buffer, stop)
        sizes = self._pool.run(parsing.count_lines_and_colons, [(text, *bound) for bound in bounds])
        while len(self._buffers) < len(bounds):
            self._buffers.append(_Buffers())
        calls = []
        options = self._options
        for outputs, bound, (lines, colons) in zip(self._buffers, bounds, sizes, strict=False):
            outputs.reserve(lines, colons, options.max_errors)
            calls.append(
                (
                    text, *bound, self._layout.has_label, self._layout.has_query, options.allow_infinite,
                    options.duplicates == "last", options.keep_document_ids, _powers(), *self.table.lookup,
                    self.table.ids, outputs.labels, outputs.offsets, outputs.columns, outputs.values,
                    outputs.row_ids, outputs.unknown, outputs.runs, outputs.hard, outputs.documents, outputs.faults,
                    outputs.counts,
                )
            )  # fmt: skip
        self._pool.run(parsing.parse_letor, calls)
        parts = []
        for outputs, (lines, _) in zip(self._buffers, sizes, strict=False):
            part = self._collect(buffer, outputs)
            self._line += lines
            if len(part):
                parts.append(part)
        return parts

    def _collect(self, buffer: bytearray, outputs: _Buffers) -> RowBlock:
        """Make a block of what the kernel wrote, and do what it left: new features, hard numbers, ids, faults."""
        assert self._layout is not None
        n_rows, n_cells, n_unknown, n_runs, n_hard, n_faults = (int(count) for count in outputs.counts[:6])
        for line, start, stop in outputs.faults[: min(n_faults, len(outputs.faults))].tolist():
            self._faults.append(self._fault(self._line + line + 1, self._explain(bytes(buffer[start:stop]))))
        if n_unknown:
            resolved = self.table.register(outputs.unknown[:n_unknown])
            parsing.resolve_columns(outputs.columns, 0, n_cells, resolved)
        self._read_hard_numbers(buffer, outputs, n_hard)
        query_ids: list[str] | None = None
        offsets = np.array([0, n_rows], np.int64)
        continues = False
        if self._layout.has_query:
            query_ids = []
            for _, start, stop, line in outputs.runs[:n_runs].tolist():
                raw = bytes(buffer[start:stop])
                if not query_ids and raw == self._query:
                    continues = True
                    query_ids.append(raw.decode())
                    continue
                query_ids.append(self._enter_query(raw, self._line + line + 1))
                self._query = raw
            offsets = np.append(outputs.runs[:n_runs, 0], n_rows)
        elif n_rows:
            continues, self._query = self._query is not None, b""
        documents = None
        if self._options.keep_document_ids:
            spans = outputs.documents[:n_rows].tolist()
            documents = [buffer[start:stop].decode("utf-8", "backslashreplace") for start, stop in spans]
        rows = SparseRows(outputs.offsets[: n_rows + 1], outputs.columns[:n_cells], outputs.values[:n_cells])
        labels = outputs.labels[:n_rows] if self._layout.has_label else None
        return RowBlock(rows, labels, query_ids, offsets, continues, documents, self._line + 1)

    def _read_hard_numbers(self, buffer: bytearray, outputs: _Buffers, n_hard: int) -> None:
        for cell, start, stop, line in outputs.hard[:n_hard].tolist():
            if cell == parsing.DROPPED:
                continue
            token = bytes(buffer[start:stop])
            value = float(token) or 0.0  # no minus zero
            if (value < 0 and cell < 0) or np.isinf(value):
                begin = buffer.rfind(b"\n", 0, start) + 1
                if value < 0 or cell < 0 or not self._options.allow_infinite:
                    fault = self._explain(bytes(buffer[begin : buffer.find(b"\n", stop)]))
                    self._faults.append(self._fault(self._line + line + 1, fault))
            if cell < 0:
                outputs.labels[~cell] = value
            else:
                outputs.values[cell] = value

    def _enter_query(self, raw: bytes, line: int) -> str:
        try:
            query_id = raw.decode("utf-8")
        except UnicodeDecodeError:
            self._faults.append(self._fault(line, f"query id {quote(raw)} is not valid UTF-8; convert the file to UTF-8"))
            return raw.decode("utf-8", "backslashreplace")
        if fault := self._ledger.enter(query_id, self.path, line):
            self._faults.append(fault)
        return query_id

    def _fault(self, line: int, message: str) -> DataError:
        return DataError(message, self.path, line)

    def _find_layout(self, buffer: bytearray, stop: int) -> Layout | None:
        """Return what the first row shows, None when there is no row yet; DataError when the file cannot be read so."""
        start = 0
        number = self._line
        while start < stop:
            number += 1
            end = buffer.find(b"\n", start)
            line = bytes(buffer[start:end])
            start = end + 1
            words = _words(line.split(b"#", 1)[0])
            if not words:
                continue
            return self._layout_of(line, words, number)
        return None

    def _layout_of(self, line: bytes, words: list[bytes], number: int) -> Layout:
        options = self._options
        has_label = not (words[0].startswith(b"qid:") or re.match(rb"-?\d+:", words[0]))
        rest = words[1:] if has_label else words
        has_query = bool(rest) and rest[0].startswith(b"qid:")
        if has_label and b"\0" not in line and _label_fault(words[0]) is not None:
            raise self._fault(number, _not_letor(line, words))
        if not has_label and options.require_labels:
            what = f"no label: a row starts with it, here stands {quote(words[0])}"
            raise self._fault(number, f"{what}; rows are 'label qid:ID index:value ...'")
        if has_query and options.query_sizes is not None:
            raise self._fault(number, "the rows have query ids already; leave out --query-sizes, or take the ids out")
        if has_query or any(word.startswith(b"qid:") for word in rest):
            return Layout(has_label, True)
        if options.require_queries and options.query_sizes is None:
            raise self._fault(number, _no_query(rest))
        return Layout(has_label, False)

    def _explain(self, line: bytes) -> str:
        assert self._layout is not None
        message = explain(line, self._layout, self._options)
        if message is None:
            return f"the line cannot be read: {quote(line)}; rows are 'label qid:ID index:value ...'"
        return message


def _join(parts: list[RowBlock]) -> RowBlock:
    """Return one block of its own arrays."""
    if len(parts) == 1:
        one = parts[0]
        rows = SparseRows(one.features.offsets.copy(), one.features.columns.copy(), one.features.values.copy())
        labels = None if one.labels is None else one.labels.copy()
        return RowBlock(
            rows, labels, one.query_ids, one.query_offsets, one.continues, one.document_ids, one.first_line
        )
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
    rows = SparseRows(
        np.concatenate(offsets),
        np.concatenate([part.features.columns for part in parts]),
        np.concatenate([part.features.values for part in parts]),
    )
    return RowBlock(
        rows,
        _concatenated([part.labels for part in parts]),
        None if parts[0].query_ids is None else query_ids,
        np.append(np.concatenate(runs), n_rows).astype(np.int64),
        parts[0].continues,
        None if parts[0].document_ids is None else [text for part in parts for text in part.document_ids or ()],
        parts[0].first_line,
    )


def _concatenated(arrays: Sequence[Floats | None]) -> Floats | None:
    there = [array for array in arrays if array is not None]
    return np.concatenate(there) if there else None


def _cut_at_newlines(buffer: bytearray, stop: int) -> list[tuple[int, int]]:
    """Return pieces of buffer[:stop] of about CHUNK bytes that end with a newline."""
    bounds = []
    start = 0
    while start < stop:
        end = stop if start + CHUNK >= stop else buffer.find(b"\n", start + CHUNK, stop) + 1
        bounds.append((start, end or stop))
        start = end or stop
    return bounds


# What is wrong with a line


def _words(text: bytes) -> list[bytes]:
    """Return the fields between blanks and tabs; carriage returns at the end are part of the line's end."""
    return [word for word in re.split(rb"[ \t]+", text.rstrip(b"\r")) if word]


def explain(line: bytes, layout: Layout, options: ReadOptions) -> str | None:
    """Return what is wrong with a line (without its newline), the token quoted, and what to do; None if nothing is."""
    if b"\0" in line:
        at = line.index(b"\0")
        return f"NUL byte in {quote(line[max(at - 20, 0) : at + 1])}; the file is damaged, or no text"
    body = line.split(b"#", 1)[0] if b"#" in line else line.rstrip(b"\r")
    if b"\r" in body:
        return "a carriage return inside the line; convert the line ends, as with 'tr \"\\r\" \"\\n\"'"
    words = _words(body)
    if not words:
        return None
    if layout.has_label:
        if fault := _label_fault(words[0]):
            return fault
        words = words[1:]
    if layout.has_query:
        if not words or not words[0].startswith(b"qid:"):
            return _no_query(words)
        if words[0] == b"qid:":
            return "the query id is empty: 'qid:'; write 'qid:ID' without a blank"
        if _CONTROL.search(words[0]):
            return f"query id {quote(words[0][4:])} holds a control character; ids are printable text without blanks"
        words = words[1:]
    seen: set[int] = set()
    for i, word in enumerate(words):
        fault = _pair_fault(word, words[i + 1] if i + 1 < len(words) else b"", options)
        if fault is None:
            index = _whole(word.split(b":", 1)[0])
            if index in seen and options.duplicates != "last":
                fault = f"index {index} stands twice in the row, again in {quote(word)}"
                fault += "; take one out, or use --duplicates last"
            seen.add(index)
        if fault is not None:
            return fault
    return None


def _no_query(rest: Sequence[bytes]) -> str:
    if any(word.startswith(b"qid:") for word in rest):
        word = next(word for word in rest if word.startswith(b"qid:"))
        return f"query id {quote(word)} stands after {quote(rest[0])}; it must come right after the label"
    here = f"here stands {quote(rest[0])}" if rest else "here the line ends"
    if rest and re.match(rb"qid\b", rest[0], re.IGNORECASE):
        return f"no query id: {quote(rest[0])} is not 'qid:ID'; write 'qid' in small letters, a colon and the id, without blanks"
    return f"no query id: 'qid:ID' must follow the label, {here}; add it, or give the queries' sizes with --query-sizes"


def _label_fault(word: bytes) -> str | None:
    label = quote(word)
    if _MISSING.match(word):
        return f"label {label} is missing; a label is a number from 0 up"
    if not _NUMBER.match(word):
        if _INFINITE.match(word):
            return f"label {label} is infinite; a label is a number from 0 up"
        return f"label {label} is not a number; rows are 'label qid:ID index:value ...'"
    value = float(word)
    if value < 0:
        return f"label {label} is negative; a label is a number from 0 up"
    return f"label {label} is beyond the largest number; a label is a number from 0 up" if np.isinf(value) else None


def _pair_fault(word: bytes, following: bytes, options: ReadOptions) -> str | None:
    shown = quote(word)
    index, colon, value = word.partition(b":")
    if not colon:
        if following.startswith(b":"):
            return f"blank before the colon in {quote(word + b' ' + following)}; write 'index:value' without blanks"
        return f"{shown} is not 'index:value'; the value is missing, or the line is cut off"
    if not index:
        return f"no index before the colon in {shown}; write 'index:value' without blanks"
    if index == b"qid":
        return f"query id {shown} at a wrong place; it must come right after the label, in every row or in none"
    if index[:1] == b"-" and index[1:].isdigit():
        return f"index {quote(index)} is negative, in {shown}; indices are whole numbers from 0 up"
    if not index.isdigit():
        return f"index {quote(index)} is not a whole number, in {shown}; rows are 'label qid:ID index:value ...'"
    if _whole(index) > LARGEST_INDEX:
        return f"index {quote(index)} is above {LARGEST_INDEX}, in {shown}; number the features lower"
    if not value:
        if following:
            return f"no value after the colon in {quote(word + b' ' + following)}; write 'index:value' without blanks"
        return f"no value after the colon in {shown}; the value is missing, or the line is cut off"
    return value_fault(value, shown, options)


def _whole(digits: bytes) -> int:
    significant = digits.lstrip(b"0")
    return int(significant or b"0") if len(significant) < 20 else LARGEST_INDEX + 1


def value_fault(value: bytes, shown: str, options: ReadOptions) -> str | None:
    """Return what is wrong with a value; `shown` is the quoted cell; None if nothing is."""
    if _MISSING.match(value):
        return None
    hint = "write a number as 0.5, or nan where it is missing"
    if _NUMBER.match(value):
        if np.isinf(float(value)) and not options.allow_infinite:
            return f"value {quote(value)} is beyond the largest number, in {shown}; use --allow-inf to take it as infinite"
        return None
    if _INFINITE.match(value):
        return None if options.allow_infinite else f"value {quote(value)} is infinite, in {shown}; use --allow-inf to take it"
    if re.fullmatch(rb"[+-]?\d+,\d+", value):
        return f"value {quote(value)} has a comma, in {shown}; write a decimal point"
    return f"value {quote(value)} is not a number, in {shown}; {hint}"


def _not_letor(line: bytes, words: Sequence[bytes]) -> str:
    what = f"the line is not 'label qid:ID index:value ...': it starts with {quote(words[0])}"
    if _MISSING.match(words[0]) or _INFINITE.match(words[0]) or _NUMBER.match(words[0]):
        return _label_fault(words[0]) or what
    if b"," in line or b"\t" in line:
        return f"{what}; CSV and TSV need a header with a label and a query column, and a name that does not say LETOR"
    return f"{what}; is it the right file?"

