"""Columns that Python programs score: arrays, DataFrames, sparse matrices and Datasets, matched to a model."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from numbers import Integral
from typing import cast

import numpy as np

from lmart.array_types import Int32Array
from lmart.data import frames
from lmart.data.dataset import SparseRows
from lmart.data.feature_names import is_index
from lmart.data.python_dataset import Dataset, goes_by_place, unbinned
from lmart.errors import ArrayError, DataError
from lmart.scoring.ensemble import Ensemble
from lmart.scoring.feature_matching import FeatureMatcher, describe_missing

UNKNOWN = -1  # as the id of a column whose name is no index
WHERE = 5  # from a warning here to the caller of the Model


def match_columns(
    ensemble: Ensemble,
    features: object,
    feature_ids: Sequence[int] | None,
    feature_names: Sequence[str] | None,
    strict: bool | None,
) -> tuple[SparseRows, Int32Array]:
    """Return the rows, and int32[n_columns], the model's feature of each column, -1 where it has none.

    ensemble      : the model
    features      : an array, a DataFrame, a sparse matrix, or a Dataset
    feature_ids   : which feature each column is, by its index; None: as the columns say
    feature_names : which feature each column is, by its name; None: as the columns say
    strict        : None: refuse a DataFrame that lacks a column of the model, and warn of other features that only one
                    side has; True: refuse that too; False: only warn

    The errors are those of `Model.predict`, which calls this directly, so that warnings name its caller.
    """
    if isinstance(features, Dataset):
        if feature_ids is not None or feature_names is not None:
            raise ArrayError("a Dataset has its own features; leave out feature_ids and feature_names")
        return _rows_of_dataset(ensemble, features, strict)
    if feature_names is not None and ensemble.feature_names is None:
        raise ArrayError("the model has no feature names; give feature_ids")
    labels = None if frames.is_sparse(features) else frames.column_labels(features)
    by_label = labels is not None and feature_ids is None and feature_names is None
    if by_label and labels is not None:
        feature_ids, feature_names = _features_of(ensemble, labels)
        by_label = feature_ids is not None or feature_names is not None
    if feature_names is not None:
        ids, names = list(range(1, len(feature_names) + 1)), feature_names
    elif feature_ids is not None:
        ids, names = list(feature_ids), None
    else:
        ids, names = ensemble.feature_ids.tolist(), ensemble.feature_names
    matcher = FeatureMatcher(ensemble)
    column_map = matcher.column_map(ids, names)
    matcher.tables = {"features": np.asarray(ids, np.int64)}
    if by_label and labels is not None:
        matcher.unknown = [str(labels[i]) for i in np.flatnonzero(column_map < 0)]
    elif len(set(names or ids)) < len(ids):
        raise ArrayError("feature_ids or feature_names say of two columns that they are the same feature")
    if labels is not None:
        m = len(labels)
    else:
        rows, m = frames.rows_of_sparse(features) if frames.is_sparse(features) else frames.rows_of_array(features)
    if m != len(ids):
        raise ArrayError(f"features has {m} columns, where {len(ids)} are due")
    matcher.refuse_misfit("features")
    _tell(ensemble, matcher, strict, by_label)
    if labels is not None:  # columns that the model does not know need not be numbers
        known = np.flatnonzero(column_map >= 0)
        frame = cast(frames.Frame, features)  # as it has labels
        rows, column_map = frames.rows_of_frame(frame, [labels[i] for i in known]), column_map[known]
    return rows, column_map


def _rows_of_dataset(ensemble: Ensemble, dataset: Dataset, strict: bool | None) -> tuple[SparseRows, Int32Array]:
    """Return the rows of a Dataset; what has no names goes by indices, those of an array by their places."""
    judged = unbinned(dataset, "features", allow_infinite=True)
    ids: Sequence[int] = judged.feature_ids.tolist()
    if goes_by_place(dataset):
        if len(ids) != ensemble.n_features:
            raise ArrayError(f"features has {len(ids)} columns, where {ensemble.n_features} are due")
        return judged.features.between(0, len(dataset)), np.arange(len(ids), dtype=np.int32)
    matcher = FeatureMatcher(ensemble)
    column_map = matcher.column_map(ids, judged.feature_names)
    matcher.tables = judged.table_features
    matcher.refuse_misfit(judged.source)
    _tell(ensemble, matcher, strict, bool(matcher.tables))
    return judged.features.between(0, len(dataset)), column_map


def _features_of(ensemble: Ensemble, labels: Sequence[Hashable]) -> tuple[list[int] | None, list[str] | None]:
    """Return the ids or the names that the columns of a DataFrame go by; neither: by their order."""
    if all(isinstance(label, Integral) for label in labels) and list(labels) == list(range(len(labels))):
        return None, None
    texts = [str(label) for label in labels]
    if ensemble.feature_names is not None:
        return None, texts
    if any(map(is_index, texts)):
        return [int(text) if is_index(text) else UNKNOWN for text in texts], None
    what = "the model has no feature names, so the columns are taken in their order"
    warnings.warn(f"{what}; give feature_ids to say which is which", UserWarning, stacklevel=WHERE)
    return None, None


def _tell(ensemble: Ensemble, matcher: FeatureMatcher, strict: bool | None, by_label: bool) -> None:
    """Refuse, or warn of, features that only one of data and model has."""
    if matcher.unknown:
        what = matcher.describe_unknown()
        if strict:
            raise DataError(f"{what}; drop them, or do without strict=True", "features")
        warnings.warn(f"features: {what}; scored without", UserWarning, stacklevel=WHERE)
    for names in matcher.missing().values():
        what = describe_missing(names, ensemble.n_features, "the model")
        counts = "counted as " + ("0" if ensemble.absent == "zero" else "missing")
        if strict or (strict is None and by_label):
            raise DataError(f"{what}; add the columns, or give strict=False: then {counts}", "features")
        warnings.warn(f"features: {what}; {counts}", UserWarning, stacklevel=WHERE)
