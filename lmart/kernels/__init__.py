"""Numba kernels: bare arrays in, the caller's arrays out. They import nothing of lmart but their own decorator."""

from __future__ import annotations

from collections.abc import Callable

on_compile: Callable[[str], None] | None = None
"""Called once with a sentence for the user when a kernel has to be compiled, then forgotten."""
