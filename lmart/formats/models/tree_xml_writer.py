"""Writes the XML of trees that RankLib and QuickRank share: one tag a line, as RankLib needs it."""

from __future__ import annotations

from collections.abc import Sequence

from lmart.scoring.ensemble import FlatTrees

DEEPEST_INDENT = 30  # tabs; deeper elements are not indented further, else chains of splits grow with their square


def tree_elements(
    flat: FlatTrees,
    features: Sequence[int],
    thresholds: Sequence[str],
    outputs: Sequence[str],
    indent: int,
) -> list[str]:
    """Return the <split> element of each tree, lines that end in a newline."""
    left, right = flat.left.tolist(), flat.right.tolist()
    node_offsets, leaf_offsets = flat.node_offsets.tolist(), flat.leaf_offsets.tolist()
    tabs = ["\t" * min(depth, DEEPEST_INDENT) for depth in range(DEEPEST_INDENT + 2)]
    openings = ("<split>\n", '<split pos="left">\n', '<split pos="right">\n')
    elements: list[str] = []
    for t in range(flat.n_trees):
        first_node, first_leaf = node_offsets[t], leaf_offsets[t]
        lines: list[str] = []
        is_leaf = node_offsets[t + 1] == first_node
        waiting = [(-1 if is_leaf else 0, indent, 0)]  # node or ~leaf, tabs, opening; CLOSE closes
        while waiting:
            child, depth, opening = waiting.pop()
            tab = tabs[min(depth, DEEPEST_INDENT)]
            if opening == CLOSE:
                lines.append(f"{tab}</split>\n")
                continue
            more = tabs[min(depth + 1, DEEPEST_INDENT)]
            if child < 0:
                lines.append(
                    f"{tab}{openings[opening]}{more}<output>{outputs[first_leaf + ~child]}</output>\n{tab}</split>\n"
                )
                continue
            node = first_node + child
            lines.append(
                f"{tab}{openings[opening]}{more}<feature>{features[node]}</feature>\n"
                f"{more}<threshold>{thresholds[node]}</threshold>\n"
            )
            waiting += ((0, depth, CLOSE), (right[node], depth + 1, 2), (left[node], depth + 1, 1))
        elements.append("".join(lines))
    return elements


CLOSE = -1
