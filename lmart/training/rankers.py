"""The rankers of a run: rounds of boosting with early stopping for each, and the model that is their mean."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from lmart.array_types import Float64Array, Int64Array
from lmart.binning.edges import BinEdges
from lmart.errors import LmartError
from lmart.functions import in_round
from lmart.scoring.ensemble import Tree
from lmart.settings.resolved import RankerSettings
from lmart.training.early_stopping import EarlyStopping
from lmart.training.grower import GrownTree
from lmart.training.measured import Measures, OnValidation, deciding
from lmart.training.objectives import Objective
from lmart.training.scores import KeptScores, LocalTrainingScores, MeasuredScores, TrainingScores, spread
from lmart.training.tree_log import LoggedRound, TreeLog
from lmart.training.tree_round import GrowingSetup, grow_round

LARGEST_SCORE = 1e300  # training stops before scores or their differences overflow


class MeasuredOnce:
    """The measures of the training set after a round, computed when they are first asked for."""

    def __init__(self, measure: Callable[[], Measures], round_number: int) -> None:
        self._measure: Callable[[], Measures] | None = measure
        self._round = round_number
        self._measures: Measures | None = None

    def close(self) -> None:
        """Note that the round is over: the scores are no longer those after it."""
        self._measure = None

    def __call__(self) -> Measures:
        """Return the measures; LmartError when they are first asked for after the round."""
        if self._measures is None:
            if self._measure is None:
                raise LmartError("the training set was not measured after this round, and now has other scores")
            with in_round(self._round):
                self._measures = self._measure()
        return self._measures


@dataclass(frozen=True)
class RoundReport(OnValidation):
    """One round of a ranker; measures are those after it, by the ranker alone.

    round            : its number in the ranker, from 1
    ranker           : number of the ranker, from 1
    tree             : the tree grown in it
    measure_all      : computes all measures of the training set, by name; first called before the next round
    """

    round: int
    ranker: int
    tree: Tree
    measure_all: Callable[[], Measures]

    def measure_training(self) -> float | None:
        """Return the first measure of the training set; LmartError when it is first asked for after the round."""
        return deciding(self.measure_all())


@dataclass(frozen=True)
class TrainedRanker(OnValidation):
    """A ranker that is trained; measures are by the trees that it holds, initial scores included.

    rounds        : trees grown
    trees         : those it holds: up to its best round with early stopping, else all
    stopped       : 'trees' (all its trees grown), 'early' (early stopping), 'split' (no split had a positive gain)
    scores        : of the training set by these trees alone, initial scores included, as the set keeps them
    position_bias : float64[n_positions] after the last of these trees; empty without positions
    """

    settings: RankerSettings
    rounds: int
    trees: tuple[GrownTree, ...]
    stopped: str
    scores: KeptScores
    position_bias: Float64Array


class TreeFitting(Protocol):
    """Fits trees to the objective of a ranker.

    position_bias : float64[n_positions], which gradients are computed with
    """

    position_bias: Float64Array

    @property
    def settings(self) -> RankerSettings:
        """The settings of the ranker."""
        ...

    @property
    def edges(self) -> BinEdges:
        """The bins that trees split on."""
        ...

    def fit(self, settings: RankerSettings, round_number: int) -> tuple[GrownTree | None, Float64Array]:
        """Add a tree to the scores of the training set; return it and the bias of positions after it.

        No tree, and no change of the scores, when there is no split.
        """
        ...


class LocalFitting:
    """Fits trees to an objective of documents in this process's memory."""

    def __init__(self, objective: Objective, setup: GrowingSetup, training: LocalTrainingScores) -> None:
        self._objective, self._setup, self._training = objective, setup, training

    @property
    def settings(self) -> RankerSettings:
        """The settings of the ranker."""
        return self._objective.task.settings

    @property
    def edges(self) -> BinEdges:
        """The bins that trees split on."""
        return self._setup.binned.edges

    @property
    def position_bias(self) -> Float64Array:
        """float64[n_positions], which gradients are computed with."""
        return self._objective.position_bias

    @position_bias.setter
    def position_bias(self, bias: Float64Array) -> None:
        self._objective.position_bias = bias

    def fit(self, settings: RankerSettings, round_number: int) -> tuple[GrownTree | None, Float64Array]:
        """Grow a tree on this process's documents."""
        scores = self._training.scores
        gradients = self._objective.compute_gradients(scores, round_number)
        bias = self._objective.next_position_bias(gradients)  # growing changes the gradients
        return grow_round(self._setup, gradients, settings, round_number, scores), bias


class RankerTraining:
    """The training of one ranker.

    training        : the training set, whose scores start anew
    validation_sets : likewise; the first decides on early stopping
    stopping        : early stopping; with it and a validation set, the ranker holds the trees up to its best round
    log             : gives the trees of an interrupted run, and takes new ones
    rounds_before   : rounds that another run did, whose random numbers are not drawn again
    """

    def __init__(
        self,
        fitting: TreeFitting,
        number: int,
        training: TrainingScores,
        validation_sets: Sequence[MeasuredScores],
        stopping: EarlyStopping,
        log: TreeLog,
        rounds_before: int = 0,
    ) -> None:
        self._fitting, self._number = fitting, number
        self._training, self._validation_sets, self._stopping = training, validation_sets, stopping
        self._log, self._rounds_before = log, rounds_before
        self._stops_early = bool(validation_sets) and stopping.patience is not None
        self._trees: list[GrownTree] = []
        self._stopped = "trees"
        for data in (training, *validation_sets):
            data.restart()
        self._kept = 0  # trees
        self._keep(tuple(data.measure() for data in validation_sets), np.zeros_like(fitting.position_bias))

    def rounds(self, most: int) -> Iterator[RoundReport]:
        """Grow at most this many trees, and yield a report of each before the next."""
        fitting, training = self._fitting, self._training
        largest = 0.0  # bound of the sum of leaf values over all trees
        of_training: MeasuredOnce | None = None
        for number in range(1, most + 1):
            if self._log.at_end:
                self._stopped = "interrupted"
                break
            grown, bias = self._grow(self._rounds_before + number)
            if grown is None:
                self._stopped = "split"
                break
            if of_training is not None:
                of_training.close()
            self._trees.append(grown)
            fitting.position_bias = bias
            largest += float(np.abs(grown.tree.leaf_values).max())
            if not max(largest, float(np.abs(bias).max(initial=0.0))) <= LARGEST_SCORE:
                what = f"the scores may grow beyond {LARGEST_SCORE:g} in round {number}"
                raise LmartError(f"{what}; use a smaller --learning-rate")
            for validation_set in self._validation_sets:
                validation_set.add(grown)
            with in_round(number):
                measures = tuple(data.measure() for data in self._validation_sets)
            of_training = MeasuredOnce(training.measure, number)
            yield RoundReport(measures, number, self._number, grown.tree, of_training)
            stop = self._stops_early and self._stopping.update(number, deciding(measures[0]))
            if not self._stops_early or number == max(self._stopping.best_round, self._stopping.fewest):
                self._kept = number
                self._keep(measures, bias)
            if stop:
                self._stopped = "early"
                break
        if of_training is not None:
            if self._stopped in ("split", "interrupted"):  # only now it turns out that this round was the last one
                of_training()
            of_training.close()

    def _keep(self, measures: tuple[Measures, ...], bias: Float64Array) -> None:
        """Remember the state after the trees that are kept so far."""
        self._kept_scores = self._training.keep(self._number, copied=self._stops_early)
        self._measures, self._position_bias = measures, bias

    def result(self) -> TrainedRanker:
        """Return the ranker after its last round."""
        return TrainedRanker(
            settings=self._fitting.settings,
            rounds=len(self._trees),
            trees=tuple(self._trees[: self._kept]),
            stopped=self._stopped,
            validation_measures=self._measures,
            scores=self._kept_scores,
            position_bias=self._position_bias,
        )

    def _grow(self, round_number: int) -> tuple[GrownTree | None, Float64Array]:
        """Add a tree to the scores; return it, None when there is no split, and the bias of positions after it."""
        if (logged := self._log.take()) is not None:
            if not logged.fits(self._fitting.edges, len(self._fitting.position_bias)):
                self._log.refuse()
            if logged.grown is not None:
                self._training.add(logged.grown)
            return logged
        drawn = self._fitting.settings
        for settings in (drawn, replace(drawn, feature_rate=1.0, sampling_rate=1.0)):
            grown, bias = self._fitting.fit(settings, round_number)
            if grown is not None or min(drawn.sampling_rate, drawn.feature_rate) == 1.0:
                break  # else try again without sampling rows and features
        self._log.add(LoggedRound(grown, bias))
        return grown, bias


def ranker_weights(scores: Sequence[Float64Array], query_offsets: Int64Array, with_init_scores: bool) -> list[float]:
    """Return what the scores of each ranker are multiplied by, so that their sum is the model.

    with_init_scores : the scores start from initial ones; then rankers are simply averaged, as these stay as they are

    Equation: weight_k = (spread_1 / spread_k) / number of rankers: the mean of rankers of the same spread, that of the
    first. The spread is the root of the sum of squares of what scores differ from the mean of their query; objectives
    have scores of different scales, and the mean would follow the largest.
    """
    if len(scores) == 1 or with_init_scores:
        return [1.0 / len(scores)] * len(scores)
    return weights_of_spreads([spread(of_ranker, query_offsets) for of_ranker in scores])


def weights_of_spreads(spreads: Sequence[float]) -> list[float]:
    """Return what the scores of each ranker are multiplied by: see `ranker_weights`."""
    n = len(spreads)
    first = next((value for value in spreads if value > 0.0), 1.0)
    return [(first / value if value > 0.0 else 1.0) / n for value in spreads]


def weighted(tree: Tree, weight: float) -> Tree:
    """Return a tree with its leaf values multiplied by the weight of its ranker."""
    return replace(tree, leaf_values=tree.leaf_values * weight)
