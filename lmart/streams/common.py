"""What inputs and outputs share."""

from __future__ import annotations

import errno
import os
from typing import Any

from lmart.errors import DataError, OutputError, load_package

COMPRESSED_SUFFIXES = (".gz", ".zst")


def without_compression(path: str) -> tuple[str, str]:
    """Return the name of a file without the suffix of its compression, and that suffix in small letters, if any."""
    small = path.lower()
    suffix = next((suffix for suffix in COMPRESSED_SUFFIXES if small.endswith(suffix)), "")
    return path[: len(path) - len(suffix)], suffix


def name_ending(path: str) -> str:
    """Return what a name says of a file's format: its ending in small letters, before that of a compression."""
    return os.path.splitext(without_compression(path)[0].lower())[1]


def reason(error: OSError) -> str:
    """Return what the system says about a failed operation, without number and path."""
    return error.strerror or str(error) or type(error).__name__


def cannot_write(error: OSError, path: str) -> OutputError:
    """Return the error for an output of which the system refused a part."""
    is_full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    return OutputError(f"cannot be written: {reason(error)}; {'free space or ' * is_full}choose another place", path)


def zstandard(error: type[DataError] | type[OutputError], path: str) -> Any:
    """Return the package zstandard; `error` when it is not installed."""
    return load_package("zstandard", "zstd", error, path)


def changed_while_read(path: str) -> DataError:
    """Return the error for a file that changed after reading began."""
    return DataError("the file changed while it was read; start again once it is complete", path)


def cannot_be_replaced(path: str, error: OSError, kept: str) -> OutputError:
    """Return the error for a finished output that cannot get its name."""
    return OutputError(
        f"cannot be replaced: {reason(error)}; what was made is kept as {kept}; move it where you want it", path
    )
