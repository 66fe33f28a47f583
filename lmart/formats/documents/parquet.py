"""Parquet, through the package pyarrow: its reader and writer. Nulls are missing values."""

from __future__ import annotations

import io
import math
import os
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, Self, cast

import numpy as np
import pyarrow
import pyarrow.parquet

from lmart.array_types import BoolArray, Float64Array, Int64Array
from lmart.data.dataset import SparseRows
from lmart.data.feature_names import has_control
from lmart.errors import DataError, quote
from lmart.formats.documents import columns as table_columns
from lmart.formats.documents.blocks import FeatureColumns, RowBlock, RowReader, RowSource, refuse
from lmart.formats.documents.column_names import name_documents, refuse_usual
from lmart.formats.documents.columns import ColumnPlan, plan_columns
from lmart.formats.documents.diagnostics import encoding_fault, id_fault
from lmart.kernels.text import delimited as delimited_text
from lmart.streams import AtomicOutput, InputStream
from lmart.threads import WorkerPool, threads_can_start

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

MAGIC = b"PAR1"
BLOCK_ROWS = 1 << 14


class _ArrowArray(Protocol):
    """What is used of pyarrow.Array."""

    @property
    def type(self) -> object: ...

    def dictionary_decode(self) -> Self: ...

    def cast(self, target_type: str, safe: bool = True) -> Self: ...

    def fill_null(self, fill_value: float) -> Self: ...

    def to_numpy(self, zero_copy_only: bool = True) -> Float64Array: ...

    def to_pylist(self) -> list[object]: ...


class _Batch(Protocol):
    """What is used of pyarrow.RecordBatch."""

    @property
    def num_rows(self) -> int: ...

    def column(self, name: str) -> _ArrowArray: ...


@contextmanager
def arrow_failures(path: str) -> Iterator[None]:
    """Make a DataError of one line of the exceptions of pyarrow."""
    try:
        yield
    except DataError:
        raise
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        why = (str(error).splitlines() or [""])[0]
        raise DataError(f"cannot be read as Parquet: {why}; copy or write the file again", path) from None


def plain_type(arrow_type: object) -> object:
    """Return the type of the values, of a dictionary too."""
    if pyarrow.types.is_dictionary(arrow_type):
        value_type: object = getattr(arrow_type, "value_type", None)
        return value_type
    return arrow_type


def is_number(arrow_type: object) -> bool:
    """Return whether the values are numbers, or all of them nulls."""
    types = pyarrow.types
    checks = (types.is_integer, types.is_floating, types.is_boolean, types.is_null, types.is_decimal)
    return any(check(arrow_type) for check in checks)


def is_text(arrow_type: object) -> bool:
    """Return whether the values are texts or bytes."""
    types = pyarrow.types
    names = ("is_string", "is_large_string", "is_string_view", "is_binary", "is_large_binary", "is_binary_view")
    return any(getattr(types, name)(arrow_type) for name in names if hasattr(types, name))


def numbers_of(column: _ArrowArray, path: str) -> Float64Array:
    """Return a column as float64[n], nan for nulls; DataError at `path`."""
    with arrow_failures(path):
        if pyarrow.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if pyarrow.types.is_decimal(column.type):
            column = column.cast("string")  # the way to the nearest number
        numbers = column.cast("float64", safe=False).fill_null(float("nan")).to_numpy(zero_copy_only=False)
    return numbers + 0.0  # no minus zero


def texts_of(column: _ArrowArray, name: str, what: str, path: str) -> tuple[list[str | None], list[tuple[int, str]]]:
    """Return ids as text without blanks at both ends, as CSV has them, None for nulls; numbers as they are written.

    Also return the row and the fault of each that is not UTF-8. DataError for numbers that are no ids.
    """
    if pyarrow.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pyarrow.types.is_floating(column.type):
        numbers = [None if x is None or math.isnan(x) else x for x in cast(list[float | None], column.to_pylist())]
        if any(x is not None and (abs(x) >= 2**53 or x != int(x)) for x in numbers):
            raise DataError(f"column {quote(name)} holds {column.type}, no {what}s; turn it into text", path)
        return [None if x is None else str(int(x)) for x in numbers], []
    try:
        found = column.to_pylist()
    except UnicodeDecodeError:
        found = column.cast("large_binary").to_pylist()
    texts: list[str | None] = []
    faults: list[tuple[int, str]] = []
    for i, value in enumerate(found):
        if isinstance(value, bytes):
            try:
                value.decode("utf-8")
            except UnicodeDecodeError:
                faults.append((i, encoding_fault(value, what)))
        text = value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value
        texts.append(None if text is None else str(text).strip(" "))
    return texts, faults


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
        with arrow_failures(self.path):
            alone = {} if self._threads else {"pre_buffer": False}  # which starts threads
            self._file = pyarrow.parquet.ParquetFile(_seekable(source.stream, source.head), **alone)

    def close(self) -> None:
        """Close the input."""
        self._file.close()
        self._stream.close()

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
        with arrow_failures(self.path):
            batches = self._file.iter_batches(BLOCK_ROWS, columns=used, use_threads=self._threads)
        while True:
            with arrow_failures(self.path):
                batch = next(batches, None)
            if batch is None:
                self._stream.refuse_changed()
                return
            if batch.num_rows:
                yield self._block_of(batch, plan, originals)

    def _schema(self) -> tuple[list[str], list[object]]:
        """Return the names of the columns as they are written, and their types."""
        with arrow_failures(self.path):
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
                if is_text(plain):
                    chosen = "in training, name it with --categorical if its values are categories"
                    if not name_documents(plan.names, self._options):
                        chosen += f", give --document-column {shlex.quote(name)} if it names documents"
                    remedy = f"{chosen}, or leave it out with --ignore-columns"
                found.append(f"{what}; {remedy if kind == delimited_text.FEATURE else 'a label is a number from 0 up'}")
            elif kind == table_columns.CATEGORY and not (is_number(plain) or is_text(plain)):
                found.append(f"column {quote(name)} holds {type_}, no categories; turn it into text")
            elif kind in (delimited_text.QUERY, delimited_text.DOCUMENT) and not (is_number(plain) or is_text(plain)):
                what = "query id" if kind == delimited_text.QUERY else self._options.row_text
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
                case table_columns.CATEGORY:
                    texts, _ = texts_of(batch.column(original), name, "category", self.path)
                    column = int(plan.columns[plan.places[f]])
                    values[:, plan.places[f]] = self.table.categories[column].number(texts)
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

    def _feature(self, column: _ArrowArray, name: str, faults: list[DataError]) -> Float64Array:
        numbers = numbers_of(column, self.path)
        if not self._options.allow_inf:
            message = f"value {{}} is infinite, in column {quote(name)}; use --allow-inf to take it"
            self._note(faults, np.isinf(numbers), numbers, message)
        return numbers

    def _labels(self, column: _ArrowArray, name: str, faults: list[DataError]) -> Float64Array:
        labels = numbers_of(column, self.path)
        message = f"label {{}} in column {quote(name)} is missing or no label; a label is a number from 0 up"
        self._note(faults, ~((labels >= 0) & (labels < np.inf)), labels, message)
        if not faults and self._options.gain_fault(labels):
            for i in range(len(labels)):
                if reason := self._options.gain_fault(labels[i : i + 1]):
                    faults.append(self._fault(i, reason, kind=reason))
        return labels

    def _texts(self, column: _ArrowArray, name: str, what: str, faults: list[DataError]) -> list[str | None]:
        texts, undecodable = texts_of(column, name, what, self.path)
        faults += [self._fault(row, message) for row, message in undecodable]
        return texts

    def _document_ids(self, column: _ArrowArray, name: str, faults: list[DataError]) -> list[str]:
        document_ids = [text or "" for text in self._texts(column, name, self._options.row_text, faults)]
        for i, text in enumerate(document_ids):
            if message := id_fault(text, self._options.row_text, self._options):
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


class ParquetWriter:
    """Writes blocks of rows as Parquet; missing values are nulls."""

    def __init__(self, output: AtomicOutput, absent: float, pool: WorkerPool) -> None:
        """Write to `output`; `absent` (0 or nan) stands where a row has no cell; pyarrow has threads of its own."""
        self._output = output
        self._absent = absent
        self._writer: Any = None

    def write(self, block: RowBlock, features: FeatureColumns) -> None:
        """Append the rows; the first block decides which columns there are."""
        feature_names = features.names
        columns: list[tuple[str, Any]] = []
        if block.labels is not None:
            columns.append(("label", pyarrow.array(block.labels)))
        if block.query_ids is not None:
            sizes = np.diff(block.query_offsets).tolist()
            texts = [text for text, size in zip(block.query_ids, sizes, strict=True) for _ in range(size)]
            columns.append(("qid", pyarrow.array(texts, pyarrow.string())))
        if block.document_ids is not None:
            columns.append(("docid", pyarrow.array(list(block.document_ids), pyarrow.string())))
        refuse_usual(feature_names, self._output.path)
        dense = block.features.dense(len(feature_names), self._absent)
        for name, column in zip(feature_names, dense.T, strict=True):
            columns.append((name, pyarrow.array(np.ascontiguousarray(column), from_pandas=True)))
        table = pyarrow.table([column for _, column in columns], names=[name for name, _ in columns])
        if self._writer is None:
            self._writer = pyarrow.parquet.ParquetWriter(pyarrow.PythonFile(_Sink(self._output), "w"), table.schema)
        self._writer.write_table(table)

    def finish(self) -> None:
        """Write the index at the end."""
        if self._writer is not None:
            self._writer.close()


class _Sink(io.RawIOBase):
    """What pyarrow writes to."""

    def __init__(self, output: AtomicOutput) -> None:
        self._output = output
        self._position = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def write(self, data: ReadableBuffer) -> int:
        piece = bytes(data)
        self._output.write(piece)
        self._position += len(piece)
        return len(piece)
