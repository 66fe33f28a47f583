"""The decorators of all kernels, and the files that keep their machine code between runs.

Numba's own cache refuses to start without a writable folder, dies of a damaged file, and can hand out the code of
another signature when processes fill it together. Here each kernel and signature has a file of its own, named by
everything its code depends on, checked by digest, and replaced as a whole; whatever goes wrong costs a compilation.
Processes that start together compile in turn, so that the first one's work serves all.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import hashlib
import os
import pickle
import stat
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from functools import cache, wraps
from pathlib import Path
from typing import Any, TypeVar, cast

import llvmlite
import numba
import numpy as np
from numba import njit
from numba.core import compiler, serialize, types
from numba.core.caching import _Cache
from numba.core.runtime import nrt

import lmart.kernels

F = TypeVar("F", bound=Callable[..., Any])

compile_when_called: Any = njit  # its types know only some of its options
unliteral: Any = types.unliteral
config: Any = numba.config  # its names are made at run time
CompileResult: Any = compiler.CompileResult
dumps: Any = serialize.dumps
DIGEST_SIZE = hashlib.sha256().digest_size
KERNELS = Path(__file__).parent  # a kernel may call kernels of any file in it
ALLOCATING = frozenset({"empty", "zeros", "ones", "full", "arange", "copy"})  # names of what makes an array in a kernel
LONGEST_WAIT = 120.0  # seconds for another process to compile


def kernel(function: F) -> F:
    """Compile on first use, keep the machine code on disk, and release the interpreter lock while it runs.

    Division follows IEEE (x / 0 is inf), no operation is reordered or fused, so results do not depend on the processor.
    A kernel may call kernels of any file in `lmart/kernels`: a change in one of these files compiles all kernels anew.
    """
    return _compiled(function, for_kernels=False)


def inner_kernel(function: F) -> F:
    """As `kernel`, for one that only kernels call: compiles sooner, for want of a way in from Python."""
    return _compiled(function, for_kernels=True)


def _compiled(function: F, for_kernels: bool) -> F:
    if config.DISABLE_JIT:  # plain Python, in which NumPy would warn of what IEEE and unsigned numbers do anyway
        return np.errstate(all="ignore")(function)
    # Each wrapper is a copy of the kernel to compile: none for C, which never calls, and only one for Python. Rewrites
    # are for x ** 2 and arithmetic on whole arrays, which kernels spell out; counts of references (nrt), for arrays of
    # a kernel's own.
    compiled: Any = compile_when_called(
        nogil=True,
        error_model="numpy",
        no_cfunc_wrapper=True,
        no_cpython_wrapper=for_kernels,
        no_rewrites=True,
        _nrt=not ALLOCATING.isdisjoint(function.__code__.co_names),
    )(function)
    compiled._cache = KernelCache(function)
    compiled.compile = _ending_the_turn(compiled.compile)
    compiled.get_call_template = _without_literals(compiled.get_call_template)
    if for_kernels:
        compiled._insert = lambda *entry: None  # there is no address that Python could call
        compiled._compile_for_args = _refuse_python
    return cast(F, compiled)


def _without_literals(get_call_template: Callable[..., Any]) -> Callable[..., Any]:
    """Have one signature serve calls with variables and with numbers, for which Numba compiles one of their own."""

    def get_call_template_of_variables(arguments: Iterable[Any], named: dict[str, Any]) -> Any:
        variables = {name: unliteral(argument) for name, argument in named.items()}
        return get_call_template(tuple(map(unliteral, arguments)), variables)

    return get_call_template_of_variables


def _refuse_python(*arguments: Any, **named: Any) -> Any:
    raise TypeError("an inner kernel is called by kernels only")


class KernelCache(_Cache):
    """The machine code of one kernel on disk, one file a signature, in the place of Numba's own cache."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._source = Path(function.__code__.co_filename)
        self._name = f"{self._source.stem}.{function.__name__}"
        self._place = f"{function.__qualname__}:{function.__code__.co_firstlineno}"

    @property
    def cache_path(self) -> str | None:
        folder = writable_folder(self._source.parent)
        return None if folder is None else str(folder)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled code of a signature, or None when it has to be compiled."""
        # Numba would load all that compiling may need, which takes longer than to load the code that is kept.
        nrt.rtsys.initialize(target_context)
        name = self._file_name(sig, target_context.codegen())
        found = self._find(name, target_context)
        if found is None:
            folder = writable_folder(self._source.parent)
            _tell_once(folder is not None)
            if folder is not None and _take_turn(folder):
                found = self._find(name, target_context)
        return found

    def _find(self, name: str, target_context: Any) -> Any:
        for folder in readable_folders(self._source.parent):
            with contextlib.suppress(Exception):  # absent, damaged, of another Numba: compile
                kept = (folder / name).read_bytes()
                digest, payload = kept[:DIGEST_SIZE], kept[DIGEST_SIZE:]
                if hashlib.sha256(payload).digest() == digest:
                    return CompileResult._rebuild(target_context, *pickle.loads(payload))
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep the compiled code of a signature, if it can be kept."""
        folder = writable_folder(self._source.parent)
        if folder is None or data.lifted or data.library.has_dynamic_globals:
            return
        with contextlib.suppress(Exception):  # a full disk costs the next run time, not this one its result
            payload = dumps(data._reduce())
            _replace(folder / self._file_name(sig, data.codegen), hashlib.sha256(payload).digest() + payload)

    def _file_name(self, sig: Any, codegen: Any) -> str:
        parts = (
            (numba.__version__, llvmlite.__version__, sys.version, config.OPT, config.BOUNDSCHECK),
            (sig, codegen.magic_tuple()),
            (_source_digest(self._source), _sources_digest(KERNELS), self._place),
        )
        return f"{self._name}-{hashlib.sha256(repr(parts).encode()).hexdigest()[:32]}.kernel"

    def enable(self) -> None:
        pass

    def disable(self) -> None:
        pass

    def flush(self) -> None:
        pass


class _Turn(threading.local):
    """This thread's turn to compile into a folder: a lock on the folder, which ends with the process."""

    depth = 0  # kernels under compilation: one that calls another compiles it on the way
    descriptor: int | None = None


_turn = _Turn()


def _take_turn(folder: Path) -> bool:
    """Wait until no other process compiles into the folder; False when the turn is ours already, or cannot be had."""
    if _turn.descriptor is not None or not _turn.depth:
        return False
    deadline = time.monotonic() + LONGEST_WAIT
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return False
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _turn.descriptor = descriptor
            return True
        except BlockingIOError:
            if time.monotonic() < deadline:
                time.sleep(0.02)  # not a blocking call, which a signal could not end
                continue
        except OSError:  # a file system without locks
            pass
        os.close(descriptor)
        return False


def _ending_the_turn(compile_signature: Callable[[Any], Any]) -> Callable[[Any], Any]:
    @wraps(compile_signature)
    def compile_and_end(sig: Any) -> Any:
        _turn.depth += 1
        collects = gc.isenabled()
        gc.disable()  # the compiler makes little garbage among very many objects that stay
        try:
            return compile_signature(sig)
        finally:
            if collects:
                gc.enable()
            _turn.depth -= 1
            if not _turn.depth and _turn.descriptor is not None:
                os.close(_turn.descriptor)
                _turn.descriptor = None

    return compile_and_end


@cache
def writable_folder(package: Path) -> Path | None:
    """Return the folder to keep the machine code of a package's kernels in; None when there is none."""
    for folder, ours_only in _candidates(package):
        with contextlib.suppress(OSError):
            folder.mkdir(mode=0o700 if ours_only else 0o777, parents=True, exist_ok=True)
            if not ours_only or _is_ours(folder):
                tempfile.TemporaryFile(dir=folder).close()
                return folder
    return None


@cache
def readable_folders(package: Path) -> tuple[Path, ...]:
    """Return the folders to look into, which may hold code that an administrator compiled for all."""
    if config.CACHE_DIR and writable_folder(package) == Path(config.CACHE_DIR, "lmart"):
        return (Path(config.CACHE_DIR, "lmart"),)
    return tuple(folder for folder, ours_only in _candidates(package) if not ours_only or _is_ours(folder))


def _candidates(package: Path) -> Iterable[tuple[Path, bool]]:
    """Yield the folders in order of preference, and whether each must belong to this user alone."""
    if config.CACHE_DIR:
        yield Path(config.CACHE_DIR, "lmart"), False
    yield package / "__pycache__", False
    user = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))
    if user.is_absolute() and user.parent.is_dir():  # a home that does not exist is not made
        yield user / "lmart", True
    with contextlib.suppress(OSError):  # no folder for temporary files
        yield Path(tempfile.gettempdir(), f"lmart-kernels-{os.getuid()}"), True


def _is_ours(folder: Path) -> bool:
    """Machine code is run as it is read: from a shared place, only what no other user could have written."""
    try:
        status = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o022


@cache
def _source_digest(source: Path) -> str:
    return hashlib.sha256(source.read_bytes()).hexdigest()


@cache
def _sources_digest(folder: Path) -> str:
    """Return a digest of all Python files below a folder, their names included."""
    sources = sorted(folder.rglob("*.py"))
    named = [(source.relative_to(folder).as_posix(), _source_digest(source)) for source in sources]
    return hashlib.sha256(repr(named).encode()).hexdigest()


def _replace(path: Path, content: bytes) -> None:
    descriptor, temporary = tempfile.mkstemp(prefix=path.name, dir=path.parent)
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _tell_once(kept: bool) -> None:
    tell, lmart.kernels.on_compile = lmart.kernels.on_compile, None
    if tell is None:
        return
    if kept:
        tell("compiling what this command needs, once on this machine")
    else:
        tell("compiling, and no folder can keep the result; set NUMBA_CACHE_DIR to a writable one to start quicker")
