"""Categories of pandas in models of LightGBM: a DataFrame's values are codes in the trees, and listed in the file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NoReturn

import numpy as np

from lmart.array_types import Int64Array
from lmart.data.categories import Categories
from lmart.data.feature_names import is_index
from lmart.errors import ModelError, counted
from lmart.formats.models.coded_categories import category_of_codes
from lmart.formats.models.json_text import shown
from lmart.formats.models.nodes import Features

REMEDY = "train it on whole numbers; if your data holds the codes, set pandas_categorical to null in the file"


def listed_in_text(rest: Sequence[bytes]) -> object:
    """Return what a text model lists as the categories of a DataFrame; None when it lists none.

    rest : the lines after the trees
    """
    for line in rest[:-12:-1]:
        if line.startswith(b"pandas_categorical:"):
            try:
                return json.loads(line.partition(b":")[2])
            except (ValueError, RecursionError):
                return None
    return None


def columns_in_text(infos: str, rest: Sequence[bytes]) -> list[int]:
    """Return the columns that are categories, by the settings of the training, else by feature_infos."""
    for line in rest:
        if line.startswith(b"[categorical_feature: "):
            words = line.strip()[len(b"[categorical_feature: ") : -1].decode("utf-8", "replace").split(",")
            if all(map(is_index, words)):
                return sorted(map(int, words))
    return [column for column, info in enumerate(infos.split()) if info != "none" and not info.startswith("[")]


def read_categories(
    listed: object, columns: Sequence[int], used: Int64Array, features: Features, path: str
) -> tuple[Categories, ...]:
    """Return the features whose values are codes in the trees; none where the codes are the values.

    listed  : the categories of each column of categories, in the order of the columns, as the file has them
    columns : which columns of the model are categories; empty: those of categorical splits
    used    : the columns of categorical splits

    ModelError when it is unclear which column has which categories, or one is neither a text nor a whole number.
    """

    def refuse(what: str) -> NoReturn:
        raise ModelError(f"the model splits on categories of a DataFrame (pandas_categorical), {what}; {REMEDY}", path)

    lists, columns = listed if isinstance(listed, list) else [], columns or np.unique(used).tolist()
    if all(isinstance(codes, list) and codes == list(range(len(codes))) for codes in lists):
        return ()
    if len(lists) != len(columns) and not len(used):
        return ()
    if len(lists) != len(columns) or not set(used.tolist()) <= set(columns):
        refuse(f"of which it lists {len(lists)} where {counted(len(columns), 'column')} of the model are categories")
    found = []
    for column, codes in zip(columns, lists, strict=True):
        if column not in features.feature_ids:
            continue
        place = int(features.columns(np.array([column]))[0])
        category = category_of_codes(place, codes) if isinstance(codes, list) else None
        if category is None:
            refuse(f"one of which has {shown(codes)}, not just texts or whole numbers, each once")
        found.append(category)
    return tuple(found)
