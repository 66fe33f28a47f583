"""lambdamart, lambdaloss, ranknet, map, mrr and err: costs that are weighted sums over pairs of documents.

The cost of a pair is weight x log(1 + exp(-sigma (s_i - s_j))), i the better document. The weight may depend on the
order of the documents, but is treated as a constant in the derivatives (Burges 2010, section 4). The weights of each
objective have their equation in kernels.pair_weights.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lmart.array_types import Float64Array
from lmart.gains import discount_table, stop_probabilities
from lmart.kernels.measures import query_measures
from lmart.kernels.ranking import ordering, pair_weights, pairs
from lmart.kernels.ranking.gradient_arrays import PairSettings, RankedQueries
from lmart.kernels.ranking.pair_weights import PairWeighting
from lmart.training.objectives.base import Gradients, Objective, Task

MU = 10.0  # lambdaloss: factor of the weight that depends on the rank distance, as in the paper


class PairObjective(Objective):
    """A weighted sum over pairs of which the upper document is above the truncation.

    The gradients of a query sum to exactly 0 unless rows have weights of their own.
    """

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self._settings = pair_settings(task, min(task.settings.truncation, task.longest))
        self._order = np.arange(len(task.gains), dtype=np.int32)
        self._weighting = WEIGHTINGS[task.settings.objective.name](task)
        self.relevance = self._weighting.relevance

    def _write(self, scores: Float64Array, round_number: int, out: Gradients) -> None:
        task, order, offsets = self.task, self._order, self.task.query_offsets
        task.pool.run(ordering.order_documents, [(scores, offsets, *queries, order) for queries in task.ranges])
        ranked = RankedQueries(scores, task.query_weights, offsets, order)
        task.pool.run(
            pairs.pair_gradients,
            [(ranked, self._weighting, self._settings, *queries, out) for queries in task.ranges],
        )


def _equal(task: Task, kind: int = pair_weights.EQUAL, relevance: Float64Array | None = None) -> PairWeighting:
    """ranknet: all pairs weigh 1 and of gains only the order counts. Others replace what differs."""
    return PairWeighting(
        kind=kind,
        relevance=task.gains if relevance is None else relevance,
        scale=np.ones(len(task.query_offsets) - 1),
        discount=discount_table(task.longest),
        by_distance=np.zeros(0),
        largest_weight=1.0,
    )


def _ndcg(task: Task) -> PairWeighting:
    """lambdamart: by the change of NDCG when the documents change places; the ideal DCG is that at the truncation."""
    plain = _equal(task, pair_weights.NDCG)
    return plain._replace(scale=_inverse(_ideal_dcg(task, plain.discount)))


def _ndcg_loss(task: Task) -> PairWeighting:
    """lambdaloss: NDCG-Loss2++, a mixture of the weights of lambdamart and of NDCG-Loss2 (Wang et al. 2018)."""
    plain = _ndcg(task)
    by_distance = np.append(0.0, MU * (plain.discount[:-1] - plain.discount[1:]))
    return plain._replace(kind=pair_weights.NDCG_LOSS, by_distance=by_distance, largest_weight=1.0 + MU)


def _average_precision(task: Task) -> PairWeighting:
    """map: by the change of average precision of the whole list."""
    plain = _equal(task, pair_weights.AVERAGE_PRECISION, _relevant(task))
    n_relevant = np.diff(np.append(0.0, np.cumsum(plain.relevance))[task.query_offsets])
    return plain._replace(scale=_inverse(n_relevant))


def _reciprocal_rank(task: Task) -> PairWeighting:
    """mrr: by the change of 1 / rank of the first relevant document."""
    return _equal(task, pair_weights.RECIPROCAL_RANK, _relevant(task))


def _expected_reciprocal_rank(task: Task) -> PairWeighting:
    """err: by the change of the mean of 1 / rank where a reader stops, who stops at a document by its label."""
    stops = stop_probabilities(task.labels, task.settings.largest_label)
    return _equal(task, pair_weights.EXPECTED_RECIPROCAL_RANK, stops)


def _relevant(task: Task) -> Float64Array:
    """Return 1 for each relevant document, else 0: relevant is a label above 0, as in the measures."""
    return np.asarray(task.labels > 0, np.float64)


def _ideal_dcg(task: Task, discount: Float64Array) -> Float64Array:
    """Return the ideal DCG of each query at the truncation."""
    ideal = np.empty(len(task.query_offsets) - 1)
    order = np.arange(len(task.gains), dtype=np.int32)
    gains, offsets = task.gains, task.query_offsets
    task.pool.run(ordering.order_documents, [(gains, offsets, *queries, order) for queries in task.ranges])
    best = query_measures.RankedDocuments(order, gains, gains, offsets)
    cutoff = max(1, min(task.settings.truncation, task.longest))
    task.pool.run(
        query_measures.discounted_sums, [(best, discount, *queries, cutoff, False, ideal) for queries in task.ranges]
    )
    return ideal


def _inverse(values: Float64Array) -> Float64Array:
    """Return 1 / value, and 0 for 0."""
    inverse: Float64Array = np.divide(1.0, values, out=np.zeros_like(values), where=values > 0)
    return inverse


WEIGHTINGS: dict[str, Callable[[Task], PairWeighting]] = {
    "lambdamart": _ndcg,
    "ranknet": _equal,
    "lambdaloss": _ndcg_loss,
    "map": _average_precision,
    "mrr": _reciprocal_rank,
    "err": _expected_reciprocal_rank,
}


def pair_settings(task: Task, truncation: int) -> PairSettings:
    """Return the settings of a pair's cost, each of the type that kernels are compiled for."""
    return PairSettings(int(truncation), float(task.settings.sigma), bool(task.settings.normalize))


OBJECTIVE = PairObjective
