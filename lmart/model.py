"""The Python interface: `lmart.load(path).predict(array)`; and scoring of inputs in constant memory."""

from __future__ import annotations

import os
import warnings
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from numbers import Integral
from typing import cast

import numpy as np

from lmart.array_types import Float64Array, Int32Array
from lmart.data import frames
from lmart.data.dataset import SparseRows
from lmart.errors import DataError, counted
from lmart.formats.documents.reading import for_models, open_rows
from lmart.formats.documents.row_blocks import RowBlock, RowReader
from lmart.formats.models.model_files import read_model
from lmart.formats.read_options import ReadOptions
from lmart.scoring.ensemble import Ensemble
from lmart.scoring.explain import CHUNK as EXPLAINED
from lmart.scoring.explain import Explainer, Explanation
from lmart.scoring.feature_matching import FeatureMatcher, describe_missing
from lmart.scoring.scorer import CHUNK as SCORED
from lmart.scoring.scorer import Scorer
from lmart.threads import WorkerPool, threads_to_use

PATIENCE = 10_000  # rows held back until a feature of the model occurs; if none does, the data is refused
UNKNOWN = -1  # as the id of a column whose name is no index


def score_stream(
    scorer: Scorer, matcher: FeatureMatcher, reader: RowReader, pool: WorkerPool | None = None, strict: bool = False
) -> Iterator[tuple[RowBlock, Float64Array]]:
    """Yield each block of the input with the scores of its rows, float64[n].

    scorer  : of the model
    matcher : finds the columns of its features, and collects those that only the data or only the model has
    reader  : the input
    pool    : the workers; None: the calling thread
    strict  : whether to refuse features that only the data or only the model has
    DataError when the data is damaged or `FeatureMatcher.refuse` refuses it; when that is known within the first
    PATIENCE rows, no scores are yielded.
    """
    waiting: list[tuple[RowBlock, Float64Array]] = []
    for block in reader:
        column_map = matcher.column_map(reader.feature_ids, reader.feature_names)
        matcher.tables = reader.table.of_tables
        if strict and not matcher.foreign:
            matcher.refuse(reader.path, strict)
        waiting.append((block, scorer.score(block.features, column_map, pool)))
        del block  # before the next one is made
        if matcher.foreign or matcher.off_by_one:
            if sum(len(one) for one, _ in waiting) < PATIENCE:
                continue
            matcher.refuse_foreign(reader.path)
        while waiting:
            yield waiting.pop(0)
    matcher.refuse(reader.path, strict)


class Model:
    """A model ready to score; several threads may use it at once.

    >>> model = lmart.load("model.json")            # doctest: +SKIP
    >>> model.predict([[0.5, 3.0], [0.1, float("nan")]])  # doctest: +SKIP
    array([ 0.52, -0.13])
    """

    def __init__(self, ensemble: Ensemble) -> None:
        self.ensemble = ensemble
        self._scorer = Scorer(ensemble)
        self._explainer: Explainer | None = None

    def __repr__(self) -> str:
        trees, features = len(self.ensemble.trees), self.ensemble.n_features
        return f"<lmart.Model: {counted(trees, 'tree')}, {counted(features, 'feature')}>"

    @property
    def feature_ids(self) -> list[int]:
        """The indices of the features, as written in the training data, ascending."""
        return [int(index) for index in self.ensemble.feature_ids]

    @property
    def feature_names(self) -> list[str] | None:
        """The names of the features, when the training data had names."""
        return None if self.ensemble.feature_names is None else list(self.ensemble.feature_names)

    def predict(
        self,
        features: object,
        feature_ids: Sequence[int] | None = None,
        feature_names: Sequence[str] | None = None,
        threads: int | None = None,
        strict: bool | None = None,
    ) -> Float64Array:
        """Return the score of each row, float64[n]; higher ranks first, comparable only within a query.

        features      : n rows and m columns: an array, in which nan is missing; a DataFrame of pandas or polars or a
                        Table of pyarrow, in which nulls are missing too; or a sparse matrix of SciPy, in which cells
                        that are not stored are absent, as indices that a row of LETOR text does not name.
                        Columns of a DataFrame go by name, in any order: by the model's names, or by its indices when
                        it has no names. Those of an array, and of a DataFrame without names of its own (0, 1, 2, ...),
                        are the model's features in the order of `Model.feature_ids`. Features of the model without a
                        column are absent; columns that the model does not know are left out.
        feature_ids   : says instead which feature each column is, by its index
        feature_names : says instead which feature each column is, by its name
        threads       : threads to use, None: all that this process may use; the result never depends on it
        strict        : None: refuse a DataFrame that lacks a column of the model; a UserWarning lists other features
                        that only the data or only the model has. True: refuse that too. False: only warn
        ValueError when the features have another shape or are no numbers, or `threads` is below 1. DataError when no
        column is a feature of the model, or columns are refused.
        """
        rows, column_map = self._rows(features, feature_ids, feature_names, strict)
        with _pool(threads, len(rows), SCORED) as pool:
            return self._scorer.score(rows, column_map, pool)

    def explain(
        self,
        features: object,
        feature_ids: Sequence[int] | None = None,
        feature_names: Sequence[str] | None = None,
        threads: int | None = None,
        strict: bool | None = None,
    ) -> Explanation:
        """Return what each feature contributes to the score of each row: exact path-dependent TreeSHAP.

        The arguments are those of `predict`, and so are the errors; ModelError also when the model does not say how
        many documents each leaf had (models that lmart trains do). Contributions stand by the model's features, as
        `Model.feature_ids` and `Model.feature_names` list them, whatever the order of the columns.
        """
        explainer = self._explainer or Explainer(self.ensemble)
        self._explainer = explainer
        rows, column_map = self._rows(features, feature_ids, feature_names, strict)
        with _pool(threads, len(rows), EXPLAINED) as pool:
            return Explanation(explainer.base, explainer.explain(rows, column_map, pool))

    def _rows(
        self,
        features: object,
        feature_ids: Sequence[int] | None,
        feature_names: Sequence[str] | None,
        strict: bool | None,
    ) -> tuple[SparseRows, Int32Array]:
        """Return the rows, and the model's feature of each column."""
        ensemble = self.ensemble
        if feature_names is not None and ensemble.feature_names is None:
            raise ValueError("the model has no feature names; give feature_ids")
        labels = None if frames.is_sparse(features) else frames.column_labels(features)
        by_label = labels is not None and feature_ids is None and feature_names is None
        if by_label and labels is not None:
            feature_ids, feature_names = self._features_of(labels)
            by_label = feature_ids is not None or feature_names is not None
        if feature_names is not None:
            ids, names = list(range(1, len(feature_names) + 1)), feature_names
        elif feature_ids is not None:
            ids, names = list(feature_ids), None
        else:
            ids, names = self.feature_ids, self.feature_names
        matcher = FeatureMatcher(ensemble)
        column_map = matcher.column_map(ids, names)
        matcher.tables = {"features": np.asarray(ids, np.int64)}
        if by_label and labels is not None:
            matcher.unknown = [str(labels[i]) for i in np.flatnonzero(column_map < 0)]
        elif len(set(names or ids)) < len(ids):
            raise ValueError("feature_ids or feature_names say of two columns that they are the same feature")
        if labels is not None:
            m = len(labels)
        else:
            rows, m = frames.rows_of_sparse(features) if frames.is_sparse(features) else frames.rows_of_array(features)
        if m != len(ids):
            raise ValueError(f"features has {m} columns, where {len(ids)} are due")
        matcher.refuse_misfit("features")
        self._tell(matcher, strict, by_label)
        if labels is not None:  # columns that the model does not know need not be numbers
            known = np.flatnonzero(column_map >= 0)
            frame = cast(frames.Frame, features)  # as it has labels
            rows, column_map = frames.rows_of_frame(frame, [labels[i] for i in known]), column_map[known]
        return rows, column_map

    def _features_of(self, labels: Sequence[Hashable]) -> tuple[list[int] | None, list[str] | None]:
        """Return the ids or the names that the columns of a DataFrame go by; neither: by their order."""
        if all(isinstance(label, Integral) for label in labels) and list(labels) == list(range(len(labels))):
            return None, None
        texts = [str(label) for label in labels]
        if self.ensemble.feature_names is not None:
            return None, texts
        if any(map(_is_index, texts)):
            return [int(text) if _is_index(text) else UNKNOWN for text in texts], None
        what = "the model has no feature names, so the columns are taken in their order"
        warnings.warn(f"{what}; give feature_ids to say which is which", UserWarning, stacklevel=4)
        return None, None

    def _tell(self, matcher: FeatureMatcher, strict: bool | None, by_label: bool) -> None:
        """Refuse, or warn of, features that only one of data and model has."""
        if matcher.unknown:
            what = matcher.describe_unknown()
            if strict:
                raise DataError(f"{what}; drop them, or do without strict=True", "features")
            warnings.warn(f"features: {what}; scored without", UserWarning, stacklevel=4)
        for names in matcher.missing().values():
            what = describe_missing(names, self.ensemble.n_features, "the model")
            counts = "counted as " + ("0" if self.ensemble.absent == "zero" else "missing")
            if strict or (strict is None and by_label):
                raise DataError(f"{what}; add the columns, or give strict=False: then {counts}", "features")
            warnings.warn(f"features: {what}; {counts}", UserWarning, stacklevel=4)

    def predict_letor(
        self, path: str | os.PathLike[str], threads: int | None = None, strict: bool = False
    ) -> Float64Array:
        """Return the score of each row of a data file, float64[n], in the order of its rows.

        path    : LETOR text, or any other data that `lmart predict` reads, plain or compressed; labels and query ids
                  may be missing
        threads : as in `predict`
        strict  : refuse features that the model does not have, and tables that lack a column of the model, instead of
                  telling by a UserWarning
        DataError, with path and line, when it cannot be read, or is refused.
        """
        options = ReadOptions(require_labels=False, require_queries=False, use_labels=False)
        options = for_models(options, [self.ensemble])
        parts = [np.zeros(0)]
        name = os.fspath(path)
        with WorkerPool(threads_to_use(threads)) as pool, open_rows(name, options, pool) as reader:
            matcher = FeatureMatcher(self.ensemble)
            parts += [scores for _, scores in score_stream(self._scorer, matcher, reader, pool, strict)]
        for text in matcher.warnings(name):
            warnings.warn(text, UserWarning, stacklevel=2)
        return np.concatenate(parts)


def _is_index(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 19


@contextmanager
def _pool(threads: int | None, n_rows: int, at_once: int) -> Iterator[WorkerPool | None]:
    """Give a pool of threads, None where the rows are one piece of work for one thread."""
    if threads is not None:
        threads = threads_to_use(threads)
    pieces = -(-n_rows // at_once)
    if pieces <= 1 or threads == 1 or (count := min(pieces, threads_to_use(threads))) == 1:
        yield None
    else:
        with WorkerPool(count) as pool:
            yield pool


def load(path: str | os.PathLike[str]) -> Model:
    """Read a model file, plain or compressed; ModelError, with the path, when it is no sound model."""
    return Model(read_model(os.fspath(path)))
