"""Bins, their sums, and every allowed split of the documents of a leaf."""

from __future__ import annotations

import math
from collections.abc import Sequence


def bin_of(x: float, edges: Sequence[float]) -> int:
    """How many edges lie below x."""
    return sum(edge < x for edge in edges)


def bin_sums(
    codes: Sequence[Sequence[int]], values: Sequence[int], documents: Sequence[int], widths: Sequence[int]
) -> list[int]:
    """The sum of values by bin, all features' bins end to end."""
    sums = []
    for own, width in zip(codes, widths, strict=True):
        sums += [sum(values[d] for d in documents if own[d] == b) for b in range(width)]
    return sums


def splits(
    codes: Sequence[Sequence[int]],
    missing: Sequence[int | None],
    gradients: Sequence[float],
    hessians: Sequence[float],
    documents: Sequence[int],
    l2: float,
    min_hessian: float,
    min_docs: int,
) -> list[tuple[float, int, int, bool, frozenset[int]]]:
    """All allowed splits with a gain as (gain, feature, code, missing left, documents on the left), in order of
    ties.
    """

    def leaf_gain(rows: Sequence[int]) -> float:
        h = sum(hessians[d] for d in rows) + l2
        return sum(gradients[d] for d in rows) ** 2 / h if h > 0 else 0.0

    found = []
    for f, own in enumerate(codes):
        for code in range(max(own) + 1):
            for side in (False, True):
                left = [d for d in documents if (side if own[d] == missing[f] else own[d] <= code)]
                right = [d for d in documents if d not in left]
                if len(left) < max(1, min_docs) or len(right) < max(1, min_docs):
                    continue
                if min(sum(hessians[d] for d in rows) for rows in (left, right)) < min_hessian:
                    continue
                gain = leaf_gain(left) + leaf_gain(right) - leaf_gain(documents)
                if gain > 1e-9:
                    found.append((gain, f, code, side, frozenset(left)))
    return found


def bounded_splits(
    codes: Sequence[Sequence[int]],
    missing: Sequence[int | None],
    gradients: Sequence[float],
    hessians: Sequence[float],
    l2: float,
    min_docs: int,
    signs: Sequence[int],
    bounds: tuple[float, float],
) -> list[tuple[float, int, int, bool]]:
    """All splits that keep the order of the sides' values, as (gain, feature, code, missing left), in order of ties."""
    every = range(len(gradients))

    def sums(rows: Sequence[int]) -> tuple[float, float, float]:
        g, h = sum(gradients[d] for d in rows), sum(hessians[d] for d in rows) + l2
        return g, h, sorted([*bounds, -g / h])[1]

    def cost(rows: Sequence[int]) -> float:
        g, h, value = sums(rows)
        return g * value + h * value**2 / 2

    found = []
    for f, own in enumerate(codes):
        for code in range(max(own) + 1):
            for side in (False, True):
                left = [d for d in every if (side if own[d] == missing[f] else own[d] <= code)]
                right = [d for d in every if d not in left]
                if min(len(left), len(right)) >= max(1, min_docs):
                    rise = sums(right)[2] - sums(left)[2]
                    gain = 2 * (cost(every) - cost(left) - cost(right))
                    if signs[f] * rise >= 0 and gain > 1e-9:
                        found.append((gain, f, code, side))
    return found


def oblivious_leaves(
    codes: Sequence[Sequence[int]],
    missing: Sequence[int | None],
    gradients: Sequence[float],
    hessians: Sequence[float],
    levels: int,
    l2: float,
    min_hessian: float,
    min_docs: int,
) -> tuple[set[frozenset[int]], float]:
    """The leaves of a tree whose leaves of one level are split alike, and by how much the closest choice was made."""
    leaves = [list(range(len(gradients)))]
    closest = 1.0
    for _ in range(levels):
        every = [splits(codes, missing, gradients, hessians, rows, l2, min_hessian, min_docs) for rows in leaves]
        sums: dict[tuple[int, int, bool], float] = {}
        lefts: dict[tuple[int, int, bool], set[frozenset[int]]] = {}
        for own in every:
            for gain, f, code, side, left in own:
                split = (f, code, side)
                sums[split] = sums.get(split, 0.0) + gain
                lefts.setdefault(split, set()).add(left)
        if not sums:
            break
        best = max(sums, key=lambda split: (sums[split], [-part for part in split]))
        closest = min([closest, *(1 - sums[split] / sums[best] for split in sums if lefts[split] != lefts[best])])
        f, code, side = best
        grown: list[list[int]] = []
        for rows in leaves:
            lower = [d for d in rows if (side if codes[f][d] == missing[f] else codes[f][d] <= code)]
            upper = [d for d in rows if d not in lower]
            sides = [lower, upper]
            heavy = all(sum(hessians[d] for d in part) >= min_hessian for part in sides)
            grown += sides if heavy and min(map(len, sides)) >= max(1, min_docs) else [rows]
        leaves = grown
    return {frozenset(rows) for rows in leaves}, closest


def bins_of_row(cells: dict[int, float], edges: Sequence[Sequence[float]], absent: Sequence[int]) -> list[int]:
    """The bin of a row in each feature; a missing value has the bin after those of numbers."""
    found = list(absent)
    for f, x in cells.items():
        found[f] = len(edges[f]) + 1 if math.isnan(x) else bin_of(x, edges[f])
    return found


def other_places(bins: Sequence[int], usual: Sequence[int], widths: Sequence[int]) -> list[int]:
    """The places of a row's bins that are not the usual ones, all features' bins end to end."""
    return [sum(widths[:f]) + own for f, own in enumerate(bins) if own != usual[f]]
