"""Options of conventions: how measures are computed where tools differ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from lmart.cli.options.choice import Choice
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


def _words(name: str) -> Choice:
    return Choice(tuple(CHOICES[name]))


def _default(name: str) -> str:
    return next(iter(CHOICES[name]))


_OPTIONS = (
    click.option(
        "--like",
        type=Choice(tuple(PRESETS)),
        metavar="TOOL",
        default=None,
        help="Follow the conventions of another tool.\f The same scores then get its numbers; the options "
        f"below change single conventions. The tools are {', '.join(PRESETS)}; see lmart-measures(7).",
    ),
    click.option(
        "--gain",
        type=GainType(),
        metavar="GAIN",
        show_default="the model's, else exp2",
        help=f"Gain of a label: exp2, linear, or a table G0,G1,...\f "
        f"In {WITH_GAIN}: 2^label - 1, the label, or an entry "
        "of a table, which has them from label 0 up.",
    ),
    click.option(
        "--discount",
        type=_words("discount"),
        show_default=_default("discount"),
        help=f"Discount of a rank.\f "
        f"In {WITH_GAIN}: 1 / log2(rank + 1), or that of LETOR, 1 at ranks 1 and 2, then 1 / "
        "log2(rank).",
    ),
    click.option(
        "--relevant",
        metavar="LABEL",
        type=Real(min=0, max=LARGEST_LEVEL, min_open=True),
        default=None,
        show_default="any above 0",
        help="Least label of a relevant document.\f It applies to binary measures without a rel= of their "
        "own, as in p@5(rel=2).",
    ),
    click.option(
        "--empty",
        type=_words("empty"),
        show_default=_default("empty"),
        help=f"Value of a query without a relevant document.\f In all measures except {WITHOUT_EMPTY}; skip "
        "leaves the query out of the mean.",
    ),
    click.option(
        "--ties",
        type=_words("ties"),
        metavar="ORDER",
        show_default=_default("ties"),
        help="Order of equal scores: input, reverse, docid or average.\f input: the order of the data. "
        "reverse: its reverse. docid: by document id, the last first. average: the mean over all "
        "orders, computed exactly.",
    ),
    click.option(
        "--short",
        type=_words("short"),
        show_default=_default("short"),
        help="ndcg@k of queries with fewer than k documents.\f whole: the value for the whole query; zero: "
        "0, as in LETOR.",
    ),
    click.option(
        "--p-divisor",
        type=_words("p_divisor"),
        show_default=_default("p_divisor"),
        help="Divisor of p@k in queries shorter than k.\f k, or their number of documents (length).",
    ),
    click.option(
        "--map-divisor",
        type=_words("map_divisor"),
        metavar="DIVISOR",
        show_default=_default("map_divisor"),
        help="Divisor of map@k: relevant, k or length.\f relevant: the number of relevant documents of the "
        "query; k: at most k; length: at most the number of ranks that count.",
    ),
    click.option(
        "--precision",
        type=_words("precision"),
        show_default=_default("precision"),
        help="Precision for the comparison of scores.\f double: 64 bits; single: rounded to 32 bits, which "
        "makes some scores equal.",
    ),
)


def convention_options(function: F) -> F:
    """Add --like and the options of single conventions."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function
