"""C source of models, compiled and called."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import pytest

from lmart.array_types import Float64Array
from lmart.formats.models import c_source
from lmart.scoring.ensemble import Ensemble

CC = shutil.which("cc")
NEEDS_CC = pytest.mark.skipif(CC is None, reason="needs a C compiler")
STRICT = ("-std=c99", "-O2", "-Wall", "-Wextra", "-Wno-type-limits", "-Werror", "-pedantic")


def compiled(ensemble: Ensemble, folder: Path) -> ctypes.CDLL:
    """The model as a library; all warnings are errors."""
    written = c_source.write(ensemble)
    assert written.notes == ()
    (folder / "model.c").write_bytes(written.content)
    target = folder / f"model{len(list(folder.iterdir()))}.so"
    assert CC is not None
    subprocess.run([CC, *STRICT, "-shared", "-fPIC", "-o", target, folder / "model.c"], check=True)
    library = ctypes.CDLL(str(target))
    library.lmart_score.restype = ctypes.c_double
    library.lmart_score.argtypes = [ctypes.POINTER(ctypes.c_double)]
    return library


def c_scores(library: ctypes.CDLL, values: Float64Array) -> list[float]:
    row = ctypes.c_double * values.shape[1]
    return [library.lmart_score(row(*one)) for one in values.tolist()]
