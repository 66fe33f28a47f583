"""Scores of a whole data set, for tests."""

from __future__ import annotations

from lmart.array_types import Float64Array
from lmart.dataset import RankingDataset
from lmart.ensemble import Ensemble
from lmart.scoring import Scorer, match_dataset
from lmart.threads import WorkerPool


def score_dataset(ensemble: Ensemble, dataset: RankingDataset, pool: WorkerPool | None = None) -> Float64Array:
    """Return the score of each document, float64[n]. DataError when the data has features but none of the model's."""
    matcher = match_dataset(ensemble, dataset)
    matcher.refuse(dataset.source)
    return Scorer(ensemble).score(dataset.features, matcher.known_columns, pool)
