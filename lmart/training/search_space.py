"""What tuning searches: settings, each with the range or the choices that are tried."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from lmart.settings.train_settings import TrainSettings, without_meaning

Value = bool | int | float | str | None  # of a setting that is searched; None: automatic


@dataclass(frozen=True)
class Dimension:
    """A setting that is searched: a number from `low` to `high`, on a linear or log scale, or one of `choices`.

    log       : whether it is searched on a log scale
    choices   : of what is no number
    automatic : a number may be None in the first trial, chosen by the data
    """

    name: str
    low: float = 0.0
    high: float = 0.0
    log: bool = False
    choices: tuple[bool | str | None, ...] = ()
    automatic: bool = False

    @property
    def whole(self) -> bool:
        """Whether the setting is a whole number."""
        return isinstance(self.low, int)

    def holds(self, value: object) -> bool:
        """Return whether a value read from a file has the type of this setting."""
        if self.choices:
            return any(value is choice or (isinstance(choice, str) and value == choice) for choice in self.choices)
        return (value is None and self.automatic) or (type(value) is int if self.whole else is_number(value))

    def nearest(self, value: Value) -> Value:
        """Return the value, clipped to the range."""
        return (
            value if self.choices or value is None or isinstance(value, str) else min(max(value, self.low), self.high)
        )


# The ranges cover what helped on real data sets, which is narrower than what is allowed.
# Of the objectives only those are searched that helped by NDCG: the default did as well or better by MAP, MRR and ERR
# than the objectives of these names.
DIMENSIONS = (
    Dimension("rankers", 1, 8),
    Dimension("objective", choices=(None, "lambdamart", "yetirank", "xendcg")),
    Dimension("tree", choices=(None, "leafwise", "oblivious")),
    Dimension("features", 0.2, 1.0, automatic=True),
    Dimension("learning_rate", 0.02, 0.3, log=True),
    Dimension("leaves", 4, 128, log=True, automatic=True),
    Dimension("min_docs", 1, 200, log=True),
    Dimension("l2", 0.001, 100.0, log=True),
    Dimension("truncation", 3, 100, log=True),
    Dimension("normalize", choices=(True, False)),
)


TRIAL_PATIENCE = 50  # early_stop of trials when it is not given


def open_dimensions(names: Sequence[str], settings: TrainSettings, with_positions: bool) -> tuple[Dimension, ...]:
    """Return what a search tries: no settings that are given, mean nothing, or have one value that is allowed."""
    fixed = [*names, *without_meaning(settings)]
    if settings.monotone:
        fixed.append("tree")  # oblivious ones do not go with it
    if with_positions:
        fixed.append("objective")
    return dimensions(fixed)


def dimensions(names: Sequence[str]) -> tuple[Dimension, ...]:
    """Return the dimensions to search when the settings `given` are fixed."""
    return tuple(dimension for dimension in DIMENSIONS if dimension.name not in names)


def is_number(value: object) -> bool:
    """Return whether a value is a finite number, and not True or False."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < math.inf
