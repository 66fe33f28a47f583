"""Scores of binned rows."""

from __future__ import annotations

import numpy as np

from lmart.kernels.scoring.tree_walk import BinnedTree, walk_bins


def test_rows_reach_the_leaf_that_their_bins_lead_to() -> None:
    bins = np.array([[0, 1, 2, 3, 5], [1, 0, 0, 1, 1]], np.uint8)
    features, split_bins = np.array([0, 1], np.int32), np.array([1, 0], np.int32)
    missing_bins, missing_left = np.array([5, 2], np.uint8), np.array([True, False])
    left, right = np.array([1, -1], np.int32), np.array([-2, -3], np.int32)
    values = np.array([10.0, 20.0, 30.0])
    tree = BinnedTree(features, split_bins, missing_bins, missing_left, left, right, values)
    scores = np.ones(5)
    for start, stop in ((0, 3), (3, 5)):
        walk_bins(bins, tree, start, stop, scores)
    assert scores.tolist() == [31, 11, 21, 21, 31]
    stump = tree._replace(split_features=features[:0], left=left[:0], right=right[:0], leaf_values=values[:1])
    walk_bins(bins, stump, 0, 5, scores)
    assert scores.tolist() == [41, 21, 31, 31, 41]
