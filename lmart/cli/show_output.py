"""What `lmart show` writes: a page, if one is asked for, and text or JSON on standard output."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import click

from lmart.cli.show_request import ShowOptions
from lmart.cli.signals import flush_output
from lmart.streams import AtomicOutputs


def write(options: ShowOptions, page: Callable[[], str] | None, output: Callable[[], None]) -> None:
    """Write the page, if there is one, and the output, unless the page stands in its place.

    page   : returns the HTML
    output : prints to standard output
    """
    with AtomicOutputs() as files:
        if page is not None and options.html is not None:
            files.open(options.html).write(page())
        if options.html != "-":
            output()
        flush_output()  # an older page stays when the text is lost


def print_json(content: Mapping[str, Any]) -> None:
    """Print one JSON object."""
    click.echo(json.dumps(content, allow_nan=False))


def print_lines(lines: Iterable[str], end: str = "\n") -> None:
    """Print lines, or texts that end by themselves."""
    for line in lines:
        click.echo(line + end, nl=False)
