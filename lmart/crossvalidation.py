"""cross_validate: models that each leave out one fold of the queries, and the number of trees that is best for all."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from lmart.boosting import RoundReport, TrainResult, train
from lmart.dataset import RankingDataset, rows_of, select_queries, take_rows
from lmart.ensemble import Tree
from lmart.errors import DataError, counted
from lmart.measures import Conventions, Evaluator, parse_measure
from lmart.scoring import Scorer
from lmart.settings import TrainSettings
from lmart.sidecars import NO_SIDECARS, Sidecars
from lmart.threads import WorkerPool

Floats = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]

LEVEL = 0.95  # of the interval


@dataclass(frozen=True)
class Fold:
    """What the model that did not see these queries made of them.

    measure    : with the number of trees that is common to all folds
    best_round : the number of trees that is best for this fold alone, the first on ties, 0 when none was grown
    best       : the measure at it; rounds : trees grown
    """

    n_queries: int
    n_documents: int
    measure: float
    best_round: int
    best: float
    rounds: int


@dataclass(frozen=True)
class CrossValidation:
    """What cross-validation found.

    fold_of_query  : int64[n_queries], from 0
    trees          : the common number of trees: the first best of `curve`, at least 1
    curve          : float64[n], the mean over folds of the held-out measure after each round
    mean           : of the folds' measures at that number
    interval       : of the mean, at LEVEL, by Student's t over the folds
    standard_error : of the mean over queries, all folds together
    scores         : float64[n_documents], each by the model that did not see its query, on top of the initial scores
    warnings       : what the user should know of single folds
    """

    fold_of_query: Longs
    trees: int
    curve: Floats
    mean: float
    interval: tuple[float, float]
    standard_error: float
    folds: tuple[Fold, ...]
    scores: Floats
    warnings: tuple[str, ...]


def deal_queries(dataset: RankingDataset, n_folds: int, seed: int) -> Longs:
    """Return the fold of each query, int64[n_queries], from 0.

    Queries are dealt like cards, in the order of a hash of their id and the seed, those with a relevant document first:
    neither the number of queries nor the number of those with a relevant document differs by more than 1 between
    folds, and a query's place in the data plays no part. DataError when there are more folds than queries.
    """
    n = dataset.n_queries
    if n_folds > n:
        queries = counted(n, "query", "queries")
        raise DataError(f"has {queries}, too few for {n_folds:,} folds; use fewer --folds or more data", dataset.source)
    key = seed.to_bytes(8, "little")
    marks = [
        hashlib.blake2b(query_id.encode("utf-8", "surrogatepass"), digest_size=16, key=key).digest()
        for query_id in dataset.query_ids
    ]
    relevant_before = np.concatenate([np.zeros(1, np.int64), np.cumsum(dataset.labels > 0)])
    barren = np.diff(relevant_before[dataset.query_offsets]) == 0
    order = sorted(range(n), key=lambda q: (bool(barren[q]), marks[q], q))
    folds = np.empty(n, np.int64)
    folds[order] = np.arange(n) % n_folds
    return folds


@dataclass(frozen=True)
class _Run:
    """A fold's training: every tree that it grew, and the held-out measure after each."""

    trees: Sequence[Tree]
    curve: Sequence[float]
    result: TrainResult

    @property
    def best_round(self) -> int:
        return int(np.argmax(self.curve)) + 1 if self.curve else 0

    def reaches(self, length: int) -> bool:
        """Return whether it is known how good this model is after so many rounds."""
        return len(self.curve) >= length or self.result.stopped == "split"

    def curve_to(self, length: int) -> Floats:
        """Return the measures of so many rounds; a model that cannot grow any further stays as it is."""
        grown = np.array(self.curve[:length])
        last = self.curve[-1] if self.curve else self.result.validation[0] or 0.0
        return np.concatenate([grown, np.full(length - len(grown), last)])


def cross_validate(
    dataset: RankingDataset,
    n_folds: int,
    settings: TrainSettings,
    pool: WorkerPool,
    on_round: Callable[[int, RoundReport], None] = lambda fold, report: None,
    sidecars: Sidecars = NO_SIDECARS,
) -> CrossValidation:
    """Train one model a fold on the other folds, and measure it on its own.

    sidecars : of the whole set; weights and positions count in training, not in measures
    on_round : called after each round with the fold, from 0, and what the round made

    The number of trees is one for all folds, the best of the mean over the folds: that each fold chose its own would
    make the mean look better than a model can be whose number of trees must be set beforehand. With `early_stop` each
    fold ends by itself, so the mean is known up to the latest of their best rounds: a fold that had ended before is
    trained anew as far as that. DataError when there are more folds than queries, and as `boosting.train`.
    """
    settings = settings.for_queries(dataset.n_queries, alone=True)
    fold_of_query = deal_queries(dataset, n_folds, settings.seed)
    held_out = [np.flatnonzero(fold_of_query == fold) for fold in range(n_folds)]

    def run(fold: int, chosen: TrainSettings) -> _Run:
        seen = np.flatnonzero(fold_of_query != fold)
        trees: list[Tree] = []
        curve: list[float] = []

        def collect(report: RoundReport) -> None:
            trees.append(report.tree)
            curve.append(report.validation[0] or 0.0)
            on_round(fold, report)

        parts = select_queries(dataset, seen), select_queries(dataset, held_out[fold])
        own, others = (sidecars.of_queries(dataset.query_offsets, queries) for queries in (seen, held_out[fold]))
        result = train(parts[0], [parts[1]], chosen, pool, collect, own, [others.init_scores])
        return _Run(trees, curve, result)

    runs = [run(fold, settings) for fold in range(n_folds)]
    if settings.early_stop:
        length = max(1, *(one.best_round for one in runs))
        on = replace(settings, early_stop=0, trees=length)
        runs = [one if one.reaches(length) else run(fold, on) for fold, one in enumerate(runs)]
    else:
        length = max(1, *(len(one.curve) for one in runs))
    curves = [one.curve_to(length) for one in runs]
    mean_curve = np.array([_mean(values) for values in np.stack(curves, axis=1).tolist()])
    trees = int(np.argmax(mean_curve)) + 1

    scores = np.empty(dataset.n_documents)
    columns = np.arange(dataset.n_features, dtype=np.int32)
    for queries, one in zip(held_out, runs, strict=True):
        rows = rows_of(dataset.query_offsets, queries)
        ensemble = replace(one.result.ensemble, trees=tuple(one.trees[:trees]))
        scores[rows] = Scorer(ensemble).score(take_rows(dataset.features, rows), columns, pool)
    if sidecars.init_scores is not None:
        scores += sidecars.init_scores
    measures = [float(curve[trees - 1]) for curve in curves]
    mean = float(mean_curve[trees - 1])
    margin = student_quantile(LEVEL, n_folds - 1) * _standard_error(measures)
    return CrossValidation(
        fold_of_query,
        trees,
        mean_curve,
        mean,
        (mean - margin, mean + margin),
        _standard_error(_per_query(dataset, scores, settings, pool)),
        tuple(
            Fold(
                len(queries),
                int(np.diff(dataset.query_offsets)[queries].sum()),
                measure,
                one.best_round,
                float(curve[one.best_round - 1]),
                len(one.curve),
            )
            for queries, one, curve, measure in zip(held_out, runs, curves, measures, strict=True)
        ),
        scores,
        tuple(f"fold {fold}: {text}" for fold, one in enumerate(runs, 1) for text in one.result.warnings),
    )


def _per_query(dataset: RankingDataset, scores: Floats, settings: TrainSettings, pool: WorkerPool) -> list[float]:
    measure = parse_measure(settings.metric, Conventions(gain=settings.gain))
    report = Evaluator(dataset.labels, dataset.query_offsets, [measure], pool).evaluate(scores)
    values: list[float] = report.per_query[str(measure)].tolist()
    return values


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _standard_error(values: Sequence[float]) -> float:
    """Return the standard error of the mean of independent values; 0 of a single one, about which nothing is known."""
    n, mean = len(values), _mean(values)
    return math.sqrt(math.fsum((v - mean) ** 2 for v in values) / max(1, n - 1) / n)


def student_quantile(level: float, freedom: int) -> float:
    """Return t for which a Student variable of so many degrees of freedom, >= 1, lies in -t..t at this level.

    By bisection of the finite sums of Abramowitz and Stegun 1964, 26.7.3 and 26.7.4.
    """
    low, high = 0.0, math.pi / 2  # of the angle whose tangent is t / sqrt(freedom)
    for _ in range(60):
        angle = (low + high) / 2
        low, high = (angle, high) if _student_share(angle, freedom) < level else (low, angle)
    return math.sqrt(freedom) * math.tan(low)


def _student_share(angle: float, freedom: int) -> float:
    odd = freedom % 2
    cosine = math.cos(angle)
    term, total = (cosine if odd else 1.0), 0.0
    for k in range(2 + odd, freedom + 1, 2):
        total += term
        term *= cosine * cosine * (k - 1) / k
    if odd:
        return 2 / math.pi * (angle + math.sin(angle) * total)
    return math.sin(angle) * total
