"""Options that all commands have, and help texts of definitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import click

from lmart.cli.options.types import F, Whole


def definitions(entries: Mapping[str, str]) -> str:
    """Return lines of a help text, each name followed by its meaning, broken to the width of help pages."""
    import textwrap

    column = 4 + max(map(len, entries))
    lines = []
    for name, meaning in entries.items():
        opening = f"  {name}".ljust(column)
        lines += textwrap.wrap(f"{meaning}.", 72, initial_indent=opening, subsequent_indent=" " * column)
    return "\n".join(lines)


def threads_option(function: F) -> F:
    """Add --threads N."""
    return click.option(
        "--threads",
        type=Whole(min=1),
        metavar="N",
        default=None,
        show_default="all there are",
        help="Number of threads.\f By default lmart uses all processors that it may use. The result never "
        "depends on it.",
    )(function)


def quiet_option(function: F) -> F:
    """Add -q/--quiet; the command gets how often it is given, which is what `Console` takes."""
    what = "Hide notices and progress; -qq hides warnings too."
    return click.option("-q", "--quiet", count=True, help=what)(function)


def strict_option(function: F) -> F:
    """Add --strict to a command that scores data with a model."""
    return click.option(
        "--strict",
        is_flag=True,
        help="Refuse data whose features differ from the model's.\f It refuses data with features that the "
        "model does not have, and tables that lack a column of the model.",
    )(function)


def thread_count(asked: int | None, notice: Callable[[str], None]) -> int:
    """Return how many threads to use: all this process may have, or fewer if asked; more are capped, with a notice."""
    from lmart.threads import available_processors

    available = available_processors()
    if asked is not None and asked > available:
        notice(f"--threads {asked} is more than this process may use; using {available}")
    return available if asked is None else min(asked, available)
