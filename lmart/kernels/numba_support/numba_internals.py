"""The private objects of numba that lmart uses, and classes made of them; a version of numba may lack any.

Numba would optimize each inner kernel, translate it to machine code and keep that, and do all this again with the
kernels that it is inlined in. Here an inner kernel ends as code for LLVM, which its callers link and inline.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from typing import Any

Calls = dict[str, tuple[str, tuple[object, ...]]]
TESTED = "numba>=0.60,<0.70"  # as in pyproject.toml
missing: list[str] = []  # private objects that this version of numba lacks


def _part(module: str, *names: str) -> Any:
    """Return a private object of numba, or None, noted in `missing`, when this version has none by this name."""
    try:
        found: Any = importlib.import_module(module)
        for name in names:
            found = getattr(found, name)
    except (ImportError, AttributeError):
        missing.append(".".join((module, *names)))
        return None
    return found


unliteral = _part("numba.core.types", "unliteral")
dumps = _part("numba.core.serialize", "dumps")
rebuild = _part("numba.core.compiler", "CompileResult", "_rebuild")
initialize_runtime = _part("numba.core.runtime.nrt", "rtsys", "initialize")
add_symbol = _part("llvmlite.binding", "add_symbol")
CacheBase = _part("numba.core.caching", "_Cache") or object
Compiler = _part("numba.core.compiler", "Compiler") or object
CodeLibrary = _part("numba.core.codegen", "JITCodeLibrary") or object
_part("numba.core.compiler", "CompileResult", "_reduce")
_part("numba.core.compiler", "Flags", "no_compile")
_part("numba.core.base", "BaseContext", "insert_user_function")
_part("numba.core.codegen", "CPUCodegen", "magic_tuple")
for _option in ("nogil", "error_model", "no_cfunc_wrapper", "no_cpython_wrapper", "forceinline", "no_rewrites", "_nrt"):
    _part("numba.core.cpu", "CPUTargetOptions", _option)
for _method in ("compile", "get_call_template", "add_overload", "_compile_for_args"):
    _part("numba.core.dispatcher", "Dispatcher", _method)
for _method in ("_optimize_final_module", "_finalize_final_module", "_get_module_for_linking", "add_linking_library"):
    _part("numba.core.codegen", "JITCodeLibrary", _method)


def without_literals(get_call_template: Callable[..., object]) -> Callable[..., object]:
    """Return `get_call_template` so that calls with constants and with variables share a signature.

    Numba would compile a kernel anew for each constant.
    """

    def get_call_template_of_variables(arguments: Iterable[object], named: dict[str, object]) -> object:
        variables = {name: unliteral(argument) for name, argument in named.items()}
        return get_call_template(tuple(map(unliteral, arguments)), variables)

    return get_call_template_of_variables


class KernelLibrary(CodeLibrary):  # type: ignore[misc, valid-type]  # known at run time only
    """The code of a kernel; of the shared kernels that it calls it has no copy, but their names in machine code.

    calls : these names, each with the kernel and the types of its arguments
    """

    def __init__(self, codegen: object, name: str) -> None:
        super().__init__(codegen, name)
        self.calls: Calls = {}

    def add_linking_library(self, library: Any) -> None:
        """Take in the code of a function that this calls, or note the name of a shared kernel."""
        if hasattr(library, "shared_as"):
            self.calls.update(library.shared_as)
        else:
            self.calls.update(getattr(library, "calls", {}))
            super().add_linking_library(library)


class InlinedLibrary(KernelLibrary):
    """The code of a function that is optimized and translated with its callers only."""

    def _optimize_final_module(self) -> None:
        """Do nothing."""

    def _finalize_final_module(self) -> None:
        """Make the code ready to link; there is no machine code to load."""
        self._finalize_dynamic_globals()
        self._finalized = True


class KernelCompiler(Compiler):  # type: ignore[misc, valid-type]  # known at run time only
    """Numba's steps of compiling, into a KernelLibrary."""

    def __init__(self, typing: object, target: Any, library: object, *rest: object) -> None:
        super().__init__(typing, target, KernelLibrary(target.codegen(), "kernel"), *rest)
        self.state.library.enable_object_caching()


class InlinedCompiler(Compiler):  # type: ignore[misc, valid-type]  # known at run time only
    """Numba's steps of compiling, into an InlinedLibrary."""

    def __init__(self, typing: object, target: Any, library: object, *rest: object) -> None:
        super().__init__(typing, target, InlinedLibrary(target.codegen(), "inlined"), *rest)
        self.state.flags.no_compile = True


def add_inlined(dispatcher: Any, compiled: Any) -> None:
    """Make a compiled signature of an inner kernel known to the kernels that are compiled after it."""
    inlined = compiled._replace(entry_point=compiled.fndesc)  # numba looks functions up by it
    dispatcher.targetctx.insert_user_function(inlined.entry_point, inlined.fndesc, [inlined.library])
    dispatcher.overloads[tuple(inlined.signature.args)] = inlined


def add_shared(dispatcher: Any, kernel: str, compiled: Any) -> None:
    """Make a signature of a shared kernel known to the kernels that are compiled after it, and to Python."""
    types = tuple(compiled.signature.args)
    compiled.library.shared_as = {compiled.fndesc.mangled_name: (kernel, types)}
    type(dispatcher).add_overload(dispatcher, compiled)


def link_shared(name: str, dispatcher: Any, types: tuple[object, ...]) -> None:
    """Let machine code that is loaded after this call a shared kernel by a name that it had in another process."""
    dispatcher.compile(types)
    compiled = dispatcher.overloads[types]
    own_name = compiled.fndesc.mangled_name
    if name != own_name:
        add_symbol(name, compiled.library.get_pointer_to_function(own_name))


def refuse_python(*arguments: object, **named: object) -> None:
    """Raise TypeError: Python cannot call an inner kernel."""
    raise TypeError("an inner kernel is called by kernels only")
