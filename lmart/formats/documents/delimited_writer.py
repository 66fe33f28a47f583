"""Writing blocks of rows as CSV or TSV."""

from __future__ import annotations

import math

import numpy as np

from lmart.errors import OutputError, quote
from lmart.formats.documents.row_blocks import FeatureColumns, RowBlock
from lmart.formats.number_text import shortest
from lmart.streams import AtomicOutput

DELIMITERS = {"csv": ",", "tsv": "\t"}


class DelimitedWriter:
    """Writes blocks of rows as CSV or TSV with a header; a missing value is an empty field."""

    format: str

    def __init__(self, output: AtomicOutput, absent: float) -> None:
        """Write to `output`; `absent` (0 or nan) stands where a row has no cell."""
        self._output = output
        self._delimiter = DELIMITERS[self.format]
        self._absent = absent
        self._started = False

    def write(self, block: RowBlock, features: FeatureColumns) -> None:
        """Append the rows; the first block decides which columns there are besides the features."""
        feature_names = features.names
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


class CsvWriter(DelimitedWriter):
    """Writes CSV."""

    format = "csv"


class TsvWriter(DelimitedWriter):
    """Writes TSV."""

    format = "tsv"
