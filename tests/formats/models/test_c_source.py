"""C source: compiled, it scores every row to the same bits as lmart."""

from __future__ import annotations

import ctypes
import math
import random
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers.compiled_c import CC, NEEDS_CC, STRICT, c_scores, compiled
from helpers.float32_rows import scores
from helpers.trees import THRESHOLDS, around, grow, with_bounds

from lmart.data.categories import Categories
from lmart.formats.models import c_source
from lmart.scoring.ensemble import Ensemble, Tree

pytestmark = NEEDS_CC


def as_float32(tree: Tree) -> Tree:
    return replace(tree, leaf_values=tree.leaf_values.astype(np.float32).astype(np.float64))


def model(seed: int, n_trees: int, change: Callable[[random.Random, Tree], Tree]) -> Ensemble:
    rng = random.Random(seed)
    shapes = ("random", "chain", "level")
    trees = [grow(rng, rng.choice((1, 2, 5, 20)), range(4), THRESHOLDS, rng.choice(shapes)) for _ in range(n_trees)]
    return Ensemble(tuple(change(rng, tree) for tree in trees), np.array([1, 3, 7, 2**60]), base_score=0.1)


MODELS = {
    "plain": model(1, 20, lambda _, tree: tree),
    "one tree": model(2, 1, lambda _, tree: tree),
    "nine trees": model(3, 9, lambda _, tree: tree),
    "no tree": Ensemble((), np.array([1]), base_score=-0.5),
    "no feature": Ensemble(model(4, 1, lambda _, tree: replace(tree, leaf_values=np.ones(1))).trees[:0], np.arange(0)),
    "several bounds": model(5, 20, with_bounds),
    "categories": replace(
        model(9, 20, lambda _, tree: tree),
        categories=(Categories(0, (3, -1, 0, 7), 2), Categories(2, ("b", 'a"', "c"), 0)),
    ),
    "float32 sums": replace(model(6, 20, lambda _, tree: as_float32(tree)), sums="float32", base_score=0.5),
    "average": replace(model(7, 7, lambda _, tree: tree), average=True, absent="missing"),
    "all": replace(
        model(8, 17, lambda rng, tree: with_bounds(rng, as_float32(tree))), sums="float32", base_score=0.5, average=True
    ),
}


@pytest.mark.parametrize("case", MODELS)
def test_scores_are_equal_to_the_last_bit(case: str, tmp_path: Path) -> None:
    ensemble = MODELS[case]
    rng = random.Random(9)
    near = around(THRESHOLDS)
    values = np.array([[rng.choice(near) for _ in range(ensemble.n_features)] for _ in range(500)])
    values = values.reshape(500, ensemble.n_features)
    found = c_scores(compiled(ensemble, tmp_path), values)
    assert [score.hex() for score in found] == [score.hex() for score in scores(ensemble, values)]


HOSTILE = ('a"); } int x = 1; //', "*/ int y;", "??/", "line\nend\\", "%s%n", "", "é\ud800\x00", "1\\", "a" * 300)


def test_no_feature_name_is_more_than_a_text(tmp_path: Path) -> None:
    ensemble = Ensemble((grow(random.Random(1), 5, range(9), [0.5]),), np.arange(9), HOSTILE)
    library = compiled(ensemble, tmp_path)
    names = (ctypes.c_char_p * 9).in_dll(library, "lmart_feature_names")
    expected = [name.encode("utf-8", "surrogatepass").split(b"\0")[0] for name in HOSTILE]
    assert list(names) == expected
    assert list((ctypes.c_int64 * 9).in_dll(library, "lmart_feature_ids")) == list(range(9))
    c_source.write(ensemble).content.decode("ascii")


def test_the_program_scores_lines_and_refuses_wrong_ones(tmp_path: Path) -> None:
    ensemble = MODELS["plain"]
    (tmp_path / "model.c").write_bytes(c_source.write(ensemble).content)
    assert CC is not None
    program = tmp_path / "score"
    subprocess.run([CC, *STRICT, "-DLMART_MAIN", "-o", program, tmp_path / "model.c"], check=True)

    def run(text: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([program], input=text, capture_output=True, text=True, check=False)

    values = np.array([[0.5, 1.0, math.nan, -3.5], [1e300, 0.0, 2.5, 1.0]])
    lines = "\n".join(" ".join(map(repr, row)) for row in values.tolist())
    done = run(lines)
    assert (done.returncode, done.stderr) == (0, "")
    assert [float(line) for line in done.stdout.splitlines()] == scores(ensemble, values)
    assert run(lines + "\n").stdout == done.stdout
    assert "line 1: 3 numbers, not 4" in run("1 2 3\n").stderr
    assert "line 2: more than 4 numbers" in run("1 2 3 4\n1 2 3 4 5\n").stderr
    assert "line 1: 'x' is no number" in run("1 2 3 x\n").stderr
    assert "a number is too long" in run("1" * 600).stderr


def test_unsafe_floating_point_is_not_compiled(tmp_path: Path) -> None:
    (tmp_path / "model.c").write_bytes(c_source.write(MODELS["one tree"]).content)
    assert CC is not None
    command = [CC, "-O2", "-ffast-math", "-c", "-o", str(tmp_path / "model.o"), str(tmp_path / "model.c")]
    assert b"scores would change with -ffast-math" in subprocess.run(command, capture_output=True, check=False).stderr


@pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")
def test_it_is_also_valid_in_cpp(tmp_path: Path) -> None:
    (tmp_path / "model.cpp").write_bytes(c_source.write(MODELS["all"]).content)
    target = tmp_path / "model.so"
    command = [
        "c++",
        "-std=c++17",
        "-O2",
        "-Wall",
        "-Werror",
        "-shared",
        "-fPIC",
        "-o",
        str(target),
        str(tmp_path / "model.cpp"),
    ]
    subprocess.run(command, check=True)
    library = ctypes.CDLL(str(target))
    assert (ctypes.c_int64 * 4).in_dll(library, "lmart_feature_ids")[3] == 2**60
    library.lmart_score.restype = ctypes.c_double
    values = np.array([[0.5, 1.0, math.nan, -3.5]])
    assert c_scores(library, values) == scores(MODELS["all"], values)
