"""A quick reader for the usual layout of the XML of trees: one ensemble, elements in order, no comments.

It takes a file whole or not at all: where anything is unusual or wrong the XML parser reads the file, and says what.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from lmart.array_types import Float64Array

NUMBER = rb"\s*([-+0-9.eE]{1,40})\s*"
SPLIT = re.compile(
    rb"(<split(?: pos=\"(left|right)\")?>\s*(?:"
    rb"<feature>\s*([1-9][0-9]{0,8})\s*</feature>\s*<threshold>" + NUMBER + rb"</threshold>\s*"
    rb"|<output>" + NUMBER + rb"</output>\s*</split>((?:\s*</split>)*)\s*))"
)
TREE = re.compile(rb"\s*<tree id=\"[0-9]{1,9}\" weight=\"([-+0-9.eE]{1,40})\">\s*")
TREE_END = b"</tree>"


class TreeTexts(NamedTuple):
    """The trees of a file end to end, each from the root down; numbers as they are written, all of them numbers.

    node_offsets : n_trees + 1, as in FlatTrees
    features     : n_nodes, feature ids
    thresholds   : n_nodes
    left, right  : n_nodes, counted in each tree, as in Tree
    outputs      : n_leaves
    weights      : n_trees
    """

    node_offsets: list[int]
    features: list[int]
    thresholds: list[str]
    left: list[int]
    right: list[int]
    outputs: list[str]
    weights: list[str]


def numbers_of(texts: list[str]) -> Float64Array:
    """Return the float64 nearest to each text; ValueError when one is no number."""
    return np.array(list(map(float, texts)), np.float64)


def read_usual_layout(content: bytes, by_position: bool) -> tuple[TreeTexts, bytes] | None:
    """Return the trees and the content without them; None when the layout is not the usual one.

    content     : of the file
    by_position : the pos of a <split> does not matter; else the first must be the left one, and say so
    """
    begin, end = content.find(b"<ensemble>") + len(b"<ensemble>"), content.rfind(b"</ensemble>")
    if end < begin or content.count(b"ensemble") != 2 or b"<!" in content:
        return None
    found = TreeTexts([0], [], [], [], [], [], [])
    place = begin
    while head := TREE.match(content, place):
        stop = content.find(TREE_END, head.end())
        tokens = SPLIT.findall(content, head.end(), stop)
        if stop < 0 or sum(len(token[0]) for token in tokens) != stop - head.end():
            return None
        if not _add_tree(found, tokens, by_position):
            return None
        found.weights.append(head[1].decode())
        found.node_offsets.append(len(found.features))
        place = stop + len(TREE_END)
    if content[place:end].strip():
        return None
    try:
        for texts in (found.thresholds, found.outputs, found.weights):
            numbers_of(texts)
    except ValueError:
        return None
    return found, content[:begin] + content[end:]


def _add_tree(found: TreeTexts, tokens: list[tuple[bytes, ...]], by_position: bool) -> bool:
    """Add the tree whose splits and leaves come in this order, each before what it holds; whether it is one tree."""
    _, features, thresholds, left, right, outputs, _ = found
    first_node, first_leaf = len(features), len(outputs)
    waiting: list[int] = []  # nodes that are open, the innermost last
    for _, pos, feature, threshold, output, closed in tokens:
        child = ~(len(outputs) - first_leaf) if output else len(features) - first_node
        if waiting:
            parent = waiting[-1]
            side = right if left[parent] else left
            if side[parent] or not (by_position or pos == (b"left" if side is left else b"right")):
                return False
            side[parent] = child
        elif len(features) > first_node or len(outputs) > first_leaf:
            return False
        if not output:
            waiting.append(len(features))
            features.append(int(feature))
            thresholds.append(threshold.decode())
            left.append(0)
            right.append(0)
            continue
        outputs.append(output.decode())
        if closed:
            for _ in range(closed.count(b"/")):
                if not waiting or not right[waiting.pop()]:
                    return False
    return not waiting and bool(tokens)
