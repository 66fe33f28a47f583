"""One training tool in a process of its own: holds its data binned in memory, and trains as it is asked.

    python trainers.py TOOL TRAIN.svm TEST.svm         TOOL: lmart, lightgbm, xgboost

Requests and answers are JSON, a line each; see turns.Helper.
{"do": "train", "leaves": N, "threads": N, "rounds": N, "settings": {...}} ->
    {"stamps": [the clock after each round], "processor": [this process's processor time, likewise]}
{"do": "ndcg"} -> {"ndcg": NDCG@10 on the test set of what was trained last}; with "model" of that file
{"do": "curve", "step": N} -> {"ndcg": {rounds: NDCG@10 on the test set after them}}
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from functools import cache
from typing import Any

import fair
import numpy as np
from judged import Judged, load, ndcg
from turns import serve

from lmart.array_types import Float64Array


class Stamps:
    """The clock, and the processor time of this process, after each round."""

    def __init__(self) -> None:
        self.clock: list[float] = []
        self.processor: list[float] = []

    def stamp(self, *_: Any) -> None:
        self.clock.append(time.perf_counter())
        self.processor.append(time.process_time())


class Lmart:
    """Trains with `lmart.training.boosting.train`, without validation sets; with default bins, from bins made once."""

    def __init__(self, path: str) -> None:
        from lmart.formats.documents.reading import read_dataset
        from lmart.formats.read_options import ReadOptions

        self.data = read_dataset([path], ReadOptions())
        self.in_bins: Any = None
        self.ensemble: Any = None

    def train(self, leaves: int, threads: int, rounds: int, settings: dict[str, Any]) -> Stamps:
        from lmart.binning.binned_features import bin_dataset
        from lmart.settings import TrainSettings
        from lmart.threads import WorkerPool
        from lmart.training.boosting import train

        stamps = Stamps()
        plain: dict[str, Any] = {
            "trees": rounds,
            "leaves": leaves,
            "sample": 1.0,
            "rankers": 1,
            "objective": "lambdamart",
        }
        made = TrainSettings(**(plain | settings))
        with WorkerPool(threads) as pool:
            if self.in_bins is None:
                usual = TrainSettings()
                limits = usual.max_bins, usual.absent, usual.min_docs, usual.seed
                self.in_bins = bin_dataset(self.data, *limits, pool)
            data = self.data if {"max_bins", "absent", "min_docs", "seed"} & set(settings) else self.in_bins
            self.ensemble = train(data, [], made, pool, stamps.stamp).ensemble
        return stamps

    def stages(self, test: Judged, step: int) -> Iterator[tuple[int, Float64Array]]:
        from dataclasses import replace

        scores = np.zeros(len(test.cells))
        for start in range(0, len(self.ensemble.trees), step):
            some = self.ensemble.trees[start : start + step]
            scores = scores + self._predict(replace(self.ensemble, trees=some), test)
            yield start + len(some), scores

    def scores(self, test: Judged, model: str | None) -> Float64Array:
        import lmart

        return self._predict(self.ensemble if model is None else lmart.load(model).ensemble, test)

    def _predict(self, ensemble: Any, test: Judged) -> Float64Array:
        from lmart.model import Model

        cells = test.cells[:, 1:]  # features of these sets are numbered from 1
        return Model(ensemble).predict(cells, range(1, 1 + cells.shape[1]), threads=2)


class LightGBM:
    """Trains from a Dataset that is made once."""

    def __init__(self, path: str) -> None:
        import lightgbm

        self.tool = lightgbm
        data = load([path])
        made = lightgbm.Dataset(data.cells, data.labels, group=data.sizes, params=fair.LIGHTGBM)
        self.data = made.construct()
        self.booster: Any = None

    def train(self, leaves: int, threads: int, rounds: int, settings: dict[str, Any]) -> Stamps:
        stamps = Stamps()
        params = fair.LIGHTGBM | {"num_leaves": leaves, "num_threads": threads} | settings
        self.booster = self.tool.train(params, self.data, rounds, callbacks=[stamps.stamp], keep_training_booster=False)
        return stamps

    def stages(self, test: Judged, step: int) -> Iterator[tuple[int, Float64Array]]:
        cells = test.widened(self.booster.num_feature()).cells
        scores = np.zeros(len(cells))
        for start in range(0, self.booster.num_trees(), step):
            scores = scores + self.booster.predict(cells, start_iteration=start, num_iteration=step)
            yield min(start + step, self.booster.num_trees()), scores

    def scores(self, test: Judged, model: str | None) -> Float64Array:
        booster = self.booster if model is None else self.tool.Booster(model_file=model)
        scores: Float64Array = booster.predict(test.widened(booster.num_feature()).cells)
        return scores


class XGBoost:
    """Trains from a QuantileDMatrix that is made once."""

    def __init__(self, path: str) -> None:
        import xgboost

        self.tool = xgboost
        data = load([path])
        cells = data.cells.astype(np.float32)
        self.data = xgboost.QuantileDMatrix(cells, data.labels, qid=data.query_of_document, max_bin=256)
        self.booster: Any = None

    def train(self, leaves: int, threads: int, rounds: int, settings: dict[str, Any]) -> Stamps:
        stamps = Stamps()

        class Stamp(self.tool.callback.TrainingCallback):  # type: ignore[misc,name-defined]
            def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
                stamps.stamp()
                return False

        params = fair.XGBOOST | {"max_leaves": leaves, "nthread": threads} | settings
        self.booster = self.tool.train(params, self.data, rounds, callbacks=[Stamp()])
        return stamps

    def stages(self, test: Judged, step: int) -> Iterator[tuple[int, Float64Array]]:
        rows = self.tool.DMatrix(test.widened(self.booster.num_features()).cells)
        rounds = self.booster.num_boosted_rounds()
        for stop in range(step, rounds + 1, step):
            yield stop, self.booster.predict(rows, iteration_range=(0, stop), output_margin=True)

    def scores(self, test: Judged, model: str | None) -> Float64Array:
        booster = self.booster if model is None else self.tool.Booster(model_file=model)
        rows = self.tool.DMatrix(test.widened(booster.num_features()).cells)
        scores: Float64Array = booster.predict(rows, output_margin=True)
        return scores


TOOLS: dict[str, Any] = {"lmart": Lmart, "lightgbm": LightGBM, "xgboost": XGBoost}


def main(name: str, train: str, test: str) -> None:
    """Answer requests; data is read when it is first needed."""
    tool = cache(lambda: TOOLS[name](train))
    judged = cache(lambda: load([test]))

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        what = request.pop("do")
        if what == "train":
            stamps = tool().train(**request)
            return {"stamps": stamps.clock, "processor": stamps.processor}
        if what == "ndcg":
            return {"ndcg": ndcg(judged(), tool().scores(judged(), request.get("model")))}
        return {"ndcg": {rounds: ndcg(judged(), scores) for rounds, scores in tool().stages(judged(), request["step"])}}

    serve(answer)


if __name__ == "__main__":
    main(*sys.argv[1:])
