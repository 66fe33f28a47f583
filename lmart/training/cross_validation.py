"""Cross-validation: one model for each fold, trained on the other folds, and the best common number of trees."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from lmart.array_types import Float64Array, Int32Array, Int64Array
from lmart.binning.categories import bin_training_set, placed_dataset
from lmart.binning.validation_set import code_dataset
from lmart.data.dataset import RankingDataset, rows_of, select_queries
from lmart.data.metadata import NO_METADATA, Metadata
from lmart.errors import counted
from lmart.measures import Evaluator
from lmart.measures.judgments import Judgments
from lmart.measures.measure import Measure
from lmart.measures.results import EvaluationReport, scaled_weights
from lmart.measures.student import interval_of_mean, mean_of, standard_error, weighted_standard_error
from lmart.scoring.ensemble import Ensemble, Tree
from lmart.scoring.scorer import Scorer
from lmart.settings.resolved import ResolvedSettings, resolve
from lmart.threads import WorkerPool
from lmart.training.boosting import TrainingRun, without_trees
from lmart.training.early_stopping import EarlyStopping
from lmart.training.folds import Folds, assign_folds
from lmart.training.linear import linear_factors, room_beside
from lmart.training.measured import Measures, deciding
from lmart.training.rankers import RoundReport, ranker_weights, weighted
from lmart.training.scores import spread
from lmart.training.tree_log import TreeLog

LEVEL = 0.95  # of the interval


@dataclass(frozen=True)
class FurtherMeasure:
    """A measure over all folds that decides nothing; fields as those of CrossValidation and Fold.

    measures : of each fold; curve : after each round
    """

    mean: float
    interval: tuple[float, float] | None
    standard_error: float
    measures: tuple[float, ...]
    curve: Float64Array


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


@dataclass(frozen=True, eq=False, repr=False)
class CrossValidation:
    """The result of cross-validation.

    fold_of_query  : int64[n_queries], from 0
    names          : of the folds, where queries were assigned by name; else ()
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
    further        : measures behind the first, by name
    """

    fold_of_query: Int64Array
    names: tuple[str, ...]
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
    further: Mapping[str, FurtherMeasure]

    def __repr__(self) -> str:
        folds, trees = counted(len(self.folds), "fold"), counted(self.trees, "tree")
        return f"<lmart.CrossValidation: mean {self.mean:.6f} of {folds} with {trees}>"

    @property
    def trees(self) -> int:
        """The number of trees of all rankers together."""
        return self.rounds * self.n_rankers


class FoldTraining:
    """The training of one fold: all trees of its rankers, and the held-out measures before and after each round.

    A round is one tree of every ranker; the measures are those of their mean.

    held_out  : int64[n_held_out], indices of the queries that are measured
    trees     : of each ranker, as grown
    measured  : the measures before the first round and after each
    may_start : whether there are initial scores
    warnings  : about the data of the fold
    """

    def __init__(
        self,
        dataset: RankingDataset,
        metadata: Metadata,
        held_out: Int64Array,
        settings: ResolvedSettings,
        pool: WorkerPool,
        log: TreeLog,
    ) -> None:
        """Prepare to train on all queries but those held out.

        dataset  : all queries
        metadata : of all queries
        held_out : int64[n_held_out], indices of the queries that are measured
        settings : of the whole run; no fold stops early by itself
        pool     : the workers
        log      : of the trees of all folds
        """
        seen = np.setdiff1d(np.arange(dataset.n_queries), held_out)
        self._seen, self._measured = (select_queries(dataset, queries) for queries in (seen, held_out))
        own, others = (metadata.of_queries(dataset.query_offsets, queries) for queries in (seen, held_out))
        facts = settings.facts._replace(n_documents=self._seen.n_documents)
        of_fold = resolve(replace(settings.recorded, early_stop=0), facts)
        recorded = of_fold.recorded
        binned = bin_training_set(self._seen, recorded, pool)
        self.empty = without_trees(binned, recorded, binned.categories)
        coded = code_dataset(self._measured, self.empty, binned.features.edges, pool)
        self._seen, self._measured = (placed_dataset(data, binned.categories) for data in (self._seen, self._measured))
        self._runs = [
            TrainingRun(
                binned,
                [coded],
                replace(of_fold, rankers=(replace(ranker, trees=of_fold.rounds),), linear=0.0 if k else of_fold.linear),
                pool,
                own,
                [others],
            )
            for k, ranker in enumerate(of_fold.rankers)
        ]
        first = self._runs[0]
        self._pool = pool
        judgments = Judgments(self._measured.labels, self._measured.query_offsets)
        self._evaluator = Evaluator(judgments, settings.measures, pool, others.weights, of_fold.largest_label)
        self.held_out = held_out
        self.warnings = list(first.warnings)
        if not any(run.can_learn for run in self._runs):
            with_weight = "" if metadata.weights is None else " with a weight above 0"
            what = f"no query{with_weight} has two documents of different relevance"
            self.warnings.append(f"nothing to learn from the other folds: {what}")
        self.trees: list[list[Tree]] = [[] for _ in self._runs]
        self.may_start = first.start is not None
        self.measured: list[Measures] = [first.measure_validation()[0]]
        self._init_scores = np.zeros(len(self._measured.labels)) if others.init_scores is None else others.init_scores
        self._prepare_linear(of_fold)
        self._rounds: list[Iterator[RoundReport]] = [run.rounds(log) for run in self._runs]

    def _prepare_linear(self, settings: ResolvedSettings) -> None:
        """Fit the linear ranker, if there is one, beside as many trees as there may be."""
        run = self._runs[0]
        n_nodes = sum(settings.rounds * (ranker.tree.max_leaves - 1) for ranker in settings.rankers)
        room = room_beside(n_nodes, settings.rounds * len(settings.rankers))
        self._linear_trees, self._linear_weight = run.linear_trees(room), settings.linear
        self._linear_scores = run.scores_of(self._linear_trees)

    def _linear_factors(self, training_scores: Float64Array) -> tuple[float, float]:
        """Return what the scores of the other rankers' mean and of the linear ranker are multiplied by.

        training_scores : of the mean of the other rankers
        """
        spreads = [spread(scores, self._seen.query_offsets) for scores in (training_scores, self._linear_scores[0])]
        return linear_factors(self._linear_weight, spreads, self.may_start)

    def grow(self) -> RoundReport | None:
        """Grow one more tree of each ranker; return a report with the measure of their mean.

        None when no ranker has a split left, or all have all of their trees.
        """
        latest = None
        for trees, rounds in zip(self.trees, self._rounds, strict=True):
            report = next(rounds, None)
            if report is not None:
                trees.append(report.tree)
                latest = report
        if latest is None:
            return None
        if len(self._runs) > 1 or self._linear_trees:
            runs = [run for run, trees in zip(self._runs, self.trees, strict=True) if trees]
            training = [run.training_scores for run in runs]
            scores = _weighted_sum(self._weights(training), [run.validation_scores for run in runs])
            if self._linear_trees:
                others, factor = self._linear_factors(_weighted_sum(self._weights(training), training))
                scores = others * scores + factor * self._linear_scores[1]
            latest = replace(latest, round=self.rounds + 1, validation_measures=(self._evaluate(scores),))
        self.measured.append(latest.validation_measures[0])
        return latest

    @property
    def rounds(self) -> int:
        """The rounds so far."""
        return len(self.measured) - 1

    def forget(self) -> None:
        """Release the data in bins; no more trees can be grown."""
        self._rounds, self._runs = [], []

    def measure(self, rounds: int, name: str | None = None) -> float:
        """Return a measure, the first without a name, after this number of rounds, or after all if there are fewer.

        nan when no query counts
        """
        measures = self.measured[min(rounds, self.rounds)]
        return _number(deciding(measures) if name is None else measures[name])

    def held_out_scores(self, rounds: int) -> tuple[Float64Array, Measures]:
        """Return the scores of the fold's documents by the model of this many rounds, and the measures of them.

        The scores include initial scores. Those of several rankers are added up as in a model, so that their measures
        differ from those of the curve by rounding.
        """
        kept = [trees[:rounds] for trees in self.trees if trees[:rounds]]
        columns = np.arange(self._seen.n_features, dtype=np.int32)
        several = len(kept) > 1 or (bool(kept) and bool(self._linear_trees))
        if several:
            training = [self._score(trees, self._seen, columns) for trees in kept]
            weights = self._weights(training)
            if self._linear_trees:
                others, factor = self._linear_factors(_weighted_sum(weights, training))
                kept.append([grown.tree for grown in self._linear_trees])
                weights = [*(others * weight for weight in weights), factor]
            kept = [[weighted(tree, w) for tree in trees] for trees, w in zip(kept, weights, strict=True)]
        scores = self._score([tree for trees in kept for tree in trees], self._measured, columns)
        scores += self._init_scores
        return scores, self._evaluate(scores) if several else self.measured[min(rounds, self.rounds)]

    def result(self, rounds: int, measure: float) -> Fold:
        """Return the result of the fold with the number of rounds that all folds have, and the measure at it."""
        measures = [_number(deciding(measured)) for measured in self.measured]
        measures[min(rounds, self.rounds)] = measure
        fewest = 0 if self.may_start or not self.rounds else 1
        best = fewest + int(np.argmax(measures[fewest:]))
        return Fold(
            n_queries=len(self.held_out),
            n_documents=self._measured.n_documents,
            measure=measure,
            best_round=best,
            best=measures[best],
            rounds=self.rounds,
        )

    def _score(self, trees: list[Tree], dataset: RankingDataset, columns: Int32Array) -> Float64Array:
        ensemble: Ensemble = replace(self.empty, trees=tuple(trees))
        return Scorer(ensemble).score(dataset.features, columns, self._pool)

    def _weights(self, training_scores: list[Float64Array]) -> list[float]:
        return ranker_weights(training_scores, self._seen.query_offsets, self.may_start)

    def _evaluate(self, scores: Float64Array) -> Measures:
        return self._evaluator.evaluate(scores).values


def _weighted_sum(weights: Sequence[float], scores: Sequence[Float64Array]) -> Float64Array:
    """Return the sum of scores, float64[n] each, times their weights."""
    return np.asarray(sum(weight * of_ranker for weight, of_ranker in zip(weights, scores, strict=True)))


def cross_validate(
    dataset: RankingDataset,
    folds: int | Folds,
    settings: ResolvedSettings,
    pool: WorkerPool,
    on_round: Callable[[int, RoundReport], None] = lambda fold, report: None,
    metadata: Metadata = NO_METADATA,
    log: TreeLog | None = None,
) -> CrossValidation:
    """Train one model a fold on the other folds, and measure it on its own.

    dataset  : all queries
    folds    : which queries are in which fold, or the number of folds that they are dealt to, by `assign_folds`
    settings : resolved by the whole set
    pool     : the workers
    on_round : called after each round with the number of the fold, from 0, and the report
    metadata : of the whole set; weights count in training and in measures, positions in training
    log      : gives the trees of an interrupted run, and takes new ones; None: there is none

    One tree count is chosen for all folds and rankers, the one with the best mean measure: a separate count for each
    fold would be optimistic, because the final model has to fix it in advance. With early stopping all folds are
    trained in turn, a round each, all with their bins in memory, until the mean has not improved for that many rounds;
    else they are trained one after the other. DataError when there are more folds than queries, and as `TrainingRun`.
    """
    if isinstance(folds, int):
        folds = Folds(assign_folds(dataset, folds, settings.rankers[0].seed, metadata.weights))
    log = TreeLog() if log is None else log
    prepare = partial(FoldTraining, dataset, metadata, settings=settings, pool=pool, log=log)
    unprepared = [partial(prepare, held_out=np.flatnonzero(folds.of_query == fold)) for fold in range(len(folds))]
    if settings.patience is not None:
        trained = [make() for make in unprepared]
        stopped = _grow_side_by_side(trained, settings, on_round)
    else:
        stopped, trained = False, _grow_one_by_one(unprepared, on_round)
    rounds, start = _best_of_mean(trained)
    scores, measured = _held_out_scores(trained, rounds, dataset.query_offsets)
    judgments = Judgments(dataset.labels, dataset.query_offsets)
    evaluator = Evaluator(judgments, settings.measures, pool, metadata.weights, settings.largest_label)
    report = evaluator.evaluate(scores)
    errors = {name: _error_over_queries(report, name, dataset, metadata.weights) for name in report.per_query}
    first, *others = (_over_folds(measure, trained, measured, errors) for measure in settings.measures)
    return CrossValidation(
        fold_of_query=folds.of_query,
        names=folds.names,
        n_rankers=len(settings.rankers),
        rounds=rounds,
        curve=first.curve,
        start=start,
        mean=first.mean,
        interval=first.interval,
        standard_error=first.standard_error,
        stopped=stopped,
        folds=tuple(fold.result(rounds, measure) for fold, measure in zip(trained, first.measures, strict=True)),
        scores=scores,
        warnings=tuple(
            f"fold {folds.name(number)}: {text}" for number, fold in enumerate(trained) for text in fold.warnings
        ),
        further=dict(zip(map(str, settings.measures[1:]), others, strict=True)),
    )


def _held_out_scores(
    trained: Sequence[FoldTraining], rounds: int, query_offsets: Int64Array
) -> tuple[Float64Array, list[Measures]]:
    """Return the scores of all documents by the models that did not see them, and the measures of each fold."""
    scores, measured = np.empty(query_offsets[-1]), []
    for fold in trained:
        rows = rows_of(query_offsets, fold.held_out)
        scores[rows], measures = fold.held_out_scores(rounds)
        measured.append(measures)
    return scores, measured


def _over_folds(
    measure: Measure, folds: Sequence[FoldTraining], measured: Sequence[Measures], errors: Mapping[str, float]
) -> FurtherMeasure:
    """Return a measure over all folds.

    measured : measures of each fold with the number of trees that is common to all
    errors   : standard error of each measure
    """
    name, kind = str(measure), measure.kind
    values = [_number(measures[name]) for measures in measured]
    interval = interval_of_mean(values, LEVEL, kind.at_most_1, kind.lowest)
    return FurtherMeasure(_mean_of(values), interval, errors[name], tuple(values), _mean_curve(folds, name))


def _mean_curve(folds: Sequence[FoldTraining], name: str | None = None) -> Float64Array:
    """Return the mean over folds of a measure, the first without a name, after each round, float64[n]."""
    length = max(1, *(fold.rounds for fold in folds))
    return np.array([_mean_of([fold.measure(rounds, name) for fold in folds]) for rounds in range(1, length + 1)])


def _best_of_mean(folds: Sequence[FoldTraining]) -> tuple[int, float | None]:
    """Return `rounds` and `start` of a CrossValidation."""
    mean_curve = _mean_curve(folds)
    start = _mean_after(folds, 0) if any(fold.may_start for fold in folds) else None
    trees = int(np.argmax(mean_curve)) + 1
    if start is not None and not mean_curve[trees - 1] > start:
        trees = 0
    return trees, start


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
    stopping = EarlyStopping(settings.patience, _mean_after(folds, 0) if may_start else None)
    for number in range(1, settings.rounds + 1):
        grew = False
        for number_of_fold, fold in enumerate(folds):
            report = fold.grow()
            if report is not None:
                grew = True
                on_round(number_of_fold, report)
        if not grew:
            return False
        if stopping.update(number, _mean_after(folds, number)):
            return True
    return False


def _mean_after(folds: Sequence[FoldTraining], trees: int) -> float:
    """Return the mean measure of the folds with this number of trees, or with all if a fold has fewer."""
    return _mean_of([fold.measure(trees) for fold in folds])


def _mean_of(measures: Sequence[float]) -> float:
    """Return the mean of the measures of folds in which a query counts."""
    return mean_of([value for value in measures if not math.isnan(value)])


def _error_over_queries(
    report: EvaluationReport, name: str, dataset: RankingDataset, weights: Float64Array | None
) -> float:
    """Return the standard error of the mean of a measure over queries, or of their weighted mean."""
    values = report.per_query[name]
    if weights is None:
        return standard_error(values.tolist())
    counts = scaled_weights(weights, dataset.query_offsets).per_query
    return weighted_standard_error(values, counts, report.values[name] or 0.0)


def _number(measure: float | None) -> float:
    """Return the measure, nan for None."""
    return math.nan if measure is None else measure
