"""CSV and TSV with a header: reader and writer. Text without quotes is read by kernels, quoted text by Python's csv.

Empty fields, `nan`, `na` and `null` are missing values. The fields of a row may stand between blanks.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from lmart.dataset import SparseRows
from lmart.errors import OutputError, quote
from lmart.formats import text as text_module
from lmart.formats.cells import CellBatch
from lmart.formats.columns import ColumnPlan, plan_columns
from lmart.formats.letor_faults import INNER_RETURN, label_fault, value_fault
from lmart.formats.numbers import shortest
from lmart.formats.rows import Longs, RowBlock
from lmart.formats.text import Buffers, TextReader, count_lines, cut_at_newlines, powers
from lmart.kernels import decimals
from lmart.streams import AtomicOutput

DELIMITERS = {"csv": ",", "tsv": "\t"}
_KINDS = {"csv": "CSV", "tsv": "TSV"}
_MISSING = (b"", b"na", b"null")
_BLANKS = " \t\r"  # the same for quoted and plain text: other white space is part of an id


class DelimitedReader(TextReader):
    """Reads CSV or TSV; `plan` says what the columns are once the header was read."""

    format = "csv"
    plan: ColumnPlan | None = None
    _pending = b""  # text that ends inside quotes
    _quoted = False

    @property
    def delimiter(self) -> str:
        return DELIMITERS[self.format]

    def parse(self, buffer: bytearray, stop: int) -> list[RowBlock]:
        start = 0
        while self.plan is None and start < stop:
            end = buffer.find(b"\n", start) + 1
            header = bytes(buffer[start:end])
            start = end
            if header.strip():
                self.plan = self._read_header(header)
            self.line += 1
        if self.plan is None or start == stop:
            return []
        if self._quoted or buffer.find(b'"', start, stop) >= 0:
            self._quoted = True
            return self._parse_quoted(bytes(buffer[start:stop]), self.plan)
        return self._parse_plain(buffer, start, stop, self.plan)

    def end(self) -> None:
        if self._pending:
            message = "a quoted field is not closed before the end of the file; close or double the quote"
            raise self.fault(self.line + 1, message)

    def _read_header(self, line: bytes) -> ColumnPlan:
        if b"\0" in line or b"\r" in line.rstrip(b"\r\n"):
            message = "the header holds a NUL or a carriage return; convert the line ends, or copy the file again"
            raise self.fault(self.line + 1, message)
        try:
            fields = next(csv.reader([line.decode("utf-8").rstrip("\r\n")], delimiter=self.delimiter, strict=True))
        except UnicodeDecodeError:
            raise self.fault(self.line + 1, "the header is not valid UTF-8; convert the file to UTF-8") from None
        except csv.Error as error:
            raise self.fault(self.line + 1, f"the header cannot be read as {_KINDS[self.format]}: {error}") from None
        names = [field.strip() for field in fields]
        return plan_columns(names, self.options, self.table, self.path)

    def _parse_plain(self, buffer: bytearray, start: int, stop: int, plan: ColumnPlan) -> list[RowBlock]:
        text = np.frombuffer(buffer, np.uint8)
        bounds = cut_at_newlines(buffer, stop, self.pool.threads, start)
        lines_of = self.pool.run(count_lines, [(text, *bound) for bound in bounds])
        batch = CellBatch(self._room, [lines * plan.n_features for lines in lines_of], self._lasting)
        all_outputs = self.buffers(len(bounds))
        calls = []
        for chunk, (out, lines) in enumerate(zip(all_outputs, lines_of, strict=True)):
            out.reserve(lines, lines * (1 + plan.n_features), self.options.max_errors)
            calls.append(
                (
                    text, *bounds[chunk], ord(self.delimiter), plan.kinds, plan.places, plan.n_features,
                    self.options.allow_infinite, powers(), out.labels, batch.place(chunk)[1], out.runs, out.odd,
                    out.documents, out.faults, out.counts,
                )
            )  # fmt: skip
        self.run(decimals.parse_delimited, calls)
        parts = []
        for chunk, (out, lines) in enumerate(zip(all_outputs, lines_of, strict=True)):
            part = self._collect(buffer, bounds[chunk], out, batch, chunk, plan)
            self.line += lines
            if len(part):
                parts.append(part)
        return parts

    def _collect(
        self, buffer: bytearray, bound: tuple[int, int], out: Buffers, batch: CellBatch, chunk: int, plan: ColumnPlan
    ) -> RowBlock:
        n_rows, n_runs, n_hard, n_faults = out.counts[: decimals.N_COUNTS].tolist()
        spans = [tuple(fault) for fault in out.faults[: min(n_faults, len(out.faults))].tolist()]
        for line, start, stop in self.finish_numbers(buffer, out.odd[:n_hard], out.labels, batch.place(chunk)[1]):
            spans.append((line, buffer.rfind(b"\n", 0, start) + 1, buffer.find(b"\n", stop)))
        for line, start, stop in spans:
            self.faults.append(
                self.fault(self.line + line + 1, self._explain(self._fields(bytes(buffer[start:stop])), plan))
            )
        if plan.has(decimals.LABEL) and self.options.gain_fault(out.labels[:n_rows]):
            faulty = {line for line, _, _ in spans}
            rows_at = enumerate(map(self._fields, bytes(buffer[bound[0] : bound[1]]).split(b"\n")))
            self.refuse_gains(
                (self.line + line + 1, float(fields[plan.place_of_label]))
                for line, fields in rows_at
                if line not in faulty and len(fields) == len(plan.names)
            )
        query_ids: list[str] | None = None
        offsets: Longs = np.array([0, n_rows], np.int64)
        continues = False
        if plan.has(decimals.QUERY):
            query_ids, continues = self.read_runs(buffer, out.runs[:n_runs])
            offsets = np.append(out.runs[:n_runs, 0], n_rows)
        elif n_rows:
            continues, self._query = self._query is not None, b""
        documents = None
        if self.options.keep_document_ids and plan.has(decimals.DOCUMENT):
            documents = self.read_documents(buffer, out.documents[:n_rows])
        labels = out.labels[:n_rows] if plan.has(decimals.LABEL) else None
        rows = SparseRows(*plan.cells(n_rows), batch.close_up(chunk, n_rows * plan.n_features)[1])
        return RowBlock(rows, labels, query_ids, offsets, continues, documents, self.line + 1)

    def _parse_quoted(self, text: bytes, plan: ColumnPlan) -> list[RowBlock]:
        text = self._pending + text
        if text.count(b'"') % 2:
            if len(text) > text_module.LONGEST_LINE:
                what = f"a quoted field is not closed within {text_module.LONGEST_LINE >> 20} MiB"
                raise self.fault(self.line + 1, f"{what}; close or double the quote")
            self._pending = text
            return []
        self._pending = b""
        rows: list[list[bytes]] = []
        lines: list[int] = []
        for line, fields in self._records(text):
            if fields not in ([], [b""]):
                message = _row_fault(fields, plan, self.options)
                if message is None:
                    rows.append(fields)
                    lines.append(line)
                else:
                    self.faults.append(self.fault(line, message))
        self.line += text.count(b"\n")
        return [self._block_of(rows, lines, plan)] if rows else []

    def _records(self, text: bytes) -> Iterator[tuple[int, list[bytes]]]:
        stream = io.StringIO(text.decode("utf-8", "surrogateescape"), newline="")
        reader = csv.reader(stream, delimiter=self.delimiter, strict=True)
        line = 1
        while True:
            try:
                fields = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                raise self.fault(
                    self.line + line, f"cannot be read as {_KINDS[self.format]}: {error}; check the quotes"
                ) from None
            yield self.line + line, [field.strip(_BLANKS).encode("utf-8", "surrogateescape") for field in fields]
            line = reader.line_num + 1

    def _block_of(self, rows: Sequence[Sequence[bytes]], lines: Sequence[int], plan: ColumnPlan) -> RowBlock:
        kinds = plan.kinds.tolist()
        values = np.empty((len(rows), plan.n_features))
        for f, kind in enumerate(kinds):
            if kind == decimals.FEATURE:
                values[:, plan.places[f]] = [_value(row[f]) for row in rows]
        values += 0.0  # no minus zero
        labels = query_ids = documents = None
        offsets: Longs = np.array([0, len(rows)], np.int64)
        continues = False
        if decimals.LABEL in kinds:
            f = kinds.index(decimals.LABEL)
            labels = np.array([float(row[f]) for row in rows]) + 0.0
            if self.options.gain_fault(labels):
                self.refuse_gains(zip(lines, labels.tolist(), strict=True))
        if decimals.QUERY in kinds:
            f = kinds.index(decimals.QUERY)
            continues = rows[0][f] == self._query
            starts = []
            query_ids = []
            for i, row in enumerate(rows):
                if row[f] != self._query or i == 0:
                    starts.append(i)
                    ended = row[f] != self._query
                    query_ids.append(
                        self.enter_query(row[f], lines[i]) if ended else row[f].decode("utf-8", "backslashreplace")
                    )
                    self._query = row[f]
            offsets = np.array([*starts, len(rows)], np.int64)
        else:
            continues, self._query = self._query is not None, b""
        if decimals.DOCUMENT in kinds and self.options.keep_document_ids:
            f = kinds.index(decimals.DOCUMENT)
            documents = [row[f].decode("utf-8", "backslashreplace") for row in rows]
        features = SparseRows(*plan.cells(len(rows)), values.reshape(-1))
        return RowBlock(features, labels, query_ids, offsets, continues, documents, lines[0])

    def _fields(self, line: bytes) -> list[bytes]:
        line = line.rstrip(_BLANKS.encode() if self.format == "csv" else b"\r ")
        return [field.strip(b" \t") for field in line.split(self.delimiter.encode())]

    def _explain(self, fields: Sequence[bytes], plan: ColumnPlan) -> str:
        if any(b"\r" in field for field in fields):
            return INNER_RETURN
        message = _row_fault(fields, plan, self.options)
        return f"the line cannot be read: {quote(self.delimiter.encode().join(fields))}" if message is None else message


class TsvReader(DelimitedReader):
    """Reads TSV."""

    format = "tsv"


def _value(field: bytes) -> float:
    return np.nan if field.lower() in _MISSING else float(field)


def _row_fault(fields: Sequence[bytes], plan: ColumnPlan, options: Any) -> str | None:
    """Return what is wrong with the fields of a row, None if nothing is."""
    for field in fields:
        if b"\0" in field:
            return f"NUL byte in {quote(field)}; the file is damaged, or no text"
    if len(fields) != len(plan.names):
        what = f"the row has {len(fields)} fields but the header {len(plan.names)}"
        return f"{what}, the last is {quote(fields[-1])}; is the line cut off, or a decimal comma used?"
    for field, name, kind in zip(fields, plan.names, plan.kinds.tolist(), strict=True):
        shown = f"column {quote(name)}"
        missing = field.lower() in _MISSING
        if kind == decimals.LABEL:
            nothing = f"no label in {shown}: {quote(field)}; a label is a number from 0 up"
            if fault := nothing if missing else label_fault(field):
                return fault.replace("rows are 'label qid:ID index:value ...'", f"check {shown}, or --label-column")
        elif kind == decimals.QUERY and not field:
            return f"no query id in {shown}: {quote(field)}; every row needs one"
        elif kind == decimals.FEATURE and not missing and (fault := value_fault(field, shown, options)):
            return fault.replace("or nan where it is missing", "leave it empty if missing, or use --ignore-columns")
    return None


class DelimitedWriter:
    """Writes blocks of rows as CSV or TSV with a header; a missing value is an empty field.

    `absent` (0 or nan) is written where a row has no cell.
    """

    def __init__(self, output: AtomicOutput, format: str, absent: float) -> None:
        self._output = output
        self._delimiter = DELIMITERS[format]
        self._absent = absent
        self._started = False

    def write(self, block: RowBlock, feature_names: Sequence[str]) -> None:
        """Append the rows; the first block decides which columns there are besides the features, in `feature_names`."""
        columns = []
        if block.labels is not None:
            columns.append(("label", [shortest(label) for label in block.labels.tolist()]))
        if block.query_ids is not None:
            sizes = np.diff(block.query_offsets).tolist()
            texts = [self._quoted(query_id) for query_id in block.query_ids]
            columns.append(("qid", [text for text, size in zip(texts, sizes, strict=True) for _ in range(size)]))
        if block.document_ids is not None:
            columns.append(("docid", [self._quoted(text) for text in block.document_ids]))
        names = [name for name, _ in columns]
        if not self._started:
            self._started = True
            if clash := set(names) & set(feature_names):
                name = quote(min(clash))
                what = f"a feature is named {name} like another column of the output"
                raise OutputError(f"{what}; leave it out with --ignore-columns", self._output.path)
            header = [*names, *(self._quoted(name) for name in feature_names)]
            self._output.write(self._delimiter.join(header) + "\n")
        dense = block.features.dense(len(feature_names), self._absent)
        lines = []
        for i, row in enumerate(dense.tolist()):
            fields = [values[i] for _, values in columns]
            fields += ["" if math.isnan(value) else shortest(value) for value in row]
            lines.append(self._delimiter.join(fields) + "\n")
        self._output.write("".join(lines))

    def finish(self) -> None:
        """Nothing is left to write."""

    def _quoted(self, text: str) -> str:
        if any(c in text for c in (self._delimiter, '"', "\n", "\r")):
            return '"' + text.replace('"', '""') + '"'
        return text
