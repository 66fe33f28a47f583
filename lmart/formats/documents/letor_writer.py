"""Writing blocks of rows as LETOR text."""

from __future__ import annotations

from lmart.errors import OutputError, quote
from lmart.formats.documents.row_blocks import FeatureColumns, RowBlock
from lmart.formats.number_text import shortest
from lmart.streams import AtomicOutput


class LetorWriter:
    """Writes blocks of rows as LETOR text, every number in the shortest form that reads back equal."""

    def __init__(self, output: AtomicOutput, absent: float = 0.0) -> None:
        """Write to `output`; `absent` is for formats that write something where a row has no cell."""
        self._output = output

    def write(self, block: RowBlock, features: FeatureColumns) -> None:
        """Append the rows. OutputError when an id cannot stand in LETOR text."""
        names = [f"{feature_id}:" for feature_id in features.ids.tolist()]
        cells = [
            names[column] + shortest(value)
            for column, value in zip(block.features.columns.tolist(), block.features.values.tolist(), strict=True)
        ]
        bounds = block.features.offsets.tolist()
        row_starts = [[] if block.labels is None else [shortest(label)] for label in self._labels(block)]
        if block.query_ids is not None:
            ends = block.query_offsets.tolist()
            for query, query_id in enumerate(block.query_ids):
                self._check(query_id, "query id", block.first_line + ends[query])
                for row in range(ends[query], ends[query + 1]):
                    row_starts[row].append("qid:" + query_id)
        lines = []
        for row, row_start in enumerate(row_starts):
            words = row_start + cells[bounds[row] : bounds[row + 1]]
            document_id = "" if block.document_ids is None else block.document_ids[row]
            if document_id:
                self._check(document_id, "document id", block.first_line + row)
                words.append("#docid = " + document_id)
            lines.append(" ".join(words) + "\n")
        self._output.write("".join(lines))

    def finish(self) -> None:
        """Nothing is left to write."""

    @staticmethod
    def _labels(block: RowBlock) -> list[float]:
        return [0.0] * len(block) if block.labels is None else block.labels.tolist()

    @staticmethod
    def _check(text: str, what: str, row: int) -> None:
        if not text or any(c.isspace() or c < " " or c == "\x7f" for c in text) or (what == "query id" and "#" in text):
            why = "it is empty or holds a blank, a control character or '#'"
            raise OutputError(f"{what} {quote(text)} (near line {row}) cannot stand in LETOR text: {why}; rename it")
