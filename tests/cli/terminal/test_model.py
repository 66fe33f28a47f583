"""A tree as nested conditions."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
from helpers.trees import grow

from lmart.cli.terminal.layout import Sheet, cells
from lmart.cli.terminal.model import tree_lines
from lmart.scoring.ensemble import Ensemble, RankerPart, Tree


def model(names: tuple[str, ...] | None = ("bm25", "clicks")) -> Ensemble:
    tree = Tree(
        np.array([0, 1], np.int32),
        np.array([0.1, 9.0]),
        np.array([True, False]),
        np.array([1, -1], np.int32),
        np.array([-2, -3], np.int32),
        np.array([0.5, -0.25, 1e-17]),
        np.array([66.7786797, 2.0]),
        np.array([1000, 20, 300]),
    )
    part = RankerPart(1, "yetirank", "leafwise", 3, 1.0, 0)
    return Ensemble((tree,), np.array([3, 8]), names, rankers=(part,))


def test_conditions_documents_and_gains() -> None:
    assert list(tree_lines(model(), 1, Sheet())) == [
        "tree 1 of 1, of ranker 1 (yetirank, leafwise): 3 leaves, depth 2",
        "",
        "if bm25 <= 0.1 or missing:  # 1,320 documents, gain 66.7787",
        "  if clicks <= 9:  # 1,300 documents, gain 2",
        "    score +0.5  # 1,000 documents",
        "  else (or missing):",
        "    score +1e-17  # 300 documents",
        "else:",
        "  score -0.25  # 20 documents",
    ]


def test_features_without_names_do_not_look_like_numbers() -> None:
    assert "if feature 3 <= 0.1 or missing:  # 1,320 documents, gain 66.7787" in list(
        tree_lines(model(None), 1, Sheet(40 + 40))
    )


def test_what_the_model_does_not_say_is_left_out() -> None:
    (tree,) = model().trees
    bare = replace(model(), trees=(replace(tree, split_gains=None, leaf_documents=None),), rankers=())
    assert list(tree_lines(bare, 1, Sheet()))[:5] == [
        "tree 1 of 1: 3 leaves, depth 2",
        "",
        "if bm25 <= 0.1 or missing:",
        "  if clicks <= 9:",
        "    score +0.5",
    ]


def test_ranges_of_further_bounds() -> None:
    (tree,) = model().trees
    for bounds, text in (
        ([1.0], "if bm25 <= 0.1 or bm25 > 1 or missing:"),
        ([1.0, 2.0], "if bm25 <= 0.1 or 1 < bm25 <= 2 or missing:"),
        ([1.0, 2.0, 3.0], "if bm25 <= 0.1 or 1 < bm25 <= 2 or bm25 > 3 or missing:"),
    ):
        offsets = np.array([0, len(bounds), len(bounds)])
        one = replace(tree, bounds=np.array(bounds), bound_offsets=offsets, split_gains=None, leaf_documents=None)
        assert list(tree_lines(replace(model(), trees=(one,)), 1, Sheet()))[2] == text


def test_on_a_narrow_terminal_names_are_shortened_and_remarks_stand_below() -> None:
    long = replace(model(), feature_names=("title_anchor_bm25_normalised_by_length", "clicks"))
    lines = list(tree_lines(long, 1, Sheet(40)))
    assert lines[3:5] == ["if title_an..y_length <= 0.1 or missing:", "  # 1,320 documents, gain 66.7787"]
    assert max(map(cells, lines)) <= 40


def test_a_leaf_alone() -> None:
    none = np.zeros(0, np.int32)
    tree = Tree(none, np.zeros(0), np.zeros(0, np.bool_), none, none, np.array([1.5]))
    lines = list(tree_lines(Ensemble((tree,), np.array([1])), 1, Sheet()))
    assert lines == ["tree 1 of 1: 1 leaf, depth 0", "", "score +1.5"]


def test_a_deep_tree_stops_being_indented() -> None:
    tree = grow(random.Random(0), 2001, [0], [0.5], "chain")
    lines = list(tree_lines(Ensemble((tree,), np.array([1])), 1, Sheet()))
    assert max(map(len, lines)) < 120
    assert any("[1999] if " in line for line in lines)
