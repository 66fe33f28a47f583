"""Slow plain-Python twins of the kernels, written from the definitions alone; nothing of lmart is imported here."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import combinations, pairwise, permutations, product
from math import exp, factorial, fsum, inf, isnan, log, log2

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


def pair_gradients(
    worths: Sequence[float],
    scores: Sequence[float],
    truncation: int,
    sigma: float,
    normalize: bool,
    weigh: Callable[[list[int], int, int], float],
) -> tuple[list[float], list[float]]:
    """Gradients and hessians of one query, pair by pair, by the definition (variant B).

    weigh : the weight of a pair, from the rows by score and the ranks of the better document and of the other
    """
    n = len(worths)
    order = ranked_rows(scores)
    rank = {row: place for place, row in enumerate(order)}
    cut = truncation or n
    gradients, hessians, total = [0.0] * n, [0.0] * n, 0.0
    spread = normalize and max(scores) != min(scores)
    for i in range(n):
        for j in range(n):
            if worths[i] > worths[j] and min(rank[i], rank[j]) < cut:
                delta = weigh(order, rank[i], rank[j])
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


def pair_lambdas(
    gains: Sequence[float], scores: Sequence[float], truncation: int, sigma: float, normalize: bool
) -> tuple[list[float], list[float]]:
    """Gradients and hessians of one query under LambdaMART."""
    weigh = distance_weights(gains, truncation, 1.0, 0.0)
    return pair_gradients(gains, scores, truncation, sigma, normalize, weigh)


def distance_weights(
    gains: Sequence[float], truncation: int, share_of_places: float, share_of_distance: float
) -> Callable[[list[int], int, int], float]:
    """The weights of LambdaRank (shares 1 and 0), of NDCG-Loss2 (0 and 1) and of NDCG-Loss2++ (1 and 10)."""
    best = sorted(gains, reverse=True)[: truncation or len(gains)]
    ideal = sum(gain / log2(place + 1) for place, gain in enumerate(best, 1))

    def weigh(order: list[int], better: int, other: int) -> float:
        apart = abs(better - other)
        by_places = abs(1 / log2(better + 2) - 1 / log2(other + 2))
        by_distance = 1 / log2(1 + apart) - 1 / log2(2 + apart)
        gained = (gains[order[better]] - gains[order[other]]) / ideal
        return gained * (share_of_places * by_places + share_of_distance * by_distance)

    return weigh


def swap_weights(
    measure: Callable[[list[float], int], float], worths: Sequence[float]
) -> Callable[[list[int], int, int], float]:
    """As weights how much a measure of the whole list changes by a swap, from the definition."""

    def weigh(order: list[int], better: int, other: int) -> float:
        swapped = list(order)
        swapped[better], swapped[other] = swapped[other], swapped[better]
        before, after = (measure([worths[row] for row in rows], len(rows)) for rows in (order, swapped))
        return abs(after - before)

    return weigh


def average_precision(relevant: Sequence[float], cutoff: int) -> float:
    """Mean of the precision at each relevant document."""
    return precision_sums(relevant, cutoff) / max(sum(relevant), 1)


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

    def worth(rows: Sequence[int]) -> float:
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
                gain = worth(left) + worth(right) - worth(documents)
                if gain > 1e-9:
                    found.append((gain, f, code, side, frozenset(left)))
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
                cut = (f, code, side)
                sums[cut] = sums.get(cut, 0.0) + gain
                lefts.setdefault(cut, set()).add(left)
        if not sums:
            break
        best = max(sums, key=lambda cut: (sums[cut], [-part for part in cut]))
        closest = min([closest, *(1 - sums[cut] / sums[best] for cut in sums if lefts[cut] != lefts[best])])
        f, code, side = best
        parted = []
        for rows in leaves:
            left = [d for d in rows if (side if codes[f][d] == missing[f] else codes[f][d] <= code)]
            right = [d for d in rows if d not in left]
            heavy = all(sum(hessians[d] for d in part) >= min_hessian for part in (left, right))
            parted += [left, right] if heavy and min(len(left), len(right)) >= max(1, min_docs) else [rows]
        leaves = parted
    return {frozenset(rows) for rows in leaves}, closest


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

    Also how close the closest decision was: the least share by which a chosen gain beat that of another parting, or the
    least difference of scores in a query.
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
            parting = {left, frozenset(grown[at]) - left}
            closest = min([closest, gain, *(1 - other[0] / gain for other in every if other[4] not in parting)])
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


def mix(x: int) -> int:
    """SplitMix64's output for a state, in whole numbers."""
    z = (x + 0x9E3779B97F4A7C15) % 2**64
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return z ^ (z >> 31)


def is_chosen(row: int, seed: int, halvings: int) -> bool:
    """Whether a row is in the sample that takes one of 2^halvings rows."""
    return mix(row ^ mix(seed)) < 2 ** (64 - halvings)


def sample_rows(n: int, limit: int, seed: int) -> list[int]:
    """The rows of the largest such sample of n rows that has at most `limit`."""
    halvings = 0
    while len(rows := [row for row in range(n) if is_chosen(row, seed, halvings)]) > limit:
        halvings += 1
    return rows


def uniform(row: int, key: int, bits: int = 53) -> float:
    """A number in [0, 1) from the mixed bits of a row, of which `bits` count."""
    return (mix(row ^ key) >> (64 - bits)) / 2.0**bits


def round_key(seed: int, round_number: int) -> int:
    """What objectives mix the numbers of rows with in a round."""
    return mix(mix(mix(seed) ^ round_number))


# ---- objectives of whole queries ------------------------------------------------------------------------------------


def cross_entropy_shares(
    gains: Sequence[float], scores: Sequence[float], gammas: Sequence[float], sigma: float
) -> tuple[list[float], list[float]]:
    """The shares of labels and of scores that XE-NDCG compares."""
    worths = [gain + 1 - gamma for gain, gamma in zip(gains, gammas, strict=True)]
    heights = [exp(sigma * (score - max(scores))) for score in scores]
    return [worth / sum(worths) for worth in worths], [height / sum(heights) for height in heights]


def cross_entropy(
    gains: Sequence[float], scores: Sequence[float], gammas: Sequence[float], sigma: float
) -> tuple[float, list[float], list[float]]:
    """XE-NDCG of one query, its gradients and its hessians."""
    wanted, given = cross_entropy_shares(gains, scores, gammas, sigma)
    cost = -sum(w * log(g) for w, g in zip(wanted, given, strict=True))
    gradients = [sigma * (g - w) for w, g in zip(wanted, given, strict=True)]
    return cost, gradients, [sigma**2 * g * (1 - g) for g in given]


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
        for place, (i, j) in enumerate(pairwise(order)):
            if labels[i] == labels[j] or (truncation and place >= truncation):
                continue
            better, other = (i, j) if labels[i] > labels[j] else (j, i)
            weight = 0.85**place * (labels[better] - labels[other]) / max(labels) / len(noises)
            rho = 1 / (1 + exp(sigma * (scores[better] - scores[other])))
            gradients[better] -= sigma * rho * weight
            gradients[other] += sigma * rho * weight
            hessians[better] += sigma**2 * rho * (1 - rho) * weight
            hessians[other] += sigma**2 * rho * (1 - rho) * weight
            total += 2 * sigma * rho * weight
    factor = log2(1 + total) / total if normalize and total > 0 else 1.0
    return [g * factor for g in gradients], [h * factor for h in hessians]


# ---- reading --------------------------------------------------------------------------------------------------------

NUMBER = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
WORD = re.compile(rb"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)


def number(token: bytes) -> float | None:
    """The number that a token says, None if it says none; minus zero is zero."""
    if not NUMBER.fullmatch(token) and not WORD.fullmatch(token):
        return None
    return float(token) or 0.0


DOCUMENT_KEY = re.compile(
    rb"(?:^|(?<=[\x00-\x20#,;]))(?:docid|docno|doc_id|document_id)[ \t]*[:=][ \t]*([^ \t\n\r]*)[ \t]*", re.IGNORECASE
)


def letor_document(comment: bytes) -> bytes:
    """The document id in a comment (without its '#'): the word behind a key such as `docid =`, else the first word."""
    if named := DOCUMENT_KEY.search(comment):
        word = named[1]
        follows = comment[named.end() : named.end() + 1] > b" "
        return word[:-1] if len(word) > 1 and word[-1:] in (b",", b";") and follows else word
    first = re.match(rb"[ \t]*([^ \t\n\r]*)([ \t]*=)?", comment)
    return b"" if first is None or first[2] else first[1]


def letor_rows(
    text: bytes, has_label: bool = True, has_query: bool = True, allow_infinite: bool = False, last_wins: bool = False
) -> tuple[list[tuple[float, bytes, list[tuple[int, float]], bytes]], list[int]]:
    """The rows of LETOR text (label, query id, cells by ascending id, document id), and the numbers of wrong lines."""
    rows, wrong = [], []
    for line_number, line in enumerate(text.split(b"\n"), 1):
        body, sign, comment = line.partition(b"#")
        body = body.strip(b" \t") if sign else re.sub(rb"[\r]*\Z", b"", line).strip(b" \t")
        words = re.split(rb"[ \t]+", body) if body else []
        row = _letor_row(list(words), has_label, has_query, allow_infinite, last_wins)
        document = letor_document(comment)
        damaged = b"\0" in line or b"\r" in line.rstrip(b"\r")
        if damaged or (row is None and words) or (row is not None and not printable(document)):
            wrong.append(line_number)
        elif row is not None:
            rows.append((*row, document))
    return rows, wrong


def printable(text: bytes) -> bool:
    """Whether bytes are UTF-8 without control characters."""
    try:
        return not re.search("[\x00-\x1f\x7f-\x9f]", text.decode("utf-8"))
    except UnicodeDecodeError:
        return False


def _letor_row(words, has_label, has_query, allow_infinite, last_wins):
    if not words:
        return None
    label, query = 0.0, b""
    if has_label:
        label = number(words.pop(0))
        if label is None or not 0 <= label < inf:
            return None
    if has_query:
        query = words.pop(0) if words else b""
        if query[:4] != b"qid:" or query == b"qid:" or any(c < 32 for c in query):
            return None
        query = query[4:]
    cells = {}
    for word in words:
        index, colon, token = word.partition(b":")
        value = number(token)
        if not colon or not index.isdigit() or int(index) >= 2**63 or value is None:
            return None
        if (value in (inf, -inf) and not allow_infinite) or (int(index) in cells and not last_wins):
            return None
        cells[int(index)] = value
    return label, query, sorted(cells.items())


# ---- scoring --------------------------------------------------------------------------------------------------------
# A tree is (columns, thresholds, missing_left, left, right, leaf_values), children >= 0 inner nodes, else ~leaf.

PlainTree = tuple[Sequence[int], Sequence[float], Sequence[bool], Sequence[int], Sequence[int], Sequence[float]]


def leaf_reached(tree: PlainTree, row: Sequence[float]) -> int:
    """The leaf that a row of raw values (nan: missing) comes to."""
    columns, thresholds, missing_left, left, right, leaf_values = tree
    place = 0 if len(leaf_values) > 1 else ~0
    while place >= 0:
        x = row[columns[place]]
        goes_left = missing_left[place] if isnan(x) else x <= thresholds[place]
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
            if isnan(x):
                shown.append(0 if missing_low else 255)
            else:
                shown.append(min(max(sum(t < x for t in thresholds[feature]) - start, 0), 255))
        codes.append(shown)
    return codes


def leaf_left(strikes: Sequence[tuple[int, int, bool, int, int]], n_leaves: int, codes: Sequence[int]) -> int:
    """The first leaf that no strike (column, plane of eight leaves, flip, code, bits that stay) takes from one row."""
    alive = set(range(n_leaves))
    for column, plane, flip, code, stay in strikes:
        if (255 - codes[column] if flip else codes[column]) > code:
            alive -= {8 * plane + bit for bit in range(8) if not stay >> bit & 1}
    return min(alive)


# ---- explaining -----------------------------------------------------------------------------------------------------
# The trees as in scoring, with the documents of each leaf beside them.


def known_value(tree: PlainTree, documents: Sequence[int], row: Sequence[float], known: set[int], node: int) -> float:
    """What a tree gives when only some features are known: elsewhere both children count, by their documents."""
    columns, thresholds, missing_left, left, right, values = tree
    if node < 0:
        return values[~node]
    if columns[node] in known:
        x = row[columns[node]]
        goes_left = missing_left[node] if isnan(x) else x <= thresholds[node]
        return known_value(tree, documents, row, known, (left if goes_left else right)[node])

    def below(child: int) -> int:
        return documents[~child] if child < 0 else below(left[child]) + below(right[child])

    here, there = below(left[node]), below(right[node])
    share = here / (here + there) if here + there else 0.5
    return share * known_value(tree, documents, row, known, left[node]) + (1 - share) * known_value(
        tree, documents, row, known, right[node]
    )


def explain_row(
    base_score: float, trees: Sequence[tuple[PlainTree, Sequence[int]]], row: Sequence[float]
) -> tuple[float, list[float]]:
    """The value of no known feature, and the Shapley value of each feature, over all subsets of the others."""
    n = len(row)

    def value(known: set[int]) -> float:
        return base_score + sum(known_value(t, d, row, known, 0 if t[0] else -1) for t, d in trees)

    shapley = [0.0] * n
    for feature in range(n):
        others = [f for f in range(n) if f != feature]
        for size in range(n):
            weight = factorial(size) * factorial(n - size - 1) / factorial(n)
            for subset in combinations(others, size):
                shapley[feature] += weight * (value({*subset, feature}) - value(set(subset)))
    return value(set()), shapley


# ---- clicks ---------------------------------------------------------------------------------------------------------


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


# ---- monotone constraints -------------------------------------------------------------------------------------------


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
