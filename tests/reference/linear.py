"""The linear ranker by the definition: its functions of features, and the weights with the least cost."""

from __future__ import annotations

from collections.abc import Sequence
from math import log2

import numpy as np


def signed_log(x: float) -> float:
    """sign(x) log2(1 + |x|)."""
    return log2(1.0 + x) if x >= 0 else -log2(1.0 - x)


def functions(bins: Sequence[int | None], values: Sequence[float]) -> list[list[float]]:
    """The three functions of one feature for each document, of mean 0 and variance 1 over the documents.

    bins   : of each document; None: missing
    values : of each bin, ascending
    """
    known = [b for b in bins if b is not None]
    columns = []
    for kind in ("value", "log", "quantile"):
        of_bin = []
        for b, value in enumerate(values):
            below, inside = sum(k < b for k in known), sum(k == b for k in known)
            of_bin.append({"value": value, "log": signed_log(value), "quantile": below + inside / 2}[kind])
        mean = sum(of_bin[b] for b in known) / len(known)
        variance = sum((of_bin[b] - mean) ** 2 for b in known) / len(bins)
        columns.append([0.0 if b is None else (of_bin[b] - mean) / variance**0.5 for b in bins])
    return [list(row) for row in zip(*columns, strict=True)]


def fit(
    x: Sequence[Sequence[float]], gains: Sequence[Sequence[float]], weights: Sequence[float], l2: float
) -> list[float]:
    """The weights with the least cost, by Newton's method: cross entropy of each query, and l2 / 2 times their squares.

    x       : functions of each document, query after query
    gains   : of the documents of each query
    weights : of the queries
    l2      : times sum of weight (1 - 1 / n) over queries of n documents of different gains is the l2
    """
    rows, w = np.array(x), np.zeros(len(x[0]))
    learnable = [len(set(of_query)) > 1 for of_query in gains]
    scale = sum(
        weight * (1 - 1 / len(of_query))
        for weight, of_query, counts in zip(weights, gains, learnable, strict=True)
        if counts
    )
    for _ in range(50):
        gradient, hessian, start = l2 * scale * w, l2 * scale * np.eye(len(w)), 0
        for of_query, weight, counts in zip(gains, weights, learnable, strict=True):
            part = rows[start : start + len(of_query)]
            start += len(of_query)
            if counts:
                p = np.exp(part @ w - (part @ w).max())
                p /= p.sum()
                gradient = gradient + weight * part.T @ (p - np.array(of_query) / sum(of_query))
                hessian = hessian + weight * (part.T * p) @ part - weight * np.outer(part.T @ p, part.T @ p)
        w = w - np.linalg.solve(hessian, gradient)
    return [float(one) for one in w]


def add_bin_values(
    bins: Sequence[Sequence[int]], values: Sequence[Sequence[float]], scores: Sequence[float]
) -> list[float]:
    """Each score and the values of its document's bins.

    bins   : of each document, feature by feature
    values : of each feature's bins
    """
    sums = [sum(of[b] for of, b in zip(values, row, strict=True)) for row in bins]
    return [score + one for score, one in zip(scores, sums, strict=True)]
