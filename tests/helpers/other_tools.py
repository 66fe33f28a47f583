"""What other tools print for a ranking, by the names that our measures have, and data sets on which tools part.

Each function imports its tool itself, so the caller decides what happens when it is not there.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lmart.measures import Evaluator, parse_measures
from lmart.measures.judgments import Judgments, docid_order
from lmart.measures.presets import conventions_like

Numbers = dict[str, float]
CUTOFFS = (1, 3, 5, 10, 20)


@dataclass(frozen=True)
class Ranking:
    """Judged queries with scores: unjudged and unretrieved documents where the arrays say so."""

    name: str
    labels: npt.NDArray[np.float64]
    scores: npt.NDArray[np.float64]
    sizes: npt.NDArray[np.int64]
    judged: npt.NDArray[np.bool_] | None = None
    retrieved: npt.NDArray[np.bool_] | None = None

    @property
    def offsets(self) -> npt.NDArray[np.int64]:
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(self.sizes)])

    @property
    def ids(self) -> list[str]:
        """Ids in an order that is neither that of the data nor its reverse."""
        return [f"d{(row * 7919) % 1000003}" for row in range(len(self.labels))]

    def queries(self) -> Iterator[tuple[int, slice]]:
        for q, (start, stop) in enumerate(pairwise(self.offsets.tolist()), 1):
            yield q, slice(start, stop)


def make(name: str, seed: int, sizes: tuple[int, int], largest: int, tied: bool, empty: bool) -> Ranking:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(*sizes, 40)
    n = int(lengths.sum())
    labels = np.minimum(rng.integers(0, largest + 2, n), largest) * rng.integers(0, 2, n)
    scores = rng.integers(0, 6, n) / 8 if tied else rng.permutation(n) / 8
    if empty:
        labels[: lengths[:3].sum()] = 0
    return Ranking(name, labels.astype(np.float64), scores.astype(np.float64), lengths)


def data_sets() -> list[Ranking]:
    """Graded labels, ties, empty queries and short lists; the same with labels 0 and 1; long lists without ties."""
    return [
        make("graded, tied", 1, (2, 13), 4, True, True),
        make("binary, tied", 2, (2, 9), 1, True, True),
        make("graded, long", 3, (25, 60), 4, False, False),
    ]


def pooled() -> Ranking:
    """Documents that are not judged, or not retrieved, and a query of which nothing is retrieved."""
    base = make("pooled", 4, (6, 40), 4, True, True)
    rng = np.random.default_rng(5)
    judged, retrieved = rng.random(len(base.labels)) < 0.7, rng.random(len(base.labels)) < 0.8
    judged |= ~retrieved  # what is neither is not there
    retrieved[base.offsets[7] : base.offsets[8]] = False
    judged[base.offsets[7] : base.offsets[8]] = True
    for start in base.offsets[:-1]:  # a query in both files
        judged[start] = True
    return Ranking(base.name, np.where(judged, base.labels, 0.0), base.scores, base.sizes, judged, retrieved)


def ours(ranking: Ranking, metric: str, like: str | None, weights: Any = None, **overrides: Any) -> dict[str, Any]:
    conventions = conventions_like(like, **overrides)
    by_id = conventions.ties == "docid"
    evaluator = Evaluator(
        Judgments(
            ranking.labels,
            ranking.offsets,
            judged=ranking.judged,
            retrieved=ranking.retrieved,
            tie_order=docid_order(ranking.ids, ranking.offsets) if by_id else None,
        ),
        parse_measures(metric, conventions),
        weights=weights,
    )
    return dict(evaluator.evaluate(ranking.scores).values)


# ---- training tools


def lightgbm(ranking: Ranking, weights: Any = None, gain: list[float] | None = None) -> Numbers:
    import lightgbm as tool

    parameters: dict[str, Any] = {
        "objective": "lambdarank", "metric": ["ndcg", "map"], "eval_at": list(CUTOFFS), "verbosity": -1,
        "num_threads": 1, "feature_pre_filter": False,
    }  # fmt: skip
    if gain is not None:
        parameters["label_gain"] = gain
    features = np.arange(len(ranking.labels), dtype=float)[:, None]
    data = tool.Dataset(features, ranking.labels, group=ranking.sizes, weight=weights, init_score=ranking.scores)
    return {name: float(value) for _, name, value, _ in tool.Booster(parameters, data).eval_train()}


def xgboost(ranking: Ranking, minus: bool = False, weights: Any = None, exp_gain: bool = True) -> Numbers:
    import xgboost as tool

    binary = ranking.labels.max() <= 1
    names = [f"{name}@{k}" for name in (("ndcg", "map", "pre") if binary else ("ndcg",)) for k in CUTOFFS]
    wanted = [f"{name}-" if minus and not name.startswith("pre") else name for name in names]
    data = tool.DMatrix(np.zeros((len(ranking.labels), 1)), ranking.labels, base_margin=ranking.scores, weight=weights)
    data.set_group(ranking.sizes)
    parameters = {"objective": "rank:ndcg", "eval_metric": wanted, "nthread": 1, "ndcg_exp_gain": exp_gain}
    booster = tool.Booster(parameters, [data])
    printed = booster.eval_set([(data, "d")]).split("\t")[1:]
    values = [float(text.rpartition(":")[2]) for text in printed]
    return {name.replace("pre@", "p@"): value for name, value in zip(names, values, strict=True)}


# ---- measuring tools


def sklearn(ranking: Ranking, ignore_ties: bool = False) -> Numbers:
    from sklearn import metrics

    found: Numbers = {}
    for name, measure in (("ndcg", metrics.ndcg_score), ("dcg", metrics.dcg_score)):
        for k in (*CUTOFFS, None):
            values = [
                measure([ranking.labels[rows]], [ranking.scores[rows]], k=k, ignore_ties=ignore_ties)
                for _, rows in ranking.queries()
            ]
            found[name if k is None else f"{name}@{k}"] = float(np.mean(values))
    return found


def sklearn_auc(ranking: Ranking) -> Numbers:
    """The mean over queries that have documents of both kinds."""
    from sklearn import metrics

    values = [
        metrics.roc_auc_score(ranking.labels[rows] > 0, ranking.scores[rows])
        for _, rows in ranking.queries()
        if 0 < (ranking.labels[rows] > 0).sum() < len(ranking.labels[rows])
    ]
    return {"auc": float(np.mean(values))}


def qrels_and_run(ranking: Ranking) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    everything = np.ones(len(ranking.labels), np.bool_)
    judged = everything if ranking.judged is None else ranking.judged
    retrieved = everything if ranking.retrieved is None else ranking.retrieved
    qrels, run = {}, {}
    for q, rows in ranking.queries():
        places = range(rows.start, rows.stop)
        qrels[str(q)] = {ranking.ids[row]: int(ranking.labels[row]) for row in places if judged[row]}
        ranked = {ranking.ids[row]: float(ranking.scores[row]) for row in places if retrieved[row]}
        if ranked:
            run[str(q)] = ranked
    return qrels, run


RECALLS = (0.0, 0.1, 0.25, 0.5, 1.0)


def pytrec_eval(ranking: Ranking, level: int = 1, only_judged: bool = False) -> Numbers:
    import pytrec_eval as tool

    cuts = ",".join(map(str, CUTOFFS))
    called = {"ndcg": "ndcg", "map": "map", "recip_rank": "mrr", "bpref": "bpref", "Rprec": "rprec", "gm_map": "gmap"}
    called |= {"set_F": "f1"}
    wanted = {f"{name}.{cuts}" for name in ("ndcg_cut", "map_cut", "P", "recall", "success")} | set(called)
    wanted.add("iprec_at_recall." + ",".join(map(str, RECALLS)))
    qrels, run = qrels_and_run(ranking)
    by_query = tool.RelevanceEvaluator(
        qrels, wanted | {"num_rel"}, relevance_level=level, judged_docs_only_flag=only_judged
    ).evaluate(run)
    for k in CUTOFFS:
        called |= {f"ndcg_cut_{k}": f"ndcg@{k}", f"map_cut_{k}": f"map@{k}"}
        called |= {f"P_{k}": f"p@{k}", f"recall_{k}": f"recall@{k}", f"success_{k}": f"success@{k}"}
    called |= {f"iprec_at_recall_{recall:.2f}": f"iprec@{recall:g}" for recall in RECALLS}
    found = {
        name: tool.compute_aggregated_measure(theirs, [one[theirs] for one in by_query.values()])
        for theirs, name in called.items()
    }
    for k in CUTOFFS:  # as BEIR makes it of numbers of pytrec_eval
        capped = [one[f"P_{k}"] * k / max(min(k, one["num_rel"]), 1) for one in by_query.values()]
        found[f"recall_cap@{k}"] = float(np.mean(capped))
    return found


IR_MEASURES = {
    "ndcg@10": "nDCG@10", "map": "AP", "map(rel=2)": "AP(rel=2)", "map@5": "AP@5", "p@5(rel=2)": "P(rel=2)@5",
    "recall@10(rel=2)": "R(rel=2)@10", "mrr(rel=2)": "RR(rel=2)", "bpref": "Bpref", "bpref(rel=2)": "Bpref(rel=2)",
    "success@3": "Success@3", "success@3(rel=2)": "Success(rel=2)@3", "rprec": "Rprec", "rprec(rel=2)": "Rprec(rel=2)",
    "iprec@0.1": "IPrec@0.1", "iprec@0.7(rel=2)": "IPrec(rel=2)@0.7", "f1": "SetF", "f1(rel=2)": "SetF(rel=2)",
}  # fmt: skip


def ir_measures(ranking: Ranking, names: dict[str, str] | None = None) -> Numbers:
    import ir_measures as tool

    names = names or IR_MEASURES
    qrels, run = qrels_and_run(ranking)
    measures = {tool.parse_measure(theirs): name for name, theirs in names.items()}
    per_query: dict[str, list[float]] = {name: [] for name in names}
    for one in tool.iter_calc(list(measures), qrels, run):
        if one.query_id in run:
            per_query[measures[one.measure]].append(one.value)
    return {name: float(np.mean(values)) for name, values in per_query.items()}


def gdeval(ranking: Ranking) -> Numbers:
    """The script that ir_measures brings, run by perl."""
    script = files("ir_measures") / "bin" / "gdeval.pl"
    qrels, run = qrels_and_run(ranking)
    found: Numbers = {}
    with tempfile.TemporaryDirectory() as folder:
        judgments, results = Path(folder, "qrels"), Path(folder, "run")
        judgments.write_text("".join(f"{q} 0 {d} {label}\n" for q in qrels for d, label in qrels[q].items()))
        results.write_text("".join(f"{q} Q0 {d} 1 {score!r} x\n" for q in run for d, score in run[q].items()))
        for k in CUTOFFS:
            command = ["perl", str(script), str(judgments), str(results), str(k)]
            printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            topics = [line.split(",") for line in printed.splitlines()[1:]]  # each with five digits
            found[f"ndcg@{k}"] = float(np.mean([float(one[2]) for one in topics]))
            found[f"err@{k}(max=4)"] = float(np.mean([float(one[3]) for one in topics]))
    return found


RANX = {
    "ndcg@10": "ndcg@10", "ndcg": "ndcg", "map": "map", "mrr": "mrr", "p@5": "precision@5", "recall@10": "recall@10",
    "map(rel=2)": "map-l2", "p@5(rel=2)": "precision@5-l2", "bpref": "bpref",
}  # fmt: skip


def ranx(ranking: Ranking) -> Numbers:
    import ranx as tool

    qrels, run = qrels_and_run(ranking)
    found = tool.evaluate(tool.Qrels(qrels), tool.Run(run), list(RANX.values()), make_comparable=True)
    return {name: float(found[theirs]) for name, theirs in RANX.items()}


Tool = Callable[[Ranking], Numbers]
COMPARED: tuple[tuple[str, str, Tool, float, bool], ...] = (
    ("lightgbm", "lightgbm", lightgbm, 1e-14, False),
    ("xgboost", "xgboost", xgboost, 1e-14, False),
    ("sklearn", "sklearn.metrics", sklearn, 1e-14, False),
    ("trec_eval", "pytrec_eval", pytrec_eval, 1e-14, True),
    ("trec_eval", "ir_measures", ir_measures, 1e-14, True),
    ("gdeval", "ir_measures", gdeval, 6e-6, True),  # it prints five digits
)
"""A preset, the module that is needed, what it prints, a tolerance, and whether it takes unjudged documents."""
