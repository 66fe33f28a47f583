"""LETOR text: `label qid:ID index:value ... # comment`, one document a line; its reader.

Kernels parse the lines; a faulty line is parsed again by `diagnostics`, which describes the fault.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from lmart.array_types import Int64Array
from lmart.data.dataset import SparseRows
from lmart.errors import DataError, quote
from lmart.formats.documents.blocks import CellBatch, RowBlock
from lmart.formats.documents.diagnostics import (
    FORM,
    Layout,
    explain,
    ignored_index,
    is_placeholder,
    label_fault,
    no_query_fault,
    not_letor_fault,
    nul_fault,
    words_of,
)
from lmart.formats.documents.text_reader import Buffers, TextReader, cut_at_newlines, powers_of_five
from lmart.kernels.text import decimals, document_ids, feature_ids
from lmart.kernels.text import letor as letor_text

# Lines with nothing but a comment: those in which `words_of` finds nothing.
_NO_ROWS = re.compile(rb"(?:\n++|[ \t]*+\r*+(?:#[^\n]*+)?+\n)*+")


class LetorReader(TextReader):
    """Reads LETOR text; the first row of a file decides whether its rows have labels and query ids."""

    _layout: Layout | None = None

    def parse(self, buffer: bytearray, stop: int) -> list[RowBlock]:
        """Return the rows of the whole lines buffer[:stop] as blocks; add to `faults` and `line`."""
        if self._layout is None:
            self._apply_column_options()
            if self.table.names is not None:
                message = "LETOR text has numbered features but other inputs have names; give them the same format"
                raise self.fault(1, message)
            self._layout = self._find_layout(buffer, stop)
            if self._layout is None:
                self.line += buffer.count(b"\n", 0, stop)
                return []
        text = np.frombuffer(buffer, np.uint8)
        bounds = cut_at_newlines(buffer, stop, self.pool.threads)
        marks = self.pool.run(letor_text.count_marks, [(text, *bound) for bound in bounds])
        batch = CellBatch(self._cell_buffer, [n_cells for _, n_cells in marks], self._lasting)
        all_outputs = self.buffers(len(bounds))
        layout = letor_text.RowLayout(self._layout.has_label, self._layout.has_query)
        features = self.table.known
        calls = []
        for chunk, (out, (n_lines, n_cells)) in enumerate(zip(all_outputs, marks, strict=True)):
            out.reserve(n_lines, n_lines + n_cells, self.options.max_errors)
            rows = letor_text.ParsedRows(
                out.labels, out.offsets, *batch.place(chunk), out.unsorted, out.unknown, out.runs, out.slow_numbers,
                out.documents, out.faults, out.counts,
            )  # fmt: skip
            calls.append((text, *bounds[chunk], layout, features, rows))
        self.run(letor_text.parse_letor, calls)
        if self.options.keep_document_ids:
            comments = [(text, out.documents[: out.counts[letor_text.ROWS]]) for out in all_outputs]
            self.pool.run(document_ids.find_documents, comments)
        self._read_slow_numbers(text, all_outputs, batch)
        parts = []
        # One after the other: new features get their columns in the order of the text, whatever the number of threads.
        for chunk, out in enumerate(all_outputs):
            part = self._collect(buffer, bounds[chunk], out, batch, chunk, self._layout)
            self.line += marks[chunk][0]
            if len(part):
                parts.append(part)
        return parts

    def _read_slow_numbers(self, text: npt.NDArray[np.uint8], all_outputs: Sequence[Buffers], batch: CellBatch) -> None:
        """Parse the numbers that need the slow path; the counts then hold how many even that one could not parse."""
        with_slow = [chunk for chunk, out in enumerate(all_outputs) if out.counts[letor_text.SLOW_NUMBERS]]
        calls = []
        for chunk in with_slow:
            out = all_outputs[chunk]
            numbers = out.slow_numbers[: out.counts[letor_text.SLOW_NUMBERS]]
            if not self.options.use_labels:
                numbers = self._without_placeholders(text, numbers)
            calls.append((text, numbers, self.options.allow_inf, powers_of_five(), out.labels, batch.place(chunk)[1]))
        for chunk, n_left in zip(with_slow, self.pool.run(decimals.read_numbers, calls), strict=True):
            all_outputs[chunk].counts[letor_text.SLOW_NUMBERS] = n_left

    @staticmethod
    def _without_placeholders(text: npt.NDArray[np.uint8], numbers: Int64Array) -> Int64Array:
        """Return the numbers to parse, moved to the front: all but placeholders of labels that are not used."""
        kept = numbers[:, 0] >= 0
        for i in np.flatnonzero(~kept).tolist():
            kept[i] = not is_placeholder(text[numbers[i, 1] : numbers[i, 2]].tobytes())
        n_kept = int(kept.sum())
        numbers[:n_kept] = numbers[kept]
        return numbers[:n_kept]

    def _collect(
        self, buffer: bytearray, bound: tuple[int, int], out: Buffers, batch: CellBatch, chunk: int, layout: Layout
    ) -> RowBlock:
        """Return the output of the kernels as a block; register new features, finish slow numbers, ids and faults."""
        n_rows, n_cells, n_unknown, n_runs, n_slow, n_faults, n_unsorted = out.counts.tolist()
        columns, values = batch.place(chunk)
        faulty = {line: (start, stop) for line, start, stop in out.faults[: min(n_faults, len(out.faults))].tolist()}
        if n_unknown:
            unknown = out.unknown[:n_unknown]
            resolved = self.table.register_but(unknown) if self.table.ignored else self.table.register(unknown)
            feature_ids.resolve_columns(columns, 0, n_cells, resolved)
        slow = out.slow_numbers[:n_slow]
        if self.table.ignored:
            slow = slow[(slow[:, 0] < 0) | (columns[slow[:, 0]] >= 0)]
        for line, start, stop in self.finish_numbers(buffer, slow, out.labels, values):
            faulty.setdefault(line, (buffer.rfind(b"\n", 0, start) + 1, buffer.find(b"\n", stop)))
        if n_unknown and self.table.ignored:
            n_cells = _leave_out(out.offsets[: n_rows + 1], columns[:n_cells], values)
        if n_unsorted:
            unsorted = out.unsorted[:n_unsorted]
            repeated = np.empty(n_unsorted, np.int64)
            count = feature_ids.sort_rows(unsorted, self.table.ids, n_rows, out.offsets, columns, values, repeated)
            n_cells = int(out.offsets[n_rows])
            if self.options.duplicates != "last":
                for _, start, stop, line in unsorted[repeated[:count]][: self.options.max_errors].tolist():
                    faulty.setdefault(line, (start, stop))
        for line, (start, stop) in faulty.items():
            self._add_fault(line, bytes(buffer[start:stop]), layout)
        if layout.has_label and self.options.gain_fault(out.labels[:n_rows]):
            lines = bytes(buffer[bound[0] : bound[1]]).split(b"\n")
            self.refuse_gains(
                (self.line + i + 1, label) for i, label in enumerate(map(_label_of, lines)) if label and i not in faulty
            )
        runs = self.runs_in(buffer, out.runs[:n_runs])
        queries = self.read_runs(runs, n_rows) if layout.has_query else self.one_query(n_rows)
        documents = None
        if self.options.keep_document_ids:
            documents = self.read_documents(buffer, out.documents[:n_rows], bound[0])
        rows = SparseRows(out.offsets[: n_rows + 1], *batch.close_up(chunk, n_cells))
        labels = out.labels[:n_rows] if layout.has_label and self.options.use_labels else None
        return RowBlock(rows, labels, *queries, documents, self.line + 1)

    def _add_fault(self, line: int, text: bytes, layout: Layout) -> None:
        message = explain(text, layout, self.options)
        if message is None:
            message = f"the line cannot be read: {quote(text)}; {FORM}"
        self.faults.append(self.fault(self.line + line + 1, message))

    def end(self) -> None:
        """Warn of options for indices that no row had."""
        if self.alone and (unmet := self.table.never_met()):
            self.options.warning(f"{self.path}: {unmet}")

    def _apply_column_options(self) -> None:
        """Note the features to leave out; DataError for column options that mean nothing in LETOR text."""
        options = self.options
        named = {
            "--label-column": options.label_column,
            "--query-column": options.query_column,
            "--document-column": options.document_column,
        }
        if not options.beside_others:
            for option, name in named.items():
                if name is not None:
                    what = "LETOR text has no columns: the label comes first, then qid:ID, the document in the comment"
                    raise DataError(f"{what}; leave out {option}", self.path)
        for name in options.ignore_columns:
            index = ignored_index(name)
            if index is not None:
                self.table.ignored.setdefault(index, False)
                self._report_known(index)
            elif not options.beside_others:
                what = f"there is no feature {quote(name)} to ignore: LETOR text has features by index"
                raise DataError(f"{what}; give --ignore-columns numbers", self.path)

    def _report_known(self, index: int) -> None:
        """Warn when the model has a feature that is to be ignored; DataError when that is to be refused."""
        if str(index) not in (self.options.known_features or ()):
            return
        what = f"--ignore-columns leaves out feature '{index}' of the model"
        if self.options.refuse_unknown:
            raise DataError(f"{what}; keep it, or do without --strict", self.path)
        self.options.warning(f"{self.path}: {what}; it counts as in a row without it")

    def _find_layout(self, buffer: bytearray, stop: int) -> Layout | None:
        """Return the layout of the first row, None when there is no row yet; DataError when options forbid it."""
        match = _NO_ROWS.match(buffer, 0, stop)
        start = match.end() if match is not None else 0
        if start == stop:
            return None
        line = bytes(buffer[start : buffer.find(b"\n", start)])
        number = self.line + buffer.count(b"\n", 0, start) + 1
        return self._layout_of(line, words_of(line.split(b"#", 1)[0]), number)

    def _layout_of(self, line: bytes, words: list[bytes], number: int) -> Layout:
        options = self.options
        has_label = not (words[0].startswith(b"qid:") or re.match(rb"-?\d+:", words[0]))
        rest = words[1:] if has_label else words
        has_query = bool(rest) and rest[0].startswith(b"qid:")
        if has_label and b"\0" not in line and self._is_no_label(words[0]):
            raise self.fault(number, not_letor_fault(line, words))
        if not has_label and options.require_labels:
            what = f"no label: a row starts with one, not with {quote(words[0])}; {FORM}"
            raise self.fault(number, nul_fault(line) if b"\0" in line else what)
        if has_query and options.query_sizes is not None:
            raise self.fault(number, "the rows have query ids already; leave out --query-sizes, or take the ids out")
        if has_query or any(word.startswith(b"qid:") for word in rest):
            return Layout(has_label, True)
        if options.require_queries and options.query_sizes is None:
            raise self.fault(number, nul_fault(line) if b"\0" in line else no_query_fault(rest))
        return Layout(has_label, False)

    def _is_no_label(self, word: bytes) -> bool:
        return label_fault(word) is not None and (self.options.use_labels or not is_placeholder(word))


def _leave_out(offsets: Int64Array, columns: npt.NDArray[np.int32], values: npt.NDArray[np.float64]) -> int:
    """Take the cells with column -1 out of rows, in place; return how many are left."""
    kept = columns >= 0
    n_kept = np.concatenate([np.zeros(1, np.int64), np.cumsum(kept)])
    count = int(n_kept[-1])
    columns[:count], values[:count] = columns[kept], values[: len(columns)][kept]
    offsets[:] = n_kept[offsets]
    return count


def _label_of(line: bytes) -> float:
    """Return the label of a line, 0 where there is none."""
    words = words_of(line.split(b"#", 1)[0])
    return float(words[0]) if words and label_fault(words[0]) is None else 0.0
