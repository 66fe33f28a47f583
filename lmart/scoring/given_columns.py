"""Columns that Python programs score: arrays, DataFrames, sparse matrices and Datasets, matched to a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from lmart.array_types import Int32Array
from lmart.data.categories import placed_rows
from lmart.data.dataset import Rows
from lmart.data.feature_names import USUAL, is_index
from lmart.data.from_python import GivenFeatures, features_of, names_beside, refuse_other_width
from lmart.data.python_dataset import Dataset, unbinned
from lmart.errors import ArrayError, DataError, quote, warn
from lmart.scoring.ensemble import Ensemble
from lmart.scoring.feature_matching import FeatureMatcher, describe_missing, match_dataset


def match_columns(
    ensemble: Ensemble,
    features: object,
    feature_ids: Sequence[int] | None = None,
    feature_names: Sequence[str] | None = None,
    strict: bool | None = None,
) -> tuple[Rows, Int32Array]:
    """Return the rows, and int32[n_columns], the model's feature of each column, -1 where it has none.

    strict : None: refuse a DataFrame that lacks a column of the model, and warn of other features that only one
             side has; True: refuse that too; False: only warn

    The errors are those of `Model.predict`.
    """
    chosen = _chosen_labels(ensemble, feature_ids, feature_names)
    if isinstance(features, Dataset):
        if chosen is not None:
            raise ArrayError("a Dataset has its own features; leave out feature_ids and feature_names")
        judged = unbinned(features, "features", True, ensemble)
        matcher = match_dataset(ensemble, judged)
        _tell(ensemble, matcher, judged.source, strict, bool(matcher.tables))
        return _placed(ensemble, judged.features, judged.texts, matcher.known_columns)
    columns = features_of(features, "features", chosen, names_of_categories(ensemble))
    if not columns.by_label:
        refuse_other_width(len(columns.ids), ensemble, "features")
        rows = columns.read(np.arange(len(columns.ids)))
        return _placed(ensemble, rows, {}, np.arange(len(columns.ids), dtype=np.int32))
    matcher = FeatureMatcher(ensemble)
    column_map = matcher.column_map(columns.ids, names_beside(columns.ids, columns.names, ensemble))
    matcher.tables = {"features": columns.ids}
    matched = np.flatnonzero(column_map >= 0)  # other columns need not be numbers
    if len(matched):
        others = zip(matcher.unknown, np.flatnonzero(column_map < 0).tolist(), strict=True)
        matcher.unknown = [name for name, place in others if strict or not _is_no_feature(columns, name, place)]
    _tell(ensemble, matcher, "features", strict, chosen is None)
    return _placed(ensemble, columns.read(matched), columns.texts(matched), column_map[matched])


def names_of_categories(ensemble: Ensemble) -> list[str]:
    """Return the names, or indices as text, of the features that are categories."""
    return [ensemble.feature_name(of_feature.column) for of_feature in ensemble.categories]


def _placed(
    ensemble: Ensemble, rows: Rows, texts: Mapping[int, Sequence[str]], column_map: Int32Array
) -> tuple[Rows, Int32Array]:
    """Return the rows with texts as the model numbers them, and the model's feature of each column."""
    return placed_rows(rows, texts, column_map, ensemble.categories, ensemble.feature_name), column_map


def _is_no_feature(columns: GivenFeatures, name: str, place: int) -> bool:
    """Return whether a column is named as labels and ids usually are, or holds text."""
    if name.lower() in USUAL:
        return True
    try:
        rows = columns.read(np.array([place]))
        rows.between(0, min(1, len(rows)))
    except ArrayError:
        return True
    return False


def _chosen_labels(
    ensemble: Ensemble, feature_ids: Sequence[int] | None, feature_names: Sequence[str] | None
) -> Sequence[object] | None:
    """Return the labels of columns that a program gives besides them."""
    if feature_names is not None:
        names = list(feature_names)
        if ensemble.feature_names is None and not any(is_index(str(name)) for name in names):
            raise ArrayError("the model has no feature names; give feature_ids")
        return names
    if feature_ids is None:
        return None
    ids = list(feature_ids)
    if wrong := [text for text in map(str, ids) if not is_index(text)]:
        raise ArrayError(f"feature_ids holds {quote(wrong[0])}; give whole numbers from 0 up")
    return ids


def _tell(ensemble: Ensemble, matcher: FeatureMatcher, source: str, strict: bool | None, by_label: bool) -> None:
    """Refuse, or warn of, features that only one of data and model has."""
    matcher.how_to_leave_out = ""
    matcher.refuse_foreign(source)
    if off := matcher.off_by_one:
        raise DataError(f"{off}; columns of an array go in the order of the model's features", source)
    if matcher.unknown:
        what = matcher.describe_unknown()
        if strict:
            raise DataError(f"{what}; drop them, or do without strict=True", "features")
        warn(f"features: {what}; scored without")
    if by_label and (half := matcher.matched_by_number):
        warn(f"features: {half}")
    for names in matcher.missing().values():
        what = describe_missing(names, ensemble.n_features, "the model")
        counts = "counted as " + ("0" if ensemble.absent == "zero" else "missing")
        if strict or (strict is None and by_label):
            raise DataError(f"{what}; add the columns, or give strict=False: then {counts}", "features")
        warn(f"features: {what}; {counts}")
