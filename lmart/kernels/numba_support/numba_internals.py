"""The private objects of numba that lmart uses, each of which a version may lack."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from typing import Any

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
for _method in ("_optimize_final_module", "_finalize_final_module", "_get_module_for_linking"):
    _part("numba.core.codegen", "JITCodeLibrary", _method)


def without_literals(get_call_template: Callable[..., object]) -> Callable[..., object]:
    """Return `get_call_template` so that calls with constants and with variables share a signature.

    Numba would compile one of its own for each constant.
    """

    def get_call_template_of_variables(arguments: Iterable[object], named: dict[str, object]) -> object:
        variables = {name: unliteral(argument) for name, argument in named.items()}
        return get_call_template(tuple(map(unliteral, arguments)), variables)

    return get_call_template_of_variables
