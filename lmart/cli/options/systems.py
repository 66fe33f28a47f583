"""Options that name what is measured, in the order of the command line: `-m a.json --scores b.txt -m c.json`."""

from __future__ import annotations

from typing import NamedTuple

import click

from lmart.cli.options.multi_file import ManyFilesCommand
from lmart.cli.options.parsed_line import line_of

KINDS = ("model", "scores", "run")
"""Names of the parameters, which are the kinds of systems too."""


class GivenSystem(NamedTuple):
    """A system as the command line names it: its kind, one of KINDS, and its file."""

    kind: str
    path: str


class SystemsCommand(ManyFilesCommand):
    """A command whose options KINDS arrive as one parameter, `systems`, a tuple of `GivenSystem` in their order.

    Click hands over the values of each option by themselves, so that their common order would be lost. The options are
    to be made with `expose_value=False` and `multiple=True`.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse as ever, then set the parameter `systems`."""
        rest = super().parse_args(ctx, args)
        if ctx.resilient_parsing:
            return rest
        line = line_of(ctx)
        left = {kind: iter(line.values.get(kind) or ()) for kind in KINDS}
        named = [parameter.name or "" for parameter in line.order]
        ctx.params["systems"] = tuple(GivenSystem(name, next(left[name])) for name in named if name in left)
        return rest
