"""Starting up: what is set before packages are imported, and packages that cannot be imported."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipapp
from pathlib import Path

import pytest
from helpers.commands import PROGRAM, run
from helpers.paths import ROOT, SAMPLE


def predict(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Score the sample in a process that finds modules in `folder` first."""
    model = folder / "m.json"
    if not model.exists():
        run("train", "-q", "--data", SAMPLE / "train.svm", "--trees", "2", "--out", model)
    return subprocess.run(
        [*PROGRAM, "predict", "-q", "-m", str(model), "--data", str(SAMPLE / "test.svm")],
        env={**os.environ, "PYTHONPATH": f"{folder}:{ROOT}", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("package", "body", "cause"),
    [
        ("numpy", "raise ImportError('libblas.so: failed to map segment')", "libblas.so: failed to map segment"),
        ("llvmlite", "raise OSError('Could not find/load shared object file')", "Could not find/load shared object"),
        ("numba", "raise AttributeError('partly initialized\\nmore')", "partly initialized"),
        (
            "numba",
            "try: raise OSError('libx.so: not mapped')\nexcept OSError as e: raise ImportError('read this') from e",
            "libx.so: not mapped",
        ),
        ("numba", "import nothing_of_this_name", "No module named 'nothing_of_this_name'"),
    ],
)
def test_a_package_that_cannot_be_loaded_is_one_line(tmp_path: Path, package: str, body: str, cause: str) -> None:
    (tmp_path / f"{package}.py").write_text(body)
    done = predict(tmp_path)
    (line,) = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (1, "")
    assert line.startswith(f"lmart: error: the package {package} cannot be loaded ({cause}"), line
    assert "not enough memory" in line


@pytest.mark.parametrize("command", ["train", "train_run", "train_inputs", "train_state", "predict", "eval"])
def test_a_run_of_one_process_loads_nothing_of_clusters(command: str) -> None:
    program = f"import lmart.cli.{command}, sys; print(*(name for name in sys.modules if 'distributed.' in name))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "\n"


def test_scoring_loads_nothing_that_measures() -> None:
    program = "import lmart.model, sys; print(*(name for name in sys.modules if name.startswith('lmart.reports')))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "\n"


@pytest.mark.slow
def test_too_little_memory_for_the_packages_is_one_line(tmp_path: Path) -> None:
    predict(tmp_path)
    (tmp_path / "sitecustomize.py").write_text(
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (200 << 20, 200 << 20))"
    )
    done = predict(tmp_path)
    (line,) = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (1, "")
    assert "not enough memory" in line


@pytest.mark.slow
@pytest.mark.parametrize(
    "mistake", ["raise AttributeError('ours')", "from lmart.errors import nothing", "import lmart.nothing", "1 / 0"]
)
def test_a_mistake_of_ours_keeps_its_traceback(tmp_path: Path, mistake: str) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'lmart.scoring.scorer':\n"
        "            import importlib.util\n"
        f"            return importlib.util.spec_from_file_location(name, {str(tmp_path / 'mistake.py')!r})\n"
        "sys.meta_path.insert(0, Finder())\n"
    )
    (tmp_path / "mistake.py").write_text(mistake)
    done = predict(tmp_path)
    assert done.returncode == 1
    assert "Traceback" in done.stderr and "mistake.py" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("given", [None, "3"])
def test_openblas_starts_no_threads_unless_it_is_told_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str | None
) -> None:
    """It would be one a processor, which lmart never uses."""
    predict(tmp_path)
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    (tmp_path / "numpy.py").write_text("import os\nraise ImportError(os.environ['OPENBLAS_NUM_THREADS'] + ' threads')")
    done = predict(tmp_path, **({} if given is None else {"OPENBLAS_NUM_THREADS": given}))
    assert f"({given or 1} threads)" in done.stderr


@pytest.mark.slow
def test_an_archive_runs_as_the_program_and_keeps_its_machine_code(tmp_path: Path) -> None:
    source = tmp_path / "source"
    shutil.copytree(ROOT / "lmart", source / "lmart", ignore=shutil.ignore_patterns("__pycache__"))
    zipapp.create_archive(source, tmp_path / "lmart.pyz", main="lmart.__main__:run")
    (tmp_path / "cache").mkdir(0o700)
    (tmp_path / "scores").write_text("0.5\n" * 600)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": ""}
    said = []
    for _ in range(2):
        line = [sys.executable, "lmart.pyz", "eval", "--data", str(SAMPLE / "test.svm"), "--scores", "scores"]
        done = subprocess.run(line, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
        assert "ndcg@10" in done.stdout and "cannot" not in done.stderr
        said.append(done.stderr)
    assert said[1] == ""
    printed = [sys.executable, "lmart.pyz", "--completion", "fish"]
    assert (
        "__lmart_complete" in subprocess.run(printed, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    )


def test_next_to_nothing_is_loaded_before_interrupts_are_answered() -> None:
    """Until `run` is called, Python answers an interrupt with a traceback."""
    program = "import sys; before = set(sys.modules); import lmart.__main__; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["__future__", "lmart", "lmart.__main__"]
