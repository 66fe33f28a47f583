"""Training and validation sets whose scores are updated with each tree, so that each round can be measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from lmart.binning.binned_features import BinnedFeatures
from lmart.binning.edges import BinEdges
from lmart.binning.validation_set import CodedDataset
from lmart.data.dataset import Judged
from lmart.data.metadata import NO_SIDECARS, Sidecars
from lmart.errors import DataError
from lmart.gains import SMALLEST_GRADE_SCALE, grade_scale, refuse_labels_above
from lmart.kernels.tree_walk import BinnedTree, walk_bins
from lmart.measures import Conventions, Evaluator, parse_measure
from lmart.scoring.ensemble import Ensemble
from lmart.scoring.scorer import Scorer
from lmart.settings import TrainSettings
from lmart.threads import WorkerPool, chunks
from lmart.training.grower import GrownTree
from lmart.training.tree_round import CHUNK


@contextmanager
def naming(source: str) -> Iterator[None]:
    """Add the source of the data to a DataError that names no file."""
    try:
        yield
    except DataError as fault:
        if fault.path is None:
            raise DataError(fault.message, source, fault.line, fault.more) from None
        raise


def uses_label_scale(settings: TrainSettings) -> bool:
    """Return whether the measure or the objective is err, whose stopping probabilities need the largest label."""
    return parse_measure(settings.metric).kind.parameter == "largest label" or "err" in settings.objectives


def with_label_scale(settings: TrainSettings, datasets: Sequence[Judged]) -> TrainSettings:
    """Return the settings with one largest label for all these data sets, if err is used and it is not 4.

    A largest label given in the measure, as in err@10(max=5), holds for the objective too. DataError when a label is
    above the number given.
    """
    if not uses_label_scale(settings):
        return replace(settings, largest_label=None)
    given = parse_measure(settings.metric).largest_label or settings.largest_label
    if given is not None:
        for one in datasets:
            with naming(one.source):
                refuse_labels_above(one.labels, given, one.input_rows)
        return replace(settings, largest_label=given)
    largest = max(grade_scale(one.labels) for one in datasets)
    return settings if largest == SMALLEST_GRADE_SCALE else replace(settings, largest_label=largest)


class Watched:
    """A data set whose scores are updated with each tree, and its measure."""

    def __init__(
        self, dataset: Judged, settings: TrainSettings, pool: WorkerPool, sidecars: Sidecars = NO_SIDECARS
    ) -> None:
        """Start from the initial scores of `sidecars`; measures are weighted by its weights."""
        conventions = Conventions(gain=settings.gain)
        self._measure = parse_measure(settings.metric, conventions)
        with naming(dataset.source):
            self._evaluator = Evaluator(
                dataset.labels,
                dataset.query_offsets,
                [self._measure],
                pool,
                sidecars.weights,
                settings.largest_label,
            )
        init_scores = sidecars.init_scores
        self._source = dataset.source
        empty, weights = self._evaluator.empty, self._evaluator.weights
        self.nothing_relevant = bool(empty.all())
        self.nothing_counts = weights is not None and not weights[~empty].any()
        self._start = np.zeros(len(dataset.labels)) if init_scores is None else init_scores
        self.restart()

    def restart(self, times: int = 1) -> None:
        """Set the scores to `times` the initial scores."""
        self.scores = self._start * times

    def measure(self) -> float | None:
        with naming(self._source):
            return self._evaluator.evaluate(self.scores).values[str(self._measure)]


class Training(Watched):
    """The training set. Growing a tree updates its scores from the leaf of each document; `add` is needed only to
    rebuild them.
    """

    def __init__(
        self,
        dataset: Judged,
        binned: BinnedFeatures,
        settings: TrainSettings,
        pool: WorkerPool,
        sidecars: Sidecars,
    ) -> None:
        super().__init__(dataset, settings, pool, sidecars)
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
        sidecars: Sidecars = NO_SIDECARS,
    ) -> None:
        super().__init__(dataset, settings, pool, sidecars)
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
