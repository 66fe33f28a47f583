"""Scores of a whole data set, for tests."""

from __future__ import annotations

from lmart.array_types import Float64Array
from lmart.dataset import RankingDataset
from lmart.ensemble import Ensemble
from lmart.scoring import FeatureMatcher, Scorer
from lmart.threads import WorkerPool


def score_dataset(ensemble: Ensemble, dataset: RankingDataset, pool: WorkerPool | None = None) -> Float64Array:
    """Return the score of each document, float64[n]. DataError when the data has features but none of the model's."""
    matcher = FeatureMatcher(ensemble)
    column_map = matcher.column_map(dataset.feature_ids, dataset.feature_names)
    matcher.refuse_foreign(dataset.source)
    return Scorer(ensemble).score(dataset.features, column_map, pool)
