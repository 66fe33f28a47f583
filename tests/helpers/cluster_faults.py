"""A training on a cluster of which something is killed at a given moment, and what became of it."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

from helpers.clusters import RunningCluster, cluster, wait_until_idle
from helpers.commands import PROGRAM, run, start
from helpers.planted import HOLD, READING, SHARD, Moment
from helpers.shards import write_parts
from helpers.training_runs import learnable
from helpers.waiting import LIMIT, wait_until

OLD = "an older model\n"
SMALL = ("--trees", "8", "--leaves", "6", "--min-docs", "3", "--rankers", "2", "--sample", "0.7")
FIND = "lmart.distributed.reading:find_files"


class Fault(NamedTuple):
    """What is killed, and when.

    moment    : as the table calls it
    place     : MODULE:NAME where it happens, the call of it by that worker from 1, and whether after its work
    n_workers : of the cluster
    worker    : whose call it is, from 0
    scheduler : the scheduler is killed; else that worker
    delay     : seconds after that moment
    complete  : the model is complete by then, so that the command may end well
    in_tests  : tests have it too, not only tests/bench/cluster_faults.py
    """

    moment: str
    place: str
    call: int = 1
    after: bool = False
    n_workers: int = 2
    worker: int = 0
    scheduler: bool = False
    delay: float = 0.0
    complete: bool = False
    in_tests: bool = False

    @property
    def killed(self) -> str:
        """Who is killed, in words."""
        return "scheduler" if self.scheduler else f"worker {self.worker + 1} of {self.n_workers}"


def _shard(name: str) -> str:
    return f"{SHARD}.{name}"


WORKERS = [
    Fault("finding the files", FIND, worker=0),
    Fault("starting its shard", _shard("__init__"), worker=1, in_tests=True),
    Fault("before reading", _shard("first_pass"), worker=0),
    Fault("reading its second file", _shard("_check"), 2, n_workers=3, worker=1, in_tests=True),
    Fault("reading its last file", f"{READING}.found", n_workers=2, worker=1),
    Fault("choosing the sample", _shard("sample"), n_workers=3, worker=2),
    Fault("counting cells", _shard("counts"), after=True, worker=0),
    Fault("binning", _shard("code"), n_workers=3, worker=0),
    Fault("binning, after its work", _shard("code"), after=True, worker=1),
    Fault("laying out bins", _shard("lay_out"), after=True, worker=1),
    Fault("reading validation", _shard("read_valid"), worker=1),
    Fault("reading validation, 2nd set", _shard("read_valid"), 2, after=True, n_workers=3, worker=1),
    Fault("reading metadata", _shard("read_metadata"), worker=0),
    Fault("before the first tree", _shard("prepare"), n_workers=3, worker=2),
    Fault("tree 1, gradients", _shard("_compute_gradients"), 1, worker=0),
    Fault("tree 1, first split", _shard("split"), 1, worker=1),
    Fault("tree 1, after it", _shard("finish_tree"), 1, after=True, n_workers=3, worker=0),
    Fault("tree 2, drawing rows", _shard("draw"), 2, n_workers=3, worker=1),
    Fault("tree 3, packing", _shard("pack"), 3, after=True, worker=1),
    Fault("tree 5, while measuring", _shard("add"), 5, worker=0),
    Fault("a tree, its 5th message", _shard("split"), 5, after=True, n_workers=3, worker=2, in_tests=True),
    Fault("tree 3, 20 ms later", _shard("pack"), 3, worker=0, delay=0.02),
    Fault("end of the first ranker", _shard("keep"), 1, n_workers=3, worker=2),
    Fault("weighing the rankers", _shard("squares"), 1, after=True, worker=1),
    Fault("the model being written", _shard("close"), worker=0, complete=True, in_tests=True),
]
SCHEDULER = [
    Fault("reading its first file", _shard("_check"), scheduler=True),
    Fault("binning", _shard("code"), scheduler=True, worker=1),
    Fault("tree 1, first split", _shard("split"), 1, scheduler=True),
    Fault("tree 5, gradients", _shard("_compute_gradients"), 5, after=True, scheduler=True, n_workers=3, worker=2),
    Fault("weighing the rankers", _shard("squares"), 1, scheduler=True, in_tests=True),
]


class Outcome(NamedTuple):
    """How a run ended.

    seconds : from the fault to the end of the process
    line    : last line of standard error
    wrong   : what is not as it should be; nothing when all is well
    """

    seconds: float
    line: str
    wrong: list[str]


def write_data() -> bytes:
    """Write the parts of all sets to the current folder; return the model that one process makes of them."""
    write_parts(learnable(), 7, Path())
    for number in (0, 1):
        write_parts(learnable(2 + number), 3, Path(), f"valid-{number}")
    return _model_of_one_process()


@cache
def _model_of_one_process() -> bytes:
    for number in (0, 1):
        Path(f"one-{number}.svm").write_text("".join(Path(f"valid-{number}-{k}.svm").read_text() for k in range(3)))
    data = (f"part-{k}.svm" for k in range(7))
    run("train", "--data", *data, *SMALL, "-o", "one.json", "--valid", "one-0.svm", "one-1.svm", "--early-stop", "8")
    return Path("one.json").read_bytes()


def command_on(address: str, out: str = "m.json", data: Sequence[str] = ("part-?.svm",)) -> list[str]:
    """Return the command of a training on a cluster."""
    command = [*PROGRAM, "train", "--data", *data, *SMALL, "-o", out, "--dask", address]
    return [*command, "--valid", "valid-0-*.svm", "valid-1-*.svm", "--early-stop", "8"]


def outcome_of(fault: Fault, one: bytes) -> Outcome:
    """Run a training in the current folder, which has its data, with a fault; return how it ended.

    fault : what is killed, and when
    one   : the model of one process
    """
    with cluster(fault.n_workers, moments=True) as running:
        target = running.scheduler.pid if fault.scheduler else 0
        address = running.workers[fault.worker].address
        Moment(fault.place, fault.call, address, fault.after, fault.delay, target).write(running.folder)
        found = watched_run(running, one, fault.complete)
        if not fault.scheduler:
            if (running.folder / "reached").exists():
                running.workers[fault.worker].process.wait(LIMIT)
            (running.folder / "moment.json").unlink()
            found.wrong.extend(next_run_wrong(running.address, one))
        else:
            wait_until_idle(running.workers)
        return found


@contextmanager
def held_run(
    running: RunningCluster, place: str, call: int = 1, data: Sequence[str] = ("part-?.svm",)
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a training whose second worker waits in a place; yield it then, and let that worker go on afterwards."""
    Moment(place, call, running.workers[1].address, target=HOLD).write(running.folder)
    process = start(*command_on(running.address, data=data)[len(PROGRAM) :])
    try:
        wait_until(lambda: (running.folder / "reached").exists() or process.poll() is not None)
        assert process.poll() is None
        yield process
    finally:
        (running.folder / "go").touch()
        (running.folder / "moment.json").unlink()
        process.kill()
        process.communicate()


def watched_run(running: RunningCluster, one: bytes, complete: bool) -> Outcome:
    """Run a training that meets a fault; return how it ended."""
    before = set(os.listdir())
    Path("m.json").write_text(OLD)
    temporary = running.folder / "temporary"
    temporary.mkdir()
    command = command_on(running.address)
    with (running.folder / "driver.log").open("wb+") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, "TMPDIR": str(temporary)})
        with suppress(subprocess.TimeoutExpired):
            process.wait(LIMIT)
        ended = time.time()
        process.kill()
        process.wait()
        log.seek(0)
        said = log.read().decode()
    wrong = []
    reached = running.folder / "reached"
    seconds = ended - reached.stat().st_mtime if reached.exists() else float("nan")
    if not reached.exists():
        wrong.append("the moment never came")
    lines = said.splitlines() or [""]
    errors = [line for line in lines if line.startswith("lmart: error: ")]
    left = Path("m.json").read_bytes()
    if complete and process.returncode == 0:
        wrong += [] if left == one else ["another model"]
    else:
        wrong += [] if process.returncode == 1 else [f"exit {process.returncode}"]
        wrong += [] if errors == lines[-1:] else ["not one last line"]
        wrong += [] if left == OLD.encode() else ["the older model is gone"]
    wrong += [f"foreign line {line!r}" for line in lines if not line.startswith("lmart: ")][:1]
    Path("m.json").unlink()
    wrong += [f"left {name}" for name in sorted(set(os.listdir()) - before)]
    wrong += [f"left {path.name} in the temporary folder" for path in temporary.iterdir()]
    return Outcome(seconds, lines[-1], wrong)


def next_run_wrong(address: str, one: bytes, data: Sequence[str] = ("part-?.svm",)) -> list[str]:
    """Train once more on the cluster; return what is wrong with that."""
    command = command_on(address, "next.json", data)
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT)
    if done.returncode:
        return [f"the next run: {done.stderr.splitlines()[-1]}"]
    found = Path("next.json").read_bytes()
    Path("next.json").unlink()
    return [] if found == one else ["the next run has other bytes"]
