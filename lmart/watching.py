"""Data sets whose scores are kept up to date while trees are added, to be measured after each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from lmart.bin_edges import BinEdges
from lmart.binning import BinnedFeatures
from lmart.coding import CodedDataset
from lmart.dataset import Judged
from lmart.ensemble import Ensemble
from lmart.errors import DataError
from lmart.grower import GrownTree
from lmart.kernels.tree_walk import BinnedTree, walk_bins
from lmart.measures import Conventions, Evaluator, parse_measure
from lmart.rounds import CHUNK
from lmart.scoring import Scorer
from lmart.settings import TrainSettings
from lmart.threads import WorkerPool, chunks

Floats = npt.NDArray[np.float64]


@contextmanager
def naming(dataset: Judged) -> Iterator[None]:
    """Name the data set in a refusal that does not name its file yet."""
    try:
        yield
    except DataError as fault:
        if fault.path is None:
            raise DataError(fault.message, dataset.source, fault.line, fault.more) from None
        raise


class Watched:
    """A data set whose scores are kept up to date, to be measured after each round."""

    def __init__(
        self, dataset: Judged, settings: TrainSettings, pool: WorkerPool, init_scores: Floats | None = None
    ) -> None:
        conventions = Conventions(gain=settings.gain)
        self._measure = parse_measure(settings.metric, conventions)
        with naming(dataset):
            self._evaluator = Evaluator(dataset.labels, dataset.query_offsets, [self._measure], pool)
        self._dataset = dataset
        self.nothing_relevant = bool(self._evaluator.empty.all())
        self._start = np.zeros(len(dataset.labels)) if init_scores is None else init_scores
        self.restart()

    def restart(self, times: int = 1) -> None:
        """Begin again from so many times the initial scores."""
        self.scores = self._start * times

    def measure(self) -> float | None:
        with naming(self._dataset):
            return self._evaluator.evaluate(self.scores).values[str(self._measure)]


class Training(Watched):
    """The training set. While trees grow, its scores come from where its documents end up."""

    def __init__(
        self,
        dataset: Judged,
        binned: BinnedFeatures,
        settings: TrainSettings,
        pool: WorkerPool,
        init_scores: Floats | None,
    ) -> None:
        super().__init__(dataset, settings, pool, init_scores)
        self._binned, self._pool = binned, pool

    def add(self, grown: GrownTree) -> None:
        tree = _binned_tree(grown, self._binned.edges)
        pieces = chunks(len(self.scores), CHUNK)
        self._pool.run(walk_bins, [(self._binned.bins, tree, a, b, self.scores) for a, b in pieces])


class Validation(Watched):
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
        self._edges = edges
        self._pool = pool

    def add(self, grown: GrownTree) -> None:
        tree, coded = grown.tree, self._set
        exact = self.scores[coded.infinite_docs]
        binned_tree = _binned_tree(grown, self._edges)
        calls, start = [], 0
        for bins in coded.bins:
            n = bins.shape[1]
            calls.append((bins, binned_tree, 0, n, self.scores[start : start + n]))
            start += n
        self._pool.run(walk_bins, calls)
        if len(exact):
            one_tree = Scorer(replace(self._model, trees=(tree,)))
            self.scores[coded.infinite_docs] = exact + one_tree.score(coded.infinite, coded.columns, self._pool)


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
