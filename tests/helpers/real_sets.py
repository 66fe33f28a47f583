"""Judged sets that are not part of the project, where the environment variable LMART_TEST_SETS names their folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_NAMED = os.environ.get("LMART_TEST_SETS")
FOLDER = Path(_NAMED) if _NAMED else None
NOT_HERE = pytest.mark.skip(reason="LMART_TEST_SETS names no folder with real sets, NAME/*.svm.gz")


def real_files() -> list[object]:
    """Return the files of all sets as parameters of a test, skipped as one where there are none."""
    found = sorted(FOLDER.glob("*/*.svm.gz")) if FOLDER else []
    if not found:
        return [pytest.param(None, marks=NOT_HERE, id="none")]
    return [pytest.param(path, id=f"{path.parent.name}-{path.name}") for path in found]


def real_set(name: str) -> Path:
    """Return the folder of a set; the test is skipped where it is not."""
    if FOLDER is None or not (FOLDER / name).is_dir():
        pytest.skip(f"LMART_TEST_SETS names no folder with the real set {name}")
    return FOLDER / name
