"""Parquet, through the package pyarrow: its reader. Nulls are missing values."""

from __future__ import annotations

import io
import math
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet

from lmart.array_types import BoolArray, Float64Array, Int64Array
from lmart.data.dataset import SparseRows
from lmart.errors import DataError, quote
from lmart.formats.documents.column_roles import ColumnPlan, plan_columns
from lmart.formats.documents.ids import encoding_fault, has_control, id_fault
from lmart.formats.documents.row_blocks import RowBlock, RowReader, RowSource, refuse
from lmart.kernels.delimited_text import DOCUMENT, FEATURE, LABEL, QUERY
from lmart.streams import InputStream
from lmart.threads import threads_can_start

MAGIC = b"PAR1"
BLOCK_ROWS = 1 << 14


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

    def _failures(self) -> _ArrowFailures:
        return _ArrowFailures(self.path)

    def __iter__(self) -> Iterator[RowBlock]:
        originals, types = self._schema()
        names = [name if has_control(name) else name.strip() for name in originals]  # as the header of CSV is taken
        plan = plan_columns(names, self._options, self.table, self.path)
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

    def _schema(self) -> tuple[list[str], list[Any]]:
        """Return the names of the columns as they are written, and their types."""
        with self._failures():
            fields = list(self._file.schema_arrow)
        try:
            return [field.name for field in fields], [field.type for field in fields]
        except UnicodeDecodeError:
            raise DataError("a column name is not valid UTF-8; rename it, or write the file again", self.path) from None

    def _refuse_types(self, plan: ColumnPlan, types: Sequence[Any]) -> None:
        """Raise DataError for the columns whose type cannot be what they are to be, one line each."""
        found = []
        for name, kind, type_ in zip(plan.names, plan.kinds.tolist(), types, strict=True):
            plain = self._plain_type(type_)
            if kind in (FEATURE, LABEL) and not self._is_number(plain):
                what = f"column {quote(name)} holds {type_}, no numbers"
                remedy = "leave it out with --ignore-columns, or turn it into numbers"
                found.append(f"{what}; {remedy if kind == FEATURE else 'a label is a number from 0 up'}")
            elif kind in (QUERY, DOCUMENT) and not (self._is_number(plain) or self._is_text(plain)):
                what = "query ids" if kind == QUERY else "document ids"
                found.append(f"column {quote(name)} holds {type_}, no {what}; turn it into text")
        refuse([DataError(message, self.path) for message in found], self._options.max_errors)

    def _plain_type(self, type_: Any) -> Any:
        return type_.value_type if pyarrow.types.is_dictionary(type_) else type_

    def _is_number(self, type_: Any) -> bool:
        types = pyarrow.types
        checks = (types.is_integer, types.is_floating, types.is_boolean, types.is_null, types.is_decimal)
        return any(check(type_) for check in checks)

    def _is_text(self, type_: Any) -> bool:
        types = pyarrow.types
        names = ("is_string", "is_large_string", "is_string_view", "is_binary", "is_large_binary", "is_binary_view")
        return any(getattr(types, name)(type_) for name in names if hasattr(types, name))

    def _block_of(self, batch: Any, plan: ColumnPlan, originals: Sequence[str]) -> RowBlock:
        n = batch.num_rows
        faults: list[DataError] = []
        values = np.empty((n, plan.n_features))
        labels: Float64Array | None = None
        query_ids: list[str] | None = None
        document_ids: list[str] | None = None
        offsets: Int64Array = np.array([0, n], np.int64)
        continues = self._row > 0
        for f, (name, original, kind) in enumerate(zip(plan.names, originals, plan.kinds.tolist(), strict=True)):
            if kind == FEATURE:
                values[:, plan.places[f]] = column = self._numbers(batch.column(original))
                if not self._options.allow_infinite:
                    message = f"value {{}} is infinite, in column {quote(name)}; use --allow-inf to take it"
                    self._note(faults, np.isinf(column), column, message)
            elif kind == LABEL:
                labels = self._numbers(batch.column(original))
                message = f"label {{}} in column {quote(name)} is missing or no label; a label is a number from 0 up"
                self._note(faults, ~((labels >= 0) & (labels < np.inf)), labels, message)
                if not faults and self._options.gain_fault(labels):
                    for i in range(n):
                        if reason := self._options.gain_fault(labels[i : i + 1]):
                            faults.append(DataError(reason, self.path, self._row + i + 1))
            elif kind == QUERY:
                texts = self._texts(batch.column(original), name, "query id", faults)
                query_ids, offsets, continues = self._runs(texts, name, faults)
            elif kind == DOCUMENT:
                document_ids = [text or "" for text in self._texts(batch.column(original), name, "document id", faults)]
                for i, text in enumerate(document_ids):
                    if fault := id_fault(text, "document id", self._options):
                        faults.append(DataError(fault, self.path, self._row + i + 1))
        refuse(faults, self._options.max_errors)
        block = RowBlock(
            SparseRows(*plan.cells(n), values.reshape(-1)),
            labels, query_ids, offsets, continues, document_ids, self._row + 1,
        )  # fmt: skip
        self._row += n
        return block

    def _note(self, faults: list[DataError], wrong: BoolArray, column: Float64Array, message: str) -> None:
        rows = np.flatnonzero(wrong)
        most = len(rows) > 1 and 2 * len(rows) > len(wrong) - rows[0]
        for i in rows[: 1 if most else self._options.max_errors].tolist():
            text = message.format(quote(str(column[i])))
            if most:  # one line for the column
                what, _, remedy = text.rpartition("; ")
                text = f"{what}, as in most rows; {remedy}"
            faults.append(DataError(text, self.path, self._row + i + 1))

    def _numbers(self, column: Any) -> Float64Array:
        with self._failures():
            if pyarrow.types.is_dictionary(column.type):
                column = column.dictionary_decode()
            if pyarrow.types.is_decimal(column.type):
                column = column.cast("string")  # the way to the nearest number
            numbers: Float64Array = (
                column.cast("float64", safe=False).fill_null(float("nan")).to_numpy(zero_copy_only=False)
            )
        return numbers + 0.0  # no minus zero

    def _texts(self, column: Any, name: str, what: str, faults: list[DataError]) -> list[str | None]:
        """Return ids as text without blanks at both ends, as CSV has them, None for nulls; numbers as they are written.

        Adds a fault for each that is not UTF-8.
        """
        if pyarrow.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if pyarrow.types.is_floating(column.type):
            numbers = [None if x is None or math.isnan(x) else x for x in column.to_pylist()]
            if any(x is not None and (abs(x) >= 2**53 or x != int(x)) for x in numbers):
                raise DataError(f"column {quote(name)} holds {column.type}, no {what}s; turn it into text", self.path)
            return [None if x is None else str(int(x)) for x in numbers]
        try:
            found = column.to_pylist()
        except UnicodeDecodeError:
            found = column.cast("large_binary").to_pylist()
        texts: list[str | None] = []
        for i, one in enumerate(found):
            text = one
            if isinstance(one, bytes):
                try:
                    text = one.decode("utf-8")
                except UnicodeDecodeError:
                    faults.append(DataError(encoding_fault(one, what), self.path, self._row + i + 1))
                    text = one.decode("utf-8", "backslashreplace")
            texts.append(None if text is None else str(text).strip(" "))
        return texts

    def _runs(self, texts: list[str | None], name: str, faults: list[DataError]) -> tuple[list[str], Int64Array, bool]:
        query_ids: list[str] = []
        starts: list[int] = []
        continues = texts[0] is not None and texts[0] == self._query
        missing = np.array([not text for text in texts])
        self._note(faults, missing, missing, f"no query id in column {quote(name)}: ''; every row needs one")
        for i, text in enumerate(texts):
            if text and (text != self._query or i == 0):
                if text != self._query:
                    if wrong := id_fault(text, "query id", self._options):
                        faults.append(DataError(wrong, self.path, self._row + i + 1))
                    elif fault := self._seen_queries.enter(text, self.path, self._row + i + 1):
                        faults.append(fault)
                starts.append(i)
                query_ids.append(text)
                self._query = text
        return query_ids, np.array([*starts, len(texts)], np.int64), continues


class _ArrowFailures:
    """Turns pyarrow's exceptions into one line."""

    def __init__(self, path: str) -> None:
        self._kinds = (pyarrow.ArrowException, OSError, UnicodeDecodeError)
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, self._kinds) and not isinstance(error, DataError):
            why = (str(error).splitlines() or [""])[0]
            raise DataError(f"cannot be read as Parquet: {why}; copy or write the file again", self._path) from None


def _seekable(stream: InputStream, head: bytes) -> Any:
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
