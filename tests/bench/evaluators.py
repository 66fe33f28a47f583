"""One evaluating tool in a process of its own, with judged and scored documents in memory.

    python evaluators.py TOOL DATA.npz         TOOL: lmart, ranx, ir_measures

DATA holds labels and scores of n documents, and query offsets. Each tool has its own form of them made before time is
taken; measured are the same six measures. Requests and answers are JSON, a line each; see turns.Helper.
{"do": "evaluate", "threads": N} -> {"seconds": ..., "means": in the order of the measures}
{"do": "intervals", "threads": N} -> {"seconds": ...}, lmart: bootstrap intervals of the means
{"do": "compare", "threads": N} -> {"seconds": ...}, lmart: with scores that differ a little
{"do": "flips", "threads": N, "queries": Q, "flips": F} -> {"seconds": ..., "cpu": ...}, lmart: a randomization test
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from turns import serve

Data = Mapping[str, Any]
Evaluate = Callable[[int], list[float]]


def lmart(data: Data) -> Evaluate:
    from lmart.measures import DEFAULT_METRICS, Evaluator, parse_measures
    from lmart.measures.judgments import Judgments
    from lmart.threads import WorkerPool

    def evaluate(threads: int) -> list[float]:
        with WorkerPool(threads) as pool:
            evaluator = Evaluator(Judgments(data["labels"], data["offsets"]), parse_measures(DEFAULT_METRICS), pool)
            return [float(value or 0.0) for value in evaluator.evaluate(data["scores"]).values.values()]

    return evaluate


def by_query(data: Data, name: str, number: Callable[[Any], Any]) -> dict[str, dict[str, Any]]:
    """Return the labels or scores of each query's documents, by ids, as other tools take them."""
    values, offsets = data[name].tolist(), data["offsets"].tolist()
    return {
        f"q{q}": {f"d{k}": number(value) for k, value in enumerate(values[start:stop])}
        for q, (start, stop) in enumerate(pairwise(offsets))
    }


def ranx(data: Data) -> Evaluate:
    from ranx import Qrels, Run
    from ranx import evaluate as measure

    qrels, run = Qrels(by_query(data, "labels", int)), Run(by_query(data, "scores", float))
    names = [*(f"ndcg_burges@{k}" for k in (1, 3, 5, 10)), "map", "mrr"]

    def evaluate(threads: int) -> list[float]:
        found = measure(qrels, run, names, threads=threads, save_results_in_run=False)
        assert isinstance(found, dict)
        return [float(found[name]) for name in names]

    return evaluate


def ir_measures(data: Data) -> Evaluate:
    from ir_measures import AP, RR, evaluator, nDCG

    gains = {label: 2**label - 1 for label in range(5)}
    measures = [*(nDCG(gains=gains) @ k for k in (1, 3, 5, 10)), AP, RR]
    prepared = evaluator(measures, by_query(data, "labels", int))
    run = by_query(data, "scores", float)

    def evaluate(threads: int) -> list[float]:  # it uses one thread
        found = prepared.calc_aggregate(run)
        return [float(found[one]) for one in measures]

    return evaluate


TOOLS: dict[str, Callable[[Data], Evaluate]] = {"lmart": lmart, "ranx": ranx, "ir_measures": ir_measures}


def statistics(data: Data) -> Callable[..., None]:
    """Return what makes the intervals or comparisons of lmart."""
    from lmart.measures import DEFAULT_METRICS, Evaluator, parse_measures
    from lmart.measures.comparing import System, compare, randomization_test
    from lmart.measures.judgments import Judgments
    from lmart.measures.resampling import Resampling
    from lmart.measures.summary import summarize
    from lmart.threads import WorkerPool

    evaluator = Evaluator(Judgments(data["labels"], data["offsets"]), parse_measures(DEFAULT_METRICS))
    noise = np.random.default_rng(1).normal(0, 0.1, len(data["scores"]))
    first, second = evaluator.evaluate(data["scores"]), evaluator.evaluate(data["scores"] + noise)
    systems = [System("first", first.per_query), System("second", second.per_query)]

    def make(what: str, threads: int, queries: int = 0, flips: int = 1) -> None:
        with WorkerPool(threads) as pool:
            if what == "intervals":
                summarize(first.per_query, first.values, None, Resampling(), pool)
            elif what == "compare":
                compare(systems, None, Resampling(), pool)
            else:
                differences = np.random.default_rng(2).normal(0.0, 1.0, queries)
                randomization_test(differences, Resampling(flips=flips), pool)

    return make


def main(tool: str, path: str) -> None:
    """Answer requests."""
    with np.load(path) as arrays:
        data = dict(arrays)
    evaluate = TOOLS[tool](data)
    make = statistics(data) if tool == "lmart" else None

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        what = request.pop("do")
        began, cpu = time.perf_counter(), time.process_time()
        means: list[float] = []
        if what == "evaluate":
            means = evaluate(request["threads"])
        elif make is not None:
            make(what, **request)
        return {"seconds": time.perf_counter() - began, "cpu": time.process_time() - cpu, "means": means}

    serve(answer)


if __name__ == "__main__":
    main(*sys.argv[1:])
