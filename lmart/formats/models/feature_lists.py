"""What a model lists as its features when its tool counts columns from 0, and gives names to columns by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lmart.array_types import Int32Array, Int64Array
from lmart.errors import ModelError, first_repeated, quote

MOST_LISTED = 1_000_000  # features that a model lists only because the file says how many there are


class Features(NamedTuple):
    """What a model lists as its features: the fields of Ensemble of the same names."""

    feature_ids: Int64Array
    feature_names: tuple[str, ...] | None

    def columns(self, ids: Int64Array) -> Int32Array:
        """Return the column of each id, int32[n]; every id must be listed."""
        return np.searchsorted(self.feature_ids, ids).astype(np.int32)


def list_features(
    n_columns: int, names: Sequence[str] | None, used: Int64Array, default: str | None, path: str
) -> Features:
    """Return the features of a tool that counts its columns from 0: column j is the feature with id j.

    n_columns : of the model
    names     : n_columns names, None or empty without any; names that are all as the tool gives them by itself, or just
                numbers of columns, are no names
    used      : the columns that splits use; without names, column 0 is no feature when it is not among them
    default   : how the tool names columns by itself, such as 'Column_'; None when it does not
    path      : what to call the file in messages

    ModelError when a split is on a column that there is not, or two features have the same name.
    """
    used = np.unique(used)
    if len(used) and (used[0] < 0 or used[-1] >= n_columns):
        wrong = used[-1] if used[-1] >= n_columns else used[0]
        raise ModelError(f"a split is on column {wrong}, and the model has {n_columns}; the model is damaged", path)
    if not names:
        ids = np.arange(n_columns, dtype=np.int64) if n_columns <= MOST_LISTED else used
        return Features(ids[1:] if len(ids) and ids[0] == 0 and 0 not in used[:1] else ids, None)
    numbered = ("",) if default is None else ("", default)
    if all(any(name == f"{before}{j}" for before in numbered) for j, name in enumerate(names)):
        return Features(np.arange(0 if 0 in used[:1] else 1, n_columns, dtype=np.int64), None)
    if (twice := first_repeated(names)) is not None:
        raise ModelError(f"two features have the name {quote(twice)}; the model is damaged", path)
    return Features(np.arange(n_columns, dtype=np.int64), tuple(names))
