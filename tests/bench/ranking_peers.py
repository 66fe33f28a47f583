"""The other tools as quality.py compares them: settings, and scores after each round."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from judged import Judged, ndcg, ndcg_by_query

from lmart.array_types import Float64Array

RATE, ROUNDS, PATIENCE = 0.05, 500, 50


class Staged(NamedTuple):
    """A trained model: `stages(cells)` yields the scores after 1, 2, ... rounds."""

    stages: Callable[[Float64Array], Iterator[Float64Array]]


class Peer(NamedTuple):
    """A tool with its settings. `train(data, leaves, seed, threads)`; seeds change nothing where it is not random."""

    module: str
    random: bool
    train: Callable[[Judged, int, int, int], Staged]


def lightgbm(**settings: Any) -> Callable[[Judged, int, int, int], Staged]:
    def train(data: Judged, leaves: int, seed: int, threads: int) -> Staged:
        import lightgbm as tool

        params = {"learning_rate": RATE, "num_leaves": leaves, "seed": seed, "num_threads": threads, "verbose": -1}
        made = tool.Dataset(data.cells, data.labels, group=data.sizes)
        booster = tool.train(params | {"deterministic": True} | settings, made, ROUNDS)

        def stages(cells: Float64Array) -> Iterator[Float64Array]:
            scores = np.zeros(len(cells))
            for start in range(booster.num_trees()):
                scores = scores + booster.predict(cells, start_iteration=start, num_iteration=1, raw_score=True)
                yield scores

        return Staged(stages)

    return train


def xgboost(**settings: Any) -> Callable[[Judged, int, int, int], Staged]:
    def train(data: Judged, leaves: int, seed: int, threads: int) -> Staged:
        import xgboost as tool

        params = {
            "objective": "rank:ndcg",
            "eta": RATE,
            "tree_method": "hist",
            "grow_policy": "lossguide",
            "max_leaves": leaves,
            "max_depth": 0,
            "seed": seed,
            "nthread": threads,
        }
        made = tool.DMatrix(data.cells, data.labels, qid=data.query_of_document)
        booster = tool.train(params | settings, made, ROUNDS)

        def stages(cells: Float64Array) -> Iterator[Float64Array]:
            rows = tool.DMatrix(cells, nthread=threads)
            for stop in range(1, booster.num_boosted_rounds() + 1):
                yield booster.predict(rows, iteration_range=(0, stop), output_margin=True)

        return Staged(stages)

    return train


def catboost(loss: str) -> Callable[[Judged, int, int, int], Staged]:
    def train(data: Judged, leaves: int, seed: int, threads: int) -> Staged:
        import catboost as tool

        model = tool.CatBoost(
            {
                "loss_function": loss,
                "iterations": ROUNDS,
                "learning_rate": RATE,
                "depth": 6,
                "random_seed": seed,
                "thread_count": threads,
                "verbose": False,
                "allow_writing_files": False,
            }
        )
        model.fit(tool.Pool(data.cells, data.labels, group_id=data.query_of_document))

        def stages(cells: Float64Array) -> Iterator[Float64Array]:
            yield from model.staged_predict(tool.Pool(cells), prediction_type="RawFormulaVal", thread_count=threads)

        return Staged(stages)

    return train


PEERS = {
    "lightgbm lambdarank": Peer("lightgbm", False, lightgbm(objective="lambdarank")),
    "lightgbm rank_xendcg": Peer("lightgbm", True, lightgbm(objective="rank_xendcg")),
    "xgboost default": Peer("xgboost", False, xgboost()),
    # Without a least hessian of 1 too, which also restrains it by default.
    "xgboost l2 0": Peer("xgboost", False, xgboost(reg_lambda=0.0, min_child_weight=1e-3)),
    "catboost YetiRank": Peer("catboost", True, catboost("YetiRank")),
    "catboost LambdaMart": Peer("catboost", True, catboost("LambdaMart:metric=NDCG;top=10")),
}


def installed() -> list[str]:
    """Return the names of the peers whose packages are here."""
    return [name for name, peer in PEERS.items() if find_spec(peer.module)]


def run(name: str, train: Judged, valid: Judged, test: Judged, leaves: int, seed: int, threads: int) -> dict[str, Any]:
    """Train and return the round kept, and NDCG@10 there: the validation set's, and each test query's.

    The round is the first best before PATIENCE rounds without a better one, by NDCG@10 of `data.ndcg` for all tools.
    """
    width = train.cells.shape[1]
    model = PEERS[name].train(train, leaves, seed, threads)
    best, best_round, kept = -1.0, 0, np.zeros(len(test.labels))
    stages = zip(*(model.stages(data.widened(width).cells) for data in (valid, test)), strict=True)
    for number, (scores, test_scores) in enumerate(stages, 1):
        value = ndcg(valid, scores)
        if value > best:
            best, best_round, kept = value, number, test_scores
        if number - best_round >= PATIENCE:
            break
    return {"round": best_round, "valid": best, "ndcg": listed(ndcg_by_query(test, kept))}


def listed(values: Float64Array) -> list[float | None]:
    """Return the values for JSON, null for nan."""
    return [None if math.isnan(value) else value for value in values.tolist()]
