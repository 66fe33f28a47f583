"""What can go wrong, in words for the user, and the exit status that each outcome has."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum
from importlib import import_module
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")
PACKAGE = os.path.dirname(__file__) + os.sep
_OPTION = re.compile(r"(?<!\S)(\(?)--([a-z0-9-]+)")


class ExitStatus(IntEnum):
    """The exit statuses of every command; the only place where they are listed."""

    brief: str
    description: str

    def __new__(cls, value: int, brief: str, description: str) -> ExitStatus:
        """Make a status of its number, the words that help shows, and the sentence of manual pages."""
        member = int.__new__(cls, value)
        member._value_ = value
        member.brief = brief
        member.description = description
        return member

    DONE = 0, "done", "The work is done."
    FAILED = 1, "failed", "The data or a model is wrong, or the work failed."
    USAGE = 2, "wrong usage", "Wrong usage, found before any data is read."
    INTERRUPTED = 130, "interrupted", "Interrupted (SIGINT)."
    PIPE_CLOSED = 141, "output closed", "The reader of the output closed it; nothing is said about it."
    TERMINATED = 143, "terminated", "Terminated (SIGTERM)."


def input_name(path: str) -> str:
    """Return what messages call an input: its path, or 'standard input' for '-'."""
    return "standard input" if path == "-" else path


def quote(token: str | bytes, limit: int = 60) -> str:
    """Return the token in quotes, cut at `limit` characters, with everything that could disturb a terminal escaped."""
    text = token.decode("utf-8", "backslashreplace") if isinstance(token, bytes) else token
    return "'" + _cut(text, limit) + "'"


def shown(value: object, limit: int = 60) -> str:
    """Return a value that a program gave for a message: its repr, cut and escaped as `quote` does."""
    try:
        return _cut(repr(value), limit)
    except ValueError:  # Python writes no number of more than 4,300 digits
        return "a number of thousands of digits"


def _cut(text: str, limit: int) -> str:
    return visible(text if len(text) <= limit else text[: limit - 3] + "...")


def visible(text: str) -> str:
    """Return the text with control characters, lone surrogates and other unprintable characters escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number and what it counts, such as `1 tree`, `2 queries`, or with a plural `3 leaves`."""
    usual = noun[:-1] + "ies" if noun.endswith(("ry", "ty")) else noun + "s"
    return f"{number:,} {noun if number == 1 else plural or usual}"


def either(names: Sequence[str], word: str = "or") -> str:
    """Return alternatives as text, such as `tsv, trec or jsonl`, or with another word before the last."""
    return f" {word} ".join([*([", ".join(names[:-1])] if names[1:] else []), *names[-1:]])


def listed(names: Sequence[str], most: int = 8, form: Callable[[str], str] = quote) -> str:
    """Return names as text, of many the first ones and how many more there are, such as `'a', 'b' and 3 more`."""
    shown = ", ".join(map(form, names[:most]))
    return shown if len(names) <= most else f"{shown} and {len(names) - most:,} more"


def first_repeated(values: Iterable[T]) -> T | None:
    """Return the first value that stands a second time; None when each is there once."""
    seen: set[T] = set()
    for value in values:
        if value in seen:
            return value
        seen.add(value)
    return None


def needs_package(purpose: str, package: str) -> str:
    """Return what to say where a package is not installed."""
    return f"{purpose} needs the package {package}: pip install {package}"


def with_arguments(text: str) -> str:
    """Return a text with options named as the arguments of Python are, such as min_docs for --min-docs."""
    return _OPTION.sub(lambda found: found[1] + found[2].replace("-", "_"), text)


def warn(text: str) -> None:
    """Give a Python program a UserWarning, at the line of it that called lmart; options are named as arguments."""
    level = 1
    caller: FrameType | None = sys._getframe()
    while caller is not None and caller.f_code.co_filename.startswith(PACKAGE):
        level, caller = level + 1, caller.f_back
    warnings.warn(with_arguments(text), UserWarning, stacklevel=level)


class LmartError(Exception):
    """A refusal that the user can act on: one line, shown as `lmart: error: MESSAGE`.

    `message` says what is wrong, with the token quoted, and what to do. `path` and `line` (1-based) say where.
    """

    status = ExitStatus.FAILED
    stream = "standard input"  # what '-' as the path stands for

    def __init__(self, message: str, path: str | None = None, line: int | None = None) -> None:
        self.message = message
        self.path = path
        self.line = line
        super().__init__(str(self))

    def __str__(self) -> str:
        where = "" if self.path is None else visible(self.stream if self.path == "-" else self.path)
        if self.line is not None:
            where += f":{self.line}"
        return f"{where}: {self.message}" if where else self.message


class DataError(LmartError):
    """The data cannot be read, or cannot be used as asked.

    `more` holds further faults of the same input. Faults of one `kind`, unless it is '', share a line.
    """

    def __init__(
        self,
        message: str,
        path: str | None = None,
        line: int | None = None,
        more: tuple[DataError, ...] = (),
        kind: str = "",
    ) -> None:
        super().__init__(message, path, line)
        self.more = more
        self.kind = kind


class ArrayError(DataError, ValueError):
    """What a Python program gave, such as an array, cannot be used; a ValueError too, as is usual there."""


class ModelError(LmartError):
    """A model file is damaged, or does not fit the data."""


class OutputError(LmartError):
    """A result could not be written."""

    stream = "standard output"


class SettingsError(LmartError):
    """A setting is outside its range; found before any data is read."""

    status = ExitStatus.USAGE


@contextmanager
def naming_arguments() -> Iterator[None]:
    """Let refusals name options as the arguments of Python are named."""
    try:
        yield
    except LmartError as refusal:
        for fault in (refusal, *(refusal.more if isinstance(refusal, DataError) else ())):
            fault.message = with_arguments(fault.message)
            fault.args = (str(fault),)
        raise


def load_package(name: str, purpose: str, error: type[LmartError], path: str | None = None) -> Any:
    """Return a package that lmart can do without; `error` says what to install when it is not there."""
    try:
        return import_module(name)
    except ModuleNotFoundError:
        raise error(needs_package(purpose, name), path) from None
