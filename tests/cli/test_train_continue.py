"""lmart train --continue-from: the same bytes as one run, models of other tools, and what cannot be."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.commands import run
from helpers.evaluation import strict
from helpers.training_runs import Run, evaluated, fit, learnable, refused, scores

from lmart.formats.models.lmart_json import model_to_json
from lmart.formats.models.model_files import read_model
from lmart.formats.models.targets import one_leaf
from lmart.scoring.ensemble import Ensemble

DATA = learnable()
OTHER = learnable(2, n_queries=8)
ONE = ("--rankers", "1", "--leaves", "8", "--min-docs", "2")

pytestmark = pytest.mark.usefixtures("in_folder")


def kept(one: Run, name: str = "a.json") -> Run:
    """Keep the model of a run under a name that later runs do not overwrite."""
    Path(name).write_bytes(one.data)
    return one


def first(*options: str, trees: int = 4, data: str = DATA) -> Run:
    return kept(fit(data, *ONE, "--trees", str(trees), *options))


def go_on(*options: str, trees: int = 6, data: str = DATA, model: str = "a.json") -> Run:
    return fit(data, *ONE, "--trees", str(trees), "--continue-from", model, *options)


def differences(one: Run) -> list[str]:
    listed: list[str] = one.report["continued_from"]["differences"]
    return listed


# The same bytes as one run


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--tree", "oblivious"],
        ["--objective", "xendcg"],
        ["--objective", "yetirank", "--seed", "5"],
        ["--sample", "0.5", "--features", "0.5"],
        ["--absent", "missing", "--monotone", "1:+1"],
        ["--metric", "err"],
        ["--group-by-qid"],
    ],
    ids=str,
)
def test_going_on_gives_the_bytes_of_one_run(options: list[str]) -> None:
    whole = fit(DATA, *ONE, "--trees", "10", *options)
    first(*options)
    rest = go_on(*options)
    assert rest.data == whole.data
    assert rest.report["continued_from"] == {"model": "a.json", "trees": 4, "differences": []}
    assert any(line.endswith("going on from a.json with 4 trees") for line in rest.said)
    assert rest.report["training"] == whole.report["training"]
    assert [one["training"] for one in rest.report["rounds"]] == [one["training"] for one in whole.report["rounds"][4:]]


@pytest.mark.parametrize("through", ["file", "pipe"])
def test_data_beyond_the_sample_of_rows_is_scored_once(through: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lmart.binning.edge_sample.SAMPLE_LIMIT", 60)
    monkeypatch.setattr("lmart.formats.documents.text_reader.BLOCK", 1 << 14)
    large = learnable(n_queries=400)  # of more bytes than the first block has
    assert len(large) > 100_000
    whole = fit(large, *ONE, "--trees", "10")
    first(data=large)
    if through == "file":
        assert go_on(data=large).data == whole.data
        return
    options = ("--data", "-", *ONE, "--trees", "6", "--continue-from", "a.json", "--out", "m", "-qq")
    run("train", *options, stdin=large)
    assert Path("m").read_bytes() == whole.data


def test_it_may_go_on_several_times_from_standard_input_or_a_compressed_file() -> None:
    whole = fit(DATA, *ONE, "--trees", "9")
    first(trees=3)
    run("convert", "a.json", "b.json.gz")
    kept(go_on(trees=3, model="b.json.gz"), "c.json")
    Path("d.svm").write_text(DATA)
    given = Path("c.json").read_bytes()
    run("train", "--data", "d.svm", *ONE, "--trees", "3", "--continue-from", "-", "-o", "m", "-qq", stdin=given)
    assert Path("m").read_bytes() == whole.data


@pytest.mark.parametrize("extension", ["csv", "tsv"])
def test_tables_go_on_by_name(extension: str) -> None:
    Path("a.svm").write_text(DATA)
    Path("f").write_text("1 bm25\n2 age\n3 chance\n7 constant\n")
    run("convert", "a.svm", f"t.{extension}")
    table = Path(f"t.{extension}")
    table.write_text(re.sub(r"\b1(.)2(.)3(.)7\b", r"b\1a\2c\3k", table.read_text(), count=1))
    for trees, out, more in ((5, "whole", []), (2, "a", []), (3, "rest", ["--continue-from", "a"])):
        run("train", "--data", table, *ONE, "--trees", str(trees), "-o", out, *more, "-qq")
    assert Path("rest").read_bytes() == Path("whole").read_bytes()
    assert json.loads(Path("rest").read_text())["feature_names"] == ["b", "a", "c", "k"]


def test_early_stopping_continues_to_the_best_round() -> None:
    Path("v").write_text(OTHER)
    slow = ("--learning-rate", "0.03", "--leaves", "3")
    first(*slow)
    one = go_on("--valid", "v", "--early-stop", "5", "--metric", "map", *slow, trees=40)
    trees = one.report["best_round"]
    measures = [one.report["start"]["validation"][0], *(r["validation"][0] for r in one.report["rounds"])]
    assert measures[trees] == max(measures) and trees > 0
    assert one.report["rankers"][0]["first_tree"] == 5
    assert len(one.model["trees"]) == 4 + trees
    assert evaluated("v", "--metric", "map") == one.report["validation"][0] == measures[trees]
    assert one.model["trees"] == fit(DATA, *ONE, "--trees", str(4 + trees), *slow).model["trees"]
    assert "continued_from" not in one.model["settings"]  # as other trees are not wanted, only fewer
    assert differences(one) == ["metric is map, in the model ndcg@10", "early_stop is 5, in the model 0"]


def test_no_tree_is_added_when_the_model_alone_is_best() -> None:
    Path("v").write_text(OTHER)
    before = first(trees=20)
    one = go_on("--valid", "v", "--early-stop", "2", "--learning-rate", "1000000", "--metric", "map")
    assert one.model["trees"] == before.model["trees"]
    assert [line for line in one.warnings if "so no tree is added to the model" in line]
    assert any("wrote 20 trees, 0 of them new (best of" in line for line in one.said)
    assert evaluated("v", "--metric", "map") == one.report["start"]["validation"][0]
    assert one.report["rankers"][0]["first_tree"] is None


def test_it_starts_at_the_measure_of_the_model() -> None:
    Path("v").write_text(OTHER)
    first()
    expected = {"training": evaluated("d.svm", "--metric", "map"), "validation": [evaluated("v", "--metric", "map")]}
    assert go_on("--valid", "v", "--metric", "map").report["start"] == expected


def test_weights_count_as_in_one_run() -> None:
    Path("w").write_text("".join(f"{i % 3}\n" for i in range(20)))
    whole = fit(DATA, *ONE, "--trees", "10", "--weights", "w")
    first("--weights", "w")
    assert go_on("--weights", "w").data == whole.data


# What differs


@pytest.mark.parametrize(
    ("before", "after", "what"),
    [
        ([], ["--learning-rate", "0.3"], "learning_rate is 0.3, in the model 0.1"),
        (["--monotone", "1:+1"], [], "monotone is not set, in the model 1:+1"),
        ([], ["--gain", "linear"], "gain is linear, in the model exp2"),
        (["--seed", "3"], [], "seed is 0, in the model 3"),
    ],
)
def test_a_setting_that_differs_is_said(before: list[str], after: list[str], what: str) -> None:
    old = first(*before)
    new = go_on(*after)
    assert differences(new) == [what]
    assert any(line.endswith(f"would not give the same: {what}") for line in new.said)
    assert new.model["settings"] == {
        **fit(DATA, *ONE, *after).model["settings"],
        **{"trees": 10, "continued_from": 4},
    }
    assert new.model["trees"][:4] == old.model["trees"]
    again = kept(new, "b.json")
    assert again.model["settings"]["continued_from"] == 4
    assert differences(go_on(*after, model="b.json")) == ["its first 4 trees are not of its settings"]


def test_constraints_of_new_trees_only_are_said() -> None:
    first()
    assert [line for line in go_on("--monotone", "1:-1").warnings if "--monotone holds for the new trees only" in line]
    first("--monotone", "1:-1")
    assert not go_on("--monotone", "1:-1").warnings


def test_initial_scores_count_besides_the_model() -> None:
    first()
    Path("s").write_text("".join(f"{(i * 7) % 5 / 4}\n" for i in range(200)))
    of_model = scores(DATA)
    Path("sum").write_text(
        "".join(f"{a + float(b)!r}\n" for a, b in zip(of_model, Path("s").read_text().split(), strict=True))
    )
    expected = fit(DATA, *ONE, "--trees", "6", "--init-scores", "sum")
    one = go_on("--init-scores", "s")
    assert one.model["trees"][4:] == expected.model["trees"]
    assert differences(one) == ["there are initial scores"]
    assert any("the model and the initial scores alone: ndcg@10" in line for line in one.said)


def test_other_data_is_said_and_the_features_of_both_are_listed() -> None:
    first(data=re.sub(r" 3:\S+", "", DATA))
    more = DATA.replace(" 7:1", "").replace(" 3:", " 5:") + "1 qid:new 1:0 2:0 5:1\n"
    one = go_on(data=more)
    assert one.model["feature_ids"] == [1, 2, 5, 7]
    assert differences(one) == ["the features differ", "the data has 201 documents, that of the model 200"]
    assert [line for line in one.warnings if "'5'; only new trees can split on them" in line]
    assert one.report["training"] == evaluated("d.svm", "--metric", "ndcg@10")


def test_several_rankers_go_on_as_one_from_their_sum() -> None:
    kept(fit(DATA, "--rankers", "2", "--trees", "6", "--min-docs", "2", "--objective", "lambdamart+yetirank"))
    before = scores(DATA)
    one = go_on()
    assert "it has 2 rankers, from whose sum one goes on" in differences(one)[0]
    assert "rankers" not in one.model and one.model["settings"]["rankers"] == 1
    assert one.report["start"]["training"] == pytest.approx(evaluated_scores(before))


def evaluated_scores(numbers: list[float]) -> float:
    Path("numbers").write_text("".join(f"{one!r}\n" for one in numbers))
    options = ("--data", "d.svm", "--scores", "numbers", "--metric", "ndcg@10", "--json")
    value = strict(run("eval", *options).stdout)["metrics"]["ndcg@10"]
    assert isinstance(value, float)
    return value


# Models of other tools


@pytest.mark.parametrize("name", ["lightgbm", "lightgbm-json"])
def test_a_model_of_another_tool_has_its_trees_first(name: str) -> None:
    before = first()
    run("convert", "a.json", "foreign", "--to", name)
    one = go_on(model="foreign")
    assert differences(one) == ["lmart did not train it (LightGBM v4)"]
    assert [tree["leaf_values"] for tree in one.model["trees"][:4]] == [t["leaf_values"] for t in before.model["trees"]]
    assert one.model["trees"][4:] == fit(DATA, *ONE, "--trees", "10").model["trees"][4:]
    assert one.model["settings"]["continued_from"] == 4


def test_sums_in_float32_become_float64_and_it_is_said() -> None:
    first()
    run("convert", "a.json", "x.json", "--to", "xgboost")
    one = go_on(model="x.json")
    assert one.model["absent"] == "missing" and "sums" not in one.model
    assert any("'missing', as in x.json" in line for line in one.said)
    assert [line for line in one.warnings if "adds up in float32 and the new model in float64" in line]
    assert one.report["training"] == evaluated("d.svm", "--metric", "ndcg@10")
    run("convert", "x.json", "m.json", "--to", "lmart")
    document = json.loads(Path("m.json").read_text())
    assert document.pop("sums") == "float32"
    Path("m.json").write_text(json.dumps(document))
    Path("sums").write_text("".join(f"{score!r}\n" for score in scores(DATA)))
    expected = fit(DATA, *ONE, "--trees", "6", "--absent", "missing", "--init-scores", "sums")
    assert one.model["trees"][4:] == expected.model["trees"]


def test_a_base_score_is_kept() -> None:
    ids = np.array([1, 2, 3, 7], np.int64)
    Path("b.json").write_text(model_to_json(Ensemble((one_leaf(0.25),), ids, base_score=1.5)))
    one = go_on(model="b.json")
    assert differences(one) == ["it does not record the settings of its training"]
    assert one.model["base_score"] == 1.5 and len(one.model["trees"]) == 7
    assert one.model["trees"][1:] == fit(DATA, *ONE, "--trees", "6").model["trees"]


def test_names_of_a_model_are_kept_on_data_with_numbers() -> None:
    first(data=re.sub(r" 3:\S+", "", DATA))
    Path("f").write_text("1 bm25\n7 always\n")
    run("convert", "a.json", "named.json", "--feature-map", "f")
    one = go_on(model="named.json")
    assert one.model["feature_ids"] == [1, 2, 3, 7]
    assert one.model["feature_names"] == ["bm25", "2", "3", "always"]


def test_two_features_of_one_name_are_refused() -> None:
    first(data=re.sub(r" 3:\S+", "", DATA))
    Path("f").write_text("1 3\n")
    run("convert", "a.json", "named.json", "--feature-map", "f")
    Path("d.svm").write_text(DATA)
    said = refused(*ONE, "--continue-from", "named.json")
    assert "named.json: two features would have the name '3'" in said


def test_features_that_only_the_model_has_keep_their_id_or_get_a_new_one() -> None:
    Path("one.csv").write_text(
        "label,qid,a,b,gone\n" + "".join(f"{i % 2},{i // 4},{i % 5},{i},{i % 2}\n" for i in range(40))
    )
    Path("two.csv").write_text(
        "label,qid,b,new,a\n" + "".join(f"{i % 2},{i // 4},{i},{i % 3},{i % 5}\n" for i in range(40))
    )
    run("train", "--data", "one.csv", *ONE, "--trees", "3", "-o", "a.json", "-qq")
    run("train", "--data", "two.csv", *ONE, "--trees", "3", "-o", "b.json", "--continue-from", "a.json", "-qq")
    model = strict(Path("b.json").read_text())
    assert list(zip(model["feature_ids"], model["feature_names"], strict=True)) == [
        *((1, "b"), (2, "new"), (3, "a"), (4, "gone")),
    ]
    only_old = read_model("b.json").trees[:3]
    Path("c.json").write_text(model_to_json(Ensemble(only_old, np.arange(1, 5), ("b", "new", "a", "gone"))))
    for model_file in ("a.json", "c.json"):
        run("predict", "-m", model_file, "--data", "one.csv", "-o", f"{model_file}.txt", "-qq")
    assert Path("a.json.txt").read_text() == Path("c.json.txt").read_text()


# Refusals


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (["--folds", "3"], "--folds does not go with --continue-from"),
        (["--tune-trials", "3", "--valid", "d.svm"], "--tune does not go with --continue-from"),
        (["--positions", "p"], "--positions does not go with --continue-from"),
        (["--rankers", "2"], "--continue-from adds the trees of one ranker"),
        (["--rankers", "auto", "--objective", "lambdamart+yetirank"], "give one --objective"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options: list[str], what: str) -> None:
    first()
    assert what in refused(*ONE, "--continue-from", "a.json", *options, status=2)


def test_another_meaning_of_absent_is_refused() -> None:
    first("--absent", "missing")
    said = refused(*ONE, "--continue-from", "a.json", "--absent", "zero", status=2)
    assert "--absent zero does not go with a model that says 'missing'" in said
    assert go_on("--absent", "missing").model["absent"] == go_on().model["absent"] == "missing"


def _average(model: dict[str, Any]) -> None:
    model.update(version=2, average=True)


def _huge(model: dict[str, Any]) -> None:
    model["base_score"] = 1e301


def _other_features(model: dict[str, Any]) -> None:
    ids = {1: 21, 2: 22, 3: 23, 7: 27}
    model["feature_ids"] = list(ids.values())
    for tree in model["trees"]:
        tree["split_features"] = [ids[one] for one in tree["split_features"]]


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (_average, "a.json: the model is an average, to which no tree can be added; write its scores"),
        (_huge, "a.json: a score of the model is 1e+301 or minus that, beyond 1e+300"),
        (_other_features, "d.svm: no feature of the data is in the model"),
    ],
)
def test_a_model_that_cannot_go_on_is_refused(change: Callable[[dict[str, Any]], None], what: str) -> None:
    model = first().model
    change(model)
    Path("a.json").write_text(json.dumps(model))
    assert what in refused(*ONE, "--continue-from", "a.json")


def test_what_is_no_model_is_refused() -> None:
    Path("d.svm").write_text(DATA)
    assert "d.svm: this is no lmart model" in refused(*ONE, "--continue-from", "d.svm")
    assert "no.json" in refused(*ONE, "--continue-from", "no.json")
    first()
    assert "would overwrite the input a.json" in refused(*ONE, "--continue-from", "a.json", "--out", "a.json")


def test_nothing_to_learn_adds_no_tree() -> None:
    first()
    one = go_on(data="".join(f"1 qid:{i} 1:{i} 2:1 3:1 7:1\n" for i in range(30)))
    assert len(one.model["trees"]) == 4
    assert [line for line in one.warnings if line.endswith("no tree is added to the model")]
