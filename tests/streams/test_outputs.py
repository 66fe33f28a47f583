"""Outputs that go together or not at all, whatever ends the process, and those that are refused before any work."""

from __future__ import annotations

import errno
import os
import re
import select
import shlex
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from lmart.descriptors import REMEMBERED, forget_what_was_written, what_was_written
from lmart.errors import OutputError
from lmart.streams import AtomicOutput, AtomicOutputs, check_output, read_all, targets, temporaries
from lmart.streams.common import name_ending

AS_ROOT = os.geteuid() == 0


def names_in(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


@pytest.fixture(params=["without a name", "with a temporary name"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How a file is written: both ways must do the same."""
    if request.param == "with a temporary name":
        monkeypatch.setattr(temporaries, "_can_be_named_later", lambda target: False)
    return str(request.param)


def test_outputs_appear_together(way: str, tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a", "b.gz", "c")]
    with AtomicOutputs() as outputs:
        for path in paths:
            outputs.open(str(path)).write(path.name)
        assert not any(path.exists() for path in paths)
    assert [read_all(str(path)).decode() for path in paths] == ["a", "b.gz", "c"]
    assert names_in(tmp_path) == ["a", "b.gz", "c"]


@pytest.mark.parametrize("failing", [1, 2, 3])
def test_none_of_several_outputs_is_replaced_when_one_cannot_be_written(
    way: str, failing: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def fsync(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) == failing:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    for name in "abc":
        (tmp_path / name).write_text("old")
    monkeypatch.setattr(os, "fsync", fsync)
    name = "abc"[failing - 1]
    with (
        pytest.raises(OutputError, match=f"{name}: cannot be written: No space left on device"),
        AtomicOutputs() as outputs,
    ):
        for one in "abc":
            outputs.open(str(tmp_path / one)).write("new")
    assert names_in(tmp_path) == ["a", "b", "c"]
    assert {(tmp_path / one).read_text() for one in "abc"} == {"old"}


def test_standard_output_gets_nothing_when_a_file_beside_it_cannot_be_written(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fsync(descriptor: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(OutputError), AtomicOutputs() as outputs:
        outputs.open("-").write("report")
        outputs.open(str(tmp_path / "model")).write("model")
    assert capfdbinary.readouterr().out == b""
    assert names_in(tmp_path) == []


def test_what_was_made_is_kept_when_only_the_last_step_fails(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.replace

    def replace(source: str, target: str) -> None:
        if target.endswith("b"):
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
        real(source, target)

    monkeypatch.setattr(os, "replace", replace)
    for name in "abc":
        (tmp_path / name).write_text("old")
    with pytest.raises(OutputError) as found, AtomicOutputs() as outputs:
        for name in "abc":
            outputs.open(str(tmp_path / name)).write(name)
    kept = re.findall(r"(/\S+\.tmp)", str(found.value))
    assert re.search(r"/b: cannot be replaced: .* busy; what was made is kept as /\S+ and /\S+; move", str(found.value))
    assert [Path(path).read_text() for path in kept] == ["b", "c"]
    assert [(tmp_path / name).read_text() for name in "abc"] == ["a", "old", "old"]
    assert names_in(tmp_path) == sorted(["a", "b", "c", *(Path(path).name for path in kept)])
    temporaries.remove_all()
    assert all(map(os.path.exists, kept))  # not even at the end of the process


def test_a_killed_process_leaves_nothing(tmp_path: Path) -> None:
    if not temporaries._can_be_named_later(str(tmp_path / "out")):
        pytest.skip("this file system knows no files without a name")
    code = (
        "import os, signal\n"
        "from lmart.streams import AtomicOutput\n"
        f"with AtomicOutput({str(tmp_path / 'out')!r}) as out:\n"
        "    out.write('x' * 1000000); out.flush(); os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -signal.SIGKILL
    assert names_in(tmp_path) == []


def test_a_signal_while_a_temporary_file_is_opened_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.open

    def opened(*arguments: Any, **named: Any) -> int:
        real(*arguments, **named)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "open", opened)
    with pytest.raises(KeyboardInterrupt):
        temporaries.create_named(str(tmp_path / "out"))
    assert names_in(tmp_path) == []


def test_the_end_of_the_process_removes_what_is_left(tmp_path: Path) -> None:
    descriptor, name = temporaries.create_named(str(tmp_path / "out"))
    os.close(descriptor)
    assert names_in(tmp_path) == [Path(name).name]
    temporaries.remove_all()
    assert names_in(tmp_path) == []


@pytest.mark.parametrize("target", ["/proc/m.json", "/sys/x"])
def test_a_folder_in_which_no_file_can_be_made_is_found_before_work(target: str) -> None:
    with pytest.raises(OutputError, match="cannot be written: "):
        check_output(target)


def test_a_check_leaves_nothing_and_changes_nothing(tmp_path: Path) -> None:
    old = tmp_path / "old"
    old.write_text("old")
    before = old.stat()
    for path in (old, tmp_path / "new", tmp_path / "new.gz"):
        check_output(str(path))
    check_output(str(old), appended=True)
    assert names_in(tmp_path) == ["old"] and old.read_text() == "old"
    assert (old.stat().st_ino, old.stat().st_ctime_ns) == (before.st_ino, before.st_ctime_ns)


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A folder like /tmp, that belongs to another user than we are."""
    if not AS_ROOT:
        pytest.skip("only root can give files away")
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o1777)
    os.chown(folder, 1, 1)
    return folder


def test_a_file_of_another_user_that_only_he_may_replace_is_refused(
    shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = shared / "out"
    out.write_text("old")
    os.chown(out, 2, 2)
    check_output(str(out))  # root may
    monkeypatch.setattr(targets, "_may_act_for_owners", lambda: False)
    with pytest.raises(OutputError, match="out: cannot be replaced: it belongs to another user"):
        check_output(str(out))
    for user in (2, 1):  # the owner of the file, and of the folder
        monkeypatch.setattr(os, "geteuid", lambda user=user: user)
        check_output(str(out))
    monkeypatch.setattr(os, "geteuid", lambda: 3)
    check_output(str(out), appended=True)  # stays where it is
    shared.chmod(0o777)
    check_output(str(out))


def test_a_link_of_another_user_in_a_shared_folder_is_not_followed(shared: Path, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("old")
    for name, to in (("link", "precious"), ("first", "link"), ("dangling", "none")):
        (shared / name).symlink_to(Path("..") / to if to != "link" else "link")
        os.chown(shared / name, 2, 2, follow_symlinks=False)
        for write in (check_output, lambda path: AtomicOutput(path).__enter__()):
            with pytest.raises(OutputError, match=f"{name}: is a link that another user made"):
                write(str(shared / name))
    assert precious.read_text() == "old" and names_in(tmp_path) == ["precious", "shared"]
    for owner in (0, 1):  # ours, and of the folder's owner
        os.chown(shared / "link", owner, 1, follow_symlinks=False)
        with AtomicOutput(str(shared / "link")) as out:
            out.write(str(owner))
        assert precious.read_text() == str(owner)


def test_a_file_in_a_shared_folder_is_ours_afterwards(shared: Path, tmp_path: Path) -> None:
    for folder, owner, mode in ((shared, 0, 0o640), (tmp_path, 2, 0o666)):
        path = folder / "out"
        path.write_text("old")
        path.chmod(0o666)
        os.chown(path, 2, 2)
        mask = os.umask(0o027)
        try:
            with AtomicOutput(str(path)) as out:
                out.write("new")
        finally:
            os.umask(mask)
        assert (path.stat().st_uid, path.stat().st_mode & 0o777) == (owner, mode)


def test_a_file_that_is_mounted_by_itself_is_refused(tmp_path: Path) -> None:
    code = (
        "from lmart.streams import check_output\n"
        "check_output('a b', appended=True)\n"
        "with open('found', 'w') as found:\n"
        "    try: check_output('a b')\n"
        "    except Exception as fault: found.write(str(fault))"
    )
    line = (
        f"touch 'a b' other; mount --bind other 'a b' || exit 9; {shlex.quote(sys.executable)} -c {shlex.quote(code)}"
    )
    done = subprocess.run(["unshare", "-m", "bash", "-c", line], cwd=tmp_path, capture_output=True, check=False)
    if done.returncode == 9 or b"unshare" in done.stderr:
        pytest.skip("nothing can be mounted here")
    assert (tmp_path / "found").read_text().startswith("a b: cannot be replaced: it is mounted there by itself"), done


def test_a_protected_file_or_folder_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"
    out.touch()
    real = targets._attributes
    assert real(str(out)) & (targets.IMMUTABLE | targets.APPEND_ONLY) == 0
    monkeypatch.setattr(targets, "_attributes", lambda path: targets.IMMUTABLE if path == str(out) else real(path))
    with pytest.raises(OutputError, match="out: cannot be replaced: it has the attribute"):
        check_output(str(out))
    monkeypatch.setattr(targets, "_attributes", lambda path: targets.APPEND_ONLY if path == str(tmp_path) else 0)
    with pytest.raises(OutputError, match=r"out: cannot be written: .* has the attribute"):
        check_output(str(out))


def test_a_pipe_that_does_not_block_is_waited_for(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    writer = os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
    got = bytearray()

    def read() -> None:
        time.sleep(0.3)  # until the pipe is full
        while select.select([reader], [], [], 30)[0] and (piece := os.read(reader, 1 << 16)):
            got.extend(piece)

    thread = threading.Thread(target=read, daemon=True)
    with AtomicOutput(f"/dev/fd/{writer}") as out:
        os.write(writer, bytes(1000))
        out.write("x" * 100)
        thread.start()
        out.write("y" * 500_000)
    os.close(writer)
    thread.join(30)
    os.close(reader)
    assert bytes(got) == bytes(1000) + b"x" * 100 + b"y" * 500_000


def test_what_was_written_is_known(tmp_path: Path) -> None:
    forget_what_was_written()
    with AtomicOutput(str(tmp_path / "file")) as out:
        out.write("x")
        out.flush()
        assert what_was_written() == {}
    with AtomicOutput("/dev/null") as out:
        out.write("x")
        out.flush()
        assert what_was_written() == {str(tmp_path / "file"): True, "/dev/null": False}
    assert what_was_written() == {str(tmp_path / "file"): True, "/dev/null": True}
    for number in range(100):
        with AtomicOutput(str(tmp_path / str(number))) as out:
            out.write("x")
    assert len(what_was_written()) == REMEMBERED
    forget_what_was_written()
    assert what_was_written() == {}


@pytest.mark.parametrize("name", ["a.gz", "A.CSV.GZ", "a.Gz"])
def test_the_suffix_of_a_compression_counts_in_any_case(name: str, tmp_path: Path) -> None:
    with AtomicOutput(str(tmp_path / name)) as output:
        output.write("text")
    assert (tmp_path / name).read_bytes().startswith(b"\x1f\x8b")
    assert read_all(str(tmp_path / name)) == b"text"


def test_a_zstd_suffix_counts_in_any_case(tmp_path: Path) -> None:
    pytest.importorskip("zstandard")
    with AtomicOutput(str(tmp_path / "a.Zst")) as output:
        output.write("text")
    assert (tmp_path / "a.Zst").read_bytes().startswith(b"\x28\xb5\x2f\xfd")


def test_the_ending_of_a_name_is_before_its_compression() -> None:
    endings = {"A.JSON.GZ": ".json", "b.ubj": ".ubj", "c.gz": "", "x.y/c": "", "-": "", "d.csv.Zst": ".csv"}
    assert {name: name_ending(name) for name in endings} == endings
