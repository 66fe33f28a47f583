"""lmart train --dask when something goes wrong: each ends in one line, with nothing written and the workers free."""

from __future__ import annotations

import json
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
from helpers.planted import FILL, HOLD, SHARD, Moment
from helpers.waiting import LIMIT, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.cluster]
PLANTED = [fault for fault in (*WORKERS, *SCHEDULER) if fault.in_tests]
# The program, with less patience for what never answers, and for the first checkpoint.
IMPATIENT = """
from lmart.distributed import cluster, connecting
from lmart.training import checkpoint
connecting.ANSWER, connecting.GREETING, cluster.LOOK = {answer}, 1.0, {look}
checkpoint.FIRST_SECONDS = {first}
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


def impatient(command: list[str], *, answer: float = 30.0, look: float = 5.0, first: float = 0.5) -> list[str]:
    program = IMPATIENT.format(answer=answer, look=look, first=first)
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


def test_lost_workers_are_done_without_if_asked(in_folder: Path) -> None:
    """One is killed and a second one stopped in the middle of a tree; the third goes on alone."""
    one = write_data()
    with cluster(3, moments=True) as running:
        Moment(f"{SHARD}.split", 9, running.workers[1].address).write(running.folder)
        retried = [*command_on(running.address), "--retries", "2", "--report", "r.json"]
        command = subprocess.Popen(impatient(retried, look=2.0), stderr=subprocess.PIPE)
        running.workers[1].process.wait(LIMIT)
        running.workers[2].process.send_signal(signal.SIGSTOP)
        (running.folder / "moment.json").unlink()
        _, said = command.communicate(timeout=LIMIT)
        running.workers[2].process.send_signal(signal.SIGCONT)
        assert command.returncode == 0, said
        assert Path("m.json").read_bytes() == one
        warnings = json.loads(Path("r.json").read_text())["warnings"]
        assert [text.partition("; ")[2] for text in warnings] == [
            "starting again without it (2 retries left)",
            "starting again without it (1 retry left)",
        ]
        assert b"going on after " in said
        assert not next_run_wrong(running.address, one)


def test_a_killed_driver_goes_on_from_its_checkpoint_with_other_workers(in_folder: Path) -> None:
    one = write_data()
    kept = ("--checkpoint", "c")
    with cluster(3, moments=True) as running:
        Moment(f"{SHARD}._compute_gradients", 6, running.workers[1].address, target=HOLD).write(running.folder)
        with_all = command_on(running.address)
        command = subprocess.Popen([*impatient(with_all, first=0.0), *kept], stderr=subprocess.DEVNULL)
        wait_until(lambda: (running.folder / "reached").exists() or command.poll() is not None)
        command.kill()
        command.wait()
        (running.folder / "go").touch()
        (running.folder / "moment.json").unlink()
        assert Path("c").exists() and not Path("m.json").exists()
        said = last_line([*with_all, *kept, "--seed", "9"])
        assert "c: is the checkpoint of another run: seed is 9, there 0; give the command" in said
        running.workers[0].process.kill()
        running.workers[0].process.wait()
        wait_until_idle(running.workers[1:])
        done = subprocess.run([*with_all, *kept], capture_output=True, text=True, check=False, timeout=LIMIT)
        assert done.returncode == 0 and "going on after " in done.stderr, done.stderr
    assert Path("m.json").read_bytes() == one
    assert not Path("c").exists() and not Path(".c.lock").exists()


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
