"""Shard: what a worker holds of a run. Its methods are called by the driver, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from lmart.array_types import BoolArray, Float64Array, Int32Array, Int64Array
from lmart.binning.binned_features import BinnedDataset
from lmart.binning.categories import PlacedCategory, bins_of_model, with_unseen_bins
from lmart.binning.edges import BinEdges
from lmart.data.categories import Categories
from lmart.data.dataset import Judged
from lmart.data.metadata import Metadata
from lmart.distributed.actors import LinkedActor, check_run
from lmart.distributed.categories import CategoryRows
from lmart.distributed.reading import PartsFound, WeightsFound
from lmart.distributed.shard_reading import (
    RowHashes,
    TrainingReader,
    ValidationReader,
    coded_rows,
    hash_parts,
    read_init_scores,
    read_weights,
)
from lmart.distributed.sums import (
    Counts,
    DrawnRows,
    MeasureSums,
    PackedRoot,
    PlannedSplit,
    QueriesFound,
    SplitsDone,
    measure_sums,
    weight_exponent,
)
from lmart.formats.read_options import ReadOptions
from lmart.gains import Gain
from lmart.kernels.scoring.score_spread import sum_query_squares
from lmart.kernels.trees.gradient_sampling import RowDraw
from lmart.kernels.trees.split_gain import Split
from lmart.memory import return_freed_memory
from lmart.scoring.ensemble import Ensemble
from lmart.settings.resolved import ResolvedSettings
from lmart.threads import WorkerPool
from lmart.training import objectives, tree_round
from lmart.training.grower import GrownTree
from lmart.training.grower.leaves import LocalLeaves, RowNarrowing
from lmart.training.grower.tree import run_by_size
from lmart.training.linear import add_bin_values
from lmart.training.objectives import Gradients, Objective
from lmart.training.resolving import source_named
from lmart.training.scores import LocalScores, LocalTrainingScores, LocalValidationScores, ModelView


class EdgeMagnitudes(NamedTuple):
    """Magnitudes by pieces of the whole data: those that lie in a shard, and the rows of those that reach beyond it.

    head, tail : Gradients of the rows before the first and after the last whole piece; a shard without a whole piece
                 has no tail
    inside     : sums of each whole piece
    """

    head: Gradients
    inside: list[tuple[float, float]]
    tail: Gradients


class Shard(LinkedActor):
    """Adjacent parts of the data and all that is known of their rows."""

    def __init__(self, run: str, threads: int) -> None:
        super().__init__()
        self._run, self._pool = run, WorkerPool(threads)
        self._valid: list[ValidationReader] = []
        self._kept: dict[int, Float64Array] = {}
        self._watched: list[LocalScores] = []

    def close(self) -> None:
        """End the threads."""
        self._below = ()
        self._pool.close()

    def __del__(self) -> None:
        self.close()

    def _check(self) -> None:
        check_run(self._run)

    # reading

    def first_pass(
        self, paths: Sequence[str], options: ReadOptions, seed: int, most_kept: int, absent: str | None
    ) -> PartsFound:
        """Read the training set, adjacent parts in order, once: see `TrainingReader.first_pass`."""
        self._parts = TrainingReader(paths, options, self._pool, self._check)
        found = self._parts.first_pass(seed, most_kept, absent)
        return_freed_memory()
        return found

    @property
    def _categories(self) -> CategoryRows:
        assert self._parts.categories is not None
        return self._parts.categories

    def prepare_categories(self, gain: Gain, seed: int, first_query: int) -> None:
        """Prepare for sums over queries: see `CategoryRows.prepare`."""
        self._categories.prepare(self._parts.labels, self._parts.query_offsets, gain, seed, first_query)

    def category_values(self, column: int, table: Float64Array | None) -> Float64Array:
        """Turn to a category, and return its distinct values: see `CategoryRows.values`."""
        return self._categories.values(column, table)

    def code_category(self, held: Float64Array) -> Counts:
        """Note the value of each row; return the rows of each, int64[n_values]."""
        return Counts(self._categories.code(held))

    def category_slopes(self, effects: Float64Array) -> Counts:
        """Return the sums of `add_category_slopes` over the queries."""
        self._check()
        return Counts(self._categories.slopes(effects, self._pool))

    def number_category(self, column: int, placed: PlacedCategory) -> None:
        """Note the numbers of the rows."""
        self._categories.number(column, placed)

    def sample(self, first_row: int, places: Int32Array, halvings: int) -> tuple[int, int]:
        """Choose the rows that bin edges are chosen from: see `TrainingReader.sample`."""
        self._first_row = first_row
        found = self._parts.sample(first_row, places, halvings)
        return_freed_memory()
        return found

    def counts(self, n_features: int) -> tuple[Int64Array, Int64Array]:
        """Return cells by feature: see `TrainingReader.counts`."""
        return self._parts.counts(n_features)

    def cells(self, first: int, last: int) -> Float64Array:
        """Return numbers of the features first..last - 1 in the sample: see `TrainingReader.cells`."""
        return self._parts.cells(first, last)

    def code(self, edges: BinEdges) -> Counts:
        """Find the bins of all rows, and return the documents in each, int64[n_bins]."""
        self._edges = edges
        return Counts(self._parts.code(edges))

    def lay_out(self, counts_of_all: Int64Array, min_documents: int, categories: Sequence[Categories]) -> None:
        """Lay out the rows for growing trees.

        counts_of_all : int64[n_bins], documents of all shards in each bin
        min_documents : fewest on each side of a split
        """
        return_freed_memory()
        binned = self._parts.lay_out(counts_of_all, min_documents)
        self._edges = with_unseen_bins(binned.edges, categories)
        self._binned = replace(binned, edges=self._edges)
        self._narrowing = RowNarrowing(self._binned)

    def first_places(self, number: int | None, codes: Sequence[int]) -> dict[str, tuple[str, int]]:
        """Return where queries with these hashes first stand, in the training set (None) or a validation set, by id."""
        return (self._parts if number is None else self._valid[number]).first_places(codes)

    def read_valid(self, paths: Sequence[str], options: ReadOptions, model: Ensemble) -> PartsFound:
        """Read the parts of one more validation set into bins, with the features of the model."""
        self._model = model
        self._valid.append(ValidationReader(paths, options, self._pool, self._check))
        return self._valid[-1].read(model, self._edges)

    # preparing

    def read_metadata(
        self, number: int | None, weights: Sequence[str] | None, init_scores: Sequence[str] | None
    ) -> WeightsFound:
        """Read the metadata of a set's parts; return what their weights are like.

        weights, init_scores : a file for each part; None: there are none
        """
        parts = self._parts if number is None else self._valid[number]
        starts = None if init_scores is None else read_init_scores(parts, init_scores)
        found, read = read_weights(parts, weights)
        if number is None:
            self._metadata: dict[int | None, Metadata] = {}
        self._metadata[number] = Metadata(read, starts)
        return found

    def hash_sets(self, values: Float64Array) -> list[list[RowHashes]]:
        """Return the hashes of each part of each set, the training set first: see `hash_parts`.

        values : float64[n_bins], a whole number below 2^30 for each bin; their sum stands for the bins of a row
        """
        codes = np.zeros(len(self._parts.labels))
        add_bin_values(values, self._binned, codes, self._pool)
        found = [hash_parts(self._parts, self._metadata[None], lambda start, stop: codes[start:stop])]
        for number, valid in enumerate(self._valid):
            found.append(hash_parts(valid, self._metadata[number], partial(coded_rows, valid.coded)))
        return found

    def prepare(self, settings: ResolvedSettings, exponents: Sequence[int]) -> tuple[list[int], bool]:
        """Prepare for the first round; return idle queries of each ranker, and whether any could learn anything."""
        parts, metadata = self._parts, self._metadata
        sets: list[tuple[Judged, Metadata]] = [(self._judged(), metadata[None])]
        sets += [(valid.coded, metadata[number]) for number, valid in enumerate(self._valid)]
        train_set, own = sets[0]
        with source_named(parts.source):
            self._objectives: list[Objective] = [
                objectives.prepare(train_set, ranker, self._pool, own.weights, None, self._first_row)
                for ranker in (*settings.rankers, *([settings.linear_ranker] if settings.linear else []))
            ]
        of_model = {} if parts.categories is None else bins_of_model(self._edges, parts.categories.of_model)
        view = ModelView(of_model, own.init_scores)
        self._training = LocalTrainingScores(train_set, self._binned, settings, self._pool, own, view)
        self._validation = [
            LocalValidationScores(valid.coded, self._model, self._edges, settings, self._pool, metadata[number])
            for number, valid in enumerate(self._valid)
        ]
        self._watched = [self._training, *self._validation]
        shares = [weight_exponent(of_set.weights) for _, of_set in sets]
        self._exponents = list(zip(shares, exponents, strict=True))
        of_trees = self._objectives[: len(settings.rankers)]
        idle = [objective.n_queries_without_pairs() for objective in of_trees]
        return idle, any(objective.can_learn() for objective in of_trees)

    def queries_found(self) -> list[QueriesFound]:
        """Return what each set is like, the training set first."""
        return [QueriesFound(scored.nothing_relevant, scored.nothing_counts) for scored in self._watched]

    def _judged(self) -> BinnedDataset:
        parts = self._parts
        return BinnedDataset(
            self._binned, np.zeros(0, np.int64), parts.labels, parts.query_offsets, source=parts.source
        )

    # scores and measures

    def measure(self, number: int, shift: int) -> dict[str, MeasureSums]:
        """Return the sums behind the measures of a set, the training set being 0; values are multiplied by 2^shift."""
        watched = self._watched[number]
        with source_named(watched.source):
            return measure_sums(watched, watched.evaluator, self._exponents[number], shift)

    def score_as_model(self, trees: Sequence[GrownTree]) -> None:
        """Set the scores of the training set to those of the model of these trees, if they are others."""
        self._training.score_as_model(trees)

    def restart(self, number: int) -> None:
        """Set the scores of a set to the initial scores."""
        self._watched[number].restart()

    def add(self, number: int, grown: GrownTree, shift: int | None) -> dict[str, MeasureSums] | None:
        """Add the leaf values of a tree to the scores of a set; with a shift, return the sums as `measure` does."""
        (self._training if number == 0 else self._validation[number - 1]).add(grown)
        return None if shift is None else self.measure(number, shift)

    def keep(self, number: int, copied: bool) -> None:
        """Keep the scores of the training set under a number."""
        scores = self._training.scores
        self._kept[number] = scores.copy() if copied else scores

    def put_back(self, number: int) -> None:
        """Set the scores of the training set to those that were kept."""
        self._training.scores = self._kept[number]

    def add_bin_values(self, values: Float64Array) -> None:
        """Set the scores of the training set to the initial scores and the values of its bins, float64[n_bins]."""
        self._training.restart()
        add_bin_values(values, self._binned, self._training.scores, self._pool)

    def squares(self, number: int, scale: float, before: float) -> float:
        """Return the squares of scores that were kept, added to those of the shards before: see `spread`."""
        return sum_query_squares(self._kept[number] * scale, self._parts.query_offsets, before)

    # a round

    def compute_sizes(self, ranker: int, round_number: int, n_documents: int) -> Float64Array:
        """Compute the gradients of a round; return sampling weights of every so many of the documents of all shards."""
        self._compute_gradients(ranker, round_number)
        return tree_round.some_sizes(self._gradients, self._first_row, n_documents)

    def draw(self, threshold: float, key: int) -> DrawnRows:
        """Draw the rows of a tree, after `compute_sizes`, with the threshold of `threshold_of`."""
        if threshold <= 0.0:
            return self._take_all()
        draw = RowDraw(threshold, np.uint64(key), self._first_row)
        self._sampled, self._unsampled = tree_round.draw_rows(self._gradients, draw, self._pool)
        return self._drawn()

    def draw_all(self, ranker: int, round_number: int) -> DrawnRows:
        """Compute the gradients of a round, whose tree is grown from all rows."""
        self._compute_gradients(ranker, round_number)
        return self._take_all()

    def _compute_gradients(self, ranker: int, round_number: int) -> None:
        self._check()
        self._gradients = self._objectives[ranker].compute_gradients(self._training.scores, round_number)

    def _take_all(self) -> DrawnRows:
        self._sampled = np.arange(len(self._gradients.gradients), dtype=np.int32)
        self._unsampled = np.empty(0, np.int32)
        return self._drawn()

    def _drawn(self) -> DrawnRows:
        magnitudes = tree_round.join_magnitudes(tree_round.sum_magnitudes(self._gradients, self._pool))
        return DrawnRows(len(self._sampled), magnitudes)

    def magnitudes_by_piece(self) -> EdgeMagnitudes:
        """Return the magnitudes by pieces of the whole data, such as one machine sums."""
        gradients, n, size = self._gradients, len(self._gradients.gradients), tree_round.CHUNK
        first = min(n, -self._first_row % size)
        last = first + (n - first) // size * size
        inside = Gradients(*(array[first:last] for array in gradients))
        head, tail = (Gradients(*(array[bound] for array in gradients)) for bound in (slice(first), slice(last, None)))
        return EdgeMagnitudes(head, tree_round.sum_magnitudes(inside, self._pool), tail)

    def pack(self, scales: tuple[float, float], allowed: BoolArray | None) -> PackedRoot:
        """Pack the gradients for a tree at these scales, the units that are 1; return its root."""
        pool, binned = self._pool, self._binned
        largest, packed = tree_round.pack(self._gradients, scales, pool)
        narrowed = None if allowed is None else self._narrowing.narrow(self._sampled, allowed, pool)
        self._leaves = LocalLeaves(binned, packed, self._sampled, self._unsampled, pool.threads, narrowed)
        del self._gradients
        histogram = np.empty(self._edges.n_bins, np.int64)
        return PackedRoot(largest, self._leaves.histogram(0, histogram, pool), histogram)

    # a tree

    def split(self, splits: Sequence[PlannedSplit]) -> SplitsDone:
        """Split leaves, and sum the histogram of a child of each where one is asked for."""
        n_summed = sum(split.summed is not None for split in splits)
        done = SplitsDone(
            np.empty((len(splits), 2), np.int64),
            np.empty(n_summed, np.int64),
            np.empty((n_summed, self._edges.n_bins), np.int64),
        )
        calls, n_before = [], 0
        for place, planned in enumerate(splits):
            calls.append((done, place, n_before, planned))
            n_before += planned.summed is not None
        run_by_size(self._split, calls, [self._leaves.n_documents(planned.leaf) for planned in splits], self._pool)
        return done

    def _split(self, done: SplitsDone, place: int, of_sums: int, planned: PlannedSplit, pool: WorkerPool) -> None:
        leaves = self._leaves
        leaves.split(planned.leaf, planned.left, planned.right, planned.split, pool)
        done.counts[place] = leaves.n_documents(planned.left), leaves.n_documents(planned.right)
        if planned.summed is not None:
            done.totals[of_sums] = leaves.histogram(planned.summed, done.histograms[of_sums], pool)

    def sum_leaves(self, leaves: Sequence[int]) -> SplitsDone:
        """Sum the histograms of leaves, without any split."""
        totals, histograms = np.empty(len(leaves), np.int64), np.empty((len(leaves), self._edges.n_bins), np.int64)
        for place, leaf in enumerate(leaves):
            totals[place] = self._leaves.histogram(leaf, histograms[place], self._pool)
        return SplitsDone(np.empty((0, 2), np.int64), totals, histograms)

    def count_children(self, splits: Sequence[tuple[int, Split]], enough: int) -> Counts:
        """Return the documents on each side of splits of leaves, counted until both are enough, int64[n_splits, 2]."""
        return Counts(np.array([self._leaves.count_children(leaf, split, enough) for leaf, split in splits], np.int64))

    def bin_counts(self, asked: Sequence[tuple[int, int]]) -> Counts:
        """Return, for each leaf and binned feature, the number of its documents in each bin, int64[n_asked, 256]."""
        return Counts(np.array(self._leaves.bin_counts(asked)))

    def finish_tree(self, leaves: Sequence[int], values: Float64Array) -> None:
        """Add the values, float64[n_leaves], of the leaves of the grown tree to the scores of the training set."""
        for partition in self._leaves.partitions:
            tree_round.add_values(partition, leaves, values, self._training.scores, self._pool)
        del self._leaves
