"""The scoring kernels against their plain twins, and against planted answers."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
import reference.scoring
from helpers.trees import THRESHOLDS, around, sparse
from hypothesis import given
from hypothesis import strategies as st

from lmart.kernels.row_arrays import contiguous_rows
from lmart.kernels.scoring import bit_vectors
from lmart.kernels.scoring.step_trees import StepTrees

UNTOUCHED = 77


def code(
    rows: list[dict[int, float]],
    thresholds: dict[int, list[float]],
    coded: list[tuple[int, int, bool]],
    absent: float,
    first: int = 0,
) -> list[list[int]]:
    """Run the kernel over features 0.., each with its thresholds; data columns are the features, in reverse.

    The first feature of the data is one that the model does not have.
    """
    n_features = len(thresholds)
    bits = [len(edges).bit_length() for edges in thresholds.values()]
    sizes = [2**n_bits - 1 for n_bits in bits]
    starts = np.concatenate([[0], np.cumsum(sizes)])[:n_features]
    grid = np.full(1 + sum(sizes), np.inf)
    for feature, edges in thresholds.items():
        grid[1 + starts[feature] : 1 + starts[feature] + len(edges)] = edges
    features = [column[0] for column in coded]
    absent_codes = reference.scoring.code_rows([{}], thresholds, coded, absent)[0]
    missing_codes = reference.scoring.code_rows([{}], thresholds, coded, math.nan)[0]
    cells = sparse([{n_features: 5.0} | {n_features - 1 - column: x for column, x in row.items()} for row in rows])
    codes = np.full((len(coded) + 1, bit_vectors.BLOCK_ROWS), UNTOUCHED, np.uint8)
    size = len(cells.columns) + bit_vectors.GAP * (n_features + 1)
    plan = bit_vectors.CodingPlan(
        starts.astype(np.uint32),
        np.array(bits, np.uint8),
        grid,
        np.searchsorted(features, np.arange(n_features + 1)).astype(np.uint32),
        np.array([column[1] for column in coded], np.uint32),
        np.array(missing_codes, np.uint8),
        np.array(absent_codes, np.uint8),
        np.full(len(coded), -1, np.int64),
        np.zeros(0, np.uint8),
    )
    buffers = bit_vectors.CellBuffers(
        np.full(n_features + 1, UNTOUCHED, np.uint32),
        np.full(size, np.nan),
        np.full(size, UNTOUCHED, np.uint32),
        np.full(size, UNTOUCHED, np.uint32),
    )
    column_map = np.append(np.arange(n_features - 1, -1, -1), -1).astype(np.int32)
    arrays = contiguous_rows(cells.offsets, cells.columns, cells.values)
    bit_vectors.code_rows(arrays, column_map, first, len(rows), plan, buffers, codes)
    assert (codes[-1] == UNTOUCHED).all()
    shown: list[list[int]] = codes[:-1, : len(rows) - first].T.tolist()
    return shown


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
    assert code(rows, thresholds, coded, absent, first) == reference.scoring.code_rows(
        rows[first:], thresholds, coded, absent
    )


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 8, 254, 255, 256, 511, 600])
def test_codes_stay_in_their_piece_of_many_thresholds(n: int) -> None:
    thresholds = {0: [0.5], 1: [float(i) for i in range(n)]}
    coded = [(0, 0, True), (1, 0, True), (1, 0, False), (1, 255, False), (1, 510, True)]
    rows = [{1: x} for x in around(thresholds[1])]
    for start in range(0, len(rows), bit_vectors.BLOCK_ROWS):
        block = rows[start : start + bit_vectors.BLOCK_ROWS]
        assert code(block, thresholds, coded, 0.0) == reference.scoring.code_rows(block, thresholds, coded, 0.0)


def test_planted_codes() -> None:
    assert code([{0: 1.0}, {0: 1.5}, {0: 2.0}, {0: 9.0}, {}], {0: [1.0, 2.0]}, [(0, 0, True)], 0.0) == [
        [0],
        [1],
        [1],
        [2],
        [0],
    ]


def mask_word(column: int, byte: int, flip: bool, code: int, mask: int) -> int:
    return column << 40 | byte << 17 | flip << 16 | code << 8 | mask


NO_STEPS = StepTrees(np.zeros(0, np.uint32), np.zeros(0, np.uint64), np.zeros(0))
LOWEST_BITS = np.array([0] + [(byte & -byte).bit_length() - 1 for byte in range(1, 256)], np.uint8)


def add(trees: list[tuple[list[tuple[int, int, bool, int, int]], list[float]]], codes: np.ndarray) -> list[float]:
    """Run the kernel over trees of (masks, leaf values), for codes[n_coded, BLOCK_ROWS], from sums of 0."""
    most = max(len(values) for _, values in trees)
    sums = np.zeros(bit_vectors.BLOCK_ROWS)
    n_bytes = -(-most // 8)
    masked = bit_vectors.MaskedTrees(
        np.cumsum([0, *(len(masks) for masks, _ in trees)]).astype(np.uint64),
        np.array([mask_word(*mask) for masks, _ in trees for mask in masks], np.uint64),
        np.cumsum([0, *(len(values) for _, values in trees)]).astype(np.uint64),
        np.array([value for _, values in trees for value in values]),
        LOWEST_BITS,
        n_bytes,
        NO_STEPS,
        0.0,
        False,
        1.0,
    )
    bit_vectors.add_trees(masked, codes, np.full((n_bytes, bit_vectors.BLOCK_ROWS), UNTOUCHED, np.uint8), sums)
    shown: list[float] = sums.tolist()
    return shown


def test_planted_masks() -> None:
    stump = ([(1, 0, False, 4, 0b11111110)], [-1.0, 2.0])
    flipped = ([(0, 0, True, 254 - 7, 0b11111110)], [100.0, 200.0])  # the leaf of `code > 7` comes first
    alone: tuple[list[tuple[int, int, bool, int, int]], list[float]] = ([], [10.0])
    codes = np.zeros((2, bit_vectors.BLOCK_ROWS), np.uint8)
    codes[:, :5] = [[7, 8, 7, 255, 0], [4, 5, 255, 0, 3]]
    assert add([stump, alone, flipped], codes)[:5] == [209.0, 112.0, 212.0, 109.0, 209.0]


@given(st.integers(0, 2**32), st.integers(1, 100))
def test_masks_equal_their_twin(seed: int, n_leaves: int) -> None:
    rng = random.Random(seed)
    n_bytes = -(-n_leaves // 8)
    trees = []
    for _ in range(3):
        masks = [
            (rng.randrange(3), rng.randrange(n_bytes), rng.random() < 0.5, rng.randrange(255), rng.randrange(256))
            for _ in range(rng.randrange(30))
        ]
        # one leaf always stays, as in a tree
        last = (n_leaves - 1) // 8
        stay = 1 << (n_leaves - 1) % 8
        masks = [(c, p, f, t, m | stay if p == last else m) for c, p, f, t, m in masks]
        trees.append((masks, [rng.uniform(-1, 1) for _ in range(n_leaves)]))
    codes = np.array([[rng.randrange(256) for _ in range(bit_vectors.BLOCK_ROWS)] for _ in range(3)], np.uint8)
    expected = []
    for document in range(bit_vectors.BLOCK_ROWS):
        total = 0.0
        for masks, values in trees:
            total += values[reference.scoring.first_leaf(masks, n_leaves, codes[:, document].tolist())]
        expected.append(total)
    assert add(trees, codes) == expected
