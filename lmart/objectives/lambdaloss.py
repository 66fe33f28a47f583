"""lambdaloss: NDCG-Loss2++, which also counts how near two documents stand (Wang et al. 2018, LambdaLoss)."""

from __future__ import annotations

import numpy as np

from lmart.kernels.compiler import kernel
from lmart.objectives.base import Floats, Longs, Rows, Task
from lmart.objectives.pairs import PairObjective, inverse_ideal_dcg

MU = 10.0  # share of the part that goes by distance, as in the paper


class LambdaLoss(PairObjective):
    """A mixture of LambdaMART's weights and of NDCG-Loss2's; gains are divided by the ideal DCG at the truncation."""

    LARGEST_WEIGHT = 1.0 + MU

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self._inverse_ideal_dcg = inverse_ideal_dcg(task, self.discount, self.truncation)
        self._nearness = np.append(0.0, MU * (self.discount[:-1] - self.discount[1:]))

    def _weigh(self, order: Rows, ranks: tuple[int, int], queries: tuple[int, int], out: Floats) -> None:
        task = self.task
        fixed = (task.gains, self._inverse_ideal_dcg, task.query_weights, self.discount, self._nearness)
        weigh_pairs(*fixed, task.query_offsets, order, *ranks, *queries, out)


@kernel
def weigh_pairs(
    gains: Floats,
    inverse_ideal_dcg: Floats,
    query_weights: Floats,
    discount: Floats,
    nearness: Floats,
    query_offsets: Longs,
    order: Rows,
    first_rank: int,
    last_rank: int,
    first_query: int,
    last_query: int,
    out: Floats,
) -> None:
    """Write the weight of each pair, signed, as `add_weighted_pairs` takes it.

    discount : float64[>= longest query], D(r) = 1/log2(r + 2), in
    nearness : float64[>= longest query], mu (D(d - 1) - D(d)) for documents d ranks apart, in
    Equation: (|D(r_i) - D(r_j)| + mu |D(d - 1) - D(d)|) |g_i - g_j| / ideal DCG, d = |r_i - r_j|. Source: Wang et al.
    2018, section 4.3, NDCG-Loss2++. Differs: the logarithm is natural, the ideal DCG is that at the truncation.
    """
    largest = 0
    for q in range(first_query, last_query):
        largest = max(largest, query_offsets[q + 1] - query_offsets[q])
    worth = np.empty(largest, np.float64)
    base = query_offsets[first_query]
    for q in range(first_query, last_query):
        start = query_offsets[q]
        rows = order[start : query_offsets[q + 1]]
        n = len(rows)
        if query_weights[q] == 0.0 or n - 1 <= first_rank:
            continue
        for k in range(first_rank, n):
            worth[k] = gains[rows[k]] * inverse_ideal_dcg[q]
        at = (start - base) * (last_rank - first_rank)
        for rank in range(first_rank, min(last_rank, n - 1)):
            weights = out[at + (rank - first_rank) * n + rank + 1 : at + (rank - first_rank + 1) * n]
            lower_worth = worth[rank + 1 : n]
            lower_discount = discount[rank + 1 : n]
            apart = nearness[1 : n - rank]
            for k in range(len(weights)):
                importance = discount[rank] - lower_discount[k] + apart[k]
                weights[k] = (worth[rank] - lower_worth[k]) * importance


OBJECTIVE = LambdaLoss
