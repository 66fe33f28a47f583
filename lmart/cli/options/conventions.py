"""Options of conventions: how measures are computed where tools differ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from lmart.cli.options.types import GainType, Real
from lmart.measures.conventions import CHOICES, LARGEST_LEVEL
from lmart.measures.kinds import KINDS
from lmart.measures.presets import PRESETS

F = TypeVar("F", bound=Callable[..., Any])

WITH_GAIN = " and ".join(kind.name for kind in KINDS.values() if kind.uses_gain)
"""The names of measures that depend on the gain, for help and messages."""
WITHOUT_EMPTY = " and ".join(kind.name for kind in KINDS.values() if not kind.counts_empty)
"""The names of measures to which queries without a relevant document are as others."""
OPTION_NAMES = ("discount", "empty", "ties", "short", "p_divisor", "map_divisor", "precision")
"""The conventions of CHOICES that are options."""


def _words(name: str) -> click.Choice[str]:
    return click.Choice(tuple(CHOICES[name]))


def _default(name: str) -> str:
    return f"  [default: {next(iter(CHOICES[name]))}]"


_OPTIONS = (
    click.option(
        "--like",
        type=click.Choice(tuple(PRESETS)),
        default=None,
        help="Take on the conventions of another tool, so that the same scores get its numbers; the options below then "
        "change single ones. See lmart-measures(7).",
    ),
    click.option(
        "--gain",
        type=GainType(),
        metavar="exp2|linear|G0,G1,...",
        help=f"Gain of a label in {WITH_GAIN}: 2^label - 1, the label, or a table from label 0 up.  "
        "[default: the model's, else exp2]",
    ),
    click.option(
        "--discount",
        type=_words("discount"),
        help=f"Discount of a rank in {WITH_GAIN}: 1 / log2(rank + 1), or that of LETOR, 1 at ranks 1 and 2, then 1 / "
        f"log2(rank).{_default('discount')}",
    ),
    click.option(
        "--relevant",
        metavar="LABEL",
        type=Real(min=0, max=LARGEST_LEVEL, min_open=True),
        default=None,
        help="Least label of a relevant document in binary measures that have no rel= of their own, as in p@5(rel=2).  "
        "[default: any above 0]",
    ),
    click.option(
        "--empty",
        type=_words("empty"),
        help=f"What a query without a relevant document counts, in all measures but {WITHOUT_EMPTY}; skip leaves it "
        f"out of the mean.{_default('empty')}",
    ),
    click.option(
        "--ties",
        type=_words("ties"),
        help="Documents of equal score: in the order of the data, in its reverse, by document id from the last to the "
        f"first, or the mean over all their orders, computed exactly.{_default('ties')}",
    ),
    click.option(
        "--short",
        type=_words("short"),
        help="What ndcg@k is of a query with fewer than k documents: that of the whole query, or 0, as in LETOR."
        f"{_default('short')}",
    ),
    click.option(
        "--p-divisor",
        type=_words("p_divisor"),
        help="What p@k is divided by in a query with fewer than k documents: k, or their number (length)."
        f"{_default('p_divisor')}",
    ),
    click.option(
        "--map-divisor",
        type=_words("map_divisor"),
        help="What map@k is divided by: the relevant documents of the query, at most k of them, or at most as many as "
        f"are looked at (length).{_default('map_divisor')}",
    ),
    click.option(
        "--precision",
        type=_words("precision"),
        help="Scores are compared as they are, in 64 bits, or rounded to 32 bits (single), which makes some of them "
        f"equal.{_default('precision')}",
    ),
)


def convention_options(function: F) -> F:
    """Add --like and the options of single conventions.

    function : the command
    """
    for option in reversed(_OPTIONS):
        function = option(function)
    return function
