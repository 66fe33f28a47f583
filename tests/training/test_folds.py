"""Folds of one's own: by the name of each query's fold, and by values that keep queries together."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.datasets import random_dataset
from hypothesis import given
from hypothesis import strategies as st

from lmart.errors import DataError
from lmart.training.folds import common_values, dealt_groups, named_folds, values_of_queries


def test_named_folds_are_in_natural_order() -> None:
    folds = named_folds(["x", "10", "9", "10", "a"], "f.tsv")
    assert (folds.names, folds.of_query.tolist(), len(folds)) == (("9", "10", "a", "x"), [3, 1, 0, 1, 2], 4)
    assert folds.name(1) == "10"


def test_one_fold_is_refused() -> None:
    with pytest.raises(DataError, match="all queries of the data are in fold '1'; cross-validation needs at least two"):
        named_folds(["1", "1"], "f.tsv")


@given(st.lists(st.integers(0, 9), min_size=1, max_size=60), st.integers(2, 9), st.integers(0, 2**63 - 1))
def test_values_stay_together_and_folds_are_even(values: list[int], n_folds: int, seed: int) -> None:
    texts = list(map(str, values))
    if n_folds > len(set(texts)):
        with pytest.raises(DataError, match="too few for"):
            dealt_groups(texts, n_folds, seed, "f.tsv")
        return
    folds = dealt_groups(texts, n_folds, seed, "f.tsv")
    assert len(folds) == n_folds
    pairs = set(zip(texts, folds.of_query.tolist(), strict=True))
    assert len(pairs) == len(set(texts))  # one fold a value
    sizes = np.bincount(folds.of_query, minlength=n_folds)
    largest = max(texts.count(value) for value in set(texts))
    assert sizes.min() > 0 and sizes.max() - sizes.min() <= largest
    backwards = dealt_groups(texts[::-1], n_folds, seed, "f.tsv").of_query[::-1]
    assert backwards.tolist() == folds.of_query.tolist()


def test_the_seed_decides_which_values_meet() -> None:
    values = list(map(str, range(40)))
    one, other = (dealt_groups(values, 4, seed, "f").of_query.tolist() for seed in (0, 1))
    assert one != other


def test_queries_without_a_fold_are_named() -> None:
    data = random_dataset(1, n_queries=6)
    ids = list(data.query_ids)
    names = dict.fromkeys(ids, "a")
    assert values_of_queries(data, names, "fold", "f.tsv") == ["a"] * 6
    for missing in ids[:4]:
        del names[missing]
    with pytest.raises(DataError, match=r"4 queries of data without a fold: .* and 1 more; give each query a line"):
        values_of_queries(data, names, "fold", "f.tsv")
    with pytest.raises(DataError, match="no query of the data has a fold: it has 'other'"):
        values_of_queries(data, {"other": "a"}, "fold", "f.tsv")


def test_rows_of_a_query_agree() -> None:
    data = random_dataset(1, n_queries=2)
    n, first = data.n_documents, int(data.query_offsets[1])
    values = ["u"] * first + ["v"] * (n - first)
    assert common_values(data, values, "value") == ["u", "v"]
    with pytest.raises(DataError, match="has no value; give it one"):
        common_values(data, ["u"] * first + [""] * (n - first), "value")
    if first > 1:
        with pytest.raises(DataError, match="differ in value: 'u' and 'w'; give them one"):
            common_values(data, ["w", *values[1:]], "value")
