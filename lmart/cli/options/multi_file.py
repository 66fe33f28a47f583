"""Options that take several files: `--data a b c` as well as `--data a --data b`."""

from __future__ import annotations

from typing import Any

from lmart.cli.help.command import HelpfulCommand


class ManyFilesCommand(HelpfulCommand):
    """A command without arguments, in which a file after a file of one of the options `many` belongs to it too."""

    def __init__(self, *args: Any, many: tuple[str, ...], **named: Any) -> None:
        super().__init__(*args, **named)
        self.many = many

    def prepared(self, args: list[str]) -> list[str]:
        """Return the arguments with the option before each further file."""
        spread: list[str] = []
        current: str | None = None
        values = 0
        for arg in super().prepared(args):
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
