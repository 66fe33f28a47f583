"""Types of option values: words, numbers in a range, gains, measures."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any

import click

from lmart.decimals import LARGEST_REAL, MOST_COUNTED, decimal, whole
from lmart.errors import SettingsError, quote
from lmart.foreign_names import perhaps
from lmart.functions import refuse_name

if TYPE_CHECKING:
    from lmart.gains import Gain


SUM_ERROR = 1e-6  # of shares, such as three times 0.3333333


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


class Whole(click.IntRange):
    """A whole number from `min` to `max`, without it to MOST_COUNTED; `other` is a word that stands for None."""

    name = "whole number"

    def __init__(self, min: int | None = None, max: int | None = None, other: str | None = None) -> None:
        super().__init__(min, MOST_COUNTED if max is None else max)
        self.other = other

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number that `value` is; a usage error, of `param` in `ctx`, when it is none of the range."""
        return _number(self, str(value), param, ctx)

    def _describe_range(self) -> str:
        return _range(self, None if self.max == MOST_COUNTED else self.max)


class WholeOrFile(Whole):
    """A whole number as Whole takes it, or the name of a file."""

    name = "whole number or file"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number or the name of the file that `value` is; a usage error, of `param` in `ctx`, otherwise."""
        text = str(value)
        if whole(text) is not None:
            return super().convert(value, param, ctx)
        if text != "-" and not os.path.exists(text):
            self.fail(f"{quote(text)} is neither a whole number {_range(self, self.max)} nor a file", param, ctx)
        return text


class Shares(click.ParamType):  # type: ignore[type-arg]
    """Two or more numbers above 0 that add up to 1, with commas between."""

    name = "shares"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[float, ...]:
        """Return the numbers that `value` lists; a usage error, of `param` in `ctx`, when they are no shares."""
        if isinstance(value, tuple):
            return value
        shares = [decimal(text) or 0.0 for text in str(value).split(",")]
        if min(shares) <= 0.0 or len(shares) < 2:
            self.fail(f"{quote(str(value))} is no list of shares above 0, such as 0.8,0.1,0.1", param, ctx)
        if abs(math.fsum(shares) - 1.0) > SUM_ERROR:
            self.fail(
                f"the shares {quote(str(value))} add up to {math.fsum(shares):.6g}; give them a sum of 1", param, ctx
            )
        return tuple(shares)


class Real(click.FloatRange):
    """A number from `min`, or above it where `min_open`, to `max`, without it to LARGEST_REAL.

    `other` is a word that stands for None.
    """

    name = "number"

    def __init__(
        self, min: float | None = None, max: float | None = None, min_open: bool = False, other: str | None = None
    ) -> None:
        super().__init__(min, LARGEST_REAL if max is None else max, min_open)
        self.other = other

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number that `value` is; a usage error, of `param` in `ctx`, when it is none of the range."""
        return _number(self, str(value), param, ctx)

    def _describe_range(self) -> str:
        return _range(self, None if self.max == LARGEST_REAL else self.max)


class MeasureType(click.ParamType):  # type: ignore[type-arg]
    """A measure, or several with commas between, as text."""

    name = "measure"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return `value` as it is; a usage error, of `param` in `ctx`, when it is no list of measures."""
        from lmart.measures import parse_measures

        try:
            parse_measures(str(value))
        except SettingsError as fault:
            self.fail(fault.message, param, ctx)
        return str(value)


class GainType(click.ParamType):  # type: ignore[type-arg]
    """A gain, as `Gain.parse` reads it."""

    name = "gain"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Gain:
        """Return the gain that `value` is; a usage error, of `param` in `ctx`, when it is none."""
        from lmart.gains import Gain

        try:
            return value if isinstance(value, Gain) else Gain.parse(str(value))
        except SettingsError as fault:
            self.fail(fault.message, param, ctx)


class Names(click.ParamType):  # type: ignore[type-arg]
    """One of the choices, or several with + between; `other` is a word that stands for None."""

    name = "names"

    def __init__(self, choices: tuple[str, ...], other: str, several: bool = True) -> None:
        self.choices = choices
        self.other = other
        self.several = several

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str | None:
        """Return the names in `value`, or None; a usage error, of `param` in `ctx`, when one is not known."""
        text = str(value)
        if text == self.other:
            return None
        named = text.split("+") if self.several else [text]
        for name in named:
            if name not in self.choices:
                refuse_name((param and param.name) or "", name)
                listed = ", ".join(map(quote, (*self.choices, self.other)))
                meant = perhaps((param and param.name) or "", name, (*self.choices, self.other))
                self.fail(f"{quote(name)} is not one of {listed}{meant}", param, ctx)
        if len(set(named)) < len(named):
            self.fail(f"{quote(text)} names one twice", param, ctx)
        return text


def _number(kind: Whole | Real, text: str, param: click.Parameter | None, ctx: click.Context | None) -> Any:
    """Return the number that a text is; a usage error, of `param` in `ctx`, when it is none of the range."""
    if text == kind.other:
        return None
    number, noun = (decimal(text), Real.name) if isinstance(kind, Real) else (whole(text), Whole.name)
    low, high = -math.inf if kind.min is None else kind.min, math.inf if kind.max is None else kind.max
    if number is None or not low <= number <= high or (kind.min_open and number == low):
        choice = f"{quote(kind.other)} or " if kind.other else ""
        kind.fail(f"{quote(text)} is not {choice}a {noun} {_range(kind, kind.max)}", param, ctx)
    return number


def _range(kind: click.IntRange | click.FloatRange, high: float | None) -> str:
    """Return the range of a number in words, up to `high`; help leaves bounds out that all numbers have."""
    from lmart.settings import range_in_words  # here, as `lmart --version` does without settings

    low, above = (None, kind.min) if kind.min_open else (kind.min, None)
    return range_in_words(low, high, above)
