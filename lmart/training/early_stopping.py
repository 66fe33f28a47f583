"""Early stopping: which round is best, and when to stop looking for a better one."""

from __future__ import annotations

import numpy as np


class EarlyStopping:
    """Keeps the best round, the first on ties; higher is better. None (no query counts) is never better.

    patience : rounds without a better measure after which to stop; None: never
    start    : the measure before the first round, if a model without trees may be the best; None: it may not
    """

    def __init__(self, patience: int | None, start: float | None = None) -> None:
        self.patience = patience
        self.best_round = 0
        self.best = -np.inf if start is None else start
        self.fewest = 1 if start is None else 0  # trees that a model must have

    def update(self, round_number: int, value: float | None) -> bool:
        """Record the measure of a round; return whether to stop.

        round_number : from 1
        value        : the measure after it
        """
        if value is not None and value > self.best:
            self.best, self.best_round = value, round_number
        return self.patience is not None and round_number - max(self.best_round, self.fewest) >= self.patience
