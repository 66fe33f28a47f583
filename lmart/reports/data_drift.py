"""How the distributions of two files of data differ: features, labels, sizes of queries, and ids in common."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lmart.array_types import Int64Array
from lmart.reports.data_summary import DataSummary, SampledValues

ALPHA = 0.01  # probability that any of the features exceeds its critical distance by chance


@dataclass(frozen=True)
class Drift:
    """How far two distributions are apart.

    name     : of the feature, or "label", or "query size"
    distance : the two-sample Kolmogorov-Smirnov statistic: the largest difference of the shares up to a value
    critical : what chance rarely exceeds, were all documents drawn by themselves from one distribution
    """

    name: str
    distance: float
    critical: float

    @property
    def is_clear(self) -> bool:
        """Whether chance would rarely make the distance as large."""
        return self.distance > self.critical


@dataclass(frozen=True)
class DataDrift:
    """What differs between two files of data.

    features : those that both have, the largest distance first
    labels, query_sizes : None when one of the files has none
    missing, extra : features that only the first and only the second file has
    common_queries : ids of queries that both have
    """

    features: Sequence[Drift]
    labels: Drift | None
    query_sizes: Drift | None
    missing: Sequence[str]
    extra: Sequence[str]
    common_queries: Sequence[str]

    def to_json(self) -> dict[str, Any]:
        """Return the content of `drift` in `lmart show DATA OTHER --json`."""
        return {
            "features": [_to_json(drift) for drift in self.features],
            "labels": _to_json(self.labels),
            "query_sizes": _to_json(self.query_sizes),
            "only_first": list(self.missing),
            "only_other": list(self.extra),
            "common_queries": len(self.common_queries),
        }


def _to_json(drift: Drift | None) -> dict[str, Any] | None:
    return None if drift is None else {"name": drift.name, "ks": drift.distance, "critical": drift.critical}


def compare_data(first: DataSummary, other: DataSummary) -> DataDrift:
    """Return what differs between two files of data. Features are those of the same name."""
    of_first, of_other = ({facts.name: facts.sampled for facts in data.features} for data in (first, other))
    common = [name for name in of_first if name in of_other]
    features = [_feature_drift(name, of_first[name], of_other[name], len(common)) for name in common]
    features.sort(key=lambda drift: -drift.distance)
    queries = set(first.query_ids or ())
    return DataDrift(
        features,
        _label_drift(first.labels, other.labels),
        _size_drift(first.query_sizes, other.query_sizes),
        [name for name in of_first if name not in of_other],
        [name for name in of_other if name not in of_first],
        [query for query in other.query_ids or () if query in queries],
    )


def _feature_drift(name: str, first: SampledValues, other: SampledValues, n_features: int) -> Drift:
    if not len(first) or not len(other):
        return Drift(name, 0.0, math.inf)
    values = np.unique(np.concatenate([[-np.inf, 0.0], first.numbers, other.numbers]))
    differences = first.shares_up_to(values) - other.shares_up_to(values)
    return Drift(name, float(np.abs(differences).max()), _critical(len(first), len(other), n_features))


def _label_drift(first: Mapping[float, int] | None, other: Mapping[float, int] | None) -> Drift | None:
    if not first or not other:
        return None
    values = sorted({*first, *other})
    shares = [np.cumsum([counts.get(value, 0) for value in values]) / sum(counts.values()) for counts in (first, other)]
    critical = _critical(sum(first.values()), sum(other.values()))
    return Drift("label", float(np.abs(shares[0] - shares[1]).max()), critical)


def _size_drift(first: Int64Array, other: Int64Array) -> Drift | None:
    if not len(first) or not len(other):
        return None
    values = np.unique(np.concatenate([first, other]))
    shares = [np.searchsorted(np.sort(sizes), values, "right") / len(sizes) for sizes in (first, other)]
    return Drift("query size", float(np.abs(shares[0] - shares[1]).max()), _critical(len(first), len(other)))


def _critical(n: int, m: int, n_tests: int = 1) -> float:
    """Return the critical distance of samples of n and m (Smirnov's limit), by Bonferroni for several tests."""
    return math.sqrt(-math.log(ALPHA / n_tests / 2) / 2 * (n + m) / (n * m))
