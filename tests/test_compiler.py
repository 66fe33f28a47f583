"""The cache of compiled kernels: whatever happens to it, results are right and nothing is said but one notice."""

from __future__ import annotations

import fcntl
import gc
import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import pytest
from numba.core.errors import TypingError

import lmart.kernels
from lmart.kernels import compiler

TOY = """
from lmart.kernels.compiler import inner_kernel, kernel

@inner_kernel
def helper(x):
    return x * 2

@kernel
def toy(x):
    return helper(x) + 1
"""

needs_compiler = pytest.mark.skipif(bool(compiler.config.DISABLE_JIT), reason="nothing is compiled")


@pytest.fixture
def toy_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A file of kernels in a package folder of its own, where nothing but its __pycache__ serves as cache."""
    monkeypatch.setattr(compiler.config, "CACHE_DIR", "")
    path = tmp_path / "package" / "toykernels.py"
    path.parent.mkdir()
    path.write_text(TOY)
    forget()
    yield path
    forget()


def forget() -> None:
    folders = (compiler.writable_folder, compiler.readable_folders)
    for cached in (*folders, compiler._source_digest, compiler._sources_digest):
        cached.cache_clear()


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
        assert len(kept(toy_file)) == 4

    @pytest.mark.parametrize(
        "damage", [lambda b: b"", lambda b: b[:10], lambda b: b[: len(b) // 2], lambda b: b"x" + b]
    )
    def test_damaged_file_is_compiled_and_replaced(self, toy_file: Path, damage: Callable[[bytes], bytes]) -> None:
        load(toy_file).toy(3)
        good = [path.read_bytes() for path in kept(toy_file)]
        for path, content in zip(kept(toy_file), good, strict=True):
            path.write_bytes(damage(content))
        again = load(toy_file)
        assert (again.toy(3), hits(again)) == (7, 0)
        assert (load(toy_file).toy(3), len(kept(toy_file))) == (7, 2)

    def test_a_single_wrong_bit_is_noticed(self, toy_file: Path) -> None:
        load(toy_file).toy(3)
        for path in kept(toy_file):
            content = bytearray(path.read_bytes())
            content[len(content) * 2 // 3] ^= 1
            path.write_bytes(content)
        again = load(toy_file)
        assert (again.toy(3), hits(again)) == (7, 0)

    def test_code_of_another_signature_is_not_used(self, toy_file: Path) -> None:
        load(toy_file).toy(3)
        whole = kept(toy_file)
        load(toy_file).toy(0.25)
        others = [path for path in kept(toy_file) if path not in whole]
        for path in whole:
            (other,) = (one for one in others if one.name.split("-")[0] == path.name.split("-")[0])
            path.write_bytes(path.read_bytes()[: compiler.DIGEST_SIZE] + other.read_bytes()[compiler.DIGEST_SIZE :])
        again = load(toy_file)
        assert (again.toy(3), hits(again)) == (7, 0)

    def test_whole_but_foreign_content_is_not_used(self, toy_file: Path) -> None:
        load(toy_file).toy(3)
        payload = b"not a pickle"
        for path in kept(toy_file):
            path.write_bytes(compiler.hashlib.sha256(payload).digest() + payload)
        assert load(toy_file).toy(3) == 7

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

    def test_without_any_folder_it_says_so_once(self, toy_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(compiler, "_candidates", lambda package: [])
        said: list[str] = []
        monkeypatch.setattr(lmart.kernels, "on_compile", said.append)
        module = load(toy_file)
        assert (module.toy(3), module.toy(2.0)) == (7, 5.0)
        assert len(said) == 1 and "NUMBA_CACHE_DIR" in said[0]

    def test_says_that_it_compiles_only_when_it_does(self, toy_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        said: list[str] = []
        monkeypatch.setattr(lmart.kernels, "on_compile", said.append)
        load(toy_file).toy(3)
        assert said == ["compiling what this command needs, once on this machine"]
        monkeypatch.setattr(lmart.kernels, "on_compile", said.append)
        load(toy_file).toy(3)
        assert len(said) == 1

    def test_another_process_that_never_ends_is_not_waited_for(
        self, toy_file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(compiler, "LONGEST_WAIT", 0.1)
        folder = toy_file.parent / "__pycache__"
        folder.mkdir()
        other = os.open(folder, os.O_RDONLY)
        fcntl.flock(other, fcntl.LOCK_EX)
        assert load(toy_file).toy(3) == 7
        os.close(other)

    def test_the_turn_ends_with_a_failed_compilation(self, toy_file: Path) -> None:
        with pytest.raises(TypingError):
            load(toy_file).toy("text")
        other = os.open(toy_file.parent / "__pycache__", os.O_RDONLY)
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(other)

    def test_a_full_disk_does_not_matter(self, toy_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def full(source: str, target: str) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(compiler.os, "replace", full)
        assert load(toy_file).toy(3) == 7
        assert [path.name for path in (toy_file.parent / "__pycache__").iterdir() if "kernel" in path.suffix] == []


@needs_compiler
class TestInnerKernel:
    def test_is_refused_to_python_before_and_after_it_is_compiled(self, toy_file: Path) -> None:
        module = load(toy_file)
        for _ in range(2):
            with pytest.raises(TypeError, match="by kernels only"):
                module.helper(3)
            assert module.toy(3) == 7

    def test_is_refused_when_it_was_kept(self, toy_file: Path) -> None:
        load(toy_file).toy(3)
        with pytest.raises(TypeError, match="by kernels only"):
            load(toy_file).helper(3)


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
        module.toy("text")
    assert gc.isenabled()
    gc.disable()
    try:
        assert (module.toy(0.5), gc.isenabled()) == (2.0, False)
    finally:
        gc.enable()


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
def test_a_file_that_may_not_grow_to_its_size_is_not_kept(toy_file: Path) -> None:
    """As on a disk that fills up while it is written."""
    program = (
        "import resource, toykernels as t; resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)); print(t.toy(3))"
    )
    folder = toy_file.parent / "kept"
    environment = {**os.environ, "PYTHONPATH": str(toy_file.parent), "NUMBA_CACHE_DIR": str(folder)}
    done = subprocess.run([sys.executable, "-B", "-c", program], env=environment, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"7\n", b"")
    assert list((folder / "lmart").iterdir()) == []


class TestFolders:
    def test_numba_cache_dir_comes_first_and_alone(self, toy_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        wanted = toy_file.parent.parent / "wanted"
        monkeypatch.setattr(compiler.config, "CACHE_DIR", str(wanted))
        assert compiler.writable_folder(toy_file.parent) == wanted / "lmart"
        assert compiler.readable_folders(toy_file.parent) == (wanted / "lmart",)

    def test_unusable_folders_are_passed_over(self, toy_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """As in a read-only installation for a user without a home."""
        monkeypatch.setattr(compiler.config, "CACHE_DIR", str(toy_file))
        (toy_file.parent / "__pycache__").write_text("a file, not a folder")
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
        monkeypatch.setenv("HOME", str(toy_file.parent / "nonexistent"))
        monkeypatch.setattr(compiler.tempfile, "tempdir", str(toy_file.parent))
        folder = compiler.writable_folder(toy_file.parent)
        assert folder == toy_file.parent / f"lmart-kernels-{os.getuid()}"
        assert folder.stat().st_mode & 0o777 == 0o700
        assert not (toy_file.parent / "nonexistent").exists()

    def test_the_users_own_cache_is_next(self, toy_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (toy_file.parent / "__pycache__").write_text("")
        monkeypatch.setenv("XDG_CACHE_HOME", str(toy_file.parent / "own"))
        assert compiler.writable_folder(toy_file.parent) == toy_file.parent / "own" / "lmart"

    def test_what_others_could_have_written_is_not_run(self, toy_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (toy_file.parent / "__pycache__").write_text("")
        monkeypatch.setenv("XDG_CACHE_HOME", "relative")
        monkeypatch.setattr(compiler.tempfile, "tempdir", str(toy_file.parent))
        planted = toy_file.parent / f"lmart-kernels-{os.getuid()}"
        planted.mkdir()
        planted.chmod(0o777)
        assert compiler.writable_folder(toy_file.parent) is None
        assert planted not in compiler.readable_folders(toy_file.parent)
        planted.rmdir()
        (toy_file.parent / "elsewhere").mkdir(mode=0o700)
        planted.symlink_to(toy_file.parent / "elsewhere")
        forget()
        assert compiler.writable_folder(toy_file.parent) is None

    def test_no_folder_for_temporary_files(self, toy_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def none() -> str:
            raise FileNotFoundError

        (toy_file.parent / "__pycache__").write_text("")
        monkeypatch.setenv("XDG_CACHE_HOME", "relative")
        monkeypatch.setattr(compiler.tempfile, "gettempdir", none)
        assert compiler.writable_folder(toy_file.parent) is None


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
    assert len(list((toy_file.parent / "shared" / "lmart").iterdir())) == 4


def test_runs_as_plain_python_without_warnings() -> None:
    program = (
        "import numpy as np; from lmart.kernels.compiler import kernel\n"
        "print(kernel(lambda x: x * x + x)(np.uint64(2**63 + 1)), kernel(lambda x: x / x)(np.float64(0)))"
    )
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONWARNINGS": "error"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=False)
    assert (done.stdout, done.stderr) == (b"9223372036854775810 nan\n", b"")
