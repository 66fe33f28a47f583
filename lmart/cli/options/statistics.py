"""Options of intervals and comparisons; they arrive in the command as one `statistics_options: StatisticsOptions`."""

from __future__ import annotations

from dataclasses import dataclass, fields

import click

from lmart.cli.options.packed import given_on_command_line, packed
from lmart.cli.options.types import Real, Whole
from lmart.measures.resampling import (
    DEFAULT_FLIPS,
    DEFAULT_LEVEL,
    EXACT_UP_TO,
    LARGEST_NUMBER,
    LARGEST_SEED,
    LEAST_RESAMPLES,
    MOST_RESAMPLES,
    Resampling,
)


@dataclass(frozen=True)
class StatisticsOptions:
    """How intervals and tests are drawn, and what is compared, one field an option.

    seed, level, resamples, flips : as in Resampling
    compare   : compare several systems
    all_pairs : compare each system with each one before it, not with the first only
    """

    seed: int
    level: float
    resamples: int | None
    flips: int
    compare: bool
    all_pairs: bool

    @property
    def resampling(self) -> Resampling:
        """How intervals and tests are drawn."""
        return Resampling(self.seed, self.level, self.resamples, self.flips)

    def check_usage(self, n_systems: int, is_reported: bool) -> None:
        """Raise a usage error when an option has no effect."""
        if not is_reported:
            for one in fields(self):
                if given_on_command_line(one.name):
                    flag = "--" + one.name.replace("_", "-")
                    raise click.UsageError(f"{flag} is for the report, which --per-query - replaces; leave it out")
        for name, flag in (("flips", "--flips"), ("all_pairs", "--all-pairs"), ("compare", "--compare/--no-compare")):
            if not given_on_command_line(name):
                continue
            if n_systems < 2:
                what = f"{flag} is for comparing systems, and there is one"
                raise click.UsageError(f"{what}; give several, or leave it out")
            if not self.compare and name != "compare":
                raise click.UsageError(f"{flag} is for comparing systems, which --no-compare leaves out")


statistics_options = packed(
    "statistics_options",
    StatisticsOptions,
    [one.name for one in fields(StatisticsOptions)],
    [
        click.option(
            "--compare/--no-compare",
            default=True,
            show_default=True,
            help="Compare all other systems with the first.\f Query by query, in each measure.",
        ),
        click.option("--all-pairs", is_flag=True, help="Compare every pair of systems."),
        click.option(
            "--level",
            type=Real(0.5, 0.9999),
            metavar="R",
            default=DEFAULT_LEVEL,
            show_default=True,
            help="Confidence level of the intervals.",
        ),
        click.option(
            "--resamples",
            type=Whole(1, LARGEST_NUMBER, other="auto"),
            metavar="N|auto",
            default="auto",
            show_default=True,
            help="Number of bootstrap resamples for intervals.\f auto: "
            f"{MOST_RESAMPLES}, or fewer for more than 50,000 queries, but at least {LEAST_RESAMPLES}.",
        ),
        click.option(
            "--flips",
            type=Whole(1, LARGEST_NUMBER),
            metavar="N",
            default=DEFAULT_FLIPS,
            show_default=True,
            help="Random sign flips in the randomization test.\f If at most "
            f"{EXACT_UP_TO} queries differ, it tries all choices of signs.",
        ),
        click.option(
            "--seed",
            type=Whole(0, LARGEST_SEED),
            metavar="N",
            default=0,
            show_default=True,
            help="Seed of resamples and sign flips.",
        ),
    ],
)
"""Add the options to a command; the command gets them packed as the keyword `statistics_options`."""
