"""Several options of a command as one keyword argument."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence

import click


def packed(
    keyword: str, make: Callable[..., object], names: Iterable[str], options: Sequence[Callable[..., object]] = ()
) -> Callable[[Callable[..., object]], Callable[..., object]]:
    """Return a decorator that adds options to a command and passes it values of options as one argument.

    keyword : name of the argument of the command
    make    : called with the values by name; what it returns is the argument
    names   : names of the options that are taken out of the command's arguments
    options : decorators made by `click.option`, in the order of the help
    """
    taken = tuple(names)

    def decorate(function: Callable[..., object]) -> Callable[..., object]:
        """Add the options to a command."""

        @functools.wraps(function)
        def with_packed(*args: object, **values: object) -> object:
            argument = make(**{name: values.pop(name) for name in taken})
            return function(*args, **{keyword: argument}, **values)

        decorated: Callable[..., object] = with_packed
        for option in reversed(options):
            decorated = option(decorated)
        return decorated

    return decorate


def given_on_command_line(name: str) -> bool:
    """Return whether the option of the running command was given on the command line."""
    return click.get_current_context().get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
