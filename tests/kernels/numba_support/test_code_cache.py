"""The cache of compiled kernels: whatever happens to it, results are right, and what is wrong is reported once."""

from __future__ import annotations

import errno
import fcntl
import gc
import importlib
import importlib.util
import itertools
import os
import pickle
import py_compile
import signal
import stat
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from io import FileIO
from pathlib import Path
from types import FrameType, ModuleType, SimpleNamespace
from typing import Any

import pytest
from helpers.commands import PROGRAM, run
from helpers.paths import ROOT, SAMPLE
from helpers.waiting import LIMIT
from numba.core.errors import TypingError

from lmart.kernels import Messages
from lmart.kernels.numba_support import code_cache as compiler
from lmart.kernels.numba_support import code_files, compile_ahead, compiling_processes, numba_internals
from lmart.kernels.numba_support.compile_ahead import Signature

TOY = """
from lmart.kernels.numba_support.code_cache import inner_kernel, kernel

@inner_kernel
def helper(x):
    return x * 2

@kernel
def toy(x):
    return helper(x) + 1
"""

NOBODY = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to others")
needs_compiler = pytest.mark.skipif(bool(compiler.config.DISABLE_JIT), reason="nothing is compiled")


@pytest.fixture
def toy_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A file of kernels in a package folder of its own, where nothing but its __pycache__ serves as cache."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # it knows a version by its second and size
    monkeypatch.setattr(compiler.config, "CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", "not absolute, so not used")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    path = tmp_path / "package" / "toykernels.py"
    path.parent.mkdir()
    path.write_text(TOY)
    forget()
    yield path
    forget()


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is reported, with `warning: ` before each warning."""
    texts: list[str] = []
    own = Messages()
    heard: list[str] = []

    def compiling(seconds: float, expected: float) -> None:
        if not heard:
            heard.append("compiling")
            texts.append("compiling")

    own.listen(texts.append, lambda text: texts.append(f"warning: {text}"), compiling)
    for module in (code_files, compiler):
        monkeypatch.setattr(module, "messages", own)
    return texts


def forget() -> None:
    folders = (code_files.writable_folder, code_files.readable_folders)
    for cached in (*folders, code_files.source_digest, code_files.sources_digest):
        cached.cache_clear()


def imported_from(place: Path) -> ModuleType:
    """Import the file from a folder without its source, or from a zip file, as a new process would."""
    sys.path.insert(0, str(place))
    try:
        return importlib.import_module("toykernels")
    finally:
        sys.path.pop(0)
        sys.modules.pop("toykernels", None)


def load(path: Path) -> ModuleType:
    """Import the file afresh, as a new process would."""
    forget()
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def hits(module: ModuleType) -> int:
    return sum(module.toy.stats.cache_hits.values())


def kept(path: Path) -> list[Path]:
    return sorted((path.parent / "__pycache__").glob("*.kernel"))


@needs_compiler
class TestKernelCache:
    def test_is_compiled_once_for_each_signature(self, toy_file: Path) -> None:
        first = load(toy_file)
        assert (first.toy(3), hits(first)) == (7, 0)
        second = load(toy_file)
        assert (second.toy(3), hits(second)) == (7, 1)
        assert (second.toy(1.5), hits(second)) == (4.0, 1)
        assert len(kept(toy_file)) == 2

    @pytest.mark.parametrize("damage", [lambda b: b[:10], lambda b: b[:-1] + bytes([b[-1] ^ 1]), lambda b: b"x" + b])
    def test_damaged_file_is_compiled_and_replaced(self, toy_file: Path, damage: Callable[[bytes], bytes]) -> None:
        load(toy_file).toy(3)
        good = [path.read_bytes() for path in kept(toy_file)]
        for path, content in zip(kept(toy_file), good, strict=True):
            path.write_bytes(damage(content))
        again = load(toy_file)
        assert (again.toy(3), hits(again)) == (7, 0)
        assert (load(toy_file).toy(3), len(kept(toy_file))) == (7, 1)

    def test_file_of_another_kernel_is_not_used(self, toy_file: Path) -> None:
        """As after a copy of the folder that confused names; both have one signature, so nothing else would notice."""
        toy_file.write_text(TOY + "\n@kernel\ndef other(x):\n    return helper(x) + 2\n")
        module = load(toy_file)
        assert (module.toy(3), module.other(3)) == (7, 8)
        (own,) = (path for path in kept(toy_file) if ".toy-" in path.name)
        (other,) = (path for path in kept(toy_file) if ".other-" in path.name)
        own.write_bytes(other.read_bytes())
        assert load(toy_file).toy(3) == 7

    def test_content_that_cannot_be_loaded_is_reported_and_compiled(self, toy_file: Path, said: list[str]) -> None:
        load(toy_file).toy(3)
        for path in kept(toy_file):
            code_files.write_code(path, b"not a pickle")
        said.clear()
        assert load(toy_file).toy(3) == 7
        assert len(said) == 1 and "cannot be loaded (UnpicklingError: " in said[0], said
        said.clear()
        assert load(toy_file).toy(3) == 7  # it was replaced
        assert said == []

    def test_an_edited_file_is_compiled_again(self, toy_file: Path) -> None:
        assert load(toy_file).toy(3) == 7
        toy_file.write_text(TOY.replace("x * 2", "x * 3"))  # in the helper, which the cached caller holds inlined
        assert load(toy_file).toy(3) == 10

    def test_an_edit_in_another_file_of_kernels_is_noticed(
        self, toy_file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(compiler, "KERNELS", toy_file.parent)
        other = toy_file.with_name("other_toykernels.py")
        other.write_text(TOY)
        called = load(other)
        monkeypatch.setitem(sys.modules, "other_toykernels", called)
        lines = TOY.split("\n@kernel")
        toy_file.write_text(f"from other_toykernels import helper\n{lines[0].split('@inner')[0]}\n@kernel{lines[1]}")
        assert load(toy_file).toy(3) == 7
        other.write_text(TOY.replace("x * 2", "x * 5"))
        monkeypatch.setitem(sys.modules, "other_toykernels", load(other))
        assert load(toy_file).toy(3) == 16

    def test_without_any_folder_it_says_so_once(
        self, toy_file: Path, said: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(code_files, "candidate_folders", lambda package, named: [])
        module = load(toy_file)
        assert (module.toy(3), module.toy(2.0)) == (7, 5.0)
        (text,) = said
        assert text.startswith("warning: ") and "NUMBA_CACHE_DIR" in text

    def test_says_that_it_compiles_only_when_it_does(self, toy_file: Path, said: list[str]) -> None:
        load(toy_file).toy(3)
        assert said == ["compiling"]
        said.clear()
        load(toy_file).toy(3)
        assert said == []

    def test_a_full_disk_costs_time_only_and_is_reported_once(
        self, toy_file: Path, said: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(source: str, target: str) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(os, "replace", full)
        module = load(toy_file)
        assert (module.toy(3), module.toy(2.0)) == (7, 5.0)
        assert [path.name for path in (toy_file.parent / "__pycache__").iterdir() if "kernel" in path.suffix] == []
        (text,) = (text for text in said if text.startswith("warning"))
        assert "cannot be kept" in text and "(No space left on device)" in text

    @pytest.mark.parametrize("part", ["dumps", "rebuild"])
    def test_a_failure_inside_numba_is_reported_once(
        self, toy_file: Path, said: list[str], monkeypatch: pytest.MonkeyPatch, part: str
    ) -> None:
        def fail(*arguments: object) -> None:
            raise RuntimeError("changed\nin detail")

        load(toy_file).toy(3)
        said.clear()
        monkeypatch.setattr(compiler, part, fail)
        module = load(toy_file)
        assert (module.toy(3), module.toy(2.0)) == (7, 5.0)
        assert [text for text in said if text.startswith("warning") and "(RuntimeError: changed)" in text] != []
        assert len(said) == 1

    def test_numba_that_does_not_ask_for_kept_code_is_reported(self, toy_file: Path, said: list[str]) -> None:
        module = load(toy_file)
        module.toy._cache = importlib.import_module("numba.core.caching").NullCache()
        assert module.toy(3) == 7
        assert [text for text in said if "does not use lmart's cache" in text] != []

    def test_without_its_source_nothing_is_kept_and_that_is_reported(self, toy_file: Path, said: list[str]) -> None:
        """As in an installation of compiled Python files only."""
        py_compile.compile(str(toy_file), str(toy_file.with_suffix(".pyc")))
        toy_file.unlink()
        assert imported_from(toy_file.parent).toy(3) == 7
        (text,) = said
        assert text.startswith("warning: machine code cannot be kept: ") and "(No such file or directory)" in text


@needs_compiler
class TestInnerKernel:
    def test_is_refused_to_python_before_and_after_it_is_compiled(self, toy_file: Path) -> None:
        module = load(toy_file)
        for _ in range(2):
            with pytest.raises(TypeError, match="by kernels only"):
                module.helper(3)
            assert module.toy(3) == 7


@needs_compiler
def test_a_number_and_a_variable_share_a_signature(toy_file: Path) -> None:
    toy_file.write_text(TOY.replace("helper(x) + 1", "helper(x) + helper(0) + helper(-x) + 1 + x"))
    module = load(toy_file)
    assert module.toy(3) == 4
    assert len(module.helper.signatures) == 1


@needs_compiler
def test_collecting_garbage_goes_on_after_a_compilation(toy_file: Path) -> None:
    module = load(toy_file)
    assert (module.toy(3), gc.isenabled()) == (7, True)
    with pytest.raises(TypingError):
        module.toy(None)
    assert gc.isenabled()
    gc.disable()
    try:
        assert (module.toy(0.5), gc.isenabled()) == (2.0, False)
    finally:
        gc.enable()


@pytest.mark.slow
@needs_compiler
def test_kept_code_is_loaded_without_what_compiling_needs(toy_file: Path) -> None:
    program = "import sys, toykernels as t; print(t.toy(3), 'numba.np.arraymath' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(toy_file.parent), "NUMBA_CACHE_DIR": str(toy_file.parent / "kept")}
    outputs = [
        subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=True).stdout
        for _ in range(2)
    ]
    assert outputs == [b"7 True\n", b"7 False\n"]


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


def is_free(folder: Path) -> bool:
    """Return whether another process could compile into the folder."""
    lock = code_files.lock_at_once(folder)
    if lock is not None:
        lock.close()
    return lock is not None


def interrupted(work: Callable[[], object], line: int, files: Iterable[str]) -> bool:
    """Do the work, interrupted at one of the lines of these files where a signal can; return whether it came so far."""
    left = line

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal left
        if frame.f_code.co_filename not in files:
            return None
        left -= event == "line" and signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
        if not left:
            left -= 1
            raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
    return left < 0


# Python itself drops an interrupt that comes while an object is ended.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
class TestInterrupts:
    """At whatever line an interrupt comes, others need not wait, and nothing else of it stays."""

    FILES = (code_files.__file__, compiler.__file__, compiling_processes.__file__)

    def each_line(self, work: Callable[[], object]) -> Iterator[int]:
        """Interrupt the work at each of its lines; yield their numbers."""
        for line in itertools.count(1):
            if not interrupted(work, line, self.FILES):
                assert line > 3
                return
            yield line

    def test_while_a_kernel_and_one_that_it_calls_are_compiled(self, tmp_path: Path) -> None:
        taken: list[bool] = []

        def outermost(sig: object) -> None:
            compile_called(sig)
            taken.append(compiler._compilation().take(tmp_path))  # type: ignore[union-attr]

        cache: Any = SimpleNamespace(name="toy.toy", claimed=[], was_asked=True)
        compile_called = compiler._in_turn(lambda sig: compiler._compilation().take(tmp_path), cache)  # type: ignore[union-attr]
        compile_all = compiler._in_turn(outermost, cache)
        for line in self.each_line(lambda: compile_all(None)):
            assert (is_free(tmp_path), gc.isenabled(), compiler._compilation()) == (True, True, None), line
            taken.clear()
            compile_all(None)
            assert (taken, is_free(tmp_path)) == ([False], True), line  # the kernel that is called has taken it

    def test_while_machine_code_is_written(self, tmp_path: Path) -> None:
        signals = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        path = tmp_path / "kernel"
        for line in self.each_line(lambda: code_files.write_code(path, b"code")):
            assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == signals, line
            assert [kept for kept in tmp_path.iterdir() if kept != path] == [], line
            path.unlink(missing_ok=True)


@pytest.mark.slow
@needs_compiler
class TestOtherVersionsOfNumba:
    PARTS = (
        "import numba.core.caching as m; del m._Cache",
        "import numba.core.cpu as m; del next(c for c in m.CPUTargetOptions.__mro__ if '_nrt' in vars(c))._nrt",
        "import abc, numba.core.caching as m; m._Cache.more = abc.abstractmethod(lambda self: 1); "
        "m._Cache.__abstractmethods__ |= {'more'}",
    )

    @pytest.mark.parametrize("change", PARTS)
    def test_a_missing_part_costs_the_cache_and_is_reported_once(self, toy_file: Path, change: str) -> None:
        program = f"{change}; import toykernels as t; print(t.toy(3), t.toy(0.5), t.helper(1))"
        folder = toy_file.parent / "kept"
        environment = {**os.environ, "PYTHONPATH": str(toy_file.parent), "NUMBA_CACHE_DIR": str(folder)}
        done = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout) == (0, "7 2.0 2\n"), done.stderr
        assert done.stderr.count("is not a version that lmart knows") == 1
        assert not folder.exists()

    def test_commands_give_the_same_result_and_say_so_once(self, tmp_path: Path) -> None:
        model = tmp_path / "m.json"
        run("train", "-q", "--data", SAMPLE / "train.svm", "--trees", "3", "--out", model)
        arguments = ("predict", "-m", str(model), "--data", str(SAMPLE / "test.svm"))
        (tmp_path / "sitecustomize.py").write_text("import numba.core.compiler as m; del m.CompileResult._reduce")
        done = subprocess.run(
            [*PROGRAM, *arguments],
            env={**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stdout) == (0, run(*arguments).stdout)
        (line,) = done.stderr.splitlines()
        assert line.startswith("lmart: warning: numba ") and numba_internals.TESTED in line

    def test_the_tested_versions_are_those_of_the_package(self) -> None:
        assert f'"{numba_internals.TESTED}"' in (ROOT / "pyproject.toml").read_text()


class TestMessages:
    def test_without_a_listener_warnings_are_those_of_python(self) -> None:
        own = Messages()
        own.notice("compiling")
        with pytest.warns(RuntimeWarning, match="broken"):
            own.warning("broken")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            own.warning("broken")  # said already

    def test_what_is_held_goes_to_the_first_listener(self) -> None:
        own = Messages()
        own.hold()
        own.warning("broken")
        first: list[str] = []
        own.listen(first.append, first.append)
        assert first == ["broken"]
        own.warning("broken")
        assert first == ["broken"]
        second: list[str] = []
        own.listen(second.append, second.append)
        own.warning("broken")
        assert (first, second) == (["broken"], ["broken"])


@pytest.mark.slow
@needs_compiler
def test_processes_that_start_together_share_an_empty_cache(toy_file: Path) -> None:
    program = "import toykernels as t; print(t.toy(3), t.toy(0.5), sum(t.toy.stats.cache_misses.values()))"
    environment = {**os.environ, "PYTHONPATH": str(toy_file.parent), "NUMBA_CACHE_DIR": str(toy_file.parent / "shared")}

    def start(_: int) -> tuple[str, str]:
        done = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False
        )
        return done.stdout, done.stderr

    with ThreadPoolExecutor(6) as pool:
        results = sorted(pool.map(start, range(6)))
    assert {said for _, said in results} == {""}
    assert {shown.split(" ")[:2] == ["7", "2.0"] for shown, _ in results} == {True}
    assert sum(int(shown.split(" ")[2]) for shown, _ in results) == 2  # each signature is compiled once in all
    assert len(list((toy_file.parent / "shared" / "lmart").glob("*.kernel"))) == 2


@pytest.mark.slow
def test_runs_as_plain_python_without_warnings() -> None:
    program = (
        "import numpy as np; from lmart.kernels.numba_support.code_cache import kernel\n"
        "print(kernel(lambda x: x * x + x)(np.uint64(2**63 + 1)), kernel(lambda x: x / x)(np.float64(0)))"
    )
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONWARNINGS": "error"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=False)
    assert (done.stdout, done.stderr) == (b"9223372036854775810 nan\n", b"")
