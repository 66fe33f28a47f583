"""Signatures of kernels as text, and the table of those that commands need: `lmart/kernels/signatures.txt`.

Each line has the name of a kernel, the seconds that compiling it takes about, the commands that need it in their plain
form (- for none), and the types of its arguments: `float64`, an array as `float64[1C]` with its dimensions and layout
(and r when it is read-only), a named tuple as `module.Class(types)`, a plain one as `(types)`.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numba.types

types: Any = numba.types  # its classes know only some of their attributes
TABLE = Path(__file__).parent.parent / "signatures.txt"
_TOKEN = re.compile(r"[^\s()\[\]]*\[\w+\]|[^\s()]*\(|[^\s()]+|\)")
_PACKAGE = "lmart.kernels."


class Signature(NamedTuple):
    """One signature of a kernel that Python calls.

    kernel   : its file and name, as in `text.letor.parse_letor`
    seconds  : that compiling it takes about
    commands : that need it in their plain form
    text     : its types
    """

    kernel: str
    seconds: float
    commands: frozenset[str]
    text: str


@cache
def known_signatures() -> tuple[Signature, ...]:
    """Return the table, in the order in which commands need the kernels; empty when there is none."""
    try:
        lines = TABLE.read_text("utf-8").splitlines()
    except OSError:
        return ()
    found = []
    for line in lines:
        if line and not line.startswith("#"):
            kernel, seconds, commands, text = line.split(" ", 3)
            found.append(Signature(kernel, float(seconds), frozenset(commands.split(",")) - {"-"}, text))
    return tuple(found)


def describe(arguments: tuple[Any, ...]) -> str:
    """Return types of numba as text."""
    return " ".join(map(_describe, arguments))


def _describe(one: Any) -> str:
    if isinstance(one, types.Array):
        return f"{one.dtype}[{one.ndim}{one.layout}{'' if one.mutable else 'r'}]"
    if isinstance(one, types.BaseNamedTuple):
        place = one.instance_class.__module__.removeprefix(_PACKAGE)
        return f"{place}.{one.instance_class.__name__}({' '.join(map(_describe, one))})"
    if isinstance(one, types.BaseTuple):
        return f"({' '.join(map(_describe, one))})"
    return str(one)


def parse(text: str) -> tuple[Any, ...]:
    """Return the types of numba that `describe` made a text of; ValueError, AttributeError or ImportError."""
    return tuple(_parse(iter(_TOKEN.findall(text))))


def _parse(tokens: Iterator[str]) -> Iterator[Any]:
    for token in tokens:
        if token == ")":
            return
        if token.endswith("("):
            members = list(_parse(tokens))
            kind = _class_of(token[:-1]) if len(token) > 1 else None
            yield types.BaseTuple.from_types(members, kind)
        elif token.endswith("]"):
            dtype, _, shape = token[:-1].partition("[")
            read_only = shape.endswith("r")
            shape = shape.removesuffix("r")
            yield types.Array(getattr(types, dtype), int(shape[:-1]), shape[-1], readonly=read_only)
        else:
            yield getattr(types, "boolean" if token == "bool" else token)


def _class_of(place: str) -> type:
    module, _, name = place.rpartition(".")
    found: type = getattr(importlib.import_module(_PACKAGE + module), name)
    return found
