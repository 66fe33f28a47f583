"""Categories of a training set: their order, and the places of rare values by the other queries."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import reference.categories as reference
from hypothesis import given
from hypothesis import strategies as st

from lmart.binning import categories as binning
from lmart.data.dataset import RankingDataset, SparseRows
from lmart.errors import DataError
from lmart.gains import Gain
from lmart.settings import TrainSettings
from lmart.threads import WorkerPool

DOCUMENT = st.tuples(st.none() | st.integers(0, 4), st.integers(0, 2))
QUERIES = st.lists(st.lists(DOCUMENT, min_size=1, max_size=4), min_size=1, max_size=8)


def dataset(queries: list[list[tuple[int | None, int]]]) -> RankingDataset:
    """Queries of documents with a value, None: missing, of feature 3, and a label; feature 5 is a number."""
    documents = [document for query in queries for document in query]
    values = [[np.nan if value is None else value, k] for k, (value, _) in enumerate(documents)]
    n = len(documents)
    rows = SparseRows(
        np.arange(n + 1) * 2, np.tile(np.array([0, 1], np.int32), n), np.array(values, np.float64).ravel()
    )
    offsets = np.cumsum([0, *map(len, queries)])
    labels = np.array([label for _, label in documents], np.float64)
    return RankingDataset(rows, np.array([3, 5]), labels, offsets, [str(q) for q in range(len(queries))])


@given(QUERIES)
def test_order_and_places_are_those_of_the_slow_twin(queries: list[list[tuple[int | None, int]]]) -> None:
    data, pool = dataset(queries), WorkerPool(1)
    found = binning.number_categories(data, [0], Gain(), "zero", 0, pool)
    (made,) = found.categories
    with_gains = [[(value, 2.0**label - 1.0) for value, label in query] for query in queries]
    held = sorted({value for query in queries for value, _ in query if value is not None})
    effects = reference.fit(with_gains, held, binning.STEPS)
    order = [effects[value] for value in made.values if isinstance(value, int)]
    assert sorted(made.values) == held
    assert all(a <= b + 1e-6 for a, b in pairwise(order))
    assert all(effect < 1e-6 for effect in order[: made.unseen])
    assert all(effect > -1e-6 for effect in order[made.unseen :])
    folds = binning.folds_of_queries(0, len(queries), 0).tolist()
    numbers = iter(found.held_out[0].tolist())
    for query, fold in zip(queries, folds, strict=True):
        others = reference.by_others(with_gains, folds, fold, effects)
        for value, _ in query:
            number = next(numbers)
            if value is None:
                assert np.isnan(number)
                continue
            own = reference.number(made.values, made.unseen, value)
            curvature = reference.sums(with_gains, effects)[value][2]
            if curvature == 0.0:
                assert number == own
            else:  # between the values whose effects are around that by the other queries
                number_of = {v: reference.number(made.values, made.unseen, v) for v in held}
                below = [number_of[v] for v in held if effects[v] < others[value] - 1e-6]
                above = [number_of[v] for v in held if effects[v] > others[value] + 1e-6]
                assert max(below, default=-np.inf) <= number <= min(above, default=np.inf)


def test_values_of_one_fold_are_where_unseen_ones_are() -> None:
    """They tell nothing but their own labels there."""
    others: list[list[tuple[int | None, int]]] = [[(3, 1), (4, 0)] for _ in range(30)]
    data = dataset([[(1, 1), (2, 0)], *others])
    found = binning.number_categories(data, [0], Gain(), "zero", 0, WorkerPool(1))
    unseen = found.categories[0].unseen_number
    assert found.held_out[0][:2].tolist() == [unseen, unseen]
    assert found.of_model[0][0] > unseen > found.of_model[0][1]


def test_frequent_values_have_their_own_place() -> None:
    data = dataset([[(1, k % 3 == 0), (2, k % 3 > 0)] for k in range(200)])
    found = binning.number_categories(data, [0], Gain(), "zero", 0, WorkerPool(1))
    assert not found.of_model
    assert found.categories[0].values == (1, 2)


def test_a_category_of_whole_queries_goes_by_frequency() -> None:
    queries = [[(value, 1), (value, 0)] for value in (4, 2, 2, 3, 3, 3)]
    found = binning.number_categories(dataset(queries), [0], Gain(), "zero", 0, WorkerPool(1))  # type: ignore[arg-type]
    assert found.categories[0].values == (3, 2, 4)
    assert found.categories[0].unseen == 3
    assert not found.of_model


def test_threads_and_unwritten_cells() -> None:
    rng = np.random.default_rng(3)
    queries = [[(int(v), int(label)) for v, label in rng.integers(0, (9, 3), (6, 2))] for _ in range(4000)]
    data = dataset(queries)  # type: ignore[arg-type]
    found = binning.number_categories(data, [0], Gain(), "zero", 0, WorkerPool(1))
    with WorkerPool(3) as pool:
        again = binning.number_categories(data, [0], Gain(), "zero", 0, pool)
    assert found.categories[0].values == again.categories[0].values
    assert np.array_equal(found.held_out[0], again.held_out[0])
    written = data.features.values != 0.0
    offsets = np.concatenate([[0], np.cumsum(written.reshape(-1, 2).sum(axis=1))])
    sparse = SparseRows(offsets, data.features.columns[written], data.features.values[written])
    unwritten = binning.number_categories(replace(data, features=sparse), [0], Gain(), "zero", 0, WorkerPool(1))
    assert unwritten.categories[0].values == found.categories[0].values
    assert unwritten.categories[0].find(np.zeros(1))[0].tolist() == [0.0]


def test_fractions_and_unknown_names_are_refused() -> None:
    data = dataset([[(1, 1), (2, 0)]])
    data.features.values[0] = 0.5
    with pytest.raises(DataError, match=r"feature '3' is a category, but has the value 0\.5"):
        binning.bin_training_set(data, TrainSettings(categorical="3"), WorkerPool(1))
    with pytest.raises(DataError, match="no feature '4', which --categorical names"):
        binning.bin_training_set(data, TrainSettings(categorical="4"), WorkerPool(1))
