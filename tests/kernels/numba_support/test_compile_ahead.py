"""The table of signatures holds what commands ask for, and `lmart compile` compiles all of it."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import kernel_runs
from helpers.commands import PROGRAM
from helpers.paths import SAMPLE, TESTS

from lmart.kernels.numba_support import code_cache
from lmart.kernels.numba_support.compile_ahead import _planned, describe, known_signatures, parse

pytestmark = pytest.mark.skipif(bool(code_cache.config.DISABLE_JIT), reason="nothing is compiled")
# Kernels that commands do not call: other kernels or tests do.
NOT_ASKED = {
    "trees.bin_edges.bin_of",
    "trees.bin_edges.edge_between",
    "text.decimals.parse_number",
    "exact.exact_math.exp_minus",
    "exact.exact_math.log2_of_one_plus",
    "trees.split_search.best_split",
    "trees.split_search.count_feature",  # on a cluster only
    "scoring.bit_vectors.add_trees",
    "scoring.bit_vectors.code_rows",
    "text.shortest_decimals.write_one_number",
}


def test_each_signature_is_one_of_a_kernel_and_its_text_reads_back() -> None:
    kernel_runs.load_kernels()
    signatures = known_signatures()
    distinct = {(signature.kernel, signature.text) for signature in signatures}
    assert len(signatures) == len(distinct) == len(_planned(signatures))
    for signature in signatures:
        assert describe(parse(signature.text)) == signature.text
        assert signature.seconds > 0 and signature.commands <= set(kernel_runs.PLAIN)


def test_every_kernel_has_a_signature() -> None:
    """A new kernel needs a run in helpers/kernel_runs.py that calls it, and the table to be written anew."""
    called = set()
    for path in code_cache.KERNELS.rglob("*.py"):
        module = ".".join(path.relative_to(code_cache.KERNELS).with_suffix("").parts)
        for node in ast.walk(ast.parse(path.read_text())):
            decorators = getattr(node, "decorator_list", [])
            if any(isinstance(name, ast.Name) and name.id == "kernel" for name in decorators):
                called.add(f"{module}.{node.name}")  # type: ignore[attr-defined]
    assert called - {signature.kernel for signature in known_signatures()} <= NOT_ASKED


@pytest.mark.slow
def test_commands_ask_for_nothing_else() -> None:
    """In a process that has loaded no kernel yet; `python tests/helpers/kernel_runs.py` writes the table anew."""
    command = [sys.executable, str(TESTS / "helpers" / "kernel_runs.py"), "--compare"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def lmart(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[bytes]:
    command = [*PROGRAM, *map(str, arguments)]
    return subprocess.run(command, env={**os.environ, **environment}, capture_output=True, check=True)


@pytest.fixture(scope="module")
def generic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with everything compiled for any processor."""
    folder = tmp_path_factory.mktemp("generic")
    done = lmart("compile", "--generic", NUMBA_CACHE_DIR=str(folder))
    assert (done.stdout, done.stderr) == (f"{folder / 'lmart'}\n".encode(), b"")
    return folder


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*.kernel")}


@pytest.mark.slow
class TestGenericCode:
    def test_serves_this_processor_with_the_same_bytes(self, generic: Path, tmp_path: Path) -> None:
        before = files(generic)
        kernels = {name.partition("-")[0] for name in before}
        assert kernels >= {signature.kernel for signature in known_signatures()}
        command = ("train", "--data", SAMPLE / "train.svm", "--trees", "8", "--rankers", "4", "--out")
        lmart(*command, tmp_path / "generic.json", NUMBA_CACHE_DIR=str(generic))
        assert files(generic) == before
        lmart(*command, tmp_path / "own.json")
        assert (tmp_path / "generic.json").read_bytes() == (tmp_path / "own.json").read_bytes()

    def test_serves_another_processor(self, generic: Path) -> None:
        before = files(generic)
        other = {"NUMBA_CPU_NAME": "x86-64-v2", "NUMBA_CPU_FEATURES": "+sse4.2"}
        out = lmart("convert", SAMPLE / "test.svm", "-", "--to", "csv", NUMBA_CACHE_DIR=str(generic), **other).stdout
        assert files(generic) == before
        assert out == lmart("convert", SAMPLE / "test.svm", "-", "--to", "csv").stdout


@pytest.mark.slow
def test_a_first_run_compiles_in_several_processes(tmp_path: Path) -> None:
    """What its forks compile serves it, and none of them is left behind."""
    done = lmart("predict", "--help")
    model, folder = tmp_path / "m.json", tmp_path / "cache"
    lmart("train", "--data", SAMPLE / "train.svm", "--trees", "3", "--out", model)
    done = lmart("predict", "--model", model, "--data", SAMPLE / "test.svm", NUMBA_CACHE_DIR=str(folder))
    assert done.stderr == b"" and done.stdout.count(b"\n") == 600
    kernels = {name.partition("-")[0] for name in files(folder)}
    assert {"scoring.bit_vectors.score_rows", "text.letor.parse_letor"} <= kernels
