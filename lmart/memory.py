"""Memory of processes that work block by block."""

from __future__ import annotations

from contextlib import suppress


def keep_memory_constant() -> None:
    """Have the C library give large arrays back when they are freed: else blocks of many sizes leave ever more holes.

    glibc raises the size from which it does so to that of the largest array freed, unless it is set.
    """
    import ctypes  # not for commands that only show help

    with suppress(AttributeError, OSError, TypeError):  # another C library
        ctypes.CDLL(None).mallopt(-3, 1 << 20)  # M_MMAP_THRESHOLD


def return_freed_memory() -> None:
    """Have the C library give memory that was freed back to the system, of which reading leaves much."""
    import ctypes

    with suppress(AttributeError, OSError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)
