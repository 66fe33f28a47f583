"""err: each pair weighs what swapping it would change expected reciprocal rank (Chapelle et al. 2009; Burges 2010)."""

from __future__ import annotations

import numpy as np

from lmart.gains import stop_probabilities
from lmart.kernels.compiler import kernel
from lmart.objectives.base import Floats, Longs, Rows, Task
from lmart.objectives.pairs import PairObjective


@kernel
def weigh_pairs(
    stops: Floats,
    query_weights: Floats,
    query_offsets: Longs,
    order: Rows,
    first_rank: int,
    last_rank: int,
    first_query: int,
    last_query: int,
    out: Floats,
) -> None:
    """Write what swapping two documents would change expected reciprocal rank, as `add_weighted_pairs` takes it.

    stops : float64[n], probability of stopping at a document, in
    Equation: with ranks a < b from 1, R(r) the stops and Q(r, t) the product of 1 - R strictly between r and t:
    Q(0, a) (R(a) - R(b)) (1/a - sum over r between a and b of Q(a, r) R(r) / r - Q(a, b) / b). Source: from the
    definition, by dropping what both orders share. Cost: O(1) a pair, as the sum and the product grow with b.
    """
    largest = 0
    for q in range(first_query, last_query):
        largest = max(largest, query_offsets[q + 1] - query_offsets[q])
    scratch = np.empty((3, largest), np.float64)
    by_rank = scratch[0]
    reach = scratch[1]
    place = scratch[2]
    for k in range(largest):
        place[k] = 1.0 / (k + 1.0)
    base = query_offsets[first_query]
    for q in range(first_query, last_query):
        start = query_offsets[q]
        rows = order[start : query_offsets[q + 1]]
        n = len(rows)
        if query_weights[q] == 0.0 or n - 1 <= first_rank:
            continue
        reached = 1.0
        for k in range(n):
            by_rank[k] = stops[rows[k]]
            reach[k] = reached
            reached *= 1.0 - by_rank[k]
        at = (start - base) * (last_rank - first_rank)
        for rank in range(first_rank, min(last_rank, n - 1)):
            weights = out[at + (rank - first_rank) * n : at + (rank - first_rank + 1) * n]
            own = by_rank[rank]
            lost = place[rank]  # 1/a less the sum
            through = 1.0
            for lower in range(rank + 1, n):
                other = by_rank[lower]
                passed = through * place[lower]
                weights[lower] = reach[rank] * (own - other) * (lost - passed)
                lost -= passed * other
                through *= 1.0 - other


class ExpectedReciprocalRank(PairObjective):
    """The mean of 1 / rank where a reader stops, who stops at a document by its label, whatever its gain.

    The largest label is that of the settings, which is one for all parts of the data; without, that of these documents.
    """

    weigh_pairs = staticmethod(weigh_pairs)

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.worths = stop_probabilities(task.labels, task.settings.largest_label)


OBJECTIVE = ExpectedReciprocalRank
