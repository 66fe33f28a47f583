"""lmart train --dask, on clusters of processes of this machine."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from helpers.clusters import children, cluster, is_running, wait_for
from helpers.commands import PROGRAM, run, start
from helpers.shards import write_parts
from helpers.training_runs import learnable
from helpers.waiting import LIMIT, wait_until

SMALL = ("--trees", "8", "--leaves", "6", "--min-docs", "3", "--rankers", "2")


@pytest.mark.parametrize(
    "options, said",
    [
        (("--dask", "nowhere"), "--dask 'nowhere' is no address"),
        (("--dask", "local:0"), "--dask 'local:0' is no address"),
        (("--dask", "local:2", "--folds", "3"), "--folds does not go with --dask"),
        (("--dask", "local:2", "--group-by-qid"), "--group-by-qid does not go with --dask"),
        (("--dask", "local:2", "--query-sizes", "s"), "--query-sizes does not go with --dask"),
        (("--dask", "local:2", "--positions", "p"), "--positions does not go with --dask"),
        (("--dask", "local:2", "--continue-from", "m.json"), "--continue-from does not go with --dask"),
        (("--dask", "local:2", "--data", "-"), "standard input does not go with --dask"),
        (("--dask-security", "s.json"), "--dask-security needs --dask"),
        (("--dask", "tcp://a:1", "--dask-security", "s.json"), "--dask-security needs a scheduler at tls://"),
    ],
)
def test_wrong_usage_is_refused_before_anything_is_started(options: tuple[str, ...], said: str) -> None:
    assert said in run("train", "--data", "d.svm", *options, status=2).stderr


@pytest.mark.cluster
@pytest.mark.parametrize(
    "content, said",
    [
        ("[1]", "does not describe certificates"),
        ("{", "is not JSON"),
        ("[" * 100_000, "brackets are nested too deep"),
        ('{"tls_ca_file": "a", "tls_client_cert": "b", "tls_client_key": "c"}', "tls_ca_file is not a file: 'a'"),
    ],
)
def test_a_wrong_security_file_is_named(content: str, said: str, in_folder: Path) -> None:
    Path("s.json").write_text(content)
    Path("d.svm").write_text(learnable())
    command = ("train", "--data", "d.svm", "--dask", "tls://127.0.0.1:9", "--dask-security", "s.json")
    refused = subprocess.run([*PROGRAM, *command], capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert refused.stderr.startswith("lmart: error: s.json: ") and said in refused.stderr


@pytest.mark.slow
def test_the_package_that_is_missing_is_named(in_folder: Path) -> None:
    Path("distributed.py").write_text("raise ImportError('no such package')\n")
    Path("d.svm").write_text(learnable())
    command = [*PROGRAM, "train", "--data", "d.svm", "--dask", "local:1"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path.cwd()), *sys.path])}
    refused = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert refused.returncode == 1
    assert "pip install distributed" in refused.stderr


def train(*options: str | Path, status: int = 0) -> str:
    """Run lmart train in this process; return what it says."""
    return run("train", *options, status=status).stderr


@pytest.fixture
def data(in_folder: Path) -> list[str]:
    """Seven parts of a training set and two of a validation set in the current folder; return the former."""
    write_parts(learnable(2), 2, Path(), "valid")
    Path("valid.svm").write_text(Path("valid-0.svm").read_text() + Path("valid-1.svm").read_text())
    return write_parts(learnable(), 7, Path())


@pytest.mark.slow
@pytest.mark.cluster
def test_workers_of_this_machine_give_the_same_bytes(data: list[str]) -> None:
    stopping = ("--early-stop", "3", "--sample", "0.7", "--linear", "0.4", "--report")
    train("--data", *data, "--valid", "valid.svm", "--out", "one.json", *stopping, "one.report", *SMALL)
    cluster = ("--dask", "local:3")
    said = train("--data", "part-?.svm", "--valid", "valid-*.svm", "-o", "m.json", *stopping, "r", *SMALL, *cluster)
    assert Path("m.json").read_bytes() == Path("one.json").read_bytes()
    assert "reading 7 files on 3 workers" in said
    one, own = Path("one.report").read_text(), Path("r").read_text()
    rounds = re.compile(r'"rounds": \[.*?\]\n? *\}', re.DOTALL)
    assert rounds.findall(own)[:1] == rounds.findall(one)[:1] != []


@pytest.mark.slow
@pytest.mark.cluster
def test_no_input_is_overwritten_that_a_pattern_names(data: list[str]) -> None:
    for k, part in enumerate(data):
        n_rows = len(Path(part).read_text().splitlines())
        Path(f"w-{k}.txt").write_text("1\n" * n_rows)
    with cluster(1) as (address, *_):
        for option, name in (("--out", "part-1.svm"), ("--report", "valid-0.svm"), ("--out", "w-3.txt")):
            before = Path(name).read_bytes()
            options = ("--valid", "valid-*.svm", "--weights", "w-?.txt", "--dask", address, *SMALL, option, name)
            said = train("--data", "part-?.svm", *options, status=1)
            assert re.search(rf"{name}: would overwrite the input \S*{name}", said)
            assert Path(name).read_bytes() == before


@pytest.mark.slow
@pytest.mark.cluster
@pytest.mark.parametrize("lost", ["worker", "scheduler"])
def test_what_is_lost_is_named_and_nothing_is_written(lost: str, data: list[str]) -> None:
    Path("m.json").write_text("old")
    with cluster(2) as (address, scheduler, workers, _):
        run_options = ("--data", *data, "--trees", "100000", "--out", "m.json", "--dask", address)
        command = start("train", *run_options)
        wait_for(command, b"( trees, )")
        (scheduler if lost == "scheduler" else workers[1].process).kill()
        _, said = command.communicate(timeout=LIMIT)
        assert command.returncode == 1
        last = said.decode().splitlines()[-1]
        assert last.startswith("lmart: error: the ") and f"{lost} tcp://" in last and " is lost" in last
        assert b"Traceback" not in said
    assert Path("m.json").read_text() == "old"


@pytest.mark.slow
@pytest.mark.cluster
def test_a_cluster_goes_on_after_a_refusal(data: list[str]) -> None:
    """A fault in a part is told as one process tells it, and the workers serve the next run."""
    with cluster(2) as (address, *_):
        Path("part-9.svm").write_text("1 qid:99 1:x\n")
        said = train("--data", "part-*.svm", "--dask", address, status=1)
        assert re.search(r"lmart: error: \S*part-9.svm:1: .*'x'", said)
        Path("part-9.svm").unlink()
        assert "nope-*.svm: no file that the workers see matches it" in train(
            "--data", "nope-*.svm", "--dask", address, status=1
        )
        train("--data", "part-*.svm", "--out", "m.json", *SMALL, "--dask", address)
        train("--data", *data, "--out", "one.json", *SMALL)
        assert Path("m.json").read_bytes() == Path("one.json").read_bytes()


def certificate(name: str, *options: str) -> None:
    """Write a key and a certificate."""
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", f"{name}.key")
    command = ["openssl", "req", "-x509", *key, "-out", f"{name}.pem", "-subj", f"/CN={name}", "-days", "2"]
    subprocess.run([*command, *options], check=True, capture_output=True)


@pytest.mark.slow
@pytest.mark.cluster
def test_a_scheduler_with_certificates(data: list[str]) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not here")
    certificate("ca")
    certificate("own", "-CA", "ca.pem", "-CAkey", "ca.key")
    files = {"tls_ca_file": "ca.pem", "tls_client_cert": "own.pem", "tls_client_key": "own.key"}
    Path("tls.json").write_text(json.dumps(files))
    options = ("--data", "part-*.svm", *SMALL)
    security = ("--tls-ca-file", "ca.pem", "--tls-cert", "own.pem", "--tls-key", "own.key")
    with cluster(1, security=security) as (address, *_):
        assert address.startswith("tls://")
        train(*options, "--out", "m.json", "--dask", address, "--dask-security", "tls.json")
        assert "cannot be reached" in train(*options, "--out", "n.json", "--dask", address, status=1)
    train("--data", *data, *SMALL, "--out", "one.json")
    assert Path("m.json").read_bytes() == Path("one.json").read_bytes()
    assert not Path("n.json").exists()


@pytest.mark.slow
@pytest.mark.cluster
def test_an_interrupt_ends_the_workers(data: list[str]) -> None:
    Path("temporary").mkdir()
    options = ("--data", *data, "--trees", "100000", "--out", "m.json", "--dask", "local:2")
    command = start("train", *options, environment={"TMPDIR": str(Path("temporary").absolute())})
    wait_for(command, b"( trees, )")
    workers = children(command.pid)
    assert len(workers) >= 2
    command.send_signal(signal.SIGINT)
    _, said = command.communicate(timeout=LIMIT)
    assert command.returncode == 130 and b"Traceback" not in said
    wait_until(lambda: not any(map(is_running, workers)))
    assert not Path("m.json").exists()
    assert list(Path("temporary").iterdir()) == []


@pytest.mark.slow
@pytest.mark.cluster
def test_nobody_else_reaches_workers_of_this_machine(data: list[str]) -> None:
    """Not even what they tell of themselves by HTTP; and a dashboard of another cluster is in nobody's way."""
    with socket.socket() as dashboard:
        with suppress(OSError):  # somebody has it
            dashboard.bind(("127.0.0.1", 8787))
            dashboard.listen()
        command = start("train", "--data", *data, "--trees", "100000", "--out", "m.json", "--dask", "local:1")
        assert command.stderr is not None
        said = iter(command.stderr.readline, b"")
        lines = [line for line, _ in zip(said, range(4), strict=False)]
        assert all(line.startswith(b"lmart: ") for line in lines)
        found = [address for pid in (command.pid, *children(command.pid)) for address in listening(pid)]
        command.terminate()
        command.communicate(timeout=LIMIT)
        assert len(found) >= 3 and set(found) == {"0100007F"}


def listening(pid: int) -> list[str]:
    """Return the addresses that a process listens at, in the digits of Linux."""
    own = set()
    for one in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):
            own.add(os.readlink(one))
    rows = [line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]]
    return [row[1].partition(":")[0] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in own]
