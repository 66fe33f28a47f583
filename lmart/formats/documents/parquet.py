"""Parquet, through the package pyarrow: its reader. Nulls are missing values."""

from __future__ import annotations

import io
import os
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
import pyarrow.parquet

from lmart.array_types import BoolArray, Float64Array, Int64Array
from lmart.data.dataset import SparseRows
from lmart.data.feature_names import has_control
from lmart.errors import DataError, quote
from lmart.formats.documents.column_names import name_documents
from lmart.formats.documents.column_roles import ColumnPlan, plan_columns
from lmart.formats.documents.ids import id_fault
from lmart.formats.documents.parquet_columns import (
    ArrowArray,
    ArrowFailures,
    is_number,
    is_text,
    numbers_of,
    plain_type,
    texts_of,
)
from lmart.formats.documents.row_blocks import RowBlock, RowReader, RowSource, refuse
from lmart.kernels.text import delimited as delimited_text
from lmart.streams import InputStream
from lmart.threads import threads_can_start

MAGIC = b"PAR1"
BLOCK_ROWS = 1 << 14


class _Batch(Protocol):
    """What is used of pyarrow.RecordBatch."""

    @property
    def num_rows(self) -> int:
        """The number of rows."""

    def column(self, name: str) -> ArrowArray:
        """Return a column."""


class ParquetReader(RowReader):
    """Reads Parquet, batch by batch; pipes and compressed files are read into memory first."""

    def __init__(self, source: RowSource) -> None:
        self.path = source.stream.path
        self.table = source.table
        self._options = source.options
        self._seen_queries = source.seen_queries
        self._threads = threads_can_start()
        self._query: str | None = None
        self._row = 0
        self._stream = source.stream
        with self._failures():
            alone = {} if self._threads else {"pre_buffer": False}  # which starts threads
            self._file = pyarrow.parquet.ParquetFile(_seekable(source.stream, source.head), **alone)

    def close(self) -> None:
        """Close the input."""
        self._file.close()
        self._stream.close()

    def _failures(self) -> ArrowFailures:
        return ArrowFailures(self.path)

    def __iter__(self) -> Iterator[RowBlock]:
        originals, types = self._schema()
        names = [name if has_control(name) else name.strip() for name in originals]  # as the header of CSV is taken
        texts = [name for name, type_ in zip(names, types, strict=True) if is_text(plain_type(type_))]
        plan = plan_columns(names, self._options, self.table, self.path, texts=texts)
        self._refuse_types(plan, types)
        used = [name for name, kind in zip(originals, plan.kinds.tolist(), strict=True) if kind]
        counts = Counter(originals)
        if repeated := [name for name in used if counts[name] > 1]:  # pyarrow cannot select one of them
            raise DataError(f"two columns are named {quote(repeated[0])}; rename one", self.path)
        with self._failures():
            batches = self._file.iter_batches(BLOCK_ROWS, columns=used, use_threads=self._threads)
        while True:
            with self._failures():
                batch = next(batches, None)
            if batch is None:
                self._stream.refuse_changed()
                return
            if batch.num_rows:
                yield self._block_of(batch, plan, originals)

    def _schema(self) -> tuple[list[str], list[object]]:
        """Return the names of the columns as they are written, and their types."""
        with self._failures():
            fields = list(self._file.schema_arrow)
        try:
            return [field.name for field in fields], [field.type for field in fields]
        except UnicodeDecodeError:
            raise DataError("a column name is not valid UTF-8; rename it, or write the file again", self.path) from None

    def _refuse_types(self, plan: ColumnPlan, types: Sequence[object]) -> None:
        """Raise DataError for the columns whose type cannot be what they are to be, one line each."""
        found = []
        for name, kind, type_ in zip(plan.names, plan.kinds.tolist(), types, strict=True):
            plain = plain_type(type_)
            if kind in (delimited_text.FEATURE, delimited_text.LABEL) and not is_number(plain):
                what = f"column {quote(name)} holds {type_}, no numbers"
                remedy = "leave it out with --ignore-columns, or turn it into numbers"
                if is_text(plain) and not name_documents(plan.names, self._options):
                    chosen = f"give --document-column {shlex.quote(name)} if it names documents"
                    remedy = f"{chosen}, or leave it out with --ignore-columns"
                found.append(f"{what}; {remedy if kind == delimited_text.FEATURE else 'a label is a number from 0 up'}")
            elif kind in (delimited_text.QUERY, delimited_text.DOCUMENT) and not (is_number(plain) or is_text(plain)):
                what = "query ids" if kind == delimited_text.QUERY else "document ids"
                found.append(f"column {quote(name)} holds {type_}, no {what}; turn it into text")
        refuse([DataError(message, self.path) for message in found], self._options.max_errors)

    def _block_of(self, batch: _Batch, plan: ColumnPlan, originals: Sequence[str]) -> RowBlock:
        """Return the rows of a batch; DataError for all that is wrong with them."""
        n = batch.num_rows
        faults: list[DataError] = []
        values = np.empty((n, plan.n_features))
        labels: Float64Array | None = None
        query_ids: list[str] | None = None
        document_ids: list[str] | None = None
        offsets: Int64Array = np.array([0, n], np.int64)
        continues = self._row > 0
        for f, (name, original, kind) in enumerate(zip(plan.names, originals, plan.kinds.tolist(), strict=True)):
            match kind:
                case delimited_text.FEATURE:
                    values[:, plan.places[f]] = self._feature(batch.column(original), name, faults)
                case delimited_text.LABEL:
                    labels = self._labels(batch.column(original), name, faults)
                case delimited_text.QUERY:
                    texts = self._texts(batch.column(original), name, "query id", faults)
                    query_ids, offsets, continues = self._runs(texts, name, faults)
                case delimited_text.DOCUMENT:
                    document_ids = self._document_ids(batch.column(original), name, faults)
        refuse(faults, self._options.max_errors)
        features = SparseRows(*plan.cells(n), values.reshape(-1))
        block = RowBlock(features, labels, query_ids, offsets, continues, document_ids, self._row + 1)
        self._row += n
        return block

    def _fault(self, row: int, message: str, kind: str = "") -> DataError:
        """Return the fault of a row of the batch, from 0."""
        return DataError(message, self.path, self._row + row + 1, kind=kind)

    def _feature(self, column: ArrowArray, name: str, faults: list[DataError]) -> Float64Array:
        numbers = numbers_of(column, self.path)
        if not self._options.allow_inf:
            message = f"value {{}} is infinite, in column {quote(name)}; use --allow-inf to take it"
            self._note(faults, np.isinf(numbers), numbers, message)
        return numbers

    def _labels(self, column: ArrowArray, name: str, faults: list[DataError]) -> Float64Array:
        labels = numbers_of(column, self.path)
        message = f"label {{}} in column {quote(name)} is missing or no label; a label is a number from 0 up"
        self._note(faults, ~((labels >= 0) & (labels < np.inf)), labels, message)
        if not faults and self._options.gain_fault(labels):
            for i in range(len(labels)):
                if reason := self._options.gain_fault(labels[i : i + 1]):
                    faults.append(self._fault(i, reason, kind=reason))
        return labels

    def _texts(self, column: ArrowArray, name: str, what: str, faults: list[DataError]) -> list[str | None]:
        texts, wrong = texts_of(column, name, what, self.path)
        faults += [self._fault(row, message) for row, message in wrong]
        return texts

    def _document_ids(self, column: ArrowArray, name: str, faults: list[DataError]) -> list[str]:
        document_ids = [text or "" for text in self._texts(column, name, "document id", faults)]
        for i, text in enumerate(document_ids):
            if message := id_fault(text, "document id", self._options):
                faults.append(self._fault(i, message))
        return document_ids

    def _note(self, faults: list[DataError], wrong: BoolArray, column: Float64Array, message: str) -> None:
        rows = np.flatnonzero(wrong)
        most = len(rows) > 1 and 2 * len(rows) > len(wrong) - rows[0]
        for i in rows[: 1 if most else self._options.max_errors].tolist():
            text = message.format(quote(str(column[i])))
            if most:  # one line for the column
                what, _, remedy = text.rpartition("; ")
                text = f"{what}, as in most rows; {remedy}"
            faults.append(self._fault(i, text))

    def _runs(self, texts: list[str | None], name: str, faults: list[DataError]) -> tuple[list[str], Int64Array, bool]:
        query_ids: list[str] = []
        starts: list[int] = []
        continues = texts[0] is not None and texts[0] == self._query
        missing = np.array([not text for text in texts])
        self._note(faults, missing, missing, f"no query id in column {quote(name)}: ''; every row needs one")
        for i, text in enumerate(texts):
            if not text or (text == self._query and i > 0):
                continue
            if text != self._query:
                if wrong := id_fault(text, "query id", self._options):
                    faults.append(self._fault(i, wrong))
                elif fault := self._seen_queries.enter(text, self.path, self._row + i + 1):
                    faults.append(fault)
            starts.append(i)
            query_ids.append(text)
            self._query = text
        return query_ids, np.array([*starts, len(texts)], np.int64), continues


def _seekable(stream: InputStream, head: bytes) -> str | io.BytesIO:
    """Return the path of a plain file, else its whole content; Parquet's index is at its end."""
    if stream.path != "-" and stream.progress > 0 and os.path.isfile(stream.path):
        with open(stream.path, "rb") as plain:
            if plain.read(len(MAGIC)) == MAGIC and stream.is_file(os.fstat(plain.fileno())):
                return stream.path
    parts = [head]
    buffer = memoryview(bytearray(1 << 20))
    while count := stream.read_block(buffer):
        parts.append(bytes(buffer[:count]))
    return io.BytesIO(b"".join(parts))
