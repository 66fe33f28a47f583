"""ranknet: every pair weighs the same (Burges et al. 2005, RankNet)."""

from __future__ import annotations

from lmart.kernels.pair_weights import equal_weights
from lmart.objectives.pairs import PairObjective


class RankNet(PairObjective):
    """The number of pairs in the wrong order, made smooth; of gains only their order counts."""

    weigh_pairs = staticmethod(equal_weights)


OBJECTIVE = RankNet
