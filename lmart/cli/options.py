"""Options that several commands share, and the parameter types they need."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def threads_option(function: F) -> F:
    """Add --threads N."""
    return click.option(
        "--threads",
        type=click.IntRange(min=1),
        metavar="N",
        default=None,
        help="Threads to use. The result never depends on it.  [default: all processors this process may use]",
    )(function)


def quiet_option(function: F) -> F:
    """Add -q/--quiet."""
    return click.option("-q", "--quiet", is_flag=True, help="Say nothing but errors.")(function)
