"""The scripts in the shells themselves: bash, and zsh and fish where they are installed."""

from __future__ import annotations

import os
import pty
import re
import select
import shlex
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest
from helpers.commands import run
from helpers.paths import ROOT
from helpers.waiting import LIMIT

from lmart.cli.completion import SCRIPTS, SHELLS

# `COMP_WORDS` is how bash cuts a line: at blanks, and around each run of the characters @, = and :.
DRIVER = """
eval "$(lmart --completion bash)"
compopt() { options+=" ${*: -1}"; }
complete_line() {
    COMP_LINE=$1 COMP_POINT=${#1} COMPREPLY=() options=
    COMP_WORDS=("${@:2}")
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _lmart lmart
    printf '%s\\n' "${COMPREPLY[@]}" "options:$options"
}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a program `lmart` in bin, and files to complete."""
    program = tmp_path / "bin" / "lmart"
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(ROOT))} exec {shlex.quote(sys.executable)} -m lmart "$@"\n'
    )
    program.chmod(0o755)
    (tmp_path / "models").mkdir()
    for name in ("model.json", "model.svm", "my data.svm", "models/m.ubj"):
        (tmp_path / name).touch()
    return tmp_path


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "HOME": str(folder), "TERM": "xterm"}


def in_bash(line: str, folder: Path) -> tuple[set[str], str]:
    """Return what bash would be told for a line, and the options of compopt."""
    words = [piece for word in line.split(" ") for piece in (re.findall(r"[@=:]+|[^@=:]+", word) or [""])]
    call = shlex.join(["complete_line", line, *words])
    done = subprocess.run(
        ["bash", "--norc", "-c", f"{DRIVER}{call}"],
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    *replies, options = done.stdout.splitlines()
    return {one for one in replies if one}, options.removeprefix("options:").strip()


@pytest.mark.parametrize(
    ("line", "replies", "options"),
    [
        ("lmart tr", {"train"}, ""),
        ("lmart train --early", {"--early-stop"}, ""),
        ("lmart predict -m mo", {"model.json", "models"}, "filenames"),
        ("lmart predict -m models/", {"models/m.ubj"}, "filenames"),
        ("lmart predict --model=mo", {"model.json", "models"}, "filenames"),
        ("lmart train --data mo", {"model.json", "model.svm", "models"}, "filenames"),
        ("lmart train --data x my", {"my data.svm"}, "filenames"),
        ("lmart eval --metric map,mr", {"map,mrr", "map,mrr@10"}, "nospace"),
        # Readline keeps the @ in the word that it replaces.
        ("lmart train --metric ndcg@1", {"@1", "@10", "@100"}, ""),
        ("lmart train --metric ndcg@", {"@1", "@3", "@5", "@10", "@20", "@100"}, ""),
        ("lmart eval --ties=a", {"average"}, ""),
        ("lmart train --objective map+e", {"map+err"}, "nospace"),
        ("lmart train --trees ", set(), ""),
        ("lmart --completion f", {"fish"}, ""),
        ("lmart eval --dask lo", {"local:2"}, "nospace"),
        ("lmart eval --dask tcp:", {"//"}, "nospace"),
    ],
)
def test_bash(line: str, replies: set[str], options: str, folder: Path) -> None:
    assert in_bash(line, folder) == (replies, options)


def typed(shell: list[str], setup: str, line: str, folder: Path) -> str:
    """Return what a shell on a terminal shows after a line and a TAB, without control characters."""
    process, terminal = pty.fork()
    if not process:
        os.chdir(folder)
        os.execvpe(shell[0], shell, environment(folder))
    shown = b""

    def read_until(mark: bytes) -> None:
        nonlocal shown
        end = time.monotonic() + LIMIT
        while mark not in shown and time.monotonic() < end:
            if select.select([terminal], [], [], 0.1)[0]:
                try:
                    shown += os.read(terminal, 65536)
                except OSError:
                    break

    try:
        os.write(terminal, f"{setup}; echo re''ady\r".encode())
        read_until(b"ready\r\n")
        shown = b""
        expected = line.partition("|")[2]
        os.write(terminal, line.partition("|")[0].encode() + b"\t")
        read_until(expected.encode())
    finally:
        os.close(terminal)
        os.waitpid(process, 0)
    return re.sub(r"\x1b(?:\[[0-9;?]*[A-Za-z]|[()=>].?)|[\x00-\x08]", "", shown.decode(errors="replace"))


CASES = [
    "lmart tr|train",
    "lmart train --early|--early-stop",
    "lmart train --lea|Maximum number of leaves per tree",
    "lmart train --tree ob|oblivious",
    "lmart train --objective lambdamart+ye|lambdamart+yetirank",
    "lmart predict -m models/|m.ubj",
    "lmart train --data my|data.svm",
    "lmart --completion z|zsh",
    'lmart train --data "my|data.svm',
    "lmart train --data 'my d|ata.svm",
    'lmart train --objective "lambdam|lambdamart',
    "lmart train --dask lo|local:2",
]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not here")
@pytest.mark.parametrize("case", CASES)
def test_zsh(case: str, folder: Path) -> None:
    setup = 'autoload -Uz compinit; compinit -u -D; PS1="> "; eval "$(lmart --completion zsh)"'
    assert case.partition("|")[2] in typed(["zsh", "-f"], setup, case, folder)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not here")
def test_zsh_lists_words_without_meaning_by_themselves(folder: Path) -> None:
    setup = 'autoload -Uz compinit; compinit -u -D; PS1="> "; setopt autolist; eval "$(lmart --completion zsh)"'
    shown = typed(["zsh", "-f"], setup, "lmart train --tree |oblivious", folder)
    assert "oblivious" in shown and " -- " not in shown


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not here")
@pytest.mark.parametrize("case", CASES)
def test_fish(case: str, folder: Path) -> None:
    """Asked without a terminal: fish has a command for that."""
    line, _, expected = case.partition("|")
    program = f"lmart --completion fish | source; complete -C {shlex.quote(line)}"
    done = subprocess.run(
        ["fish", "--no-config", "-c", program],
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        check=True,
    )
    assert expected in done.stdout and done.stderr == ""


def test_the_scripts_are_installed_where_shells_look() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    shared = project["tool"]["hatch"]["build"]["targets"]["wheel"]["shared-data"]
    places = {
        "bash": "share/bash-completion/completions/lmart",
        "zsh": "share/zsh/site-functions/_lmart",
        "fish": "share/fish/vendor_completions.d/lmart.fish",
    }
    for shell in SHELLS:
        source = f"lmart/cli/completion/{SCRIPTS[shell]}"
        assert shared[source] == places[shell]
        assert (ROOT / source).read_text() == run("--completion", shell).stdout
