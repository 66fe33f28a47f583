"""lmart compile, as a user runs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from helpers.commands import run, shell


@pytest.mark.slow
def test_refuses_when_nothing_is_compiled(tmp_path: Path) -> None:
    done = shell("lmart compile", tmp_path, {"NUMBA_DISABLE_JIT": "1"})
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr == b"lmart: error: NUMBA_DISABLE_JIT is set, so nothing is compiled; unset it\n"


@pytest.mark.slow
def test_refuses_when_no_folder_can_keep_it() -> None:
    program = (
        "from lmart.kernels.numba_support import code_files; code_files.candidate_folders = lambda *_: iter(());"
        "from lmart.cli.main import main; main.main(['compile'])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr == (
        b"lmart: error: no folder can keep machine code; set NUMBA_CACHE_DIR to one that can be written to\n"
    )


def test_takes_no_arguments() -> None:
    assert "got unexpected extra argument" in run("compile", "x", status=2).stderr
