"""Files that workers of a cluster read: the names of parts of the data, and one file with each part."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence

from lmart.errors import DataError, counted


def one_for_each(option: str, pattern: str, files: Sequence[str], of: str, parts: Sequence[str]) -> Sequence[str]:
    """Return the files that go with each part, one for each; DataError when there are not as many."""
    if len(files) != len(parts):
        held, wanted = counted(len(files), "file"), counted(len(parts), "file")
        raise DataError(f"{option} is {held}, but {of} {wanted}; give one for each, in the same order", pattern)
    return files


def as_given(pattern: str, path: str) -> str:
    """Return a file that matches a pattern as this process would have found it."""
    literal = ""
    for piece in pattern.split("/")[:-1]:
        if glob.has_magic(piece):
            break
        literal += piece + "/"
    absolute = os.path.join(os.path.abspath(literal), "")
    return literal + path.removeprefix(absolute) if path.startswith(absolute) else path
