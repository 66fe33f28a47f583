"""Outputs that go together or not at all, whatever ends the process, and those that are refused before any work."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import select
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from lmart.descriptors import REMEMBERED, forget_what_was_written, what_was_written
from lmart.errors import OutputError
from lmart.streams import (
    AtomicOutput,
    AtomicOutputs,
    check_output,
    locks,
    read_all,
    temporaries,
)
from lmart.streams.common import name_ending

AS_ROOT = os.geteuid() == 0
TEXT = b"".join(b"%d qid:%d 1:0.5\n" % (i % 3, i // 9) for i in range(5000))


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
    kept = re.findall(r"(/\S+\.kept)", str(found.value))
    assert re.search(r"/b: cannot be replaced: .* busy; what was made is kept as /\S+ and /\S+; move", str(found.value))
    assert [Path(path).read_text() for path in kept] == ["b", "c"]
    assert [(tmp_path / name).read_text() for name in "abc"] == ["a", "old", "old"]
    assert names_in(tmp_path) == sorted(["a", "b", "c", *(Path(path).name for path in kept)])
    temporaries.remove_all()
    assert all(map(os.path.exists, kept))  # not even at the end of the process
    monkeypatch.undo()
    with AtomicOutput(str(tmp_path / "b")) as out:
        out.write("new")
    assert all(map(os.path.exists, kept))  # nor by the next run


def test_nothing_is_replaced_when_there_is_no_room_for_a_second_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a full disk; what was made is kept where that is possible."""
    if not temporaries._can_be_named_later(str(tmp_path / "out")):
        pytest.skip("this file system knows no files without a name")
    real, named = temporaries.give_name, []

    def give_name(descriptor: int, target: str, mark: str = "") -> str:
        named.append(target)
        if len(named) > 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(descriptor, target, mark)

    for name in "ab":
        (tmp_path / name).write_text("old")
    with pytest.raises(OutputError, match=r"/b: cannot be replaced: No space left .* kept as \S+\.kept; move"):  # noqa: SIM117
        with AtomicOutputs() as outputs:
            opened = [outputs.open(str(tmp_path / name)) for name in "ab"]
            for output in opened:
                output.write("new")
            monkeypatch.setattr(temporaries, "give_name", give_name)
    assert {(tmp_path / name).read_text() for name in "ab"} == {"old"}
    kept = [path for path in tmp_path.iterdir() if path.name.endswith(".kept")]
    assert [path.read_text() for path in kept] == ["new"]


def test_what_a_killed_process_left_is_removed_by_the_next_output_of_that_name(way: str, tmp_path: Path) -> None:
    others = [".out.tmp", ".out.0123456789abcdeg.tmp", ".out2.0123456789abcdef.tmp", ".out.0123456789abcdef.kept"]
    others += [".out.0123456789abcdef0123456789abcdef0123456789abcdef.tmp", ".out.0123456789abcdef.tmp.gz"]
    for name in (*others, ".out.0123456789abcdef.tmp", ".out.00000000000000ff.tmp"):
        (tmp_path / name).write_text("left")
    (tmp_path / ".out.1111111111111111.tmp").symlink_to(".out.tmp")
    (tmp_path / ".out.2222222222222222.tmp").mkdir()
    with AtomicOutput(str(tmp_path / "out")) as first:
        first.write("first")
        with AtomicOutput(str(tmp_path / "out")) as second:  # another process, at the same time
            second.write("second")
        assert (tmp_path / "out").read_text() == "second"
    assert (tmp_path / "out").read_text() == "first"
    there = [".out.1111111111111111.tmp", ".out.2222222222222222.tmp"]
    assert names_in(tmp_path) == sorted([*others, *there, "out"])


def test_a_file_that_is_just_being_made_may_be_taken_for_one_that_was_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then it is made again."""
    target = str(tmp_path / "out")
    lock, n = temporaries._lock, []

    def late(descriptor: int) -> bool:
        n.append(descriptor)
        if len(n) == 1:
            temporaries._remove_left(target)
        return lock(descriptor)

    monkeypatch.setattr(temporaries, "_lock", late)
    descriptor, name = temporaries.create_named(target)
    os.close(descriptor)
    assert len(n) == 2 and names_in(tmp_path) == [Path(name).name]
    temporaries.remove(name)


def test_outputs_of_two_runs_at_once_are_those_of_one(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second run gives its files their names before the first has given all: it waits."""
    real = os.replace
    second = threading.Thread(target=lambda: write("second"))

    def write(text: str) -> None:
        with AtomicOutputs() as outputs:
            for name in ("model", "report"):
                outputs.open(str(tmp_path / name)).write(text)

    def replace(source: str, target: str) -> None:
        real(source, target)
        if threading.current_thread() is not second and not second.ident:
            second.start()
            second.join(0.3)
            assert second.is_alive()

    monkeypatch.setattr(os, "replace", replace)
    write("first")
    second.join()
    assert {(tmp_path / name).read_text() for name in ("model", "report")} == {"second"}


def test_a_signal_between_two_names_waits_for_the_second(way: str, tmp_path: Path) -> None:
    program = f"""
import os, signal, sys
from lmart.cli import signals
from lmart.streams import AtomicOutputs, temporaries
if {way != "without a name"}:
    temporaries._can_be_named_later = lambda target: False
signals.prepare()
real = os.replace
def replace(source, target):
    real(source, target)
    os.kill(os.getpid(), signal.SIGTERM)
os.replace = replace
try:
    with AtomicOutputs() as outputs:
        for name in ("a", "b"):
            outputs.open(name).write("new")
    while True:
        signal.pause()
except signals.Stopped as stopped:
    sys.exit(stopped.signal_number)
"""
    (tmp_path / "a").write_text("old")
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (signal.SIGTERM, b"")
    assert [(tmp_path / name).read_text() for name in names_in(tmp_path)] == ["new", "new"]


def test_a_folder_that_a_stopped_process_has_locked_holds_nobody_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "LONGEST_RENAMING", 0.05)
    folder = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    with AtomicOutputs() as outputs:
        for name in "ab":
            outputs.open(str(tmp_path / name)).write(name)
    os.close(folder)
    assert names_in(tmp_path) == ["a", "b"]


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
    for user in (2, 1):  # the owner of the file, and of the folder
        monkeypatch.setattr(os, "geteuid", lambda user=user: user)
        check_output(str(out))
    monkeypatch.setattr(os, "geteuid", lambda: 3)
    with pytest.raises(OutputError, match="out: cannot be replaced: it belongs to another user"):
        check_output(str(out))
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


def test_an_output_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "out"
    with AtomicOutput(str(path)) as out:
        out.write("é")
        out.flush()
        assert not path.exists()
        out.write(b"!\n")
    assert path.read_bytes() == "é!\n".encode()
    with pytest.raises(KeyboardInterrupt), AtomicOutput(str(path)) as out:
        out.write("new" * 200_000)
        raise KeyboardInterrupt
    assert path.read_bytes() == "é!\n".encode()
    assert os.listdir(tmp_path) == ["out"]


def test_the_mode_of_a_replaced_file_and_the_umask_hold(tmp_path: Path) -> None:
    path = tmp_path / "out"
    mask = os.umask(0o027)
    try:
        with AtomicOutput(str(path)) as out:
            out.write("x")
        assert path.stat().st_mode & 0o777 == 0o640
        path.chmod(0o604)
        with AtomicOutput(str(path)) as out:
            out.write("y")
        assert path.stat().st_mode & 0o777 == 0o604
    finally:
        os.umask(mask)


def test_a_link_is_followed_to_its_target(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real/target")
    for text in ("new", "again"):
        with AtomicOutput(str(tmp_path / "link")) as out:
            out.write(text)
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "real" / "target").read_text() == text
    assert os.listdir(tmp_path / "real") == ["target"]


def test_names_of_any_kind_can_be_written(tmp_path: Path) -> None:
    for name in (b"\xff\xfe", b"a" * 255, "ü".encode() * 127, b"[x] y*"):
        path = os.fsdecode(os.path.join(os.fsencode(tmp_path), name))
        check_output(path)
        with AtomicOutput(path) as out:
            out.write("x")
        assert read_all(path) == b"x"


def test_compressed_output_is_the_same_every_time(tmp_path: Path) -> None:
    for suffix in (".gz", ".zst"):
        if suffix == ".zst":
            pytest.importorskip("zstandard")
        contents = set()
        for name in ("a", "b"):
            path = tmp_path / f"{name}{suffix}"
            with AtomicOutput(str(path)) as out:
                for start in range(0, len(TEXT), 1000):
                    out.write(TEXT[start : start + 1000])
            contents.add(path.read_bytes())
            assert read_all(str(path)) == TEXT
        assert len(contents) == 1
    assert (tmp_path / "a.gz").read_bytes()[3:8] == bytes(5)  # neither name nor time


def test_devices_and_pipes_are_written_directly(tmp_path: Path) -> None:
    with AtomicOutput("/dev/null") as out:
        out.write("x")
    assert Path("/dev/null").is_char_device()
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    got: list[bytes] = []
    thread = threading.Thread(target=lambda: got.append(fifo.read_bytes()), daemon=True)
    thread.start()
    with AtomicOutput(str(fifo)) as out:
        out.write("through")
    thread.join(10)
    assert got == [b"through"]


def test_a_full_device_is_one_error_with_path_and_reason() -> None:
    check_output("/dev/full")
    with (
        pytest.raises(OutputError, match="/dev/full: cannot be written: No space left"),
        AtomicOutput("/dev/full") as out,
    ):
        out.write("x")


def in_process(code: str, stdout: int) -> subprocess.CompletedProcess[bytes]:
    program = f"from lmart.streams import AtomicOutput\n{code}"
    return subprocess.run([sys.executable, "-c", program], stdout=stdout, stderr=subprocess.PIPE, check=False)


def test_standard_output_is_written_in_order_under_each_of_its_names(tmp_path: Path) -> None:
    for name in ("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"):
        with (tmp_path / "log").open("wb") as log:
            log.write(b"before ")
            log.flush()
            code = f"print('first', end=' ')\nwith AtomicOutput({name!r}) as out: out.write('second')"
            if name in ("/dev/fd/1", "/proc/self/fd/1"):
                code = "import sys\n" + code.replace("\n", "; sys.stdout.flush()\n", 1)
            done = in_process(code, log.fileno())
        assert (done.returncode, done.stderr) == (0, b"")
        assert (tmp_path / "log").read_bytes() == b"before first second"


def test_a_closed_pipe_stays_a_broken_pipe() -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    code = "try:\n  with AtomicOutput('-') as out: out.write('x')\nexcept BrokenPipeError: raise SystemExit(7)"
    assert in_process(code, write_end).returncode == 7
    os.close(write_end)


def test_a_file_that_grows_too_large_leaves_nothing(tmp_path: Path) -> None:
    code = (
        "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        f"with AtomicOutput({str(tmp_path / 'out')!r}) as out: out.write('x' * 10000)"
    )
    done = in_process(code, subprocess.DEVNULL)
    assert b"cannot be written: File too large" in done.stderr
    assert os.listdir(tmp_path) == []


def test_outputs_that_cannot_be_are_refused_before_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "loop").symlink_to("loop")
    for path, what in (
        ("", "is empty"),
        (str(tmp_path), "is a folder"),
        (str(tmp_path / "no" / "out"), "there is no folder"),
        (str(tmp_path / "out") + "/", "ends in '/'"),
        (str(tmp_path / "file" / "out"), "cannot be written"),
        (str(tmp_path / "loop"), "cannot be written"),
        (str(tmp_path / ("x" * 300)), "cannot be written: File name too long"),
        ("a\0b", "cannot be written"),
    ):
        with pytest.raises(OutputError, match=what):
            check_output(path)
    check_output(str(tmp_path / "new"))
    check_output("-")


@pytest.mark.skipif(AS_ROOT, reason="root may write everywhere")
def test_a_folder_without_permission_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(OutputError, match="no permission to write"):
        check_output(str(tmp_path / "out"))


def test_an_input_is_never_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tmp_path / "data"
    data.write_text("x")
    (tmp_path / "soft").symlink_to("data")
    os.link(data, tmp_path / "hard")
    for output in ("data", "soft", "hard", "./data"):
        for given in ("data", "soft", "hard"):
            with pytest.raises(OutputError, match="would overwrite the input"):
                check_output(str(tmp_path / output), ["-", str(tmp_path / "none"), str(tmp_path / given)])
    check_output(str(tmp_path / "other"), [str(data)])
    code = f"from lmart.streams import check_output; check_output({str(data)!r}, ['-'])"
    with data.open() as stdin:
        done = subprocess.run([sys.executable, "-c", code], stdin=stdin, capture_output=True, check=False)
    assert b"would overwrite the input" in done.stderr


def test_a_named_pipe_is_not_input_and_output_at_once(tmp_path: Path) -> None:
    """Reading would wait for a writer that does not come before the reading ends."""
    fifo, other = tmp_path / "fifo", tmp_path / "other"
    os.mkfifo(fifo)
    os.mkfifo(other)
    with pytest.raises(OutputError, match=f"fifo: would wait for ever, being the input {fifo}; choose another name"):
        check_output(str(fifo), [str(fifo)])
    check_output(str(fifo), [str(other), "-"])
    both = os.open(fifo, os.O_RDWR)
    try:
        for output in (f"/dev/fd/{both}", str(fifo)):
            with pytest.raises(OutputError, match="would wait for ever"):
                check_output(output, [str(other), str(fifo)])
        code = "from lmart.streams import check_output; check_output('-', ['-'])"
        done = subprocess.run([sys.executable, "-c", code], stdin=both, stdout=both, stderr=-1, check=False)
        assert b"standard output: would wait for ever, being the input -" in done.stderr
    finally:
        os.close(both)


def test_a_socket_may_be_input_and_output_at_once() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        code = "from lmart.streams import check_output; check_output('-', ['-'])"
        both = theirs.fileno()
        done = subprocess.run([sys.executable, "-c", code], stdin=both, stdout=both, stderr=-1, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_descriptor_that_is_not_open_for_writing_is_refused_before_any_work() -> None:
    with pytest.raises(OutputError, match="not open for writing"):
        check_output("/dev/fd/99")
    reading = os.open(os.devnull, os.O_RDONLY)
    try:
        with pytest.raises(OutputError, match="not open for writing"):
            check_output(f"/dev/fd/{reading}")
    finally:
        os.close(reading)


@pytest.mark.parametrize("name", ["/dev/fd/99999999999999999999", "/dev/fd/²"])
def test_odd_descriptor_names_are_refused_in_one_line(name: str) -> None:
    with pytest.raises(OutputError):
        check_output(name)


def test_a_descriptor_that_is_an_input_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_text("1 qid:1 1:1\n")
    with path.open("a") as same:
        with pytest.raises(OutputError, match="would overwrite the input"):
            check_output(f"/dev/fd/{same.fileno()}", [str(path)])
        check_output(f"/dev/fd/{same.fileno()}")


def test_a_file_system_that_is_mounted_read_only_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To root, who may write anywhere, too."""
    status = os.statvfs(tmp_path)

    class ReadOnly:
        f_flag = status.f_flag | os.ST_RDONLY

    monkeypatch.setattr(os, "statvfs", lambda folder: ReadOnly)
    with pytest.raises(OutputError, match="is on a file system that is mounted read-only; choose another place"):
        check_output(str(tmp_path / "m.json"))
