"""What a feature is like, by going through queries document by document: the twin of the kernel and of its summary."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

Query = Sequence[tuple[float, Mapping[int, float]]]  # label and written cells of each document


class Facts(NamedTuple):
    """Of one feature: counts over documents, the range, queries where it varies, NDCG of ranking by it both ways."""

    zeros: int
    missing: int
    lowest: float
    highest: float
    varying: int
    high_first: float
    low_first: float


def ndcg(labels: Sequence[float], order: Sequence[int], cutoff: int) -> float:
    """NDCG@cutoff of documents in an order, 0 if no label is above 0."""

    def dcg(ranked: Sequence[float]) -> float:
        return math.fsum((2.0**label - 1) / math.log2(rank + 2) for rank, label in enumerate(ranked[:cutoff]))

    ideal = dcg(sorted(labels, reverse=True))
    return dcg([labels[i] for i in order]) / ideal if ideal > 0 else 0.0


def facts(queries: Sequence[Query], feature: int, cutoff: int = 10) -> Facts:
    """Return what a feature is like in some queries; a document without it has 0."""
    values = [[document.get(feature, 0.0) for _, document in query] for query in queries]
    everything = [value for query in values for value in query]
    present = [value for value in everything if not math.isnan(value)]
    ways = []
    for sign in (1, -1):
        total = 0.0
        for query, of_query in zip(queries, values, strict=True):
            keys = [-math.inf if math.isnan(value) else sign * value for value in of_query]
            order = sorted(range(len(keys)), key=lambda i: (-keys[i], i))
            total += ndcg([label for label, _ in query], order, cutoff)
        ways.append(total / len(queries))
    return Facts(
        sum(value == 0 for value in everything),
        sum(math.isnan(value) for value in everything),
        min(present, default=math.nan),
        max(present, default=math.nan),
        sum(len({"nan" if math.isnan(value) else value + 0.0 for value in query}) > 1 for query in values),
        *ways,
    )
