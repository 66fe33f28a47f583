"""The decorators of all kernels, and the cache that keeps their machine code between runs.

Numba's own cache needs a writable folder, fails on a damaged file, and can crash or return the code of another
signature when several processes fill it together (numba issue 4807, https://github.com/numba/numba/issues/4807). Here
each kernel and signature has a file of its own. Its name is a digest of everything that the code depends on, its
content is checked by digest, and it is replaced as a whole. An error costs a compilation, never a result, and is
reported once. Without the cache `lmart train` compiles for about 15 seconds at each start.

Where a version of numba lacks a private object that this needs, kernels are compiled by plain `njit`, anew in each
process, which is also reported.
"""

from __future__ import annotations

import gc
import hashlib
import os
import pickle
import sys
import threading
import time
import weakref
from collections.abc import Callable
from functools import partial, wraps
from pathlib import Path
from typing import Any, TypeVar, cast

import llvmlite
import numba
import numpy as np
from numba import njit

from lmart.kernels import messages
from lmart.kernels.numba_support.code_files import (
    NotTrusted,
    Turn,
    read_code,
    readable_folders,
    source_digest,
    sources_digest,
    writable_folder,
    write_code,
)
from lmart.kernels.numba_support.compiling_processes import processes
from lmart.kernels.numba_support.numba_internals import (
    TESTED,
    CacheBase,
    InlinedCompiler,
    KernelCompiler,
    add_inlined,
    add_shared,
    dumps,
    initialize_runtime,
    link_shared,
    missing,
    rebuild,
    refuse_python,
    without_literals,
)

F = TypeVar("F", bound=Callable[..., Any])

compile_when_called: Any = njit  # its types know only some of its options
config: Any = numba.config  # its names are made at run time
KERNELS = Path(__file__).parent.parent  # a kernel may call kernels of any file in it
GENERIC = ("generic", "")  # numba's name and features of a processor with only the features that all of its kind have
ALLOCATING = frozenset({"empty", "zeros", "ones", "full", "arange", "copy"})  # names that make an array in a kernel


def kernel(function: F) -> F:
    """Compile a function on its first call, keep the machine code on disk, release the interpreter lock while it runs.

    Floating-point division follows IEEE (x / 0 is inf), and no operation is reordered or fused, so results do not
    depend on the processor. A kernel may call kernels of any file in `lmart/kernels`: a change in one of these files
    compiles all kernels anew.
    """
    return _compiled(function, KernelCompiler)


def shared_kernel(function: F) -> F:
    """As `kernel`, but kernels that call it have no copy of it; they call its machine code.

    For work beside which a call is nothing, so that it is optimized and translated once only.
    """
    return _compiled(function, KernelCompiler, is_shared=True)


def inner_kernel(function: F) -> F:
    """As `kernel`, for a function that only kernels call: it is inlined into its callers."""
    return _compiled(function, InlinedCompiler)


def _compiled(function: F, compiler: type, is_shared: bool = False) -> F:
    """Return what takes the place of a kernel: a numba dispatcher, or with NUMBA_DISABLE_JIT=1 a Python function."""
    if config.DISABLE_JIT:  # plain Python, in which NumPy would warn of what IEEE and unsigned numbers do anyway
        return np.errstate(all="ignore")(function)
    if not missing:
        try:
            return cast(F, _with_cache(function, compiler, is_shared))
        except (TypeError, AttributeError) as error:  # such as a new abstract method of numba's class of caches
            missing.append(str(error))
    messages.warning(
        f"numba {numba.__version__} is not a version that lmart knows ({missing[0]} is missing or differs), so machine "
        f"code is not kept and every run compiles again; install {TESTED}"
    )
    return cast(F, compile_when_called(nogil=True, error_model="numpy")(function))


def _with_cache(function: Callable[..., Any], compiler: type, is_shared: bool) -> Any:
    """Return a dispatcher of numba that uses our cache."""
    for_kernels = compiler is InlinedCompiler
    # Fewer variants to compile: no wrapper for C, from where nothing is called, and one for Python, but none for inner
    # kernels. Rewrites only help x ** 2 and expressions of whole arrays, which kernels avoid. Reference counting (nrt)
    # is only needed where a kernel allocates.
    compiled = compile_when_called(
        nogil=True,
        error_model="numpy",
        no_cfunc_wrapper=True,
        no_cpython_wrapper=for_kernels,
        forceinline=for_kernels,
        no_rewrites=True,
        _nrt=not ALLOCATING.isdisjoint(function.__code__.co_names),
        pipeline_class=compiler,
    )(function)
    compiled.get_call_template = without_literals(compiled.get_call_template)
    own_cache = KernelCache(function)  # of inner kernels too: when numba's class does not fit, none may be special
    if for_kernels:
        compiled.add_overload = partial(add_inlined, compiled)
        compiled._compile_for_args = refuse_python
    else:
        compiled._cache = own_cache
        called_by_python[own_cache.name] = compiled
        compiled.compile = _in_turn(compiled.compile, own_cache)
        own_cache.is_shared = is_shared
        if is_shared:
            compiled.add_overload = partial(add_shared, compiled, own_cache.name)
    return compiled


class KernelCache(CacheBase):  # type: ignore[misc, valid-type]  # known at run time only
    """The machine code of one kernel on disk, one file per signature, in place of numba's own cache."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._source = Path(function.__code__.co_filename)
        self._package = KERNELS if KERNELS in self._source.parents else self._source.parent
        module = self._source.relative_to(self._package).with_suffix("")
        self.name = ".".join((*module.parts, function.__name__))
        self.claimed: list[str] = []  # names of files that no other process compiles meanwhile
        self._place = f"{function.__qualname__}:{function.__code__.co_firstlineno}"
        self.was_asked = False  # by numba, for any signature
        self.is_shared = False  # by kernels that call this one

    @property
    def cache_path(self) -> str | None:
        """The folder that code is written to; None without a writable folder."""
        folder = self._writable_folder()
        return None if folder is None else str(folder)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled code of a signature (a CompileResult), or None when it has to be compiled.

        Before None is returned, this thread waits for its turn to compile.
        """
        self.was_asked = True
        # Numba would import all that compiling may need, which takes longer than to load the code that is kept.
        initialize_runtime(target_context)
        name = self.file_name(sig, target_context.codegen())
        if name is None:
            return None
        running = _compilation()
        if on_request is not None and (self.is_shared or running is None or running.kernel == self.name):
            on_request(self.name, sig)
        found = self._find(name, target_context) or self._find_generic(sig, target_context)
        if found is None and self._took_turn(name, running):  # another process may have written it while we waited
            found = self._find(name, target_context)
        return found

    def _took_turn(self, name: str, running: _Compilation | None) -> bool:
        """Wait until no other process compiles this kernel; return False when nothing keeps them from it."""
        folder = self._writable_folder()
        self._report_compiling(folder)
        if folder is None or running is None:
            return False
        if not processes.are_there():
            return running.take(folder)
        claimed = processes.claim(name)
        if claimed:
            self.claimed.append(name)
        return claimed

    def _find_generic(self, sig: Any, target_context: Any) -> Any:
        """Return code that `lmart compile --generic` left for any processor of this kind; None without such code.

        It gives the same results as code for this very processor: kernels leave no choice to the compiler.
        """
        name = self.file_name(sig, target_context.codegen(), GENERIC)
        return None if name is None else self._find(name, target_context)

    def is_kept(self, name: str) -> bool:
        """Return whether there is a file of this name in a folder that machine code is loaded from."""
        return any((folder / name).exists() for folder in readable_folders(self._package, config.CACHE_DIR))

    def _find(self, name: str, target_context: Any) -> Any:
        """Return the code that a file of this name holds in the first folder with a sound file, else None."""
        for folder in readable_folders(self._package, config.CACHE_DIR):
            path = folder / name
            try:
                payload = read_code(path)
                if payload is not None:
                    calls, parts = pickle.loads(payload)
                    for own_name, (kernel, types) in calls.items():
                        link_shared(own_name, called_by_python[kernel], types)
                    found = rebuild(target_context, *parts)
                    found.library.calls = calls
                    return found
            except (FileNotFoundError, PermissionError, MemoryError) as error:
                if isinstance(error, MemoryError):
                    raise
            except NotTrusted as objection:
                messages.warning(f"machine code in '{folder}' is not used: of '{name}', {objection}; remove it")
            except Exception as error:  # whatever fails inside numba: compile
                messages.warning(f"machine code in '{folder}' cannot be loaded ({_reason(error)}); compiling again")
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write the compiled code of a signature (`data`, a CompileResult) to its file, if there is a folder."""
        folder = self._writable_folder()
        name = self.file_name(sig, data.codegen)
        if folder is None or name is None:
            return
        try:
            if data.lifted or data.library.has_dynamic_globals:
                return
            *parts, environments = data._reduce()
            # To load one of a function of numba would import its module, with many others, for nothing: 0.03 s.
            needed = tuple(each for each in environments if each.consts or each is data.environment)
            write_code(folder / name, dumps((data.library.calls, (*parts, needed))))
        except OSError as error:
            messages.warning(
                f"machine code cannot be kept in '{folder}' ({_reason(error)}), so the next run compiles again; free "
                "space there, or set NUMBA_CACHE_DIR to another folder"
            )
        except Exception as error:  # inside numba
            messages.warning(
                f"numba {numba.__version__} cannot save machine code ({_reason(error)}), so every run compiles again; "
                f"install {TESTED}"
            )

    def file_name(self, sig: Any, codegen: Any, processor: tuple[str, str] | None = None) -> str | None:
        """Return the name of a signature's file, which changes with everything that its machine code depends on.

        processor : another processor's name and features; None: those of this processor
        None, reported, when the source cannot be read, as in an installation of compiled Python files only.
        """
        try:
            sources = (source_digest(self._source), sources_digest(KERNELS))
        except OSError as error:
            messages.warning(
                f"machine code cannot be kept: '{error.filename}' cannot be read ({_reason(error)}), so every run "
                "compiles again; install lmart with its source files"
            )
            return None
        triple, *own = codegen.magic_tuple()
        target = (triple, *(processor or own))
        parts = (
            (numba.__version__, llvmlite.__version__, sys.version, config.OPT, config.BOUNDSCHECK),
            (sig, target),
            (*sources, self._place),
        )
        return f"{self.name}-{hashlib.sha256(repr(parts).encode()).hexdigest()[:32]}.kernel"

    def _writable_folder(self) -> Path | None:
        return writable_folder(self._package, config.CACHE_DIR)

    def _report_compiling(self, folder: Path | None) -> None:
        if folder is None:
            messages.warning(
                "machine code cannot be kept, as no folder for it can be written to, so every run compiles again; set "
                "NUMBA_CACHE_DIR to one that can"
            )
        else:
            messages.compiling(_of_thread.seconds)

    def enable(self) -> None:
        """Do nothing: it is always on."""

    def disable(self) -> None:
        """Do nothing: it is always on."""

    def flush(self) -> None:
        """Do nothing: files of other versions are not read."""


class _Compilation(Turn):
    """The compilation of a kernel that Python calls, with those that it calls. No garbage is collected meanwhile.

    Should an interrupt keep `end` from being called, or from its own end, it ends with the frame that holds it.
    """

    _collected = False

    def __init__(self, kernel: str) -> None:
        self.kernel = kernel
        self._collected = gc.isenabled()
        gc.disable()  # the compiler makes little garbage among very many objects that stay

    def end(self) -> None:
        """Let other processes compile, and garbage be collected."""
        if self._collected:
            gc.enable()
        self._collected = False
        super().end()

    __del__ = end


class _OfThread(threading.local):
    """The compilation that this thread is at, which must not outlive its frame; the seconds that it compiled so far."""

    compilation: weakref.ref[_Compilation] | None = None
    seconds = 0.0


def _compilation() -> _Compilation | None:
    """Return what this thread is compiling."""
    return None if _of_thread.compilation is None else _of_thread.compilation()


_of_thread = _OfThread()
called_by_python: dict[str, Any] = {}  # numba's dispatchers of all kernels but inner ones, by file and name
# Called with each kernel and signature that Python calls first, or that shares its code.
on_request: Callable[[str, Any], None] | None = None


def _in_turn(compile_signature: Callable[[Any], Any], own_cache: KernelCache) -> Callable[[Any], Any]:
    """Return numba's `compile_signature` so that it ends this thread's turn, and collects no garbage meanwhile."""

    @wraps(compile_signature)
    def compile_and_end(sig: Any) -> Any:
        outer = _compilation()
        start = time.monotonic()
        own = outer or _Compilation(own_cache.name)
        if outer is None:
            _of_thread.compilation = weakref.ref(own)
        try:
            entry = compile_signature(sig)
        finally:
            if outer is None:
                _of_thread.compilation = None  # first: a trace of this frame may keep what it holds
                own.end()
                _of_thread.seconds += time.monotonic() - start
            while own_cache.claimed:
                processes.release(own_cache.claimed.pop())
        if not own_cache.was_asked:
            messages.warning(
                f"numba {numba.__version__} does not use lmart's cache, so every run compiles again; install {TESTED}"
            )
        return entry

    return compile_and_end


def _reason(error: Exception) -> str:
    """Return what went wrong as a clause: in the words of the system, or of the exception, with its name."""
    if isinstance(error, OSError) and error.errno is not None:
        return os.strerror(error.errno)
    text = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def cache_folder() -> Path | None:
    """Return the folder that machine code is written to; None without a writable folder."""
    return writable_folder(KERNELS, config.CACHE_DIR)
