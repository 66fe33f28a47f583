"""The same model on any processor: machine code for the plainest one, and no machine code at all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.commands import PROGRAM, start
from helpers.paths import SAMPLE, TESTS
from helpers.training_runs import learnable

pytestmark = pytest.mark.slow
SETTINGS = ("--trees", "3", "--sample", "0.5", "--min-docs", "5", "--quiet")


def model(data: Path, out: Path, **environment: str) -> bytes:
    command = [*PROGRAM, "train", "--data", str(data), "--out", str(out), *SETTINGS]
    subprocess.run(command, env={**os.environ, **environment}, check=True)
    return out.read_bytes()


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("few") / "few.svm"
    path.write_text("".join(SAMPLE.joinpath("train.svm").read_text().splitlines(keepends=True)[:300]))
    return path


def test_plain_python_gives_the_same_bytes(few: Path, tmp_path: Path) -> None:
    assert model(few, tmp_path / "a.json") == model(few, tmp_path / "b.json", NUMBA_DISABLE_JIT="1")


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What makes numba compile for the plainest processor, and keep that code in a folder of its own."""
    folder = tmp_path_factory.mktemp("plain")
    return {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": str(folder)}


def test_a_plain_processor_gives_the_same_bytes(few: Path, tmp_path: Path, plain: dict[str, str]) -> None:
    assert model(few, tmp_path / "a.json") == model(few, tmp_path / "b.json", **plain)


GRADIENTS = """
import numpy as np
from helpers.datasets import random_dataset
from helpers.settings import prepare
from lmart.settings import OBJECTIVES, TrainSettings
from lmart.threads import WorkerPool

data = random_dataset(7, n_queries=5)
scores = np.linspace(-3, 900, data.n_documents)
for name in OBJECTIVES:
    for array in prepare(data, TrainSettings(objective=name), WorkerPool(1)).compute_gradients(scores):
        print(array.tobytes().hex())
"""


def gradients(**environment: str) -> bytes:
    """Return the gradients and hessians of every objective."""
    settings = {**os.environ, "PYTHONPATH": str(TESTS), **environment}
    return subprocess.run([sys.executable, "-c", GRADIENTS], env=settings, check=True, capture_output=True).stdout


def test_every_objective_has_the_same_bits(plain: dict[str, str]) -> None:
    found = gradients()
    assert found == gradients(NUMBA_DISABLE_JIT="1") == gradients(**plain) and len(found) > 1000


@pytest.mark.parametrize("layer", ["workqueue", "omp", "tbb"])
def test_the_threads_of_numba_do_not_matter(few: Path, tmp_path: Path, layer: str) -> None:
    """Whichever are installed, and however many are asked for: lmart has its own."""
    threads = {"NUMBA_THREADING_LAYER": layer, "NUMBA_NUM_THREADS": "1"}
    assert model(few, tmp_path / "a.json") == model(few, tmp_path / "b.json", **threads)


def test_folder_locale_threads_and_hash_seed_do_not_matter(in_folder: Path) -> None:
    Path("d.svm").write_text(learnable())
    Path("v.svm").write_text(learnable(2))
    options = ("--valid", "../v.svm", "--early-stop", "4", "--sample", "0.7", "--trees", "20", "--min-docs", "3")
    files, reports = set(), []
    surroundings = [("1", "0", "C"), ("2", "1", "C.UTF-8"), ("3", "2", "tr_TR.UTF-8"), ("8", "3", "C")]
    for threads, seed, locale in surroundings:
        folder = in_folder / f"folder {seed}"
        folder.mkdir()
        with start(
            *("train", "--data", "../d.svm", "--threads", threads, "--report", "r.json", *options),
            folder=folder,
            environment={"PYTHONHASHSEED": seed, "LC_ALL": locale, "TZ": f"UTC-{seed}", "COLUMNS": "20"},
        ) as process:
            process.communicate()
        assert process.returncode == 0
        files.add((folder / "model.json").read_bytes())
        report = json.loads((folder / "r.json").read_text())
        assert set(report.pop("seconds")) == {"reading", "binning", "growing"}
        assert report.pop("run")["version"]
        reports.append(json.dumps(report))
    assert len(files) == 1 and len(set(reports)) == 1
