"""A file of kernels in a folder of its own, loaded as a new process would load it."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest

from lmart.kernels.numba_support import code_cache as compiler
from lmart.kernels.numba_support import code_files

TOY = """
from lmart.kernels.numba_support.code_cache import inner_kernel, kernel

@inner_kernel
def helper(x):
    return x * 2

@kernel
def toy(x):
    return helper(x) + 1
"""

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to others")
needs_compiler = pytest.mark.skipif(bool(compiler.config.DISABLE_JIT), reason="nothing is compiled")


def forget() -> None:
    folders = (code_files.writable_folder, code_files.readable_folders)
    for cached in (*folders, code_files.source_digest, code_files.sources_digest):
        cached.cache_clear()


def imported_from(place: Path) -> ModuleType:
    """Import the file from a folder without its source, or from a zip file, as a new process would."""
    sys.path.insert(0, str(place))
    try:
        return importlib.import_module("toykernels")
    finally:
        sys.path.pop(0)
        sys.modules.pop("toykernels", None)


def load(path: Path) -> ModuleType:
    """Import the file afresh, as a new process would."""
    forget()
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def hits(module: ModuleType) -> int:
    return sum(module.toy.stats.cache_hits.values())


def kept(path: Path) -> list[Path]:
    return sorted((path.parent / "__pycache__").glob("*.kernel"))


def is_free(folder: Path) -> bool:
    """Return whether another process could compile into the folder."""
    lock = code_files.lock_at_once(folder)
    if lock is not None:
        lock.close()
    return lock is not None
