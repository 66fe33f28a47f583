"""Rows of data for the effects of features on scores: a sample of stated size, drawn while all rows pass."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from lmart.array_types import Int32Array
from lmart.binning.edge_sample import RowSample
from lmart.data.dataset import SparseRows
from lmart.errors import ModelError
from lmart.reports.model_summary import FeatureImportance
from lmart.reports.pages.model import MOST_EFFECTS, Effects
from lmart.scoring.effects import MatchedRows, feature_effects
from lmart.scoring.ensemble import Ensemble
from lmart.scoring.explain import Explainer
from lmart.scoring.scorer import Scorer
from lmart.threads import WorkerPool

SAMPLED_ROWS = 2000  # at most


class EffectRows:
    """A sample of rows, and the model that scores and explains them.

    explainer : None when the model does not say enough of its trees
    """

    def __init__(self, ensemble: Ensemble, pool: WorkerPool) -> None:
        self._pool = pool
        self._scorer = Scorer(ensemble)
        self._sample = RowSample(0, limit=SAMPLED_ROWS)
        self._n_rows = 0
        self._column_map: Int32Array = np.zeros(0, np.int32)
        self.explainer: Explainer | None = None
        self._note = None
        try:
            self.explainer = Explainer(ensemble)
        except ModelError as fault:
            self._note = f"There are no dots: the model {fault.message}."

    def add(self, rows: SparseRows, column_map: Int32Array) -> None:
        """Pass the next rows; there may be more columns than before."""
        self._sample.add([rows], self._n_rows, self._pool)
        self._n_rows += len(rows)
        self._column_map = column_map

    def effects(self, importance: Sequence[FeatureImportance], top: int | None, pool: WorkerPool) -> Effects:
        """Return the effects of the features that matter most.

        top : number of features, of at most MOST_EFFECTS; None: that many
        """
        ensemble = self._scorer.ensemble
        places = {ensemble.feature_name(column): column for column in range(ensemble.n_features)}
        used = [feature.feature for feature in importance if feature.splits][: min(top or MOST_EFFECTS, MOST_EFFECTS)]
        matched = MatchedRows(self._sample.to_rows(), self._column_map)
        n = len(matched.rows)
        mean = math.fsum(self._scorer.score(matched.rows, matched.column_map, pool)) / max(1, n)
        found = feature_effects(self._scorer, self.explainer, matched, [places[name] for name in used], pool)
        return Effects(n, mean, found, self._note)
