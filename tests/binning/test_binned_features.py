"""Bin edges of a data set, and its documents in bins."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import reference.random_numbers
from helpers.datasets import dataset, random_dataset
from hypothesis import given
from hypothesis import strategies as st

from lmart.binning.binned_features import Coder, RowsToCode, bin_dataset, bin_features, code_features, row_arrays
from lmart.binning.edge_sample import RowSample
from lmart.binning.edges import BinEdges, fit_bin_edges
from lmart.data.dataset import RankingDataset, SparseRows
from lmart.formats.models.lmart_json import model_to_json
from lmart.settings import TrainSettings
from lmart.threads import WorkerPool
from lmart.training.boosting import train

POOL = WorkerPool(1)
LARGEST = float(np.finfo(np.float64).max)
numbers = st.one_of(
    st.floats(allow_nan=True, allow_infinity=False),
    st.integers(-3, 3).map(float),
    st.integers(2**53, 2**53 + 40).map(float),
)


def edges_of(data: RankingDataset, absent: str = "zero", max_bins: int = 255) -> BinEdges:
    return fit_bin_edges(data, max_bins, absent, 1, 0, POOL)


def sparse(rows: list[dict[int, float]], n_columns: int) -> RankingDataset:
    offsets = np.cumsum([0, *map(len, rows)])
    columns = np.array([c for row in rows for c in sorted(row)], np.int32)
    values = np.array([row[c] for row in rows for c in sorted(row)], np.float64)
    n = len(rows)
    ids = np.arange(1, n_columns + 1)
    return RankingDataset(SparseRows(offsets, columns, values), ids, np.zeros(n), np.array([0, n]), ["q"])


@given(st.lists(numbers, min_size=1, max_size=60), st.sampled_from([2, 5, 255]))
def test_thresholds_split_the_raw_values_as_the_bins_do(column: list[float], max_bins: int) -> None:
    data = dataset([0] * len(column), ["q"] * len(column), [[x] for x in column])
    edges = edges_of(data, max_bins=max_bins)
    if not edges.n_features:
        assert len({x + 0.0 for x in column if not math.isnan(x)}) + any(map(math.isnan, column)) < 2 or all(
            map(math.isnan, column)
        )
        return
    codes = code_features(data, edges, POOL).columns[0]
    n_cuts = int(edges.missing_bins[0]) - 1 + bool(edges.has_missing[0])
    for code in range(n_cuts):
        threshold = edges.threshold(0, code)
        assert math.isfinite(threshold)
        for x, own in zip(column, codes, strict=True):
            if math.isnan(x):
                assert own == edges.missing_bins[0]
            else:
                assert (x <= threshold) == (own <= code)


def test_absent_is_zero_or_missing_and_nan_is_always_missing() -> None:
    rows = [{0: 1.0}, {}, {0: -1.0}, {0: math.nan}, {0: 0.0}]
    data = sparse(rows, 1)
    for absent, expected in (("zero", [2, 1, 0, 3, 1]), ("missing", [2, 3, 0, 3, 1])):
        edges = edges_of(data, absent)
        assert code_features(data, edges, POOL).columns.tolist() == [expected]
        assert edges.has_missing.tolist() == [True]


def test_written_and_dropped_zeros_are_the_same() -> None:
    written = sparse([{0: 1.0, 1: 0.0}, {0: 0.0, 1: 2.0}], 2)
    dropped = sparse([{0: 1.0}, {1: 2.0}], 2)
    one, other = edges_of(written), edges_of(dropped)
    assert one.edges.tolist() == other.edges.tolist()
    assert (bin_features(written, one, 1, POOL).bins == bin_features(dropped, other, 1, POOL).bins).all()


def test_constant_columns_are_left_out_and_a_missing_bin_saves_one() -> None:
    nan = math.nan
    data = dataset([0, 1, 2], ["q"] * 3, [[1, 5, nan, 2], [1, 6, nan, nan], [1, 7, nan, 2]])
    edges = edges_of(data)
    assert edges.columns.tolist() == [1, 3]
    assert edges.has_missing.tolist() == [False, True]
    assert edges.bin_offsets.tolist() == [0, 3, 5]
    assert edges.threshold(1, 0) == LARGEST


def test_infinite_values_keep_their_side() -> None:
    data = dataset([0] * 4, ["q"] * 4, [[-math.inf], [-1.0], [1.0], [math.inf]])
    edges = edges_of(data)
    assert edges.edges.tolist() == [-LARGEST, 0.0, 1.0] and not edges.all_finite[0]


def test_unknown_columns_are_skipped_and_absent_ones_filled() -> None:
    train = dataset([0, 1], ["q"] * 2, [[1.0, 2.0], [3.0, 4.0]])
    edges = edges_of(train)
    other = dataset([0, 1], ["q"] * 2, [[9.0, 3.5], [9.0, 0.5]])
    for columns, expected in (([-1, 1], [[0, 0], [1, 0]]), ([7, -1], [[0, 0], [0, 0]])):
        bins = np.empty((2, 2), np.uint8)
        Coder(edges, np.array(columns, np.int32), POOL).code([RowsToCode(row_arrays(other.features), 0, 2, 0, bins)])
        assert bins.tolist() == expected


@pytest.mark.parametrize("threads", [1, 3])
def test_both_layouts_hold_the_same_codes(threads: int) -> None:
    data = random_dataset(5, n_queries=80)
    with WorkerPool(threads) as pool:
        binned = bin_features(data, edges_of(data), 1, pool)
    offsets = binned.edges.bin_offsets
    for row in range(0, data.n_documents, 7):
        listed = binned.other_bins[binned.row_offsets[row] : binned.row_offsets[row + 1]].tolist()
        own = binned.bins[:, row].astype(int)
        expected = [int(offsets[f]) + c for f, c in enumerate(own) if c != binned.most_frequent_bins[f]]
        assert listed == expected
    sums = np.add.reduceat(binned.bin_counts, offsets[:-1])
    assert sums.tolist() == [data.n_documents] * binned.edges.n_features


def wide_dataset(seed: int, n_queries: int = 40) -> RankingDataset:
    """Return rows of 3 features that most rows have, and about 5 of 400 others, of numbers and missing values."""
    rng, sizes = np.random.default_rng(seed), np.full(n_queries, 8)
    n = int(sizes.sum())
    usual = [np.flatnonzero(rng.random(3) < 0.8) for _ in range(n)]
    own = [np.unique([*some, *(3 + (400 ** rng.random(5)).astype(int))]) for some in usual]
    columns = np.concatenate(own).astype(np.int32)
    values = rng.choice([0.0, 1.0, -1.0, 2.5, math.nan], len(columns))
    labels = np.array([math.fsum(cells) % 3 // 1 for cells in own])
    rows = SparseRows(np.cumsum([0, *map(len, own)]), columns, values)
    ids = [str(query) for query in range(n_queries)]
    return RankingDataset(rows, np.arange(1, 404) * 7, labels, np.concatenate([[0], np.cumsum(sizes)]), ids)


@pytest.mark.parametrize("absent", ["zero", "missing"])
@pytest.mark.parametrize("threads", [1, 3])
def test_a_layout_by_rows_is_that_of_columns(absent: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    data = wide_dataset(4)
    with WorkerPool(threads) as pool:
        by_rows = bin_dataset(data, 255, absent, 3, 0, pool).features
        monkeypatch.setattr("lmart.binning.edges.WIDE", 1 << 40)
        by_columns = bin_dataset(data, 255, absent, 3, 0, pool).features
    assert by_rows.edges.in_rows.any() and not by_rows.edges.in_rows.all() and not by_columns.edges.in_rows.any()
    assert len(by_columns.bins) == by_columns.edges.n_features > len(by_rows.bins) > 0
    for name in ("bin_counts", "most_frequent_bins", "row_offsets", "other_bins"):
        assert getattr(by_rows, name).tolist() == getattr(by_columns, name).tolist(), name
    documents = np.arange(0, data.n_documents, 3, dtype=np.int32)
    for f in range(by_rows.edges.n_features):
        found = by_rows.bins_of_rows(f, documents)
        assert found[documents].tolist() == by_columns.bins[f][documents].tolist()


@pytest.mark.parametrize(
    "chosen",
    [
        {"trees": 6, "rankers": 1, "min_docs": 3, "early_stop": 2},
        {"trees": 8, "rankers": 4, "min_docs": 2, "linear": 0.4, "sample": 0.6},
        {"trees": 4, "tree": "oblivious", "absent": "missing", "min_docs": 4, "features": 0.5},
        {"trees": 4, "rankers": 1, "monotone": "7:+1,35:-1", "min_docs": 2},
    ],
)
def test_models_of_wide_data_are_those_of_columns(chosen: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    settings, found = TrainSettings(**chosen), []
    for wide in (8, 1 << 40):
        monkeypatch.setattr("lmart.binning.edges.WIDE", wide)
        result = train(wide_dataset(4), [wide_dataset(5, 20)], settings, POOL)
        found.append((model_to_json(result.ensemble), result.validation, result.scores.tolist()))
    assert found[0] == found[1]


@pytest.mark.slow
def test_more_than_65536_bins_are_numbered_wider() -> None:
    rng = np.random.default_rng(0)
    data = dataset([0] * 300, ["q"] * 300, rng.normal(size=(300, 260)))
    binned = bin_features(data, edges_of(data), 1, POOL)
    assert binned.edges.n_bins > 65536 and binned.other_bins.dtype == np.uint32


def test_a_big_set_is_sampled_by_row_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lmart.binning.edge_sample.SAMPLE_LIMIT", 100)
    data = random_dataset(3, n_queries=60)
    edges = edges_of(data)
    assert 25 < np.diff(edges.edge_offsets).max() < 100
    assert edges.edges.tolist() == edges_of(data).edges.tolist()


@pytest.mark.parametrize("size", [1, 7, 64])
def test_rows_that_come_bit_by_bit_leave_the_sample_of_all(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr("lmart.binning.edge_sample.SAMPLE_LIMIT", 40)
    rng = np.random.default_rng(size)
    rows = [{c: float(rng.normal()) for c in range(6) if rng.random() < 0.8} for _ in range(500)]
    features = sparse(rows, 6).features
    sample = RowSample(9)
    for first in range(0, 500, 3 * size):
        stops = range(first, min(500, first + 3 * size), size)
        sample.add([features.between(a, min(a + size, 500)) for a in stops], first, POOL)
        sample.expect(500)
    offsets, starts, columns, values = sample.rows
    expected = reference.random_numbers.sample_rows(500, 40, 9)
    assert len(sample) == len(expected) and not sample.has_every_row
    for i, row in enumerate(expected):
        own = columns[starts[i] : starts[i] + offsets[i + 1] - offsets[i]].tolist()
        assert dict(zip(own, values[offsets[i] : offsets[i + 1]].tolist(), strict=True)) == rows[row]


@pytest.mark.parametrize("absent", ["zero", "missing"])
def test_features_that_no_split_can_use_are_left_out_and_nothing_else_changes(absent: str) -> None:
    data = random_dataset(4, n_queries=30, n_features=4)
    n = data.n_documents
    rare = [{4: 1.0} if row % (n // 3) == 1 else {} for row in range(n)]  # four or fewer documents have column 4
    flat = [{5: 2.0 if row % (n // 3) == 2 else 7.0} for row in range(n)]  # all have column 5, few another value
    rows = []
    for row in range(n):
        part = data.features.between(row, row + 1)
        rows.append(dict(zip(part.columns.tolist(), part.values.tolist(), strict=True)) | rare[row] | flat[row])
    wide = replace(data, features=sparse(rows, 6).features, feature_ids=np.arange(1, 7))
    settings = TrainSettings(trees=5, rankers=1, min_docs=5, min_hessian=0.0, features=0.5, absent=absent)
    every, useful = (bin_dataset(wide, 255, absent, least, 0, POOL) for least in (1, 5))
    assert every.features.edges.columns.tolist() == [0, 1, 2, 4, 5]
    assert useful.features.edges.columns.tolist() == [0, 1, 2]
    assert useful.features.edges.varying.tolist() == [0, 1, 2, 4, 5]
    one, other = (model_to_json(train(binned, [], settings, POOL).ensemble) for binned in (every, useful))
    assert one == other
