"""train: the round loop, validation and early stopping."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from lmart import objectives
from lmart.bin_edges import BinEdges
from lmart.binning import BinnedDataset, BinnedFeatures, bin_dataset
from lmart.coding import CodedDataset, code_dataset
from lmart.dataset import RankingDataset
from lmart.ensemble import Ensemble, Tree
from lmart.errors import DataError, LmartError, SettingsError, quote
from lmart.grower import GrownTree, Histograms
from lmart.monotone import parse_monotone
from lmart.objectives import Objective
from lmart.rounds import grow_round
from lmart.settings import TrainSettings
from lmart.sidecars import NO_SIDECARS, Sidecars
from lmart.threads import WorkerPool
from lmart.watching import Training, Validation, naming, with_label_scale

Floats = npt.NDArray[np.float64]
Signs = npt.NDArray[np.int8]
Trainable = RankingDataset | BinnedDataset

SMALL_DATA = 200_000  # documents up to which `--sample auto` takes all
LEAST_SHARE = 0.3
LARGEST_SCORE = 1e300  # so that differences of scores are numbers too


@dataclass(frozen=True)
class RoundReport:
    """One round: its number from 1, the most there can be, its tree, the measure of each validation set, a call that
    measures the training set, and which ranker the tree is of, from 1. A later objective goes on behind the best round:
    a number that was there before takes the place of that round and of all after it.
    """

    round: int
    trees: int
    tree: Tree
    validation: tuple[float | None, ...]
    measure_training: Callable[[], float | None]
    ranker: int = 1


@dataclass(frozen=True)
class Ranker:
    """What one objective made.

    rounds  : grown, 0 when none was left over
    trees   : of them in the model, which stand behind those of the rankers before
    stopped : as in TrainResult
    """

    objective: str
    rounds: int
    trees: int
    stopped: str


@dataclass(frozen=True)
class Start:
    """The measures of the initial scores alone: of the training set, and of each validation set."""

    training: float | None
    validation: tuple[float | None, ...]


@dataclass(frozen=True)
class TrainResult:
    """What a run made.

    ensemble   : exactly the best round's trees when a validation set decides and stopping early is on
    best_round : number of trees in the ensemble
    stopped    : 'trees' (all grown), 'early' (no better measure), 'split' (nothing left to split)
    rankers    : what each objective made, in their order
    training   : the training set's measure of the ensemble; validation : the same of each validation set
    start      : the measures before the first round, when there are initial scores
    scores     : float64[n_documents], the ensemble's scores of the training set, on top of those it started from
    position_bias : float64[n_positions], of the ensemble's last round, when there are positions
    rounds     : the last round's number; share : of the documents in each tree
    n_features_split : features with more than one bin
    warnings   : what the user should know of how validation sets match the training set
    seconds    : wall time by stage
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
    scores: Floats
    position_bias: Floats
    warnings: tuple[str, ...]
    seconds: dict[str, float] = field(compare=False)


class EarlyStopping:
    """Remembers the best round, the first on ties; higher is better. No value (no query counts) is never better.

    start : the measure before the first round, when a model without trees may be the best; None: it may not
    """

    def __init__(self, patience: int, start: float | None = None) -> None:
        self.patience = patience
        self.best_round = 0
        self.best = -np.inf if start is None else start
        self.fewest = 1 if start is None else 0  # trees of a model, when there are rounds

    def update(self, round_number: int, value: float | None) -> bool:
        """Take the measure of a round; return whether to stop."""
        if value is not None and value > self.best:
            self.best, self.best_round = value, round_number
        return bool(self.patience) and round_number - max(self.best_round, self.fewest) >= self.patience


def without_trees(train_set: Trainable, settings: TrainSettings) -> Ensemble:
    """Return the model of a training set before the first round."""
    return Ensemble(
        (),
        train_set.feature_ids,
        train_set.feature_names,
        absent=settings.absent,
        gain=str(settings.gain),
        settings=settings.to_json(),
    )


def resolve_share(settings: TrainSettings, n_documents: int) -> float:
    """Return the share of documents that each tree is grown from."""
    if settings.sample is not None:
        return settings.sample
    return 1.0 if n_documents <= SMALL_DATA else max(LEAST_SHARE, SMALL_DATA / n_documents)


def train(
    train_set: Trainable,
    validation_sets: Sequence[RankingDataset | CodedDataset],
    settings: TrainSettings,
    pool: WorkerPool,
    on_round: Callable[[RoundReport], None] = lambda report: None,
    sidecars: Sidecars = NO_SIDECARS,
    validation_sidecars: Sequence[Sidecars] | None = None,
) -> TrainResult:
    """Train a LambdaMART ensemble (Burges 2010), round by round as `TrainingRun` does; `on_round` is called after each.

    The result depends on the data and the settings alone. Parameters and errors are those of `TrainingRun`; LmartError
    also when scores grow beyond LARGEST_SCORE.
    """
    run = TrainingRun(train_set, validation_sets, settings, pool, sidecars, validation_sidecars)
    for one in run.rounds():
        on_round(one)
    return run.finish()


class TrainingRun:
    """A training run that is ready to grow its first tree.

    Several objectives come one after the other, and the ensemble is the mean of their rankers. The first validation set
    decides on early stopping; when there are initial scores, they alone, without a tree, are a candidate too.

    settings       : with all that the data decide
    empty          : the ensemble without trees
    n_idle_queries : queries without two documents that the objective tells apart
    can_learn      : whether any other query has a weight above 0
    start          : the measures of the initial scores alone, when there are some
    warnings       : what the user should know of how validation sets match the training set
    """

    def __init__(
        self,
        train_set: Trainable,
        validation_sets: Sequence[RankingDataset | CodedDataset],
        settings: TrainSettings,
        pool: WorkerPool,
        sidecars: Sidecars = NO_SIDECARS,
        validation_sidecars: Sequence[Sidecars] | None = None,
    ) -> None:
        """Put the sets into bins and work out what does not change from round to round.

        train_set, validation_sets : in memory, or in bins already; coded ones must be in the bins of the training set
        sidecars : of the training set
        validation_sidecars : of each validation set, its initial scores and weights; None: none
        DataError when a label has no gain, a validation set shares no feature with the training set, or a constraint
        names a feature that is not there; SettingsError when the objective knows no positions and there are some, or
        there are to be no trees and no initial scores.
        """
        self._began = time.perf_counter()
        beside = [NO_SIDECARS] * len(validation_sets) if validation_sidecars is None else validation_sidecars
        starts_somewhere = any(one.init_scores is not None for one in (sidecars, *beside))
        if settings.trees == 0 and not starts_somewhere:
            raise SettingsError("trees is 0, which needs initial scores; use a number from 1 up")
        settings = settings.for_queries(train_set.n_queries, alone=sidecars.positions is not None)
        settings = with_label_scale(settings, [train_set, *validation_sets])
        with naming(train_set.source):
            each = [replace(settings, objective=name) for name in settings.objectives]
            self._objectives = [
                objectives.prepare(train_set, one, pool, sidecars.weights, sidecars.positions) for one in each
            ]
        if isinstance(train_set, RankingDataset):
            binned = bin_dataset(train_set, settings.max_bins, settings.absent, settings.seed, pool).features
        else:
            binned = train_set.features
        edges = binned.edges
        self.settings = settings
        self.empty = without_trees(train_set, settings)
        coded = [
            code_dataset(one, self.empty, edges, pool) if isinstance(one, RankingDataset) else one
            for one in validation_sets
        ]
        self._watched = [
            Validation(one, self.empty, edges, settings, pool, own) for one, own in zip(coded, beside, strict=True)
        ]
        self._own = Training(train_set, binned, settings, pool, sidecars)
        self._share = resolve_share(settings, train_set.n_documents)
        self._n_features = edges.n_features
        self.n_idle_queries = min(one.n_queries_without_pairs() for one in self._objectives)
        self.can_learn = any(one.can_learn() for one in self._objectives)
        self.warnings = tuple(text for one in self._watched for text in one.warnings)
        self.start = Start(self._own.measure(), self.measure_validation()) if starts_somewhere else None
        signs = _signs(train_set, settings, edges)
        self._booster = _Booster(binned, settings, self._share, pool, self._own, self._watched, signs)
        self._binning_done = time.perf_counter()

    def measure_validation(self) -> tuple[float | None, ...]:
        """Return the measure of each validation set as its scores are by now."""
        return tuple(one.measure() for one in self._watched)

    def rounds(self) -> Iterator[RoundReport]:
        """Grow one tree at a time, and tell of each before the next."""
        booster = self._booster
        if self.start is not None and booster.stops_early:
            booster.begin_with(self.start.validation[0])
        for left, objective in zip(range(len(self._objectives), 0, -1), self._objectives, strict=True):
            yield from booster.boost(objective, 1 if booster.stops_early else left)

    def finish(self) -> TrainResult:
        """Return what all rounds have made."""
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
            self._share,
            tuple(booster.made),
            self._own.measure(),
            validation,
            self.start,
            self._own.scores,
            booster.position_bias,
            self.warnings,
            {"binning": self._binning_done - self._began, "growing": time.perf_counter() - self._binning_done},
        )


class _Booster:
    """Grows the trees of one objective after the other; the model is the mean of their rankers.

    A later objective goes on from the best round so far: measures are of the mean with the rankers before it, and if
    none is better than without it, it adds nothing. Its trees are fitted to its own scores alone.
    """

    def __init__(
        self,
        binned: BinnedFeatures,
        settings: TrainSettings,
        share: float,
        pool: WorkerPool,
        own: Training,
        watched: Sequence[Validation],
        signs: Signs | None,
    ) -> None:
        self._binned, self._settings, self._share, self._pool = binned, settings, share, pool
        self._own, self._watched, self._signs = own, watched, signs
        self._histograms = Histograms(binned.edges.n_bins)
        self._stopping = EarlyStopping(settings.early_stop)
        self._rankers: list[list[GrownTree]] = []
        self.made: list[Ranker] = []
        self.stops_early = bool(watched and settings.early_stop)
        self.rounds = 0
        self.stopped = "trees"
        self.position_bias = np.zeros(0)
        self._first_scores = own.scores  # of the training set after the first ranker's best round
        self._values: list[tuple[float | None, ...]] = []

    def begin_with(self, measure: float | None) -> None:
        """Take the first validation set's measure before the first round: no tree at all may then be best."""
        self._stopping = EarlyStopping(self._settings.early_stop, measure)

    def boost(self, objective: Objective, shares: int) -> Iterator[RoundReport]:
        """Grow the trees of an objective: one of so many shares of those left over, or until no split is left or
        patience ends; tell of each."""
        settings, own, watched = self._settings, self._own, self._watched
        kept = [grown for ranker in self._rankers for grown in ranker]
        total = copy(own)  # of the rankers, not yet divided by their number
        own.restart()
        if kept:
            self._add_up([total, *watched], kept, 1 + sum(map(bool, self._rankers)))
        else:
            total = own
        trees: list[GrownTree] = []
        largest = 0.0  # what the leaf values of all trees can add up to
        self.position_bias = objective.position_bias
        most = -(-(settings.trees - len(kept)) // shares)
        stopped = "trees"
        if not kept and self._stopping.fewest == 0:  # no tree at all may be best
            self.position_bias = np.zeros_like(objective.position_bias)
            self._first_scores = own.scores.copy()
        for number in range(len(kept) + 1, len(kept) + most + 1):
            grown, bias = self._grow(objective, number - len(kept), [own.scores] + [total.scores] * bool(kept))
            if grown is None:
                stopped = "split"
                break
            trees.append(grown)
            self.rounds = number
            objective.position_bias = bias
            largest += float(np.abs(grown.tree.leaf_values).max())
            if not max(largest, float(np.abs(bias).max(initial=0.0))) <= LARGEST_SCORE:
                what = f"the scores may grow beyond {LARGEST_SCORE:g} in round {number}"
                raise LmartError(f"{what}; use a smaller --learning-rate")
            for one in watched:
                one.add(grown)
            measures = tuple(one.measure() for one in watched)
            self._values[number - 1 :] = [measures]
            yield RoundReport(number, settings.trees, grown.tree, measures, total.measure, len(self.made) + 1)
            stop = self.stops_early and self._stopping.update(number, measures[0])
            if not self.stops_early or number == max(self._stopping.best_round, self._stopping.fewest):
                self.position_bias = bias
                if not kept:
                    self._first_scores = own.scores.copy() if self.stops_early else own.scores
            if stop:
                stopped = "early"
                break
        if most > 0:
            self.stopped = stopped
        grown_in_all = len(kept) + len(trees)
        fewest = min(self._stopping.fewest, grown_in_all)
        best = max(self._stopping.best_round, fewest) if self.stops_early else grown_in_all
        self._rankers.append(trees[: best - len(kept)])
        (name,) = objective.task.settings.objectives
        self.made.append(Ranker(name, len(trees), len(self._rankers[-1]), stopped))

    def finish(self) -> tuple[list[Tree], tuple[float | None, ...]]:
        """Return the trees of the model and the measures of the validation sets; the training set keeps its scores."""
        rankers = [ranker for ranker in self._rankers if ranker]
        every = [grown for ranker in rankers for grown in ranker]
        if len(rankers) > 1:
            values = [grown.tree.leaf_values / len(rankers) for grown in every]
            every = [replace(one, tree=replace(one.tree, leaf_values=v)) for one, v in zip(every, values, strict=True)]
            self._add_up([self._own, *self._watched], every, 1)  # as `predict` does, to the last bit
        elif rankers:
            self._own.scores = self._first_scores
        else:  # no round was better than none
            self._add_up([self._own, *self._watched], [], 1)
        trees = [grown.tree for grown in every]
        if len(rankers) == 1:
            return trees, self._values[len(trees) - 1]
        return trees, tuple(one.measure() for one in self._watched)

    def _add_up(self, sets: Sequence[Training | Validation], trees: Sequence[GrownTree], times: int) -> None:
        """Begin again from so many times the initial scores, and add trees."""
        for one in sets:
            one.restart(times)
            for grown in trees:
                one.add(grown)

    def _grow(
        self, objective: Objective, round_number: int, scores: Sequence[Floats]
    ) -> tuple[GrownTree | None, Floats]:
        """Return a tree, None when there is no split, and the bias of positions after it; add it to the scores.

        scores : the objective's own, then those of others
        """
        for settings, share in ((self._settings, self._share), (replace(self._settings, features=1.0), 1.0)):
            gradients = objective.compute_gradients(scores[0], round_number)
            bias = objective.next_position_bias(gradients)  # growing changes the gradients
            fixed = (self._binned, gradients, settings, share, round_number, self._pool)
            grown = grow_round(*fixed, scores, self._histograms, self._signs)
            if grown is not None or min(share, settings.features) == 1.0:
                break  # else perhaps only an unlucky draw
        return grown, bias


def _signs(train_set: Trainable, settings: TrainSettings, edges: BinEdges) -> Signs | None:
    """Return the monotone constraints of the features in bins, int8[m]; None without any.

    DataError when one is of a feature that the data does not have.
    """
    names = train_set.feature_names or tuple(map(str, train_set.feature_ids.tolist()))
    constraints = parse_monotone(settings.monotone)
    for name in constraints:
        if name not in names:
            raise DataError(f"there is no feature {quote(name)}, which --monotone names", train_set.source)
    signs = np.array([constraints.get(names[column], 0) for column in edges.columns.tolist()], np.int8)
    return signs if constraints else None
