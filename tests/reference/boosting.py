"""LambdaMART as a whole, in floating point."""

from __future__ import annotations

from collections.abc import Sequence

from reference.gradients import pair_lambdas
from reference.trees import splits


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
) -> tuple[list[float], float]:
    """Scores of the training rows after `trees` rounds, everything by the definition and in floating point.

    Also how close the closest decision was: the least share by which a chosen gain beat that of a split into other
    sides, or the least difference of scores in a query.
    """
    n = len(gains)
    distinct = [sorted({row[f] for row in features}) for f in range(len(features[0]))]
    codes = [[distinct[f].index(row[f]) for row in features] for f in range(len(distinct))]
    scores = [0.0] * n
    histories = [""] * n
    closest = 1.0
    for _ in range(trees):
        for rows in queries:
            apart = [(a, b) for a in rows for b in rows if histories[a] != histories[b]]
            closest = min([closest, *(abs(scores[a] - scores[b]) for a, b in apart)])
        gradients, hessians = [0.0] * n, [0.0] * n
        for rows in queries:
            parts = pair_lambdas([gains[r] for r in rows], [scores[r] for r in rows], truncation, 1.0, normalize)
            for place, row in enumerate(rows):
                gradients[row], hessians[row] = parts[0][place], parts[1][place]
        grown = [list(range(n))]
        while len(grown) < leaves:
            limits = (0.0, 0.0, min_docs)
            every = [
                (*split, at)
                for at, rows in enumerate(grown)
                for split in splits(codes, [None] * len(codes), gradients, hessians, rows, *limits)
            ]
            if not every:
                break
            gain, _, _, _, left, at = max(every, key=lambda split: split[0])
            sides = {left, frozenset(grown[at]) - left}
            closest = min([closest, gain, *(1 - other[0] / gain for other in every if other[4] not in sides)])
            rows = grown[at]
            grown[at] = [d for d in rows if d in left]
            grown.append([d for d in rows if d not in left])
        if len(grown) == 1:
            break
        for number, rows in enumerate(grown):
            h = sum(hessians[d] for d in rows)
            value = -learning_rate * sum(gradients[d] for d in rows) / h if h > 0 else 0.0
            for d in rows:
                scores[d] += value
                histories[d] += f" {number}"
    return scores, closest
