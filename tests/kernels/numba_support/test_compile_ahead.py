"""The table of signatures holds what commands ask for, and `lmart compile` compiles all of it."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from helpers import kernel_runs
from helpers.commands import PROGRAM
from helpers.paths import ROOT, SAMPLE, TESTS

from lmart.kernels.numba_support import code_cache
from lmart.kernels.numba_support.compile_ahead import _planned, describe, known_signatures, parse

pytestmark = pytest.mark.skipif(bool(code_cache.config.DISABLE_JIT), reason="nothing is compiled")
ANY: Mapping[str, str] = {}  # processor: the one that is here
# Kernels that commands do not call: other kernels or tests do.
NOT_ASKED = {
    "trees.bin_edges.bin_of",
    "trees.bin_edges.edge_between",
    "text.decimals.parse_number",
    "exact.exact_math.exp_minus",
    "exact.exact_math.log2_of_one_plus",
    "trees.split_search.count_feature",  # on a cluster only
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
            if any(isinstance(name, ast.Name) and name.id in ("kernel", "shared_kernel") for name in decorators):
                called.add(f"{module}.{node.name}")  # type: ignore[attr-defined]
    assert called - {signature.kernel for signature in known_signatures()} <= NOT_ASKED


@pytest.mark.slow
def test_commands_ask_for_nothing_else() -> None:
    """In a process that has loaded no kernel yet; `python tests/helpers/kernel_runs.py` writes the table anew."""
    command = [sys.executable, str(TESTS / "helpers" / "kernel_runs.py"), "--compare"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def lmart(
    *arguments: str | Path, cache: Path | None = None, folder: Path | None = None, processor: Mapping[str, str] = ANY
) -> subprocess.CompletedProcess[bytes]:
    """Run a command in a process, with its machine code in `cache`, None: where the tests have it."""
    command = [*PROGRAM, *map(str, arguments)]
    own = {**os.environ, **processor} | ({} if cache is None else {"NUMBA_CACHE_DIR": str(cache)})
    return subprocess.run(command, env=own, cwd=folder, capture_output=True, check=True)


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*.kernel")}


@pytest.fixture(scope="module")
def generic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all of the table compiled for any processor, by a copy whose table has only what convert needs."""
    copy, folder = tmp_path_factory.mktemp("copy"), tmp_path_factory.mktemp("generic")
    shutil.copytree(ROOT / "lmart", copy / "lmart", ignore=shutil.ignore_patterns("__pycache__"))
    table = [signature for signature in known_signatures() if "convert" in signature.commands]
    lines = [f"{kernel} {seconds} {','.join(commands)} {text}\n" for kernel, seconds, commands, text in table]
    (copy / "lmart" / "kernels" / "signatures.txt").write_text("".join(lines))
    done = lmart("compile", "--generic", folder=copy, cache=folder)
    assert (done.stdout, done.stderr) == (f"{folder / 'lmart'}\n".encode(), b"")
    assert sorted(name.partition("-")[0] for name in files(folder)) == sorted(signature.kernel for signature in table)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("processor", [ANY, {"NUMBA_CPU_NAME": "x86-64-v2", "NUMBA_CPU_FEATURES": "+sse4.2"}])
def test_generic_code_serves_any_processor_with_the_same_bytes(processor: Mapping[str, str], generic: Path) -> None:
    before = files(generic)
    command = ("convert", SAMPLE / "test.svm", "-", "--to", "csv")
    out = lmart(*command, cache=generic, processor=processor).stdout
    assert files(generic) == before
    assert out == lmart(*command).stdout


@pytest.mark.slow
def test_a_first_run_compiles_in_several_processes(tmp_path: Path) -> None:
    """What its forks compile serves it, and none of them is left behind."""
    done = lmart("convert", SAMPLE / "test.svm", "-", "--to", "csv", cache=tmp_path)
    assert done.stderr == b"" and done.stdout.count(b"\n") == 601
    kernels = {name.partition("-")[0] for name in files(tmp_path)}
    assert {"text.row_text.write_table_rows", "text.letor.parse_letor"} <= kernels
