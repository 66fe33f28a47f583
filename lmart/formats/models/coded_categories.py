"""Categories of DataFrames in models of other tools: the trees split on codes, and the file lists what they mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from lmart.array_types import Float64Array
from lmart.data.categories import LARGEST, Categories
from lmart.errors import first_repeated
from lmart.formats.models.nodes import LARGEST_NUMBER
from lmart.scoring.ensemble import FlatTrees


def category_of_codes(column: int, listed: Sequence[object]) -> Categories | None:
    """Return a category whose values have the codes 0, 1, ...; None when they are no texts or whole numbers.

    column : position in Ensemble.feature_ids

    True and False are the texts that pandas writes for them. The code c has the number c + 1, less that of the value 0
    where it is one; values that training did not see are below all.
    """
    numbers = [int(value) for value in listed if isinstance(value, (int, float)) and _is_whole(value)]
    texts = [str(value) for value in listed if type(value) in (str, bool, int)]
    values = tuple(numbers) if len(numbers) == len(listed) else tuple(texts)
    if len(values) < len(listed) or first_repeated(values) is not None:
        return None
    return Categories(column, values, 0)


def _is_whole(value: float) -> bool:
    return type(value) is not bool and abs(value) <= LARGEST and value == int(value)


def on_numbers(flat: FlatTrees, categories: Sequence[Categories]) -> FlatTrees:
    """Return the trees with splits on the numbers of categories in place of their codes."""
    thresholds, bounds = flat.thresholds.copy(), flat.bounds.copy()
    node_of_bound = np.repeat(np.arange(len(thresholds)), np.diff(flat.bound_offsets))
    for each in categories:
        at = flat.split_columns == each.column
        thresholds[at] = _between(thresholds[at], each.unseen_number)
        bounds[at[node_of_bound]] = _between(bounds[at[node_of_bound]], each.unseen_number)
    return replace(flat, thresholds=thresholds, bounds=bounds)


def _between(edges: Float64Array, unseen: float) -> Float64Array:
    """Return edges between codes as edges between numbers."""
    codes = np.maximum(np.ceil(edges), 0.0)
    return np.where(edges == LARGEST_NUMBER, edges, codes + 0.5 + unseen)
