"""Claims of kernels among processes, and forks that end."""

from __future__ import annotations

import fcntl
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from io import FileIO
from pathlib import Path

import pytest
from helpers.waiting import wait_until

from lmart.kernels.numba_support.compiling_processes import CompilingProcesses

NAMES = [f"kernel.one-{number:032x}.kernel" for number in (1 << 80, 5 << 90)]


@pytest.fixture
def processes() -> Iterator[CompilingProcesses]:
    made = CompilingProcesses()
    yield made
    made.stop()


def lock_file(folder: Path) -> FileIO:
    return FileIO(folder / "lock", "w")


def test_a_claim_is_waited_for_and_ends_with_its_process(processes: CompilingProcesses, tmp_path: Path) -> None:
    ready, goes_on = tmp_path / "ready", tmp_path / "goes on"

    def work(number: int) -> None:
        assert processes.claim(NAMES[0], wait=False)
        ready.touch()
        wait_until(goes_on.exists)
        ready.unlink()  # and ends without a release

    assert processes.start(1, lock_file(tmp_path), work)
    wait_until(ready.exists)
    assert processes.are_there()
    assert not processes.claim(NAMES[0], wait=False)
    assert processes.claim(NAMES[1], wait=False)
    goes_on.touch()
    assert processes.claim(NAMES[0])
    assert not ready.exists()


def test_a_release_lets_others_go_on(processes: CompilingProcesses, tmp_path: Path) -> None:
    got = tmp_path / "got"

    def work(number: int) -> None:
        if processes.claim(NAMES[0]):
            processes.release(NAMES[0])
            got.touch()
        signal.pause()

    assert processes.start(1, lock_file(tmp_path), work)
    wait_until(got.exists)
    assert processes.claim(NAMES[0], wait=False)


def test_stopping_ends_the_forks(processes: CompilingProcesses, tmp_path: Path) -> None:
    assert processes.start(2, lock_file(tmp_path), lambda number: signal.pause() and None)  # type: ignore[func-returns-value]
    forks = list(processes._forks)
    processes.stop()
    assert len(forks) == 2 and not processes.are_there()
    for fork in forks:
        assert os.waitstatus_to_exitcode(os.waitpid(fork, 0)[1]) == -signal.SIGTERM


def test_forks_end_with_a_process_that_is_killed(processes: CompilingProcesses, tmp_path: Path) -> None:
    """They would keep the lock, for which the next command waits."""
    started = tmp_path / "started"

    def work(number: int) -> None:
        started.touch()
        signal.pause()

    if not (killed := os.fork()):
        lock = lock_file(tmp_path)
        fcntl.flock(lock, fcntl.LOCK_EX)
        processes.start(1, lock, work)
        signal.pause()
    wait_until(started.exists)
    os.kill(killed, signal.SIGKILL)
    os.waitpid(killed, 0)

    def is_free() -> bool:
        with lock_file(tmp_path) as lock, suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        return False

    wait_until(is_free)


def test_a_fork_has_no_other_files_and_says_nothing(
    processes: CompilingProcesses, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)

    def work(number: int) -> None:
        os.write(1, b"out")
        os.write(2, b"err")
        signal.pause()

    assert processes.start(1, lock_file(tmp_path), work)
    os.close(writer)
    assert os.read(reader, 1) == b""  # the end: nobody else can write to it
    os.close(reader)
    processes.stop()
    assert capfd.readouterr() == ("", "")
