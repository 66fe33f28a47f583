"""The boosting loop: from a training set and settings to an ensemble."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lmart.array_types import Float64Array, Int8Array
from lmart.binning.binned_features import BinnedDataset
from lmart.binning.categories import bin_training_set
from lmart.binning.edges import BinEdges
from lmart.binning.validation_set import CodedDataset, code_dataset
from lmart.constraints import MonotoneConstraints
from lmart.data.categories import Categories
from lmart.data.dataset import Features, RankingDataset
from lmart.data.metadata import NO_METADATA, Metadata
from lmart.errors import DataError, SettingsError, quote
from lmart.scoring.ensemble import Ensemble, RankerPart
from lmart.settings import TrainSettings
from lmart.settings.resolved import ResolvedSettings
from lmart.threads import WorkerPool
from lmart.training import objectives
from lmart.training.continuation import Continuation, Difference
from lmart.training.early_stopping import EarlyStopping
from lmart.training.grower import GrownTree, Histograms
from lmart.training.grower.leaves import RowNarrowing
from lmart.training.linear import (
    LinearSource,
    LocalLinearSource,
    Room,
    fit_steps,
    guarded_weight,
    linear_factors,
    room_beside,
    step_trees,
)
from lmart.training.measured import Measures, deciding
from lmart.training.rankers import (
    LocalFitting,
    RankerTraining,
    RoundReport,
    TrainedRanker,
    TreeFitting,
    weighted,
    weights_of_spreads,
)
from lmart.training.resolving import Trainable, resolve_for, source_named
from lmart.training.scores import (
    LocalTrainingScores,
    LocalValidationScores,
    MeasuredScores,
    ModelView,
    TrainingScores,
)
from lmart.training.train_result import LinearSummary, RankerSummary, Start, TrainResult
from lmart.training.tree_log import TreeLog
from lmart.training.tree_round import GrowingSetup


def without_trees(features: Features, settings: TrainSettings, categories: Sequence[Categories] = ()) -> Ensemble:
    """Return an ensemble of these features without trees; categories : those of the features that are some."""
    return Ensemble(
        (),
        features.feature_ids,
        features.feature_names,
        absent=settings.absent,
        gain=str(settings.gain),
        settings=settings.to_json(),
        categories=tuple(categories),
    )


def train(
    train_set: Trainable,
    validation_sets: Sequence[RankingDataset | CodedDataset],
    settings: TrainSettings,
    pool: WorkerPool,
    on_round: Callable[[RoundReport], None] = lambda report: None,
    metadata: Metadata = NO_METADATA,
    validation_metadata: Sequence[Metadata] | None = None,
) -> TrainResult:
    """Train the rankers, one after the other; the result depends only on the data and the settings.

    train_set, validation_sets : in memory, or in bins already; coded ones must be in the bins of the training set
    settings : as given
    pool     : the workers
    on_round : called after each round
    metadata : of the training set
    validation_metadata : of each validation set, its initial scores and weights; None: none

    Errors are those of `resolve_for` and `TrainingRun`; LmartError also when scores may grow beyond LARGEST_SCORE.
    """
    resolved = resolve_for(settings, train_set, validation_sets, with_positions=metadata.positions is not None)
    run = TrainingRun(train_set, validation_sets, resolved, pool, metadata, validation_metadata)
    for report in run.rounds():
        on_round(report)
    return run.finish()


@dataclass(frozen=True)
class Learner:
    """What a run learns from, wherever its documents are.

    fittings        : of each ranker
    training        : the training set
    validation_sets : the sets that are measured
    n_features      : features with two bins
    n_idle_queries  : queries without a pair: no two documents have different relevance
    can_learn       : whether any query with a pair has a weight above 0
    warnings        : how validation sets fail to match the training set
    given_start     : there are initial scores
    directions      : int8[m], the monotone constraints of features in bins; None: none
    linear          : what a linear ranker is fitted to; None: there is none
    """

    fittings: Sequence[TreeFitting]
    training: TrainingScores
    validation_sets: Sequence[MeasuredScores]
    n_features: int
    n_idle_queries: int
    can_learn: bool
    warnings: tuple[str, ...]
    given_start: bool
    directions: Int8Array | None
    linear: LinearSource | None


class BoostingRun:
    """A run that is ready to grow its first tree.

    Rankers are trained one after the other, each by itself, and the ensemble is their mean. The first validation set
    decides on early stopping; with initial scores, the best ranker may have no tree at all.

    settings       : of the run
    empty          : the ensemble without trees
    n_idle_queries : queries without a pair: no two documents have different relevance
    can_learn      : whether any query with a pair has a weight above 0
    start          : the measures before the first round; None without initial scores and a model to go on from
    warnings       : how validation sets fail to match the training set
    continuation   : the model that the run continues; None: a new model
    """

    def __init__(
        self,
        settings: ResolvedSettings,
        empty: Ensemble,
        learner: Learner,
        started: float,
        continuation: Continuation | None = None,
    ) -> None:
        """Take what the run learns from.

        settings     : resolved by the training set
        empty        : the ensemble without trees
        learner      : what the run learns from
        started      : when the work on the data started, by time.perf_counter
        continuation : the model to continue; None: a new model
        """
        self.continuation = continuation
        self.settings, self.empty = settings, empty
        self._learner, self._training = learner, learner.training
        self._validation_sets = learner.validation_sets
        self.n_idle_queries, self.can_learn = learner.n_idle_queries, learner.can_learn
        self.warnings = learner.warnings
        has_start = learner.given_start or continuation is not None
        self.start = Start(self.measure_validation(), self._training.measure()) if has_start else None
        self._trained: list[TrainedRanker] = []
        self._started, self._binning_done = started, time.perf_counter()

    @property
    def differences(self) -> list[Difference]:
        """Why a single run of all rounds would not give the same model as going on from a model."""
        before = self.continuation
        return (
            [] if before is None else before.differences(self.settings.recorded, self.empty, self._learner.given_start)
        )

    def measure_validation(self) -> tuple[Measures, ...]:
        """Return the measures of each validation set at its current scores."""
        return tuple(data.measure() for data in self._validation_sets)

    def rounds(self, log: TreeLog | None = None) -> Iterator[RoundReport]:
        """Grow trees, ranker by ranker, and yield a report of each before the next.

        log : gives the trees of an interrupted run, and takes new ones; None: there is none
        """
        log = TreeLog() if log is None else log
        settings, start = self.settings, self.start
        before = 0 if self.continuation is None else self.continuation.n_trees
        may_be_empty = start is not None and bool(self._validation_sets) and settings.patience is not None
        left = settings.trees
        for number, (fitting, of_ranker) in enumerate(zip(self._learner.fittings, settings.rankers, strict=True), 1):
            if settings.shares_trees and left < max([1, *(len(ranker.trees) for ranker in self._trained)]):
                break
            measure = start.validation[0] if start is not None and may_be_empty else None
            stopping = EarlyStopping(settings.patience, measure, may_be_empty)
            ranker = RankerTraining(fitting, number, self._training, self._validation_sets, stopping, log, before)
            yield from ranker.rounds(min(left, of_ranker.trees))
            self._trained.append(ranker.result())
            left -= self._trained[-1].rounds
            if log.at_end:
                break

    def finish(self) -> TrainResult:
        """Return the result of all rounds; `settings` are then what trains the same again."""
        if len(self._trained) == 1 < len(self.settings.rankers):
            self.settings = self.settings.of_first_ranker()
            self.empty = replace(self.empty, settings=self.settings.recorded.to_json())
        rankers = [ranker for ranker in self._trained if ranker.trees]
        sizes = [len(grown.split_bins) for ranker in rankers for grown in ranker.trees]
        steps = self.linear_trees(room_beside(sum(sizes), len(sizes)))
        linear = None
        if len(rankers) == 1 and not steps:
            (ranker,) = rankers
            final, validation = list(ranker.trees), ranker.validation_measures
            self._training.put_back(ranker.scores)
        else:
            final = self._weighted(rankers)
            if steps:
                final, linear = self._with_linear(final, steps)
            else:
                self._add_up(final)
            validation = self.measure_validation()
        self._score_as_model(final)
        ended = [ranker.stopped for ranker in self._trained]
        ensemble = replace(self.empty, trees=tuple(grown.tree for grown in final), rankers=self._parts(linear))
        if self.continuation is not None:
            ensemble = self.continuation.join(ensemble, self.settings.recorded, self.differences)
        return TrainResult(
            ensemble=ensemble,
            n_trees=sum(len(ranker.trees) for ranker in rankers),
            rounds=sum(ranker.rounds for ranker in self._trained),
            stopped=next((how for how in ("interrupted", "trees", "early") if how in ended), "split"),
            n_idle_queries=self.n_idle_queries,
            n_features_split=self._learner.n_features,
            sampling_rate=self.settings.sampling_rate,
            rankers=tuple(map(_summary, self._trained)),
            linear=linear,
            training_measures=self._training.measure(),
            validation_measures=validation,
            start=self.start,
            scores=self._final_scores(),
            position_bias=self._trained[0].position_bias if self._trained else np.zeros(0),
            warnings=self.warnings,
            seconds={
                "binning": self._binning_done - self._started,
                "growing": time.perf_counter() - self._binning_done,
            },
            continued_from=None if self.continuation is None else self.continuation.n_trees,
        )

    def _score_as_model(self, trees: Sequence[GrownTree]) -> None:
        """Set the scores of the training set to those that the model of these trees gives it, if they are others."""

    def _final_scores(self) -> Float64Array:
        """Return the scores of the training set; empty where they are not in this process."""
        return np.zeros(0)

    def _weighted(self, rankers: Sequence[TrainedRanker]) -> list[GrownTree]:
        """Return the trees of the model, in order, with leaf values that add up to the mean of the rankers."""
        if not rankers:
            return []
        if self.start is not None:
            weights = [1.0 / len(rankers)] * len(rankers)
        else:
            weights = weights_of_spreads(self._training.spreads([ranker.scores for ranker in rankers]))
        return [
            _weighted_tree(grown, weight)
            for ranker, weight in zip(rankers, weights, strict=True)
            for grown in ranker.trees
        ]

    def linear_trees(self, room: Room) -> list[GrownTree]:
        """Return the trees of the linear ranker, as far as there is room; [] where there is none."""
        learner = self._learner
        if learner.linear is None or not learner.n_features or not min(room):
            return []
        return step_trees(fit_steps(learner.linear, learner.directions), learner.linear, room)

    def _add_up(self, trees: Sequence[GrownTree], *, anew: bool = True) -> None:
        """Add up trees in all data sets as `predict` does, to the last bit.

        trees : in their order
        anew  : the scores start anew
        """
        sets: list[MeasuredScores] = [self._training, *self._validation_sets]
        for data in sets:
            if anew:
                data.restart()
            for grown in trees:
                data.add(grown)

    def _with_linear(self, trees: list[GrownTree], steps: Sequence[GrownTree]) -> tuple[list[GrownTree], LinearSummary]:
        """Return the trees of the model with those of the linear ranker, and what that is; add all of them up.

        trees : of the mean of the other rankers
        steps : of the linear ranker
        """
        training, weight, has_start = self._training, self.settings.linear, self.start is not None
        self._add_up(steps)
        own, own_scores = self.measure_validation(), training.keep(len(self._trained) + 1, copied=True)
        if has_start:
            trees = [_weighted_tree(grown, linear_factors(weight, (), has_start)[0]) for grown in trees]
        self._add_up(trees)
        if not has_start and own:
            weight = guarded_weight(weight, deciding(own[0]), deciding(self.measure_validation()[0]))
        spreads = training.spreads([training.keep(len(self._trained) + 2, copied=False), own_scores])
        _, factor = linear_factors(weight, spreads, has_start)
        scaled = [_weighted_tree(grown, factor) for grown in steps] if factor else []
        self._add_up(scaled, anew=False)
        return [*trees, *scaled], LinearSummary(own, weight, len(scaled))

    def _parts(self, linear: LinearSummary | None) -> tuple[RankerPart, ...]:
        """Return which trees of the model belong to which ranker; () for a single ranker."""
        parts = list(map(_summary, self._trained))
        found = [RankerPart(p.trees, p.objective, p.tree, p.leaves, p.features, p.seed) for p in parts]
        if linear is not None and linear.trees:
            ranker = self.settings.linear_ranker
            kinds = ranker.objective.name, ranker.tree.form.name
            found.append(RankerPart(linear.trees, *kinds, ranker.tree.max_leaves, ranker.feature_rate, ranker.seed))
        return tuple(found) if len(found) > 1 else ()


class TrainingRun(BoostingRun):
    """A run on documents in this process's memory."""

    def __init__(
        self,
        train_set: Trainable,
        validation_sets: Sequence[RankingDataset | CodedDataset],
        settings: ResolvedSettings,
        pool: WorkerPool,
        metadata: Metadata = NO_METADATA,
        validation_metadata: Sequence[Metadata] | None = None,
        continuation: Continuation | None = None,
    ) -> None:
        """Bin the data sets and prepare what does not change from round to round.

        train_set, validation_sets : in memory, or in bins already; coded ones must be in the bins of the training set
        settings : resolved by the training set, such as by `resolve_for`
        metadata : of the training set; validation_metadata : of each validation set; None: none
        continuation : a model to continue, whose scores are added to the initial scores; None: a new model
        DataError when a label has no gain, a validation set shares no feature with the training set, or a constraint
        names a feature that is not there; SettingsError when the objective knows no positions and there are some, or
        there are to be no trees and no initial scores.
        """
        started = time.perf_counter()
        of_sets = [NO_METADATA] * len(validation_sets) if validation_metadata is None else validation_metadata
        given_start = any(each.init_scores is not None for each in (metadata, *of_sets))
        start_as_model = metadata.init_scores
        if continuation is not None:
            start_as_model = continuation.start_as_model(metadata.init_scores)
            metadata, *of_sets = continuation.add_to([metadata, *of_sets])
        if settings.trees == 0 and not given_start and continuation is None:
            raise SettingsError("trees is 0, which needs initial scores; use a number from 1 up")
        recorded = settings.recorded
        with source_named(train_set.source):
            prepared = [
                objectives.prepare(train_set, ranker, pool, metadata.weights, metadata.positions)
                for ranker in settings.rankers
            ]
        binned_set = _binned(train_set, recorded, pool)
        binned = binned_set.features
        edges = binned.edges
        empty = without_trees(train_set, recorded, binned_set.categories)
        self._sets = [
            LocalValidationScores(_coded(data, empty, edges, pool), empty, edges, settings, pool, extra)
            for data, extra in zip(validation_sets, of_sets, strict=True)
        ]
        self._scored = LocalTrainingScores(
            train_set, binned, settings, pool, metadata, ModelView(binned_set.model_bins, start_as_model)
        )
        directions = feature_directions(settings.constraints, train_set, edges, train_set.source)
        linear = None
        if settings.linear:
            objective = objectives.prepare(train_set, settings.linear_ranker, pool, metadata.weights)
            linear = LocalLinearSource(objective, binned, self._scored, pool)
        setup = GrowingSetup(binned, pool, Histograms(edges.n_bins), directions, RowNarrowing(binned))
        learner = Learner(
            fittings=[LocalFitting(objective, setup, self._scored) for objective in prepared],
            training=self._scored,
            validation_sets=self._sets,
            n_features=len(edges.varying),
            n_idle_queries=min(objective.n_queries_without_pairs() for objective in prepared),
            can_learn=any(objective.can_learn() for objective in prepared),
            warnings=tuple(text for data in self._sets for text in data.warnings),
            given_start=given_start,
            directions=directions,
            linear=linear,
        )
        super().__init__(settings, empty, learner, started, continuation)

    def scores_of(self, trees: Sequence[GrownTree]) -> tuple[Float64Array, Float64Array]:
        """Return the scores of the training set and of the first validation set by these trees, float64[n] each.

        trees : added to the initial scores
        """
        self._add_up(trees)
        return self.training_scores.copy(), self.validation_scores.copy()

    @property
    def training_scores(self) -> Float64Array:
        """The scores of the training set after the latest round of the current ranker, float64[n_documents]."""
        return self._scored.scores

    @property
    def validation_scores(self) -> Float64Array:
        """The scores of the first validation set after the latest round of the current ranker, float64[n]."""
        return self._sets[0].scores

    def _score_as_model(self, trees: Sequence[GrownTree]) -> None:
        self._scored.score_as_model(trees)

    def _final_scores(self) -> Float64Array:
        return self._scored.scores


def _weighted_tree(grown: GrownTree, weight: float) -> GrownTree:
    """Return a tree with its leaf values multiplied by the weight of its ranker."""
    return replace(grown, tree=weighted(grown.tree, weight))


def _binned(train_set: Trainable, settings: TrainSettings, pool: WorkerPool) -> BinnedDataset:
    """Return the training set in bins."""
    if isinstance(train_set, RankingDataset):
        return bin_training_set(train_set, settings, pool)
    return train_set


def _summary(ranker: TrainedRanker) -> RankerSummary:
    settings = ranker.settings
    return RankerSummary(
        objective=settings.objective.name,
        tree=settings.tree.form.name,
        leaves=settings.tree.max_leaves,
        features=settings.feature_rate,
        seed=settings.seed,
        rounds=ranker.rounds,
        trees=len(ranker.trees),
        stopped=ranker.stopped,
        validation_measures=ranker.validation_measures,
    )


def _coded(
    validation_set: RankingDataset | CodedDataset, model: Ensemble, edges: BinEdges, pool: WorkerPool
) -> CodedDataset:
    """Return a validation set in the bins of the training set."""
    if isinstance(validation_set, RankingDataset):
        return code_dataset(validation_set, model, edges, pool)
    return validation_set


def feature_directions(
    constraints: MonotoneConstraints, features: Features, edges: BinEdges, source: str
) -> Int8Array | None:
    """Return 1 or -1 for each feature in bins whose constraint is so, else 0, int8[m]; None without any constraint.

    DataError when a constraint names a feature that the data does not have.
    """
    if not constraints:
        return None
    names = features.feature_names or tuple(map(str, features.feature_ids.tolist()))
    for name in constraints.directions:
        if name not in names:
            raise DataError(f"there is no feature {quote(name)}, which --monotone names", source)
    return np.array([constraints.directions.get(names[column], 0) for column in edges.columns.tolist()], np.int8)
