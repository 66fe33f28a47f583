"""The one decorator of all kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile on first use, keep the machine code on disk, and release the interpreter lock while it runs.

    Division follows IEEE (x / 0 is inf), no operation is reordered or fused, so results do not depend on the processor.
    A kernel may call only kernels of its own file: the cache does not notice a change in another one.
    """
    return cast(F, njit(nogil=True, cache=True, error_model="numpy")(function))
