"""Cross-validation: one model for each fold, trained on the other folds, and the best common number of trees."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from lmart.array_types import Float64Array, Int64Array
from lmart.data.dataset import RankingDataset, rows_of
from lmart.data.metadata import NO_METADATA, Metadata
from lmart.measures import Evaluator
from lmart.measures.intervals import interval_of_mean, mean_of, standard_error, weighted_standard_error
from lmart.measures.measured_queries import scaled_weights
from lmart.settings.resolved import ResolvedSettings
from lmart.threads import WorkerPool
from lmart.training.early_stopping import EarlyStopping
from lmart.training.fold_training import FoldTraining
from lmart.training.folds import assign_folds
from lmart.training.rankers import RoundReport

LEVEL = 0.95  # of the interval


@dataclass(frozen=True)
class Fold:
    """The measure of the model that was not trained on these queries.

    n_queries, n_documents : of the fold, which the model was not trained on
    measure    : with the number of trees that is common to all folds; nan when no query has a weight above 0
    best_round : the number of trees of each ranker that is best for this fold alone, the first on ties, 0 when none was
                 grown, or none was better than the initial scores
    best       : the measure at it; rounds : trees grown, of each ranker
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
    n_rankers      : rankers of each fold's model
    rounds         : trees of each ranker: the first best of `curve`, at least 1, or 0 when there are initial scores and
                     no round is better than they are alone
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
    n_rankers: int
    rounds: int
    curve: Float64Array
    start: float | None
    mean: float
    interval: tuple[float, float] | None
    standard_error: float
    stopped: bool
    folds: tuple[Fold, ...]
    scores: Float64Array
    warnings: tuple[str, ...]

    @property
    def trees(self) -> int:
        """The number of trees of all rankers together."""
        return self.rounds * self.n_rankers


def cross_validate(
    dataset: RankingDataset,
    n_folds: int,
    settings: ResolvedSettings,
    pool: WorkerPool,
    on_round: Callable[[int, RoundReport], None] = lambda fold, report: None,
    metadata: Metadata = NO_METADATA,
) -> CrossValidation:
    """Train one model a fold on the other folds, and measure it on its own.

    dataset  : all queries
    n_folds  : number of folds
    settings : resolved by the whole set
    pool     : the workers
    on_round : called after each round with the number of the fold, from 0, and the report
    metadata : of the whole set; weights count in training and in measures, positions in training

    One tree count is chosen for all folds and rankers, the one with the best mean measure: a separate count for each
    fold would be optimistic, because the final model has to fix it in advance. With early stopping all folds are
    trained in turn, a round each, all with their bins in memory, until the mean has not improved for that many rounds;
    else they are trained one after the other. DataError when there are more folds than queries, and as `TrainingRun`.
    """
    fold_of_query = assign_folds(dataset, n_folds, settings.rankers[0].seed, metadata.weights)
    prepare = partial(FoldTraining, dataset, metadata, settings=settings, pool=pool)
    unprepared = [partial(prepare, held_out=np.flatnonzero(fold_of_query == fold)) for fold in range(n_folds)]
    if settings.patience is not None:
        folds = [make() for make in unprepared]
        stopped = _grow_side_by_side(folds, settings, on_round)
    else:
        stopped, folds = False, _grow_one_by_one(unprepared, on_round)
    rounds, mean_curve, start = _best_of_mean(folds)
    kind = settings.measure.kind
    scores = np.empty(dataset.n_documents)
    for fold in folds:
        scores[rows_of(dataset.query_offsets, fold.held_out)] = fold.held_out_scores(rounds)
    return CrossValidation(
        fold_of_query,
        len(settings.rankers),
        rounds,
        mean_curve,
        start,
        _mean_of(folds, rounds),
        interval_of_mean([fold.measure(rounds) for fold in folds], LEVEL, kind.at_most_1, kind.lowest),
        _error_over_queries(dataset, scores, settings, pool, metadata.weights),
        stopped,
        tuple(_result(fold, dataset, rounds) for fold in folds),
        scores,
        tuple(f"fold {number}: {text}" for number, fold in enumerate(folds, 1) for text in fold.warnings),
    )


def _best_of_mean(folds: Sequence[FoldTraining]) -> tuple[int, Float64Array, float | None]:
    """Return `rounds`, `curve` and `start` of a CrossValidation."""
    length = max(1, *(len(fold.curve) for fold in folds))
    mean_curve = np.array([_mean_of(folds, trees) for trees in range(1, length + 1)])
    start = _mean_of(folds, 0) if any(fold.may_start for fold in folds) else None
    trees = int(np.argmax(mean_curve)) + 1
    if start is not None and not mean_curve[trees - 1] > start:
        trees = 0
    return trees, mean_curve, start


def _result(fold: FoldTraining, dataset: RankingDataset, rounds: int) -> Fold:
    """Return the result of a fold when all folds have `rounds` trees of each ranker."""
    best = fold.best_round()
    sizes = np.diff(dataset.query_offsets)[fold.held_out]
    measures = fold.measure(rounds), best, fold.measure(best)
    return Fold(len(fold.held_out), int(sizes.sum()), *measures, len(fold.curve))


def _grow_one_by_one(
    unprepared: Sequence[Callable[[], FoldTraining]], on_round: Callable[[int, RoundReport], None]
) -> list[FoldTraining]:
    """Grow all trees of a fold before the next one is prepared, so that only one has its bins in memory."""
    folds = []
    for number, make in enumerate(unprepared):
        folds.append(make())
        while (report := folds[-1].grow()) is not None:
            on_round(number, report)
        folds[-1].forget()
    return folds


def _grow_side_by_side(
    folds: Sequence[FoldTraining], settings: ResolvedSettings, on_round: Callable[[int, RoundReport], None]
) -> bool:
    """Grow a tree of every fold in turn; return True when early stopping ended it.

    False when no fold could grow a further tree.
    """
    may_start = any(fold.may_start for fold in folds)
    stopping = EarlyStopping(settings.patience, _mean_of(folds, 0) if may_start else None)
    for number in range(1, settings.rounds + 1):
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


def _mean_of(folds: Sequence[FoldTraining], trees: int) -> float:
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
    counts = scaled_weights(weights, dataset.query_offsets).per_query
    return weighted_standard_error(values, counts, report.values[str(measure)] or 0.0)
