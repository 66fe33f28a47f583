"""Options that take several files: `--data a b c` as well as `--data a --data b`; and options that are given again."""

from __future__ import annotations

from typing import Any

import click

REPEATED = "lmart.repeated"


class ManyFilesCommand(click.Command):
    """A command without arguments, in which a file after a file of one of the options `many` belongs to it too.

    once : options that may not be given again, as whoever does it wants both; of others the last counts
    """

    def __init__(self, *args: Any, many: tuple[str, ...], once: tuple[str, ...] = (), **named: Any) -> None:
        super().__init__(*args, **named)
        self.many = many
        self.once = once

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Write the option before each further file, then parse as ever."""
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
        _, _, order = self.make_parser(ctx).parse_args(list(spread))
        repeated = [one for place, one in enumerate(order) if _takes_one(one) and one in order[:place]]
        for one in repeated:
            if max(one.opts, key=len) in self.once and not ctx.resilient_parsing:
                raise click.UsageError(f"{_flags(one)} is there twice; give it once", ctx)
        parsed = super().parse_args(ctx, spread)
        ctx.meta[REPEATED] = [f"{_flags(one)} is there twice; the last one counts" for one in dict.fromkeys(repeated)]
        return parsed


def told_of_repeated() -> list[str]:
    """Return what to say of options of the command at work that were given again: the last of each counts."""
    told: list[str] = click.get_current_context().meta.get(REPEATED, [])
    return told


def _takes_one(parameter: click.Parameter) -> bool:
    """Return whether only the last of several counts."""
    if not isinstance(parameter, click.Option) or parameter.multiple or parameter.count:
        return False
    return not parameter.is_flag or bool(parameter.secondary_opts)


def _flags(option: click.Parameter) -> str:
    return "/".join(max(names, key=len) for names in (option.opts, option.secondary_opts) if names)
