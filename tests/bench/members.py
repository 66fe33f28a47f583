"""What each ranker of the default mean adds on the folds of real sets, and what the linear ranker costs.

    python tests/bench/members.py --data FOLDER [--sets mq2008,lightgbm,ohsumed2,crossed] [--seeds 0] [--resplit N]
        [--costs] [--options '{"linear": 0.5}']

FOLDER, folds, rate, trees, early stopping and NDCG@10 are those of quality.py. `crossed` is made up: the label of a
document is whether two of its four features have the same sign, which no sum of functions of features can tell.

adds  : NDCG@10 of the model less that of the model without the trees of the ranker, mean over sets of the mean over
        folds and seeds, with its standard error over queries, which does not hold the luck of training
alone : NDCG@10 by the trees of the ranker alone, in the folds that have it
--costs: time of scoring all test rows and 20 of them, and processor time of training, with the linear ranker over
        without; the least of several turns each, the median over folds
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from judged import Judged, load, ndcg_by_query
from quality import SETS, Fold, folds
from ranking_peers import PATIENCE, RATE, ROUNDS

import lmart
from lmart.array_types import Float64Array
from lmart.scoring.ensemble import LINEAR, RankerPart

TURNS = 15  # of each timing
CROSSED = 4  # made-up data sets
LINEAR_RANKER = "listnet, linear"


class Found(NamedTuple):
    """By ranker, what a fold says: each test query's NDCG@10 with it, without it and by it alone, and costs."""

    complete: Float64Array
    without: dict[str, Float64Array]
    alone: dict[str, Float64Array]
    costs: dict[str, float]


def crossed(work: Path) -> Iterator[Fold]:
    """Yield folds of documents whose label is the exclusive or of the signs of two features."""
    for seed in range(CROSSED):
        rng = np.random.default_rng(seed)
        paths = []
        for part, n_queries in (("train", 200), ("valid", 60), ("test", 200)):
            rows = []
            for query in range(n_queries):
                x = rng.normal(size=(15, 4))
                labels = ((x[:, 0] > 0) ^ (x[:, 1] > 0)) & (rng.random(15) < 0.9)
                cells = [" ".join(f"{k}:{value:.4f}" for k, value in enumerate(row, 1)) for row in x]
                rows += [f"{int(y)} qid:{query} {row}\n" for y, row in zip(labels, cells, strict=True)]
            paths.append(work / f"crossed-{part}-{seed}.svm")
            paths[-1].write_text("".join(rows))
        yield Fold([str(paths[0])], str(paths[1]), str(paths[2]))


def kind_of(part: RankerPart) -> str:
    """Return what a ranker is, in a few words."""
    share = "" if part.features == 1.0 else f", {part.features:g} of the features"
    return f"{part.objective}, {part.tree}{share}"


def look_at(fold: Fold, seed: int, options: dict[str, Any], with_costs: bool) -> Found:
    """Train on a fold, and measure its rankers."""
    data, valid = lmart.read(fold.train), lmart.read(fold.valid)
    settings = {"learning_rate": RATE, "trees": ROUNDS, "early_stop": PATIENCE, "seed": seed} | options
    model = lmart.train(data, valid=valid, **settings)
    test, rows = load([fold.test]), lmart.read(fold.test)
    trees, parts, start = model.ensemble.trees, model.ensemble.rankers, 0
    without: dict[str, Float64Array] = {}
    alone: dict[str, Float64Array] = {}
    costs: dict[str, float] = {}
    for part in parts:
        stop = start + part.trees
        others = _of_trees(model, trees[:start] + trees[stop:])
        without[kind_of(part)] = _measure(others, rows, test)
        alone[kind_of(part)] = _measure(_of_trees(model, trees[start:stop]), rows, test)
        if with_costs and part.tree == LINEAR:
            costs = _scoring_costs(model, others, rows) | _training_costs(data, valid, settings)
        start = stop
    return Found(_measure(model, rows, test), without, alone, costs)


def _of_trees(model: lmart.Model, trees: tuple[Any, ...]) -> lmart.Model:
    return lmart.Model(replace(model.ensemble, trees=trees, rankers=()))


def _measure(model: lmart.Model, rows: lmart.Dataset, test: Judged) -> Float64Array:
    return ndcg_by_query(test, model.predict(rows))


def _scoring_costs(model: lmart.Model, others: lmart.Model, rows: lmart.Dataset) -> dict[str, float]:
    """Return the time of scoring with the linear ranker over that without, of all rows and of 20."""
    cells = rows.to_numpy()
    found = {}
    for what, part, times in (("scoring, all rows", cells, 1), ("scoring, 20 rows", cells[:20], 20)):
        calls = [partial(each.predict, part, rows.feature_ids, threads=1) for each in (model, others)]
        found[what] = _ratio(calls, TURNS, times)
    return found


def _training_costs(data: lmart.Dataset, valid: lmart.Dataset, settings: dict[str, Any]) -> dict[str, float]:
    """Return the time of training with the linear ranker over that without."""
    given = {"linear": None} | settings
    chosen = [given | {"linear": linear} for linear in (given["linear"], 0.0)]
    calls = [partial(lmart.train, data, valid=valid, threads=1, **each) for each in chosen]
    return {"training": _ratio(calls, 2)}


def _ratio(calls: Sequence[Callable[[], object]], turns: int, times: int = 1) -> float:
    """Return the least processor time of the first call over that of the second, turn by turn."""
    least = [np.inf] * len(calls)
    for _ in range(turns):
        for place, call in enumerate(calls):
            began = time.process_time()
            for _ in range(times):
                call()
            least[place] = min(least[place], time.process_time() - began)
    return least[0] / least[1]


def show_table(found: dict[str, list[Found]]) -> None:
    """Print what each ranker adds."""
    names = [name for of_set in found.values() for fold in of_set for name in fold.without]
    columns = [*found, "mean"]
    print(f"\n{'adds':42}" + "".join(f"{name:>12}" for name in columns) + f"{'error':>9}{'alone':>9}")
    for name in dict.fromkeys(names):
        differences = {key: _differences(of_set, name) for key, of_set in found.items()}
        means = {key: float(np.mean([each.mean() for each in folds])) for key, folds in differences.items()}
        pooled = [np.concatenate(folds) for folds in differences.values()]
        error = np.sqrt(sum(each.var() / len(each) for each in pooled)) / len(pooled)
        alone = [np.nanmean(fold.alone[name]) for of_set in found.values() for fold in of_set if name in fold.alone]
        cells = "".join(f"{value:+12.4f}" for value in [*means.values(), float(np.mean(list(means.values())))])
        print(f"{name:42}{cells}{error:9.4f}{np.mean(alone):9.4f}")
    every = {key: float(np.mean([np.nanmean(fold.complete) for fold in of_set])) for key, of_set in found.items()}
    cells = "".join(f"{value:12.4f}" for value in [*every.values(), float(np.mean(list(every.values())))])
    print(f"{'NDCG@10 of the model':42}{cells}")
    costs = [fold.costs for of_set in found.values() for fold in of_set if fold.costs]
    for what in costs[0] if costs else ():
        values = [each[what] for each in costs]
        print(
            f"{what}, with {LINEAR_RANKER} / without: {np.median(values):.3f} ({min(values):.3f} to {max(values):.3f})"
        )


def _differences(of_set: list[Found], name: str) -> list[Float64Array]:
    """Return, by fold, what a ranker adds to each query that counts; 0 where the model lacks it."""
    found = []
    for fold in of_set:
        difference = fold.complete - fold.without.get(name, fold.complete)
        found.append(difference[~np.isnan(difference)])
    return found


def main() -> None:
    """Train, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words = lambda text: text.split(",")  # noqa: E731
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", type=words, default=list(SETS))
    parser.add_argument("--seeds", type=words, default=["0"])
    parser.add_argument("--resplit", type=int, help="as in quality.py")
    parser.add_argument("--costs", action="store_true")
    parser.add_argument("--options", type=json.loads, default={}, help="further settings of lmart.train, as JSON")
    args = parser.parse_args()
    found: dict[str, list[Found]] = {}
    with tempfile.TemporaryDirectory() as name:
        for of in args.sets:
            each = crossed(Path(name)) if of == "crossed" else folds(args.data, of, Path(name), args.resplit)
            for fold in each:
                for seed in args.seeds:
                    found.setdefault(of, []).append(look_at(fold, int(seed), args.options, args.costs))
                    print(f"{of}, {Path(fold.test).name}, seed {seed}: done", flush=True)
    show_table(found)


if __name__ == "__main__":
    main()
