"""Signals: a run ends within a tree, with the right status, silently, and leaves nothing half-written behind."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from commands import SAMPLE, run, shell, start

from lmart.cli import process as own_process
from lmart.errors import ExitStatus

TRAIN = SAMPLE / "train.svm"
STATUS = {signal.SIGINT: ExitStatus.INTERRUPTED, signal.SIGTERM: ExitStatus.TERMINATED, signal.SIGHUP: 129}


@pytest.fixture(scope="module", autouse=True)
def compiled(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Compile once, in this process, what the runs below need."""
    run("train", "--data", TRAIN, "--trees", "2", "--out", tmp_path_factory.mktemp("once") / "m.json")


@contextmanager
def long_training(folder: Path, *more: str) -> Iterator[subprocess.Popen[bytes]]:
    """A run that would take minutes, once its first tree is grown."""
    arguments = ("train", "--data", TRAIN, "--trees", "1000000", "--out", "m.json", "--threads", "2", *more)
    with start(*arguments, folder=folder) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if b"/1000000 trees" in line:
                break
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("number", STATUS)
def test_training_is_stopped(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "m.json").write_text("old")
    with long_training(tmp_path) as process:
        began = time.monotonic()
        process.send_signal(number)
        process.send_signal(number)  # `timeout` and terminals may send it twice
        stdout, stderr = process.communicate(timeout=60)
        assert time.monotonic() - began < 5
    assert (process.returncode, stdout) == (STATUS[number], b"")
    assert all(line.startswith(b"lmart: ") and b" trees" in line for line in stderr.splitlines())
    assert [path.name for path in tmp_path.iterdir()] == ["m.json"]
    assert (tmp_path / "m.json").read_text() == "old"


def test_at_any_moment(tmp_path: Path) -> None:
    """From the start of the interpreter on; whatever happens, no traceback of ours and no file."""
    moments = random.Random(1)
    for _ in range(6):
        with start("train", "--data", TRAIN, "--trees", "1000000", "--out", "m.json", folder=tmp_path) as process:
            time.sleep(moments.uniform(0.3, 2))
            process.send_signal(signal.SIGTERM)
            _, stderr = process.communicate()
        assert process.returncode in (143, -signal.SIGTERM)  # the latter before our first line runs
        assert b"Traceback" not in stderr and b"ignored" not in stderr, stderr.decode()
        assert list(tmp_path.iterdir()) == []


def test_an_interrupt_before_the_first_command_line_is_looked_at(tmp_path: Path) -> None:
    """While the modules of the command line itself are imported; what interrupts them here is the import of one."""
    (tmp_path / "click.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    early = tmp_path / "early"
    early.mkdir()
    body = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n"
    (early / "sitecustomize.py").write_text(
        "import sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == 'lmart.cli': exec({body!r})\n"
        "sys.meta_path.insert(0, Finder())\n"
    )
    for folder in (tmp_path, early):
        with start("--help", environment={"PYTHONPATH": str(folder)}, folder=tmp_path) as process:
            stdout, stderr = process.communicate()
        assert (process.returncode, stdout, stderr) == (130, b"", b"")


def test_code_that_is_being_loaded_is_not_left_half_done() -> None:
    script = """
import os, signal, time
from lmart.cli import process
process.prepare()
scope = {"__name__": process.LOADING, "os": os, "signal": signal}
exec("def load():\\n os.kill(os.getpid(), signal.SIGTERM)\\n print('whole')", scope)
try:
    scope["load"]()
    time.sleep(10)
except process.Stopped as stopped:
    print(process.status_of(stopped))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, timeout=60)
    assert done.stdout.split() == [b"whole", b"143"]
    from llvmlite.binding import executionengine

    assert executionengine.__name__ == "llvmlite.binding.executionengine"


def test_while_compiling(tmp_path: Path) -> None:
    """The compiler calls back from places that cannot raise; the signal is not lost there."""
    folder = tmp_path / "run"
    folder.mkdir()
    environment = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    for pause in (0.1, 0.4, 1.1):
        with start("train", "--data", TRAIN, environment=environment, folder=folder) as process:
            assert process.stderr is not None
            while b"compiling" not in process.stderr.readline():
                assert process.poll() is None
            time.sleep(pause)
            process.send_signal(signal.SIGINT)
            began = time.monotonic()
            _, stderr = process.communicate()
            assert time.monotonic() - began < 15
        assert process.returncode == 130
        assert b"Traceback" not in stderr and b"ignored" not in stderr, stderr.decode()
        assert list(folder.iterdir()) == []
    assert {path.suffix for path in (tmp_path / "cache" / "lmart").iterdir()} <= {".kernel", ".lock"}


def test_an_ignored_signal_stays_ignored(tmp_path: Path) -> None:
    program = "import os, signal; from lmart.cli import process; process.prepare(); os.kill(os.getpid(), signal.SIGHUP)"
    line = f"trap '' HUP; {sys.executable} -c '{program}; print(1)'"
    done = shell(line, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"1\n", b"")


def test_prediction_is_stopped_while_it_waits_for_input(tmp_path: Path) -> None:
    run("train", "--data", TRAIN, "--trees", "2", "--out", tmp_path / "m.json")
    with start("predict", "-m", "m.json", "--data", "-", "--out", "scores", folder=tmp_path) as process:
        time.sleep(1.5)
        process.send_signal(signal.SIGINT)
        process.wait(5)
        assert process.communicate()[1] == b""
    assert process.returncode == 130
    assert not (tmp_path / "scores").exists()


class TestStopper:
    def program(self, body: str) -> subprocess.CompletedProcess[str]:
        head = "import os, signal, time\nfrom lmart.cli import process\nprocess.prepare()\n"
        return subprocess.run([sys.executable, "-c", head + body], capture_output=True, text=True, check=False)

    def test_contexts_are_left(self) -> None:
        body = (
            "try:\n"
            "    try: os.kill(os.getpid(), signal.SIGTERM); time.sleep(5)\n"
            "    finally: print('cleaned')\n"
            "except KeyboardInterrupt as interrupt: process.leave(process.status_of(interrupt))"
        )
        done = self.program(body)
        assert (done.returncode, done.stdout, done.stderr) == (143, "cleaned\n", "")

    def test_a_second_signal_does_not_disturb_the_cleaning(self) -> None:
        body = (
            "try:\n"
            "    try: os.kill(os.getpid(), signal.SIGTERM); time.sleep(5)\n"
            "    finally: os.kill(os.getpid(), signal.SIGTERM); time.sleep(0.1); print('cleaned')\n"
            "except KeyboardInterrupt as interrupt: process.leave(process.status_of(interrupt))"
        )
        assert self.program(body).stdout == "cleaned\n"

    def test_a_later_signal_counts_again(self) -> None:
        body = (
            "for _ in range(2):\n"
            "    try: os.kill(os.getpid(), signal.SIGINT); time.sleep(5)\n"
            "    except KeyboardInterrupt: print('stopped', flush=True); time.sleep(1.05)\n"
        )
        assert self.program(body).stdout == "stopped\nstopped\n"

    def test_a_signal_where_nothing_can_be_raised_comes_again(self) -> None:
        body = (
            "class Thing:\n"
            "    def __del__(self): os.kill(os.getpid(), signal.SIGINT); [i for i in range(1000)]\n"
            "try: Thing(); time.sleep(5)\n"
            "except KeyboardInterrupt: print('stopped')\n"
        )
        done = self.program(body)
        assert (done.stdout, done.stderr) == ("stopped\n", "")

    def test_other_exceptions_there_are_still_told(self) -> None:
        body = "class Thing:\n    def __del__(self): 1 / 0\nThing()"
        assert "ZeroDivisionError" in self.program(body).stderr

    def test_statuses(self) -> None:
        assert own_process.status_of(KeyboardInterrupt()) == ExitStatus.INTERRUPTED
        assert own_process.status_of(own_process.Stopped(signal.SIGTERM)) == ExitStatus.TERMINATED
