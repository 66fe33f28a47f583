"""The line at the bottom of a terminal: the time and the numbers are never cut, words are; and progress of reading."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import shlex
import struct
import sys
import termios
import time
from pathlib import Path

import pytest
from helpers.paths import SAMPLE

from lmart.cli.terminal import progress
from lmart.cli.terminal.progress import (
    LONGEST_BAR,
    SHORTEST_BAR,
    ReadingProgress,
    Shown,
    TerminalLine,
    TimeLeft,
    composed,
)
from lmart.formats.read_options import ReadState
from lmart.reports.narration import BestSoFar


def as_text(shown: Shown, text: str, width: int) -> str:
    done, bar, filled, rest = composed(shown, (text,), width)
    return f"{done} " + ("#" * filled + "." * (bar - filled) + " " if bar else "") + rest


SHOWN = Shown("162/300 trees", 0.54, "0:12")


class TestLine:
    def test_wide(self) -> None:
        assert as_text(SHOWN, "ndcg@10 0.6528", 100) == f"162/300 trees {'#' * 16}{'.' * 14} 0:12 ndcg@10 0.6528"

    def test_the_bar_goes_before_the_text_and_the_text_before_the_time(self) -> None:
        assert as_text(SHOWN, "ndcg@10 0.652802 on big.svm", 60) == (
            f"162/300 trees {'#' * 6}{'.' * 6} 0:12 ndcg@10 0.652802 on big.svm"
        )
        assert as_text(SHOWN, "ndcg@10 0.652802 on big.svm", 40) == "162/300 trees 0:12 ndcg@10 0.652802 on…"
        assert as_text(SHOWN, "ndcg@10 0.652802 on big.svm", 20) == "162/300 trees 0:12…"

    @pytest.mark.parametrize("width", [19, 20, 40, 60, 80, 129])
    @pytest.mark.parametrize("text", ["", "ndcg@10 0.652802 on big.svm, 0.5 on another.svm", "x" * 300])
    def test_time_and_count_are_there_at_any_width(self, width: int, text: str) -> None:
        line = as_text(SHOWN, text, width)
        assert line.startswith("162/300 trees ") and "0:12" in line and len(line) <= width

    def test_without_a_share_there_is_no_bar(self) -> None:
        assert as_text(Shown("reading 1,000 rows, 92 MB/s", -1.0, ""), "a.svm", 80) == (
            "reading 1,000 rows, 92 MB/s a.svm"
        )


class TestTimeLeft:
    @pytest.fixture
    def clock(self, monkeypatch: pytest.MonkeyPatch) -> list[float]:
        now = [100.0]
        monkeypatch.setattr(time, "monotonic", lambda: now[0])
        return now

    def test_is_not_known_before_anything_is_done(self, clock: list[float]) -> None:
        left = TimeLeft()
        left.update(0.0, clock[0])
        assert left.text() == "-:--"

    def test_what_came_before_the_first_report_does_not_count_for_long(self, clock: list[float]) -> None:
        left = TimeLeft()
        clock[0] += 50  # of compiling
        left.update(0.1, clock[0])
        clock[0] += 10
        left.update(0.2, clock[0])
        assert left.text() == "1:20"
        clock[0] += 5
        assert left.text() == "1:15"  # it goes on without a report

    def test_hours_and_the_end(self, clock: list[float]) -> None:
        left = TimeLeft()
        clock[0] += 60
        left.update(0.01, clock[0])
        assert left.text() == "1:39:00"
        left.update(1.0, clock[0])
        assert left.text() == "1:00"  # how long it took


def test_a_terminal_that_is_closed_does_not_end_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    master, terminal = pty.openpty()
    with open(terminal, "w") as screen:
        monkeypatch.setattr(sys, "stderr", screen)
        line = TerminalLine(lambda: Shown("1/2 trees", 0.5, "0:01"))
        line.start()
        os.close(master)
        line.show("text")
        assert line.print_above("a notice")
        line.stop()
        with pytest.raises(OSError, match="Input/output error"):
            screen.flush()  # what was lost
        monkeypatch.undo()
        os.dup2(os.open(os.devnull, os.O_WRONLY), terminal)


class FakeLine:
    def __init__(self, shown: object, stays: bool) -> None:
        lines.append(self)
        self.shown, self.running, self.text = shown, False, ""

    def start(self) -> None:
        self.running = True

    def show(self, text: str) -> None:
        self.text = text

    def stop(self) -> None:
        self.running = False


lines: list[FakeLine] = []


class TestReading:
    @pytest.fixture(autouse=True)
    def clock(self, monkeypatch: pytest.MonkeyPatch) -> list[float]:
        now = [100.0]
        lines.clear()
        monkeypatch.setattr(time, "monotonic", lambda: now[0])
        monkeypatch.setattr(progress, "TerminalLine", FakeLine)
        return now

    def test_nothing_is_shown_in_the_first_second(self, clock: list[float]) -> None:
        reading = ReadingProgress("reading")
        reading(ReadState("a/b.svm", 0.1, 1000, 10, False))
        clock[0] += 0.9
        reading(ReadState("a/b.svm", 0.9, 9000, 90, False))
        reading(ReadState("a/b.svm", 1.0, 9999, 99, True))
        assert (lines, reading.rows) == ([], 99)

    def test_file_pipe_and_second_pass(self, clock: list[float]) -> None:
        reading = ReadingProgress("reading")
        for path, share in (("a/b.svm", 0.25), ("-", 0.0), ("a/b.svm", 0.5)):
            reading(ReadState(path, share / 2, 10, 1, False))
            clock[0] += 2
            reading(ReadState(path, share, 20_000_000, 12_345, False))
            assert lines[-1].running
            lines[-1].text += " | " + reading._shown().done
            reading(ReadState(path, share, 20_000_000, 12_345, True))
            assert not lines[-1].running
        assert [one.text for one in lines] == [
            "b.svm | reading 25%",
            "standard input | reading 12,345 rows, 10 MB/s",
            "b.svm | reading again 50%",
        ]

    def test_close_takes_the_line_away(self, clock: list[float]) -> None:
        reading = ReadingProgress("reading")
        reading(ReadState("b", 0.1, 1, 1, False))
        clock[0] += 2
        reading(ReadState("b", 0.2, 2, 2, False))
        reading.close()
        assert not lines[0].running and not reading.print_above("x")


FORMS = ("ranker 1 of 4, ndcg@10 0.770139 on vali.svm, best 0.770612 at 150, 12 since", "ndcg@10 0.770139", "0.770139")


SHORT = SHOWN._replace(short="162/300")


@pytest.mark.parametrize("width", [28, 30, 40, 60, 80, 159])
def test_the_line_fits(width: int) -> None:
    parts = composed(SHORT, FORMS, width)
    assert len(parts.done) + parts.bar + len(parts.rest) + 2 <= width
    assert parts.rest.startswith("0:12 ") and parts.rest.count("0.770139") == 1 and "162/300" in parts.done
    assert SHORTEST_BAR <= parts.bar <= LONGEST_BAR or width < 30


def test_words_go_before_numbers() -> None:
    assert composed(SHORT, FORMS, 120).rest == f"0:12 {FORMS[0]}"
    assert composed(SHORT, FORMS, 80) == (SHORT.done, LONGEST_BAR, 16, f"0:12 {FORMS[1]}")
    assert composed(SHORT, FORMS, 40) == (SHORT.short, 10, 5, f"0:12 {FORMS[1]}")
    assert composed(SHORT, FORMS, 30) == (SHORT.short, 8, 4, f"0:12 {FORMS[2]}")


def test_best_so_far() -> None:
    best = BestSoFar()
    best.update(1, None)
    assert best.text(1) == ""
    best.update(2, 0.5)
    best.update(3, 0.5)
    assert best.text(2) == "" and best.text(3) == ", best 0.500000 at 2, 1 since"
    assert best.text(1_234, where=False) == ", best 0.500000, 1,232 since"
    best.update(4, 0.6)
    assert best.text(4) == ""
    assert BestSoFar(0.7).text(3) == ", best 0.700000 at 0, 3 since"


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
@pytest.mark.parametrize(
    ("width", "options"),
    [
        (40, "--valid {0}/vali.svm {0}/test.svm --early-stop 30 --trees 60"),
        (80, "--trees 20 --rankers 2"),
        (80, "--folds 2 --trees 20"),
        (40, "--folds 2 --trees 20 --early-stop 10"),
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
