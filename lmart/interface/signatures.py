"""The signatures and help of functions that take all settings: a list that is made of TrainSettings.

A notebook completes what stands in a signature, and `help` shows it; the types are those of the TypedDict that mypy and
pyright read.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from dataclasses import fields
from typing import Any, TypeVar

from lmart.errors import with_arguments
from lmart.gains import Gain
from lmart.interface.arguments import Run
from lmart.settings import RECORDED, options, range_in_words
from lmart.settings.train_settings import setting

T = TypeVar("T", bound=Callable[..., Any])
WIDTH = 120


def listing_settings(arguments: type[Any]) -> Callable[[T], T]:
    """Return a decorator that lists all keywords in the signature of a function, and the settings in its docstring.

    arguments : TypedDict of the keywords
    """

    def decorate(function: T) -> T:
        """Write the signature and the docstring."""
        own = [
            parameter
            for parameter in inspect.signature(function).parameters.values()
            if parameter.kind is not parameter.VAR_KEYWORD
        ]
        types = {name: getattr(kind, "__forward_arg__", kind) for name, kind in arguments.__annotations__.items()}
        defaults = {option.name: _plain(option.default) for option in options()}
        defaults |= {field.name: field.default for field in fields(Run)}
        keywords = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=defaults.get(name), annotation=kind)
            for name, kind in types.items()
            if name not in RECORDED
        ]
        signature = inspect.Signature([*own, *keywords], return_annotation=function.__annotations__["return"])
        function.__signature__ = signature  # type: ignore[attr-defined]
        function.__doc__ = with_settings(function.__doc__)
        return function

    return decorate


def _plain(value: object) -> object:
    """Return a default as a program writes it."""
    return str(value) if isinstance(value, Gain) else value


def with_settings(text: str | None) -> str:
    """Return a docstring with the list of all settings at its end: what each means, its range and its default."""
    lines = [inspect.cleandoc(text or ""), "", "The settings, each with its default:", ""]
    for option in options():
        lines += _setting_lines(option.name)
    return "\n".join(lines) + "\n"


def _setting_lines(name: str) -> list[str]:
    """Return the lines of one setting."""
    option = setting(name)
    declared = option.metadata
    default = "auto" if option.default is None else repr(_plain(option.default))
    allowed = range_in_words(declared.get("low"), declared.get("high"), declared.get("above"))
    meaning = with_arguments(declared["help"])
    return textwrap.wrap(
        f"{name} = {default}: {meaning}{f' {allowed.capitalize()}.' if allowed else ''}",
        WIDTH,
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    )
