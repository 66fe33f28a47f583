"""Early stopping: which round is best, and when to stop looking for a better one."""

from __future__ import annotations

import numpy as np


class EarlyStopping:
    """Keeps the best round, the first on ties; higher is better. None (no query counts) is never better.

    patience : rounds without a better measure after which to stop; None: never
    start    : the measure before the first round; None: not known
    may_be_empty : whether a model without trees may be the best; None: when `start` is known
    """

    def __init__(self, patience: int | None, start: float | None = None, may_be_empty: bool | None = None) -> None:
        self.patience = patience
        self.best_round = 0
        self.best = -np.inf if start is None else start
        self.fewest = 0 if (start is not None if may_be_empty is None else may_be_empty) else 1

    def update(self, round_number: int, value: float | None) -> bool:
        """Record the measure of a round; return whether to stop."""
        if value is not None and value > self.best:
            self.best, self.best_round = value, round_number
        return self.patience is not None and round_number - max(self.best_round, self.fewest) >= self.patience
