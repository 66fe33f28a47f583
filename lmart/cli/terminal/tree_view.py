"""What `lmart show MODEL --tree N` prints: one tree as nested conditions."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from lmart.cli.terminal.layout import GAP, SHORTEST_NAME, Sheet, cells, paragraph, shortened
from lmart.errors import counted, visible
from lmart.formats.number_text import shortest
from lmart.reports.model_summary import node_bounds, ranker_of_tree
from lmart.reports.tree_shapes import Step, depths, node_documents, steps
from lmart.scoring.ensemble import Ensemble, Tree

INDENT = 2  # blanks for each level
DEEPEST = 24  # levels that are indented further; below that the level is written in front


def tree_lines(ensemble: Ensemble, number: int, sheet: Sheet) -> Iterator[str]:
    """Yield the lines of one tree: thresholds and leaf values in the shortest form that reads back equal.

    ensemble : the model
    number   : of the tree, from 1
    sheet    : what they are written on
    """
    tree = ensemble.trees[number - 1]
    title = f"tree {number:,} of {len(ensemble.trees):,}"
    if ensemble.rankers:
        ranker = ranker_of_tree(ensemble, number)
        part = ensemble.rankers[ranker - 1]
        title += f", of ranker {ranker} ({visible(part.objective)}, {visible(part.tree)})"
    size = f"{counted(tree.n_leaves, 'leaf', 'leaves')}, depth {int(depths([tree])[0])}"
    yield from (sheet.bold(line) for line in paragraph(f"{title}: {size}", sheet))
    yield ""
    documents = node_documents(tree)
    for step in steps(tree):
        indent = " " * (INDENT * min(step.depth, DEEPEST)) + (f"[{step.depth}] " if step.depth > DEEPEST else "")
        if step.kind == "if":
            room = None if sheet.width is None else sheet.width - len(indent)
            text = _condition(ensemble, tree, step.number, room)
        elif step.kind == "else":
            text = "else:" if tree.missing_left[step.number] else "else (or missing):"
        else:
            value = shortest(float(tree.leaf_values[step.number]))
            text = f"score {value}" if value.startswith("-") else f"score +{value}"
        yield from _line(indent, text, _remark(tree, documents, step), sheet)


def _remark(tree: Tree, documents: Sequence[int] | None, step: Step) -> str:
    """Return what is known of a node or leaf: its training documents, and what its split gained."""
    k = step.number
    known = []
    if step.kind == "if" and documents is not None:
        known.append(counted(documents[k], "document"))
    if step.kind == "if" and tree.split_gains is not None:
        known.append(f"gain {float(tree.split_gains[k]):.6g}")
    if step.kind == "leaf" and tree.leaf_documents is not None:
        known.append(counted(int(tree.leaf_documents[k]), "document"))
    return "# " + ", ".join(known) if known else ""


def _condition(ensemble: Ensemble, tree: Tree, node: int, room: int | None) -> str:
    """Return the condition under which a document goes left, with the name of the feature shortened to fit.

    ensemble : the model
    tree     : of the node
    node     : its number, from 0
    room     : columns; None: any number
    """
    column = int(tree.split_columns[node])
    name = visible(ensemble.feature_name(column))
    bounds, missing_left = node_bounds(tree, node), bool(tree.missing_left[node])
    if ensemble.feature_names is None:  # a bare index would look like a number, and is not to be shortened
        return _written(f"feature {name}", bounds, missing_left)
    text = _written(name, bounds, missing_left)
    over = 0 if room is None else cells(text) - room
    return (
        text if over <= 0 else _written(shortened(name, max(SHORTEST_NAME, cells(name) - over)), bounds, missing_left)
    )


def _written(name: str, bounds: Sequence[float], missing_left: bool) -> str:
    """Return a condition: an even number of the bounds are below the values that go left.

    name         : of the feature
    bounds       : threshold and further bounds, ascending
    missing_left : a missing value goes left
    """
    texts = [shortest(bound) for bound in bounds]
    ranges = [f"{name} <= {texts[0]}"]
    ranges += [f"{low} < {name} <= {high}" for low, high in zip(texts[1::2], texts[2::2], strict=False)]
    ranges += [f"{name} > {texts[-1]}"] if len(texts) % 2 == 0 else []
    return "if " + " or ".join([*ranges, *["missing"] * missing_left]) + ":"


def _line(indent: str, text: str, remark: str, sheet: Sheet) -> Iterator[str]:
    """Yield a line with its remark beside it, or below where there is no room; conditions too long go on below.

    indent : what stands in front
    text   : condition or leaf
    remark : '' for none
    sheet  : what it is written on
    """
    width = sheet.width
    if width is None or len(indent) + cells(text) + (GAP + len(remark) if remark else 0) <= width:
        yield indent + text + (" " * GAP + sheet.faint(remark) if remark else "")
        return
    further = " " * (len(indent) + 2 * INDENT)
    yield from textwrap.wrap(
        text,
        max(width, len(further) + SHORTEST_NAME),
        initial_indent=indent,
        subsequent_indent=further,
        break_long_words=False,
        break_on_hyphens=False,
    )
    if remark:
        yield further[INDENT:] + sheet.faint(remark)
