"""Measures of one query, from the definitions.

Each takes a value of each doc in ranked order, best first, such as its gain; `measure_of_query`, documents.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, permutations, product
from math import floor, fsum, log, log2, sqrt
from typing import NamedTuple


def ranked_rows(scores: Sequence[float]) -> list[int]:
    """Rows by score descending, equal scores by row ascending."""
    return sorted(range(len(scores)), key=lambda row: (-scores[row], row))


def tied_orders(scores: Sequence[float]) -> list[list[int]]:
    """Every order of the rows in which no higher score stands below a lower score."""
    levels = sorted(set(scores), reverse=True)
    groups = [[row for row in range(len(scores)) if scores[row] == level] for level in levels]
    choices = product(*(permutations(group) for group in groups))
    return [[row for group in choice for row in group] for choice in choices]


def over_tied_orders(
    measure: Callable[..., float], scores: Sequence[float], values: Sequence[float], *rest: object
) -> float:
    """Mean of a measure over all orders of the tied documents."""
    orders = tied_orders(scores)
    return fsum(measure([values[row] for row in order], *rest) for order in orders) / len(orders)


def discounted_sums(values: Sequence[float], cutoff: int, discount: Callable[[int], float]) -> float:
    """Sum of value x discount(0-based rank)."""
    return fsum(value * discount(rank) for rank, value in enumerate(values[:cutoff]))


def precision_sums(relevant: Sequence[float], cutoff: int) -> float:
    """Sum of the precision at each relevant doc."""
    return fsum(sum(relevant[: rank + 1]) / (rank + 1) for rank in range(min(cutoff, len(relevant))) if relevant[rank])


def average_precision(relevant: Sequence[float], cutoff: int) -> float:
    """Mean of the precision at each relevant doc."""
    return precision_sums(relevant, cutoff) / max(sum(relevant), 1)


def first_relevant_values(relevant: Sequence[float], cutoff: int, divisor: Callable[[int], float]) -> float:
    """1 / divisor(0-based rank) of the first relevant doc."""
    return next((1 / divisor(rank) for rank, hit in enumerate(relevant[:cutoff]) if hit), 0.0)


def reciprocal_ranks(relevant: Sequence[float], cutoff: int) -> float:
    """1 / rank of the first relevant doc."""
    return first_relevant_values(relevant, cutoff, lambda rank: rank + 1)


def interpolated_precisions(relevant: Sequence[float], n_needed: float) -> float:
    """Largest precision at a rank down to which enough relevant docs stand."""
    hits = [sum(relevant[: rank + 1]) for rank in range(len(relevant))]
    return max((n / (rank + 1) for rank, n in enumerate(hits) if n >= n_needed), default=0.0)


def ordered_pairs(scores: Sequence[float], relevant: Sequence[bool]) -> float:
    """Pairs of a relevant and another doc of which the relevant one has the higher score; a half for equal scores."""
    total = 0.0
    for i, j in product(range(len(scores)), repeat=2):
        if relevant[i] and not relevant[j]:
            total += 1.0 if scores[i] > scores[j] else 0.5 if scores[i] == scores[j] else 0.0
    return total


def expected_reciprocal_ranks(stops: Sequence[float], cutoff: int) -> float:
    """Expected 1 / rank of the document at which the reader stops."""
    total, reach = 0.0, 1.0
    for rank, stop in enumerate(stops[:cutoff]):
        total += reach * stop / (rank + 1)
        reach *= 1 - stop
    return total


def preference_sums(preferences: Sequence[float], n_relevant: float, n_others: float) -> float:
    """Sum of bpref: 1 for relevant, 0 for judged otherwise, -1 for unjudged documents."""
    total = 0.0
    for rank, preference in enumerate(preferences):
        if preference == 1:
            above = sum(1 for other in preferences[:rank] if other == 0)
            total += 1 - (min(above, n_relevant) / min(n_relevant, n_others) if n_others else 0)
    return total


def rank_correlation(scores: Sequence[float], labels: Sequence[float]) -> float | None:
    """Kendall's tau-b, pair by pair; None when all labels are equal, 0 when only all scores are."""
    same, opposite, by_score, by_label = 0, 0, 0, 0
    for i, j in combinations(range(len(scores)), 2):
        ahead = (scores[i] > scores[j]) - (scores[i] < scores[j])
        better = (labels[i] > labels[j]) - (labels[i] < labels[j])
        same += ahead * better > 0
        opposite += ahead * better < 0
        by_score += ahead != 0
        by_label += better != 0
    if by_label == 0:
        return None
    return (same - opposite) / sqrt(by_score * by_label) if by_score else 0.0


class Document(NamedTuple):
    """A document of a query: no label, not judged; no score, not retrieved."""

    label: float | None
    score: float | None


@dataclass
class Question:
    """A measure and how it is computed, in words of this file."""

    name: str
    cutoff: int | None = None
    level: float | None = None
    persistence: float = 0.8
    scale: int = 4
    gain: Callable[[float], float] = lambda label: 2**label - 1
    letor: bool = False
    short_is_zero: bool = False
    p_by_length: bool = False
    map_divisor: str = "relevant"
    recall: float = 0.0
    only_judged: bool = False

    def is_relevant(self, doc: Document) -> bool:
        return doc.label is not None and (doc.label > 0 if self.level is None else doc.label >= self.level)

    def gain_of(self, doc: Document) -> float:
        return 0.0 if doc.label is None else self.gain(doc.label)

    def dcg(self, ranked: Sequence[Document]) -> float:
        discounts = [1 / log2(rank + 2) for rank in range(len(ranked))]
        if self.letor:
            discounts = [1 if rank < 2 else 1 / log2(rank + 1) for rank in range(len(ranked))]
        return fsum(self.gain_of(doc) * by for doc, by in list(zip(ranked, discounts, strict=True))[: self.cutoff])


def measure_of_query(question: Question, documents: Sequence[Document], average: bool = False) -> float | None:
    """A measure of one query; None where it is undefined. Equal scores as given, or the mean of all orders."""
    if question.name == "gmap":
        value = measure_of_query(replace(question, name="map"), documents, average)
        return None if value is None else log(max(value, 0.00001))
    retrieved = [
        doc for doc in documents if doc.score is not None and (doc.label is not None or not question.only_judged)
    ]
    scores = [doc.score for doc in retrieved if doc.score is not None]
    orders = tied_orders(scores) if average else [ranked_rows(scores)]
    values = [_measure_of_order(question, [retrieved[row] for row in order], documents) for order in orders]
    if any(value is None for value in values):
        return None
    return fsum(value for value in values if value is not None) / len(values)


def _measure_of_order(question: Question, ranked: Sequence[Document], documents: Sequence[Document]) -> float | None:
    cutoff = question.cutoff or 10**9
    looked_at = ranked[:cutoff]
    n_relevant = sum(map(question.is_relevant, documents))
    hits = [float(question.is_relevant(doc)) for doc in ranked]
    if question.name == "dcg":
        return question.dcg(ranked)
    if question.name == "judged":
        return sum(doc.label is not None for doc in looked_at) / max(len(looked_at), 1)
    if question.name == "kendall":
        judged = [(doc.score or 0.0, doc.label) for doc in ranked if doc.label is not None]
        return rank_correlation([score for score, _ in judged], [label for _, label in judged])
    if question.name == "ndcg":
        ideal = question.dcg(sorted(documents, key=question.gain_of, reverse=True))
        if ideal == 0 or not any((doc.label or 0) > 0 for doc in documents):
            return None
        is_short = len(ranked) < (question.cutoff or 0)
        return 0.0 if question.short_is_zero and is_short else question.dcg(ranked) / ideal
    if question.name == "err":
        if not any((doc.label or 0) > 0 for doc in documents):
            return None
        return expected_reciprocal_ranks([(2 ** (doc.label or 0) - 1) / 2**question.scale for doc in ranked], cutoff)
    n_others = sum(doc.label is not None for doc in documents) - n_relevant
    if n_relevant == 0 or (question.name == "auc" and n_others == 0):
        return None
    if question.name == "auc":
        of_judged = [doc for doc in documents if doc.label is not None]
        placed = [float("-inf") if doc.score is None else doc.score for doc in of_judged]
        return ordered_pairs(placed, list(map(question.is_relevant, of_judged))) / (n_relevant * n_others)
    divisor = len(looked_at) if question.p_by_length or question.cutoff is None else cutoff
    if question.name == "map":
        limit = {"relevant": n_relevant, "k": cutoff, "length": len(looked_at)}[question.map_divisor]
        return precision_sums(hits, cutoff) / max(min(n_relevant, limit), 1)
    if question.name == "mrr":
        return reciprocal_ranks(hits, cutoff)
    if question.name == "success":
        return float(any(hits[:cutoff]))
    if question.name == "p":
        return sum(hits[:cutoff]) / max(divisor, 1)
    if question.name == "recall":
        return sum(hits[:cutoff]) / n_relevant
    if question.name == "recall_cap":
        return sum(hits[:cutoff]) / min(n_relevant, cutoff)
    if question.name == "rprec":
        return sum(hits[:n_relevant]) / n_relevant
    if question.name == "f1":
        of_ranked, of_relevant = sum(hits[:cutoff]) / max(divisor, 1), sum(hits[:cutoff]) / n_relevant
        return 2 * of_ranked * of_relevant / (of_ranked + of_relevant) if of_relevant else 0.0
    if question.name == "iprec":
        return interpolated_precisions(hits, floor(question.recall * n_relevant + 0.9))
    if question.name == "rbp":
        return (1 - question.persistence) * discounted_sums(hits, cutoff, lambda rank: question.persistence**rank)
    assert question.name == "bpref", question.name
    preferences = [-1.0 if doc.label is None else float(question.is_relevant(doc)) for doc in ranked]
    return preference_sums(preferences, n_relevant, n_others) / n_relevant


def swapped_ndcg_change(gains: Sequence[float], order: Sequence[int], first: int, second: int, cutoff: int) -> float:
    """|NDCG after swapping two places - NDCG before|, both from the definition."""
    n = len(gains)
    ideal = sum(g / log2(r + 2) for r, g in enumerate(sorted(gains, reverse=True)[: cutoff or n]))
    swapped = list(order)
    swapped[first], swapped[second] = swapped[second], swapped[first]
    unswapped = sum(gains[row] / log2(r + 2) for r, row in enumerate(order))
    after = sum(gains[row] / log2(r + 2) for r, row in enumerate(swapped))
    return abs(after - unswapped) / ideal
