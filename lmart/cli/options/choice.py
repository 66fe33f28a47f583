"""Options whose value is one of several words. Light: the program itself has one."""

from __future__ import annotations

from typing import Any

import click

from lmart.errors import quote
from lmart.foreign_names import perhaps


class Choice(click.Choice):  # type: ignore[type-arg]
    """One of several words; of a word that another tool has in its place, the refusal says which one it is here."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the word that `value` is; a usage error, of `param` in `ctx`, when it is none of them."""
        text = str(value)
        if text not in self.choices:
            listed = ", ".join(map(quote, self.choices))
            hint = perhaps((param and param.name) or "", text, self.choices)
            self.fail(f"{quote(text)} is not one of {listed}{hint}", param, ctx)
        return text
