"""CSV and TSV with a header: their reader. A quote opens a field only at its beginning, as Python's csv has it.

Text where no field begins with a quote is read by kernels, other text by Python's csv. Empty fields, `nan`, `na` and
`null` are missing values, `true` and `false` are 1 and 0. Blanks around fields are ignored.
"""

from __future__ import annotations

import csv
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np

from lmart.array_types import Float64Array
from lmart.data.dataset import SparseRows
from lmart.errors import DataError, quote
from lmart.formats.documents.blocks import CellBatch, RowBlock
from lmart.formats.documents.column_names import list_of_columns, name_documents
from lmart.formats.documents.columns import ColumnPlan, plan_columns
from lmart.formats.documents.diagnostics import (
    INNER_RETURN,
    NO_VALUE,
    TRUTH,
    encoding_fault,
    is_text,
    label_fault,
    value_fault,
)
from lmart.formats.documents.quoted import BLANKS, DELIMITERS, QuotedRecords, csv_records, header_names
from lmart.formats.documents.text_reader import Buffers, TextReader, count_lines, cut_at_newlines, powers_of_five
from lmart.formats.read_options import ReadOptions
from lmart.kernels.text import delimited as delimited_text

SAMPLE_ROWS = 1000  # looked at to distinguish faults of a whole column from those of single cells
SAMPLE_CELLS = 200_000
FIRST = 1 << 16  # bytes that the first row is looked for in


class DelimitedReader(TextReader):
    """Reads CSV or TSV; `plan` says what the columns are once the header was read."""

    format = "csv"
    plan: ColumnPlan | None = None
    _pending = b""  # the lines of a record that is not complete, after a newline in quotes

    @property
    def delimiter(self) -> str:
        """The character between fields."""
        return DELIMITERS[self.format]

    def parse(self, buffer: bytearray, stop: int) -> list[RowBlock]:
        """Read the header, if that is yet to come, and return the rows of the whole lines buffer[:stop] as blocks."""
        start = 0
        while self.plan is None and start < stop:
            end = buffer.find(b"\n", start) + 1
            header = bytes(buffer[start:end])
            start = end
            if header.strip():
                names = header_names(header, self.format, self.options, self.path, self.line + 1)
                texts = self._text_columns(bytes(buffer[start : min(stop, start + FIRST)]), names)
                self.plan = plan_columns(names, self.options, self.table, self.path, self.line + 1, texts)
            self.line += 1
        if self.plan is None or start == stop:
            return []
        if self._pending or self._opens_quote(buffer, start, stop):
            return self._parse_quoted(bytes(buffer[start:stop]), self.plan)
        return self._parse_plain(buffer, start, stop, self.plan)

    def _text_columns(self, head: bytes, names: list[str]) -> set[str]:
        """Return the columns that hold text in the first row, as far as it can be read by itself.

        Where columns of texts are categories, in any of the first rows.
        """
        lines = head[: head.rfind(b"\n") + 1].decode("utf-8", "replace").splitlines()
        found: set[str] = set()
        try:
            for row in islice(csv_records(lines, self.format), SAMPLE_ROWS if self.options.auto_categories else 1):
                found |= {name for name, field in zip(names, row, strict=False) if is_text(field.strip().encode())}
        except csv.Error:
            pass
        return found

    def end(self) -> None:
        """Refuse a quoted field that is still open at the end of the input."""
        if self._pending:
            message = "a quoted field is not closed before the end of the file; close or double the quote"
            raise self.fault(self.line + 1, message)

    def _opens_quote(self, buffer: bytearray, start: int, stop: int) -> bool:
        if buffer.find(b'"', start, stop) < 0:
            return False
        begins = (b'\n"', self.delimiter.encode() + b'"')
        return buffer[start] == ord('"') or any(buffer.find(begin, start, stop) >= 0 for begin in begins)

    def _parse_plain(self, buffer: bytearray, start: int, stop: int, plan: ColumnPlan) -> list[RowBlock]:
        text = np.frombuffer(buffer, np.uint8)
        bounds = cut_at_newlines(buffer, stop, self.pool.threads, start)
        lines_of = self.pool.run(count_lines, [(text, *bound) for bound in bounds])
        batch = CellBatch(self._cell_buffer, [lines * plan.n_features for lines in lines_of], self._lasting)
        all_outputs = self.buffers(len(bounds))
        columns = plan.parsed_kinds, plan.places, plan.n_features
        layout = delimited_text.TableLayout(ord(self.delimiter), *columns, self.options.allow_inf, powers_of_five())
        calls = []
        for chunk, (out, lines) in enumerate(zip(all_outputs, lines_of, strict=True)):
            out.reserve(lines, lines * (1 + plan.n_features), self.options.max_errors)
            rows = delimited_text.ParsedTable(
                out.labels, batch.place(chunk)[1], out.runs, out.slow_numbers, out.documents, out.faults, out.counts
            )
            calls.append((text, *bounds[chunk], layout, rows))
        self.run(delimited_text.parse_delimited, calls)
        first = next((int(out.faults[0, 1]) for out in all_outputs if out.counts[delimited_text.FAULTS]), -1)
        if first >= 0 and self._find_faulty_columns(self._sample(buffer, start, first, stop), plan):
            return self._parse_plain(buffer, start, stop, self.plan or plan)
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
        n_rows, n_runs, n_slow, n_faults = out.counts[: delimited_text.N_COUNTS].tolist()
        spans = [tuple(fault) for fault in out.faults[: min(n_faults, len(out.faults))].tolist()]
        slow, values = out.slow_numbers[:n_slow], batch.place(chunk)[1]
        for line, start, stop in self.finish_numbers(buffer, slow, out.labels, values):
            spans.append((line, buffer.rfind(b"\n", 0, start) + 1, buffer.find(b"\n", stop)))
        for line, start, stop in spans:
            fields = self._fields(bytes(buffer[start:stop]))
            self.faults.append(self.fault(self.line + line + 1, self._explain(fields, plan)))
        label_column = plan.column(delimited_text.LABEL)
        if label_column is not None and self.options.gain_fault(out.labels[:n_rows]):
            faulty = {line for line, _, _ in spans}
            rows_at = enumerate(map(self._fields, bytes(buffer[bound[0] : bound[1]]).split(b"\n")))
            self.refuse_gains(
                (self.line + line + 1, field_value(fields[label_column]))
                for line, fields in rows_at
                if line not in faulty and len(fields) == len(plan.names)
            )
        runs = self.runs_in(buffer, out.runs[:n_runs])
        has_query = plan.column(delimited_text.QUERY) is not None
        queries = self.read_runs(runs, n_rows) if has_query else self.one_query(n_rows)
        documents = None
        if plan.column(delimited_text.DOCUMENT) is not None:
            documents = self.read_documents(buffer, out.documents[:n_rows], bound[0])
        labels = None if label_column is None else out.labels[:n_rows]
        values = batch.close_up(chunk, n_rows * plan.n_features)[1]
        if plan.categories and not spans:
            sampled = list(self._sample(buffer, bound[0], bound[0], bound[1]))
            self._number_texts([row for _, row in sampled], [line for line, _ in sampled], values, plan)
        rows = SparseRows(*plan.cells(n_rows), values)
        return RowBlock(rows, labels, *queries, documents, self.line + 1)

    def _sample(self, buffer: bytearray, start: int, first: int, stop: int) -> Iterator[tuple[int, list[bytes]]]:
        """Yield line and fields of the rows from `first` on, where a line starts; the text starts at `start`."""
        line = self.line + buffer.count(b"\n", start, first)
        while first < stop:
            end = buffer.find(b"\n", first)
            line += 1
            text = bytes(buffer[first:end])
            if text.strip(BLANKS.replace(self.delimiter, "").encode()):
                yield line, self._fields(text)
            first = end + 1

    def _find_faulty_columns(self, rows: Iterator[tuple[int, list[bytes]]], plan: ColumnPlan) -> bool:
        """Add one fault for each column that is wrong in most rows and ignore it from then on; return whether any was.

        Of the rows, from the first faulty one on, only some are looked at. DataError when all of these have another
        number of fields than the header.
        """
        sample = list(islice(rows, max(3, min(SAMPLE_ROWS, SAMPLE_CELLS // len(plan.names)))))
        complete = [(line, fields) for line, fields in sample if len(fields) == len(plan.names)]
        if not complete and len(sample) > 1:
            line, fields = sample[0]
            raise self.fault(line, length_fault(fields, plan, all_rows=True))
        found: list[tuple[int, int, str, bytes]] = []
        for f, kind in enumerate(plan.kinds.tolist()):
            if kind in (delimited_text.FEATURE, delimited_text.LABEL, delimited_text.QUERY):
                there = [(line, row[f]) for line, row in complete if kind != delimited_text.FEATURE or is_there(row[f])]
                wrong = [(line, x) for line, x in there if cell_fault(x, plan.names[f], kind, self.options)]
                if len(wrong) > 1 and 2 * len(wrong) > len(there):
                    line, field = wrong[0]
                    message = cell_fault(field, plan.names[f], kind, self.options) or ""
                    found.append((f, line, message, field))
        texts = [plan.names[f] for f, _, _, field in found if self._holds_text(plan, f, field)]
        for f, line, message, field in found:
            what, _, remedy = message.rpartition("; ")
            text = f"{what}, as in most rows; {remedy}"
            if self._holds_text(plan, f, field):
                name = plan.names[f]
                also = f" {shlex.quote(list_of_columns(texts))}" if name == texts[0] else ""
                values = [row[f] for _, row in complete]
                remedy = "in training, name it with --categorical if its values are categories"
                if len(set(values)) == len(values) and not name_documents(plan.names, self.options):
                    remedy = f"give --document-column {shlex.quote(name)} if it names documents"
                what = f"column {quote(name)} holds text, such as {quote(field)}"
                text = f"{what}; {remedy}, or leave it out with --ignore-columns{also}"
            self.faults.append(self.fault(line, text))
        if found:
            kinds = plan.kinds.copy()
            kinds[[f for f, _, _, _ in found]] = delimited_text.IGNORED
            self.plan = replace(plan, kinds=kinds)
        return bool(found)

    @staticmethod
    def _holds_text(plan: ColumnPlan, f: int, field: bytes) -> bool:
        return bool(plan.kinds[f] == delimited_text.FEATURE) and is_text(field)

    def _parse_quoted(self, text: bytes, plan: ColumnPlan) -> list[RowBlock]:
        text = self._pending + text
        records = QuotedRecords(text, self.format, self.line, self.fault)
        rows: list[tuple[int, list[bytes]]] = []
        failure: DataError | None = None
        try:
            blank: tuple[list[bytes], ...] = ([], [b""]) if len(plan.kinds) > 1 else ([],)  # "" is a row of one column
            rows += (record for record in records if record[1] not in blank)
        except DataError as fault:
            failure = fault
        faulty = 0
        while (faulty := self._first_faulty(rows, faulty, plan)) < len(rows):
            if not self._find_faulty_columns(islice(rows, faulty, None), plan):
                break
            plan = self.plan or plan
        sound = rows[:faulty]
        for line, fields in rows[faulty:]:
            message = row_fault(fields, plan, self.options)
            if message is None:
                sound.append((line, fields))
            else:
                self.faults.append(self.fault(line, message))
        # The rows before a failure first: their queries and document ids may have faults that come before it.
        blocks = [self._block_of([row for _, row in sound], [line for line, _ in sound], plan)] if sound else []
        if failure is not None:
            raise failure
        self._pending = records.pending
        self.line += text.count(b"\n") - self._pending.count(b"\n")
        return blocks

    def _first_faulty(self, rows: Sequence[tuple[int, list[bytes]]], start: int, plan: ColumnPlan) -> int:
        """Return the first row from `start` on that has a fault, the number of rows if none has."""
        faulty = (i for i in range(start, len(rows)) if row_fault(rows[i][1], plan, self.options))
        return next(faulty, len(rows))

    def _block_of(self, rows: Sequence[Sequence[bytes]], lines: Sequence[int], plan: ColumnPlan) -> RowBlock:
        values = np.zeros((len(rows), plan.n_features))
        for column in np.flatnonzero(plan.kinds == delimited_text.FEATURE).tolist():
            values[:, plan.places[column]] = [field_value(row[column]) for row in rows]
        values += 0.0  # no minus zero
        self._number_texts(rows, lines, values.reshape(-1), plan)
        labels = documents = None
        if (f := plan.column(delimited_text.LABEL)) is not None:
            labels = np.array([field_value(row[f]) for row in rows]) + 0.0
            if self.options.gain_fault(labels):
                self.refuse_gains(zip(lines, labels.tolist(), strict=True))
        if (f := plan.column(delimited_text.QUERY)) is None:
            queries = self.one_query(len(rows))
        else:
            ids = [row[f] for row in rows]
            starts = [i for i, raw in enumerate(ids) if i == 0 or raw != ids[i - 1]]
            queries = self.read_runs([(i, ids[i], lines[i]) for i in starts], len(rows))
        if (f := plan.column(delimited_text.DOCUMENT)) is not None:
            documents = self.decode([row[f] for row in rows], lines.__getitem__)
        features = SparseRows(*plan.cells(len(rows)), values.reshape(-1))
        return RowBlock(features, labels, *queries, documents, lines[0])

    def _number_texts(
        self, rows: Sequence[Sequence[bytes]], lines: Sequence[int], values: Float64Array, plan: ColumnPlan
    ) -> None:
        """Write the numbers of categories, float64[n_rows * n_features]; add faults of texts that are not UTF-8."""
        cells = values.reshape(len(rows), plan.n_features)
        for f in plan.categories:
            fields = [row[f] for row in rows]
            for line, field in zip(lines, fields, strict=True):
                if not field.isascii() and not _is_utf8(field):
                    what = f"value of column {quote(plan.names[f])}"
                    self.faults.append(self.fault(line, encoding_fault(field, what)))
            texts = [field.decode("utf-8", "replace") for field in fields]
            place = plan.places[f]
            cells[:, place] = self.table.categories[int(plan.columns[place])].number(texts)

    def _fields(self, line: bytes) -> list[bytes]:
        line = line.rstrip(BLANKS.encode() if self.format == "csv" else b"\r ")
        return [field.strip(b" \t") for field in line.split(self.delimiter.encode())]

    def _explain(self, fields: Sequence[bytes], plan: ColumnPlan) -> str:
        if any(b"\r" in field for field in fields):
            return INNER_RETURN
        message = row_fault(fields, plan, self.options)
        return f"the line cannot be read: {quote(self.delimiter.encode().join(fields))}" if message is None else message


class TsvReader(DelimitedReader):
    """Reads TSV."""

    format = "tsv"


def _is_utf8(field: bytes) -> bool:
    try:
        field.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def field_value(field: bytes) -> float:
    """Return the number that a sound field of a feature or label says, nan for a missing value."""
    word = field.lower()
    if word in NO_VALUE:
        return np.nan
    return TRUTH[word] if word in TRUTH else float(field)


def is_there(field: bytes) -> bool:
    """Return whether the field of a feature is not a missing value; it may be invalid."""
    return field.lower() not in (*NO_VALUE, b"nan")


def cell_fault(field: bytes, name: str, kind: int, options: ReadOptions) -> str | None:
    """Return what is wrong with the field of a feature, label or query, None if nothing is."""
    word = field.lower()
    if kind == delimited_text.LABEL and word not in TRUTH:
        shown = f"column {quote(name)}"
        if word in NO_VALUE:
            return f"no label in {shown}: {quote(field)}; a label is a number from 0 up"
        return label_fault(field, f"check {shown}, or --label-column")
    if kind == delimited_text.QUERY and not field:
        return f"no query id in column {quote(name)}: {quote(field)}; every row needs one"
    if kind == delimited_text.FEATURE and word not in NO_VALUE and word not in TRUTH:
        hint = "write a number as 0.5, leave it empty if missing, or use --ignore-columns"
        return value_fault(field, f"column {quote(name)}", options, hint)
    return None


def length_fault(fields: Sequence[bytes], plan: ColumnPlan, all_rows: bool) -> str:
    """Return what to say of a row with another number of fields than the header."""
    there = f"the row has {len(fields)} field{'s' if len(fields) != 1 else ''} but the header {len(plan.names)}"
    if not all_rows:
        return f"{there}, the last is {quote(fields[-1])}; is the line cut off, or a decimal comma used?"
    there += ", and so have all rows after it"
    if len(fields) == len(plan.names) + 1:
        return f"{there}; does the header lack a name for the first column (R: write.csv(..., row.names = FALSE))?"
    return f"{there}, the last is {quote(fields[-1])}; is another separator or a decimal comma used?"


def row_fault(fields: Sequence[bytes], plan: ColumnPlan, options: ReadOptions) -> str | None:
    """Return what is wrong with the fields of a row, None if nothing is."""
    for field in fields:
        if b"\0" in field:
            return f"NUL byte in {quote(field)}; the file is damaged, or no text"
    if len(fields) != len(plan.names):
        return length_fault(fields, plan, all_rows=False)
    for field, name, kind in zip(fields, plan.names, plan.kinds.tolist(), strict=True):
        if fault := cell_fault(field, name, kind, options):
            return fault
    return None
