"""Compiling functions that only kernels call, and that are inlined there.

Numba would optimize each of them, translate it to machine code and keep that, all of which is done again with the
kernels it is inlined in. Here it ends as code for LLVM, which its callers link and inline.
"""

from __future__ import annotations

from typing import Any

from lmart.kernels.numba_support.numba_internals import CodeLibrary, Compiler


class InlinedLibrary(CodeLibrary):  # type: ignore[misc, valid-type]  # known at run time only
    """The code of a function that is optimized and translated with its callers only."""

    def _optimize_final_module(self) -> None:
        """Do nothing."""

    def _finalize_final_module(self) -> None:
        """Make the code ready to link; there is no machine code to load."""
        self._finalize_dynamic_globals()
        self._finalized = True


class InlinedCompiler(Compiler):  # type: ignore[misc, valid-type]  # known at run time only
    """Numba's steps of compiling, into an InlinedLibrary."""

    def __init__(self, typing: object, target: Any, library: object, *rest: object) -> None:
        super().__init__(typing, target, InlinedLibrary(target.codegen(), "inlined"), *rest)
        self.state.flags.no_compile = True


def add_inlined(dispatcher: Any, compiled: Any) -> None:
    """Make a compiled signature of an inner kernel known to the kernels that are compiled after it.

    dispatcher : numba's object for the inner kernel
    compiled   : numba's CompileResult, with no address that Python could call
    """
    known = compiled._replace(entry_point=compiled.fndesc)  # numba looks functions up by it
    dispatcher.targetctx.insert_user_function(known.entry_point, known.fndesc, [known.library])
    dispatcher.overloads[tuple(known.signature.args)] = known


def refuse_python(*arguments: object, **named: object) -> None:
    """Raise TypeError: Python cannot call an inner kernel."""
    raise TypeError("an inner kernel is called by kernels only")
