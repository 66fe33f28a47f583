"""Compiling before kernels are called: those that a command needs, in processes side by side; or all.

The table `lmart/kernels/signatures.txt` says which signatures commands need. Each line has the name of a kernel, the
seconds that compiling it takes about, the commands that need it in their plain form (- for none), and the types of its
arguments: `float64`, an array as `float64[1C]` with its dimensions and layout (and r when it is read-only), a named
tuple as `module.Class(types)`, a plain tuple as `(types)`.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numba.types

from lmart.kernels import messages
from lmart.kernels.numba_support import code_files
from lmart.kernels.numba_support.code_cache import GENERIC, KERNELS, called_by_python, config
from lmart.kernels.numba_support.compiling_processes import processes

types: Any = numba.types  # its classes know only some of their attributes
TABLE = KERNELS / "signatures.txt"
_TOKEN = re.compile(r"[^\s()\[\]]*\[\w+\]|[^\s()]*\(|[^\s()]+|\)")
_PACKAGE = "lmart.kernels."
WORTH_A_FORK = 0.5  # seconds of compiling
MOST_FORKS = 3
LOOKED_AT = 3  # kernels by which a command tells whether it was compiled for before
POLL = 0.1  # seconds between reports


class Signature(NamedTuple):
    """A signature of a kernel that Python calls.

    kernel   : its module and name, as in `text.letor.parse_letor`
    commands : that need it in their plain form
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


def _describe(kind: Any) -> str:
    if isinstance(kind, types.Array):
        return f"{kind.dtype}[{kind.ndim}{kind.layout}{'' if kind.mutable else 'r'}]"
    if isinstance(kind, types.BaseNamedTuple):
        place = kind.instance_class.__module__.removeprefix(_PACKAGE)
        return f"{place}.{kind.instance_class.__name__}({' '.join(map(_describe, kind))})"
    if isinstance(kind, types.BaseTuple):
        return f"({' '.join(map(_describe, kind))})"
    return str(kind)


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


class Planned(NamedTuple):
    """A signature of a kernel that is to be compiled: numba's dispatcher and types, its file, about how long."""

    dispatcher: Any
    arguments: tuple[Any, ...]
    file_name: str
    seconds: float

    @property
    def is_kept(self) -> bool:
        """Whether there is code for this processor."""
        return bool(self.dispatcher._cache.is_kept(self.file_name))

    @property
    def is_kept_for_any(self) -> bool:
        """Whether there is code for any processor of this kind."""
        kernel_cache = self.dispatcher._cache
        name = kernel_cache.file_name(self.arguments, self.dispatcher.targetctx.codegen(), GENERIC)
        return name is not None and bool(kernel_cache.is_kept(name))


def start(command: str, threads: int) -> None:
    """Begin to compile the missing kernels of a command's plain form, in forks of this process.

    threads : of the command; as many processes compile, this process included
    Call it while this process has one thread. Without a fork, kernels are compiled when they are called.
    """
    needed = [signature for signature in known_signatures() if command in signature.commands]
    slowest = sorted(needed, key=lambda signature: -signature.seconds)[:LOOKED_AT]
    if not _missing(slowest):  # as a rule, and then nothing more is looked at
        return
    missing = _missing(needed)
    seconds = sum(planned.seconds for planned in missing)
    folder = code_files.writable_folder(KERNELS, config.CACHE_DIR)
    count = min(threads - 1, MOST_FORKS)
    messages.expected = seconds
    if seconds < WORTH_A_FORK or count < 1 or folder is None:
        return
    lock = code_files.lock_at_once(folder)
    if lock is None:  # another process compiles: this process will wait for it
        return
    # This process calls the first kernels first, so forks begin with the last.
    if processes.start(count, lock, lambda number: _compile(_for_fork(missing[::-1], number, count))):
        messages.expected = seconds / (count + 1)


def compile_all(count: int, tell: Callable[[int, int, float], None]) -> list[str]:
    """Compile all missing kernels of the table; return those that cannot be compiled, with the reason.

    tell : called now and then with the number of signatures that are kept, the number of all, and the share of the
           work that is done
    """
    all_planned = _planned(known_signatures())
    missing = sorted((planned for planned in all_planned if not planned.is_kept), key=lambda planned: -planned.seconds)
    all_seconds = sum(planned.seconds for planned in missing)
    folder = code_files.writable_folder(KERNELS, config.CACHE_DIR)

    def report() -> None:
        left = [planned.seconds for planned in missing if not planned.is_kept]
        tell(len(all_planned) - len(left), len(all_planned), 1.0 - sum(left) / all_seconds if left else 1.0)

    report()
    lock = code_files.lock_at_once(folder) if missing and folder is not None else None
    if lock is not None:
        processes.start(count, lock, lambda number: _compile(_for_fork(missing, number, count)))
        processes.wait(report, POLL)
    failures = []
    for planned in missing:  # what forks left, or all without forks; here errors are seen
        if not planned.is_kept:
            try:
                planned.dispatcher.compile(planned.arguments)
            except Exception as error:
                failures.append(f"{planned.file_name.partition('-')[0]}: {type(error).__name__}: {error}")
        report()
    if folder is not None and not os.geteuid() and not config.CACHE_DIR:
        _serve_all_users(all_planned, folder)
    return failures


def _serve_all_users(all_planned: Sequence[Planned], folder: Path) -> None:
    """Copy code from a folder of root's own to that of the program, from where every user loads it."""
    with contextlib.suppress(OSError, code_files.NotTrusted):
        beside = code_files.trusted(KERNELS / "__pycache__")
        beside.mkdir(exist_ok=True)
        for planned in all_planned:
            if (code := code_files.read_code(folder / planned.file_name)) is not None:
                code_files.write_code(beside / planned.file_name, code)


def _planned(signatures: Iterable[Signature]) -> list[Planned]:
    """Return the signatures with their dispatchers; without those that are not of this version of the kernels."""
    found = []
    for signature in signatures:
        with contextlib.suppress(ValueError, AttributeError, ImportError, KeyError):
            if signature.kernel not in called_by_python:
                importlib.import_module(_PACKAGE + signature.kernel.rpartition(".")[0])
            dispatcher, arguments = called_by_python[signature.kernel], parse(signature.text)
            name = dispatcher._cache.file_name(arguments, dispatcher.targetctx.codegen())
            if name is not None:
                found.append(Planned(dispatcher, arguments, name, signature.seconds))
    return found


def _missing(signatures: Iterable[Signature]) -> list[Planned]:
    """Return those for which there is code neither for this processor nor for any."""
    return [planned for planned in _planned(signatures) if not planned.is_kept and not planned.is_kept_for_any]


def _for_fork(missing: Sequence[Planned], number: int, count: int) -> list[Planned]:
    """Return all of them, those of this fork first."""
    shares = [missing[fork::count] for fork in range(count)]
    return [planned for fork in (number, *range(number), *range(number + 1, count)) for planned in shares[fork]]


def _compile(missing: Sequence[Planned]) -> None:
    """Compile, in a fork, what no other process has claimed or kept."""
    for planned in missing:
        if processes.is_orphan:
            return
        if not planned.is_kept and processes.claim(planned.file_name, wait=False):
            with contextlib.suppress(Exception):  # whoever calls the kernel meets it too
                planned.dispatcher.compile(planned.arguments)
            processes.release(planned.file_name)
