"""The files that workers read, found where the workers are."""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Sequence
from typing import NamedTuple

from lmart.distributed.cluster import Cluster
from lmart.errors import DataError
from lmart.streams import reason


class PartFile(NamedTuple):
    """A file as a worker sees it: its path, and its size in bytes."""

    path: str
    size: int


def find_files(patterns: Sequence[str]) -> list[list[PartFile]]:
    """Return the files of each pattern, in the order of their names. Runs on a worker, whose storage has the data.

    patterns : names of files, or patterns with *, ? and [...]
    DataError when a file is not there, or none matches.
    """
    found = []
    for pattern in patterns:
        paths = [pattern]
        if not os.path.exists(pattern) and glob.has_magic(pattern):
            paths = sorted(glob.glob(pattern))  # with what is no file, which is then told
            if not paths:
                raise DataError("no file of the workers matches it; check the pattern", pattern)
        try:
            states = {path: os.stat(path) for path in paths}
        except OSError as fault:
            what = f"{reason(fault)}, as a worker sees it"
            raise DataError(f"{what}; check the name, and that workers share this storage", fault.filename) from None
        for path, state in states.items():
            if stat.S_ISFIFO(state.st_mode) or stat.S_ISSOCK(state.st_mode):
                raise DataError("is a pipe, for which workers would wait; give a file", path)
        found.append([PartFile(path, state.st_size) for path, state in states.items()])
    return found


def seen_by_workers(cluster: Cluster, path: str) -> str:
    """Return the name of a file for workers, which may have another current folder.

    cluster : whose workers they are
    path    : a name, or a pattern
    """
    return path if cluster.on_this_machine else os.path.abspath(path)


def find_parts(cluster: Cluster, patterns: Sequence[str]) -> list[list[PartFile]]:
    """Return the files of each pattern, as a worker sees them: see `find_files`.

    cluster  : whose workers read
    patterns : names of files, or patterns; relative ones are meant from the current folder of this process
    """
    names = [seen_by_workers(cluster, pattern) for pattern in patterns]
    (found,) = cluster.run_tasks(find_files, [(names,)])
    return list(found)
