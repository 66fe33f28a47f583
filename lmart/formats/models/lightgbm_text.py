"""LightGBM's text model, versions v2 to v4 (LightGBM 2.1 to 4), as save_model and its command line write it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lmart.array_types import Float64Array, Int32Array, Int64Array, UInt32Array
from lmart.errors import ModelError, quote
from lmart.formats.models.lightgbm_conditions import range_edges, read_conditions, set_ranges
from lmart.formats.models.lightgbm_header import Header, check_header, check_pandas, gain_of, list_columns, read_names
from lmart.formats.models.lightgbm_lines import Block, real_numbers, whole_numbers
from lmart.formats.models.lightgbm_text_writer import write
from lmart.formats.models.tree_building import build_trees, counts_to_offsets, swap_children
from lmart.scoring.ensemble import Ensemble, FlatTrees

__all__ = ["looks_like", "read", "write"]

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
    """Return the model that a file holds; `path` is what to call it in messages. ModelError when it is no sound one."""
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
    if any(part.categorical for part in parts):
        check_pandas(lines[rest:], path)
    names = read_names(head, lines[rest:], path)
    used = np.concatenate([part.split_feature for part in parts])
    features = list_columns(head, names, used, path)
    flat = _lay_out(parts, features.columns(used), path)
    gains = [part.split_gain for part in parts if part.split_gain is not None]
    counts = [part.leaf_count for part in parts if part.leaf_count is not None]
    whole = len(parts)
    trees = build_trees(
        flat,
        len(features.feature_ids),
        path,
        np.concatenate(gains) if len(gains) == whole else None,
        np.concatenate(counts) if len(counts) == whole else None,
    )
    return Ensemble(
        trees,
        features.feature_ids,
        features.feature_names,
        gain=gain_of(head, lines[rest:]),
        settings=head.facts(),
        average=head.average,
    )


def _check_whole(head: Header, blocks: list[Block], lines: list[bytes], rest: int, path: str) -> None:
    """Refuse a file that was cut: with fewer trees than tree_sizes lists, or ending in a line of the last one.

    head   : of the file
    blocks : the trees
    lines  : of the file
    rest   : the number of the line after the trees, counted from 0
    path   : of the file
    """
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
    tests = read_conditions(
        np.concatenate([part.threshold for part in parts]),
        np.concatenate([part.decision_type for part in parts]),
        categorical,
        path,
    )
    left = np.concatenate([part.left for part in parts]).astype(np.int32)
    right = np.concatenate([part.right for part in parts]).astype(np.int32)
    return FlatTrees(
        offsets,
        columns,
        tests.thresholds,
        tests.missing_left,
        *swap_children(left, right, tests.swapped),
        np.concatenate([part.leaf_value for part in parts]),
        counts_to_offsets(tests.bound_counts),
        tests.bounds,
    )


def _read_head(lines: list[bytes], path: str) -> tuple[Header, int]:
    """Return what stands before the first tree, and the number of its line, counted from 0."""
    found: dict[str, tuple[int, str]] = {}
    for number, line in enumerate(lines):
        if line.startswith(b"Tree=") or line.strip() == b"end of trees":
            return Header(found), number
        key, _, value = line.rstrip(b"\r").partition(b"=")
        try:
            known = key.decode().strip(" \t")
            text = value.decode()
        except UnicodeDecodeError:
            raise ModelError("this is no UTF-8 text; the model is damaged", path, number + 1) from None
        if known in found and known:
            raise ModelError(f"{quote(known, 30)} is given twice; the model is damaged", path, number + 1)
        found[known] = (number + 1, text)
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
    (n_leaves,) = whole_numbers(block, b"num_leaves", 1, path)
    if b"num_cat" not in block.lines:
        raise ModelError(
            f"tree {number} has no num_cat: the model is older than LightGBM 2.1, whose categorical splits are"
            " different; load it in LightGBM 2.1 to 4 and save it again",
            path,
            block.line,
        )
    (n_sets,) = whole_numbers(block, b"num_cat", 1, path)
    if b"is_linear" in block.lines and block.lines[b"is_linear"][1].strip() not in (b"0", b""):
        raise ModelError(
            f"tree {number} has linear models in its leaves (linear_tree), which lmart does not support; train it"
            " without linear_tree",
            path,
            block.lines[b"is_linear"][0],
        )
    if n_leaves < 1 or n_leaves > 1 + len(block.lines.get(b"left_child", (0, b""))[1]) or n_sets < 0:
        raise ModelError(
            f"tree {number} has {n_leaves} leaves and {n_sets} sets of categories; the model is damaged",
            path,
            block.line,
        )
    n = int(n_leaves) - 1
    leaf_value = real_numbers(block, b"leaf_value", n + 1, path)
    if n == 0:
        none = np.zeros(0, np.int64)
        return _Parts(none, np.zeros(0), none, none, none, leaf_value, np.zeros(0), _counts(block, 1, path), {})
    kinds = (
        whole_numbers(block, b"decision_type", n, path) if b"decision_type" in block.lines else np.zeros(n, np.int64)
    )
    if (kinds < -128).any() or (kinds > 255).any() or ((kinds >> 2) & 3 == 3).any():
        wrong = kinds[(kinds < -128) | (kinds > 255) | ((kinds >> 2) & 3 == 3)][0]
        raise ModelError(f"{wrong} is no decision_type; the model is damaged", path, block.lines[b"decision_type"][0])
    threshold = real_numbers(block, b"threshold", n, path)
    if np.isnan(threshold).any():
        raise ModelError("a threshold is nan; the model is damaged", path, block.lines[b"threshold"][0])
    left, right = whole_numbers(block, b"left_child", n, path), whole_numbers(block, b"right_child", n, path)
    if any((child < -(2**31)).any() or (child >= 2**31).any() for child in (left, right)):
        raise ModelError("a child is out of range; the model is damaged", path, block.lines[b"left_child"][0])
    return _Parts(
        whole_numbers(block, b"split_feature", n, path),
        threshold,
        kinds,
        left,
        right,
        leaf_value,
        real_numbers(block, b"split_gain", n, path) if b"split_gain" in block.lines else None,
        _counts(block, n + 1, path),
        _read_sets(block, int(n_sets), threshold, kinds, path) if (kinds & 1).any() else {},
    )


def _counts(block: Block, n: int, path: str) -> Int64Array | None:
    """Return leaf_count, None when the file has none or, as some versions write for one leaf, an empty one."""
    if not block.lines.get(b"leaf_count", (0, b""))[1].strip():
        return None
    return whole_numbers(block, b"leaf_count", n, path)


def _read_sets(
    block: Block, n_sets: int, threshold: Float64Array, kinds: Int64Array, path: str
) -> dict[int, Float64Array]:
    """Return the edges of the set of each categorical node."""
    line = block.lines.get(b"cat_boundaries", (block.line, b""))[0]
    if n_sets >= len(block.lines.get(b"cat_boundaries", (0, b""))[1]):
        raise ModelError(f"num_cat is {n_sets}, and cat_boundaries are not that many; the model is damaged", path, line)
    starts = whole_numbers(block, b"cat_boundaries", n_sets + 1, path)
    if (
        starts[0] != 0
        or (np.diff(starts) < 0).any()
        or starts[-1] > len(block.lines.get(b"cat_threshold", (0, b""))[1])
    ):
        raise ModelError("cat_boundaries do not ascend from 0; the model is damaged", path, line)
    words = whole_numbers(block, b"cat_threshold", int(starts[-1]), path)
    if (words < 0).any() or (words >= 2**32).any():
        raise ModelError("cat_threshold has a number beyond 32 bits", path, block.lines[b"cat_threshold"][0])
    bits: UInt32Array = words.astype(np.uint32)
    edges: dict[int, Float64Array] = {}
    found: dict[int, Float64Array] = {}
    for node in np.flatnonzero(kinds & 1).tolist():
        if not 0 <= threshold[node] < n_sets:
            raise ModelError(
                f"a categorical split has set {threshold[node]:g} of {n_sets}; the model is damaged",
                path,
                block.lines[b"threshold"][0],
            )
        number = int(threshold[node])
        if number not in edges:
            edges[number] = range_edges(set_ranges(bits[starts[number] : starts[number + 1]], path))
        found[node] = edges[number]
    return found
