"""ranknet: every pair weighs the same (Burges et al. 2005, RankNet)."""

from __future__ import annotations

from lmart.kernels.compiler import kernel
from lmart.objectives.base import Floats, Longs, Rows
from lmart.objectives.pairs import PairObjective


@kernel
def weigh_pairs(
    gains: Floats,
    query_weights: Floats,
    query_offsets: Longs,
    order: Rows,
    first_rank: int,
    last_rank: int,
    first_query: int,
    last_query: int,
    out: Floats,
) -> None:
    """Write 1 for each pair of different gains, signed, as `add_weighted_pairs` takes it."""
    base = query_offsets[first_query]
    for q in range(first_query, last_query):
        start = query_offsets[q]
        rows = order[start : query_offsets[q + 1]]
        n = len(rows)
        if query_weights[q] == 0.0:
            continue
        at = (start - base) * (last_rank - first_rank)
        for rank in range(first_rank, min(last_rank, n - 1)):
            own = gains[rows[rank]]
            weights = out[at + (rank - first_rank) * n : at + (rank - first_rank + 1) * n]
            for lower in range(rank + 1, n):
                other = gains[rows[lower]]
                weights[lower] = 1.0 * (own > other) - 1.0 * (own < other)


class RankNet(PairObjective):
    """The number of pairs in the wrong order, made smooth; of gains only their order counts."""

    weigh_pairs = staticmethod(weigh_pairs)


OBJECTIVE = RankNet
