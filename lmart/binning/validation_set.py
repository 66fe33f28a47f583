"""CodedDataset: a validation set in the training set's bins, coded block by block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lmart.array_types import Float64Array, Int64Array, UInt8Array
from lmart.binning.binned_features import CodedRows, Coder, RowCoder, RowsToCode, row_arrays
from lmart.binning.edge_sample import CHUNK
from lmart.binning.edges import BinEdges
from lmart.data.categories import placed_rows, with_numbers
from lmart.data.dataset import SparseRows, Unbinned, join_rows, take_rows
from lmart.scoring.ensemble import Ensemble
from lmart.scoring.feature_matching import FeatureMatcher, match_dataset
from lmart.threads import WorkerPool, chunks


@dataclass(frozen=True)
class CodedDataset:
    """A validation set of n documents in the training set's bins.

    bins          : uint8[m, k] each, the documents' bins, in their order; () where they are kept row by row
    infinite      : raw values of the rows with a value of plus infinity: where training had none, its bin is that of
                    the largest numbers, so these rows are scored by their raw values
    infinite_docs : int64[n_infinite], which documents those are
    columns       : int32[n_columns], the model's feature of each column of `infinite`, -1 where it has none
    warnings      : features that only the training set or only this set has
    rows          : all bins row by row, where the training set keeps some so; else None
    """

    labels: Float64Array
    query_offsets: Int64Array
    bins: tuple[UInt8Array, ...]
    infinite: SparseRows
    infinite_docs: Int64Array
    columns: npt.NDArray[np.int32]
    warnings: tuple[str, ...]
    source: str
    input_rows: Int64Array | None = None
    rows: CodedRows | None = None


class ValidationCoder:
    """Bins the rows of a validation set block by block."""

    def __init__(self, model: Ensemble, edges: BinEdges, pool: WorkerPool) -> None:
        self._matcher, self._categories = FeatureMatcher(model), model.categories
        self._rows = RowCoder(edges, pool) if edges.in_rows.any() else None
        self._coder = Coder(edges, np.zeros(0, np.int32), pool) if self._rows is None else None
        self._m = edges.n_features
        self._bins: list[UInt8Array] = []
        self._n = 0
        self._infinite: list[SparseRows] = []
        self._infinite_docs: list[Int64Array] = []

    def add(self, parts: Sequence[SparseRows], feature_ids: Int64Array, feature_names: Sequence[str] | None) -> None:
        """Append adjacent rows; there may be more columns than before."""
        n_matched = len(self._matcher.known_columns)
        columns = self._matcher.column_map(feature_ids, feature_names)
        coder = self._coder or self._rows
        if len(columns) > n_matched and coder is not None:
            coder.set_columns(columns)
        pieces: list[RowsToCode] = []
        for rows in parts:
            numbered = with_numbers(rows, columns, self._categories, self._matcher.unseen)
            start = 0
            if self._rows is not None:
                self._rows.add([row_arrays(numbered)])
                start, self._n = len(rows), self._n + len(rows)
            while start < len(rows):
                filled = self._n % CHUNK
                if not filled:
                    self._bins.append(np.empty((self._m, CHUNK), np.uint8))
                stop = min(len(rows), start + CHUNK - filled)
                pieces.append(RowsToCode(row_arrays(numbered), start, stop, filled - start, self._bins[-1]))
                self._n += stop - start
                start = stop
            above = np.isposinf(rows.values)
            if above.any():
                places = np.unique(np.searchsorted(rows.offsets, np.flatnonzero(above), "right") - 1)
                self._infinite.append(take_rows(rows, places))
                self._infinite_docs.append(places + self._n - len(rows))
        if self._coder is not None:
            self._coder.code(pieces)

    @property
    def unseen(self) -> Mapping[int, int]:
        """By feature, the rows with a value of a category that training did not see."""
        return self._matcher.unseen

    def refuse_numbers(self, source: str, tables: Mapping[str, Int64Array]) -> None:
        """Raise DataError as `FeatureMatcher.refuse_numbers`; tables : as `RankingDataset.table_features`."""
        self._matcher.tables = tables
        self._matcher.refuse_numbers(source)

    def finish(
        self,
        labels: Float64Array,
        query_offsets: Int64Array,
        source: str,
        tables: Mapping[str, Int64Array],
        input_rows: Int64Array | None = None,
        strict: bool = False,
    ) -> CodedDataset:
        """Return the set; DataError as `FeatureMatcher.refuse`, the training set being the model."""
        self._matcher.tables = tables
        self._matcher.refuse(source, strict)
        return self.collect(labels, query_offsets, source, self._matcher.warnings(source), input_rows)

    def collect(
        self,
        labels: Float64Array,
        query_offsets: Int64Array,
        source: str,
        warnings: Sequence[str] = (),
        input_rows: Int64Array | None = None,
    ) -> CodedDataset:
        """Return the set, whatever features it has."""
        if self._bins and (filled := self._n % CHUNK):
            self._bins[-1] = np.ascontiguousarray(self._bins[-1][:, :filled])
        return CodedDataset(
            labels,
            query_offsets,
            tuple(self._bins),
            join_rows(self._infinite),
            np.concatenate([np.zeros(0, np.int64), *self._infinite_docs]),
            self._matcher.known_columns,
            tuple(warnings),
            source,
            input_rows,
            None if self._rows is None else self._rows.finish(),
        )


def code_dataset(
    dataset: Unbinned, model: Ensemble, edges: BinEdges, pool: WorkerPool, strict: bool = False
) -> CodedDataset:
    """Code a validation set that is in memory; DataError as `ValidationCoder.finish`."""
    coder = ValidationCoder(model, edges, pool)
    n = len(dataset.labels)
    columns = match_dataset(model, dataset).known_columns
    rows = placed_rows(dataset.features, dataset.texts, columns, model.categories, model.feature_name)
    for first, last in chunks(n, 8 * CHUNK) or [(0, 0)]:  # without rows too, the columns count
        parts = [rows.between(first + a, first + b) for a, b in chunks(last - first, CHUNK)]
        coder.add(parts, dataset.feature_ids, dataset.feature_names)
    judged = dataset.labels, dataset.query_offsets, dataset.source
    return coder.finish(*judged, dataset.table_features, dataset.input_rows, strict)
