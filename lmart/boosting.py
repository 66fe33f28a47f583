"""train: the round loop, validation and early stopping."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
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
from lmart.errors import DataError, LmartError, quote
from lmart.grower import GrownTree, Histograms
from lmart.monotone import parse_monotone
from lmart.objectives import Objective
from lmart.rounds import grow_round
from lmart.settings import TrainSettings
from lmart.sidecars import NO_SIDECARS, Sidecars
from lmart.threads import WorkerPool
from lmart.watching import Training, Validation, naming

Floats = npt.NDArray[np.float64]
Signs = npt.NDArray[np.int8]
Trainable = RankingDataset | BinnedDataset

SMALL_DATA = 200_000  # documents up to which `--sample auto` takes all
LEAST_SHARE = 0.3
LARGEST_SCORE = 1e300  # so that differences of scores are numbers too


@dataclass(frozen=True)
class RoundReport:
    """One round: its number from 1, the most there can be, its tree, the measure of each validation set, and a call
    that measures the training set. A later objective goes on behind the best round: a number that was there before
    takes the place of that round and of all after it.
    """

    round: int
    trees: int
    tree: Tree
    validation: tuple[float | None, ...]
    measure_training: Callable[[], float | None]


@dataclass(frozen=True)
class TrainResult:
    """What a run made.

    ensemble   : exactly the best round's trees when a validation set decides and stopping early is on
    best_round : number of trees in the ensemble
    stopped    : 'trees' (all grown), 'early' (no better measure), 'split' (nothing left to split)
    training   : the training set's measure of the ensemble; validation : the same of each validation set
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
    training: float | None
    validation: tuple[float | None, ...]
    scores: Floats
    position_bias: Floats
    warnings: tuple[str, ...]
    seconds: dict[str, float] = field(compare=False)


class EarlyStopping:
    """Remembers the best round, the first on ties; higher is better. No value (no query counts) is never better."""

    def __init__(self, patience: int) -> None:
        self.patience = patience
        self.best_round = 0
        self.best = -np.inf

    def update(self, round_number: int, value: float | None) -> bool:
        """Take the measure of a round; return whether to stop."""
        if value is not None and value > self.best:
            self.best, self.best_round = value, round_number
        return bool(self.patience) and round_number - max(self.best_round, 1) >= self.patience


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
    validation_init_scores: Sequence[Floats | None] | None = None,
) -> TrainResult:
    """Train a LambdaMART ensemble (Burges 2010).

    train_set, validation_sets : in memory, or in bins already; coded ones must be in the bins of the training set
    on_round : called after each round
    sidecars : of the training set
    validation_init_scores : float64[n_documents] of each validation set, what its scores start from; None: 0
    The first validation set decides on early stopping. Several objectives come one after the other, and the ensemble is
    the mean of their rankers. The result depends on the data and the settings alone.
    DataError when a label has no gain, a validation set shares no feature with the training set, or a constraint names
    a feature that is not there; SettingsError when the objective knows no positions and there are some; LmartError when
    scores grow beyond LARGEST_SCORE.
    """
    began = time.perf_counter()
    settings = settings.for_queries(train_set.n_queries, alone=sidecars.positions is not None)
    with naming(train_set):
        each = [replace(settings, objective=name) for name in settings.objectives]
        prepared = [objectives.prepare(train_set, one, pool, sidecars.weights, sidecars.positions) for one in each]
    if isinstance(train_set, RankingDataset):
        binned = bin_dataset(train_set, settings.max_bins, settings.absent, settings.seed, pool).features
    else:
        binned = train_set.features
    edges = binned.edges
    empty = without_trees(train_set, settings)
    coded = [
        code_dataset(one, empty, edges, pool) if isinstance(one, RankingDataset) else one for one in validation_sets
    ]
    starts = validation_init_scores or [None] * len(coded)
    watched = [Validation(one, empty, edges, settings, pool, start) for one, start in zip(coded, starts, strict=True)]
    own = Training(train_set, binned, settings, pool, sidecars.init_scores)
    share = resolve_share(settings, train_set.n_documents)
    binning_done = time.perf_counter()

    booster = _Booster(binned, settings, share, pool, own, watched, _signs(train_set, settings, edges), on_round)
    for left, objective in zip(range(len(prepared), 0, -1), prepared, strict=True):
        booster.boost(objective, 1 if booster.stops_early else left)
    trees, validation = booster.finish()
    ensemble = Ensemble(
        tuple(trees), empty.feature_ids, empty.feature_names, 0.0, empty.absent, empty.gain, empty.settings
    )
    return TrainResult(
        ensemble,
        len(trees),
        booster.rounds,
        booster.stopped,
        min(one.n_queries_without_pairs() for one in prepared),
        edges.n_features,
        share,
        own.measure(),
        validation,
        own.scores,
        booster.position_bias,
        tuple(text for one in watched for text in one.warnings),
        {"binning": binning_done - began, "growing": time.perf_counter() - binning_done},
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
        on_round: Callable[[RoundReport], None],
    ) -> None:
        self._binned, self._settings, self._share, self._pool = binned, settings, share, pool
        self._own, self._watched, self._signs, self._on_round = own, watched, signs, on_round
        self._histograms = Histograms(binned.edges.n_bins)
        self._stopping = EarlyStopping(settings.early_stop)
        self._rankers: list[list[GrownTree]] = []
        self.stops_early = bool(watched and settings.early_stop)
        self.rounds = 0
        self.stopped = "trees"
        self.position_bias = np.zeros(0)
        self._first_scores = own.scores  # of the training set after the first ranker's best round
        self._values: list[tuple[float | None, ...]] = []

    def boost(self, objective: Objective, shares: int) -> None:
        """Grow the trees of an objective: one of so many shares of those left over, or until no split is left or
        patience ends."""
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
        for number in range(len(kept) + 1, len(kept) + most + 1):
            grown, bias = self._grow(objective, number - len(kept), [own.scores] + [total.scores] * bool(kept))
            if grown is None:
                self.stopped = "split"
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
            self._on_round(RoundReport(number, settings.trees, grown.tree, measures, total.measure))
            stop = self.stops_early and self._stopping.update(number, measures[0])
            if not self.stops_early or number in (self._stopping.best_round, 1):
                self.position_bias = bias
                if not kept:
                    self._first_scores = own.scores.copy() if self.stops_early else own.scores
            if stop:
                self.stopped = "early"
                break
        grown_in_all = len(kept) + len(trees)
        best = max(self._stopping.best_round, min(1, grown_in_all)) if self.stops_early else grown_in_all
        self._rankers.append(trees[: best - len(kept)])

    def finish(self) -> tuple[list[Tree], tuple[float | None, ...]]:
        """Return the trees of the model and the measures of the validation sets; the training set keeps its scores."""
        rankers = [ranker for ranker in self._rankers if ranker]
        every = [grown for ranker in rankers for grown in ranker]
        if len(rankers) > 1:
            values = [grown.tree.leaf_values / len(rankers) for grown in every]
            every = [replace(one, tree=replace(one.tree, leaf_values=v)) for one, v in zip(every, values, strict=True)]
            self._add_up([self._own, *self._watched], every, 1)  # as `predict` does, to the last bit
        else:
            self._own.scores = self._first_scores
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
