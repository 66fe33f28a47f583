"""What models written for tools that count columns from 0 share: columns, names that the tool takes, long lists."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lmart.array_types import Int64Array
from lmart.errors import ModelError, counted, quote
from lmart.formats.models.feature_lists import MOST_LISTED
from lmart.scoring.ensemble import Ensemble

FEW_MEMBERS = 1 << 20  # of sets that every model may list
MEMBERS_OF_BOUND = 1 << 10  # that it may list besides for each bound: sets whose members are no long ranges stay
PIECE = 1 << 16  # numbers that are texts at the same time


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
    """Return distinct names that a tool takes; names that it takes as they are stay, whatever others become."""
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


def most_members(ensemble: Ensemble) -> int:
    """Return how many categories the sets of a model may list; longer ones are written as chains of ranges."""
    return FEW_MEMBERS + MEMBERS_OF_BOUND * sum(len(tree.bounds) for tree in ensemble.trees if tree.bounds is not None)


def join_whole(numbers: npt.NDArray[np.generic], mark: str) -> str:
    """Return whole numbers as text with a mark between them, piece by piece: for millions of them.

    numbers : of any type of integers
    mark    : such as ','
    """
    pieces = (numbers[start : start + PIECE].tolist() for start in range(0, len(numbers), PIECE))
    return mark.join(mark.join(map(str, piece)) for piece in pieces)
