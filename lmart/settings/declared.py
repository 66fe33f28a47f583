"""Declarations of options: fields of a record, from which the command line, Python and the manual pages take them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any, TypedDict, Unpack


class Declaration(TypedDict, total=False):
    """What is declared of an option besides its default and help; the second half is for the command line alone.

    low, high : smallest and largest number, allowed themselves; without `high` numbers are bounded as all are
    above     : a number that all are above
    choices   : the words that are allowed
    joined    : several choices may be joined with +
    other     : a word that stands for None
    flags     : names besides the one that the field gives, or in its place if one of them is long
    metavar   : the word that stands for the value in help, by default that of its type; FILE... takes several files
    shown     : what help shows as the default, in place of the value
    type      : a type of Click, by default that of the annotation
    instead   : what to do instead of giving the option twice; without it the last value counts
    is_list   : whether a value is a list with commas, to which a second one is added
    required, multiple, count, nargs, callback, is_eager : as Click has them
    """

    low: float | None
    high: float | None
    above: float | None
    choices: Sequence[str]
    joined: bool
    other: str
    flags: Sequence[str]
    metavar: str
    shown: str
    type: object
    instead: str
    is_list: Callable[[str], bool]
    required: bool
    multiple: bool
    count: bool
    nargs: int
    callback: Callable[..., object]
    is_eager: bool


def declared(default: object, help: str, more: str = "", **values: Unpack[Declaration]) -> Any:
    """Return a field of a record that is an option.

    more   : what the manual page says besides
    values : the rest of the declaration
    """
    return field(default=default, metadata={"help": help, "more": more, **values})
