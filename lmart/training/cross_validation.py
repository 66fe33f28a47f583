"""Cross-validation: one model for each fold, trained on the other folds, and the best common number of trees."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from lmart.array_types import Float64Array, Int64Array
from lmart.data.dataset import RankingDataset, rows_of, select_queries, take_rows
from lmart.data.metadata import NO_SIDECARS, Sidecars
from lmart.measures import Evaluator
from lmart.measures.evaluation import query_weights
from lmart.measures.intervals import interval_of_mean, mean_of, standard_error, weighted_standard_error
from lmart.scoring.ensemble import Tree
from lmart.scoring.scorer import Scorer
from lmart.settings.resolved import ResolvedSettings, resolve
from lmart.threads import WorkerPool
from lmart.training.boosting import TrainingRun
from lmart.training.folds import assign_folds
from lmart.training.rankers import EarlyStopping, RoundReport

LEVEL = 0.95  # of the interval


@dataclass(frozen=True)
class Fold:
    """The measure of the model that was not trained on these queries.

    n_queries, n_documents : of the fold, which the model was not trained on
    measure    : with the number of trees that is common to all folds; nan when no query has a weight above 0
    best_round : the number of trees that is best for this fold alone, the first on ties, 0 when none was grown, or
                 none was better than the initial scores
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
    """The result of cross-validation.

    fold_of_query  : int64[n_queries], from 0
    trees          : the common number of trees: the first best of `curve`, at least 1, or 0 when there are initial
                     scores and no round is better than they are alone
    curve          : float64[n], the mean over folds of the held-out measure after each round
    start          : the same before the first round, when there are initial scores
    mean           : of the folds' measures at that number
    interval       : of the mean, at LEVEL, by Student's t over the folds, clipped to the measure's range; None when
                     fewer than two folds have a measure
    standard_error : of the mean over queries, all folds together
    stopped        : whether early stopping ended the training
    scores         : float64[n_documents], each by the model not trained on its query, initial scores included
    warnings       : of single folds
    """

    fold_of_query: Int64Array
    trees: int
    curve: Float64Array
    start: float | None
    mean: float
    interval: tuple[float, float] | None
    standard_error: float
    stopped: bool
    folds: tuple[Fold, ...]
    scores: Float64Array
    warnings: tuple[str, ...]


class _Fold:
    """The training of one fold: every tree that it grew, and the held-out measure before and after each."""

    def __init__(
        self,
        dataset: RankingDataset,
        sidecars: Sidecars,
        held_out: Int64Array,
        settings: ResolvedSettings,
        pool: WorkerPool,
    ) -> None:
        """Prepare to train on all queries but those held out.

        dataset  : all queries
        sidecars : of all queries
        held_out : int64[n_held_out], indices of the queries that are measured
        settings : of the whole run; no fold stops early by itself
        pool     : the workers
        """
        seen = np.setdiff1d(np.arange(dataset.n_queries), held_out)
        parts = [select_queries(dataset, queries) for queries in (seen, held_out)]
        own, others = (sidecars.of_queries(dataset.query_offsets, queries) for queries in (seen, held_out))
        facts = settings.facts._replace(n_documents=parts[0].n_documents)
        of_fold = resolve(replace(settings.recorded, early_stop=0), facts)
        run = TrainingRun(parts[0], parts[1:], of_fold, pool, own, [others])
        self.held_out = held_out
        self.empty, self.warnings = run.empty, list(run.warnings)
        if not run.can_learn:
            weighted = "" if sidecars.weights is None else " with a weight above 0"
            self.warnings.append(
                f"nothing to learn from the other folds: no query{weighted} has two documents of different relevance"
            )
        self.trees: list[Tree] = []
        self.may_start = run.start is not None
        self.start = _number(run.measure_validation()[0])
        self.curve: list[float] = []
        self._rounds = run.rounds()

    def grow(self) -> RoundReport | None:
        """Grow one more tree; return its report, None when no split is left or all --trees are grown."""
        report = next(self._rounds, None)
        if report is not None:
            self.trees.append(report.tree)
            self.curve.append(_number(report.validation[0]))
        return report

    def forget(self) -> None:
        """Release the data; no more trees can be grown."""
        self._rounds = iter(())

    def measure(self, trees: int) -> float:
        """Return the measure with this number of trees, or with all if there are fewer."""
        return [self.start, *self.curve][min(trees, len(self.curve))]

    def result(self, dataset: RankingDataset, trees: int) -> Fold:
        """Return the result of the fold when all folds have `trees` trees."""
        least = 0 if self.may_start or not self.curve else 1
        best = least + int(np.argmax([self.start, *self.curve][least:]))
        sizes = np.diff(dataset.query_offsets)[self.held_out]
        return Fold(
            len(self.held_out), int(sizes.sum()), self.measure(trees), best, self.measure(best), len(self.curve)
        )


def cross_validate(
    dataset: RankingDataset,
    n_folds: int,
    settings: ResolvedSettings,
    pool: WorkerPool,
    on_round: Callable[[int, RoundReport], None] = lambda fold, report: None,
    sidecars: Sidecars = NO_SIDECARS,
) -> CrossValidation:
    """Train one model a fold on the other folds, and measure it on its own.

    dataset  : all queries
    n_folds  : number of folds
    settings : resolved by the whole set, with one ranker
    pool     : the workers
    on_round : called after each round with the number of the fold, from 0, and the report
    sidecars : of the whole set; weights count in training and in measures, positions in training

    One tree count is chosen for all folds, the one with the best mean measure: a separate count for each fold would be
    optimistic, because the final model has to fix it in advance. With early stopping all folds are trained in turn, a
    round each, all with their bins in memory, until the mean has not improved for that many rounds; else they are
    trained one after the other. DataError when there are more folds than queries, and as `TrainingRun`.
    """
    fold_of_query = assign_folds(dataset, n_folds, settings.rankers[0].seed, sidecars.weights)
    prepare = partial(_Fold, dataset, sidecars, settings=settings, pool=pool)
    unprepared = [partial(prepare, held_out=np.flatnonzero(fold_of_query == fold)) for fold in range(n_folds)]
    if settings.patience is not None:
        folds = [make() for make in unprepared]
        stopped = _grow_side_by_side(folds, settings, on_round)
    else:
        stopped, folds = False, _grow_one_by_one(unprepared, on_round)
    trees, mean_curve, start = _best_of_mean(folds)
    scores = _held_out_scores(dataset, folds, trees, pool)
    if sidecars.init_scores is not None:
        scores += sidecars.init_scores
    return CrossValidation(
        fold_of_query,
        trees,
        mean_curve,
        start,
        _mean_of(folds, trees),
        interval_of_mean([fold.measure(trees) for fold in folds], LEVEL, settings.measure.kind.at_most_1),
        _error_over_queries(dataset, scores, settings, pool, sidecars.weights),
        stopped,
        tuple(fold.result(dataset, trees) for fold in folds),
        scores,
        tuple(f"fold {number}: {text}" for number, fold in enumerate(folds, 1) for text in fold.warnings),
    )


def _best_of_mean(folds: Sequence[_Fold]) -> tuple[int, Float64Array, float | None]:
    """Return `trees`, `curve` and `start` of a CrossValidation."""
    length = max(1, *(len(fold.curve) for fold in folds))
    mean_curve = np.array([_mean_of(folds, trees) for trees in range(1, length + 1)])
    start = _mean_of(folds, 0) if any(fold.may_start for fold in folds) else None
    trees = int(np.argmax(mean_curve)) + 1
    if start is not None and not mean_curve[trees - 1] > start:
        trees = 0
    return trees, mean_curve, start


def _held_out_scores(dataset: RankingDataset, folds: Sequence[_Fold], trees: int, pool: WorkerPool) -> Float64Array:
    """Return the score of each document by so many trees of the fold that did not see it, float64[n_documents]."""
    scores = np.empty(dataset.n_documents)
    columns = np.arange(dataset.n_features, dtype=np.int32)
    for fold in folds:
        rows = rows_of(dataset.query_offsets, fold.held_out)
        ensemble = replace(fold.empty, trees=tuple(fold.trees[:trees]))
        scores[rows] = Scorer(ensemble).score(take_rows(dataset.features, rows), columns, pool)
    return scores


def _grow_one_by_one(
    unprepared: Sequence[Callable[[], _Fold]], on_round: Callable[[int, RoundReport], None]
) -> list[_Fold]:
    """Grow all trees of a fold before the next one is prepared, so that only one has its bins in memory."""
    folds = []
    for number, make in enumerate(unprepared):
        folds.append(make())
        while (report := folds[-1].grow()) is not None:
            on_round(number, report)
        folds[-1].forget()
    return folds


def _grow_side_by_side(
    folds: Sequence[_Fold], settings: ResolvedSettings, on_round: Callable[[int, RoundReport], None]
) -> bool:
    """Grow a tree of every fold in turn; return True when early stopping ended it.

    False when no fold could grow a further tree.
    """
    may_start = any(fold.may_start for fold in folds)
    stopping = EarlyStopping(settings.patience, _mean_of(folds, 0) if may_start else None)
    for number in range(1, settings.trees + 1):
        grew = False
        for number_of_fold, fold in enumerate(folds):
            report = fold.grow()
            if report is not None:
                grew = True
                on_round(number_of_fold, report)
        if not grew:
            return False
        if stopping.update(number, _mean_of(folds, number)):
            return True
    return False


def _number(measure: float | None) -> float:
    """Return the measure, nan for None."""
    return math.nan if measure is None else measure


def _mean_of(folds: Sequence[_Fold], trees: int) -> float:
    """Return the mean measure, over the folds that have one, with this number of trees or all if a fold has fewer."""
    return mean_of([value for value in (fold.measure(trees) for fold in folds) if not math.isnan(value)])


def _error_over_queries(
    dataset: RankingDataset,
    scores: Float64Array,
    settings: ResolvedSettings,
    pool: WorkerPool,
    weights: Float64Array | None,
) -> float:
    """Return the standard error of the mean over queries, or of their weighted mean."""
    measure = settings.measure
    fixed = (dataset.labels, dataset.query_offsets, [measure], pool, weights, settings.largest_label)
    report = Evaluator(*fixed).evaluate(scores)
    values = report.per_query[str(measure)]
    if weights is None:
        return standard_error(values.tolist())
    counts = query_weights(weights, dataset.query_offsets)
    return weighted_standard_error(values, counts, report.values[str(measure)] or 0.0)
