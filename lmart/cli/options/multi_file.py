"""Options that take several files: `--data a b c` as well as `--data a --data b`."""

from __future__ import annotations

from typing import Any

import click

from lmart.cli.help.command import HelpfulCommand


class ManyFilesCommand(HelpfulCommand):
    """A command without arguments, in which a file after a file of one of the options `many` belongs to it too."""

    def __init__(self, *args: Any, many: tuple[str, ...], **named: Any) -> None:
        super().__init__(*args, **named)
        self.many = many

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Write the option before each further file, then parse as ever.

        ctx  : of the command
        args : as they were written
        """
        return super().parse_args(ctx, self.spread(args))

    def spread(self, args: list[str]) -> list[str]:
        """Return the arguments with the option before each further file."""
        spread: list[str] = []
        current: str | None = None
        values = 0
        for arg in args:
            if arg.startswith("-") and arg != "-":
                option, _, value = arg.partition("=")
                current = option if option in self.many else None
                values = 1 if value else 0
                spread.append(arg)
                continue
            if current is not None and values:
                spread.append(current)
            spread.append(arg)
            values += 1
        return spread
