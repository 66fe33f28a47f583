"""LightGBM's text model: v2 to v4 (LightGBM 2.1 to 4) are read; v4, which LightGBM 2.3 to 4 load, is written."""

from __future__ import annotations

import re
from typing import Any, NamedTuple, NoReturn, TypeVar

import numpy as np
import numpy.typing as npt

from lmart.array_types import Float64Array, Int32Array, Int64Array, UInt32Array
from lmart.errors import ModelError, counted, quote
from lmart.formats.format_records import WrittenModel
from lmart.formats.models.coded_categories import on_numbers
from lmart.formats.models.lightgbm.conditions import (
    CATEGORICAL,
    range_edges,
    read_conditions,
    set_ranges,
    set_words,
    visible_thresholds,
)
from lmart.formats.models.lightgbm.header import Header, check_header, facts, gain_of, linear_refusal, read_names
from lmart.formats.models.lightgbm.pandas_categories import columns_in_text, listed_in_text, read_categories
from lmart.formats.models.lightgbm.writing import WrittenEnsemble, WrittenTree, column_ranges, column_uses, prepare
from lmart.formats.models.nodes import build_trees, counts_to_offsets, list_features
from lmart.formats.models.targets import join_whole
from lmart.scoring.ensemble import Ensemble, FlatTrees

Number = TypeVar("Number", np.int64, np.float64)

# What may stand in a line of numbers; int() and float() then judge each of them.
WHOLE = re.compile(rb"[-+0-9 \t]*")
REAL = re.compile(rb"[-+0-9.einfaty \t]*", re.IGNORECASE)
AFTER_TREES = (
    b"end of trees",
    b"feature_importances:",
    b"feature importances:",
    b"parameters:",
    b"pandas_categorical:",
)
SEEN = 4096  # bytes within which a model says that it is one


def looks_like(start: bytes) -> bool:
    """Return whether the first bytes of a file are those of a text model of LightGBM."""
    lines = start[:SEEN].removeprefix(b"\xef\xbb\xbf").replace(b"\r", b"\n").split(b"\n")
    keys = {line.split(b"=", 1)[0] for line in lines if b"=" in line}
    first = next((line.strip() for line in lines if line.strip()), b"")
    return first == b"tree" or {b"num_class", b"max_feature_idx"} <= keys


class Block(NamedTuple):
    """The lines of one tree by key, with the number of the line where it starts."""

    line: int
    lines: dict[bytes, tuple[int, bytes]]

    def text(self, key: bytes) -> bytes:
        """Return the text of a key, empty without it."""
        return self.lines.get(key, (0, b""))[1]


class _Parts(NamedTuple):
    """The arrays of one tree as the file has them; leaves count from 0, children as in `Tree`."""

    split_feature: Int64Array
    threshold: Float64Array
    decision_type: Int64Array
    left: Int64Array
    right: Int64Array
    leaf_value: Float64Array
    split_gain: Float64Array | None
    leaf_count: Int64Array | None
    categorical: dict[int, Float64Array]


def read(content: bytes, path: str) -> Ensemble:
    """Return the model that a file holds; ModelError when it is no sound one."""
    if not content.strip():
        raise ModelError("the file is empty", path)
    lines = content.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").split(b"\n")
    head, start = _read_head(lines, path)
    check_header(head, path)
    blocks, rest = _read_blocks(lines, start, path)
    if not blocks:
        raise ModelError("the model has no tree; the file was cut, copy it again", path)
    _check_whole(head, blocks, lines, rest, path)
    parts = [_read_tree(number, block, path) for number, block in enumerate(blocks, 1)]
    names = read_names(head, lines[rest:], path)
    used = np.concatenate([part.split_feature for part in parts])
    features = list_features(len(names), names, used, "Column_", path)
    flat = _lay_out(parts, features.columns(used), path)
    of_sets = np.concatenate([part.split_feature[list(part.categorical)] for part in parts])
    columns = columns_in_text(head.text("feature_infos") or "", lines[rest:])
    categories = read_categories(listed_in_text(lines[rest:]), columns, of_sets, features, path)
    flat = on_numbers(flat, categories)
    gains = [part.split_gain for part in parts if part.split_gain is not None]
    counts = [part.leaf_count for part in parts if part.leaf_count is not None]
    trees = build_trees(
        flat,
        len(features.feature_ids),
        path,
        np.concatenate(gains) if len(gains) == len(parts) else None,
        np.concatenate(counts) if len(counts) == len(parts) else None,
    )
    return Ensemble(
        trees,
        features.feature_ids,
        features.feature_names,
        gain=gain_of(head, lines[rest:]),
        settings=facts(head.text("version"), head.text("objective")),
        average="average_output" in head.found,
        categories=categories,
    )


def _check_whole(head: Header, blocks: list[Block], lines: list[bytes], rest: int, path: str) -> None:
    """Refuse a file that was cut: with fewer trees than tree_sizes lists, or ending in a line of the last one."""
    sizes = head.text("tree_sizes")
    if sizes is None:
        return
    listed = len(sizes.split())
    if len(blocks) < listed:
        raise ModelError(
            f"the model has {len(blocks):,} of the {listed:,} trees that tree_sizes lists; the file was cut, copy it"
            " again",
            path,
        )
    if rest == len(lines) and lines[-1].strip():
        raise ModelError("the last line has no end; the file was cut, copy it again", path, len(lines))


def _lay_out(parts: list[_Parts], columns: Int32Array, path: str) -> FlatTrees:
    """Return the trees laid end to end, their tests as conditions on raw values."""
    offsets = counts_to_offsets([len(part.threshold) for part in parts])
    categorical = {
        int(start) + node: edges
        for start, part in zip(offsets[:-1], parts, strict=True)
        for node, edges in part.categorical.items()
    }

    def joined(name: str) -> npt.NDArray[Any]:
        """Return one array of all trees end to end."""
        return np.concatenate([getattr(part, name) for part in parts])

    tests = read_conditions(joined("threshold"), joined("decision_type"), categorical, path)
    return tests.lay_out(offsets, columns, joined("left"), joined("right"), joined("leaf_value"))


def _read_head(lines: list[bytes], path: str) -> tuple[Header, int]:
    """Return what stands before the first tree, and the number of its line, counted from 0."""
    found: dict[str, tuple[int, str]] = {}
    for number, line in enumerate(lines):
        if line.startswith(b"Tree=") or line.strip() == b"end of trees":
            return Header(found), number
        key, _, value = line.rstrip(b"\r").partition(b"=")
        try:
            name, text = key.decode().strip(" \t"), value.decode()
        except UnicodeDecodeError:
            raise ModelError("this is no UTF-8 text; the model is damaged", path, number + 1) from None
        if name in found and name:
            raise ModelError(f"{quote(name, 30)} is given twice; the model is damaged", path, number + 1)
        found[name] = (number + 1, text)
    return Header(found), len(lines)


def _read_blocks(lines: list[bytes], start: int, path: str) -> tuple[list[Block], int]:
    """Return the trees, and the number of the line after them, counted from 0."""
    blocks: list[Block] = []
    for number in range(start, len(lines)):
        line = lines[number].rstrip()
        if line.startswith(AFTER_TREES):
            return blocks, number
        if line.startswith(b"Tree="):
            if line[5:].strip() != b"%d" % len(blocks):
                raise ModelError(
                    f"this is {quote(line, 30)} where tree {len(blocks)} is due; the model is damaged", path, number + 1
                )
            blocks.append(Block(number + 1, {}))
        elif line and blocks:
            _add_line(blocks[-1], line, number + 1, path)
    return blocks, len(lines)


def _add_line(block: Block, line: bytes, number: int, path: str) -> None:
    """Add a line of a tree; `number` counts from 1."""
    key, equals, value = line.partition(b"=")
    if not equals:
        raise ModelError(f"this is {quote(line, 30)} where KEY=VALUE is due; the model is damaged", path, number)
    if key in block.lines:
        raise ModelError(f"{quote(key, 30)} is given twice; the model is damaged", path, number)
    block.lines[key] = number, value


def _read_tree(number: int, block: Block, path: str) -> _Parts:
    """Return the arrays of one tree; `number` counts from 1."""

    def refuse(words: str, key: bytes | None = None) -> NoReturn:
        """Raise ModelError at the line of a key, or where the tree starts."""
        raise ModelError(words, path, block.line if key is None else block.lines[key][0])

    def whole(key: bytes, size: int) -> Int64Array:
        """Return the whole numbers of a key."""
        return _numbers(block, key, size, np.int64, path)

    (n_leaves,) = whole(b"num_leaves", 1).tolist()
    if b"num_cat" not in block.lines:
        refuse(
            f"tree {number} has no num_cat: the model is older than LightGBM 2.1, whose categorical splits are"
            " different; load it in LightGBM 2.1 to 4 and save it again"
        )
    (n_sets,) = whole(b"num_cat", 1).tolist()
    if block.text(b"is_linear").strip() not in (b"0", b""):
        refuse(linear_refusal(number), b"is_linear")
    if n_leaves < 1 or n_leaves > 1 + len(block.text(b"left_child")) or n_sets < 0:
        refuse(f"tree {number} has {n_leaves} leaves and {n_sets} sets of categories; the model is damaged")
    n = n_leaves - 1
    leaf_value = _numbers(block, b"leaf_value", n + 1, np.float64, path)
    # Some versions write an empty leaf_count for one leaf.
    leaf_count = whole(b"leaf_count", n + 1) if block.text(b"leaf_count").strip() else None
    if n == 0:
        none = np.zeros(0, np.int64)
        return _Parts(none, np.zeros(0), none, none, none, leaf_value, np.zeros(0), leaf_count, {})
    kinds = whole(b"decision_type", n) if b"decision_type" in block.lines else np.zeros(n, np.int64)
    wrong = kinds[(kinds < -128) | (kinds > 255) | ((kinds >> 2) & 3 == 3)]
    if len(wrong):
        refuse(f"{wrong[0]} is no decision_type; the model is damaged", b"decision_type")
    threshold = _numbers(block, b"threshold", n, np.float64, path)
    if np.isnan(threshold).any():
        refuse("a threshold is nan; the model is damaged", b"threshold")
    left, right = whole(b"left_child", n), whole(b"right_child", n)
    if any((child < -(2**31)).any() or (child >= 2**31).any() for child in (left, right)):
        refuse("a child is out of range; the model is damaged", b"left_child")
    return _Parts(
        whole(b"split_feature", n),
        threshold,
        kinds,
        left,
        right,
        leaf_value,
        _numbers(block, b"split_gain", n, np.float64, path) if b"split_gain" in block.lines else None,
        leaf_count,
        _read_sets(block, n_sets, threshold, kinds, path) if (kinds & CATEGORICAL).any() else {},
    )


def _read_sets(
    block: Block, n_sets: int, threshold: Float64Array, kinds: Int64Array, path: str
) -> dict[int, Float64Array]:
    """Return the edges of the set of each categorical node."""
    line = block.lines.get(b"cat_boundaries", (block.line, b""))[0]
    if n_sets >= len(block.text(b"cat_boundaries")):
        raise ModelError(f"num_cat is {n_sets}, and cat_boundaries are not that many; the model is damaged", path, line)
    starts = _numbers(block, b"cat_boundaries", n_sets + 1, np.int64, path)
    if starts[0] != 0 or (np.diff(starts) < 0).any() or starts[-1] > len(block.text(b"cat_threshold")):
        raise ModelError("cat_boundaries do not ascend from 0; the model is damaged", path, line)
    words = _numbers(block, b"cat_threshold", int(starts[-1]), np.int64, path)
    if (words < 0).any() or (words >= 2**32).any():
        raise ModelError("cat_threshold has a number beyond 32 bits", path, block.lines[b"cat_threshold"][0])
    bits: UInt32Array = words.astype(np.uint32)
    edges: dict[int, Float64Array] = {}
    found: dict[int, Float64Array] = {}
    for node in np.flatnonzero(kinds & CATEGORICAL).tolist():
        if not 0 <= threshold[node] < n_sets:
            what = f"a categorical split has set {threshold[node]:g} of {n_sets}; the model is damaged"
            raise ModelError(what, path, block.lines[b"threshold"][0])
        number = int(threshold[node])
        if number not in edges:
            edges[number] = range_edges(set_ranges(bits[starts[number] : starts[number + 1]], path))
        found[node] = edges[number]
    return found


def _numbers(block: Block, key: bytes, n: int, dtype: type[Number], path: str) -> npt.NDArray[Number]:
    """Return the n numbers of a key, [n]; inf and nan are real numbers here."""
    if key not in block.lines:
        raise ModelError(f"the tree has no {key.decode()}; the model is damaged", path, block.line)
    line, text = block.lines[key]
    is_whole = dtype is np.int64
    allowed = WHOLE if is_whole else REAL
    words = text.split()
    try:
        if not allowed.fullmatch(text):
            raise ValueError
        found: npt.NDArray[Number] = np.array(list(map(int if is_whole else float, words)), dtype)
    except (ValueError, OverflowError):
        wrong = next((word for word in words if not _is_number(word, is_whole)), text)
        meant = "a whole number in range" if is_whole else "a number"
        what = f"{key.decode()} holds {quote(wrong, 30)}, which is not {meant}; the model is damaged"
        raise ModelError(what, path, line) from None
    if len(found) != n:
        raise ModelError(f"{key.decode()} has {len(found)} numbers, {n} are due; the model is damaged", path, line)
    return found


def _is_number(word: bytes, is_whole: bool) -> bool:
    """Return whether a word of a line is a number in range."""
    try:
        number = int(word) if is_whole else float(word)
    except ValueError:
        return False
    return (WHOLE if is_whole else REAL).fullmatch(word) is not None and not (is_whole and abs(number) >= 2**63)


def write(ensemble: Ensemble) -> WrittenModel:
    """Return the model as LightGBM's text format; LightGBM's scores equal those of the ensemble bit for bit.

    Exceptions are in the notes: values up to 1e-35, which LightGBM takes as 0, float32 sums, and absent indices.
    """
    model = prepare(ensemble, is_text=True)
    numeric = [tree.thresholds[tree.decision_types > 7] for tree in model.trees]
    close = sum(int(np.count_nonzero(visible_thresholds(numbers) != numbers)) for numbers in numeric)
    notes = model.notes
    if close:
        notes.insert(
            0,
            f"{counted(close, 'threshold')} between -1e-35 and 1e-35: LightGBM takes values that near to 0 as 0, so"
            " only such values could change side",
        )
    if any(tree.leaf_documents is None for tree in ensemble.trees):
        notes.append(
            "how many documents each leaf has is not known, so LightGBM can score with the model, but its pred_contrib"
            " has no meaning"
        )
    blocks = [f"Tree={number}\n{_tree_text(tree)}\n\n" for number, tree in enumerate(model.trees)]
    sizes = " ".join(str(len(block.encode())) for block in blocks)
    head, tail = _head_text(model, ensemble), _tail_text(model, ensemble.gain)
    text = f"{head}tree_sizes={sizes}\n\n{''.join(blocks)}end of trees\n\n{tail}"
    return WrittenModel(text.encode(), tuple(notes))


def _head_text(model: WrittenEnsemble, ensemble: Ensemble) -> str:
    """Return the lines before the sizes of the trees."""
    infos = [
        "none"
        if found is None
        else f"[{found[0]!r}:{found[1]!r}]"
        if isinstance(found, tuple)
        else ":".join(map(str, found.tolist()))
        for found in column_ranges(model)
    ]
    lines = [
        "tree",
        "version=v4",
        "num_class=1",
        "num_tree_per_iteration=1",
        "label_index=0",
        f"max_feature_idx={len(model.names) - 1}",
        f"objective={model.objective}",
        *(["average_output"] if ensemble.average else []),
        f"feature_names={' '.join(model.names)}",
        f"feature_infos={' '.join(infos)}",
    ]
    return "\n".join(lines) + "\n"


def _tail_text(model: WrittenEnsemble, gain: str | None) -> str:
    """Return the lines after the trees: how many splits each feature has, and the few settings that still count.

    Without a known gain there are no settings, as LightGBM would take its own for it.
    """
    uses = column_uses(model)
    order = [int(column) for column in np.argsort(-uses, kind="stable") if uses[column]]
    importances = "".join(f"{model.names[column]}={uses[column]}\n" for column in order)
    table, settings = "", ""
    if gain not in (None, "exp2"):
        table = f"[label_gain: {','.join(map(str, range(32))) if gain == 'linear' else gain}]\n"
    if gain is not None:
        settings = f"parameters:\n[objective: {model.objective}]\n{table}\nend of parameters\n\n"
    return f"feature_importances:\n{importances}\n{settings}pandas_categorical:null\n"


def _tree_text(tree: WrittenTree) -> str:
    """Return the lines of one tree after its number."""
    lines = [f"num_leaves={len(tree.leaf_values)}", f"num_cat={len(tree.sets)}"]

    def add(key: str, numbers: Float64Array | Int64Array) -> None:
        """Add the line of a key."""
        lines.append(f"{key}={' '.join(map(repr, numbers.tolist()))}")

    if len(tree.columns):
        add("split_feature", tree.columns)
        if tree.split_gains is not None:
            add("split_gain", tree.split_gains)
        thresholds = list(map(repr, tree.thresholds.tolist()))
        for node in np.flatnonzero(tree.decision_types == CATEGORICAL).tolist():
            thresholds[node] = str(int(tree.thresholds[node]))
        lines.append(f"threshold={' '.join(thresholds)}")
        add("decision_type", tree.decision_types)
        add("left_child", tree.left)
        add("right_child", tree.right)
    add("leaf_value", tree.leaf_values)
    if tree.leaf_counts is not None and tree.internal_counts is not None:
        add("leaf_count", tree.leaf_counts)
        if len(tree.columns):
            add("internal_count", tree.internal_counts)
    if tree.sets:
        words = [set_words(ranges) for ranges in tree.sets]
        add("cat_boundaries", counts_to_offsets([len(part) for part in words]))
        lines.append(f"cat_threshold={join_whole(np.concatenate(words).astype(np.int64), ' ')}")
    lines += ["is_linear=0", "shrinkage=1"]
    return "\n".join(lines) + "\n"
