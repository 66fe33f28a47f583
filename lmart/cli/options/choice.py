"""Options whose value is one of several words. Light: the program itself has one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from lmart.cli.options.foreign_values import values_for
from lmart.errors import quote


class Choice(click.Choice):  # type: ignore[type-arg]
    """One of several words; of a word that another tool has in its place, the refusal says which one it is here."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the word that `value` is; a usage error, of `param` in `ctx`, when it is none of them."""
        text = str(value)
        if text not in self.choices:
            listed = ", ".join(map(quote, self.choices))
            self.fail(f"{quote(text)} is not one of {listed}{perhaps(text, param, self.choices)}", param, ctx)
        return text


def perhaps(word: str, parameter: click.Parameter | None, choices: Sequence[str]) -> str:
    """Return `; perhaps 'x'` for a word that stands for one of the choices of a parameter, else nothing.

    word      : as it was written
    parameter : of the command; None: not known
    choices   : what the parameter takes
    """
    meant = values_for(word, (parameter.name if parameter is not None else "") or "", choices)
    return f"; perhaps {' or '.join(map(quote, meant))}" if meant else ""
