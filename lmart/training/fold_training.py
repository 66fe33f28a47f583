"""The training of one fold of cross-validation: on all queries but those of the fold, which measure every round."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from lmart.array_types import Float64Array, Int32Array, Int64Array
from lmart.binning.binned_features import bin_dataset
from lmart.binning.validation_set import code_dataset
from lmart.data.dataset import RankingDataset, select_queries
from lmart.data.metadata import Metadata
from lmart.measures import Evaluator
from lmart.scoring.ensemble import Ensemble, Tree
from lmart.scoring.scorer import Scorer
from lmart.settings.resolved import ResolvedSettings, resolve
from lmart.threads import WorkerPool
from lmart.training.boosting import TrainingRun, without_trees
from lmart.training.rankers import RoundReport, ranker_weights, weighted


class FoldTraining:
    """The training of one fold: every tree that its rankers grew, and the held-out measure before and after each round.

    A round is one tree of every ranker; the measure is that of their mean.

    held_out  : int64[n_held_out], indices of the queries that are measured
    trees     : of each ranker, as grown
    start     : the measure before the first round; may_start : whether there are initial scores
    curve     : the measure after each round, nan when no query counts
    warnings  : about the data of the fold
    """

    def __init__(
        self,
        dataset: RankingDataset,
        metadata: Metadata,
        held_out: Int64Array,
        settings: ResolvedSettings,
        pool: WorkerPool,
    ) -> None:
        """Prepare to train on all queries but those held out.

        dataset  : all queries
        metadata : of all queries
        held_out : int64[n_held_out], indices of the queries that are measured
        settings : of the whole run; no fold stops early by itself
        pool     : the workers
        """
        seen = np.setdiff1d(np.arange(dataset.n_queries), held_out)
        self._seen, self._measured = (select_queries(dataset, queries) for queries in (seen, held_out))
        own, others = (metadata.of_queries(dataset.query_offsets, queries) for queries in (seen, held_out))
        facts = settings.facts._replace(n_documents=self._seen.n_documents)
        of_fold = resolve(replace(settings.recorded, early_stop=0), facts)
        given = of_fold.recorded
        binned = bin_dataset(self._seen, given.max_bins, given.absent, given.seed, pool)
        self.empty = without_trees(binned, given)
        coded = code_dataset(self._measured, self.empty, binned.features.edges, pool)
        self._runs = [
            TrainingRun(
                binned,
                [coded],
                replace(of_fold, rankers=(replace(ranker, trees=of_fold.rounds),)),
                pool,
                own,
                [others],
            )
            for ranker in of_fold.rankers
        ]
        first = self._runs[0]
        self._pool, self._measure = pool, str(settings.measure)
        fixed = (self._measured.labels, self._measured.query_offsets, [settings.measure], pool, others.weights)
        self._evaluator = Evaluator(*fixed, of_fold.largest_label)
        self.held_out = held_out
        self.warnings = list(first.warnings)
        if not any(run.can_learn for run in self._runs):
            with_weight = "" if metadata.weights is None else " with a weight above 0"
            what = f"no query{with_weight} has two documents of different relevance"
            self.warnings.append(f"nothing to learn from the other folds: {what}")
        self.trees: list[list[Tree]] = [[] for _ in self._runs]
        self.may_start = first.start is not None
        self.start = _number(first.measure_validation()[0])
        self._init_scores = np.zeros(len(self._measured.labels)) if others.init_scores is None else others.init_scores
        self.curve: list[float] = []
        self._rounds: list[Iterator[RoundReport]] = [run.rounds() for run in self._runs]

    def grow(self) -> RoundReport | None:
        """Grow one more tree of each ranker; return a report with the measure of their mean.

        None when no ranker has a split left, or all have all of their trees.
        """
        latest = None
        for trees, rounds in zip(self.trees, self._rounds, strict=True):
            report = next(rounds, None)
            if report is not None:
                trees.append(report.tree)
                latest = report
        if latest is None:
            return None
        if len(self._runs) > 1:
            runs = [run for run, trees in zip(self._runs, self.trees, strict=True) if trees]
            weights = self._weights([run.training_scores for run in runs])
            scores = sum(weight * run.validation_scores for weight, run in zip(weights, runs, strict=True))
            latest = replace(latest, round=len(self.curve) + 1, validation=(self._evaluate(np.asarray(scores)),))
        self.curve.append(_number(latest.validation[0]))
        return latest

    def forget(self) -> None:
        """Release the data in bins; no more trees can be grown."""
        self._rounds, self._runs = [], []

    def measure(self, rounds: int) -> float:
        """Return the measure after this number of rounds, or after all if there are fewer."""
        return [self.start, *self.curve][min(rounds, len(self.curve))]

    def best_round(self) -> int:
        """Return the round that is best for this fold, the first on ties; 0 when none was grown or none is better."""
        least = 0 if self.may_start or not self.curve else 1
        return least + int(np.argmax([self.start, *self.curve][least:]))

    def held_out_scores(self, rounds: int) -> Float64Array:
        """Return the scores of the fold's documents by the model of so many rounds, initial scores included.

        With several rankers, the measure of that round becomes the one of these scores, which differs by rounding.
        """
        kept = [trees[:rounds] for trees in self.trees if trees[:rounds]]
        columns = np.arange(self._seen.n_features, dtype=np.int32)
        if len(kept) > 1:
            weights = self._weights([self._score(trees, self._seen, columns) for trees in kept])
            kept = [[weighted(tree, w) for tree in trees] for trees, w in zip(kept, weights, strict=True)]
        scores = self._score([tree for trees in kept for tree in trees], self._measured, columns)
        scores += self._init_scores
        if len(kept) > 1:
            self.curve[min(rounds, len(self.curve)) - 1] = _number(self._evaluate(scores))
        return scores

    def _score(self, trees: list[Tree], dataset: RankingDataset, columns: Int32Array) -> Float64Array:
        ensemble: Ensemble = replace(self.empty, trees=tuple(trees))
        return Scorer(ensemble).score(dataset.features, columns, self._pool)

    def _weights(self, training_scores: list[Float64Array]) -> list[float]:
        return ranker_weights(training_scores, self._seen.query_offsets, self.may_start)

    def _evaluate(self, scores: Float64Array) -> float | None:
        return self._evaluator.evaluate(scores).values[self._measure]


def _number(measure: float | None) -> float:
    """Return the measure, nan for None."""
    return math.nan if measure is None else measure
