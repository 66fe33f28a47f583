"""Pictures of models: what is drawn is what the model says."""

from __future__ import annotations

import builtins
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.commands import run

import lmart
from lmart.errors import LmartError

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("agg")
import lmart.plot  # noqa: E402

SAMPLE = Path("data/sample/train.svm")


@pytest.fixture(scope="module")
def model() -> lmart.Model:
    return lmart.train(lmart.read(SAMPLE), trees=8, leaves=6)


@pytest.fixture
def axes() -> Any:
    from matplotlib.figure import Figure

    return Figure().subplots()


def test_bars_are_the_importance_of_features(model: lmart.Model, axes: Any) -> None:
    assert lmart.plot.importance(model, top=4, ax=axes) is axes
    drawn = {
        text.get_text(): bar.get_width() for text, bar in zip(axes.get_yticklabels(), axes.containers[0], strict=True)
    }
    assert drawn == dict(list(model.importance().items())[:4])
    assert list(drawn.values()) == sorted(drawn.values())  # the last one stands at the top


def test_partial_dependence_is_the_mean_score_at_each_value(model: lmart.Model, axes: Any) -> None:
    data = lmart.read(SAMPLE)
    lmart.plot.partial_dependence(model, data, 11, rows=10_000, ax=axes)
    values, means = axes.lines[0].get_data()
    table = dense(SAMPLE)
    column = model.feature_ids.index(11)
    for value, mean in zip(values[::5], means[::5], strict=True):
        table[:, column] = value
        assert model.predict(table).mean() == pytest.approx(mean, abs=1e-12)


def test_a_tree_has_its_conditions_and_leaves(model: lmart.Model, axes: Any) -> None:
    lmart.plot.tree(model, 2, ax=axes)
    drawn = model.ensemble.trees[1]
    texts = [text.get_text() for text in axes.texts]
    assert sum("<=" in text for text in texts) == len(drawn.thresholds)
    leaves = [float(text) for text in texts if "<=" not in text]
    assert sorted(leaves) == pytest.approx(sorted(drawn.leaf_values.tolist()), rel=1e-3)


def dense(path: Path) -> Any:
    """Return the features of a LETOR file whose rows name all of them, by ascending index."""
    lines = path.read_text().splitlines()
    cells = [dict(cell.split(":") for cell in line.split("#")[0].split()[2:]) for line in lines]
    indices = sorted({int(index) for row in cells for index in row})
    return np.array([[float(row.get(str(index), 0)) for index in indices] for row in cells])


def test_a_history_has_a_line_for_each_set_of_each_ranker(tmp_path: Path, axes: Any) -> None:
    report, settings = tmp_path / "run.json", ("--trees", "9", "--rankers", "2", "-q")
    run(
        "train",
        "--data",
        SAMPLE,
        "--valid",
        "data/sample/vali.svm",
        *settings,
        "--report",
        report,
        "-o",
        tmp_path / "m",
    )
    lmart.plot.history(report, ax=axes)
    said = json.loads(report.read_text())
    lines = [line for line in axes.lines if line.get_marker() != "o"]
    assert sum(len(line.get_xdata()) for line in lines) == 2 * len(said["rounds"])
    assert len(lines) == 2 * 2 and axes.get_ylabel() == "ndcg@10"


def test_each_of_several_measures_has_a_history(axes: Any) -> None:
    history = lmart.train(lmart.read(SAMPLE), trees=4, rankers=1, metric="map,mrr").history
    assert history is not None
    lmart.plot.history(history, metric="mrr", ax=axes)
    (curve,) = history.rankers[0].further["mrr"]
    assert axes.get_ylabel() == "mrr" and list(axes.lines[0].get_ydata()) == list(curve.values)
    with pytest.raises(ValueError, match="did not measure 'ndcg', but map, mrr"):
        lmart.plot.history(history, metric="ndcg", ax=axes)


@pytest.mark.parametrize(("call", "said"), [("tree", "trees of the model are 1 to 8"), ("feature", "no feature 'x'")])
def test_what_is_not_there_is_refused(model: lmart.Model, call: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        if call == "tree":
            lmart.plot.tree(model, 9)
        else:
            lmart.plot.partial_dependence(model, lmart.read(SAMPLE), "x")


def test_says_which_package_is_missing(model: lmart.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    original = builtins.__import__

    def without_matplotlib(name: str, *arguments: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return original(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", without_matplotlib)
    with pytest.raises(LmartError, match="needs the package matplotlib"):
        lmart.plot.tree(model)


def test_a_history_is_that_of_a_model(model: lmart.Model, axes: Any) -> None:
    lmart.plot.history(model, ax=axes)
    assert model.history is not None and len(axes.lines) == len(model.history.rankers)
    assert axes.lines[0].get_ydata().tolist() == list(model.history.rankers[0].curves[0].values)
    with pytest.raises(ValueError, match="no history"):
        lmart.plot.history(lmart.Model(model.ensemble))


def test_contributions_are_those_that_explain_gives(model: lmart.Model, axes: Any) -> None:
    data = lmart.read(SAMPLE)
    lmart.plot.contributions(model, data, 11, rows=10_000, ax=axes)
    values, drawn = axes.lines[-1].get_data()
    column = model.feature_ids.index(11)
    np.testing.assert_array_equal(values, dense(SAMPLE)[:, column])
    np.testing.assert_array_equal(drawn, model.explain(data).contributions[:, column])
    lmart.plot.contributions(model, data, 11, rows=50, ax=axes)
    assert len(axes.lines[-1].get_xdata()) == 50


def test_ndcg_is_that_of_evaluate_at_each_cutoff(model: lmart.Model, axes: Any) -> None:
    data = lmart.read("data/sample/test.svm")
    systems = {"model": model.predict(data), "first": data.to_numpy()[:, 0]}
    assert lmart.plot.ndcg(data.labels, systems, data.qid, cutoffs=7, like="lightgbm", ax=axes) is axes
    names = [f"ndcg@{k}" for k in range(1, 8)]
    found = lmart.evaluate(data.labels, systems, data.qid, names, like="lightgbm")
    assert [line.get_label() for line in axes.lines] == list(systems)
    for line in axes.lines:
        places, means = map(np.asarray, line.get_data())
        assert places.tolist() == list(range(1, 8))
        assert means.tolist() == [found[name][line.get_label()] for name in names]
    low = np.asarray(axes.collections[0].get_paths()[0].vertices)[:, 1].min()
    assert low == pytest.approx(min(found.intervals[name]["model"][0] for name in names))
    with pytest.raises(ValueError, match="cutoffs is 0"):
        lmart.plot.ndcg(data.labels, systems, data.qid, cutoffs=0)
