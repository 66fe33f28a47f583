"""Tree and Ensemble: the model in memory, flat arrays that can hold what other tools' formats say."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Tree:
    """One tree of n inner nodes and n + 1 leaves. Node 0 is the root; a tree of one leaf has no node.

    A document goes left when its value <= threshold; a missing value goes where missing_left says.

    split_columns : int32[n], positions in Ensemble.feature_ids
    thresholds    : float64[n], finite
    missing_left  : bool[n]
    left, right   : int32[n]; c >= 0 is inner node c, c < 0 is leaf ~c (-1 is leaf 0)
    leaf_values   : float64[n + 1], the learning rate is already in them
    split_gains   : float64[n] or None; leaf_documents : int64[n + 1] or None, documents it was grown from
    """

    split_columns: npt.NDArray[np.int32]
    thresholds: npt.NDArray[np.float64]
    missing_left: npt.NDArray[np.bool_]
    left: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]
    leaf_values: npt.NDArray[np.float64]
    split_gains: npt.NDArray[np.float64] | None = None
    leaf_documents: npt.NDArray[np.int64] | None = None

    @property
    def n_leaves(self) -> int:
        return len(self.leaf_values)


@dataclass(frozen=True)
class Ensemble:
    """A whole model: score = base_score, then + leaf value of each tree, float64, in tree order.

    feature_ids   : int64[n_features], ascending, as in the training file; feature_names : texts or None
    absent        : 'zero' or 'missing', what an index that is not in the row means
    gain          : the gain it was trained with, as text; settings : plain JSON values
    """

    trees: tuple[Tree, ...]
    feature_ids: npt.NDArray[np.int64]
    feature_names: tuple[str, ...] | None = None
    base_score: float = 0.0
    absent: str = "zero"
    gain: str = "exp2"
    settings: dict[str, Any] = field(default_factory=dict)
