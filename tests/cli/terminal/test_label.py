"""The row of a bar: the time and the numbers are never cut, words go first."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import shlex
import struct
import sys
import termios
from pathlib import Path

import pytest
from helpers.paths import SAMPLE

from lmart.cli.terminal.label import Label
from lmart.cli.terminal.line import LONGEST_BAR, SHORTEST_BAR, Shown, composed
from lmart.cli.terminal.round_progress import BestSoFar

FORMS = ("ranker 1 of 4, ndcg@10 0.770139 on vali.svm, best 0.770612 at 150, 12 since", "ndcg@10 0.770139", "0.770139")


SHOWN = Shown("162/300 trees", 0.54, "0:12", "162/300")


@pytest.mark.parametrize("width", range(28, 160))
def test_the_line_fits(width: int) -> None:
    parts = composed(SHOWN, FORMS, width)
    assert len(parts.done) + parts.bar + len(parts.rest) + 2 <= width
    assert parts.rest.startswith("0:12 ") and parts.rest.count("0.770139") == 1 and "162/300" in parts.done
    assert SHORTEST_BAR <= parts.bar <= LONGEST_BAR or width < 30


def test_words_go_before_numbers() -> None:
    assert composed(SHOWN, FORMS, 120).rest == f"0:12 {FORMS[0]}"
    assert composed(SHOWN, FORMS, 80) == (SHOWN.done, LONGEST_BAR, 16, f"0:12 {FORMS[1]}")
    assert composed(SHOWN, FORMS, 40) == (SHOWN.short, 10, 5, f"0:12 {FORMS[1]}")
    assert composed(SHOWN, FORMS, 30) == (SHOWN.short, 8, 4, f"0:12 {FORMS[2]}")


def test_best_so_far() -> None:
    best = BestSoFar()
    best.update(1, None)
    assert best.told(1) == ""
    best.update(2, 0.5)
    best.update(3, 0.5)
    assert best.told(2) == "" and best.told(3) == ", best 0.500000 at 2, 1 since"
    assert best.told(1_234, where=False) == ", best 0.500000, 1,232 since"
    best.update(4, 0.6)
    assert best.told(4) == ""
    assert BestSoFar(0.7).told(3) == ", best 0.700000 at 0, 3 since"


def on_terminal(width: int, *arguments: str, folder: Path) -> str:
    """Return all that a command writes to a terminal of this width, as lines."""
    process, terminal = pty.fork()
    if not process:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
        os.chdir(folder)
        environment = {**os.environ, "TERM": "xterm"}
        environment.pop("COLUMNS", None)
        os.execve(sys.executable, [sys.executable, "-m", "lmart", *arguments], environment)
    shown = b""
    try:
        while piece := os.read(terminal, 65536):
            shown += piece
    except OSError:  # the end
        pass
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0, shown
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode()).replace("\r", "\n")


@pytest.mark.slow
@pytest.mark.parametrize("width", [40, 80])
@pytest.mark.parametrize(
    "options",
    [
        "--valid {0}/vali.svm {0}/test.svm --early-stop 30 --trees 60",
        "--trees 20 --rankers 2",
        "--folds 2 --trees 20",
        "--folds 2 --trees 20 --early-stop 10",
    ],
)
def test_bars_on_a_terminal_are_whole(width: int, options: str, tmp_path: Path) -> None:
    line = f"train --data {SAMPLE / 'train.svm'} -o m.json {options.format(SAMPLE)}"
    shown = on_terminal(width, *shlex.split(line), folder=tmp_path)
    bars = [row for row in shown.splitlines() if re.match(r"\d+/\d+", row)]
    assert bars and "\u2026" not in shown
    for row in bars:
        assert len(row.rstrip()) <= width
        assert re.search(r" (-:--|\d+:\d\d(:\d\d)?) ", f"{row} "), row
    assert any(re.search(r"0\.\d{6}", row) for row in bars)
    assert str(SAMPLE) not in "".join(bars)


def test_a_label_has_a_line_of_its_own() -> None:
    assert Label("whole", ("short",)).plain == "whole"
