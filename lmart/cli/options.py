"""Options that several commands share, options made from settings, and the parameter types they need."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from lmart.errors import SettingsError, quote
from lmart.gains import Gain
from lmart.settings import AUTO, range_in_words, setting

F = TypeVar("F", bound=Callable[..., Any])

WHOLE = re.compile(r"[+-]?[0-9]+")
DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


class Whole(click.IntRange):
    """A whole number of a range; `other` is a word that stands for None."""

    name = "whole number"

    def __init__(self, *args: Any, other: str | None = None, **named: Any) -> None:
        super().__init__(*args, **named)
        self.other = other

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        text = str(value)
        if text == self.other:
            return None
        number = int(text) if WHOLE.fullmatch(text) and len(text) < 1000 else None
        if number is None or not _inside(number, self):
            choice = f"{quote(self.other)} or " if self.other else ""
            self.fail(f"{quote(text)} is not {choice}a whole number {self._describe_range()}".rstrip(), param, ctx)
        return number

    def _describe_range(self) -> str:
        return _words(self)


class Real(click.FloatRange):
    """A finite number of a range; `other` is a word that stands for None."""

    name = "number"

    def __init__(self, *args: Any, other: str | None = None, **named: Any) -> None:
        super().__init__(*args, **named)
        self.other = other

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        text = str(value)
        if text == self.other:
            return None
        number = float(text) if DECIMAL.fullmatch(text) else math.nan
        if not math.isfinite(number) or not _inside(number, self):
            choice = f"{quote(self.other)} or " if self.other else ""
            self.fail(f"{quote(text)} is not {choice}a number {self._describe_range()}".rstrip(), param, ctx)
        return number

    def _describe_range(self) -> str:
        return _words(self)


class GainType(click.ParamType):  # type: ignore[type-arg]
    """A gain, as `Gain.parse` reads it."""

    name = "gain"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Gain:
        try:
            return value if isinstance(value, Gain) else Gain.parse(value)
        except SettingsError as fault:
            self.fail(fault.message, param, ctx)


class Names(click.ParamType):  # type: ignore[type-arg]
    """Some of several names, with + between; `other` is a word that stands for None."""

    name = "names"

    def __init__(self, choices: tuple[str, ...], other: str) -> None:
        self.choices = choices
        self.other = other

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str | None:
        text = str(value)
        if text == self.other:
            return None
        named = text.split("+")
        for one in named:
            if one not in self.choices:
                listed = ", ".join(map(quote, (*self.choices, self.other)))
                self.fail(f"{quote(one)} is not one of {listed}", param, ctx)
        if len(set(named)) < len(named):
            self.fail(f"{quote(text)} names one twice", param, ctx)
        return text


def _inside(number: float, kind: click.IntRange | click.FloatRange) -> bool:
    above_low = kind.min is None or (number > kind.min if kind.min_open else number >= kind.min)
    return above_low and (kind.max is None or number <= kind.max)


def _words(kind: click.IntRange | click.FloatRange) -> str:
    low, above = (None, kind.min) if kind.min_open else (kind.min, None)
    return range_in_words(low, kind.max, above)


def setting_option(name: str, metavar: str | None = None) -> Callable[[F], F]:
    """Return the option of one setting; flag, default, range and help are those of its declaration in TrainSettings."""
    one = setting(name)
    flag = "--" + name.replace("_", "-")
    low, high, above = (one.metadata[key] for key in ("low", "high", "above"))
    shown: dict[str, Any] = {"default": one.default, "show_default": True, "help": one.metadata["meaning"]}
    if isinstance(one.default, bool):
        return click.option(f"{flag}/--no-{flag[2:]}", **shown)
    if isinstance(one.default, Gain):
        return click.option(flag, type=GainType(), metavar=metavar or "GAIN", **shown)
    other = AUTO if one.default is None else None
    if other:
        shown |= {"default": other}
    if one.metadata["joined"]:
        return click.option(flag, type=Names(one.metadata["choices"], AUTO), metavar=metavar or "NAME", **shown)
    if isinstance(one.default, int) or name == "leaves":
        return click.option(flag, type=Whole(low, high, other=other), metavar=metavar or "N", **shown)
    if isinstance(one.default, float) or name == "sample":
        bound = {"min": low if above is None else above, "max": high, "min_open": above is not None}
        return click.option(flag, type=Real(**bound, other=other), metavar=metavar or "R", **shown)
    if one.default == "":
        shown |= {"show_default": "none"}
    if one.metadata["choices"]:
        return click.option(flag, type=click.Choice(one.metadata["choices"]), **shown)
    return click.option(flag, metavar=metavar or "TEXT", **shown)


def definitions(entries: Mapping[str, str]) -> str:
    """Return lines of a help text, each name with its meaning beside it, broken to the width of help pages."""
    import textwrap

    column = 4 + max(map(len, entries))
    lines = []
    for name, meaning in entries.items():
        opening = f"  {name}".ljust(column)
        lines += textwrap.wrap(f"{meaning}.", 74, initial_indent=opening, subsequent_indent=" " * column)
    return "\n".join(lines)


def threads_option(function: F) -> F:
    """Add --threads N."""
    return click.option(
        "--threads",
        type=Whole(min=1),
        metavar="N",
        default=None,
        show_default="all processors this process may use",
        help="Threads to use. The result never depends on it.",
    )(function)


def quiet_option(function: F) -> F:
    """Add -q/--quiet; the command gets how often it is given, which is what `Console` takes."""
    what = "Say nothing but warnings and errors; twice (-qq): nothing but errors."
    return click.option("-q", "--quiet", count=True, help=what)(function)


def thread_count(asked: int | None, notice: Callable[[str], None]) -> int:
    """Return how many threads to use: all this process may have, or fewer if asked; more are capped, with a notice."""
    from lmart.threads import available_processors

    available = available_processors()
    if asked is not None and asked > available:
        notice(f"--threads {asked} is more than this process may use; using {available}")
    return available if asked is None else min(asked, available)
