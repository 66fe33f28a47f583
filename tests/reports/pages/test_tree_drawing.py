"""A drawn tree has all its conditions, values and documents, in the order of reading; a huge one is cut."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pytest
from helpers.trees import grow

from lmart.reports.model_summary import steps
from lmart.reports.pages.tree_drawing import MOST_BRANCHES, draw_tree
from lmart.scoring.ensemble import Ensemble, Tree


class Lists(HTMLParser):
    """Reads nested lists: the depth and the text of each entry."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.depth = 0
        self.entries: list[tuple[int, str]] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.depth += tag == "ul"
        if tag == "li":
            self.entries.append((self.depth - 1, ""))

    def handle_endtag(self, tag: str) -> None:
        self.depth -= tag == "ul"

    def handle_data(self, data: str) -> None:
        if self.entries:
            depth, text = self.entries[-1]
            self.entries[-1] = (depth, text + data)


def drawn(tree: Tree, names: tuple[str, ...] | None = None) -> list[tuple[int, str]]:
    lists = Lists(draw_tree(Ensemble((tree,), np.array([3, 8, 9]), names), tree))
    assert lists.depth == 0
    return [(depth, text.strip()) for depth, text in lists.entries]


def test_entries_are_nodes_and_leaves_in_the_order_of_reading() -> None:
    tree = grow(random.Random(4), 9, range(3), [0.5, 1.25, -2.0])
    tree = replace(tree, leaf_documents=np.arange(10, 19), leaf_values=np.linspace(-0.4, 0.7, 9))
    found = drawn(tree)
    expected = [step for step in steps(tree) if step.kind != "else"]
    assert [depth for depth, _ in found] == [step.depth for step in expected]
    for (_, text), step in zip(found, expected, strict=True):
        if step.kind == "if":
            name = (3, 8, 9)[tree.split_columns[step.number]]
            assert f"{name} <= {tree.thresholds[step.number]:g} " in text
        else:
            assert f"{tree.leaf_values[step.number]:+.4g} {10 + step.number} documents" in text


def test_ways_say_where_missing_values_go() -> None:
    tree = Tree(
        np.array([0, 1], np.int32),
        np.array([0.1234567, 9.0]),
        np.array([True, False]),
        np.array([1, -1], np.int32),
        np.array([-2, -3], np.int32),
        np.array([0.5, -0.25, 1e-17]),
        np.array([66.7786797, 2.0]),
        np.array([1000, 20, 300]),
    )
    assert drawn(tree, ("a<b>", "c", "d")) == [
        (0, "a<b> <= 0.123457 1,320 documents, gain 66.78"),
        (1, "yes, missing c <= 9 1,300 documents, gain 2"),
        (2, "yes  +0.5 1,000 documents"),
        (2, "no, missing  +1e-17 300 documents"),
        (1, "no  -0.25 20 documents"),
    ]
    assert "<b>" not in draw_tree(Ensemble((tree,), np.array([3, 8, 9]), ("a<b>", "c", "d")), tree)


def test_bars_go_by_the_largest_value() -> None:
    tree = grow(random.Random(4), 3, range(3), [0.5])
    tree = replace(tree, leaf_values=np.array([-0.2, 0.1, 0.0]))
    page = draw_tree(Ensemble((tree,), np.array([1, 2, 3])), tree)
    assert sorted(re.findall(r'class="(up|down)" style="width: ([\d.]+)%', page)) == [
        ("down", "50.0"),
        ("up", "0.0"),
        ("up", "25.0"),
    ]


@pytest.mark.parametrize("shape", ["chain", "level", "random"])
def test_a_huge_tree_is_cut_and_says_how_much_is_below(shape: str) -> None:
    tree = grow(random.Random(1), 3000, range(3), [0.5, 1.5], shape)
    found = drawn(tree)
    assert len(found) <= MOST_BRANCHES
    below = [int(n.replace(",", "")) for _, text in found for n in re.findall(r"([\d,]+) (?:leaf|leaves) below", text)]
    leaves = sum(bool(re.search(r"[-+][\d.e-]+$", unescape(text))) for _, text in found)
    assert below and sum(below) + leaves == 3000


def test_a_tree_of_one_leaf() -> None:
    tree = grow(random.Random(1), 1, range(3), [0.5])
    assert len(drawn(tree)) == 1
