"""Running lmart in tests: inside this process, as a process of its own, or as a line of the README or a manual."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from click.testing import CliRunner, Result

from helpers.paths import ROOT
from lmart.cli.main import main
from lmart.errors import ExitStatus

# tests/distributed looks like a package of that name, but has no file.
HAS_DASK = (spec := find_spec("distributed")) is not None and spec.origin is not None
PROGRAM = (sys.executable, "-m", "lmart")
_AT_ONCE = """
from lmart.training import checkpoint
checkpoint.FIRST_SECONDS = 0.0
from lmart.__main__ import run
run()
"""
CHECKPOINT_AT_ONCE = (sys.executable, "-c", _AT_ONCE)  # the program, which writes a checkpoint after the first round


def run(*arguments: str | Path, status: int = ExitStatus.DONE, stdin: bytes | str | None = None) -> Result:
    """Run a command in this process and assert its exit status; both streams are shown when it is another one."""
    result = CliRunner().invoke(main, [str(a) for a in arguments], input=stdin)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == status, f"status {result.exit_code}\nstdout: {result.stdout}\nstderr: {result.stderr}"
    return result


def start(
    *arguments: str | Path, environment: Mapping[str, str] | None = None, folder: Path | None = None
) -> subprocess.Popen[bytes]:
    """Start a command as a process of its own, `environment` on top of this one's, with all streams as pipes."""
    return subprocess.Popen(
        [*PROGRAM, *map(str, arguments)],
        env={**os.environ, **(environment or {})},
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def shell(line: str, folder: Path, environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[bytes]:
    """Run a line with bash in `folder`; `lmart` in it is the one under test."""
    program = f'lmart() {{ {shlex.join(PROGRAM)} "$@"; }}; {line}'
    return subprocess.run(
        ["bash", "-c", program], cwd=folder, env={**os.environ, **(environment or {})}, capture_output=True, check=False
    )


def run_lines(lines: Sequence[str], folder: Path) -> None:
    """Run command lines that build on each other in `folder`, where data/sample is found; each must succeed."""
    (folder / "data").symlink_to(ROOT / "data")
    before = Path.cwd()
    os.chdir(folder)
    try:
        for line in lines:
            if any(sign in line for sign in "|<>;&$"):
                done = shell(line, folder)
                assert done.returncode == 0, f"{line}\n{done.stdout!r}\n{done.stderr!r}"
            else:
                run(*shlex.split(line)[1:])
    finally:
        os.chdir(before)
