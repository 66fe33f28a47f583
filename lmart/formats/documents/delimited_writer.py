"""Writing blocks of rows as CSV or TSV."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import partial

from lmart.array_types import UInt8Array
from lmart.errors import OutputError, quote
from lmart.formats.documents.column_names import data_fault, refuse_usual
from lmart.formats.documents.row_blocks import FeatureColumns, RowBlock
from lmart.formats.documents.row_text_writer import RowTextWriter, powers, rows_of, texts_of
from lmart.formats.format_records import BYTE_ORDER_MARK
from lmart.formats.read_options import ReadOptions
from lmart.kernels.text.row_text import RowsToWrite, write_table_rows
from lmart.streams import AtomicOutput
from lmart.threads import WorkerPool

DELIMITERS = {"csv": ",", "tsv": "\t"}


class DelimitedWriter:
    """Writes blocks of rows as CSV or TSV with a header; a missing value is an empty field, or nan alone in a line."""

    format: str

    def __init__(self, output: AtomicOutput, absent: float, pool: WorkerPool) -> None:
        """Write to `output` on `pool`; `absent` (0 or nan) stands where a row has no cell."""
        self._output = output
        self._writer = RowTextWriter(output, pool)
        self._delimiter = DELIMITERS[self.format]
        self._needs_quotes = re.compile(f'[{self._delimiter}"\n\r]')
        self._absent = absent
        self._started = False

    def write(self, block: RowBlock, features: FeatureColumns) -> None:
        """Append the rows; the first block decides which columns there are besides the features."""
        feature_names = features.names
        if not self._started:
            self._started = True
            there = {"label": block.labels, "qid": block.query_ids, "docid": block.document_ids}
            self._write_header([name for name, values in there.items() if values is not None], feature_names)
        rows = rows_of(block, texts_of(self._quoted(block.query_ids)), texts_of(self._quoted(block.document_ids)))
        is_missing = math.isnan(self._absent)
        write_rows = partial(_write_rows, rows, len(feature_names), ord(self._delimiter), is_missing)
        self._writer.write(rows, len(feature_names), 0, write_rows)

    def finish(self) -> None:
        """Nothing is left to write."""

    def _write_header(self, names: Sequence[str], feature_names: Sequence[str]) -> None:
        refuse_usual(feature_names, self._output.path)
        first = [*names, *feature_names][:1]
        if first and first[0].startswith(BYTE_ORDER_MARK.decode()):
            what = f"the first column is named {quote(first[0])}, which begins with a byte order mark"
            raise OutputError(f"{what}; rename it", self._output.path)
        if fault := data_fault([*names, *feature_names], ReadOptions(require_labels=False)):
            what = f"the header would be read as data: {fault}"
            raise OutputError(f"{what}; rename the columns, or write LETOR or Parquet", self._output.path)
        header = [*names, *(self._quoted(feature_names) or ())]
        self._output.write(self._delimiter.join(header) + "\n")

    def _quoted(self, texts: Sequence[str] | None) -> Sequence[str] | None:
        """Return texts as they stand in fields: with quotes where they hold what would end a field."""
        if not texts or not self._needs_quotes.search("".join(texts)):
            return texts
        return ['"' + one.replace('"', '""') + '"' if self._needs_quotes.search(one) else one for one in texts]


class CsvWriter(DelimitedWriter):
    """Writes CSV."""

    format = "csv"


class TsvWriter(DelimitedWriter):
    """Writes TSV."""

    format = "tsv"


def _write_rows(
    rows: RowsToWrite, n_features: int, delimiter: int, is_missing: bool, start: int, stop: int, out: UInt8Array
) -> int:
    return write_table_rows(rows, start, stop, n_features, delimiter, is_missing, powers(), out)
