"""What predict adds to a row of JSON lines to explain its score."""

from __future__ import annotations

import json

import numpy as np

from lmart.data.dataset import SparseRows
from lmart.scoring.explain import Explainer
from lmart.scoring.feature_matching import FeatureMatcher
from lmart.threads import WorkerPool

ROWS = 256  # explained at a time


class RowExplanations:
    """Explains rows as members of a JSON object: "base", and "contributions" by feature, those of 0 left out.

    explainer : of the model
    matcher   : knows the model's feature of each column met so far
    pool      : the workers
    """

    def __init__(self, explainer: Explainer, matcher: FeatureMatcher, pool: WorkerPool) -> None:
        self._explainer = explainer
        self._matcher = matcher
        self._pool = pool
        ensemble = explainer.ensemble
        self._keys = [json.dumps(ensemble.feature_name(column)) for column in range(ensemble.n_features)]

    def members(self, rows: SparseRows) -> list[str]:
        """Return `"base": B, "contributions": {"FEATURE": C, ...}` for each row."""
        contributions = self._explainer.explain(rows, self._matcher.known_columns, self._pool)
        keys, base = self._keys, self._explainer.base
        found = []
        for row in contributions:
            used = np.flatnonzero(row)
            pairs = zip(used.tolist(), row[used].tolist(), strict=True)
            cells = ", ".join([f"{keys[column]}: {value!r}" for column, value in pairs])
            found.append(f'"base": {base!r}, "contributions": {{{cells}}}')
        return found
