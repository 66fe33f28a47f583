"""Columns of models written for tools that count them from 0, under names that the tool takes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lmart.array_types import Int64Array
from lmart.errors import ModelError, counted, quote
from lmart.formats.models.feature_lists import MOST_LISTED
from lmart.scoring.ensemble import Ensemble


class Target(NamedTuple):
    """A tool that models are written for.

    name    : of the tool
    default : how it calls column j when nobody named it, before j
    refused : each match in a name becomes '_'
    marks   : those characters in words
    """

    name: str
    default: str
    refused: re.Pattern[str]
    marks: str


class Columns(NamedTuple):
    """The columns of a written model.

    numbers : int64[n_features], ascending, the column of each feature
    total   : how many columns there are
    names   : of the columns; None when features have no names
    notes   : how names were changed
    """

    numbers: Int64Array
    total: int
    names: list[str] | None
    notes: list[str]


def list_columns(ensemble: Ensemble, target: Target) -> Columns:
    """Return the columns: of a model with names its features in order; else column j is feature j, from column 0.

    ensemble : the model
    target   : the tool
    ModelError when feature numbers would need too many columns.
    """
    names = ensemble.feature_names
    if names:
        fitted = fit_names(names, target)
        return Columns(np.arange(len(names), dtype=np.int64), len(names), fitted, _name_notes(names, fitted, target))
    ids = ensemble.feature_ids
    total = int(ids[-1]) + 1 if len(ids) else 1
    if total > MOST_LISTED:
        raise ModelError(
            f"the model has feature {ids[-1]}, and {target.name} needs a column for each number up to it,"
            f" {MOST_LISTED:,} at most; give the features names with --feature-map, or number them anew"
        )
    return Columns(ids, total, None, [])


def _name_notes(names: Sequence[str], fitted: list[str], target: Target) -> list[str]:
    """Return a note when names were changed, with the first of them."""
    changed = [(name, fit) for name, fit in zip(names, fitted, strict=True) if name != fit]
    if not changed:
        return []
    what = (
        f"{counted(len(changed), 'feature name')} got '_' in place of {target.marks}, which {target.name} does not take"
    )
    return [f"{what}: {quote(changed[0][0])} is {quote(changed[0][1])}"]


def fit_names(names: Sequence[str], target: Target) -> list[str]:
    """Return distinct names that a tool takes; names that it takes as they are stay, whatever others become.

    names  : distinct
    target : the tool
    """
    fitted = [target.refused.sub("_", name) or f"{target.default}{j}" for j, name in enumerate(names)]
    taken = {fit for fit, name in zip(fitted, names, strict=True) if fit == name}
    following: dict[str, int] = {}  # the number to try next behind a name, so that many equal names take no longer
    for j, fit in enumerate(fitted):
        if fit == names[j]:
            continue
        free = fit
        while free in taken:
            number = following.get(fit, 1)
            following[fit] = number + 1
            free = f"{fit}_{number if number > 1 else ''}"
        taken.add(free)
        fitted[j] = free
    return fitted
