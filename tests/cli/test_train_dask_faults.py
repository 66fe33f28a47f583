"""lmart train --dask when something goes wrong: each ends in one line, with nothing written and the workers free."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from helpers.cluster_faults import (
    SCHEDULER,
    WORKERS,
    Fault,
    command_on,
    held_run,
    next_run_wrong,
    outcome_of,
    write_data,
)
from helpers.clusters import cluster, one_more_worker, wait_until_idle
from helpers.commands import PROGRAM
from helpers.planted import FILL, SHARD, Moment
from helpers.waiting import LIMIT

pytestmark = [pytest.mark.slow, pytest.mark.cluster]
PLANTED = [fault for fault in (*WORKERS, *SCHEDULER) if fault.in_tests]
# The program, with less patience for what never answers.
IMPATIENT = """
from lmart.distributed import cluster, connecting
connecting.ANSWER, connecting.GREETING, cluster.LOOK = {answer}, 1.0, {look}
from lmart.__main__ import run
run()
"""


@pytest.mark.parametrize("fault", PLANTED, ids=lambda fault: f"{fault.moment}, {fault.killed}")
def test_a_kill_at_any_moment_ends_in_one_line(fault: Fault, in_folder: Path) -> None:
    """And leaves an older model, no temporary files, and workers that serve the next run."""
    found = outcome_of(fault, write_data())
    assert not found.wrong, found.line


@pytest.mark.parametrize(
    "number, place, call", [(signal.SIGINT, "_check", 2), (signal.SIGTERM, "split", 3)], ids=["reading", "growing"]
)
def test_a_signal_ends_the_run_and_frees_the_workers(
    number: signal.Signals, place: str, call: int, in_folder: Path
) -> None:
    one = write_data()
    before = sorted(Path().iterdir())
    with cluster(2, moments=True) as running:
        with held_run(running, f"{SHARD}.{place}", call) as command:
            command.send_signal(number)
            _, said = command.communicate(timeout=LIMIT)
            assert command.returncode == 128 + number
            assert b"Traceback" not in said and said.splitlines()[-1].endswith(b"nothing was written")
            assert sorted(Path().iterdir()) == before
        wait_until_idle(running.workers)
        assert not next_run_wrong(running.address, one)


def test_a_part_that_vanishes_is_named(in_folder: Path) -> None:
    one = write_data()
    with cluster(2, moments=True) as running:
        with held_run(running, f"{SHARD}.first_pass") as command:
            content = Path("part-6.svm").read_bytes()
            Path("part-6.svm").unlink()
            (running.folder / "go").touch()
            _, said = command.communicate(timeout=LIMIT)
            assert command.returncode == 1
            assert said.splitlines()[-1].endswith(b"part-6.svm: there is no such file; check the name")
        Path("part-6.svm").write_bytes(content)
        assert not next_run_wrong(running.address, one)


def last_line(command: list[str]) -> str:
    """Run a command that fails; return its last line, the only one of an error."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT)
    lines = done.stderr.splitlines()
    assert done.returncode == 1
    assert [line for line in lines if not line.startswith("lmart: ")] == []
    assert [line for line in lines if line.startswith("lmart: error: ")] == lines[-1:]
    return lines[-1]


def impatient(command: list[str], *, answer: float = 30.0, look: float = 5.0) -> list[str]:
    program = IMPATIENT.format(answer=answer, look=look)
    return [sys.executable, "-c", program, *command[len(PROGRAM) :]]


def test_a_worker_that_hangs_is_named(in_folder: Path) -> None:
    one = write_data()
    with cluster(2) as running:
        hung = running.workers[1]
        hung.process.send_signal(signal.SIGSTOP)
        assert f"the worker {hung.address} no longer responds" in last_line(
            impatient(command_on(running.address), look=2.5)
        )
        hung.process.send_signal(signal.SIGCONT)
        assert not next_run_wrong(running.address, one)


def test_a_worker_that_runs_out_of_memory_is_lost(in_folder: Path) -> None:
    """Its nanny ends it and starts another."""
    one = write_data()
    with cluster(2, "--nanny", "--memory-limit", "600MiB", moments=True) as running:
        address = running.workers[1].address
        Moment(f"{SHARD}.split", 3, address, target=FILL).write(running.folder)
        assert f"the worker {address} is lost: it ended, ran out of memory" in last_line(command_on(running.address))
        (running.folder / "moment.json").unlink()
        assert not next_run_wrong(running.address, one)


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", bytes([1, *7 * [0]]) * 100])
def test_what_listens_and_is_no_scheduler(answer: bytes, in_folder: Path) -> None:
    write_data()
    with socket.create_server(("127.0.0.1", 0)) as server:
        kept = []

        def serve() -> None:
            with suppress(OSError):
                while True:
                    kept.append(server.accept()[0])
                    kept[-1].sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        said = last_line(impatient(command_on(f"tcp://127.0.0.1:{server.getsockname()[1]}"), answer=2.0))
        for connection in kept:
            connection.close()
    assert "cannot be reached (no scheduler answers there); check the address" in said


def test_idle_workers_may_join_and_leave(in_folder: Path) -> None:
    """There are as many shards as parts: the first two workers have them."""
    write_data()
    with cluster(3, moments=True) as running:
        data = [f"part-{k}.svm" for k in range(5, 7)]
        with held_run(running, f"{SHARD}.split", 3, data) as command, one_more_worker(running):
            running.workers[2].process.kill()
            running.workers[2].process.wait()
            (running.folder / "go").touch()
            _, said = command.communicate(timeout=LIMIT)
            assert command.returncode == 0, said
        assert not next_run_wrong(running.address, Path("m.json").read_bytes(), data)
