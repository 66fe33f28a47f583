"""lmart.evaluate and lmart.compare: the numbers of `lmart eval`, for scores from anywhere."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.commands import run
from helpers.paths import SAMPLE

import lmart
from lmart.errors import ArrayError, DataError, SettingsError
from lmart.measures import CHOICES, KINDS
from lmart.measures.presets import PRESETS

DATA, TEST = lmart.read(SAMPLE / "train.svm"), lmart.read(SAMPLE / "test.svm")
MODEL = lmart.train(DATA, trees=12, rankers=2)
Y = [2, 0, 1, 0, 1, 0]
QID = ["a", "a", "a", "b", "b", "b"]
OLD, NEW = [1, 2, 3, 5, 4, 1], [3, 1, 2, 1, 2, 3]
EVERY_MEASURE = ",".join(
    {"needed": f"{name}@3", "may be": f"{name},{name}@3", "none": name}[kind.cutoff] for name, kind in KINDS.items()
).replace("iprec", "iprec@0.5")
WITH_TIES = ",".join(name for name in EVERY_MEASURE.split(",") if not name.startswith("iprec"))
FORMS = "err@5(max=5),rbp(0.95),rbp(0.5,rel=2),map(rel=2),map@2,gmap@3,ndcg@2,f1@3"

# Keywords, and what they are on the command line.
OPTIONS: list[tuple[dict[str, Any], list[str]]] = [
    ({}, []),
    ({"metric": FORMS}, ["--metric", FORMS]),
    *(({name: word}, [f"--{name.replace('_', '-')}", word]) for name, words in CHOICES.items() for word in words
      if name in ("discount", "empty", "ties", "short", "p_divisor", "map_divisor", "unjudged", "precision")),
    *(({"like": like}, ["--like", like]) for like in PRESETS),
    ({"gain": "linear"}, ["--gain", "linear"]),
    ({"gain": [0, 1, 3, 7, 20]}, ["--gain", "0,1,3,7,20"]),
    ({"relevant": 2}, ["--relevant", "2"]),
    ({"like": "trec_eval", "gain": "exp2"}, ["--like", "trec_eval", "--gain", "exp2"]),
    ({"level": 0.8, "resamples": 99, "seed": 7}, ["--level", "0.8", "--resamples", "99", "--seed", "7"]),
    ({"flips": 500}, ["--flips", "500"]),
    ({"threads": 1}, ["--threads", "1"]),
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Judged documents with ids and ties, two files of scores, weights and groups."""
    folder = tmp_path_factory.mktemp("evaluation")
    rng = np.random.default_rng(4)
    sizes = rng.integers(1, 12, 30)
    lines: list[str] = []
    for q, size in enumerate(sizes):
        for _ in range(size):
            label = 0 if q == 3 else rng.integers(0, 5) * rng.integers(0, 2)
            lines.append(f"{label} qid:q{q} 1:{rng.integers(0, 9)} # d{len(lines) * 7919 % 1009}")
    (folder / "data.svm").write_text("".join(f"{line}\n" for line in lines))
    for name in ("old", "new"):
        scores = rng.integers(0, 5, len(lines)) / 4
        (folder / f"{name}.txt").write_text("".join(f"{score}\n" for score in scores))
    (folder / "query_weights.txt").write_text("".join(f"{1 + q % 3}\n" for q in range(len(sizes))))
    (folder / "row_weights.txt").write_text("".join(f"{1 + i % 4 / 4}\n" for i in range(len(lines))))
    (folder / "groups.tsv").write_text("".join(f"q{q}\t{'odd' if q % 2 else 'even'}\n" for q in range(20)))
    return folder


def column(path: Path) -> Any:
    return np.loadtxt(path)


def of_command(folder: Path, *arguments: str) -> Any:
    scores = [str(folder / "old.txt"), str(folder / "new.txt")]
    return json.loads(run("eval", "--data", folder / "data.svm", "--scores", *scores, "--json", *arguments).stdout)


def same(ours: lmart.Evaluation, theirs: Any) -> None:
    content = ours.to_json()
    for key in ("conventions", "queries", "documents", "empty_queries", "resampling"):
        assert content[key] == theirs[key], key
    for own, other in zip(content["systems"], theirs["systems"], strict=True):
        assert (own["metrics"], own["summary"]) == (other["metrics"], other["summary"])
    assert content["comparisons"] == [
        one | {name: one[name].removesuffix(".txt") for name in ("baseline", "system")} for one in theirs["comparisons"]
    ]
    groups = [
        [
            (one["group"], one["queries"], [own["metrics"] for own in one["systems"]])
            for one in evaluated.get("groups", ())
        ]
        for evaluated in (content, theirs)
    ]
    assert groups[0] == groups[1]


@pytest.mark.parametrize(("keywords", "arguments"), OPTIONS, ids=[" ".join(line) or "plain" for _, line in OPTIONS])
def test_every_measure_and_option_gives_the_numbers_of_the_command(
    folder: Path, keywords: dict[str, Any], arguments: list[str]
) -> None:
    averages = "average" in arguments or "sklearn" in arguments
    metric = WITH_TIES if averages else EVERY_MEASURE
    data = lmart.read(folder / "data.svm")
    scores = {name: column(folder / f"{name}.txt") for name in ("old", "new")}
    if "--metric" not in arguments:
        arguments = [*arguments, "--metric", metric]
    usual: dict[str, Any] = {"metric": metric, "resamples": 300, "flips": 500}
    found = lmart.evaluate(data, scores, **(usual | keywords))
    same(found, of_command(folder, "--resamples", "300", "--flips", "500", *arguments))


@pytest.mark.parametrize("weights", ["query_weights.txt", "row_weights.txt"])
def test_weights_and_groups_give_the_numbers_of_the_command(folder: Path, weights: str) -> None:
    data = lmart.read(folder / "data.svm")
    scores = {name: column(folder / f"{name}.txt") for name in ("old", "new")}
    groups = dict(line.split("\t") for line in (folder / "groups.tsv").read_text().splitlines())
    found = lmart.evaluate(data.labels, scores, data.qid, weights=column(folder / weights), by=groups)
    same(found, of_command(folder, "--weights", str(folder / weights), "--by", str(folder / "groups.tsv")))
    assert list(found.groups) == ["even", "odd", "(none)"]
    again = lmart.evaluate(data.with_metadata(weights=column(folder / weights)), scores, by=groups)
    assert again == found and again.to_json()["systems"] == found.to_json()["systems"]


def test_ids_of_documents_order_equal_scores(folder: Path) -> None:
    data = lmart.read(folder / "data.svm")
    scores = {name: column(folder / f"{name}.txt") for name in ("old", "new")}
    ids = data.document_ids
    found = lmart.evaluate(data.labels, scores, data.qid, document_ids=ids, ties="docid")
    same(found, of_command(folder, "--ties", "docid"))
    assert found != lmart.evaluate(data.labels, scores, data.qid, ties="docid")


def test_a_model_gives_the_numbers_of_the_command(tmp_path: Path) -> None:
    model = lmart.train(lmart.read(SAMPLE / "train.svm"), trees=10, rankers=1, gain="linear")
    model.save(tmp_path / "m.json")
    data = lmart.read(SAMPLE / "test.svm")
    found = model.evaluate(data, metric="ndcg@10,err@5,map", resamples=50, seed=3)
    arguments = ["--metric", "ndcg@10,err@5,map", "--resamples", "50", "--seed", "3", "--json"]
    content = json.loads(run("eval", "--data", SAMPLE / "test.svm", "-m", tmp_path / "m.json", *arguments).stdout)
    assert dict(found) == content["metrics"] and found.conventions == content["conventions"]
    assert {name: list(ends) for name, ends in found.intervals.items()} == {
        name: one["interval"] for name, one in content["systems"][0]["summary"].items()
    }
    of_scores = lmart.evaluate(data, model.predict(data), metric="ndcg@10,map", gain="linear")
    assert dict(of_scores) == {name: found[name] for name in ("ndcg@10", "map")}


def test_models_are_systems_of_their_own_gain(tmp_path: Path) -> None:
    train = lmart.read(SAMPLE / "train.svm")
    models = {f"m{k}": lmart.train(train, trees=k, rankers=1, gain="linear") for k in (2, 9)}
    for name, model in models.items():
        model.save(tmp_path / name)
    data = lmart.read(SAMPLE / "test.svm")
    found = lmart.evaluate(data, models, metric="ndcg@10,map").to_json()
    systems: list[str | Path] = ["-m", *(tmp_path / name for name in models), "--metric", "ndcg@10,map", "--json"]
    content = json.loads(run("eval", "--data", SAMPLE / "test.svm", *systems).stdout)
    for key in ("conventions", "comparisons", "resampling"):
        assert found[key] == content[key]
    assert [one["metrics"] for one in found["systems"]] == [one["metrics"] for one in content["systems"]]
    assert lmart.evaluate(data, models["m2"], metric="map") == models["m2"].evaluate(data, metric="map")
    with pytest.raises(lmart.ArrayError, match=r"give a lmart\.Dataset as y"):
        lmart.evaluate(data.labels, models, data.qid)
    other = lmart.train(train, trees=2, rankers=1)
    with pytest.raises(lmart.ModelError, match="say with gain which one to measure with"):
        lmart.evaluate(data, models | {"other": other})


# ---- what it takes


def test_documents_without_a_label_are_not_judged() -> None:
    y = [math.nan, 0.0, 1.0, 0.0, 1.0, math.nan]
    metric = "judged@2,mrr,map"
    plain = lmart.evaluate(y, OLD, QID, metric)
    assert plain["judged@2"] == 1.0 and lmart.evaluate(y, NEW, QID, metric)["judged@2"] == 0.5
    assert lmart.evaluate(y, NEW, QID, "mrr") == {"mrr": 0.5}
    assert lmart.evaluate(y, NEW, QID, "mrr,judged@2", unjudged="remove") == {"mrr": 1.0, "judged@2": 1.0}


def test_one_system_has_numbers_and_several_have_names() -> None:
    one = lmart.evaluate(Y, OLD, QID, "mrr,p@1")
    assert one == {"mrr": pytest.approx((0.5 + 0.5) / 2), "p@1": 0.5} or one["p@1"] == 0.5
    assert one.systems == ("scores",) and one.query_ids == ["a", "b"] and len(one.per_query["mrr"]) == 2
    both = lmart.evaluate(Y, {"old": OLD, "new": NEW}, QID, ["mrr", "p@1"])
    assert both.systems == ("old", "new") and both["mrr"]["old"] == one["mrr"]
    assert list(both.per_query["mrr"]["old"]) == list(one.per_query["mrr"])
    low, high = both.intervals["p@1"]["new"]
    assert 0 <= low <= both["p@1"]["new"] <= high <= 1
    with pytest.raises(KeyError):
        both["ndcg@10"]


def test_comparisons_are_those_of_the_evaluation() -> None:
    systems = {"old": OLD, "new": NEW, "other": [1] * 6}
    found = lmart.compare(Y, systems, QID, "mrr,map", all_pairs=True)
    assert [(one.measure, one.system, one.baseline) for one in found][:3] == [
        ("mrr", "new", "old"), ("mrr", "other", "old"), ("mrr", "other", "new"),
    ]  # fmt: skip
    evaluation = lmart.evaluate(Y, systems, QID, "mrr,map")
    assert evaluation.compare(all_pairs=True).to_json() == found.to_json()
    assert found[0].difference == evaluation["mrr"]["new"] - evaluation["mrr"]["old"]
    with pytest.raises(ValueError, match="two systems or more"):
        lmart.compare(Y, OLD, QID)


@pytest.mark.parametrize(
    ("y", "scores", "qid", "said"),
    [
        (Y, OLD[:-1], QID, "scores has 5 entries for 6 documents"),
        (Y, {"a": OLD, "b": [*OLD[:-1], math.nan]}, QID, "entry 5 \\(from 0\\) of scores of 'b' is nan"),
        (Y, np.zeros((6, 2)), QID, "several columns; give systems by name"),
        (Y, {}, QID, "holds no system"),
        (Y, {1: OLD, "1": NEW}, QID, "two systems are named '1'"),
        (Y, OLD, None, "which rows are a query is not given"),
        (Y, OLD, ["a", "b"] * 3, "row 2"),
        ([-1, *Y[1:]], OLD, QID, "label of row 0"),
    ],
)
def test_columns_that_do_not_fit_are_refused(y: Any, scores: Any, qid: Any, said: str) -> None:
    with pytest.raises(lmart.ArrayError, match=said):
        lmart.evaluate(y, scores, qid)


def test_settings_that_do_not_exist_are_refused() -> None:
    with pytest.raises(lmart.SettingsError, match="'ndgc@10' is no measure"):
        lmart.evaluate(Y, OLD, QID, "ndgc@10")
    with pytest.raises(lmart.SettingsError, match="ties is 'docids'; use"):
        lmart.evaluate(Y, OLD, QID, ties="docids")
    with pytest.raises(lmart.SettingsError, match="level is 2"):
        lmart.evaluate(Y, OLD, QID, level=2)


# ---- tables


def test_tables_for_latex_notebooks_and_terminals() -> None:
    both = lmart.evaluate(Y, {"a_b": OLD, "<new>": NEW}, QID, "p@1,map")
    latex = both.to_latex()
    assert latex.startswith("\\begin{tabular}{lrr}\n\\toprule\nsystem & p@1 & map \\\\\n\\midrule\na\\_b & ")
    assert "\\textbf{" in latex and latex.endswith("\\bottomrule\n\\end{tabular}\n")
    assert "&lt;new&gt;" in both._repr_html_() and "<b>" in both._repr_html_()
    lines = repr(both).splitlines()
    assert lines[0].split() == ["system", "p@1", "map"] and lines[1].startswith("a_b")
    compared = both.compare()
    assert repr(compared).splitlines()[0].split()[:4] == ["measure", "system", "baseline", "difference"]
    assert "<table>" in compared._repr_html_()
    assert "p holm" not in compared.to_latex()  # a single comparison of each measure needs no adjusted p
    three = lmart.compare(Y, {"a": OLD, "b": NEW, "c": Y}, QID, metric="map")
    for text in (three.to_latex(), repr(three), three._repr_html_()):
        assert "p holm" in text


@pytest.mark.peers
def test_dataframes() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"qid": QID, "label": Y, "old": OLD, "new": NEW})
    found = lmart.evaluate(frame["label"], frame[["old", "new"]], frame["qid"], "mrr,map")
    assert found == lmart.evaluate(Y, {"old": OLD, "new": NEW}, QID, "mrr,map")
    table = found.to_dataframe()
    assert list(table.columns) == ["system", "measure", "mean", "low", "high", "median", "std", "queries"]
    assert table.set_index(["system", "measure"]).loc[("new", "mrr"), "mean"] == found["mrr"]["new"]
    per_query = found.to_dataframe(per_query=True)
    assert list(per_query.columns) == ["qid", "system", "mrr", "map"] and len(per_query) == 4
    compared = found.compare().to_dataframe()
    assert compared["difference"].tolist() == [one.difference for one in found.compare()]
    polars = pytest.importorskip("polars")
    own = polars.DataFrame({"qid": QID, "label": Y, "old": OLD, "new": NEW})
    assert lmart.evaluate(own["label"], own.select("old", "new"), own["qid"], "mrr,map") == found


@pytest.mark.parametrize("options", [(), ("--empty", "skip"), ("--empty", "one", "--ties", "average")])
def test_measures_of_a_model_are_those_of_eval(options: tuple[str, ...], tmp_path: Path) -> None:
    MODEL.save(tmp_path / "m.json")
    metric = "ndcg@1,ndcg@10,map,mrr,err@5,dcg@3,rbp"
    arguments = ("--data", str(SAMPLE / "test.svm"), "--metric", metric, "--json", *options)
    expected = json.loads(run("eval", "-m", tmp_path / "m.json", *arguments).stdout)["metrics"]
    given: Any = dict(zip([one[2:] for one in options[::2]], options[1::2], strict=True))
    assert MODEL.evaluate(TEST, metric=metric, **given) == expected
    assert MODEL.evaluate(TEST.to_numpy(), TEST.labels, TEST.qid, metric, **given) == expected


@pytest.mark.parametrize(
    "given",
    [
        {"like": "xgboost", "relevant": 2, "precision": "double"},
        {"like": "sklearn", "gain": [0.0, 1.0, 2.0, 5.0, 9.0]},
        {"like": "trec_eval", "ties": "reverse"},
        {"gain": "linear", "discount": "letor", "short": "zero", "p_divisor": "length", "map_divisor": "k"},
    ],
)
def test_conventions_of_a_model_are_those_of_eval(given: dict[str, Any], tmp_path: Path) -> None:
    MODEL.save(tmp_path / "m.json")
    metric = "ndcg@3,ndcg@10,map@10,p@10,dcg"
    options: list[str] = []
    for name, value in given.items():
        text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
        options += ["--" + name.replace("_", "-"), text]
    arguments = ("--data", str(SAMPLE / "test.svm"), "--metric", metric, "--json", *options)
    expected = json.loads(run("eval", "-m", tmp_path / "m.json", *arguments).stdout)["metrics"]
    assert MODEL.evaluate(TEST, metric=metric, **given) == expected != MODEL.evaluate(TEST, metric=metric)


def test_messages_of_a_model_are_those_of_eval(tmp_path: Path) -> None:
    """Rows count as in the file, where those of a query need not stand together."""
    (tmp_path / "apart.svm").write_text("1 qid:1 1:1\n0 qid:2 1:2\n7 qid:1 1:0\n9 qid:2 1:1\n")
    apart = lmart.read(tmp_path / "apart.svm", group_by_qid=True)
    with pytest.raises(DataError, match=r"row 3 has the label 7, above the largest label 5 of err"):
        MODEL.evaluate(apart, metric="err(max=5)")
    limited = lmart.train(DATA, trees=3, metric="err(max=6)")
    with pytest.warns(UserWarning, match="the data has labels above 6, the largest of err in training") as told:
        limited.evaluate(apart, metric="err")
    assert told[0].filename == __file__
    high = np.array([0.0, 40.0])
    with pytest.warns(UserWarning, match="labels go up to 40") as told:
        MODEL.evaluate(np.zeros((2, MODEL.ensemble.n_features)), high, [1, 1])
    assert told[0].filename == __file__


@pytest.mark.parametrize("given", [{"ties": "first"}, {"empty": "two"}, {"metric": "best"}])
def test_measures_that_there_are_not_are_refused(given: dict[str, str]) -> None:
    with pytest.raises(SettingsError, match=next(iter(given.values()))):
        MODEL.evaluate(TEST, **given)  # type: ignore[arg-type]


def test_weights_of_a_dataset_count_in_measures(tmp_path: Path) -> None:
    weights = [float(q % 3) for q in range(TEST.n_queries)]
    (tmp_path / "w").write_text("".join(f"{one}\n" for one in weights))
    MODEL.save(tmp_path / "m.json")
    arguments = ("--data", str(SAMPLE / "test.svm"), "--weights", str(tmp_path / "w"), "--metric", "map", "--json")
    expected = json.loads(run("eval", "-m", tmp_path / "m.json", *arguments).stdout)["metrics"]
    assert MODEL.evaluate(TEST.with_metadata(weights=weights), metric="map") == expected


def test_the_gain_and_the_largest_label_are_those_of_the_training() -> None:
    linear = lmart.train(DATA, trees=3, gain="linear", metric="err(max=9)")
    assert linear.evaluate(TEST) != lmart.train(DATA, trees=3).evaluate(TEST)
    ((_, value),) = linear.evaluate(TEST, metric="err").items()
    assert linear.settings["largest_label"] == 9
    assert [value] == list(linear.evaluate(TEST, metric="err(max=9)").values())
    assert [value] != list(lmart.train(DATA, trees=3, gain="linear").evaluate(TEST, metric="err").values())


def test_what_cannot_be_evaluated() -> None:
    with pytest.raises(SettingsError, match="'nothing' is no measure"):
        MODEL.evaluate(TEST, metric="nothing")
    with pytest.raises(ArrayError, match="a Dataset has its own y and qid"):
        MODEL.evaluate(TEST, TEST.labels)
    with pytest.raises(ArrayError, match="which rows are a query"):
        MODEL.evaluate(TEST.to_numpy(), TEST.labels)


def test_a_model_that_does_not_know_its_gain_is_measured_with_exp2(tmp_path: Path) -> None:
    known = lmart.train(DATA, trees=3)
    unknown = lmart.Model(dataclasses.replace(known.ensemble, gain=None))
    assert unknown.evaluate(TEST) == known.evaluate(TEST)
    unknown.save(tmp_path / "own.json")
    assert lmart.load(tmp_path / "own.json").ensemble.gain is None
