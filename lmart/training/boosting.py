"""The boosting loop: from a training set and settings to an ensemble."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from lmart.array_types import Float64Array, Int8Array
from lmart.binning.binned_features import bin_dataset
from lmart.binning.edges import BinEdges
from lmart.binning.validation_set import CodedDataset, code_dataset
from lmart.constraints import MonotoneConstraints
from lmart.data.dataset import RankingDataset
from lmart.data.metadata import NO_SIDECARS, Sidecars
from lmart.errors import DataError, SettingsError, quote
from lmart.scoring.ensemble import Ensemble
from lmart.settings import TrainSettings
from lmart.settings.resolved import ResolvedSettings
from lmart.threads import WorkerPool
from lmart.training import objectives
from lmart.training.rankers import Ranker, RoundReport, _Booster
from lmart.training.resolving import Trainable, naming, resolve_for
from lmart.training.score_tracking import Training, Validation


@dataclass(frozen=True)
class Start:
    """Measures of the initial scores alone: on the training set, and on each validation set."""

    training: float | None
    validation: tuple[float | None, ...]


@dataclass(frozen=True)
class TrainResult:
    """The result of a training run.

    ensemble         : the model; with early stopping and a validation set, the trees up to the best round
    best_round       : number of trees in the ensemble
    rounds           : number of the last round
    stopped          : 'trees' (all grown), 'early' (early stopping), 'split' (no split had a positive gain)
    n_idle_queries   : training queries without a pair
    n_features_split : features with more than one bin, which trees can split on
    share            : sampling rate: share of the documents that each tree is grown from
    rankers          : the rounds and trees of each objective, in their order
    training         : measure of the ensemble on the training set; None when no query counts
    validation       : the same on each validation set
    start            : the measures before the first round; None without initial scores
    scores           : float64[n_documents], scores of the training set, initial scores included
    position_bias    : float64[n_positions] after the last round in the ensemble; empty without positions
    warnings         : how validation sets fail to match the training set
    seconds          : wall time by stage
    """

    ensemble: Ensemble
    best_round: int
    rounds: int
    stopped: str
    n_idle_queries: int
    n_features_split: int
    share: float
    rankers: tuple[Ranker, ...]
    training: float | None
    validation: tuple[float | None, ...]
    start: Start | None
    scores: Float64Array
    position_bias: Float64Array
    warnings: tuple[str, ...]
    seconds: dict[str, float] = field(compare=False)


def without_trees(train_set: Trainable, settings: TrainSettings) -> Ensemble:
    """Return an ensemble without trees for this training set.

    train_set : whose features it has
    settings  : as the model is to hold them
    """
    return Ensemble(
        (),
        train_set.feature_ids,
        train_set.feature_names,
        absent=settings.absent,
        gain=str(settings.gain),
        settings=settings.to_json(),
    )


def train(
    train_set: Trainable,
    validation_sets: Sequence[RankingDataset | CodedDataset],
    settings: TrainSettings,
    pool: WorkerPool,
    on_round: Callable[[RoundReport], None] = lambda report: None,
    sidecars: Sidecars = NO_SIDECARS,
    validation_sidecars: Sequence[Sidecars] | None = None,
) -> TrainResult:
    """Train a LambdaMART ensemble (Burges 2010), round by round; the result depends only on the data and the settings.

    train_set, validation_sets : in memory, or in bins already; coded ones must be in the bins of the training set
    settings : as given
    pool     : the workers
    on_round : called after each round
    sidecars : metadata of the training set
    validation_sidecars : of each validation set, its initial scores and weights; None: none

    Errors are those of `resolve_for` and `TrainingRun`; LmartError also when scores may grow beyond LARGEST_SCORE.
    """
    resolved = resolve_for(settings, train_set, validation_sets, one_ranker=sidecars.positions is not None)
    run = TrainingRun(train_set, validation_sets, resolved, pool, sidecars, validation_sidecars)
    for report in run.rounds():
        on_round(report)
    return run.finish()


class TrainingRun:
    """A training run that is ready to grow its first tree.

    Several objectives are trained one after the other, and the ensemble is the mean of their rankers. The first
    validation set decides on early stopping; with initial scores, the best model may have no tree at all.

    settings       : of the run
    empty          : the ensemble without trees
    n_idle_queries : queries without a pair: no two documents have different relevance
    can_learn      : whether any query with a pair has a weight above 0
    start          : the measures of the initial scores alone; None without initial scores
    warnings       : how validation sets fail to match the training set
    """

    def __init__(
        self,
        train_set: Trainable,
        validation_sets: Sequence[RankingDataset | CodedDataset],
        settings: ResolvedSettings,
        pool: WorkerPool,
        sidecars: Sidecars = NO_SIDECARS,
        validation_sidecars: Sequence[Sidecars] | None = None,
    ) -> None:
        """Bin the data sets and prepare what does not change from round to round.

        train_set, validation_sets : in memory, or in bins already; coded ones must be in the bins of the training set
        settings : resolved by the training set, such as by `resolve_for`
        pool     : the workers
        sidecars : metadata of the training set
        validation_sidecars : of each validation set, its initial scores and weights; None: none
        DataError when a label has no gain, a validation set shares no feature with the training set, or a constraint
        names a feature that is not there; SettingsError when the objective knows no positions and there are some, or
        there are to be no trees and no initial scores.
        """
        self._began = time.perf_counter()
        metadata = [NO_SIDECARS] * len(validation_sets) if validation_sidecars is None else validation_sidecars
        has_init_scores = any(one.init_scores is not None for one in (sidecars, *metadata))
        if settings.trees == 0 and not has_init_scores:
            raise SettingsError("trees is 0, which needs initial scores; use a number from 1 up")
        given = settings.recorded
        with naming(train_set.source):
            self._objectives = [
                objectives.prepare(train_set, one, pool, sidecars.weights, sidecars.positions)
                for one in settings.rankers
            ]
        if isinstance(train_set, RankingDataset):
            binned = bin_dataset(train_set, given.max_bins, given.absent, given.seed, pool).features
        else:
            binned = train_set.features
        edges = binned.edges
        self.settings = settings
        self.empty = without_trees(train_set, given)
        coded = [
            code_dataset(one, self.empty, edges, pool) if isinstance(one, RankingDataset) else one
            for one in validation_sets
        ]
        self._validation_sets = [
            Validation(one, self.empty, edges, settings, pool, extra)
            for one, extra in zip(coded, metadata, strict=True)
        ]
        self._training = Training(train_set, binned, settings, pool, sidecars)
        self._n_features = edges.n_features
        self.n_idle_queries = min(one.n_queries_without_pairs() for one in self._objectives)
        self.can_learn = any(one.can_learn() for one in self._objectives)
        self.warnings = tuple(text for one in self._validation_sets for text in one.warnings)
        self.start = Start(self._training.measure(), self.measure_validation()) if has_init_scores else None
        directions = _directions(settings.constraints, train_set, edges)
        self._booster = _Booster(binned, settings, pool, self._training, self._validation_sets, directions)
        self._binning_done = time.perf_counter()

    def measure_validation(self) -> tuple[float | None, ...]:
        """Return the measure of each validation set at its current scores."""
        return tuple(one.measure() for one in self._validation_sets)

    def rounds(self) -> Iterator[RoundReport]:
        """Grow one tree at a time, and yield a report of it before the next."""
        booster = self._booster
        if self.start is not None and booster.stops_early:
            booster.begin_with(self.start.validation[0])
        for left, objective in zip(range(len(self._objectives), 0, -1), self._objectives, strict=True):
            yield from booster.boost(objective, 1 if booster.stops_early else left)

    def finish(self) -> TrainResult:
        """Return the result of all rounds."""
        booster, empty = self._booster, self.empty
        trees, validation = booster.finish()
        ensemble = Ensemble(
            tuple(trees), empty.feature_ids, empty.feature_names, 0.0, empty.absent, empty.gain, empty.settings
        )
        return TrainResult(
            ensemble,
            len(trees),
            booster.rounds,
            booster.stopped,
            self.n_idle_queries,
            self._n_features,
            self.settings.sampling_rate,
            tuple(booster.made),
            self._training.measure(),
            validation,
            self.start,
            self._training.scores,
            booster.position_bias,
            self.warnings,
            {"binning": self._binning_done - self._began, "growing": time.perf_counter() - self._binning_done},
        )


def _directions(constraints: MonotoneConstraints, train_set: Trainable, edges: BinEdges) -> Int8Array | None:
    """Return 1 or -1 for each feature in bins whose constraint is so, else 0, int8[m]; None without any constraint.

    DataError when one is of a feature that the data does not have.
    """
    if not constraints:
        return None
    names = train_set.feature_names or tuple(map(str, train_set.feature_ids.tolist()))
    for name in constraints.directions:
        if name not in names:
            raise DataError(f"there is no feature {quote(name)}, which --monotone names", train_set.source)
    return np.array([constraints.directions.get(names[column], 0) for column in edges.columns.tolist()], np.int8)
