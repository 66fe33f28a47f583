"""Writing judged documents as TREC qrels: `qid 0 docno label`, for trec_eval."""

from __future__ import annotations

from lmart.errors import OutputError, quote
from lmart.formats.documents.row_blocks import FeatureColumns, RowBlock
from lmart.formats.results.trec import LARGEST_LABEL, id_misfit
from lmart.streams import AtomicOutput
from lmart.threads import WorkerPool


class QrelsWriter:
    """Writes the labels of blocks of rows; features have no place.

    A document is its id, else its number in the query, from 1: as in the runs that predict writes.
    """

    def __init__(self, output: AtomicOutput, absent: float, pool: WorkerPool) -> None:
        """Write to `output`; `absent` and `pool` are for formats that write features."""
        self._output = output
        self._query = ""
        self._documents: dict[str, int] = {}  # of the query that may go on in the next block, and their rows
        self._n_rows = 0

    def write(self, block: RowBlock, features: FeatureColumns) -> None:
        """Append the rows. OutputError for a label, or an id, that qrels cannot hold, and a document named twice."""
        if block.query_ids is None or block.labels is None:
            raise OutputError("qrels need a label and a query id in each row; give data that has them")
        bounds = block.query_offsets.tolist()
        labels = block.labels.tolist()
        lines = []
        for run, query_id in enumerate(block.query_ids):
            if run > 0 or not block.continues:
                self._check(query_id, "query id", bounds[run])
                self._query, self._documents = query_id, {}
            for row in range(bounds[run], bounds[run + 1]):
                given = "" if block.document_ids is None else block.document_ids[row]
                document = given or str(len(self._documents) + 1)
                if given:
                    self._check(given, "document id", row)
                self._enter(document, row)
                lines.append(f"{query_id} 0 {document} {self._label(labels[row], row)}\n")
        self._n_rows += len(block)
        self._output.write("".join(lines))

    def finish(self) -> None:
        """Nothing is left to write."""

    def _enter(self, document: str, row: int) -> None:
        own = self._n_rows + row + 1
        before = self._documents.setdefault(document, own)
        if before != own:
            what = f"query {quote(self._query)} names document {quote(document)} twice, in rows {before} and {own}"
            raise OutputError(f"{what}, which qrels cannot hold; keep one of them", self._output.path)

    def _label(self, label: float, row: int) -> int:
        if not label.is_integer():
            what = f"label {label!r} of row {self._n_rows + row + 1} is not a whole number"
            raise OutputError(f"{what}, and qrels hold no other; round it", self._output.path)
        if label > LARGEST_LABEL:
            what = f"label {label:.15g} of row {self._n_rows + row + 1} is above {LARGEST_LABEL}"
            raise OutputError(f"{what}, the largest that qrels can hold; give smaller labels", self._output.path)
        return int(label)

    def _check(self, text: str, what: str, row: int) -> None:
        if fault := id_misfit(text, what):
            where = f"{what} {quote(text)} of row {self._n_rows + row + 1}"
            raise OutputError(f"{where} cannot stand in qrels: it {fault}; rename it", self._output.path)
