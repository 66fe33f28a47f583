"""Categories in training: NDCG@10 and seconds a tree, LightGBM and CatBoost beside it where they are installed.

    python tests/bench/categories.py [SETS]      SETS: how many generated sets of hotels, 3 without it

A set has queries of five hotels with one click: an id of 5,000 values, a price and stars. Training has 15,000 queries,
the test set 5,000.
"""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import lmart
from lmart.array_types import Float64Array, Int64Array

TREES, QUERIES, FIRST, PER, IDS = 100, 20_000, 15_000, 5, 5_000


class Hotels(NamedTuple):
    """Rows of id, price and stars, with clicks, query after query."""

    X: Float64Array
    y: Int64Array
    qid: Int64Array


def hotels(seed: int) -> tuple[Hotels, Hotels]:
    """A training set and a test set; seed 5 is that of ../shared/bench/make_wide.py."""
    rng, n = np.random.default_rng(seed), QUERIES * PER
    ids, quality = rng.integers(0, IDS, n), np.random.default_rng(seed + 4).normal(size=IDS)
    price, stars = rng.gamma(2, 50, n).round(2), rng.integers(1, 6, n)
    utility = 1.2 * quality[ids] - 0.01 * price + 0.3 * stars + rng.gumbel(size=n)
    clicks = np.zeros(n, np.int64)
    clicks[np.arange(QUERIES) * PER + utility.reshape(QUERIES, PER).argmax(1)] = 1
    X, qid = np.column_stack([ids, price, stars]).astype(np.float64), np.arange(n) // PER
    cut = FIRST * PER
    return Hotels(X[:cut], clicks[:cut], qid[:cut]), Hotels(X[cut:], clicks[cut:], qid[cut:])


def with_lmart(train: Hotels, test: Hotels, **settings: Any) -> Float64Array:
    """Scores of the test set."""
    return lmart.train(*train, trees=TREES, threads=1, **settings).predict(test.X)


def with_lightgbm(train: Hotels, test: Hotels) -> Float64Array:
    """Scores of the test set by LightGBM with its categories."""
    import lightgbm

    groups = np.bincount(train.qid)
    data = lightgbm.Dataset(train.X, train.y, group=groups, categorical_feature=[0])
    settings = {"objective": "lambdarank", "num_threads": 1, "verbose": -1}
    found: Float64Array = lightgbm.train(settings, data, TREES).predict(test.X)
    return found


def with_catboost(train: Hotels, test: Hotels) -> Float64Array:
    """Scores of the test set by CatBoost with its categories."""
    import catboost

    def frame(rows: Hotels) -> list[list[object]]:
        return [[int(hotel), price, stars] for hotel, price, stars in rows.X.tolist()]

    settings = {"loss_function": "YetiRank", "iterations": TREES, "thread_count": 1, "verbose": False}
    ranker = catboost.CatBoostRanker(**settings)
    ranker.fit(catboost.Pool(frame(train), train.y, group_id=train.qid, cat_features=[0]))
    found: Float64Array = ranker.predict(frame(test))
    return found


def main() -> None:
    tools: dict[str, Callable[[Hotels, Hotels], Float64Array]] = {
        "lmart, number": lambda train, test: with_lmart(train, test, rankers=1),
        "lmart, category": lambda train, test: with_lmart(train, test, rankers=1, categorical=1),
        "lmart, category, auto": lambda train, test: with_lmart(train, test, categorical=1),
    }
    if importlib.util.find_spec("lightgbm"):
        tools["LightGBM"] = with_lightgbm
    if importlib.util.find_spec("catboost"):
        tools["CatBoost"] = with_catboost
    with_lmart(*hotels(1), rankers=1, categorical=1)  # loads machine code
    print("set\ttool\tndcg@10\tms a tree")
    for number in range(int(sys.argv[1]) if sys.argv[1:] else 3):
        train, test = hotels(5 + number)
        for name, scores in tools.items():
            began = time.process_time()
            found = scores(train, test)
            spent = time.process_time() - began
            measure = lmart.evaluate(test.y, found, test.qid, metric="ndcg@10")["ndcg@10"]
            print(f"{number + 1}\t{name}\t{measure:.4f}\t{1000 * spent / TREES:.1f}", flush=True)


if __name__ == "__main__":
    main()
