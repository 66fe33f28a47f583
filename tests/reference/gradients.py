"""Gradients and hessians of one query, pair by pair or over the whole list, and the step of the bias of positions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import exp, log, log2

from reference.measures import ranked_rows


def pair_gradients(
    relevance: Sequence[float],
    scores: Sequence[float],
    truncation: int,
    sigma: float,
    normalize: bool,
    weigh: Callable[[list[int], int, int], float],
) -> tuple[list[float], list[float]]:
    """Gradients and hessians of one query, pair by pair, by the definition (variant B).

    weigh : the weight of a pair, from the rows by score and the ranks of the better document and of the other
    """
    n = len(relevance)
    order = ranked_rows(scores)
    rank = {row: k for k, row in enumerate(order)}
    n_ranks = truncation or n
    gradients, hessians, total = [0.0] * n, [0.0] * n, 0.0
    divide_by_distance = normalize and max(scores) != min(scores)
    for i in range(n):
        for j in range(n):
            if relevance[i] > relevance[j] and min(rank[i], rank[j]) < n_ranks:
                delta = weigh(order, rank[i], rank[j])
                if divide_by_distance:
                    delta /= 0.01 + abs(scores[i] - scores[j])
                rho = 1 / (1 + exp(sigma * (scores[i] - scores[j])))
                gradients[i] -= sigma * rho * delta
                gradients[j] += sigma * rho * delta
                hessians[i] += sigma**2 * rho * (1 - rho) * delta
                hessians[j] += sigma**2 * rho * (1 - rho) * delta
                total += 2 * sigma * rho * delta
    factor = log2(1 + total) / total if normalize and total > 0 else 1.0
    return [g * factor for g in gradients], [h * factor for h in hessians]


def pair_lambdas(
    gains: Sequence[float], scores: Sequence[float], truncation: int, sigma: float, normalize: bool
) -> tuple[list[float], list[float]]:
    """Gradients and hessians of one query under LambdaMART."""
    weigh = distance_weights(gains, truncation, 1.0, 0.0)
    return pair_gradients(gains, scores, truncation, sigma, normalize, weigh)


def distance_weights(
    gains: Sequence[float], truncation: int, discount_factor: float, distance_factor: float
) -> Callable[[list[int], int, int], float]:
    """The weights of LambdaRank (factors 1 and 0), of NDCG-Loss2 (0 and 1) and of NDCG-Loss2++ (1 and 10)."""
    best = sorted(gains, reverse=True)[: truncation or len(gains)]
    ideal = sum(gain / log2(rank + 2) for rank, gain in enumerate(best))

    def weigh(order: list[int], better: int, other: int) -> float:
        apart = abs(better - other)
        by_discount = abs(1 / log2(better + 2) - 1 / log2(other + 2))
        by_distance = 1 / log2(1 + apart) - 1 / log2(2 + apart)
        gained = (gains[order[better]] - gains[order[other]]) / ideal
        return gained * (discount_factor * by_discount + distance_factor * by_distance)

    return weigh


def swap_weights(
    measure: Callable[[list[float], int], float], relevance: Sequence[float]
) -> Callable[[list[int], int, int], float]:
    """As weights how much a measure of the whole list changes by a swap, from the definition."""

    def weigh(order: list[int], better: int, other: int) -> float:
        swapped = list(order)
        swapped[better], swapped[other] = swapped[other], swapped[better]
        unchanged, changed = (measure([relevance[row] for row in rows], len(rows)) for rows in (order, swapped))
        return abs(changed - unchanged)

    return weigh


def cross_entropy_distributions(
    gains: Sequence[float], scores: Sequence[float], gammas: Sequence[float], sigma: float
) -> tuple[list[float], list[float]]:
    """The distributions phi of the labels and rho of the scores that XE-NDCG compares."""
    targets = [gain + 1 - gamma for gain, gamma in zip(gains, gammas, strict=True)]
    exponentials = [exp(sigma * (score - max(scores))) for score in scores]
    return [t / sum(targets) for t in targets], [e / sum(exponentials) for e in exponentials]


def cross_entropy(
    gains: Sequence[float], scores: Sequence[float], gammas: Sequence[float], sigma: float
) -> tuple[float, list[float], list[float]]:
    """XE-NDCG of one query, its gradients and its hessians."""
    phi, rho = cross_entropy_distributions(gains, scores, gammas, sigma)
    cost = -sum(p * log(r) for p, r in zip(phi, rho, strict=True))
    gradients = [sigma * (r - p) for p, r in zip(phi, rho, strict=True)]
    return cost, gradients, [sigma**2 * r * (1 - r) for r in rho]


def neighbour_lambdas(
    labels: Sequence[float],
    scores: Sequence[float],
    noises: Sequence[Sequence[float]],
    truncation: int,
    sigma: float,
    normalize: bool,
) -> tuple[list[float], list[float]]:
    """Gradients and hessians of YetiRank for one query; noises: for each order what is added to sigma times a score."""
    n = len(labels)
    gradients, hessians, total = [0.0] * n, [0.0] * n, 0.0
    for noise in noises:
        order = sorted(range(n), key=lambda i: -(sigma * scores[i] + noise[i]))
        for rank, (i, j) in enumerate(pairwise(order)):
            if labels[i] == labels[j] or (truncation and rank >= truncation):
                continue
            better, other = (i, j) if labels[i] > labels[j] else (j, i)
            weight = 0.85**rank * (labels[better] - labels[other]) / max(labels) / len(noises)
            rho = 1 / (1 + exp(min(sigma * (scores[better] - scores[other]), 700.0)))
            gradients[better] -= sigma * rho * weight
            gradients[other] += sigma * rho * weight
            hessians[better] += sigma**2 * rho * (1 - rho) * weight
            hessians[other] += sigma**2 * rho * (1 - rho) * weight
            total += 2 * sigma * rho * weight
    factor = log2(1 + total) / total if normalize and total > 0 else 1.0
    return [g * factor for g in gradients], [h * factor for h in hessians]


def position_bias_step(
    bias: Sequence[float],
    positions: Sequence[int],
    gradients: Sequence[float],
    hessians: Sequence[float],
    learning_rate: float,
    regularization: float,
) -> list[float]:
    """Newton step of each position's bias on the cost, documents at it taken together."""
    after = []
    for position, own in enumerate(bias):
        documents = [d for d, other in enumerate(positions) if other == position]
        slope = sum(gradients[d] + regularization * own for d in documents)
        curvature = sum(hessians[d] + regularization for d in documents)
        after.append(own - learning_rate * slope / (curvature + 0.001))
    return after
