"""The rankers of a run: rounds of boosting, early stopping, and the mean of several rankers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace

import numpy as np

from lmart.array_types import Float64Array, Int8Array
from lmart.binning.binned_features import BinnedFeatures
from lmart.errors import LmartError
from lmart.scoring.ensemble import Tree
from lmart.settings.resolved import ResolvedSettings
from lmart.threads import WorkerPool
from lmart.training.grower import GrownTree, Histograms
from lmart.training.objectives import Objective
from lmart.training.score_tracking import Training, Validation
from lmart.training.tree_round import GrowingSetup, grow_round

LARGEST_SCORE = 1e300  # so that differences of scores are numbers too


@dataclass(frozen=True)
class RoundReport:
    """One round.

    round            : its number, from 1
    trees            : upper bound of the number of rounds
    tree             : the tree grown in it
    validation       : measure of each validation set after it
    measure_training : computes the measure of the training set
    ranker           : number of the ranker that the tree belongs to, from 1

    With several objectives, the next one resumes after the best round so far; a report with an earlier number replaces
    that round and all later ones.
    """

    round: int
    trees: int
    tree: Tree
    validation: tuple[float | None, ...]
    measure_training: Callable[[], float | None]
    ranker: int = 1


@dataclass(frozen=True)
class Ranker:
    """The training of one objective.

    objective : its name
    rounds    : trees grown; 0 when the rankers before took all
    trees     : how many of them are in the model, after those of the rankers before
    stopped   : as in TrainResult
    """

    objective: str
    rounds: int
    trees: int
    stopped: str


class EarlyStopping:
    """Keeps the best round, the first on ties; higher is better. None (no query counts) is never better.

    patience : rounds without a better measure after which to stop; None: never
    start    : the measure before the first round, if a model without trees may be the best; None: it may not
    """

    def __init__(self, patience: int | None, start: float | None = None) -> None:
        self.patience = patience
        self.best_round = 0
        self.best = -np.inf if start is None else start
        self.fewest = 1 if start is None else 0  # trees that a model must have

    def update(self, round_number: int, value: float | None) -> bool:
        """Record the measure of a round; return whether to stop.

        round_number : from 1
        value        : the measure after it
        """
        if value is not None and value > self.best:
            self.best, self.best_round = value, round_number
        return self.patience is not None and round_number - max(self.best_round, self.fewest) >= self.patience


class _Booster:
    """Grows the trees of one objective after the other; the model is the mean of their rankers.

    The next objective resumes after the best round so far: measures are those of the mean of all rankers, and if no
    round improves on the rankers before, it adds no tree. Its trees are fitted to its own scores alone.
    """

    def __init__(
        self,
        binned: BinnedFeatures,
        settings: ResolvedSettings,
        pool: WorkerPool,
        training: Training,
        validation_sets: Sequence[Validation],
        directions: Int8Array | None,
    ) -> None:
        self._settings = settings
        self._training, self._validation_sets = training, validation_sets
        self._setup = GrowingSetup(binned, pool, Histograms(binned.edges.n_bins), directions)
        self._stopping = EarlyStopping(settings.patience)
        self._rankers: list[list[GrownTree]] = []
        self.made: list[Ranker] = []
        self.stops_early = bool(validation_sets) and settings.patience is not None
        self.rounds = 0
        self.stopped = "trees"
        self.position_bias = np.zeros(0)
        self._first_scores = training.scores  # of the training set after the first ranker's best round
        self._values: list[tuple[float | None, ...]] = []

    def begin_with(self, measure: float | None) -> None:
        """Set the first validation set's measure without trees, so that a model without trees may be the best."""
        self._stopping = EarlyStopping(self._settings.patience, measure)

    def boost(self, objective: Objective, shares: int) -> Iterator[RoundReport]:
        """Train one objective, and yield a report of each round.

        Grows at most ceil(remaining trees / shares) trees; stops earlier when no split has a positive gain or early
        stopping triggers.
        """
        settings, training, validation_sets = self._settings, self._training, self._validation_sets
        kept = [grown for ranker in self._rankers for grown in ranker]
        total = copy(training)  # of the rankers, not yet divided by their number
        training.restart()
        if kept:
            self._add_up([total, *validation_sets], kept, 1 + sum(map(bool, self._rankers)))
        else:
            total = training
        trees: list[GrownTree] = []
        largest = 0.0  # bound of the sum of leaf values over all trees
        self.position_bias = objective.position_bias
        most = -(-(settings.trees - len(kept)) // shares)
        stopped = "trees"
        if not kept and self._stopping.fewest == 0:  # no tree at all may be best
            self.position_bias = np.zeros_like(objective.position_bias)
            self._first_scores = training.scores.copy()
        for number in range(len(kept) + 1, len(kept) + most + 1):
            grown, bias = self._grow(objective, number - len(kept), [training.scores] + [total.scores] * bool(kept))
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
            for validation_set in validation_sets:
                validation_set.add(grown)
            measures = tuple(one.measure() for one in validation_sets)
            self._values[number - 1 :] = [measures]
            yield RoundReport(number, settings.trees, grown.tree, measures, total.measure, len(self.made) + 1)
            stop = self.stops_early and self._stopping.update(number, measures[0])
            if not self.stops_early or number == max(self._stopping.best_round, self._stopping.fewest):
                self.position_bias = bias
                if not kept:
                    self._first_scores = training.scores.copy() if self.stops_early else training.scores
            if stop:
                stopped = "early"
                break
        if most > 0:
            self.stopped = stopped
        grown_in_all = len(kept) + len(trees)
        fewest = min(self._stopping.fewest, grown_in_all)
        best = max(self._stopping.best_round, fewest) if self.stops_early else grown_in_all
        self._rankers.append(trees[: best - len(kept)])
        name = objective.task.settings.objective.name
        self.made.append(Ranker(name, len(trees), len(self._rankers[-1]), stopped))

    def finish(self) -> tuple[list[Tree], tuple[float | None, ...]]:
        """Return the trees of the model and the measures of the validation sets; set the scores of the training set."""
        rankers = [ranker for ranker in self._rankers if ranker]
        every = [grown for ranker in rankers for grown in ranker]
        if len(rankers) > 1:
            values = [grown.tree.leaf_values / len(rankers) for grown in every]
            every = [replace(one, tree=replace(one.tree, leaf_values=v)) for one, v in zip(every, values, strict=True)]
            self._add_up([self._training, *self._validation_sets], every, 1)  # as `predict` does, to the last bit
        elif rankers:
            self._training.scores = self._first_scores
        else:  # no round was better than none
            self._add_up([self._training, *self._validation_sets], [], 1)
        trees = [grown.tree for grown in every]
        if len(rankers) == 1:
            return trees, self._values[len(trees) - 1]
        return trees, tuple(one.measure() for one in self._validation_sets)

    def _add_up(self, sets: Sequence[Training | Validation], trees: Sequence[GrownTree], times: int) -> None:
        """Recompute the scores of data sets: `times` the initial scores, plus all trees."""
        for one in sets:
            one.restart(times)
            for grown in trees:
                one.add(grown)

    def _grow(
        self, objective: Objective, round_number: int, scores: Sequence[Float64Array]
    ) -> tuple[GrownTree | None, Float64Array]:
        """Return a tree, None when there is no split, and the bias of positions after it; add the tree to scores.

        scores : float64[n_documents] each; the first are those that the gradients are computed at
        """
        drawn = objective.task.settings
        for settings in (drawn, replace(drawn, feature_rate=1.0, sampling_rate=1.0)):
            gradients = objective.compute_gradients(scores[0], round_number)
            bias = objective.next_position_bias(gradients)  # growing changes the gradients
            grown = grow_round(self._setup, gradients, settings, round_number, scores)
            if grown is not None or min(drawn.sampling_rate, drawn.feature_rate) == 1.0:
                break  # else try again without sampling rows and features
        return grown, bias
