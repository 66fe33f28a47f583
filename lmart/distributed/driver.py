"""DistributedRun: a training run whose documents are in shards."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lmart.array_types import Float64Array, Int8Array, Int64Array
from lmart.binning.edges import BinEdges
from lmart.distributed.actors import Actors
from lmart.distributed.leaves import ShardedLeaves, grow_on_shards
from lmart.distributed.reading import JoinedSet
from lmart.distributed.shard import EdgeMagnitudes
from lmart.distributed.sharded_sets import ShardedSets
from lmart.distributed.sums import OVERFLOW_SHIFT, DrawnRows, MeasureSums, PackedRoot, QueriesFound
from lmart.errors import SettingsError
from lmart.kernels.exact.bit_mixing import round_key
from lmart.settings.resolved import RankerSettings, ResolvedSettings
from lmart.threads import WorkerPool
from lmart.training.boosting import BoostingRun, Learner, feature_directions, without_trees
from lmart.training.grower import GrownTree, GrowParams, Histograms, Units
from lmart.training.linear import NO_SUMS, GradientSums, sums_of_root
from lmart.training.measured import Measures
from lmart.training.objectives import Gradients
from lmart.training.scores import SPREAD_SCALES, KeptScores, spread_of_squares
from lmart.training.tree_round import draw_features, join_magnitudes, scale_for, sum_magnitudes, threshold_of

ROUNDING = 1e-10  # relative, far above what sums of 32,768 numbers are rounded by


class DistributedRun(BoostingRun):
    """A run on documents that shards hold; the bytes of its result are those of `TrainingRun`.

    began    : when the work on the data began, by time.perf_counter
    """

    def __init__(self, sets: ShardedSets, settings: ResolvedSettings, pool: WorkerPool, began: float) -> None:
        """Prepare the shards for the first round; errors as those of `TrainingRun`."""
        shards, train_set, edges = sets.shards, sets.train_set, sets.edges
        if settings.trees == 0 and not sets.has_start:
            raise SettingsError("trees is 0, which needs initial scores; use a number from 1 up")
        prepared = shards.call("prepare", settings, sets.exponents)
        found: list[list[QueriesFound]] = shards.call("queries_found")
        warnings = list(sets.warnings)
        for validation_set, of_set in zip(sets.validation_sets, list(zip(*found, strict=True))[1:], strict=True):
            warnings += _warnings_of(validation_set, of_set)
        directions = feature_directions(settings.constraints, train_set, edges, train_set.source)
        setup = _Setup(sets, pool, Histograms(edges.n_bins), directions)
        self._scored = training = ShardedScores(shards, 0)
        self._has_categories = bool(train_set.categories)
        learner = Learner(
            fittings=[
                _ShardedFitting(setup, number, ranker, training) for number, ranker in enumerate(settings.rankers)
            ],
            training=training,
            validation_sets=[ShardedScores(shards, 1 + number) for number in range(len(sets.validation_sets))],
            n_features=len(edges.varying),
            n_idle_queries=min(map(sum, zip(*(idle for idle, _ in prepared), strict=True))),
            can_learn=any(can_learn for _, can_learn in prepared),
            warnings=tuple(warnings),
            given_start=sets.has_start,
            directions=directions,
            linear=_ShardedLinearSource(setup, settings, training) if settings.linear else None,
        )
        super().__init__(settings, without_trees(train_set, settings.recorded, train_set.categories), learner, began)

    def _score_as_model(self, trees: Sequence[GrownTree]) -> None:
        if self._has_categories:
            self._scored.score_as_model(trees)


def _warnings_of(validation_set: JoinedSet, found: Sequence[QueriesFound]) -> list[str]:
    """Return warnings about the queries of a validation set."""
    if all(part.nothing_relevant for part in found):
        return [f"{validation_set.source}: no query has a relevant document, so every measure of it is 0"]
    if all(part.nothing_counts or part.nothing_relevant for part in found):
        what = f"{validation_set.source}: no query with a weight above 0 has a relevant document"
        return [f"{what}, so every measure of it is 0"]
    return []


class ShardedScores:
    """The scores of a data set in shards, and its measures."""

    def __init__(self, shards: Actors, number: int) -> None:
        self._shards, self._number = shards, number
        self._sums: list[dict[str, MeasureSums]] | None = None  # of the current scores, if they are known

    def restart(self) -> None:
        """Set the scores to the initial scores."""
        self._sums = None
        self._shards.call("restart", self._number)

    def changed(self) -> None:
        """Note that the scores are no longer those that were measured."""
        self._sums = None

    def add(self, grown: GrownTree) -> None:
        """Add the leaf values of a tree to the scores of its documents."""
        if self._number:
            self._sums = self._shards.call("add", self._number, grown, 0)
        else:
            self._sums = None
            self._shards.call("add", self._number, grown, None)

    def score_as_model(self, trees: Sequence[GrownTree]) -> None:
        """Set the scores of the training set to those that the model of these trees gives it, if they are others."""
        self._sums = None
        self._shards.call("score_as_model", trees)

    def measure(self) -> Measures:
        """Return the measures of the data set at its current scores."""
        if self._sums is None:
            self._sums = self._shards.call("measure", self._number, 0)
        return {name: self._mean(name) for name in self._sums[0]}

    def _mean(self, name: str) -> float | None:
        """Return the mean of a measure; None when no query counts."""
        try:
            return _mean([sums[name] for sums in self._sums or ()])
        except OverflowError:  # of dcg only; a power of two changes no digit
            scaled = _mean([sums[name] for sums in self._shards.call("measure", self._number, OVERFLOW_SHIFT)])
            return None if scaled is None else scaled * 2.0**-OVERFLOW_SHIFT

    def keep(self, number: int, copied: bool) -> KeptScores:
        """Return the number that the current scores, or a copy that stays as it is, are kept under."""
        self._shards.call("keep", number, copied)
        return number

    def put_back(self, kept: KeptScores) -> None:
        """Set the scores to those that were kept."""
        self._sums = None
        self._shards.call("put_back", kept)

    def spreads(self, kept: Sequence[KeptScores]) -> list[float]:
        """Return how far scores are apart within queries, summed from shard to shard as one machine does."""
        return [self._spread(scores) for scores in kept]

    def _spread(self, kept: KeptScores) -> float:
        for scale in SPREAD_SCALES:
            squares = 0.0
            for number in range(len(self._shards)):
                squares = self._shards.ask(number, "squares", kept, scale, squares)
            if found := spread_of_squares(squares, scale):
                return found
        return 0.0


def _mean(sums: Sequence[MeasureSums]) -> float | None:
    """Return the weighted mean of a measure over all queries; OverflowError when a sum is no number."""
    total = math.fsum(part for part_sums in sums for part in part_sums.weights)
    if total == 0:
        return None
    if any(part_sums.values is None for part_sums in sums):
        raise OverflowError
    return math.fsum(part for part_sums in sums for part in part_sums.values or ()) / total


class _Setup(NamedTuple):
    """What growing a tree needs that is the same in every round."""

    sets: ShardedSets
    pool: WorkerPool
    histograms: Histograms
    directions: Int8Array | None


class _ShardedFitting:
    """Fits trees to the objective of a ranker: a `TreeFitting`."""

    def __init__(self, setup: _Setup, number: int, settings: RankerSettings, training: ShardedScores) -> None:
        self._training = training
        self._setup, self._number, self._settings = setup, number, settings
        self._shards = setup.sets.shards
        self.position_bias: Float64Array = np.zeros(0)

    @property
    def settings(self) -> RankerSettings:
        """The settings of the ranker."""
        return self._settings

    @property
    def edges(self) -> BinEdges:
        """The bins that trees split on."""
        return self._setup.sets.edges

    def fit(self, settings: RankerSettings, round_number: int) -> tuple[GrownTree | None, Float64Array]:
        """Add a tree to the scores of the training set; return it, and no position bias."""
        return self._fit(settings, round_number), self.position_bias

    def _fit(self, settings: RankerSettings, round_number: int) -> GrownTree | None:
        sets, pool, histograms, directions = self._setup
        shards, edges = self._shards, sets.edges
        n = sets.train_set.n_documents
        drawn = self._draw(settings, round_number, n)
        scales = self._scales(drawn)
        if scales is None:
            return None
        features = draw_features(edges, settings, round_number)
        root: PackedRoot = shards.add("pack", scales, features)
        units = Units(1.0 / scales[0], 1.0 / scales[1], root.largest_hessian)
        leaves = ShardedLeaves(shards, sets.most_frequent_bins, root, n)
        params = GrowParams(leaves, edges, units, settings.tree, pool, histograms, directions, features)
        grown = grow_on_shards(params, leaves)
        if grown is not None:
            shards.add("finish_tree", grown.leaves, grown.tree.leaf_values)
            self._training.changed()
        return grown

    def sum_root(self, settings: RankerSettings) -> tuple[PackedRoot, Units] | None:
        """Return the root of a tree at the current scores, and the units of its sums; None when all gradients are 0."""
        scales = self._scales(self._draw(settings, 1, self._setup.sets.train_set.n_documents))
        if scales is None:
            return None
        root: PackedRoot = self._shards.add("pack", scales, None)
        return root, Units(1.0 / scales[0], 1.0 / scales[1], root.largest_hessian)

    def _draw(self, settings: RankerSettings, round_number: int, n_documents: int) -> DrawnRows:
        """Compute the gradients of a round, and draw the rows that its tree is grown from."""
        drawn: DrawnRows
        if settings.sampling_rate < 1.0:
            sizes = self._shards.call("compute_sizes", self._number, round_number, n_documents)
            threshold = threshold_of(sizes, settings.sampling_rate)
            drawn = self._shards.add("draw", threshold, int(round_key(settings.seed, round_number)))
        else:
            drawn = self._shards.add("draw_all", self._number, round_number)
        return drawn

    def _scales(self, drawn: DrawnRows) -> tuple[float, float] | None:
        """Return the units that are 1, of gradients and of hessians; None when all gradients are 0.

        The units are powers of two, so another order of adding rarely changes them. Where a sum is within rounding of
        a boundary, it is added again in the order of a single process.
        """
        n_sampled, sums = drawn
        if sums[0] == 0.0:
            return None
        bounds = [[scale_for(total * factor, n_sampled) for factor in (1 - ROUNDING, 1 + ROUNDING)] for total in sums]
        if any(low != high for low, high in bounds):
            sums = self._sums_by_piece()
        return scale_for(sums[0], n_sampled), scale_for(sums[1], n_sampled)

    def _sums_by_piece(self) -> tuple[float, float]:
        """Return the sums of magnitudes that one machine has."""
        shards: list[EdgeMagnitudes] = self._shards.call("magnitudes_by_piece")
        sums = [piece for shard in shards for piece in shard.inside]
        open_rows: list[Gradients] = []  # of a piece that is not complete yet
        for shard in shards:
            open_rows.append(shard.head)
            if shard.inside or len(shard.tail.gradients):
                sums += self._sum_rows(open_rows)
                open_rows = [shard.tail]
        return join_magnitudes(sums + self._sum_rows(open_rows))

    def _sum_rows(self, rows: Sequence[Gradients]) -> list[tuple[float, float]]:
        """Return the sums of a piece."""
        joined = Gradients(*(np.concatenate([gradients[k] for gradients in rows]) for k in range(2)))
        return sum_magnitudes(joined, self._setup.pool)


class _ShardedLinearSource:
    """What a linear ranker is fitted to: a `LinearSource`."""

    def __init__(self, setup: _Setup, settings: ResolvedSettings, training: ShardedScores) -> None:
        self._sets, self._settings, self._training = setup.sets, settings.linear_ranker, training
        self._fitting = _ShardedFitting(setup, len(settings.rankers), self._settings, training)

    @property
    def n_queries(self) -> int:
        """The number of queries."""
        return self._sets.train_set.n_queries

    @property
    def edges(self) -> BinEdges:
        """BinEdges of m features."""
        return self._sets.edges

    @property
    def bin_counts(self) -> Int64Array:
        """int64[n_bins], documents in each bin."""
        return self._sets.bin_counts

    def sum_gradients(self, values: Float64Array) -> GradientSums:
        """Return the sums at the scores to which each bin adds its value."""
        sets = self._sets
        sets.shards.call("add_bin_values", values)
        self._training.changed()
        found = self._fitting.sum_root(self._settings)
        if found is None:
            return NO_SUMS
        root, units = found
        return sums_of_root(root.histogram, root.total, units, sets.edges, sets.most_frequent_bins)
