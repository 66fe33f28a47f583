"""What a training run returns."""

from __future__ import annotations

from dataclasses import dataclass, field

from lmart.array_types import Float64Array
from lmart.scoring.ensemble import Ensemble
from lmart.training.measured import OnAllSets, OnValidation


class Start(OnAllSets):
    """Measures of what boosting starts from alone."""


@dataclass(frozen=True)
class RankerSummary(OnValidation):
    """What a ranker is and how its training went.

    objective, tree : names of its objective and of the form of its trees
    trees    : how many of them are in the model, after those of the rankers before
    stopped  : 'trees' (its share of trees grown), 'early' (early stopping), 'split' (no split had a positive gain),
               'interrupted'
    """

    objective: str
    tree: str
    leaves: int
    features: float
    seed: int
    rounds: int
    trees: int
    stopped: str


@dataclass(frozen=True)
class LinearSummary(OnValidation):
    """What the linear ranker is.

    weight : in the mean; 0 where validation shows that it is clearly worse than the trees
    trees  : in the model, after all others: one for each feature that matters
    """

    weight: float
    trees: int


@dataclass(frozen=True)
class TrainResult(OnAllSets):
    """The result of a training run; the measures are those of the ensemble.

    ensemble         : the model: the mean of the rankers; with early stopping and a validation set, the trees of each
                       up to its best round
    n_trees          : trees of this run in the ensemble, without those of the linear ranker
    stopped          : 'interrupted'; else 'trees' (a ranker grew all of its trees), else 'early' (early stopping ended
                       one), else 'split' (no split had a positive gain)
    n_idle_queries   : training queries without a pair
    n_features_split : features with more than one bin
    sampling_rate    : share of the documents that each tree is grown from
    scores           : float64[n_documents], scores of the training set, initial scores included; empty on a cluster
    position_bias    : float64[n_positions] of the first ranker after its last tree in the ensemble; empty without
                       positions
    continued_from   : trees in the ensemble of the model that the run went on from; None: of none
    """

    ensemble: Ensemble
    n_trees: int
    rounds: int
    stopped: str
    n_idle_queries: int
    n_features_split: int
    sampling_rate: float
    rankers: tuple[RankerSummary, ...]
    linear: LinearSummary | None
    start: Start | None
    scores: Float64Array
    position_bias: Float64Array
    warnings: tuple[str, ...]
    seconds: dict[str, float] = field(compare=False)
    continued_from: int | None = None
