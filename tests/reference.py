"""Slow plain-Python twins of the kernels, written from the definitions alone; nothing of lmart is imported here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations, product
from math import exp, fsum, log2

# ---- measures -------------------------------------------------------------------------------------------------------
# Each takes what the documents of one query are worth in ranked order, best first.


def ranked_rows(scores: Sequence[float]) -> list[int]:
    """Rows by score descending, equal scores by row ascending."""
    return sorted(range(len(scores)), key=lambda row: (-scores[row], row))


def tied_orders(scores: Sequence[float]) -> list[list[int]]:
    """Every order of the rows in which no higher score stands below a lower one."""
    groups = [[row for row in range(len(scores)) if scores[row] == one] for one in sorted(set(scores), reverse=True)]
    choices = product(*(permutations(group) for group in groups))
    return [[row for group in choice for row in group] for choice in choices]


def over_tied_orders(
    measure: Callable[..., float], scores: Sequence[float], worths: Sequence[float], *rest: object
) -> float:
    """Mean of a measure over all orders of the tied documents."""
    orders = tied_orders(scores)
    return fsum(measure([worths[row] for row in order], *rest) for order in orders) / len(orders)


def discounted_sums(worths: Sequence[float], cutoff: int, discount: Callable[[int], float]) -> float:
    """Sum of worth x discount(0-based rank)."""
    return fsum(worth * discount(rank) for rank, worth in enumerate(worths[:cutoff]))


def precision_sums(relevant: Sequence[float], cutoff: int) -> float:
    """Sum of the precision at each relevant document."""
    return fsum(sum(relevant[: rank + 1]) / (rank + 1) for rank in range(min(cutoff, len(relevant))) if relevant[rank])


def reciprocal_ranks(relevant: Sequence[float], cutoff: int) -> float:
    """1 / rank of the first relevant document."""
    return next((1 / (rank + 1) for rank, one in enumerate(relevant[:cutoff]) if one), 0.0)


def expected_reciprocal_ranks(stops: Sequence[float], cutoff: int) -> float:
    """Expected 1 / rank of the document at which the reader stops."""
    total, reach = 0.0, 1.0
    for rank, stop in enumerate(stops[:cutoff]):
        total += reach * stop / (rank + 1)
        reach *= 1 - stop
    return total


# ---- training -------------------------------------------------------------------------------------------------------


def pair_lambdas(
    gains: Sequence[float], scores: Sequence[float], truncation: int, sigma: float, normalize: bool
) -> tuple[list[float], list[float]]:
    """Gradients and hessians of one query, pair by pair, by the definition (variant B)."""
    n = len(gains)
    order = sorted(range(n), key=lambda i: (-scores[i], i))
    rank = {row: place for place, row in enumerate(order)}
    discount = [1 / log2(r + 2) for r in range(n)]
    cut = truncation or n
    ideal = sum(g * d for g, d in zip(sorted(gains, reverse=True)[:cut], discount, strict=False))
    gradients, hessians, total = [0.0] * n, [0.0] * n, 0.0
    if ideal == 0:
        return gradients, hessians
    spread = normalize and max(scores) != min(scores)
    for i in range(n):
        for j in range(n):
            if gains[i] > gains[j] and min(rank[i], rank[j]) < cut:
                delta = (gains[i] - gains[j]) * abs(discount[rank[i]] - discount[rank[j]]) / ideal
                if spread:
                    delta /= 0.01 + abs(scores[i] - scores[j])
                rho = 1 / (1 + exp(sigma * (scores[i] - scores[j])))
                gradients[i] -= sigma * rho * delta
                gradients[j] += sigma * rho * delta
                hessians[i] += sigma**2 * rho * (1 - rho) * delta
                hessians[j] += sigma**2 * rho * (1 - rho) * delta
                total += 2 * sigma * rho * delta
    factor = log2(1 + total) / total if normalize and total > 0 else 1.0
    return [g * factor for g in gradients], [h * factor for h in hessians]


def swapped_ndcg_change(gains: Sequence[float], order: Sequence[int], first: int, second: int, cutoff: int) -> float:
    """|NDCG after swapping two places - NDCG before|, both from the definition."""
    n = len(gains)
    ideal = sum(g / log2(r + 2) for r, g in enumerate(sorted(gains, reverse=True)[: cutoff or n]))
    swapped = list(order)
    swapped[first], swapped[second] = swapped[second], swapped[first]
    before = sum(gains[row] / log2(r + 2) for r, row in enumerate(order))
    after = sum(gains[row] / log2(r + 2) for r, row in enumerate(swapped))
    return abs(after - before) / ideal


def bin_of(x: float, edges: Sequence[float]) -> int:
    """How many edges lie below x."""
    return sum(edge < x for edge in edges)


def bin_sums(codes: Sequence[Sequence[int]], values: Sequence[int], documents: Sequence[int], widths: Sequence[int]) -> list[int]:
    """The sum of values by bin, all features' bins end to end."""
    sums = []
    for own, width in zip(codes, widths, strict=True):
        sums += [sum(values[d] for d in documents if own[d] == b) for b in range(width)]
    return sums


def best_split(
    codes: Sequence[Sequence[int]],
    missing: Sequence[int | None],
    gradients: Sequence[float],
    hessians: Sequence[float],
    documents: Sequence[int],
    l2: float,
    min_hessian: float,
    min_docs: int,
) -> tuple[float, int, int, bool] | None:
    """(gain, feature, code, missing left) of the best split; ties: lowest feature, lowest code, missing right."""

    def worth(rows: Sequence[int]) -> float:
        h = sum(hessians[d] for d in rows) + l2
        return sum(gradients[d] for d in rows) ** 2 / h if h > 0 else 0.0

    found = None
    for f, own in enumerate(codes):
        for side in (False, True):
            for code in range(max(own) + 1):
                left = [d for d in documents if (side if own[d] == missing[f] else own[d] <= code)]
                right = [d for d in documents if d not in left]
                if len(left) < max(1, min_docs) or len(right) < max(1, min_docs):
                    continue
                if min(sum(hessians[d] for d in rows) for rows in (left, right)) < min_hessian:
                    continue
                gain = worth(left) + worth(right) - worth(documents)
                if gain > 1e-9 and (found is None or gain > found[0] * (1 + 1e-9)):
                    found = (gain, f, code, side)
    return found


def lambdamart(
    features: Sequence[Sequence[float]],
    gains: Sequence[float],
    queries: Sequence[Sequence[int]],
    trees: int,
    leaves: int,
    learning_rate: float,
    min_docs: int,
    truncation: int,
    normalize: bool,
) -> list[float]:
    """Scores of the training rows after `trees` rounds, everything by the definition and in floating point."""
    n = len(gains)
    distinct = [sorted({row[f] for row in features}) for f in range(len(features[0]))]
    codes = [[distinct[f].index(row[f]) for row in features] for f in range(len(distinct))]
    scores = [0.0] * n
    for _ in range(trees):
        gradients, hessians = [0.0] * n, [0.0] * n
        for rows in queries:
            parts = pair_lambdas([gains[r] for r in rows], [scores[r] for r in rows], truncation, 1.0, normalize)
            for place, row in enumerate(rows):
                gradients[row], hessians[row] = parts[0][place], parts[1][place]
        grown = [list(range(n))]
        limits = (0.0, 0.0, min_docs)
        while len(grown) < leaves:
            splits = [best_split(codes, [None] * len(codes), gradients, hessians, rows, *limits) for rows in grown]
            best = max((s[0] for s in splits if s), default=None)
            if best is None:
                break
            at = next(i for i, s in enumerate(splits) if s and s[0] >= best * (1 - 1e-9))
            split = splits[at]
            assert split is not None
            rows = grown[at]
            grown[at] = [d for d in rows if codes[split[1]][d] <= split[2]]
            grown.append([d for d in rows if codes[split[1]][d] > split[2]])
        if len(grown) == 1:
            break
        for rows in grown:
            h = sum(hessians[d] for d in rows)
            value = -learning_rate * sum(gradients[d] for d in rows) / h if h > 0 else 0.0
            for d in rows:
                scores[d] += value
    return scores


# ---- scoring --------------------------------------------------------------------------------------------------------
# A tree is (columns, thresholds, missing_left, left, right, leaf_values), children >= 0 inner nodes, else ~leaf.

PlainTree = tuple[Sequence[int], Sequence[float], Sequence[bool], Sequence[int], Sequence[int], Sequence[float]]


def leaf_reached(tree: PlainTree, row: Sequence[float]) -> int:
    """The leaf that a row of raw values (nan: missing) comes to."""
    columns, thresholds, missing_left, left, right, leaf_values = tree
    place = 0 if len(leaf_values) > 1 else ~0
    while place >= 0:
        x = row[columns[place]]
        goes_left = missing_left[place] if x != x else x <= thresholds[place]
        place = left[place] if goes_left else right[place]
    return ~place


def score_rows(base_score: float, trees: Sequence[PlainTree], rows: Sequence[Sequence[float]]) -> list[float]:
    """Base score, then the leaf value of each tree added in order."""
    scores = []
    for row in rows:
        score = base_score
        for tree in trees:
            score += tree[5][leaf_reached(tree, row)]
        scores.append(score)
    return scores


def code_rows(
    cells: Sequence[dict[int, float]],
    thresholds: dict[int, Sequence[float]],
    coded: Sequence[tuple[int, int, bool]],
    absent: float,
) -> list[list[int]]:
    """The code of each row in each coded column (feature, thresholds left out at its start, missing values are low)."""
    codes = []
    for row in cells:
        shown = []
        for feature, start, missing_low in coded:
            x = row.get(feature, absent)
            if x != x:
                shown.append(0 if missing_low else 255)
            else:
                shown.append(min(max(sum(t < x for t in thresholds[feature]) - start, 0), 255))
        codes.append(shown)
    return codes


def walk_words(roots: Sequence[int], words: Sequence[int], leaf_values: Sequence[float], codes: Sequence[int]) -> float:
    """The sum of the leaves that one row of codes comes to, over words (left 32 bits, column 24 bits, code 8 bits)."""
    total = 0.0
    for root in roots:
        place = root
        while (after := (words[place] >> 32) + (codes[(words[place] >> 8) & 0xFFFFFF] > (words[place] & 0xFF))) != place:
            place = after
        total += leaf_values[place]
    return total


def mix(x: int) -> int:
    """SplitMix64's output for a state, in whole numbers."""
    z = (x + 0x9E3779B97F4A7C15) % 2**64
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return z ^ (z >> 31)
