"""The door for Python programs: `lmart.load(path).predict(array)`; and scoring of inputs in constant memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from lmart.dataset import SparseRows
from lmart.ensemble import Ensemble, Ints
from lmart.explain import Explainer, Explanation
from lmart.formats.options import ReadOptions
from lmart.formats.registry import open_rows, read_model
from lmart.formats.rows import RowBlock, RowReader
from lmart.scoring import FeatureMatcher, Scorer
from lmart.threads import WorkerPool

Floats = npt.NDArray[np.float64]

PATIENCE = 10_000  # rows that wait for a first feature of the model before the data is refused


def score_stream(
    scorer: Scorer, matcher: FeatureMatcher, reader: RowReader, pool: WorkerPool | None = None, strict: bool = False
) -> Iterator[tuple[RowBlock, Floats]]:
    """Yield each block of the input with the scores of its rows, float64[n].

    matcher : collects the features that only one of data and model has; strict : refuse those
    DataError when the data is damaged, cannot be meant for the model (`FeatureMatcher.refuse`), or is refused by
    `strict`. Where that shows in the first PATIENCE rows, none of them is given out.
    """
    waiting: list[tuple[RowBlock, Floats]] = []
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
        features: npt.ArrayLike,
        feature_ids: Sequence[int] | None = None,
        feature_names: Sequence[str] | None = None,
        threads: int = 1,
    ) -> Floats:
        """Return the score of each row, float64[n]; higher ranks first, comparable only within a query.

        features : array of n rows and m columns, nan is missing. The columns are the model's features in the order of
                   `Model.feature_ids`, unless `feature_ids` or `feature_names` says which feature each column is: then
                   features of the model without a column are absent, and columns that the model does not know are
                   left out.
        threads  : threads to use; the result never depends on it
        ValueError when the array has another shape. DataError when no column is a feature of the model.
        """
        rows, column_map = self._rows(features, feature_ids, feature_names)
        if threads == 1:
            return self._scorer.score(rows, column_map)
        with WorkerPool(threads) as pool:
            return self._scorer.score(rows, column_map, pool)

    def explain(
        self,
        features: npt.ArrayLike,
        feature_ids: Sequence[int] | None = None,
        feature_names: Sequence[str] | None = None,
        threads: int = 1,
    ) -> Explanation:
        """Return what each feature contributes to the score of each row: exact path-dependent TreeSHAP.

        The arguments are those of `predict`, and so are the errors; ModelError also when the model does not say how
        many documents each leaf had (models that lmart trains do).
        """
        explainer = self._explainer or Explainer(self.ensemble)
        self._explainer = explainer
        rows, column_map = self._rows(features, feature_ids, feature_names)
        with WorkerPool(threads) as pool:
            return Explanation(explainer.base, explainer.explain(rows, column_map, pool))

    def _rows(
        self, features: npt.ArrayLike, feature_ids: Sequence[int] | None, feature_names: Sequence[str] | None
    ) -> tuple[SparseRows, Ints]:
        """Return the rows of an array, and the model's feature of each column."""
        values = np.ascontiguousarray(features, np.float64)
        if values.ndim != 2:
            raise ValueError(f"features has {values.ndim} dimensions; give rows x columns, a single row as [row]")
        n, m = values.shape
        if feature_names is not None and self.ensemble.feature_names is None:
            raise ValueError("the model has no feature names; give feature_ids")
        named = feature_names if feature_names is not None else feature_ids
        due = self.ensemble.n_features if named is None else len(named)
        if m != due:
            raise ValueError(f"features has {m} columns, where {due} are due")
        matcher = FeatureMatcher(self.ensemble)
        if feature_names is not None:
            column_map = matcher.column_map(range(1, m + 1), feature_names)
        else:
            column_map = matcher.column_map(self.ensemble.feature_ids if feature_ids is None else feature_ids)
        matcher.refuse_foreign("features")
        columns = np.tile(np.arange(m, dtype=np.int32), n)
        return SparseRows(np.arange(n + 1, dtype=np.int64) * m, columns, values.reshape(-1)), column_map

    def predict_letor(self, path: str, threads: int = 1) -> Floats:
        """Return the score of each row of a data file, float64[n], in the order of its rows.

        path : LETOR text, or any other data that `lmart predict` reads, plain or compressed; labels and query ids may
        be missing, and unknown features are left out. DataError, with path and line, when it cannot be read.
        """
        options = ReadOptions(require_labels=False, require_queries=False)
        parts = [np.zeros(0)]
        with WorkerPool(threads) as pool, open_rows(path, options, pool) as reader:
            matcher = FeatureMatcher(self.ensemble)
            parts += [scores for _, scores in score_stream(self._scorer, matcher, reader, pool)]
        return np.concatenate(parts)


def load(path: str) -> Model:
    """Read a model file, plain or compressed; ModelError, with the path, when it is no sound model."""
    return Model(read_model(path))
