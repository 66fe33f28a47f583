"""lmart train --checkpoint: interrupted runs go on to the bytes of undisturbed ones, or are refused by name."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.commands import CHECKPOINT_AT_ONCE, run
from helpers.manual import keys
from helpers.paths import SAMPLE
from helpers.training_runs import SMALL, learnable, refused, settled
from helpers.waiting import LIMIT

import lmart
from lmart.cli import train_run
from lmart.streams.locks import NameLock
from lmart.training import checkpoint as checkpoints
from lmart.training.tree_log import LoggedRound, TreeLog

DATA, VALID = learnable(), learnable(2, n_queries=8).replace("qid:", "qid:v")
WITH_VALID = ("--valid", "v.svm")
KEPT = ("--checkpoint", "c")

pytestmark = pytest.mark.usefixtures("in_folder")


@pytest.fixture(autouse=True)
def data(in_folder: object) -> None:
    Path("d.svm").write_text(DATA)
    Path("v.svm").write_text(VALID)


@pytest.fixture
def interrupt(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Interrupt runs after each so many rounds that they grow."""
    add = TreeLog.add

    def after(rounds: int) -> None:
        left = [rounds]

        def counted(self: TreeLog, done: LoggedRound) -> None:
            add(self, done)
            left[0] -= 1
            if not left[0]:
                left[0] = rounds
                raise KeyboardInterrupt

        monkeypatch.setattr(TreeLog, "add", counted)

    return after


def train(*options: str | Path, status: int = 0) -> list[str]:
    """Train on d.svm; return the lines that it said."""
    given = settled(["--data", "d.svm", "--out", "m.json", *options])
    return run("train", *given, status=status).stderr.splitlines()


def bytes_of_outputs() -> dict[str, bytes]:
    found = {name: Path(name).read_bytes() for name in ("m.json", "oof") if Path(name).exists()}
    for name in found:
        Path(name).unlink()
    return found


def go_on(*options: str) -> list[str]:
    """Start a command again until it comes to its end; return what it said then."""
    for _ in range(100):
        try:
            return train(*options)
        except AssertionError as fault:
            assert "status 130" in str(fault) and Path("c").exists() and not Path("m.json").exists()
    raise AssertionError("the run makes no headway")


@pytest.mark.parametrize(
    "options",
    [
        ["--rankers", "1"],
        ["--rankers", "1", "--objective", "yetirank", "--sample", "0.5", "--features", "0.5"],
        ["--rankers", "1", "--objective", "xendcg", "--tree", "oblivious"],
        ["--trees", "12", "--rankers", "3", "--linear", "0.4"],
        [*WITH_VALID, "--trees", "30", "--early-stop", "4"],
        [*WITH_VALID, "--trees", "30", "--early-stop", "4", "--rankers", "1"],
        [*WITH_VALID, "--trees", "12", "--refit"],
        ["--positions", "p", "--objective", "lambdamart"],
        ["--init-scores", "p"],
        ["--continue-from", "first.json"],
        ["--folds", "3", "--early-stop", "3", "--oof", "oof"],
        ["--folds", "2", "--rankers", "2"],
        ["--folds", "2", "--tune-trials", "3"],
        [*WITH_VALID, "--tune-trials", "3", "--tune-file", "t"],
    ],
    ids=" ".join,
)
def test_an_interrupted_run_goes_on_to_the_same_bytes(options: list[str], interrupt: Callable[[int], None]) -> None:
    if "--tune-trials" in options:
        pytest.importorskip("optuna")
    Path("p").write_text("".join(f"{row % 5}\n" for row in range(DATA.count("\n"))))
    train(*SMALL, "--rankers", "1", "--out", "first.json")
    train(*SMALL, *options)
    undisturbed = bytes_of_outputs()
    Path("t").unlink(missing_ok=True)
    interrupt(3)
    said = go_on(*SMALL, *options, *KEPT)
    assert any("going on after" in line for line in said)
    assert bytes_of_outputs() == undisturbed
    assert not Path("c").exists() and not Path(".c.lock").exists()


def test_threads_messages_and_the_report_may_differ(interrupt: Callable[[int], None]) -> None:
    train(*SMALL, "--trees", "20", "--report", "r1")
    interrupt(7)
    train(*SMALL, "--trees", "20", *KEPT, status=130)
    train(*SMALL, "--trees", "20", *KEPT, "--report", "r2", "-q", "--threads", "1", status=130)
    interrupt(1000)
    train(*SMALL, "--trees", "20", *KEPT, "--report", "r2")
    first, second = (json.loads(Path(name).read_text()) for name in ("r1", "r2"))
    assert first["rounds"] == second["rounds"] and first["training"] == second["training"]


@pytest.mark.slow
def test_a_killed_run_goes_on_to_the_same_bytes() -> None:
    Path("d.svm").write_bytes((SAMPLE / "train.svm").read_bytes())
    options = ("train", "--data", "d.svm", "--trees", "300", "--rankers", "1", "--out", "m.json")
    run(*options)
    undisturbed = bytes_of_outputs()
    with subprocess.Popen([*CHECKPOINT_AT_ONCE, *options, *KEPT], stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        while not Path("c").exists() and process.poll() is None:
            process.stderr.read(1)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=LIMIT)
    assert process.returncode == -signal.SIGKILL and Path(".c.lock").exists()
    said = run(*options, *KEPT).stderr
    assert "going on after" in said
    assert bytes_of_outputs() == undisturbed
    assert not Path("c").exists() and not Path(".c.lock").exists()


@pytest.mark.usefixtures("a_checkpoint")
class TestRefusals:
    """What a checkpoint is not gone on from; it stays as it is."""

    @pytest.fixture
    def a_checkpoint(self, interrupt: Callable[[int], None]) -> None:
        interrupt(5)
        said = train(*SMALL, *WITH_VALID, *KEPT, status=130)[-1]
        assert said.endswith("; nothing was written; c keeps 5 trees; the same command goes on from it")
        interrupt(1000)

    def refused(self, *options: str) -> str:
        return refused(*SMALL, *KEPT, *WITH_VALID, *options)

    @pytest.mark.parametrize(
        ("options", "what"),
        [
            (["--seed", "7"], "seed is 7, there 0"),
            (["--trees", "11", "--l2", "1"], "trees is 11, there 10; l2 is 1.0, there 0.0"),
            (["--folds", "2"], "folds is 2, there not set"),
            (["--valid", "d.svm"], "--valid differs"),
            (["--weights", "w"], "--weights differs"),
        ],
        ids=str,
    )
    def test_another_run(self, options: list[str], what: str) -> None:
        queries = len({line.split()[1] for line in DATA.splitlines()})
        Path("w").write_text("1\n" * (queries - 1) + "2\n")
        said = self.refused(*options)
        assert f"c: is the checkpoint of another run: {what}; give the command that made it, delete it" in said

    def test_other_data(self) -> None:
        text = DATA.replace("\n", " \n", 3)
        Path("d.svm").write_text(text)
        train(*SMALL, *WITH_VALID, *KEPT)  # the same, written differently

    def test_data_that_changed(self) -> None:
        first, _, rest = DATA.partition(" ")
        Path("d.svm").write_text(f"{int(first) + 1} {rest}")
        assert "c: is the checkpoint of another run: --data differs; " in self.refused()

    def test_every_damage(self) -> None:
        content = Path("c").read_bytes()
        places = [0, 1, 30, 60, len(content) // 2, len(content) - 3]
        damaged = [content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :] for place in places]
        damaged += [content[:place] for place in places] + [content + b"\n", content.replace(b"\n", b"\r\n")]
        for changed in damaged:
            Path("c").write_bytes(changed)
            said = self.refused()
            assert "c: is no checkpoint; choose" in said or "c: this checkpoint is damaged: " in said, changed[:40]

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            (r'"features": \[', '"features": [3, '),
            (r'"features": \[', '"features": [-1], "x": ['),
            (r'"leaf_values": \[', '"leaf_values": [1e999, '),
            (r'"leaf_values": \[', '"leaf_values": ["1", '),
            (r'"left": \[', '"left": [0], "x": ['),
            (r'"left": \[1', '"left": [99'),
            (r'"left": \[1', '"left": [4294967297'),
            (r'"leaves": \[', '"leaves": [[], '),
            (r'"bias": \[\]', '"bias": {}'),
            (r'"tree": \{', '"tree": {"y": [], '),
            ('"part": "model"', '"part": 1'),
            (r'\{"part": "model"', '{"trial": 1, "part": "model"'),
            (r'\{"part": "model"', '[{"part": "model"'),
            ('"searched": false', '"searched": 0'),
            ('"trees": 10,', '"trees": "10",'),
            (r'"run": \{', '"run": [], "x": {'),
            (r'"bias": \[\]', '"bias": [' + "[" * 20_000),
            (r'"bias": \[\]', '"bias": [' + "1" * 5_000),
        ],
        ids=lambda text: text[:40],
    )
    def test_content_with_the_right_hash(self, old: str, new: str) -> None:
        """Whoever changes a file can also write its hash."""
        assert "c: this checkpoint is damaged: " in self.refused_if_changed(old, new)
        assert "c: this checkpoint is damaged: " in run("show", "c", status=1).stderr

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            (r'"features": \[\d+', '"features": [1000'),
            (r'"bins": \[\d+', '"bins": [255'),
            (r'"split_columns": \[\d+', '"split_columns": [1000'),
            (r'"bias": \[', '"bias": [0.5'),
        ],
        ids=str,
    )
    def test_trees_of_other_data(self, old: str, new: str) -> None:
        """They would be read where there is no memory."""
        said = self.refused_if_changed(old, new)
        assert "c: a tree of this checkpoint does not fit the data: the file was changed; delete it" in said

    def refused_if_changed(self, old: str, new: str) -> str:
        lines = re.sub(old, new, Path("c").read_text()).splitlines(keepends=True)[:-1]
        assert lines != Path("c").read_text().splitlines(keepends=True)[:-1]
        content = "".join(lines).encode()
        digest = hashlib.blake2b(content, digest_size=checkpoints.DIGEST_SIZE).hexdigest()
        Path("c").write_bytes(content + b'{"hash": "%s"}\n' % digest.encode())
        return self.refused()

    @pytest.mark.parametrize(
        "command",
        [
            "predict -m c --data d.svm",
            "eval -m c --data d.svm",
            "convert c x.json",
            "convert c x.svm",
            "train --data d.svm --continue-from c",
            "train --data c",
        ],
    )
    def test_what_is_no_model_says_what_it_is(self, command: str) -> None:
        said = run(*command.split(), status=1).stderr
        assert "c: this is a checkpoint of lmart train; give the command that made it again to go on" in said

    def test_settings_are_not_taken_from_it(self) -> None:
        said = run("train", "--data", "d.svm", "--settings", "c", status=1).stderr
        assert "c: is a checkpoint, which goes on with its own settings; give" in said

    def test_another_version(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(lmart, "__version__", "9.9")
        assert "c: is a checkpoint of lmart 0.1.0, and this is 9.9; go on with that version" in self.refused()
        monkeypatch.setattr(checkpoints, "VERSION", 2)
        assert "c: is a checkpoint of lmart 0.1.0; go on with that version" in self.refused()

    def test_show_says_how_far_it_is(self) -> None:
        lines = run("show", "c").stdout.splitlines()
        assert [line.split()[0] for line in lines] == ["checkpoint", "done", "settings"]
        assert lines[1].endswith("5 of at most 10 trees") and "min-docs 2" in lines[2]
        shown = json.loads(run("show", "c", "--json").stdout)
        assert (shown["kind"], shown["trees"], shown["settings"]["leaves"]) == ("checkpoint", 5, 8)
        assert shown.keys() - {"kind", "file"} == keys("lmart-show.1", "JSON")["Keys of a checkpoint"].keys()
        assert "c: is a checkpoint, which --tree says nothing of" in run("show", "c", "--tree", "1", status=1).stderr

    def test_two_at_once(self) -> None:
        with NameLock("c"):
            assert "c: is in use by another run; wait for its end or choose another name" in self.refused()


def test_what_is_no_checkpoint_is_left_alone() -> None:
    Path("c").write_text("1 qid:1 1:1\n")
    assert "c: is no checkpoint; choose another name" in refused(*KEPT)


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (["--data", "-"], "standard input does not go with --checkpoint"),
        (["--data", "d.svm", "--checkpoint", "-"], "--checkpoint must be a file"),
        (["--data", "d.svm", "--checkpoint", "/dev/zero"], "--checkpoint must be a file"),
        (["--data", "d.svm", "--retries", "2"], "--retries needs --dask ADDRESS"),
        (["--data", "d.svm", "--out", "c"], "--checkpoint and --out are the same file"),
    ],
    ids=str,
)
def test_usage(options: list[str], what: str) -> None:
    assert what in run("train", *KEPT[: 2 * ("--checkpoint" not in options)], *options, status=2).stderr


def test_a_checkpoint_that_cannot_be_written_does_not_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: checkpoints.Checkpoint) -> None:
        raise lmart.OutputError("cannot be written: no space left on device", "c")

    monkeypatch.setattr(checkpoints, "FIRST_SECONDS", 0.0)
    monkeypatch.setattr(checkpoints.Checkpoint, "save", full)
    said = "".join(train(*SMALL, *KEPT))
    assert said.count("warning: the checkpoint c: cannot be written: no space left on device; the run goes on") == 1


def test_a_checkpoint_that_cannot_be_replaced_leaves_no_other_files(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(old: str, new: str, replace: Callable[[str, str], None] = os.replace) -> None:
        if os.path.basename(new) == "c":
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
        replace(old, new)

    monkeypatch.setattr(checkpoints, "FIRST_SECONDS", 0.0)
    monkeypatch.setattr(checkpoints, "PAUSE", 0)
    monkeypatch.setattr(os, "replace", failing)
    said = "".join(train(*SMALL, *KEPT))
    assert said.count("warning: the checkpoint c: cannot be written: Stale file handle; ") == 1
    assert sorted(os.listdir()) == ["d.svm", "m.json", "v.svm"]


def test_a_checkpoint_too_large_to_be_read_again_is_not_written(
    monkeypatch: pytest.MonkeyPatch, interrupt: Callable[[int], None]
) -> None:
    interrupt(5)
    train(*SMALL, *KEPT, status=130)
    size = Path("c").stat().st_size
    interrupt(1000)
    monkeypatch.setattr(checkpoints, "FIRST_SECONDS", 0.0)
    monkeypatch.setattr(checkpoints, "LARGEST_WHOLE", size)
    said = "".join(train(*SMALL, *KEPT))
    assert said.count("warning: the checkpoint c: would be larger than ") == 1


@pytest.mark.parametrize("options", [[], ["--rankers", "2"], [*WITH_VALID, "--early-stop", "9"]], ids=str)
def test_an_interrupt_writes_the_model_if_asked(options: list[str], interrupt: Callable[[int], None]) -> None:
    of_seven = ["--rankers", "2", "--trees", "14"] if "--rankers" in options else [*options, "--trees", "7"]
    train(*SMALL, "--rankers", "1", *of_seven, "--out", "seven.json")
    interrupt(7)
    usual = [*SMALL, "--trees", "20", "--rankers", "1", *options, "--report", "r"]
    said = train(*usual, *KEPT, "--on-interrupt", "model", status=130)
    assert said[-1].startswith("lmart: interrupted after 7 of 20 trees; wrote r and m.json; c keeps 7 trees; ")
    trees, wanted = (json.loads(Path(name).read_text())["trees"] for name in ("m.json", "seven.json"))
    assert trees == wanted[: len(trees)] if "--rankers" not in options else len(trees) == 7
    settings = json.loads(Path("m.json").read_text())["settings"]
    assert (settings["rankers"], settings["objective"]) == (1, "yetirank" if "--rankers" in options else "lambdamart")
    report = json.loads(Path("r").read_text())
    assert report["stopped"] == "interrupted" and len(report["rounds"]) == 7
    interrupt(1000)
    train(*usual, *KEPT)
    resumed = bytes_of_outputs()
    train(*usual)
    assert bytes_of_outputs() == resumed


def test_an_interrupt_writes_the_model_where_rounds_are_not_measured(interrupt: Callable[[int], None]) -> None:
    interrupt(7)
    said = train(*SMALL, "--rankers", "1", "--on-interrupt", "model", status=130)
    assert said[-1].endswith("; wrote m.json") and len(set(said)) == len(said)
    assert len(json.loads(Path("m.json").read_text())["trees"]) == 7


def test_an_interrupted_run_tells_why_it_writes_no_model(
    interrupt: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: object) -> None:
        raise lmart.OutputError("cannot be written: no space left on device", "m.json")

    monkeypatch.setattr(train_run, "write_outputs", full)
    interrupt(7)
    *_, why, end = train(*SMALL, "--on-interrupt", "model", status=130)
    assert why == "lmart: warning: m.json: cannot be written: no space left on device"
    assert end == "lmart: interrupted after 7 of 10 trees; nothing was written"


def test_an_interrupt_writes_nothing_by_default(interrupt: Callable[[int], None]) -> None:
    interrupt(7)
    assert train(*SMALL, status=130)[-1] == "lmart: interrupted after 6 of 10 trees; nothing was written"
    assert not Path("m.json").exists()
