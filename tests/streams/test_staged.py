"""Outputs that wait under a temporary name until all of them are put in place."""

from __future__ import annotations

import gzip
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lmart.errors import LmartError, OutputError
from lmart.streams import outputs, temporaries
from lmart.streams.outputs import StagedFile, StagedOutput, are_seen, check_staged, put_in_place
from lmart.streams.temporaries import remove_marked

MARK = "0123456789abcdef0123456789abcdef"


def go_on() -> None:
    """Nothing ends the writing."""


def write(path: str, text: str, mark: str = MARK) -> StagedFile:
    with StagedOutput(path, mark, go_on) as out:
        out.write(text)
    assert out.staged is not None
    return out.staged


@pytest.fixture(params=["named later", "named at once"])
def any_system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Systems that know files without a name, and others."""
    if request.param == "named at once":
        monkeypatch.setattr(temporaries, "_can_be_named_later", lambda target: False)


def test_an_output_waits_beside_its_place(in_folder: Path, any_system: None) -> None:
    Path("b").write_text("old")
    Path("b").chmod(0o640)
    files = [write("a.gz", "text"), write("b", "new"), write("x" * 250, "long")]
    assert Path("b").read_text() == "old"
    names = sorted(path.name for path in in_folder.iterdir())
    assert sum(name.startswith(".") and MARK in name and name.endswith(".tmp") for name in names) == 4
    assert len(names) == 5
    put_in_place(files)
    put_in_place(files)  # as another process may do that did not hear of it
    temporaries.let_go(str(in_folder), MARK)
    assert sorted(os.listdir()) == ["a.gz", "b", "x" * 250]
    assert (gzip.decompress(Path("a.gz").read_bytes()), Path("b").read_text()) == (b"text", "new")
    assert Path("b").stat().st_mode & 0o777 == 0o640


def test_an_output_that_is_given_up_leaves_nothing(in_folder: Path, any_system: None) -> None:
    answers = iter([None, None, LmartError("given up")])

    def check() -> None:
        if (fault := next(answers)) is not None:
            raise fault

    with pytest.raises(LmartError, match="given up"), StagedOutput("a", MARK, check) as out:
        out.write("text")
    remove_marked(str(in_folder), MARK)
    assert os.listdir() == []


def test_an_output_of_work_that_is_given_up_is_not_begun(in_folder: Path, any_system: None) -> None:
    def given_up() -> None:
        raise LmartError("given up")

    with pytest.raises(LmartError, match="given up"), StagedOutput("a", MARK, given_up):
        pass
    assert os.listdir() == []


def test_what_killed_runs_left_is_deleted_before_the_next(in_folder: Path, any_system: None) -> None:
    other = "f" * 32
    goes_on = write("a", "new", other)
    code = f"""
import os, signal
from lmart.streams.outputs import StagedOutput
for name in "ab":
    with StagedOutput(name, "{MARK}", lambda: None) as out:
        out.write("old")
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -signal.SIGKILL
    assert sum(MARK in name for name in os.listdir()) == 3
    check_staged(["a"], [])
    assert sum(MARK in name for name in os.listdir()) == 0 and Path(goes_on.temporary).read_text() == "new"
    temporaries.let_go(str(in_folder), other)
    check_staged(["a"], [])
    assert os.listdir() == [os.path.basename(goes_on.temporary)]  # which users may have been told of


def test_an_output_that_gets_its_name_after_the_folder_was_swept_is_no_output(
    in_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given_up: list[str] = []
    give_name = temporaries.give_name

    def late(descriptor: int, target: str, mark: str = "") -> str:
        given_up.append(mark)
        remove_marked(".", mark)
        return give_name(descriptor, target, mark)

    def check() -> None:
        if given_up:
            raise LmartError("given up")

    with pytest.raises(LmartError, match="given up"), StagedOutput("a", MARK, check) as out:
        out.write("text")
        monkeypatch.setattr(temporaries, "give_name", late)
    assert given_up == [MARK]
    assert (out.staged, os.listdir()) == (None, [])


def test_only_files_with_the_mark_are_removed(in_folder: Path) -> None:
    other = write("a", "other", "f" * 32)
    write("a", "one")
    write("b", "two")
    Path(f"{MARK}.txt").write_text("of the user")
    remove_marked(".", MARK)
    remove_marked("no such folder", MARK)
    temporaries.let_go(".", "f" * 32)
    assert sorted(os.listdir()) == [os.path.basename(other.temporary), f"{MARK}.txt"]


def test_what_cannot_be_replaced_is_kept(in_folder: Path) -> None:
    files = [write(name, name) for name in ("a", "b", "c")]
    Path("b").mkdir()
    with pytest.raises(OutputError, match=r"^b: cannot be replaced: .*kept as .*/\.b\..*\(and 1 more file likewise\)"):
        put_in_place(files)
    assert Path("a").read_text() == "a"
    assert Path(files[1].temporary).read_text() == "b"
    assert Path(files[2].temporary).read_text() == "c"
    os.unlink(files[2].temporary)
    Path("c").write_text("old")
    with pytest.raises(OutputError, match=r"^c: cannot be written: the finished file .*/\.c\..* is gone; start this"):
        put_in_place(files[2:])
    files[2:] = [write("c", "new"), write("d", "new")]
    os.unlink(files[2].temporary)
    with pytest.raises(
        OutputError, match=r"is gone; of the outputs that follow, what was made is kept as .*/\.d\.[^(]*$"
    ):
        put_in_place(files[2:])
    assert Path("c").read_text() == "old"


def test_outputs_are_seen_under_either_name(in_folder: Path) -> None:
    files = [write(name, name) for name in ("a", "b")]
    put_in_place(files[:1])
    assert are_seen(files)
    Path("b").write_text("of somebody else")
    os.unlink(files[1].temporary)
    assert not are_seen(files)


def test_outputs_are_refused_before_any_work(in_folder: Path) -> None:
    Path("in").write_text("data")
    Path("folder").mkdir()
    os.mkfifo("pipe")
    Path("link").symlink_to("new")
    assert check_staged(["new", "other"], ["in", "no such file"]) == [str(in_folder)]
    for paths, said in [
        (["new", "in"], "^in: would overwrite the input in"),
        (["new", "folder"], "^folder: is a folder"),
        (["new", "pipe"], "^pipe: is no plain file"),
        (["new", "link"], "^link: is the same file as new, over a link"),
        (["none/new"], "^none/new: cannot be written: there is no folder '.*'; make it first"),
        (["new", "x" * 300], "^x+: cannot be written"),
    ]:
        with pytest.raises(OutputError, match=said):
            check_staged(paths, ["in"])
    assert sorted(os.listdir()) == ["folder", "in", "link", "pipe"]


def test_a_folder_is_tried_once(in_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []
    monkeypatch.setattr(outputs, "check_output", tried.append)
    Path("b").write_text("old")
    check_staged(["a", "b", "c"], ["in"])
    assert tried == ["a"]
