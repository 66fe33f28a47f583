"""What is in a file of data: documents, queries, labels, and each feature, read once in constant memory."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lmart.array_types import Float64Array, Int32Array, Int64Array
from lmart.binning.edge_sample import RowSample
from lmart.binning.edges import count_sample, gather_cells
from lmart.data.dataset import SparseRows, even_ranges
from lmart.data.growable_array import GrowableArray
from lmart.formats.documents.blocks import RowBlock, join_blocks
from lmart.formats.documents.feature_table import FeatureTable
from lmart.formats.documents.reading import read_batches, read_dataset
from lmart.formats.read_options import ReadOptions
from lmart.gains import Gain, discount_table
from lmart.kernels.measures.feature_facts import (
    NDCG_UNITS,
    FeatureCells,
    FeatureTotals,
    JudgedQueries,
    add_feature_facts,
)
from lmart.kernels.ranking.ordering import order_documents
from lmart.kernels.row_arrays import contiguous_rows
from lmart.threads import WorkerPool

CUTOFF = 10
SAMPLED_ROWS = 20_000  # at most, for medians, distinct values and drift
MOST_LABELS = 1000  # distinct labels that are counted
DOCUMENTS_A_CALL = 4096
INITIAL_TOTALS = {"lowest": math.inf, "highest": -math.inf}  # of a feature without values; the other totals start at 0


@dataclass(frozen=True, eq=False)
class SampledValues:
    """The values of a feature in a sample of rows.

    numbers : float64[...], ascending, those that are written
    absent  : rows without the feature, which count as 0
    missing : rows whose value is missing
    """

    numbers: Float64Array
    absent: int
    missing: int

    def __len__(self) -> int:
        return len(self.numbers) + self.absent + self.missing

    @property
    def distinct(self) -> int:
        """How many values differ, missing ones left out."""
        n = int((np.diff(self.numbers) > 0).sum()) + (len(self.numbers) > 0)
        first, after = np.searchsorted(self.numbers, 0.0), np.searchsorted(self.numbers, 0.0, "right")
        return n + int(self.absent > 0 and first == after)

    @property
    def median(self) -> float | None:
        """The middle value, or the mean of both; None when all are missing."""
        n = len(self) - self.missing
        return (self._ranked((n - 1) // 2) + self._ranked(n // 2)) / 2 if n else None

    def shares_up_to(self, values: Float64Array) -> Float64Array:
        """Return the shares of rows with at most each of these values; missing values are below all numbers."""
        counts = np.searchsorted(self.numbers, values, "right") + self.absent * (values >= 0) + self.missing
        shares: Float64Array = counts / max(1, len(self))
        return shares

    def range_without(self, edge: float) -> tuple[float, ...]:
        """Return the smallest and the largest value without a share at each end; nothing when all are missing."""
        n = len(self) - self.missing
        return (self._ranked(int(edge * (n - 1))), self._ranked(n - 1 - int(edge * (n - 1)))) if n else ()

    def histogram(self, low: float, high: float, n_bins: int) -> Int64Array:
        """Return how many values lie in equal parts of a range, what lies beyond in the first and last: int64[n_bins].

        A value between two parts belongs to the lower one.
        """
        inner = np.linspace(low, high, n_bins + 1)[1:-1]
        below = np.searchsorted(self.numbers, inner, "right") + self.absent * (inner >= 0)
        counts: Int64Array = np.diff(below, prepend=0, append=len(self) - self.missing)
        return counts

    def _ranked(self, rank: int) -> float:
        first_zero = int(np.searchsorted(self.numbers, 0.0))
        if first_zero <= rank < first_zero + self.absent:
            return 0.0
        return float(self.numbers[rank if rank < first_zero else rank - self.absent])


@dataclass(frozen=True, eq=False)
class FeatureFacts:
    """What one feature is like.

    name      : of the feature, its number in data without names
    lowest, highest : of its values, absent ones (0) included; None: all are missing
    zeros     : documents where it is 0 or absent
    missing   : documents where its value is missing
    sampled   : its values in a sample of rows
    varying   : queries in which it has more than one value
    high_first, low_first : NDCG@10 of ranking by it alone, by descending and by ascending value; None without labels
    equal_to  : the first feature with the same values in all documents, if that is another one
    """

    name: str
    lowest: float | None
    highest: float | None
    zeros: int
    missing: int
    sampled: SampledValues
    varying: int
    high_first: float | None
    low_first: float | None
    equal_to: str | None

    @property
    def is_constant(self) -> bool:
        """Whether all documents have the same value, or none has one."""
        return self.lowest is None or (self.lowest == self.highest and not self.missing)

    @property
    def best_ndcg(self) -> float:
        """The larger NDCG@10 of both directions, -1 without labels."""
        return max((value for value in (self.high_first, self.low_first) if value is not None), default=-1.0)

    def to_json(self) -> dict[str, Any]:
        """Return the feature as `lmart show DATA --json` prints it."""
        return {
            "feature": self.name,
            "min": self.lowest,
            "median": self.sampled.median,
            "max": self.highest,
            "zeros": self.zeros,
            "missing": self.missing,
            "distinct": self.sampled.distinct,
            "varying_queries": self.varying,
            "ndcg@10_descending": self.high_first,
            "ndcg@10_ascending": self.low_first,
            "constant": self.is_constant,
            "equal_to": self.equal_to,
        }


@dataclass(frozen=True, eq=False)
class DataSummary:
    """What is in a file of data.

    query_ids   : of all queries, in order; None when the data has none
    query_sizes : int64[n_queries], documents of each
    labels      : documents by label, ascending; None when there are no labels, empty when too many differ
    label_range : the smallest and the largest label
    one_label   : queries whose documents all have one label, which rank nothing
    none_relevant : queries without a label above 0
    data_order  : NDCG@10 of the order of the data; None without labels or queries
    sampled     : rows in the sample
    """

    path: str
    documents: int
    query_ids: Sequence[str] | None
    query_sizes: Int64Array
    labels: Mapping[float, int] | None
    label_range: tuple[float, float] | None
    one_label: int
    none_relevant: int
    data_order: float | None
    sampled: int
    features: Sequence[FeatureFacts]

    def to_json(self, features: Sequence[FeatureFacts] | None = None) -> dict[str, Any]:
        """Return the content of `lmart show DATA --json`; `features` are those that it lists, None: all."""
        sizes = self.query_sizes
        return {
            "documents": self.documents,
            "queries": None
            if self.query_ids is None
            else {
                "count": len(sizes),
                "smallest": int(sizes.min()),
                "median": float(np.median(sizes)),
                "largest": int(sizes.max()),
                "one_label": self.one_label,
                "none_relevant": self.none_relevant,
            },
            "labels": None if self.labels is None else {f"{label:g}": count for label, count in self.labels.items()},
            "label_range": self.label_range,
            "ndcg@10": self.data_order,
            "sampled": self.sampled,
            "features": [feature.to_json() for feature in (self.features if features is None else features)],
        }


class _Worker:
    """Totals and scratch space of one worker."""

    def __init__(self) -> None:
        self.totals = FeatureTotals(*(np.zeros(0, _dtype(name)) for name in FeatureTotals._fields))
        self.places: Int32Array = np.zeros(0, np.int32)
        self.cells: FeatureCells | None = None

    def reserve(self, n_features: int, n_cells: int) -> None:
        """Extend the totals to n_features, and the scratch space to a query of n_cells."""
        if len(self.places) < n_features:
            self.totals = FeatureTotals(
                *(_extended(array, 2 * n_features, name) for name, array in self.totals._asdict().items())
            )
            self.places = np.full(2 * n_features, -1, np.int32)
            self.cells = None
        if self.cells is None or len(self.cells.values) < n_cells:
            of_query = 2 * n_cells
            features = min(of_query, len(self.places))
            self.cells = FeatureCells(
                self.places,
                np.empty(features, np.int32),
                np.empty(features + 1, np.int64),
                np.empty(of_query, np.int32),
                np.empty(of_query),
                np.empty(CUTOFF),
                np.empty(CUTOFF, np.int32),
            )


def _dtype(name: str) -> npt.DTypeLike:
    return np.float64 if name in INITIAL_TOTALS else np.uint64 if name == "content" else np.int64


def _extended(array: npt.NDArray[Any], size: int, name: str) -> npt.NDArray[Any]:
    return np.concatenate([array, np.full(size - len(array), INITIAL_TOTALS.get(name, 0), array.dtype)])


def _add(worker: _Worker, rows: Any, queries: JudgedQueries, first: int, last: int) -> int:
    assert worker.cells is not None
    return int(add_feature_facts(rows, queries, first, last, worker.cells, worker.totals))


class _Summarizer:
    """Adds up what is in the rows, batch by batch."""

    def __init__(self, pool: WorkerPool, gain: Gain) -> None:
        self._pool, self._gain = pool, gain
        self._workers = [_Worker() for _ in range(pool.threads)]
        self._rest: RowBlock | None = None  # the last query so far, which the next blocks may continue
        self.documents = 0
        self.query_ids: list[str] | None = []
        self.sizes = GrowableArray(np.int64)
        self.labels: Counter[float] | None = Counter()
        self.label_range = (math.inf, -math.inf)
        self.one_label = self.none_relevant = 0
        self.in_order = 0
        self.sample = RowSample(0, limit=SAMPLED_ROWS)

    def add(self, blocks: Sequence[RowBlock], n_features: int) -> None:
        """Add adjacent blocks; their last query waits for the next ones."""
        block = join_blocks([*([] if self._rest is None else [self._rest]), *blocks])
        if block.query_ids is None:
            self._rest = None
            self._add_queries(block, len(block), n_features)
            return
        start = int(block.query_offsets[-2])
        self._add_queries(block, start, n_features)
        self._rest = _after(block, start)

    def summary(self, path: str, names: Sequence[str], columns: Int64Array) -> DataSummary:
        """Return what was added.

        columns : int64[m], the column of each feature
        """
        totals = self._finish(len(columns))
        is_judged = self.labels is not None and self.query_ids is not None
        labels = None
        if self.labels is not None:
            labels = dict(sorted(self.labels.items())) if len(self.labels) <= MOST_LABELS else {}
        return DataSummary(
            path,
            documents=self.documents,
            query_ids=self.query_ids,
            query_sizes=self.sizes.finish(),
            labels=labels,
            label_range=None if self.labels is None else self.label_range,
            one_label=self.one_label,
            none_relevant=self.none_relevant,
            data_order=float(self._mean_ndcg(np.zeros(1, np.int64))[0]) if is_judged else None,
            sampled=len(self.sample),
            features=self._facts(names, columns, totals, is_judged),
        )

    def _finish(self, n_features: int) -> FeatureTotals:
        """Add the last query, and return the totals."""
        if self._rest is not None:
            self._add_queries(self._rest, len(self._rest), n_features)
        for worker in self._workers:
            worker.reserve(n_features, 0)
        columns = zip(*(worker.totals for worker in self._workers), strict=True)
        joined = []
        for name, arrays in zip(FeatureTotals._fields, columns, strict=True):
            join = {"lowest": np.minimum, "highest": np.maximum}.get(name, np.add)
            joined.append(join.reduce([array[:n_features] for array in arrays]))
        return FeatureTotals(*joined)

    def _facts(
        self, names: Sequence[str], columns: Int64Array, totals: FeatureTotals, is_judged: bool
    ) -> list[FeatureFacts]:
        """Return what each feature is like."""
        samples = _sampled_values(self.sample, columns)
        values, missing = totals.n_values[columns], totals.n_missing[columns]
        zeros = self.documents - values - missing
        lowest, highest = totals.lowest[columns], totals.highest[columns]
        lowest = np.where(zeros > 0, np.minimum(lowest, 0.0), lowest)
        highest = np.where(zeros > 0, np.maximum(highest, 0.0), highest)
        first_equal: dict[tuple[int, ...], str] = {}
        equal = [
            first_equal.setdefault(content, name)
            for name, content in zip(names, _rows(totals.content[columns], values, missing), strict=True)
        ]
        orders = (totals.high_first, totals.low_first) if is_judged else ()
        ndcg = [self._mean_ndcg(order[columns]) for order in orders]
        counts = _rows(zeros, missing, totals.n_varying[columns])
        bounds = _rows(lowest, highest, *ndcg)
        return [
            FeatureFacts(
                name,
                lowest=low if low <= high else None,
                highest=high if low <= high else None,
                zeros=n_zeros,
                missing=n_missing,
                sampled=sampled,
                varying=n_varying,
                high_first=judged[0] if judged else None,
                low_first=judged[1] if judged else None,
                equal_to=first if first != name else None,
            )
            for name, sampled, first, (n_zeros, n_missing, n_varying), (low, high, *judged) in zip(
                names, samples, equal, counts, bounds, strict=True
            )
        ]

    def _mean_ndcg(self, above_order: Int64Array) -> Float64Array:
        """Return the mean NDCG@10 of orders, from the sums of what they have more than that of the data."""
        means: Float64Array = (self.in_order + above_order) / NDCG_UNITS / max(1, len(self.sizes))
        return means

    def _add_queries(self, block: RowBlock, n_rows: int, n_features: int) -> None:
        """Add the queries in the first rows of a block."""
        if not n_rows:
            return
        n_queries = int(np.searchsorted(block.query_offsets, n_rows))
        offsets = block.query_offsets[: n_queries + 1]
        rows = block.features.between(0, n_rows)
        labels = np.zeros(n_rows) if block.labels is None else block.labels[:n_rows]
        self._count(block, labels, offsets)
        self.sample.add([rows], self.documents, self._pool)
        judged = JudgedQueries(offsets, *self._judge(labels, offsets), discount_table(CUTOFF), self.documents)
        n_cells = int(np.diff(rows.offsets[offsets]).max())
        calls = [
            (contiguous_rows(rows.offsets, rows.columns, rows.values), judged, first, last)
            for first, last in even_ranges(offsets, DOCUMENTS_A_CALL)
        ]
        workers = self._workers[: max(1, min(len(calls), self._pool.threads))]
        for worker in workers:
            worker.reserve(n_features, n_cells)
        self.in_order += sum(self._pool.run(_add, calls, workers))
        self.documents += n_rows

    def _count(self, block: RowBlock, labels: Float64Array, offsets: Int64Array) -> None:
        """Count labels and queries."""
        n_queries = len(offsets) - 1
        if block.query_ids is None:
            self.query_ids = None
        elif self.query_ids is not None:
            self.query_ids += block.query_ids[:n_queries]
            self.sizes.extend(n_queries)[:] = np.diff(offsets)
        if block.labels is None:
            self.labels = None
            return
        self.label_range = (
            min(self.label_range[0], float(labels.min())),
            max(self.label_range[1], float(labels.max())),
        )
        largest = np.maximum.reduceat(labels, offsets[:-1])
        self.one_label += int((largest == np.minimum.reduceat(labels, offsets[:-1])).sum())
        self.none_relevant += int((largest <= 0).sum())
        if self.labels is not None and len(self.labels) <= MOST_LABELS:
            values, counts = np.unique(labels, return_counts=True)
            self.labels.update(dict(zip(values.tolist(), counts.tolist(), strict=True)))

    def _judge(self, labels: Float64Array, offsets: Int64Array) -> tuple[Float64Array, Float64Array]:
        """Return the gain of each document, and the inverse of the ideal DCG of each query, 0 where that is 0."""
        gains = self._gain.scaled(labels, offsets)
        order = np.arange(len(gains), dtype=np.int32)
        order_documents(gains, offsets, 0, len(offsets) - 1, order)
        ranks = np.arange(len(gains)) - np.repeat(offsets[:-1], np.diff(offsets))
        discounts = np.append(discount_table(CUTOFF), 0.0)[np.minimum(ranks, CUTOFF)]
        ideal = np.add.reduceat(gains[order] * discounts, offsets[:-1])
        return gains, np.divide(1.0, ideal, out=np.zeros(len(ideal)), where=ideal > 0)


def _after(block: RowBlock, start: int) -> RowBlock:
    """Return copies of the rows from a row on, the first of their query."""
    part = block.features.between(start, len(block))
    return RowBlock(
        SparseRows(part.offsets, part.columns.copy(), part.values.copy()),
        None if block.labels is None else block.labels[start:].copy(),
        None if block.query_ids is None else block.query_ids[-1:],
        np.array([0, len(part)], np.int64),
        False,
        None,
        block.first_line,
    )


def summarize_data(path: str, options: ReadOptions, gain: Gain, pool: WorkerPool) -> DataSummary:
    """Read a file of data once and return what is in it. DataError when it cannot be read."""
    summarizer = _Summarizer(pool, gain)
    if options.group_by_qid:  # which needs all rows in memory
        dataset = read_dataset([path], options, pool)
        ids, offsets = list(dataset.query_ids), dataset.query_offsets
        columns = np.arange(dataset.n_features)
        summarizer.add([RowBlock(dataset.features, dataset.labels, ids, offsets, False, None, 1)], len(columns))
        return summarizer.summary(path, [dataset.feature_name(column) for column in columns.tolist()], columns)
    table = FeatureTable()
    for batch in read_batches([path], options, pool, table):
        summarizer.add(batch.blocks, len(table))
    if table.names is not None:
        return summarizer.summary(path, table.names, np.arange(len(table)))
    columns, _ = table.ascending()
    return summarizer.summary(path, [str(index) for index in table.ids[columns].tolist()], columns)


def _rows(*arrays: npt.NDArray[Any]) -> Iterator[tuple[Any, ...]]:
    """Yield the values at each place of all arrays, as Python numbers."""
    return zip(*(array.tolist() for array in arrays), strict=True)


def _sampled_values(sample: RowSample, columns: Int64Array) -> list[SampledValues]:
    """Return the values of each feature in the sample; `columns` has the column of each, int64[m]."""
    counts = count_sample(sample, len(columns))[:, columns]
    places = np.empty(len(columns), np.int32)
    places[columns] = np.arange(len(columns))
    numbers = gather_cells(sample.rows, places, 0, counts[0])
    ends = np.cumsum(counts[0])
    return [
        SampledValues(np.sort(numbers[end - n_numbers : end]), len(sample) - n_numbers - n_missing, n_missing)
        for end, n_numbers, n_missing in zip(ends.tolist(), *counts.tolist(), strict=True)
    ]
