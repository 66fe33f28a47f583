"""Monotone constraints: features with which the score may only rise, or only fall."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers.commands import run
from helpers.datasets import dataset, random_dataset
from helpers.evaluation import strict
from helpers.score_data import score_dataset
from helpers.settings import tree_settings
from helpers.training_runs import SMALL, fit, learnable, refused, scores
from hypothesis import given
from hypothesis import strategies as st

from lmart.array_types import Float64Array
from lmart.constraints import MonotoneConstraints, is_list
from lmart.data.dataset import RankingDataset
from lmart.errors import DataError, SettingsError
from lmart.formats.models.lmart_json import model_to_json
from lmart.scoring.ensemble import Ensemble
from lmart.settings import TrainSettings
from lmart.threads import WorkerPool
from lmart.training.boosting import train

POOL = WorkerPool(1)
DATA = learnable(6)


pytestmark = pytest.mark.usefixtures("in_folder")


def along(ensemble: Ensemble, data: RankingDataset, column: int) -> Float64Array:
    """Score some documents with one feature at each of many values: float64[documents, values]."""
    dense = data.features.dense(data.n_features, 0.0)[:12]
    values = np.unique(np.concatenate([data.features.dense(data.n_features, 0.0)[:, column], [-1e9, 0.0, 1e9]]))
    values = values[~np.isnan(values)]
    grid = np.repeat(dense, len(values), axis=0)
    grid[:, column] = np.tile(values, len(dense))
    return score_dataset(ensemble, dataset([0] * len(grid), [0] * len(grid), grid), POOL).reshape(len(dense), -1)


@given(
    st.integers(0, 1000),
    st.lists(st.sampled_from([-1, 0, 1]), min_size=4, max_size=4),
    st.sampled_from([0.0, 3.0]),
    st.sampled_from([1.0, 0.6]),
    st.booleans(),
)
def test_scores_never_go_against_the_sign(
    seed: int, signs: list[int], l2: float, sample: float, with_missing: bool
) -> None:
    data = random_dataset(seed, n_queries=25, n_features=5)
    if with_missing:
        data.features.values[:: 7] = np.nan  # fmt: skip
    constraints = {str(column + 1): sign for column, sign in enumerate(signs) if sign}
    settings = TrainSettings(
        trees=8, leaves=24, min_docs=1, min_hessian=0, l2=l2, sample=sample, learning_rate=0.37,
        monotone=str(MonotoneConstraints(constraints)),
    )  # fmt: skip
    ensemble = train(data, [], settings, POOL).ensemble
    for column, sign in enumerate(signs):
        assert not sign or (np.diff(along(ensemble, data, column)) * sign >= 0).all()


def test_constraints_bind_where_the_data_says_otherwise() -> None:
    data = random_dataset(1, n_queries=60)
    settings = TrainSettings(trees=20, leaves=12, min_docs=2)
    free = train(data, [], settings, POOL)
    assert (np.diff(along(free.ensemble, data, 0)) < 0).any()
    with_it, against = (
        train(data, [], replace(settings, monotone=f"1:{sign}"), POOL) for sign in ("+1", "-1")
    )  # fmt: skip
    told = [one.training for one in (free, with_it, against)]
    assert told[0] is not None and told[1] is not None and told[2] is not None
    assert min(told[0], told[1]) > told[2] + 0.02  # labels rise with the feature
    rises = np.diff(along(with_it.ensemble, data, 0))
    assert (rises >= 0).all() and (rises > 0).any()
    assert not (np.diff(along(against.ensemble, data, 0)) > 0).any()


def test_a_constraint_that_the_data_keeps_by_itself_changes_nothing() -> None:
    labels = [0, 0, 1, 1, 2, 2, 3, 3]
    data = dataset(labels * 4, np.repeat(range(4), 8).tolist(), [[float(y)] for y in labels * 4])
    settings = TrainSettings(trees=5, leaves=2, min_docs=1, min_hessian=0)
    plain, kept = (train(data, [], replace(settings, monotone=text), POOL) for text in ("", "1:+1"))
    assert plain.scores.tolist() == kept.scores.tolist()
    turned = train(data, [], replace(settings, monotone="1:-1"), POOL)
    assert turned.stopped == "split" and turned.rounds == 0


def test_a_leaf_is_cut_to_the_middle_by_hand() -> None:
    """The sides of the first split have the values 0 and 3, so what lies above stays above 1.5."""
    from lmart.binning.binned_features import bin_features
    from lmart.binning.edges import fit_bin_edges
    from lmart.training.grower import GrowParams, Histograms, Units, grow_tree
    from lmart.training.grower.leaves import LocalLeaves

    data = dataset([0] * 8, ["q"] * 8, [[x, y] for x in (0.0, 1.0) for y in (0.0, 0.0, 1.0, 1.0)])
    edges = fit_bin_edges(data, 255, "zero", 1, 0, POOL)
    gradients = [1, 1, -1, -1, -6, -6, 0, 0]  # each of hessian 1
    packed = np.array([(g << 32) + 1 for g in gradients], np.int64)
    rows = np.arange(8, dtype=np.int32)
    settings = TrainSettings(leaves=4, min_docs=1, min_hessian=0, learning_rate=1.0)

    def values(signs: list[int] | None) -> dict[tuple[float, float], float]:
        leaves = LocalLeaves(bin_features(data, edges, 1, POOL), packed, rows.copy(), rows[:0], 1)
        given = None if signs is None else np.array(signs, np.int8)
        units, histograms = Units(1.0, 1.0, 1), Histograms(edges.n_bins)
        params = GrowParams(leaves, edges, units, tree_settings(settings), POOL, histograms, given)
        grown = grow_tree(params, leaves)
        assert grown is not None
        own = Ensemble((grown.tree,), data.feature_ids, None)
        found = score_dataset(own, data, POOL).tolist()
        return {(x, y): found[int(4 * x + 2 * y)] for x in (0.0, 1.0) for y in (0.0, 1.0)}

    assert values(None) == {(0, 0): -1, (0, 1): 1, (1, 0): 6, (1, 1): 0}
    assert values([1, 0]) == {(0, 0): -1, (0, 1): 1, (1, 0): 6, (1, 1): 1.5}
    assert values([0, -1]) == values(None) | {(0, 0): 0, (0, 1): 0}  # left of x the value would rise with y


def test_threads_and_growth_ahead_leave_no_trace() -> None:
    data = random_dataset(3, n_queries=2500)
    settings = TrainSettings(trees=4, leaves=31, monotone="1:+1,2:-1")
    models = set()
    for threads in (1, 3):
        with WorkerPool(threads) as pool:
            models.add(model_to_json(train(data, [], settings, pool).ensemble))
    assert len(models) == 1


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", {}),
        ("5:+1", {"5": 1}),
        ("5:1,6:-", {"5": 1, "6": -1}),
        ("price, net:-1,b:x:+", {"price, net": -1, "b:x": 1}),
    ],
)
def test_lists(text: str, found: dict[str, int]) -> None:
    constraints = MonotoneConstraints.parse(text)
    assert constraints.directions == found and MonotoneConstraints.parse(str(constraints)) == constraints
    assert is_list(text) == bool(found)


@pytest.mark.parametrize("text", ["5", "5:2", ":+1", "5:+1,5:-1", "m.txt", "5:+1,:-1", "5:+1," * 50 + "x"])
def test_what_is_no_list(text: str) -> None:
    with pytest.raises(SettingsError, match="monotone"):
        MonotoneConstraints.parse(text)


def test_an_unknown_feature_is_refused() -> None:
    with pytest.raises(DataError, match="there is no feature '99'"):
        train(random_dataset(1), [], TrainSettings(monotone="99:+1"), POOL)


# The command line


def test_a_list_or_a_file_of_it_the_model_is_the_same() -> None:
    by_list = fit(DATA, *SMALL, "--monotone", "1:+1,3:-1")
    Path("c").write_text("\ufeff# prices\n1:+1\r\n\n 3:-1 \n")
    assert fit(DATA, *SMALL, "--monotone", "c").data == by_list.data
    assert by_list.model["settings"]["monotone"] == by_list.report["settings"]["monotone"] == "1:+1,3:-1"
    found = scores("".join(f"0 qid:1 1:{x / 10} 2:1 3:0.5 7:1\n" for x in range(-20, 40)))
    assert found == sorted(found) and found[0] < found[-1]
    assert fit(DATA, *SMALL).data != by_list.data == fit(DATA, *SMALL, "--monotone", "1:1,3:-").data


def test_columns_are_known_by_name() -> None:
    lines = [line.split() for line in DATA.splitlines()]
    rows = [",".join([one[0], one[1][4:], *(cell.split(":")[1] for cell in one[2:])]) for one in lines]
    Path("d.csv").write_text("label,qid,good,so so,noise,same\n" + "\n".join(rows) + "\n")
    named = ("--monotone", "good:+1,so so:-1", "--folds", "2")
    run("train", "--data", "d.csv", "--out", "m.json", *SMALL, *named)
    grid = "".join(f"0,1,{x / 10},1,0.5,1\n" for x in range(-20, 40))
    Path("g.csv").write_text("label,qid,good,so so,noise,same\n" + grid)
    found = [float(line) for line in run("predict", "-m", "m.json", "--data", "g.csv").stdout.split()]
    assert found == sorted(found) and found[0] < found[-1]
    line = run("train", "--data", "d.csv", "--monotone", "bad:+1", "--out", "n.json", "-q", status=1).stderr
    assert line.startswith("lmart: error: d.csv: there is no feature 'bad'")


def test_the_command_line_of_a_search_has_them() -> None:
    pytest.importorskip("optuna")
    Path("d.svm").write_text(DATA)
    Path("c").write_text("1:+1\n3:-1\n")
    search = ("--folds", "2", "--tune-trials", "1", "--trees", "3", "--monotone", "c", "-q", "--out", "m")
    shown = run("train", "--data", "d.svm", *search).stdout
    assert " --monotone 1:+1,3:-1" in shown.splitlines()[-1]
    assert strict(Path("m").read_text())["settings"]["monotone"] == "1:+1,3:-1"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("1:+1\n2:up\n", "c:2: '2:up' is no constraint; give FEATURE:+1 or FEATURE:-1"),
        ("1:+1,2:-1\n", "c:1: '1:+1,2:-1' is no constraint"),
        ("1:+1\n\n1:-1\n", "c:3: feature '1' stands there twice"),
        ("# none\n", "c: holds no constraint"),
        ("4:+1\n", "d.svm: there is no feature '4'"),
    ],
)
def test_files_that_are_refused(content: str, said: str) -> None:
    Path("d.svm").write_text(DATA)
    Path("c").write_text(content)
    assert said in refused("--monotone", "c")
    assert "constraints.txt: there is no such file" in refused("--monotone", "constraints.txt")


def test_usage_that_is_refused() -> None:
    Path("d.svm").write_text("broken")
    assert "monotone names feature '1' twice" in refused("--monotone", "1:+1,1:-1", status=2)
    for broken in ("2:up", "1:+2", "1:+1,2", "a/b:", "x:\0", 5000 * "9" + ":up"):
        assert "is neither a list FEATURE:+1,FEATURE:-1,... nor a file" in refused("--monotone", broken, status=2)
    assert "only one input can be '-'" in refused("--monotone", "-", "--weights", "-", status=2)
