"""The scoring kernels against their plain twins, and against planted answers."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from trees import THRESHOLDS, around, sparse

from lmart.kernels import scoring

UNTOUCHED = 77


def code(
    rows: list[dict[int, float]],
    thresholds: dict[int, list[float]],
    coded: list[tuple[int, int, bool]],
    absent: float,
    first: int = 0,
) -> list[list[int]]:
    """Run the kernel over features 0.., each with its thresholds; data columns are the features, in reverse."""
    n_features = len(thresholds)
    sizes = [2 ** len(one).bit_length() - 1 for one in thresholds.values()] + [0]
    starts = np.concatenate([[0], np.cumsum(sizes)])[: n_features + 1]
    grid = np.full(1 + sum(sizes), np.inf)
    for feature, one in thresholds.items():
        grid[1 + starts[feature] : 1 + starts[feature] + len(one)] = one
    features = [one[0] for one in coded]
    absent_codes = reference.code_rows([{}], thresholds, coded, absent)[0]
    missing_codes = reference.code_rows([{}], thresholds, coded, math.nan)[0]
    cells = sparse([{n_features - 1 - column: x for column, x in row.items()} for row in rows])
    codes = np.full((len(rows) - first + 1, len(coded)), UNTOUCHED, np.uint8)
    scoring.code_rows(
        cells.offsets,
        cells.columns,
        cells.values,
        np.arange(n_features - 1, -1, -1, dtype=np.int32),
        starts.astype(np.uint32),
        np.array(sizes, np.uint32),
        grid,
        np.searchsorted(features, np.arange(n_features + 2)).astype(np.uint32),
        np.array([one[1] for one in coded], np.uint32),
        np.array(missing_codes, np.uint8),
        np.array(absent_codes, np.uint8),
        first,
        len(rows),
        codes,
    )
    assert (codes[-1] == UNTOUCHED).all()
    shown: list[list[int]] = codes[:-1].tolist()
    return shown


@settings(deadline=None)
@given(
    st.lists(st.sets(st.sampled_from(THRESHOLDS)), min_size=1, max_size=6),
    st.data(),
    st.sampled_from([0.0, 1.0, math.nan]),
)
def test_codes_equal_the_count_of_thresholds_below(grids: list[set[float]], data: st.DataObject, absent: float) -> None:
    thresholds = {feature: sorted(grid) for feature, grid in enumerate(grids)}
    column = st.tuples(st.sampled_from(list(thresholds)), st.integers(0, 5), st.booleans())
    coded = sorted(data.draw(st.lists(column, max_size=8)))
    cells = st.dictionaries(st.sampled_from(list(thresholds)), st.sampled_from(around(THRESHOLDS)))
    rows = data.draw(st.lists(cells, max_size=5))
    first = data.draw(st.integers(0, len(rows)))
    assert code(rows, thresholds, coded, absent, first) == reference.code_rows(rows[first:], thresholds, coded, absent)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 8, 254, 255, 256, 511, 600])
def test_codes_stay_in_their_piece_of_many_thresholds(n: int) -> None:
    thresholds = {0: [0.5], 1: [float(i) for i in range(n)]}
    coded = [(0, 0, True), (1, 0, True), (1, 0, False), (1, 255, False), (1, 510, True)]
    rows = [{1: x} for x in around(thresholds[1])]
    assert code(rows, thresholds, coded, 0.0) == reference.code_rows(rows, thresholds, coded, 0.0)


def test_planted_codes() -> None:
    assert code([{0: 1.0}, {0: 1.5}, {0: 2.0}, {0: 9.0}, {}], {0: [1.0, 2.0]}, [(0, 0, True)], 0.0) == [
        [0],
        [1],
        [1],
        [2],
        [0],
    ]


def word(left: int, column: int, code: int) -> int:
    return left << 32 | column << 8 | code


def walk(
    words: list[int], values: list[float], codes: list[list[int]], roots: list[int], start: float = 0.0
) -> list[float]:
    n = len(codes)
    padded = np.zeros((-(-n // 8) * 8, len(codes[0])), np.uint8)
    padded[:n] = codes
    padded[n:] = 255
    sums = np.full(len(padded), start)
    scoring.walk_trees(np.array(roots, np.uint64), np.array(words, np.uint64), np.array(values), padded, n, sums)
    shown: list[float] = sums[:n].tolist()
    return shown


def test_planted_walk() -> None:
    words = [word(1, 1, 4), word(1, 0, 255), word(2, 0, 255), word(3, 0, 255)]
    values = [0.0, -1.0, 2.0, 10.0]
    codes = [[0, 4], [0, 5], [9, 255], [9, 0]] * 5
    assert walk(words, values, codes, [0, 3], 0.5) == [9.5, 12.5, 12.5, 9.5] * 5


@settings(deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 40), st.integers(1, 20))
def test_walk_equals_its_twin(seed: int, n_leaves: int, n: int) -> None:
    rng = random.Random(seed)
    words: list[int] = []
    roots = []
    for _ in range(3):
        roots.append(len(words))
        words.append(-1)
        leaves = [len(words) - 1]
        for _ in range(n_leaves - 1):
            place = leaves.pop(rng.randrange(len(leaves)))
            words[place] = word(len(words), rng.randrange(3), rng.randrange(255))
            leaves += [len(words), len(words) + 1]
            words += [-1, -1]
        for place in leaves:
            words[place] = word(place, 0, 255)
    values = [rng.uniform(-1, 1) for _ in words]
    codes = [[rng.randrange(256) for _ in range(3)] for _ in range(n)]
    assert walk(words, values, codes, roots) == [reference.walk_words(roots, words, values, row) for row in codes]
