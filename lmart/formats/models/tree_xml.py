"""The XML of trees that RankLib and QuickRank share, read and written.

<ensemble><tree id="1" weight="0.1"><split> holds <feature>, <threshold>, <split pos="left">, <split pos="right">, or
<output> alone in a leaf. Expat reads it, without document types, so that no entity can be declared.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple
from xml.parsers import expat

import numpy as np

from lmart.array_types import BoolArray, Float64Array, Int64Array
from lmart.errors import ModelError, counted, quote, visible
from lmart.formats.models.nodes import plain_trees, trees_of_leaves
from lmart.formats.models.thresholds import LONGEST, decimal_in
from lmart.scoring.ensemble import FlatTrees

DEEPEST = 100_000  # open elements; far beyond what readers that call themselves for each level can take
MOST_FEATURE = 2**31 - 1
LOWEST = re.compile(r"[ \t\r\n]*-inf(?:inity)?[ \t\r\n]*", re.IGNORECASE)
WHOLE = re.compile(r"[ \t\r\n]*[0-9]{1,12}[ \t\r\n]*")
MOST_INFO = 100  # elements of <info>
VALUES = ("feature", "threshold", "output")
ENVELOPE = "lmart-model"  # encloses all, so that a file may hold several ensembles

DONE = -1  # a leaf that has its output
NEW_BELOW = -2  # an open <split> that holds nothing yet is at or below this
NEW, LEFT, RIGHT = -2, -3, -4  # at its position in the file, at pos="left", at pos="right"

DEEPEST_INDENT = 30  # tabs; deeper elements are not indented further, else chains of splits grow with their square
CLOSE = -1  # an opening that closes a <split>


def numbers_of(texts: list[str]) -> Float64Array:
    """Return the float64 nearest to each text; ValueError when one is no number."""
    return np.array(list(map(float, texts)), np.float64)


class XmlTrees(NamedTuple):
    """The trees of a file end to end, each from the root down; numbers as they are written, all of them numbers.

    node_offsets   : n_trees + 1, as in FlatTrees
    features       : n_nodes, feature ids
    thresholds     : n_nodes
    left, right    : n_nodes, counted in each tree, as in Tree
    outputs        : n_leaves
    weights        : n_trees
    ensemble_sizes : trees of each <ensemble>
    info           : what <info> says, tag -> text
    """

    node_offsets: list[int]
    features: list[int]
    thresholds: list[str]
    left: list[int]
    right: list[int]
    outputs: list[str]
    weights: list[str]
    ensemble_sizes: list[int]
    info: dict[str, str]

    def lay_out(
        self, thresholds: Float64Array, missing_left: BoolArray, leaf_values: Float64Array
    ) -> tuple[FlatTrees, Int64Array]:
        """Return the trees, with numbers as the format means them, and their feature ids."""
        feature_ids, columns = np.unique(np.array(self.features, np.int64), return_inverse=True)
        offsets = np.array(self.node_offsets, np.int64)
        flat = plain_trees(offsets, columns, thresholds, missing_left, self.left, self.right, leaf_values)
        return flat, feature_ids

    @property
    def tree_of_leaf(self) -> Int64Array:
        """The tree of each leaf, int64[n_leaves]."""
        return trees_of_leaves(np.array(self.node_offsets, np.int64))


class _Handlers:
    """What expat calls; keeps one entry for each open <split>, so that depth costs no calls."""

    def __init__(self, path: str, by_position: bool) -> None:
        self.path = path
        self.by_position = by_position
        self.parser = expat.ParserCreate("UTF-8")
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.depth = 0
        self.text = ""
        self.in_info = self.in_ensemble = self.in_tree = self.in_value = False
        self.found = XmlTrees([0], [], [], [], [], [], [], [], {})
        _, self.features, self.thresholds, self.left, self.right, self.outputs, *_ = self.found
        self.open: list[int] = []  # of each open <split> its inner node, ~leaf (counted over all trees), or NEW
        self.first_node = self.first_leaf = 0  # of the open <tree>
        self._starts = {
            "split": self._start_split,
            "tree": self._start_tree,
            "ensemble": self._start_ensemble,
            "info": self._start_info,
        }
        self._ends = {
            "split": self._end_split,
            "feature": self._end_feature,
            "threshold": self._end_threshold,
            "output": self._end_output,
            "tree": self._end_tree,
            "ensemble": self._end_ensemble,
            "info": self._end_info,
        }

    def refuse(self, message: str) -> ModelError:
        """Return a refusal at the line that is being read."""
        return ModelError(message, self.path, self.parser.CurrentLineNumber)

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Take an opening tag."""
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.refuse(f"elements are nested more than {DEEPEST:,} deep; the model is damaged")
        if self.in_value:
            raise self.refuse(f"<{visible(tag[:30])}> is where a number should be; the model is damaged")
        begin = self._starts.get(tag)
        if begin is not None:
            begin(attributes)
            return
        if tag in VALUES:
            if not self.open:
                raise self.refuse(f"<{tag}> is in no <split>; the model is damaged")
            self.in_value = True
        elif self.in_ensemble:
            raise self.refuse(f"<{visible(tag[:30])}> is no element of an ensemble of trees")
        elif not self.in_info:
            return
        self.text = ""
        self.parser.CharacterDataHandler = self.take_text

    def take_text(self, text: str) -> None:
        """Take a piece of the text of a number, or of an element of <info>."""
        if len(self.text) <= LONGEST:
            self.text += text

    def end(self, tag: str) -> None:
        """Take a closing tag."""
        self.depth -= 1
        finish = self._ends.get(tag)
        if finish is not None:
            finish()
        elif self.in_info and len(self.found.info) < MOST_INFO:
            self.found.info[tag] = self.text.strip()
        if self.parser.CharacterDataHandler is not None:
            self.in_value = False
            self.parser.CharacterDataHandler = None

    def _start_ensemble(self, _: dict[str, str]) -> None:
        if self.in_ensemble:
            raise self.refuse("<ensemble> is in another <ensemble>; the model is damaged")
        self.in_ensemble = True
        self.found.ensemble_sizes.append(0)

    def _end_ensemble(self) -> None:
        self.in_ensemble = False

    def _start_info(self, _: dict[str, str]) -> None:
        self.in_info = True

    def _end_info(self) -> None:
        self.in_info = False

    def _start_tree(self, attributes: dict[str, str]) -> None:
        if not self.in_ensemble or self.in_tree:
            raise self.refuse("<tree> is not in an <ensemble>; the model is damaged")
        if "weight" not in attributes:
            raise self.refuse("<tree> has no weight; the model is damaged")
        self.in_tree = True
        self.found.weights.append(self.number(attributes["weight"], "the weight of a tree"))
        self.first_node, self.first_leaf = len(self.features), len(self.outputs)

    def _end_tree(self) -> None:
        if len(self.outputs) == self.first_leaf:
            raise self.refuse("<tree> has no <split>; the model is damaged")
        self.in_tree = False
        self.found.ensemble_sizes[-1] += 1
        self.found.node_offsets.append(len(self.features))

    def _start_split(self, attributes: dict[str, str]) -> None:
        if self.open:
            parent = self.inner("split")
            if self.by_position and not (self.features[parent] and self.thresholds[parent]):
                raise self.refuse("<split> comes before <feature> and <threshold>; RankLib takes them in this order")
        elif not self.in_tree or len(self.outputs) > self.first_leaf:
            raise self.refuse("<split> is in no <tree>, or the second in one; the model is damaged")
        self.open.append(NEW if self.by_position else LEFT if attributes.get("pos") == "left" else RIGHT)
        if not self.by_position and len(self.open) > 1 and attributes.get("pos") not in ("left", "right"):
            raise self.refuse(f"the pos of a <split> is {quote(attributes.get('pos', ''))}, not 'left' or 'right'")

    def inner(self, tag: str) -> int:
        """Return the inner node of the open <split>, a new one when `tag` is the first element in it."""
        node = self.open[-1]
        if node >= 0:
            return node
        if node > NEW_BELOW:
            raise self.refuse(f"<{tag}> is in the same <split> as <output>; the model is damaged")
        node = len(self.features)
        self.enter(node - self.first_node)
        self.open[-1] = node
        self.features.append(0)
        self.thresholds.append("")
        self.left.append(0)
        self.right.append(0)
        return node

    def enter(self, child: int) -> None:
        """Make a node or ~leaf, counted in its tree, the child of the <split> around it."""
        if len(self.open) == 1:
            return
        parent, side = self.open[-2], self.open[-1]
        if side == RIGHT or (side == NEW and self.left[parent]):
            children, name = self.right, "right"
        else:
            children, name = self.left, "left"
        if children[parent]:
            what = "more than two splits" if self.by_position else f"two splits at pos='{name}'"
            raise self.refuse(f"a <split> has {what}; the model is damaged")
        children[parent] = child

    def _end_split(self) -> None:
        node = self.open.pop()
        if node <= NEW_BELOW:
            raise self.refuse("a <split> is empty; the model is damaged")
        if node >= 0:
            if not self.features[node]:
                raise self.refuse("a <split> has no <feature>; the model is damaged")
            if not self.thresholds[node]:
                raise self.refuse("a <split> has no <threshold>; the model is damaged")
            if not (self.left[node] and self.right[node]):
                raise self.refuse("a <split> has not two splits in it; the model is damaged")

    def _end_feature(self) -> None:
        node = self.inner("feature")
        if self.features[node]:
            raise self.refuse("a <split> has two of <feature>; the model is damaged")
        if self.by_position and self.thresholds[node]:
            raise self.refuse("<threshold> comes before <feature>; RankLib takes them in the other order")
        if not WHOLE.fullmatch(self.text) or not 1 <= int(self.text) <= MOST_FEATURE:
            raise self.refuse(f"the feature {quote(self.text)} is not a whole number from 1 up")
        self.features[node] = int(self.text)

    def _end_threshold(self) -> None:
        node = self.inner("threshold")
        if self.thresholds[node]:
            raise self.refuse("a <split> has two of <threshold>; the model is damaged")
        is_lowest = LOWEST.fullmatch(self.text)
        self.thresholds[node] = self.text if is_lowest else self.number(self.text, "a threshold")

    def _end_output(self) -> None:
        if self.open[-1] > NEW_BELOW:
            raise self.refuse("<output> is in a <split> with other elements; the model is damaged")
        leaf = len(self.outputs)
        self.outputs.append(self.number(self.text, "an output"))
        self.enter(~(leaf - self.first_leaf))
        self.open[-1] = DONE

    def number(self, text: str, what: str) -> str:
        """Return the text of a decimal number, for RankLib without the letter of a Java type; refuse all else."""
        number = decimal_in(text, is_java=self.by_position)
        if number is None:
            raise self.refuse(f"{what} is {quote(text)}, not a finite number")
        return number


def parse_trees(content: bytes, path: str, by_position: bool) -> XmlTrees:
    """Return the trees of an XML text; ModelError in one line for everything that is wrong.

    by_position : the first <split> in a <split> is the left one, as in RankLib; else its pos decides, as in QuickRank
    """
    if re.search(rb"<!\s*(?:DOCTYPE|ENTITY)", content, re.IGNORECASE):
        raise ModelError("the XML has a document type (<!DOCTYPE), which no model needs; remove it", path)
    if b"<?xml" in content:
        content = re.sub(rb"<\?xml\b[^>]{0,200}\?>", lambda found: b"\n" * found[0].count(b"\n"), content)
    handlers = _Handlers(path, by_position)
    is_read = False
    try:
        handlers.parser.Parse(f"<{ENVELOPE}>".encode(), False)
        handlers.parser.Parse(content, False)
        is_read = True
        handlers.parser.Parse(f"</{ENVELOPE}>".encode(), True)
    except expat.ExpatError as fault:
        what = expat.ErrorString(fault.code)
        if is_read and handlers.depth > 1:
            raise ModelError("the model ends in the middle; the file was cut, copy it again", path) from None
        raise ModelError(f"this is not valid XML: {what}; the model is damaged", path, fault.lineno) from None
    if not handlers.found.ensemble_sizes:
        raise ModelError("there is no <ensemble> in it; the model is damaged", path)
    return handlers.found


def most_trees(said: int | None, found: XmlTrees, path: str) -> dict[str, int]:
    """Return the setting 'trees' where a model says more trees than the number found, as training stopped early.

    ModelError when it has more than it says.
    """
    there = len(found.weights)
    if said is not None and there > said:
        raise ModelError(f"the head says {counted(said, 'tree')}, but the model has {there:,}; correct the head", path)
    return {} if said is None or said == there else {"trees": said}


def tree_elements(
    flat: FlatTrees, features: Sequence[int], thresholds: Sequence[str], outputs: Sequence[str], indent: int
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
