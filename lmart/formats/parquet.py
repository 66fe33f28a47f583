"""Parquet, through the package pyarrow: reader and writer. Nulls are missing values."""

from __future__ import annotations

import io
import math
import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from lmart.dataset import SparseRows
from lmart.errors import DataError, OutputError, quote
from lmart.formats.columns import ColumnPlan, plan_columns
from lmart.formats.options import ReadOptions
from lmart.formats.rows import FeatureTable, Floats, Longs, QueryLedger, RowBlock, RowReader, refuse
from lmart.kernels.decimals import DOCUMENT, FEATURE, LABEL, QUERY
from lmart.streams import AtomicOutput, InputStream
from lmart.threads import threads_can_start

MAGIC = b"PAR1"
BLOCK_ROWS = 1 << 14


def _pyarrow(error: type[DataError] | type[OutputError], path: str) -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ModuleNotFoundError:
        raise error("Parquet needs the package pyarrow: pip install 'lmart[parquet]'", path) from None
    return pyarrow


class ParquetReader(RowReader):
    """Reads Parquet, batch by batch; what is no plain file is read into memory first."""

    def __init__(
        self, stream: InputStream, head: bytes, options: ReadOptions, table: FeatureTable, ledger: QueryLedger
    ) -> None:
        self.path = stream.path
        self.table = table
        self._options = options
        self._ledger = ledger
        self._arrow = _pyarrow(DataError, self.path)
        self._threads = threads_can_start()
        self._query: str | None = None
        self._row = 0
        self._stream = stream
        with self._failures():
            alone = {} if self._threads else {"pre_buffer": False}  # which starts threads
            self._file = self._arrow.parquet.ParquetFile(_seekable(stream, head), **alone)

    def close(self) -> None:
        self._file.close()
        self._stream.close()

    def _failures(self) -> _ArrowFailures:
        return _ArrowFailures(self._arrow, self.path)

    def __iter__(self) -> Iterator[RowBlock]:
        with self._failures():
            names = [field.name for field in self._file.schema_arrow]
        plan = plan_columns(names, self._options, self.table, self.path)
        used = [name for name, kind in zip(names, plan.kinds.tolist(), strict=True) if kind]
        with self._failures():
            batches = self._file.iter_batches(BLOCK_ROWS, columns=used, use_threads=self._threads)
        while True:
            with self._failures():
                batch = next(batches, None)
            if batch is None:
                self._stream.refuse_changed()
                return
            if batch.num_rows:
                yield self._block_of(batch, plan)

    def _block_of(self, batch: Any, plan: ColumnPlan) -> RowBlock:
        n = batch.num_rows
        faults: list[DataError] = []
        values = np.empty((n, plan.n_features))
        labels: Floats | None = None
        query_ids: list[str] | None = None
        document_ids: list[str] | None = None
        offsets: Longs = np.array([0, n], np.int64)
        continues = self._row > 0
        for f, (name, kind) in enumerate(zip(plan.names, plan.kinds.tolist(), strict=True)):
            if kind == FEATURE:
                values[:, plan.places[f]] = column = self._numbers(batch, name)
                if not self._options.allow_infinite:
                    message = f"value {{}} is infinite, in column {quote(name)}; use --allow-inf to take it"
                    self._note(faults, np.isinf(column), column, message)
            elif kind == LABEL:
                labels = self._numbers(batch, name)
                message = f"label {{}} in column {quote(name)} is missing or no label; a label is a number from 0 up"
                self._note(faults, ~((labels >= 0) & (labels < np.inf)), labels, message)
                if not faults and self._options.gain_fault(labels):
                    for i in range(n):
                        if reason := self._options.gain_fault(labels[i : i + 1]):
                            faults.append(DataError(reason, self.path, self._row + i + 1))
            elif kind == QUERY:
                query_ids, offsets, continues = self._runs(self._texts(batch, name, "query id"), name, faults)
            elif kind == DOCUMENT and self._options.keep_document_ids:
                document_ids = [text or "" for text in self._texts(batch, name, "document id")]
        refuse(faults, self._options.max_errors)
        block = RowBlock(
            SparseRows(*plan.cells(n), values.reshape(-1)),
            labels, query_ids, offsets, continues, document_ids, self._row + 1,
        )  # fmt: skip
        self._row += n
        return block

    def _note(self, faults: list[DataError], wrong: Any, column: Floats, message: str) -> None:
        for i in np.flatnonzero(wrong)[: self._options.max_errors].tolist():
            faults.append(DataError(message.format(quote(str(column[i]))), self.path, self._row + i + 1))

    def _numbers(self, batch: Any, name: str) -> Floats:
        column = batch.column(name)
        types = self._arrow.types
        kind = column.type
        if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_null(kind)):
            what = f"column {quote(name)} holds {kind}, no numbers"
            raise DataError(f"{what}; leave it out with --ignore-columns, or turn it into numbers", self.path)
        with self._failures():
            numbers: Floats = column.cast("float64", safe=False).fill_null(float("nan")).to_numpy(zero_copy_only=False)
        return numbers + 0.0  # no minus zero

    def _texts(self, batch: Any, name: str, what: str) -> list[str | None]:
        column = batch.column(name)
        types = self._arrow.types
        if types.is_dictionary(column.type):
            column = column.dictionary_decode()
        kind = column.type
        if types.is_floating(kind):
            numbers = [None if x is None or math.isnan(x) else x for x in column.to_pylist()]
            if any(x is not None and (abs(x) >= 2**53 or x != int(x)) for x in numbers):
                raise DataError(f"column {quote(name)} holds {kind}, no {what}s; turn it into text", self.path)
            return [None if x is None else str(int(x)) for x in numbers]
        if not (types.is_integer(kind) or types.is_string(kind) or types.is_large_string(kind) or types.is_null(kind)):
            raise DataError(f"column {quote(name)} holds {kind}, no {what}s; turn it into text", self.path)
        return [None if x is None else str(x) for x in column.to_pylist()]

    def _runs(self, texts: list[str | None], name: str, faults: list[DataError]) -> tuple[list[str], Longs, bool]:
        query_ids: list[str] = []
        starts: list[int] = []
        continues = texts[0] is not None and texts[0] == self._query
        for i, text in enumerate(texts):
            if not text:
                message = f"no query id in column {quote(name)}: {quote(text or '')}; every row needs one"
                faults.append(DataError(message, self.path, self._row + i + 1))
            elif text != self._query or i == 0:
                if text != self._query and (fault := self._ledger.enter(text, self.path, self._row + i + 1)):
                    faults.append(fault)
                starts.append(i)
                query_ids.append(text)
                self._query = text
        return query_ids, np.array([*starts, len(texts)], np.int64), continues


class _ArrowFailures:
    """Turns pyarrow's exceptions into one line."""

    def __init__(self, arrow: Any, path: str) -> None:
        self._kinds = (arrow.ArrowException, OSError)
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, self._kinds) and not isinstance(error, DataError):
            why = (str(error).splitlines() or [""])[0]
            raise DataError(f"cannot be read as Parquet: {why}; copy or write the file again", self._path) from None


def _seekable(stream: InputStream, head: bytes) -> Any:
    """Return the path of a plain file, else its whole content; Parquet's index stands at its end."""
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
    """Writes blocks of rows as Parquet; missing values are nulls, `absent` is written where a row has no cell."""

    def __init__(self, output: AtomicOutput, absent: float) -> None:
        self._output = output
        self._absent = absent
        self._arrow = _pyarrow(OutputError, output.path)
        self._writer: Any = None

    def write(self, block: RowBlock, feature_names: Sequence[str]) -> None:
        """Append the rows; the first block decides which columns there are."""
        arrow = self._arrow
        columns: list[tuple[str, Any]] = []
        if block.labels is not None:
            columns.append(("label", arrow.array(block.labels)))
        if block.query_ids is not None:
            sizes = np.diff(block.query_offsets).tolist()
            texts = [text for text, size in zip(block.query_ids, sizes, strict=True) for _ in range(size)]
            columns.append(("qid", arrow.array(texts, arrow.string())))
        if block.document_ids is not None:
            columns.append(("docid", arrow.array(list(block.document_ids), arrow.string())))
        if clash := {name for name, _ in columns} & set(feature_names):
            what = f"a feature is named {quote(min(clash))} like another column of the output"
            raise OutputError(f"{what}; leave it out with --ignore-columns", self._output.path)
        dense = block.features.dense(len(feature_names), self._absent)
        for name, column in zip(feature_names, dense.T, strict=True):
            columns.append((name, arrow.array(np.ascontiguousarray(column), from_pandas=True)))
        table = arrow.table([column for _, column in columns], names=[name for name, _ in columns])
        if self._writer is None:
            self._writer = arrow.parquet.ParquetWriter(arrow.PythonFile(_Sink(self._output), "w"), table.schema)
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

    def write(self, data: Any) -> int:
        piece = bytes(data)
        self._output.write(piece)
        self._position += len(piece)
        return len(piece)
