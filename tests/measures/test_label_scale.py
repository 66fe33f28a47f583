"""Expected reciprocal rank has one largest label for all parts of a run, and where a user says so, that one."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.commands import run
from helpers.evaluation import measured
from helpers.evaluation import refused as eval_refused
from helpers.training_runs import fit, learnable, refused

TOP = "5 qid:1 1:1\n0 qid:1 1:0\n" + "".join(f"1 qid:{q} 1:1\n0 qid:{q} 1:0\n" for q in (2, 3, 4))
PLAIN_TREE = ("--trees", "1", "--min-docs", "1")
GRADED = learnable(3, n_queries=12, labels=(0, 1, 2, 3)) + learnable(4, n_queries=1, labels=(0, 7)).replace(
    "qid:", "qid:z"
)
ERR = ("--objective", "err", "--metric", "err@10")


pytestmark = pytest.mark.usefixtures("in_folder")


def test_folds_are_measured_with_the_largest_label_of_all_of_them() -> None:
    """By hand: 31/32 for the label 5, 1/32 for a label 1."""
    done = fit(TOP, *PLAIN_TREE, "--folds", "2", "--metric", "err", "--oof", "oof")
    crossed = done.report["cross_validation"]
    assert sorted(one["measure"] for one in crossed["folds"]) == [0.03125, 0.5] and crossed["mean"] == 0.265625
    assert measured("--data", "d.svm", "--scores", "oof", "--metric", "err") == {"err": 0.265625}
    assert any("2^5" in line for line in done.said) and done.report["err"] == "(2^label - 1) / 2^5"
    lower = fit(TOP.replace("5", "4", 1), *PLAIN_TREE, "--folds", "2", "--metric", "err")
    assert lower.report["cross_validation"]["mean"] == (15 / 16 + 3 / 16) / 4
    assert "largest_label" not in lower.model["settings"] and not any("2^" in line for line in lower.said)


def test_every_fold_trains_the_objective_of_the_whole() -> None:
    """The fold without the top label is trained as by hand with that label named."""
    done = fit(GRADED, "--trees", "5", "--min-docs", "2", "--folds", "2", *ERR, "--oof", "oof")
    found = [float(line) for line in Path("oof").read_text().split()]
    rows = GRADED.splitlines(keepends=True)
    fold_of_query = done.report["cross_validation"]["fold_of_query"]
    queries = list(dict.fromkeys(row.split()[1] for row in rows))
    fold_of = dict(zip(queries, fold_of_query, strict=True))
    trees = str(done.report["cross_validation"]["trees"])
    for fold in (1, 2):
        own = "".join(row for row in rows if fold_of[row.split()[1]] != fold)
        held = [place for place, row in enumerate(rows) if fold_of[row.split()[1]] == fold]
        fit(own, "--trees", trees, "--min-docs", "2", "--objective", "err", "--metric", "err@10(max=7)")
        Path("held.svm").write_text("".join(rows[place] for place in held))
        alone = run("predict", "-m", "m.json", "--data", "held.svm").stdout.split()
        assert [float(one) for one in alone] == [found[place] for place in held]


def test_training_and_validation_are_measured_alike_and_eval_goes_by_the_model() -> None:
    Path("v.svm").write_text(learnable(9, labels=(0, 1, 2)))
    done = fit(GRADED, "--trees", "5", "--valid", "v.svm", *ERR)
    assert done.model["settings"]["largest_label"] == 7
    for file, value in (("d.svm", done.report["training"]), ("v.svm", done.report["validation"][0])):
        assert measured("--data", file, "-m", "m.json", "--metric", "err@10") == {"err@10": value}
        assert measured("--data", file, "-m", "m.json", "--metric", "err@10(max=7)") == {"err@10(max=7)": value}
    assert "2^7" in run("eval", "--data", "v.svm", "-m", "m.json", "--metric", "err").stdout
    assert "2^9" in run("eval", "--data", "v.svm", "-m", "m.json", "--metric", "err(max=9)").stdout
    Path("w.svm").write_text("8 qid:1 1:1\n0 qid:1 1:2\n")
    beyond = run("eval", "--data", "w.svm", "-m", "m.json", "--metric", "err")
    assert "labels above 7" in beyond.stderr and "2^8" in beyond.stdout


def test_a_label_of_a_validation_file_counts_for_training_too() -> None:
    Path("v.svm").write_text("6 qid:1 1:1\n0 qid:1 1:2\n")
    done = fit(TOP, *PLAIN_TREE, "--valid", "v.svm", "--metric", "err")
    assert done.report["training"] == (31 / 64 + 3 / 64) / 4


def test_a_largest_label_that_is_said_holds_for_objective_and_measure() -> None:
    said = fit(GRADED, "--trees", "5", "--objective", "err", "--metric", "err(max=9)")
    assert said.model["settings"]["metric"] == "err(max=9)" and said.model["settings"]["largest_label"] == 9
    value = measured("--data", "d.svm", "-m", "m.json", "--metric", "err(max=9)")["err(max=9)"]
    assert said.report["training"] == value
    assert said.model["trees"] != fit(GRADED, "--trees", "5", "--objective", "err", "--metric", "err").model["trees"]


def test_a_label_above_the_largest_is_refused_with_its_row() -> None:
    Path("d.svm").write_text(TOP)
    for line in (
        refused("--metric", "err(max=3)"),
        refused("--metric", "err(max=3)", "--folds", "2"),
        eval_refused("--data", "d.svm", "--scores", "s", "--metric", "ndcg,err(max=3)"),
    ):
        assert "d.svm: row 1 has the label 5, above the largest label 3 of err" in line
    Path("d.svm").write_text("0 qid:1 1:1\n1 qid:2 1:1\n5 qid:1 1:2\n")
    assert "row 3 has the label 5" in refused("--metric", "err(max=3)", "--group-by-qid")


def test_models_that_do_not_use_it_do_not_name_it() -> None:
    assert "largest_label" not in fit(TOP, *PLAIN_TREE).model["settings"]
    both = measured("--data", "d.svm", "-m", "m.json", "--metric", "err(max=5),err(max=6)")
    assert both == {"err(max=5)": 0.265625, "err(max=6)": 0.265625 / 2}


def test_a_largest_label_far_above_all_labels_is_named_where_nothing_is_learned() -> None:
    done = fit(GRADED, *PLAIN_TREE, "--objective", "err", "--metric", "err(max=5000)")
    assert any("nothing to learn" in line and "max=5000" in line for line in done.said)
    plain = fit("0 qid:1 1:1\n0 qid:1 1:2\n", *PLAIN_TREE, "--metric", "err(max=5000)")
    assert any("check the labels; every" in line for line in plain.said)
