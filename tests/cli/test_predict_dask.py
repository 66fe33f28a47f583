"""lmart predict --dask: one file for each part, with the bytes of one process for each."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from helpers import planted
from helpers.cluster_here import ClusterHere, connected_here
from helpers.clusters import children, cluster, is_running, wait_until_idle
from helpers.commands import PROGRAM, run, start
from helpers.planted import HOLD, Moment
from helpers.shards import write_parts
from helpers.training_runs import SMALL, fit, learnable
from helpers.waiting import LIMIT, wait_until

from lmart.cli import predict_cluster
from lmart.cli.predict_cluster import stem
from lmart.distributed import cluster as engine
from lmart.distributed import query_places
from lmart.errors import LmartError

CHECK = "lmart.distributed.scoring:ScoringJob.check"


@pytest.mark.parametrize(
    "options, said",
    [
        (("--dask", "nowhere"), "--dask 'nowhere' is no address"),
        (("--dask-security", "s.json"), "--dask-security needs --dask"),
        (("--dask", "local:2"), "standard output does not go with --dask"),
        (("--dask", "local:2", "-o", "a*b*.txt"), "--out 'a*b*.txt' has more than one *"),
        (("--dask", "local:2", "-o", "a*/b*.txt"), "--out 'a*/b*.txt' has more than one *, or one in the name of a"),
        (("--dask", "local:2", "-o", "folder/"), "--out 'folder/' names a folder"),
        (("--dask", "local:2", "--why", "1", "2", "3"), "--why does not go with --dask"),
        (("--dask", "local:2", "-o", "*.txt", "--query-sizes", "s"), "--query-sizes does not go with --dask"),
        (("--dask", "local:2", "-o", "*.txt", "--data", "-"), "standard input does not go with --dask"),
        (("--dask", "local:2", "-o", "*.txt", "-m", "-"), "standard input does not go with --dask"),
    ],
)
def test_wrong_usage_is_refused_before_anything_is_started(options: tuple[str, ...], said: str) -> None:
    given = {"-m": "m.json", "--data": "d*.svm"}
    usual = [word for option, value in given.items() if option not in options for word in (option, value)]
    assert said in run("predict", *usual, *options, status=2).stderr


@pytest.mark.parametrize(
    "path, name",
    [
        ("parts/part-03.svm.gz", "part-03"),
        ("part-03.csv.zst", "part-03"),
        ("a.b/x.y.PARQUET", "x.y"),
        ("train.txt", "train"),
        ("part-00000", "part-00000"),
        ("part.7.log", "part.7.log"),
        ("old.svm.csv", "old.svm"),
        (".svm", ".svm"),
    ],
)
def test_a_part_is_called_without_its_format_and_compression(path: str, name: str) -> None:
    assert stem(path) == name


@pytest.fixture
def parts(in_folder: Path) -> list[str]:
    """A model m.json and eight parts in the current folder, and an older output of two of them in out/."""
    fit(learnable(), *SMALL)
    Path("out").mkdir()
    for number in (1, 6):
        Path(f"out/part-{number}.txt").write_text("old\n")
    return write_parts(learnable(3, n_queries=40), 8, Path())


@pytest.fixture
def here(parts: list[str], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The parts, with a cluster that is this process."""
    monkeypatch.setattr(engine, "connected", connected_here)
    return parts


BARE = ("predict", "-m", "m.json", "--data", "part-*.svm", "-o", "out/*.txt")
USUAL = (*BARE, "--dask", "local:2")


def bytes_in_out() -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(Path("out").iterdir())}


def written_alone(parts: list[str], *options: str) -> dict[str, bytes]:
    """Return what one process writes for each part."""
    found = {}
    for part in parts:
        run("predict", "-m", "m.json", "--data", part, "-o", "alone", *options, "-qq")
        found[f"{stem(part)}.txt"] = Path("alone").read_bytes()
    return found


OLD = {"part-1.txt": b"old\n", "part-6.txt": b"old\n"}


@pytest.mark.parametrize("options", [(), ("--format", "tsv", "--top", "2"), ("--format", "jsonl", "--explain")])
def test_each_part_gets_the_bytes_of_one_process(options: tuple[str, ...], here: list[str]) -> None:
    assert run(*USUAL, *options).stderr == ""
    assert bytes_in_out() == written_alone(here, *options)


def test_one_part_needs_no_pattern(here: list[str]) -> None:
    run("predict", "-m", "m.json", "--data", here[2], "--dask", "local:1", "-o", "one.txt")
    run("predict", "-m", "m.json", "--data", "part-[2].svm", "--dask", "local:1", "-o", "same.txt")
    run("predict", "-m", "m.json", "--data", here[2], "--dask", "local:1", "-o", "its-*.txt")
    alone = written_alone(here[2:3])["part-2.txt"]
    assert [Path(name).read_bytes() for name in ("one.txt", "same.txt", "its-part-2.txt")] == [alone] * 3


@pytest.mark.parametrize(
    "prepare, options, status, said",
    [
        (
            lambda: None,
            ("-o", "one.txt"),
            1,
            "one.txt: is 1 file, but --data 'part-*.svm' is 8 files; give one file a part",
        ),
        (
            lambda: Path("part-3.csv").write_text("qid,1\n1,1\n"),
            ("--data", "part-*.*"),
            1,
            "out/part-3.txt: would be the output of part-3.csv and of part-3.svm; rename one of them",
        ),
        (lambda: None, ("-o", "./*.svm"), 1, "./part-0.svm: would overwrite the input part-0.svm"),
        (lambda: os.link("m.json", "out/part-5.txt"), (), 1, "out/part-5.txt: would overwrite the input m.json"),
        (lambda: None, ("-o", "none/*.txt"), 1, "none/part-0.txt: cannot be written: there is no folder "),
        (lambda: None, ("--data", "nope*"), 1, "nope*: no file that the workers see matches it"),
        (
            lambda: shutil.copy("part-2.svm", "part-9.svm"),
            (),
            1,
            "part-9.svm:1: rows of query '5' are not adjacent (first seen at part-2.svm:1); put "
            "them together, or use --group-by-qid",
        ),
        (lambda: None, ("--strict", "--data", "wide*"), 1, "wide.svm: 1 of 2 features is not in the model: '99'"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    prepare: Callable[[], object],
    options: tuple[str, ...],
    status: int,
    said: str,
    here: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Path("wide.svm").write_text("1 qid:1 1:1 99:1\n")
    prepare()
    before = bytes_in_out()
    given = {"--data": "part-*.svm", "-o": "out/*.txt"}
    usual = [word for option, value in given.items() if option not in options for word in (option, value)]
    refused = run("predict", "-m", "m.json", "--dask", "local:2", *usual, *options, status=status)
    assert said in refused.stderr and refused.stderr.count("\n") == 1
    assert bytes_in_out() == before


def test_a_damaged_part_leaves_all_as_it_was(here: list[str]) -> None:
    with open("part-7.svm", "a") as file:
        file.write("1 qid:999 1:x\n")
    assert re.search(r"^lmart: error: part-7\.svm:\d+: .*'x'", run(*USUAL, status=1).stderr)
    assert bytes_in_out() == OLD
    assert ClusterHere.newest.told == ["end_run"]


def test_what_was_made_is_kept_when_it_cannot_be_put_in_place(here: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    replace = os.replace

    def refusing(source: str, target: str) -> None:
        if "part-6" in target:
            raise OSError(1, "Operation not permitted")
        replace(source, target)

    monkeypatch.setattr(os, "replace", refusing)
    said = run(*USUAL, status=1).stderr
    assert "out/part-6.txt: cannot be replaced: Operation not permitted; what was made is kept as " in said
    waiting = [path for path in Path("out").iterdir() if path.name.endswith(".tmp")]
    assert len(waiting) == 2  # part 6 and part 7
    alone = written_alone(here)
    assert {path.read_bytes() for path in waiting} == {alone["part-6.txt"], alone["part-7.txt"]}


def test_outputs_get_their_names_though_a_worker_is_lost_meanwhile(
    here: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run_tasks, lost = ClusterHere.run_tasks, iter([True])

    def losing(self: ClusterHere, function: Callable[..., Any], calls: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
        if function.__name__ == "put_in_place" and next(lost, False):
            next(run_tasks(self, function, [(calls[0][0][:3],)]))
            raise LmartError("the worker is lost")
        return run_tasks(self, function, calls)

    monkeypatch.setattr(ClusterHere, "run_tasks", losing)
    assert run(*USUAL).stderr == ""
    assert bytes_in_out() == written_alone(here)


def test_an_interrupt_waits_until_all_outputs_have_their_names(
    here: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    replace, when = os.replace, list[str]()

    def interrupting(source: str, target: str) -> None:
        if not when:
            when.extend(ClusterHere.newest.told)
            signal.raise_signal(signal.SIGINT)
        replace(source, target)

    monkeypatch.setattr(os, "replace", interrupting)
    said = run(*USUAL, status=130).stderr
    assert said == "lmart: interrupted after 8 of 8 parts; wrote out/*.txt\n"
    assert when == ["forget_outputs"]  # else a worker that ends now deletes what it has finished
    monkeypatch.setattr(os, "replace", replace)
    assert bytes_in_out() == written_alone(here)


def test_an_interrupt_deletes_nothing_that_cannot_be_put_in_place(
    here: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusing(source: str, target: str) -> None:
        signal.raise_signal(signal.SIGINT)
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(os, "replace", refusing)
    warned, interrupted = run(*USUAL, status=130).stderr.splitlines()
    assert warned.startswith(
        "lmart: warning: out/part-0.txt: cannot be replaced: Operation not permitted; what was made"
    )
    assert interrupted.endswith("; what was written to out/*.txt is not complete")
    kept = {path.read_bytes() for path in Path("out").iterdir() if path.name.endswith(".tmp")}
    assert len(kept) == 8


def test_nothing_is_deleted_once_outputs_get_their_names(here: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    run_tasks = ClusterHere.run_tasks

    def losing(self: ClusterHere, function: Callable[..., Any], calls: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
        if function.__name__ != "put_in_place":
            return run_tasks(self, function, calls)
        run_tasks(self, function, [(calls[0][0][:3],)]).__next__()
        raise LmartError("the worker is lost; start it")

    monkeypatch.setattr(ClusterHere, "run_tasks", losing)
    monkeypatch.setattr(predict_cluster, "are_seen", lambda staged: False)
    said = run(*USUAL, status=1).stderr
    assert said.startswith(
        "lmart: error: out/part-0.txt: cannot be replaced: the worker is lost; what was made is kept"
    )
    assert said.count("\n") == 1
    alone = written_alone(here)
    found = bytes_in_out()
    assert [found.pop(f"part-{number}.txt") for number in range(3)] == [alone[f"part-{n}.txt"] for n in range(3)]
    assert found.pop("part-6.txt") == b"old\n"
    assert sorted(found.values()) == sorted(alone[f"part-{number}.txt"] for number in range(3, 8))


def watch_scoring(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that gets what workers are asked to do, and when the driver has left the scoring."""
    run_tasks, asked = ClusterHere.run_tasks, list[str]()

    def watched(self: ClusterHere, function: Callable[..., Any], calls: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
        try:
            for call in calls:
                asked.append(function.__name__)
                yield from run_tasks(self, function, [call])
        finally:
            asked.extend([*self.told, "left"] * (function.__name__ == "score_part"))

    monkeypatch.setattr(ClusterHere, "run_tasks", watched)
    return asked


def test_workers_no_longer_score_when_they_are_asked_where_a_query_stands(
    here: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = watch_scoring(monkeypatch)
    shutil.copy("part-0.svm", "part-1.svm")
    assert (
        "part-1.svm:1: rows of query '0' are not adjacent (first seen at part-0.svm:1)" in run(*USUAL, status=1).stderr
    )
    scored = asked.index("left") - 2
    assert scored < 4  # as it is looked for when there are twice as many queries
    assert asked == ["find_files", "check_staged", *["score_part"] * scored, "left", *["find_places"] * 2]
    assert ClusterHere.newest.told == ["give_up_scoring", "end_run"]
    assert bytes_in_out() == OLD


def test_parts_are_scored_again_after_a_doubt_that_was_none(here: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_places, "code_of", lambda query_id: int(query_id) % 5)  # so 0 and 5 have the same
    for number, part in enumerate(here):
        Path(part).write_text(f"1 qid:{number} 1:1\n")
    asked = watch_scoring(monkeypatch)
    assert run(*USUAL).stderr == ""
    assert asked.count("left") > 1
    assert bytes_in_out() == written_alone(here)


def test_messages_are_those_of_one_input(here: list[str]) -> None:
    for part in here[2:4]:
        text = Path(part).read_text()
        Path(part).write_text(text.replace(" 7:1", " 7:1 8:1"))
    said = run(*USUAL, "--ignore-columns", "9").stderr.splitlines()
    assert said == [
        "lmart: warning: part-0.svm and 7 more: no row has the feature to ignore '9'; check --ignore-columns",
        "lmart: warning: part-0.svm and 7 more: 1 of 5 features is not in the model: '8'; scored without",
    ]
    assert run(*USUAL, "--ignore-columns", "9", "-qq").stderr == ""


def test_parts_without_rows_have_empty_outputs(here: list[str]) -> None:
    Path("part-2.svm").write_text("# nothing\n")
    Path("part-5.svm").write_text("")
    assert run(*USUAL).stderr.splitlines()[0] == "lmart: part-2.svm and 1 more: there are no rows in them"
    written = bytes_in_out()
    assert written["part-2.txt"] == written["part-5.txt"] == b"" != written["part-1.txt"]
    for part in here:
        Path(part).write_text("")
    said = run(*USUAL, status=1).stderr
    assert said == "lmart: error: part-0.svm and 7 more: there are no rows in it; check the step that made it\n"
    assert bytes_in_out() == written


def test_parts_without_query_ids_are_told_of_once(here: list[str]) -> None:
    for part in here:
        Path(part).write_text(re.sub(" qid:[^ ]+", "", Path(part).read_text()))
    (said,) = run(*USUAL, "--format", "tsv").stderr.splitlines()
    assert said.startswith(
        "lmart: warning: part-0.svm and 7 more parts: no row has a query id, so all rows of the file"
    )
    assert "a TREC run needs query ids" in run(*USUAL, "--format", "trec", status=1).stderr


# ---- processes ------------------------------------------------------------------------------------------------------


def held_in_a_part(command: Sequence[str | Path], running: Path) -> subprocess.Popen[bytes]:
    """Start a command; return it when a worker waits in its first part and another has written one."""
    Moment(CHECK, 1, "", target=HOLD).write(running)
    preload = {"DASK_DISTRIBUTED__WORKER__PRELOAD": json.dumps([planted.__file__]), **planted.variables(running)}
    process = start(*command, environment=preload)
    wait_until(lambda: (running / "reached").exists() and any(Path("out").glob("*.tmp")))
    return process


@pytest.mark.slow
@pytest.mark.cluster
@pytest.mark.parametrize("n_workers", [1, 2])
def test_workers_of_this_machine_give_the_same_bytes(n_workers: int, parts: list[str]) -> None:
    """One worker has as many threads as there are processors, which work side by side."""
    command = [*PROGRAM, *BARE, "--dask", f"local:{n_workers}", "--format", "trec"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert bytes_in_out() == written_alone(parts, "--format", "trec")


@pytest.mark.slow
@pytest.mark.cluster
@pytest.mark.parametrize("lost", ["worker", "scheduler"])
def test_what_is_lost_is_named_and_nothing_is_written(lost: str, parts: list[str]) -> None:
    with cluster(2, moments=True) as running:
        target = 0 if lost == "worker" else running.scheduler.pid
        # The first part of whoever gets one: a quick worker may leave none to the other.
        Moment(CHECK, 1, "", target=target).write(running.folder)
        command = [*PROGRAM, *BARE, "--dask", running.address]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT)
        assert (running.folder / "reached").exists()
        assert done.returncode == 1
        last = done.stderr.splitlines()[-1]
        assert last.startswith("lmart: error: the ") and f"{lost} tcp://" in last and " is lost" in last
        assert done.stderr.count("\n") == 1
        assert bytes_in_out() == OLD
        if lost == "worker":  # and the others serve the next run
            subprocess.run(command, check=True, timeout=LIMIT)
            assert bytes_in_out() == written_alone(parts)


@pytest.mark.slow
@pytest.mark.cluster
def test_a_worker_that_is_lost_while_outputs_get_their_names_is_no_loss(parts: list[str]) -> None:
    with cluster(3, moments=True) as running:
        command = [*PROGRAM, *BARE, "--dask", running.address]
        Moment("lmart.streams.outputs:put_in_place", 1, "", after=True).write(running.folder)
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT)
        assert (done.returncode, done.stderr) == (0, "")
        assert (running.folder / "reached").exists()
        assert bytes_in_out() == written_alone(parts)


@pytest.mark.slow
@pytest.mark.cluster
def test_after_a_query_that_spans_parts_nothing_is_left(in_folder: Path) -> None:
    fit(learnable(), *SMALL)
    Path("out").mkdir()
    for number in range(9):
        Path(f"part-{number}.svm").write_text(f"1 qid:{max(number, 1)} 1:1\n")
    with cluster(1) as running:
        command = [*PROGRAM, *BARE, "--dask", running.address]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT)
        assert done.returncode == 1
        assert re.search(
            r"part-1\.svm:1: rows of query '1' are not adjacent \(first seen at .*part-0\.svm", done.stderr
        )
    assert os.listdir("out") == []


@pytest.mark.slow
@pytest.mark.cluster
def test_an_interrupt_ends_all_work_and_leaves_nothing(parts: list[str], tmp_path: Path) -> None:
    command = held_in_a_part(USUAL, tmp_path)
    workers = children(command.pid)
    assert len(workers) >= 2
    command.send_signal(signal.SIGINT)
    _, said = command.communicate(timeout=LIMIT)
    assert command.returncode == 130
    assert re.fullmatch(rb"lmart: interrupted (after \d of 8 parts|during predict); nothing was written\n", said)
    assert bytes_in_out() == OLD
    wait_until(lambda: not any(map(is_running, workers)))
    assert bytes_in_out() == OLD


@pytest.mark.slow
@pytest.mark.cluster
def test_an_interrupt_ends_the_work_of_a_cluster_that_stays(parts: list[str]) -> None:
    with cluster(2, moments=True) as running:
        command = held_in_a_part([*BARE, "--dask", running.address], running.folder)
        command.send_signal(signal.SIGINT)
        command.communicate(timeout=LIMIT)
        assert command.returncode == 130
        assert bytes_in_out() == OLD
        (running.folder / "go").touch()
        wait_until_idle(running.workers)
        assert bytes_in_out() == OLD


@pytest.mark.slow
@pytest.mark.cluster
def test_a_full_disk_is_told_of_the_part_that_met_it(parts: list[str]) -> None:
    command = [*PROGRAM, *USUAL]
    written_alone(parts)  # compiles
    Path("out/part-1.txt").write_text("old\n")
    before = bytes_in_out()
    limit = 600  # bytes of a file, which the larger parts need more than

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    done = subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=limited, timeout=LIMIT)
    assert done.returncode == 1
    line = r"lmart: error: out/part-\d\.txt: cannot be written: File too large; free space or choose another place\n"
    assert re.fullmatch(line, done.stderr)
    assert bytes_in_out() == before
