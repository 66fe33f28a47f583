"""A tree as nested lists that the style sheet draws: readable on a telephone and on paper, and by a screen reader."""

from __future__ import annotations

from typing import NamedTuple

from lmart.errors import counted
from lmart.reports.html_parts import number, text
from lmart.reports.model_summary import left_values, node_bounds, node_documents, ranges_text
from lmart.scoring.ensemble import Ensemble, Tree

MOST_BRANCHES = 300  # nodes and leaves of a drawing; what is below them is counted
MOST_LEVELS = 24
MOST_BOUNDS = 7  # of a condition
DIGITS = 6  # of a threshold


class _Drawing(NamedTuple):
    """A tree as it is drawn, with the documents of its nodes, and the largest leaf value without its sign."""

    ensemble: Ensemble
    tree: Tree
    documents: list[int] | None
    largest: float
    levels: int


def draw_tree(ensemble: Ensemble, tree: Tree) -> str:
    """Return a tree as HTML."""
    largest = max(map(abs, tree.leaf_values.tolist()), default=0.0)
    drawing = _Drawing(ensemble, tree, node_documents(tree), largest, _levels(tree))
    root = 0 if len(tree.thresholds) else -1
    label = "Tree: where a condition holds, a document goes on at yes, else at no; a leaf adds to the score"
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{text(label)}">\n'
        f'<ul class="tree">{_branch(drawing, root, "", 0)}</ul></div>\n'
    )


def _levels(tree: Tree) -> int:
    """Return how many levels of a tree are drawn."""
    level, drawn, depth = [0] if len(tree.thresholds) else [], 1, 0
    while level and depth < MOST_LEVELS:
        drawn += 2 * len(level)
        if depth and drawn > MOST_BRANCHES:
            break
        depth += 1
        level = [child for node in level for child in _children(tree, node) if child >= 0]
    return depth


def _children(tree: Tree, node: int) -> tuple[int, int]:
    return int(tree.left[node]), int(tree.right[node])


def _branch(drawing: _Drawing, child: int, way: str, depth: int) -> str:
    """Return the list entry of a node (from 0 up) or leaf (~leaf), below the branch that leads to it."""
    tree = drawing.tree
    at = f"<i>{way}</i> " if way else ""
    if child < 0:
        return f"<li>{at}{_leaf(drawing, ~child)}</li>\n"
    if depth == drawing.levels:
        return f"<li>{at}<i>{counted(_leaves_below(tree, child), 'leaf', 'leaves')} below</i></li>\n"
    bounds = node_bounds(tree, child)
    name = drawing.ensemble.feature_name(int(tree.split_columns[child]))
    rounded = [float(f"{bound:.{DIGITS}g}") for bound in bounds[:MOST_BOUNDS]]
    condition = ranges_text(name, rounded) + (" or ..." if len(bounds) > MOST_BOUNDS else "")
    if (left := left_values(drawing.ensemble, int(tree.split_columns[child]), bounds)) is not None:
        condition = left.text(name)
    remark = [] if drawing.documents is None else [counted(drawing.documents[child], "document")]
    remark += [] if tree.split_gains is None else [f"gain {float(tree.split_gains[child]):.4g}"]
    ways = ("yes, missing", "no") if tree.missing_left[child] else ("yes", "no, missing")
    below = "".join(
        _branch(drawing, below, to, depth + 1) for below, to in zip(_children(tree, child), ways, strict=True)
    )
    return f"<li>{at}{text(condition)} <i>{', '.join(remark)}</i>\n<ul>{below}</ul></li>\n"


def _leaf(drawing: _Drawing, leaf: int) -> str:
    """Return the value of a leaf with a bar for it, and its training documents."""
    value = float(drawing.tree.leaf_values[leaf])
    width = 50 * abs(value) / drawing.largest if drawing.largest > 0 else 0.0
    bar = (
        f'<span class="sway"><span class="{"up" if value >= 0 else "down"}" style="width: {width:.1f}%"></span></span>'
    )
    documents = drawing.tree.leaf_documents
    remark = "" if documents is None else f" <i>{counted(int(documents[leaf]), 'document')}</i>"
    return f"{bar} {number(value, '+.4g')}{remark}"


def _leaves_below(tree: Tree, node: int) -> int:
    n, waiting = 0, [node]
    while waiting:
        for child in _children(tree, waiting.pop()):
            n += child < 0
            waiting += [child] if child >= 0 else []
    return n
