"""mrr: each pair weighs what swapping it would change the reciprocal rank (Burges 2010, with that measure)."""

from __future__ import annotations

import numpy as np

from lmart.kernels.compiler import kernel
from lmart.objectives.base import Floats, Longs, Rows, Task
from lmart.objectives.pairs import PairObjective, relevance


@kernel
def weigh_pairs(
    relevant: Floats,
    query_weights: Floats,
    query_offsets: Longs,
    order: Rows,
    first_rank: int,
    last_rank: int,
    first_query: int,
    last_query: int,
    out: Floats,
) -> None:
    """Write what swapping two documents would change the reciprocal rank, signed, as `add_weighted_pairs` takes it.

    relevant : float64[n], 1 or 0, in
    Equation: with ranks a < b from 1, f that of the first relevant document and s of the second, if any: for a < f and
    b relevant 1/f - 1/a; for a = f and b not relevant 1/f - 1/min(b, s); else 0. Source: from the definition.
    """
    largest = 0
    for q in range(first_query, last_query):
        largest = max(largest, query_offsets[q + 1] - query_offsets[q])
    by_rank = np.empty(largest, np.float64)
    base = query_offsets[first_query]
    for q in range(first_query, last_query):
        start = query_offsets[q]
        rows = order[start : query_offsets[q + 1]]
        n = len(rows)
        if query_weights[q] == 0.0 or n - 1 <= first_rank:
            continue
        first = n
        second = n
        for k in range(n - 1, -1, -1):
            by_rank[k] = relevant[rows[k]]
            if by_rank[k] > 0.0:
                second = first
                first = k
        at = (start - base) * (last_rank - first_rank)
        for rank in range(first_rank, min(last_rank, n - 1)):
            weights = out[at + (rank - first_rank) * n + rank + 1 : at + (rank - first_rank + 1) * n]
            lower_by_rank = by_rank[rank + 1 : n]
            before = 1.0 / (first + 1.0)
            if rank < first:
                change = before - 1.0 / (rank + 1.0)
                for k in range(len(weights)):
                    weights[k] = change * lower_by_rank[k]
            elif rank == first:
                for k in range(len(weights)):
                    after = 1.0 / (min(rank + 1 + k, second) + 1.0)
                    weights[k] = (before - after) * (1.0 - lower_by_rank[k])
            else:
                for k in range(len(weights)):
                    weights[k] = 0.0


class ReciprocalRank(PairObjective):
    """1 / rank of the first relevant document; a document is relevant when its label is above 0, whatever its gain."""

    weigh_pairs = staticmethod(weigh_pairs)

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.worths = relevance(task)


OBJECTIVE = ReciprocalRank
