"""map: each pair weighs what swapping it would change average precision (Burges 2010, with that measure)."""

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
    """Write what swapping two documents would change average precision, signed, as `add_weighted_pairs` takes it.

    relevant : float64[n], 1 or 0, in
    Equation: with ranks a < b from 1, y relevant or not, m(r) = y_1 + ... + y_r, S(r) the sum of y_k / k up to r, and R
    relevant documents: (y_a - y_b) ((m(a) + 1 - y_a) / a - S(a) + S(b - 1) - m(b) / b) / R. Source: from the definition
    of average precision; the same as XGBoost's rank:map. Cost: O(1) a pair.
    """
    largest = 0
    for q in range(first_query, last_query):
        largest = max(largest, query_offsets[q + 1] - query_offsets[q])
    scratch = np.empty((3, largest), np.float64)
    base = query_offsets[first_query]
    for q in range(first_query, last_query):
        start = query_offsets[q]
        rows = order[start : query_offsets[q + 1]]
        n = len(rows)
        if query_weights[q] == 0.0 or n - 1 <= first_rank:
            continue
        by_rank = scratch[0]
        as_upper = scratch[1]
        as_lower = scratch[2]
        found = 0.0
        total = 0.0
        for k in range(n):
            here = relevant[rows[k]]
            place = 1.0 / (k + 1.0)
            by_rank[k] = here
            as_lower[k] = total - (found + here) * place
            found += here
            total += here * place
            as_upper[k] = (found + 1.0 - here) * place - total
        share = 1.0 / found if found > 0.0 else 0.0
        at = (start - base) * (last_rank - first_rank)
        for rank in range(first_rank, min(last_rank, n - 1)):
            weights = out[at + (rank - first_rank) * n + rank + 1 : at + (rank - first_rank + 1) * n]
            lower_by_rank = by_rank[rank + 1 : n]
            lower_part = as_lower[rank + 1 : n]
            for k in range(len(weights)):
                weights[k] = (by_rank[rank] - lower_by_rank[k]) * ((as_upper[rank] + lower_part[k]) * share)


class AveragePrecision(PairObjective):
    """Average precision of the whole list; a document is relevant when its label is above 0, whatever its gain."""

    weigh_pairs = staticmethod(weigh_pairs)

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.worths = relevance(task)


OBJECTIVE = AveragePrecision
