"""Options given twice: refused where Click would silently take the last."""

from __future__ import annotations

from collections.abc import Sequence

import click


def refuse_repeated(command: click.Command, context: click.Context, arguments: Sequence[str]) -> None:
    """Raise a usage error when an option of one value, or one with an opposite, stands twice among the arguments.

    command   : whose options they are
    context   : that of the group
    arguments : those of the command

    Options that may be given several times, and plain flags, are left alone; what is wrong with the arguments otherwise
    is left to Click.
    """
    own = click.Context(command, info_name=command.name, parent=context, resilient_parsing=True)
    try:
        _, _, order = command.make_parser(own).parse_args(args=list(arguments))
    except click.UsageError:
        return
    seen: set[str] = set()
    for parameter in order:
        if not isinstance(parameter, click.Option) or parameter.multiple or parameter.count:
            continue
        if parameter.is_flag and not parameter.secondary_opts:
            continue
        if parameter.name in seen:
            names = "/".join([max(parameter.opts, key=len), *parameter.secondary_opts])
            raise click.UsageError(f"{names} is given twice; give it once")
        seen.add(parameter.name or "")
