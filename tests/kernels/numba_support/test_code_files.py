"""Folders and files of machine code: whose they may be, and who compiles into them when."""

from __future__ import annotations

import fcntl
import os
import pickle
import signal
import stat
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from io import FileIO
from pathlib import Path

import pytest
from helpers.toy_kernels import TOY, forget, hits, kept, load, needs_compiler
from helpers.waiting import LIMIT

from lmart.kernels.numba_support import code_cache as compiler
from lmart.kernels.numba_support import code_files, compile_ahead
from lmart.kernels.numba_support.compile_ahead import Signature

NOBODY = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to others")


def test_what_a_killed_process_left_is_written_over_and_what_is_being_written_is_not(tmp_path: Path) -> None:
    path = tmp_path / "a.kernel"
    left = tmp_path / "a.kernel.new"
    left.write_bytes(bytes(1000))
    code_files.write_code(path, b"code")
    assert (os.listdir(tmp_path), code_files.read_code(path)) == (["a.kernel"], b"code")
    with left.open("wb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        code_files.write_code(path, b"more")
    assert (left.read_bytes(), code_files.read_code(path)) == (b"", b"code")


@needs_compiler
class TestFilesOfOthers:
    """What is loaded is run, so nobody else may have written it."""

    @pytest.fixture
    def poisoned(self, toy_file: Path) -> Path:
        """Give all kept files a content that makes a file when it is loaded; return the path of that file."""
        load(toy_file).toy(3)
        mark = toy_file.parent / "loaded"
        for path in kept(toy_file):
            code_files.write_code(path, pickle.dumps(Poison(mark)))
        return mark

    def test_what_is_loaded_is_run(self, toy_file: Path, poisoned: Path, said: list[str]) -> None:
        """As long as this holds, the tests below prove something."""
        assert load(toy_file).toy(3) == 7
        assert poisoned.exists()

    @needs_root
    @pytest.mark.parametrize("whose", ["file", "folder", "folder above"])
    def test_owned_by_another_user(self, toy_file: Path, poisoned: Path, said: list[str], whose: str) -> None:
        folder = toy_file.parent / "__pycache__"
        for path in kept(toy_file) if whose == "file" else [folder if whose == "folder" else folder.parent]:
            os.chown(path, NOBODY, NOBODY)
        assert load(toy_file).toy(3) == 7
        assert not poisoned.exists()

    @pytest.mark.parametrize("mode", [0o664, 0o646])
    def test_a_file_that_others_can_write_to(
        self, toy_file: Path, poisoned: Path, said: list[str], monkeypatch: pytest.MonkeyPatch, mode: int
    ) -> None:
        monkeypatch.setattr(code_files, "_is_private_group", lambda group: False)
        for path in kept(toy_file):
            path.chmod(mode)
        assert load(toy_file).toy(3) == 7
        assert not poisoned.exists()
        assert "others can write to it" in said[0]
        said.clear()
        assert load(toy_file).toy(3) == 7  # it was replaced
        assert said == []

    @pytest.mark.parametrize("kind", ["fifo", "link", "huge"])
    def test_what_is_no_file_of_ours_is_neither_loaded_nor_waited_for(
        self, toy_file: Path, said: list[str], kind: str
    ) -> None:
        load(toy_file).toy(3)
        said.clear()
        for path in kept(toy_file):
            whole = path.read_bytes()
            path.unlink()
            if kind == "fifo":
                os.mkfifo(path)
            elif kind == "link":
                path.with_suffix(".copy").write_bytes(whole)
                path.symlink_to(path.with_suffix(".copy"))
            else:
                path.write_bytes(whole)
                os.truncate(path, 1 << 40)
        assert load(toy_file).toy(3) == 7
        assert len([text for text in said if text.startswith("warning")]) >= 1

    def test_a_private_group_is_not_others(self, toy_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Where umask is 002, all folders can be written to by the user's own group."""
        monkeypatch.setattr(code_files, "_is_private_group", lambda group: True)
        (toy_file.parent / "__pycache__").mkdir()
        (toy_file.parent / "__pycache__").chmod(0o775)
        assert code_files.writable_folder(toy_file.parent, "") == toy_file.parent / "__pycache__"

    def test_a_group_is_private_when_it_is_named_like_its_only_user(self, monkeypatch: pytest.MonkeyPatch) -> None:
        import grp
        import pwd

        def private(user: str, uid: int, group: str, members: list[str]) -> bool:
            monkeypatch.setattr(pwd, "getpwuid", lambda _: pwd.struct_passwd((user, "x", uid, 1000, "", "", "")))
            monkeypatch.setattr(grp, "getgrgid", lambda gid: grp.struct_group((group, "x", gid, members)))
            code_files._is_private_group.cache_clear()
            return code_files._is_private_group(1000)

        try:
            assert private("ann", 1000, "ann", []) and private("ann", 1000, "ann", ["ann"])
            assert not private("ann", 1000, "users", [])
            assert not private("ann", 1000, "ann", ["bob"])
            assert not private("root", 0, "root", [])
        finally:
            code_files._is_private_group.cache_clear()


class Poison:
    """What makes a file when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return os.mkdir, (str(self.mark),)


class TestFolders:
    def test_numba_cache_dir_comes_first_and_alone(self, toy_file: Path) -> None:
        wanted = toy_file.parent.parent / "wanted"
        assert code_files.writable_folder(toy_file.parent, str(wanted)) == wanted / "lmart"
        assert code_files.readable_folders(toy_file.parent, str(wanted)) == (wanted / "lmart",)

    def test_unusable_folders_are_passed_over(self, toy_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """As in a read-only installation for a user without a home."""
        (toy_file.parent / "__pycache__").write_text("a file, not a folder")
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
        monkeypatch.setenv("HOME", str(toy_file.parent / "nonexistent"))
        monkeypatch.setattr("tempfile.tempdir", str(toy_file.parent))
        folder = code_files.writable_folder(toy_file.parent, str(toy_file))
        assert folder == toy_file.parent / f"lmart-kernels-{os.getuid()}"
        assert folder.stat().st_mode & 0o777 == 0o700
        assert not (toy_file.parent / "nonexistent").exists()

    @needs_compiler
    def test_copies_of_the_same_source_share_machine_code(
        self, toy_file: Path, said: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As a clone beside what was installed from it, and an environment for each project."""
        monkeypatch.setattr(compiler, "KERNELS", toy_file.parent)
        monkeypatch.setenv("XDG_CACHE_HOME", str(toy_file.parent.parent))
        load(toy_file).toy(3)
        copy = toy_file.parent.parent / "elsewhere" / toy_file.name
        copy.parent.mkdir()
        copy.write_text(TOY)
        monkeypatch.setattr(compiler, "KERNELS", copy.parent)
        said.clear()
        again = load(copy)
        assert (again.toy(3), hits(again), said) == (7, 1, [])
        assert not (copy.parent / "__pycache__").exists()

    @needs_root
    @needs_compiler
    def test_what_root_compiles_ahead_is_put_beside_the_program(
        self, toy_file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for module in (compiler, compile_ahead):
            monkeypatch.setattr(module, "KERNELS", toy_file.parent)
        monkeypatch.setenv("XDG_CACHE_HOME", str(toy_file.parent.parent))
        monkeypatch.setitem(sys.modules, "toykernels", load(toy_file))
        toy = Signature("toykernels.toy", 1.0, frozenset(), "int64")
        monkeypatch.setattr(compile_ahead, "known_signatures", lambda: (toy,))
        assert compile_ahead.compile_all(1, lambda *_: None) == []
        monkeypatch.setenv("XDG_CACHE_HOME", "not absolute, so not used")
        again = load(toy_file)
        assert (len(kept(toy_file)), again.toy(3), hits(again)) == (1, 7, 1)

    def test_what_others_could_have_written_is_not_run(self, toy_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (toy_file.parent / "__pycache__").write_text("")
        monkeypatch.setenv("XDG_CACHE_HOME", "relative")
        monkeypatch.setattr("tempfile.tempdir", str(toy_file.parent))
        planted = toy_file.parent / f"lmart-kernels-{os.getuid()}"
        planted.mkdir()
        planted.chmod(0o777)
        assert code_files.writable_folder(toy_file.parent, "") is None
        assert planted not in code_files.readable_folders(toy_file.parent, "")
        planted.rmdir()
        (toy_file.parent / "elsewhere").mkdir(mode=0o700)
        planted.symlink_to(toy_file.parent / "elsewhere")
        forget()
        assert code_files.writable_folder(toy_file.parent, "") is None

    @needs_root
    def test_a_named_folder_of_another_user_is_reported(self, toy_file: Path, said: list[str]) -> None:
        """As NUMBA_CACHE_DIR=/tmp, where somebody came first."""
        shared = toy_file.parent.parent / "shared"
        (shared / "lmart").mkdir(parents=True)
        shared.chmod(0o1777)
        os.chown(shared / "lmart", NOBODY, NOBODY)
        assert code_files.readable_folders(toy_file.parent, str(shared))[0] != shared / "lmart"
        assert code_files.writable_folder(toy_file.parent, str(shared)) == toy_file.parent / "__pycache__"
        (text,) = said
        assert text.startswith(f"warning: machine code in '{shared}/lmart' is not used: it belongs to another user")

    def test_a_shared_folder_needs_the_sticky_bit(self, toy_file: Path, said: list[str]) -> None:
        shared = toy_file.parent.parent / "shared"
        shared.mkdir()
        shared.chmod(0o777)
        assert code_files.writable_folder(toy_file.parent, str(shared)) == toy_file.parent / "__pycache__"
        assert list(shared.iterdir()) == []
        forget()
        shared.chmod(0o1777)
        assert code_files.writable_folder(toy_file.parent, str(shared)) == shared / "lmart"

    def test_folders_that_are_made_are_not_open_to_others(self, toy_file: Path) -> None:
        wanted = toy_file.parent.parent / "a" / "b"
        before = os.umask(0)
        try:
            assert code_files.writable_folder(toy_file.parent, str(wanted)) == wanted / "lmart"
        finally:
            os.umask(before)
        for folder in (wanted.parent, wanted, wanted / "lmart"):
            assert stat.S_IMODE(folder.stat().st_mode) == 0o755

    @needs_root
    @pytest.mark.parametrize("there", [False, True])
    def test_root_leaves_nothing_in_the_home_of_another(
        self, toy_file: Path, monkeypatch: pytest.MonkeyPatch, there: bool
    ) -> None:
        """As with sudo -E, or su without its own environment."""
        home = toy_file.parent.parent / "home"
        (home / ".cache" / "lmart" if there else home).mkdir(parents=True)
        for path in (home, *home.rglob("*")):
            os.chown(path, NOBODY, NOBODY)
        (toy_file.parent / "__pycache__").write_text("")
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
        monkeypatch.setenv("HOME", str(home))
        monkeypatch.setattr("tempfile.tempdir", str(toy_file.parent))
        folder = code_files.writable_folder(toy_file.parent, str(home / "named"))
        assert folder == toy_file.parent / f"lmart-kernels-{os.getuid()}"
        assert {path.stat().st_uid for path in (home, *home.rglob("*"))} == {NOBODY}

    @needs_root
    def test_what_root_compiled_serves_all_and_what_users_compiled_only_themselves(
        self, toy_file: Path, said: list[str]
    ) -> None:
        root = Path(toy_file.anchor)
        place = next(above for above in toy_file.parents if above.name.startswith("pytest-of"))
        with tempfile.TemporaryDirectory(dir=place.parent) as name:  # where others may go
            package = Path(name)
            package.chmod(0o755)
            (package / "__pycache__").mkdir()
            own = package / "own"
            own.mkdir()
            os.chown(own, NOBODY, NOBODY)
            assert root in package.parents

            def folders() -> bool:
                os.setuid(NOBODY)
                found = code_files.readable_folders(package, "")
                return (
                    found[0] == package / "__pycache__"
                    and code_files.writable_folder(package, "") != package / "__pycache__"
                    and code_files.readable_folders(package, str(own)) == (own / "lmart",)
                )

            assert in_a_fork(folders)
            forget()
            assert own / "lmart" not in code_files.readable_folders(package, str(own))


def in_a_fork(check: Callable[[], bool]) -> bool:
    """Return what a function returns in a process of its own, which may become another user."""
    child = os.fork()
    if not child:
        status = 1
        try:
            forget()
            status = 0 if check() else 1
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@needs_compiler
class TestTurns:
    @pytest.fixture(autouse=True)
    def fresh(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(code_files._Waited, "seconds", 0.0)

    def held(self, toy_file: Path) -> FileIO:
        """Lock as another process would; closing the result ends it."""
        folder = toy_file.parent / "__pycache__"
        folder.mkdir(exist_ok=True)
        other = code_files._open_lock(folder)
        fcntl.flock(other, fcntl.LOCK_EX)
        return other

    def test_another_process_that_never_ends_is_waited_for_once_in_all(
        self, toy_file: Path, said: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(code_files, "LONGEST_WAIT", 0.3)
        monkeypatch.setattr(code_files, "QUIET_WAIT", 0.1)
        other = self.held(toy_file)
        slept: list[float] = []
        sleep = time.sleep

        def remembered(seconds: float) -> None:
            slept.append(seconds)
            sleep(seconds)

        monkeypatch.setattr(time, "sleep", remembered)
        module = load(toy_file)
        assert module.toy(3) == 7
        waits = len(slept)
        assert waits > 0 and code_files._Waited.seconds >= 0.3
        assert (module.toy(2.0), len(slept)) == (5.0, waits)
        assert said.count("waiting for another lmart that is compiling") == 1
        (text,) = (text for text in said if text.startswith("warning"))
        assert text.startswith(f"warning: another lmart has been compiling into '{toy_file.parent}/__pycache__' for ")
        other.close()

    def test_a_short_wait_is_not_reported(
        self, toy_file: Path, said: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(code_files, "QUIET_WAIT", LIMIT)
        other = self.held(toy_file)

        def close_later() -> None:
            time.sleep(0.1)
            other.close()

        with ThreadPoolExecutor(1) as pool:
            pool.submit(close_later)
            assert load(toy_file).toy(3) == 7
        assert said == ["compiling"]

    @pytest.mark.parametrize("kind", ["fifo", "link", "open to all"])
    def test_odd_files_to_lock(self, toy_file: Path, kind: str) -> None:
        folder = toy_file.parent / "__pycache__"
        folder.mkdir()
        path = folder / code_files.LOCK_NAME
        if kind == "fifo":
            os.mkfifo(path)
        elif kind == "link":
            path.symlink_to(toy_file)
        else:
            path.touch()
            path.chmod(0o666)
        content, mode = toy_file.read_bytes(), toy_file.stat().st_mode
        assert load(toy_file).toy(3) == 7
        assert (toy_file.read_bytes(), toy_file.stat().st_mode) == (content, mode)
        assert kind != "open to all" or stat.S_IMODE(path.stat().st_mode) == 0o600

    def test_the_turn_ends_although_a_fork_lives_on(self, tmp_path: Path) -> None:
        turn = code_files.Turn()
        assert turn.take(tmp_path)
        child = os.fork()
        if not child:
            signal.pause()
        try:
            turn.end()
            assert turn.take(tmp_path)
            turn.end()
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
