"""Training and validation sets whose scores are updated with each tree, so that each round can be measured."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

import numpy as np

from lmart.array_types import Float64Array, Int64Array, UInt8Array
from lmart.binning.binned_features import BinnedFeatures
from lmart.binning.edges import BinEdges
from lmart.binning.validation_set import CodedDataset
from lmart.data.dataset import Judged
from lmart.data.metadata import NO_METADATA, Metadata
from lmart.kernels.scoring.score_spread import sum_query_squares
from lmart.kernels.scoring.tree_walk import BinnedTree, walk_bins
from lmart.kernels.trees.row_bins import RowBins, walk_row_bins
from lmart.measures import Evaluator
from lmart.measures.judgments import Judgments
from lmart.scoring.ensemble import Ensemble
from lmart.scoring.scorer import Scorer
from lmart.settings.resolved import ResolvedSettings
from lmart.threads import WorkerPool, chunks
from lmart.training.grower import GrownTree
from lmart.training.measured import Measures
from lmart.training.resolving import source_named
from lmart.training.tree_round import CHUNK

SPREAD_SCALES = (1.0, 2.0**-520, 2.0**520)  # at the first of them where squares are numbers, scores are compared

KeptScores = Float64Array | int
"""Scores of a training set that were kept: float64[n_documents], or their number where the set is elsewhere."""


class MeasuredScores(Protocol):
    """A data set whose scores are updated with each tree, and its measures."""

    def restart(self) -> None:
        """Set the scores to the initial scores."""
        ...

    def add(self, grown: GrownTree) -> None:
        """Add the leaf values of a tree to the scores of its documents."""
        ...

    def measure(self) -> Measures:
        """Return the measures of the data set at its current scores."""
        ...


class TrainingScores(MeasuredScores, Protocol):
    """The training set: it keeps the scores of each ranker, which decide on the weights of their mean."""

    def keep(self, number: int, copied: bool) -> KeptScores:
        """Return the current scores, for `put_back` and `spreads`; those that this ranker kept are no longer needed.

        copied : return a copy; else the scores may change when the next tree is added
        """
        ...

    def put_back(self, kept: KeptScores) -> None:
        """Set the scores to those that were kept."""
        ...

    def spreads(self, kept: Sequence[KeptScores]) -> list[float]:
        """Return how far scores kept of each ranker are apart within queries."""
        ...


class LocalScores:
    """A data set whose scores are updated with each tree, and its measures."""

    def __init__(
        self, dataset: Judged, settings: ResolvedSettings, pool: WorkerPool, metadata: Metadata = NO_METADATA
    ) -> None:
        """Start from the initial scores of `metadata`; measures are weighted by its weights."""
        with source_named(dataset.source):
            self.evaluator = Evaluator(
                Judgments(dataset.labels, dataset.query_offsets),
                settings.measures,
                pool,
                metadata.weights,
                settings.largest_label,
            )
        init_scores = metadata.init_scores
        self.source = dataset.source
        empty, weights = self.evaluator.empty, self.evaluator.weights
        self.nothing_relevant = bool(empty.all())
        self.nothing_counts = weights is not None and not weights[~empty].any()
        self._start = np.zeros(len(dataset.labels)) if init_scores is None else init_scores
        self.restart()

    def restart(self) -> None:
        """Set the scores to the initial scores."""
        self.scores = self._start.copy()

    def measure(self) -> Measures:
        """Return the measures of the data set at its current scores."""
        with source_named(self.source):
            return self.evaluator.evaluate(self.scores).values


class ModelView(NamedTuple):
    """How the model sees a training set whose categories have other bins in training.

    bins  : by feature in bins, uint8[n_documents]; as in BinnedDataset
    start : float64[n_documents], the initial scores, with those of a model to go on from; None: 0
    """

    bins: Mapping[int, UInt8Array]
    start: Float64Array | None


class LocalTrainingScores(LocalScores):
    """The training set.

    Growing a tree updates its scores from the leaf of each document; `add` is needed only to rebuild them.
    """

    def __init__(
        self,
        dataset: Judged,
        binned: BinnedFeatures,
        settings: ResolvedSettings,
        pool: WorkerPool,
        metadata: Metadata,
        as_model: ModelView | None = None,
    ) -> None:
        """Start from the initial scores; `as_model` None: the model sees the documents as trees are grown from them."""
        super().__init__(dataset, settings, pool, metadata)
        self._binned, self._pool, self._as_model = binned, pool, as_model
        self._query_offsets = dataset.query_offsets

    def keep(self, number: int, copied: bool) -> KeptScores:
        """Return the current scores, float64[n_documents]."""
        return self.scores.copy() if copied else self.scores

    def put_back(self, kept: KeptScores) -> None:
        """Set the scores to those that were kept."""
        assert not isinstance(kept, int)
        self.scores = kept

    def spreads(self, kept: Sequence[KeptScores]) -> list[float]:
        """Return how far scores are apart within queries, as `spread`."""
        return [spread(scores, self._query_offsets) for scores in kept if not isinstance(scores, int)]

    def add(self, grown: GrownTree) -> None:
        """Add the leaf values of a tree to the scores of its documents."""
        binned, pieces = self._binned, chunks(len(self.scores), CHUNK)
        edges, tree = binned.edges, _binned_tree(grown, binned.edges)
        if edges.in_rows.any():
            rows = RowBins(binned.row_offsets, binned.other_bins, edges.bin_offsets, binned.most_frequent_bins)
            self._pool.run(walk_row_bins, [(rows, tree, a, b, self.scores) for a, b in pieces])
        else:
            self._pool.run(walk_bins, [(binned.bins, tree, a, b, self.scores) for a, b in pieces])

    def score_as_model(self, trees: Sequence[GrownTree]) -> None:
        """Set the scores to those by these trees, with the bins that the model gives the documents."""
        view, binned = self._as_model, self._binned
        if view is None or not view.bins:
            return
        self.scores = np.zeros(len(self.scores)) if view.start is None else view.start.copy()
        rows, pieces = np.arange(len(self.scores), dtype=np.int32), chunks(len(self.scores), CHUNK)
        for grown in trees:
            features, places = np.unique(grown.split_features, return_inverse=True)
            bins = np.empty((len(features), len(rows)), np.uint8)
            for place, feature in enumerate(features.tolist()):
                of_model = view.bins.get(feature)
                bins[place] = binned.bins_of_rows(feature, rows, self._pool) if of_model is None else of_model
            tree = _binned_tree(grown, binned.edges)._replace(
                split_features=places.astype(np.int32), missing_bins=binned.edges.missing_bins[features]
            )
            self._pool.run(walk_bins, [(bins, tree, a, b, self.scores) for a, b in pieces])


class LocalValidationScores(LocalScores):
    """A validation set in the training set's bins."""

    def __init__(
        self,
        dataset: CodedDataset,
        model: Ensemble,
        edges: BinEdges,
        settings: ResolvedSettings,
        pool: WorkerPool,
        metadata: Metadata = NO_METADATA,
    ) -> None:
        super().__init__(dataset, settings, pool, metadata)
        self._model = model
        self.warnings = list(dataset.warnings)
        if self.nothing_relevant:
            self.warnings.append(f"{dataset.source}: no query has a relevant document, so every measure of it is 0")
        elif self.nothing_counts:
            what = f"{dataset.source}: no query with a weight above 0 has a relevant document"
            self.warnings.append(f"{what}, so every measure of it is 0")
        self._set = dataset
        self._edges = edges
        self._pool = pool

    def add(self, grown: GrownTree) -> None:
        """Add the leaf values of a tree to the scores of its documents."""
        tree, coded = grown.tree, self._set
        exact = self.scores[coded.infinite_docs]
        binned_tree = _binned_tree(grown, self._edges)
        calls, start = [], 0
        for bins in coded.bins:
            n = bins.shape[1]
            calls.append((bins, binned_tree, 0, n, self.scores[start : start + n]))
            start += n
        self._pool.run(walk_bins, calls)
        if coded.rows is not None:
            rows = RowBins(*coded.rows, self._edges.code_starts, self._edges.absent_bins)
            pieces = chunks(len(self.scores), CHUNK)
            self._pool.run(walk_row_bins, [(rows, binned_tree, a, b, self.scores) for a, b in pieces])
        if len(exact):
            one_tree = Scorer(replace(self._model, trees=(tree,)))
            self.scores[coded.infinite_docs] = exact + one_tree.score(coded.infinite, coded.columns, self._pool)


def spread(scores: Float64Array, query_offsets: Int64Array) -> float:
    """Return the spread of scores, 0 when all of a query are equal; scaled where their squares are no numbers."""
    for scale in SPREAD_SCALES:
        if found := spread_of_squares(sum_query_squares(scores * scale, query_offsets, 0.0), scale):
            return found
    return 0.0


def spread_of_squares(squares: float, scale: float) -> float:
    """Return the spread of scores, from the sum of squares of scores times `scale`; 0 when another is needed."""
    return math.sqrt(squares) / scale if 0.0 < squares < math.inf else 0.0


def _binned_tree(grown: GrownTree, edges: BinEdges) -> BinnedTree:
    """Return a tree as `walk_bins` takes it."""
    tree = grown.tree
    return BinnedTree(
        grown.split_features,
        grown.split_bins,
        edges.missing_bins,
        tree.missing_left,
        tree.left,
        tree.right,
        tree.leaf_values,
    )
