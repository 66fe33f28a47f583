"""Resampling: how much is drawn by chance for intervals and tests, and from which seed. Light: loads no numpy."""

from __future__ import annotations

from dataclasses import dataclass

from lmart.errors import SettingsError, shown

DEFAULT_LEVEL = 0.95
MOST_RESAMPLES = 10_000
LEAST_RESAMPLES = 1_000
DRAWS = 500_000_000
DEFAULT_FLIPS = 100_000
LARGEST_NUMBER = 10_000_000
LARGEST_SEED = 2**63 - 1
EXACT_UP_TO = 20
"""Queries that differ up to which a randomization test takes all sign vectors."""


@dataclass(frozen=True)
class Resampling:
    """How intervals and tests are drawn; the same values give the same digits on any machine.

    seed      : of all draws, 0 or more
    level     : probability that an interval holds the mean, between 0 and 1
    resamples : of the bootstrap; None: 10,000, or fewer, but 1,000 at least, so that not more than 500,000,000
                queries are drawn
    flips     : sign vectors of a randomization test
    """

    seed: int = 0
    level: float = DEFAULT_LEVEL
    resamples: int | None = None
    flips: int = DEFAULT_FLIPS

    def __post_init__(self) -> None:
        if not 0 <= self.seed <= LARGEST_SEED:
            raise SettingsError(f"seed is {shown(self.seed)}; use a whole number from 0 to {LARGEST_SEED}")
        if not 0 < self.level < 1:
            raise SettingsError(f"level is {shown(self.level)}; use a number between 0 and 1, such as {DEFAULT_LEVEL}")
        for name, number in (("resamples", self.resamples), ("flips", self.flips)):
            if number is not None and not 1 <= number <= LARGEST_NUMBER:
                raise SettingsError(f"{name} is {shown(number)}; use a whole number from 1 to {LARGEST_NUMBER}")

    def resamples_of(self, n_queries: int) -> int:
        """Return how many resamples of so many queries are drawn."""
        if self.resamples is not None:
            return self.resamples
        return max(LEAST_RESAMPLES, min(MOST_RESAMPLES, DRAWS // max(1, n_queries)))
