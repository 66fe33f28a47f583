"""Compiling before kernels are called: what a command is known to need, in processes side by side; or everything."""

from __future__ import annotations

import contextlib
import importlib
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from lmart.kernels import messages
from lmart.kernels.numba_support import code_files
from lmart.kernels.numba_support.code_cache import GENERIC, KERNELS, called_by_python, config
from lmart.kernels.numba_support.compiling_processes import processes
from lmart.kernels.numba_support.signatures import Signature, known_signatures, parse

WORTH_A_FORK = 0.5  # seconds of compiling
MOST_FORKS = 3
LOOKED_AT = 3  # kernels by which a command tells whether it was compiled for before
POLL = 0.1  # seconds between reports


class Planned(NamedTuple):
    """One signature of a kernel that is to be compiled: numba's dispatcher and types, its file, about how long."""

    dispatcher: Any
    types: tuple[Any, ...]
    file_name: str
    seconds: float


def start(command: str, threads: int) -> None:
    """Begin to compile what a command needs in its plain form and is not kept yet, in forks of this process.

    command : train, predict, eval or convert
    threads : that the command uses; so many processes compile, this one included
    Only while this process has one thread. Without a fork, kernels are compiled when they are called.
    """
    needed = [one for one in known_signatures() if command in one.commands]
    slowest = sorted(needed, key=lambda one: -one.seconds)[:LOOKED_AT]
    if not _missing(slowest):  # as a rule, and then nothing more is looked at
        return
    missing = _missing(needed)
    seconds = sum(one.seconds for one in missing)
    folder = code_files.writable_folder(KERNELS, config.CACHE_DIR)
    count = min(threads - 1, MOST_FORKS)
    messages.expected = seconds
    if seconds < WORTH_A_FORK or count < 1 or folder is None:
        return
    lock = code_files.lock_at_once(folder)
    if lock is None:  # another process compiles: this one will wait for it
        return
    # This process needs the first ones first, so forks begin with the last ones.
    if processes.start(count, lock, lambda number: _compile(_for_fork(missing[::-1], number, count))):
        messages.expected = seconds / (count + 1)


def compile_all(count: int, tell: Callable[[int, int, float], None]) -> list[str]:
    """Compile all known signatures that are not kept yet; return what could not be compiled, with the reason.

    count : how many processes do it
    tell  : called now and then with the number of those that are there, and of all, and the share of the work done
    """
    planned = _planned(known_signatures())
    missing = sorted((one for one in planned if not _is_kept(one)), key=lambda one: -one.seconds)
    folder = code_files.writable_folder(KERNELS, config.CACHE_DIR)

    def report() -> None:
        left = [one.seconds for one in missing if not _is_kept(one)]
        whole = sum(one.seconds for one in missing)
        tell(len(planned) - len(left), len(planned), 1.0 - sum(left) / whole if left else 1.0)

    report()
    lock = code_files.lock_at_once(folder) if missing and folder is not None else None
    if lock is not None:
        processes.start(count, lock, lambda number: _compile(_for_fork(missing, number, count)))
        processes.wait(report, POLL)
    failures = []
    for one in missing:  # what is left, such as without forks; here an error is seen
        if not _is_kept(one):
            try:
                one.dispatcher.compile(one.types)
            except Exception as error:
                failures.append(f"{one.file_name.partition('-')[0]}: {type(error).__name__}: {error}")
        report()
    if folder is not None and not os.geteuid() and not config.CACHE_DIR:
        _serve_all_users(planned, folder)
    return failures


def _serve_all_users(planned: Sequence[Planned], folder: Path) -> None:
    """Copy what root compiled from a folder of root's own to that of the program, from where every user loads it."""
    with contextlib.suppress(OSError, code_files.NotTrusted):
        beside = code_files.trusted(KERNELS / "__pycache__")
        beside.mkdir(exist_ok=True)
        for one in planned:
            if (code := code_files.read_code(folder / one.file_name)) is not None:
                code_files.write_code(beside / one.file_name, code)


def _planned(signatures: Iterable[Signature]) -> list[Planned]:
    """Return the signatures with their dispatchers; without those that are not of this version of the kernels."""
    found = []
    for one in signatures:
        with contextlib.suppress(ValueError, AttributeError, ImportError, KeyError):
            if one.kernel not in called_by_python:
                importlib.import_module(f"lmart.kernels.{one.kernel.rpartition('.')[0]}")
            dispatcher, types = called_by_python[one.kernel], parse(one.text)
            name = dispatcher._cache.file_name(types, dispatcher.targetctx.codegen())
            if name is not None:
                found.append(Planned(dispatcher, types, name, one.seconds))
    return found


def _missing(signatures: Iterable[Signature]) -> list[Planned]:
    """Return those for which there is code neither for this processor nor for any."""
    return [one for one in _planned(signatures) if not _is_kept(one) and not _is_kept_for_any(one)]


def _is_kept(one: Planned) -> bool:
    return bool(one.dispatcher._cache.is_kept(one.file_name))


def _is_kept_for_any(one: Planned) -> bool:
    """Return whether there is code for any processor of this kind."""
    cache = one.dispatcher._cache
    name = cache.file_name(one.types, one.dispatcher.targetctx.codegen(), GENERIC)
    return name is not None and bool(cache.is_kept(name))


def _for_fork(planned: Sequence[Planned], number: int, count: int) -> list[Planned]:
    """Return all of them, those of this fork first."""
    mine = planned[number::count]
    return [*mine, *(one for other in range(count) if other != number for one in planned[other::count])]


def _compile(planned: Sequence[Planned]) -> None:
    """Compile, in a fork, what no other process has claimed or kept."""
    for one in planned:
        if processes.is_orphan:
            return
        if not _is_kept(one) and processes.claim(one.file_name, wait=False):
            with contextlib.suppress(Exception):  # whoever calls the kernel meets it too
                one.dispatcher.compile(one.types)
            processes.release(one.file_name)
