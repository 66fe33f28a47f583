"""The cache of compiled kernels: whatever happens to it, results are right, and what is wrong is reported once."""

from __future__ import annotations

import errno
import gc
import importlib
import importlib.util
import itertools
import os
import py_compile
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any

import pytest
from helpers.commands import PROGRAM, run
from helpers.paths import ROOT
from helpers.toy_kernels import TOY, hits, imported_from, is_free, kept, load, needs_compiler
from numba.core.errors import TypingError

from lmart.kernels import Messages
from lmart.kernels.numba_support import code_cache as compiler
from lmart.kernels.numba_support import code_files, compiling_processes, numba_internals


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

    def test_a_shared_kernel_is_called_by_another_name_when_it_is_compiled_anew(
        self, toy_file: Path, said: list[str]
    ) -> None:
        """A kernel that is kept calls the machine code of a shared one, whose name differs from process to process."""
        toy_file.write_text(TOY.replace("@inner_kernel", "@shared_kernel").replace("inner_", "shared_"))
        assert load(toy_file).toy(3) == 7
        (own,) = (path for path in kept(toy_file) if ".toy-" in path.name)
        before = own.read_bytes()
        (shared,) = (path for path in kept(toy_file) if path != own)
        shared.unlink()
        again = load(toy_file)
        assert (again.toy(3), hits(again), own.read_bytes()) == (7, 1, before)
        assert shared.exists() and load(toy_file).helper(3) == 6
        assert said == ["compiling"]

    def test_code_that_allocates_names_no_module_of_numba_to_import(self, toy_file: Path) -> None:
        toy_file.write_text("import numpy as np\n" + TOY.replace("x * 2", "np.zeros(x).size * 2"))
        assert load(toy_file).toy(3) == 7
        (path,) = kept(toy_file)
        assert b"numba.np.arrayobj" not in (code_files.read_code(path) or b"numba.np.arrayobj")
        again = load(toy_file)
        assert (again.toy(3), hits(again)) == (7, 1)

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
            assert {kept.name for kept in tmp_path.iterdir()} <= {"kernel", "kernel.new"}, line
            path.unlink(missing_ok=True)
        code_files.write_code(path, b"code")
        assert os.listdir(tmp_path) == ["kernel"]  # what was left is written over


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
        (tmp_path / "qrels").write_text("1 0 a 2\n1 0 b 0\n2 0 a 1\n")
        (tmp_path / "run").write_text("1 Q0 a 1 0.5 x\n1 Q0 b 2 0.25 x\n2 Q0 a 1 0.125 x\n")
        arguments = ("eval", "--qrels", str(tmp_path / "qrels"), "--run", str(tmp_path / "run"), "--metric", "map")
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
