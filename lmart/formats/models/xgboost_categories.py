"""The sets of categories of XGBoost's models."""

from __future__ import annotations

import numpy as np

from lmart.array_types import Float64Array, Int64Array
from lmart.formats.models.thresholds import of_less32
from lmart.formats.models.xgboost_document import Document, length, number_array

MOST_CATEGORIES = 1 << 24  # of XGBoost


def category_edges32(numbers: Int64Array) -> Float64Array:
    """Return where the test of a set of categories changes sides: it holds above an odd number of edges, float64.

    numbers : int64, ascending, from 0 to below 2^24; category c is every value whose float32 is from c to below c + 1
    """
    if not len(numbers):
        return np.zeros(0)
    starts = np.ones(len(numbers), np.bool_)
    starts[1:] = np.diff(numbers) > 1
    ends = np.append(starts[1:], True)
    low, high = numbers[starts].astype(np.float32), (numbers[ends] + 1).astype(np.float32)
    edges: Float64Array = np.column_stack([of_less32(low), of_less32(high)]).ravel()
    return edges


def read_sets(model: Document, number: int) -> dict[int, Int64Array]:
    """Return the categories of each categorical node of a tree, counted from 0."""
    tree = model.trees[number]
    found = []
    for key in ("categories", "categories_nodes", "categories_segments", "categories_sizes"):
        part = tree.get(key)
        part = number_array(part) if isinstance(part, list) else part
        if not isinstance(part, np.ndarray) or part.dtype.kind not in "iu" or part.ndim != 1:
            model.refuse(f"tree {number + 1}: {key!r} is not there or no list of whole numbers; the model is damaged")
        found.append(part.astype(np.int64))
    categories, nodes, starts, sizes = found
    if not len(nodes) == len(starts) == len(sizes) or len(np.unique(nodes)) != len(nodes):
        model.refuse(f"tree {number + 1}: its sets of categories do not fit together; the model is damaged")
    outside = (starts < 0) | (sizes < 0) | (starts > len(categories)) | (sizes > len(categories) - starts)
    if outside.any() or int(sizes.sum()) > len(categories):
        model.refuse(f"tree {number + 1}: its sets of categories are longer than 'categories'; the model is damaged")
    if len(categories) and (categories.min() < 0 or categories.max() >= MOST_CATEGORIES):
        model.refuse(f"tree {number + 1}: a category is not from 0 to {MOST_CATEGORIES - 1}; the model is damaged")
    return {
        int(node): categories[start : start + size]
        for node, start, size in zip(nodes.tolist(), starts.tolist(), sizes.tolist(), strict=True)
    }


def check_encoding(model: Document) -> None:
    """Refuse categorical splits on numbers that stand for other values, which only a DataFrame shows."""
    described = model.model.get("cats")
    listed = described.get("enc") if isinstance(described, dict) else None
    for encoding in listed if isinstance(listed, list) else ():
        values = encoding.get("values") if isinstance(encoding, dict) else None
        if values is None or length(values) == 0:
            continue
        if length(values) < 0:
            model.refuse("'cats' is of a wrong kind; the model is damaged")
        same = [int(v) if isinstance(v, (int, np.integer)) else -1 for v in values] == list(range(len(values)))
        if not same or encoding.get("offsets") is not None:
            model.refuse(
                "the model splits on categories of a DataFrame, for which its file has codes ('cats'); train it on the"
                " codes, or, if your data holds the codes, save the model as .json and remove 'cats' there"
            )
