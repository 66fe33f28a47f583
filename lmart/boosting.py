"""train: the round loop, validation and early stopping."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from lmart import objectives
from lmart.bin_edges import BinEdges
from lmart.binning import BinnedDataset, BinnedFeatures, bin_dataset
from lmart.coding import CodedDataset, code_dataset
from lmart.dataset import Judged, RankingDataset
from lmart.ensemble import Ensemble, Tree
from lmart.errors import DataError, LmartError, quote
from lmart.grower import GrownTree, Histograms, Units, grow_tree
from lmart.kernels import histogram as sums
from lmart.kernels import parting, sampling
from lmart.leaves import LocalLeaves, Partition
from lmart.measures import Conventions, Evaluator, parse_measure
from lmart.monotone import parse_monotone
from lmart.objectives import Gradients
from lmart.scoring import Scorer
from lmart.settings import TrainSettings
from lmart.sidecars import NO_SIDECARS, Sidecars
from lmart.threads import WorkerPool, chunks

Floats = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]
Ints = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]
Signs = npt.NDArray[np.int8]
Trainable = RankingDataset | BinnedDataset

CHUNK = 32_768  # rows in one piece of work
SMALL_DATA = 200_000  # documents up to which `--sample auto` takes all
LEAST_SHARE = 0.3
LARGEST_SCORE = 1e300  # so that differences of scores are numbers too


@dataclass(frozen=True)
class RoundReport:
    """One round: its number from 1, the most there can be, its tree, the measure of each validation set, and a call
    that measures the training set."""

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
    rounds     : trees grown; share : of the documents in each; n_features_split : features with more than one bin
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


@contextmanager
def _naming(dataset: Judged) -> Iterator[None]:
    """Name the data set in a refusal that does not name its file yet."""
    try:
        yield
    except DataError as fault:
        if fault.path is None:
            raise DataError(fault.message, dataset.source, fault.line, fault.more) from None
        raise


class _Watched:
    """A data set whose scores are kept up to date, to be measured after each round."""

    def __init__(
        self, dataset: Judged, settings: TrainSettings, pool: WorkerPool, init_scores: Floats | None = None
    ) -> None:
        conventions = Conventions(gain=settings.gain)
        self._measure = parse_measure(settings.metric, conventions)
        with _naming(dataset):
            self._evaluator = Evaluator(dataset.labels, dataset.query_offsets, [self._measure], pool)
        self._dataset = dataset
        self.nothing_relevant = bool(self._evaluator.empty.all())
        self.scores = np.zeros(len(dataset.labels)) if init_scores is None else init_scores.copy()

    def measure(self) -> float | None:
        with _naming(self._dataset):
            return self._evaluator.evaluate(self.scores).values[str(self._measure)]


class _Validation(_Watched):
    """A validation set in the training set's bins."""

    def __init__(
        self,
        dataset: CodedDataset,
        model: Ensemble,
        edges: BinEdges,
        settings: TrainSettings,
        pool: WorkerPool,
        init_scores: Floats | None = None,
    ) -> None:
        super().__init__(dataset, settings, pool, init_scores)
        self._model = model
        self.warnings = list(dataset.warnings)
        if self.nothing_relevant:
            self.warnings.append(f"{dataset.source}: no query has a relevant document, so every measure of it is 0")
        self._set = dataset
        self._missing_codes = edges.missing_codes
        self._pool = pool

    def add(self, grown: GrownTree) -> None:
        tree, coded = grown.tree, self._set
        exact = self.scores[coded.infinite_docs]
        fixed = (grown.split_features, grown.split_codes, self._missing_codes, tree.missing_left)
        rest = (tree.left, tree.right, tree.leaf_values)
        calls, start = [], 0
        for codes in coded.codes:
            n = codes.shape[1]
            calls.append((codes, *fixed, *rest, 0, n, self.scores[start : start + n]))
            start += n
        self._pool.run(parting.walk_codes, calls)
        if len(exact):
            one_tree = Scorer(replace(self._model, trees=(tree,)))
            self.scores[coded.infinite_docs] = exact + one_tree.score(coded.infinite, coded.columns, self._pool)


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
    The first validation set decides on early stopping. The result depends on the data and the settings alone.
    DataError when a label has no gain, a validation set shares no feature with the training set, or a constraint names
    a feature that is not there; SettingsError when the objective knows no positions and there are some; LmartError when
    scores grow beyond LARGEST_SCORE.
    """
    began = time.perf_counter()
    settings = settings.for_queries(train_set.n_queries)
    with _naming(train_set):
        objective = objectives.prepare(train_set, settings, pool, sidecars.weights, sidecars.positions)
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
    watched = [_Validation(one, empty, edges, settings, pool, start) for one, start in zip(coded, starts, strict=True)]
    own = _Watched(train_set, settings, pool, sidecars.init_scores)
    share = resolve_share(settings, train_set.n_documents)
    binning_done = time.perf_counter()

    stopping = EarlyStopping(settings.early_stop)
    trees: list[Tree] = []
    values: list[tuple[float | None, ...]] = []
    stopped = "trees"
    largest = 0.0  # what the leaf values of all trees can add up to
    best_scores, best_bias = own.scores, objective.position_bias
    histograms = Histograms(edges.n_bins)
    signs = _signs(train_set, settings, edges)
    whole = replace(settings, features=1.0)
    for round_number in range(1, settings.trees + 1):
        gradients = objective.compute_gradients(own.scores, round_number)
        bias = objective.next_position_bias(gradients)  # growing changes the gradients
        grown = _grow_round(binned, gradients, settings, share, round_number, pool, own.scores, histograms, signs)
        if grown is None and min(share, settings.features) < 1.0:  # perhaps only an unlucky draw
            gradients = objective.compute_gradients(own.scores, round_number)
            grown = _grow_round(binned, gradients, whole, 1.0, round_number, pool, own.scores, histograms, signs)
        if grown is None:
            stopped = "split"
            break
        trees.append(grown.tree)
        objective.position_bias = bias
        largest += float(np.abs(grown.tree.leaf_values).max())
        if not max(largest, float(np.abs(bias).max(initial=0.0))) <= LARGEST_SCORE:
            what = f"the scores may grow beyond {LARGEST_SCORE:g} in round {round_number}"
            raise LmartError(f"{what}; use a smaller --learning-rate")
        for one in watched:
            one.add(grown)
        measures = tuple(one.measure() for one in watched)
        values.append(measures)
        on_round(RoundReport(round_number, settings.trees, grown.tree, measures, own.measure))
        if watched and settings.early_stop:
            stop = stopping.update(round_number, measures[0])
            if round_number in (stopping.best_round, 1):
                best_scores, best_bias = own.scores.copy(), bias
            if stop:
                stopped = "early"
                break
    best = max(stopping.best_round, min(1, len(trees))) if watched and settings.early_stop else len(trees)
    rounds = len(trees)
    if best < rounds:
        own.scores, objective.position_bias = best_scores, best_bias
    ensemble = Ensemble(
        tuple(trees[:best]), empty.feature_ids, empty.feature_names, 0.0, empty.absent, empty.gain, empty.settings
    )
    return TrainResult(
        ensemble,
        best,
        rounds,
        stopped,
        objective.n_idle_queries(),
        edges.n_features,
        share,
        own.measure(),
        values[best - 1] if best else tuple(one.measure() for one in watched),
        own.scores,
        objective.position_bias,
        tuple(text for one in watched for text in one.warnings),
        {"binning": binning_done - began, "growing": time.perf_counter() - binning_done},
    )


def _grow_round(
    binned: BinnedFeatures,
    gradients: Gradients,
    settings: TrainSettings,
    share: float,
    round_number: int,
    pool: WorkerPool,
    scores: Floats,
    histograms: Histograms,
    signs: Signs | None,
) -> GrownTree | None:
    """Grow one tree on a sample of the documents and add its leaf values to the scores of all."""
    taken, rest = _draw(gradients, share, settings.seed, round_number, pool)
    units, packed = _pack(gradients, taken, rest, pool)
    if units is None:
        return None
    leaves = LocalLeaves(binned, packed, taken, rest, pool.threads)
    features = _draw_features(binned.edges, settings, round_number)
    grown = grow_tree(leaves, binned.edges, units, settings, pool, histograms, signs, features)
    if grown is not None:
        for part in leaves.partitions:
            _add_values(part, grown, scores, pool)
    return grown


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


def _draw_features(edges: BinEdges, settings: TrainSettings, round_number: int) -> Flags | None:
    """Return the features that a tree may split on, bool[m], None for all: those with the least numbers drawn."""
    if settings.features >= 1.0:
        return None
    numbers = np.empty(edges.n_features, np.uint64)
    sampling.mix_each(edges.columns, ~np.uint64(sampling.round_key(settings.seed, round_number)), numbers)
    taken = np.zeros(edges.n_features, np.bool_)
    taken[numbers.argsort(kind="stable")[: max(1, round(settings.features * edges.n_features))]] = True
    return taken


def _add_values(part: Partition, grown: GrownTree, scores: Floats, pool: WorkerPool) -> None:
    values = grown.tree.leaf_values
    bounds = np.array([part.bounds[leaf] for leaf in grown.leaves], np.int64)
    starts, stops = bounds[:, 0].copy(), bounds[:, 1].copy()
    ranges = chunks(len(values), -(-len(values) // (4 * pool.threads)))  # of leaves, which share no document
    calls = [(part.documents, starts[a:b], stops[a:b], values[a:b], scores) for a, b in ranges]
    pool.run(parting.add_leaf_values, calls)


def _draw(gradients: Gradients, share: float, seed: int, round_number: int, pool: WorkerPool) -> tuple[Ints, Ints]:
    """Return the rows that a tree is grown from and the rest, ascending; gradients of the former are made up for it.

    Minimal variance sampling (Ibragimov and Gusev 2019): the chance of a row is size / mu, at most 1, with size
    sqrt(g^2 + h^2 / 10), and mu such that about `share` of the rows are drawn.
    """
    n = len(gradients.gradients)
    everything = np.arange(n, dtype=np.int32)
    if share >= 1.0:
        return everything, np.empty(0, np.int32)
    some = everything[:: max(1, n >> 16)]  # mu need not be exact, only the same everywhere
    sizes = np.empty(len(some))
    sampling.sizes(gradients.gradients[some], gradients.hessians[some], 0, len(some), sizes)
    threshold = sampling.threshold_for(np.sort(sizes), share)
    if threshold <= 0.0:
        return everything, np.empty(0, np.int32)
    key = np.uint64(sampling.round_key(seed, round_number))
    taken, rest = np.empty(n, np.int32), np.empty(n, np.int32)
    pieces = chunks(n, CHUNK)
    counts = pool.run(sampling.draw, [(*gradients, threshold, key, a, b, taken, rest) for a, b in pieces])
    return (
        np.concatenate([taken[a : a + k] for (a, _), k in zip(pieces, counts, strict=True)]),
        np.concatenate([rest[a : b - k] for (a, b), k in zip(pieces, counts, strict=True)]),
    )


def _pack(gradients: Gradients, taken: Ints, rest: Ints, pool: WorkerPool) -> tuple[Units | None, Longs]:
    """Return the units, powers of two in which all sums fit 32 bits, and the packed gradients, int64[n].

    No units when there is nothing to learn from. Rows that are not taken are packed as 0.
    """
    if len(rest):
        gradients.gradients[rest] = 0.0
        gradients.hessians[rest] = 0.0
    n = len(gradients.gradients)
    pieces = chunks(n, CHUNK)
    parts = pool.run(sums.sum_sizes, [(*gradients, a, b) for a, b in pieces])
    gradient = math.fsum(part[0] for part in parts)
    hessian = math.fsum(part[1] for part in parts)
    packed = np.empty(n, np.int64)
    if gradient == 0.0:
        return None, packed
    room = 2.0**31 - 1 - len(taken) / 2  # rounding adds up to half a unit a document
    scales = [2.0 ** (math.frexp(room / total)[1] - 1) if total > 0 else 1.0 for total in (gradient, hessian)]
    largest = max(pool.run(sums.pack, [(*gradients, *scales, a, b, packed) for a, b in pieces]))
    return Units(1.0 / scales[0], 1.0 / scales[1], largest), packed
