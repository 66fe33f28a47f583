"""ModelScores: the scores that a model gives a data set, collected while its rows are read block by block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from lmart.array_types import Float64Array, Int64Array
from lmart.data.dataset import SparseRows
from lmart.scoring.ensemble import Ensemble
from lmart.scoring.feature_matching import FeatureMatcher
from lmart.scoring.scorer import Scorer
from lmart.threads import WorkerPool


class ModelScores:
    """Scores the rows of one data set as they are read.

    model   : which scores them
    pool    : the workers
    matcher : finds the model's feature of each column, and knows those that only one side has
    """

    def __init__(self, model: Ensemble, pool: WorkerPool) -> None:
        self.matcher = FeatureMatcher(model)
        self.model = model
        self._scorer = Scorer(model)
        self._pool = pool
        self._parts: list[Float64Array] = [np.zeros(0)]

    def add(self, parts: Sequence[SparseRows], feature_ids: Int64Array, feature_names: Sequence[str] | None) -> None:
        """Score the next rows; there may be more columns than before.

        parts         : the rows, in blocks
        feature_ids   : int64[n_columns], of their columns
        feature_names : of the columns; None: they have numbers only
        """
        columns = self.matcher.column_map(feature_ids, feature_names)
        self._parts += [self._scorer.score(rows, columns, self._pool) for rows in parts]

    def finish(self, source: str, tables: Mapping[str, Int64Array], strict: bool = False) -> Float64Array:
        """Return the score of each row, float64[n]; DataError as `FeatureMatcher.refuse`.

        source : what to call the data in messages
        tables : as `RankingDataset.table_features`
        strict : refuse features that only the data or only the model has
        """
        self.matcher.tables = tables
        self.matcher.refuse(source, strict)
        return np.concatenate(self._parts)
