"""When the console speaks of compiling, reading and what was done."""

from __future__ import annotations

import io
import os
import sys

import pytest

import lmart.kernels
from lmart.cli.terminal import console as module
from lmart.cli.terminal.console import Console
from lmart.errors import visible


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if standard error were a terminal."""
    monkeypatch.setattr(module, "on_terminal", lambda: True)


class TestCompiling:
    def said(self, capsys: pytest.CaptureFixture[str], console: Console, *calls: tuple[float, float]) -> str:
        for seconds, expected in calls:
            console._compiling(seconds, expected)
        return capsys.readouterr().err

    @pytest.mark.usefixtures("watched")
    def test_on_a_terminal_at_once_and_only_once(self, capsys: pytest.CaptureFixture[str]) -> None:
        said = self.said(capsys, Console(), (0.0, 3.2), (1.0, 3.2), (9.0, 3.2))
        assert said == "lmart: compiling for this command, about 4 s\n"

    @pytest.mark.usefixtures("watched")
    def test_what_is_short_is_not_worth_a_line(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert self.said(capsys, Console(), (0.0, 0.9), (0.5, 0.9), (1.9, 0.0)) == ""
        assert self.said(capsys, Console(), (2.1, 0.0)) == "lmart: compiling for this command\n"

    def test_elsewhere_only_what_speaks_anyway_and_after_a_while(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert self.said(capsys, Console(), (0.0, 9.0), (30.0, 9.0)) == ""
        assert self.said(capsys, Console(speaks=True), (0.0, 9.0), (1.9, 9.0)) == ""
        assert self.said(capsys, Console(speaks=True), (2.0, 9.0)) == "lmart: compiling for this command, about 9 s\n"

    def test_neither_of_waiting_for_another_that_compiles(self, capsys: pytest.CaptureFixture[str]) -> None:
        for speaks, said in ((False, ""), (True, "lmart: waiting\n")):
            Console(speaks=speaks)
            lmart.kernels.messages.notice("waiting")
            assert capsys.readouterr().err == said

    @pytest.mark.usefixtures("watched")
    def test_quiet(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert self.said(capsys, Console(quiet=1), (0.0, 9.0)) == ""


class TestReading:
    def test_nothing_off_a_terminal(self, capsys: pytest.CaptureFixture[str]) -> None:
        console = Console()
        assert console.reading() is None
        console.done("wrote 3 rows", "x.csv")
        assert capsys.readouterr() == ("", "")

    @pytest.mark.usefixtures("watched")
    def test_a_bar_does_not_spoil_results_on_the_same_terminal(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        assert Console().reading("scoring", prints=True) is None
        assert Console(quiet=1).reading() is None
        assert Console().reading() is not None

    @pytest.mark.usefixtures("watched")
    def test_what_was_done_and_how_long_it_took(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        console = Console()
        monkeypatch.setattr("time.monotonic", lambda: console._started + 2.61)
        console.done("wrote 446,328 scores", "hs.txt")
        console.done("wrote 3 scores", "-")
        assert capsys.readouterr().err == "lmart: wrote 446,328 scores to hs.txt in 2.6 s\n"


@pytest.mark.parametrize("columns", [24, 60, 0])
def test_a_terminal_gets_messages_in_lines_of_whole_words(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def size(descriptor: int) -> os.terminal_size:
        return os.terminal_size((columns, 24))

    monkeypatch.setattr(os, "get_terminal_size", size)
    told = io.BytesIO()
    monkeypatch.setattr(sys, "stderr", io.TextIOWrapper(told))
    monkeypatch.setattr(sys.stderr, "fileno", lambda: 2)
    text = "the mean of 3 rankers (auto): yetirank with 8 leaves; read from /a/folder/of-a-name/with/more\x07 in it"
    Console().notice(text)
    sys.stderr.flush()
    lines = told.getvalue().decode().splitlines()
    assert " ".join(lines) == f"lmart: {visible(text)}"
    assert all(len(line) <= (columns or 80) or " " not in line for line in lines)
    assert len(lines) > 1


def test_elsewhere_a_message_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    Console().notice("word " * 100 + "end")
    assert capsys.readouterr().err.count("\n") == 1
