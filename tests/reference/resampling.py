"""Resampling by the definitions alone: draws with replacement, signs, p values, Holm's adjustment."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product

from reference.random_numbers import mix


def drawn_queries(n: int, key: int, resample: int) -> list[int]:
    """The queries of a resample: n of n, with replacement."""
    resample_key = mix(key ^ resample)
    queries = []
    for draw in range(n):
        word = mix(resample_key ^ (draw // 2))
        bits = word % 2**32 if draw % 2 else word // 2**32
        queries.append(bits * n // 2**32)
    return queries


def signs(n: int, key: int, flip: int) -> list[int]:
    """The signs of the differences of n queries."""
    flip_key = mix(key ^ flip)
    return [1 if mix(flip_key ^ (q // 64)) >> (q % 64) & 1 else -1 for q in range(n)]


def flipped_sums(differences: Sequence[int], key: int, flips: Sequence[int]) -> list[int]:
    """The sum of the differences under the signs of each flip."""
    return [sum(s * d for s, d in zip(signs(len(differences), key, b), differences, strict=True)) for b in flips]


def exact_p(differences: Sequence[float]) -> float:
    """The share of all sign vectors whose sum is at least as far from 0, in fractions, less 1e-12 of all."""
    exact = [Fraction(d) for d in differences]
    zero = Fraction(0)
    bound = abs(sum(exact, zero)) - Fraction(1, 10**12) * sum(map(abs, exact), zero)
    ways = list(product((1, -1), repeat=len(exact)))
    sums = [sum((s * d for s, d in zip(way, exact, strict=True)), zero) for way in ways]
    return sum(abs(total) >= bound for total in sums) / len(ways)


def weighted_means(values: Sequence[float], weights: Sequence[float], key: int, n_resamples: int) -> list[float]:
    """The means of the resamples, in ascending order."""
    means = []
    for b in range(n_resamples):
        drawn = drawn_queries(len(values), key, b)
        total = sum((Fraction(values[q]) * Fraction(weights[q]) for q in drawn), Fraction(0))
        means.append(float(total / sum((Fraction(weights[q]) for q in drawn), Fraction(0))))
    return sorted(means)


def holm(p_values: Sequence[float]) -> list[float]:
    """For each p: the least level at which Holm's steps reject it, found by the steps themselves."""
    m = len(p_values)
    adjusted = [1.0] * m
    for level in sorted({min(1.0, p * (m - i)) for p in p_values for i in range(m)}, reverse=True):
        order = sorted(range(m), key=lambda k: p_values[k])
        for i, place in enumerate(order):
            if p_values[place] * (m - i) > level:
                break
            adjusted[place] = level
    return adjusted
