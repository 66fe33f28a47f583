"""Writing blocks of rows as Parquet, through the package pyarrow."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow
import pyarrow.parquet

from lmart.formats.documents.column_names import refuse_usual
from lmart.formats.documents.row_blocks import FeatureColumns, RowBlock
from lmart.streams import AtomicOutput
from lmart.threads import WorkerPool

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


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
        """Return True: that is what it is for."""
        return True

    def tell(self) -> int:
        """Return how many bytes were written."""
        return self._position

    def write(self, data: ReadableBuffer) -> int:
        """Hand the bytes on to the output and return how many they are."""
        piece = bytes(data)
        self._output.write(piece)
        self._position += len(piece)
        return len(piece)
