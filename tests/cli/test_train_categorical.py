"""lmart train --categorical: the model, what it is measured by, values that it has not seen, and what cannot be."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from helpers.commands import run
from helpers.training_runs import evaluated, fit, refused

import lmart
from lmart.formats.models.model_files import read_model


def shops(seed: int = 1, n_queries: int = 60, length: int = 8, n_shops: int = 40) -> str:
    """Queries of which feature 1, a shop, says much, feature 2 little; shops have no order."""
    rng = np.random.default_rng(seed)
    worth = np.random.default_rng(9).normal(size=n_shops)
    lines = []
    for q in range(n_queries):
        shop, other = rng.integers(0, n_shops, length), rng.normal(size=length)
        utility = worth[shop] + 0.3 * other + 0.3 * rng.gumbel(size=length)
        rank = utility.argsort().argsort()
        for k in range(length):
            label = 2 if rank[k] == length - 1 else int(rank[k] >= length - 3)
            lines.append(f"{label} qid:{q} 1:{shop[k]} 2:{other[k]:.3f}\n")
    return "".join(lines)


DATA, OTHER = shops(), shops(2)
ONE = ("--rankers", "1", "--trees", "12", "--leaves", "8", "--min-docs", "4")
AS_CATEGORY = (*ONE, "--categorical", "1")

pytestmark = pytest.mark.usefixtures("in_folder")


def test_it_ranks_new_queries_better_than_as_a_number() -> None:
    Path("o.svm").write_text(OTHER)
    fit(DATA, *ONE)
    as_number = evaluated("o.svm", "--metric", "ndcg@10")
    fit(DATA, *AS_CATEGORY)
    assert evaluated("o.svm", "--metric", "ndcg@10") > as_number + 0.05


@pytest.mark.parametrize(
    "options",
    [
        AS_CATEGORY,
        ("--rankers", "3", "--trees", "12", "--min-docs", "4", "--linear", "0.3", "--categorical", "1"),
        (*AS_CATEGORY, "--tree", "oblivious", "--objective", "xendcg"),
        (*AS_CATEGORY, "--sample", "0.5", "--features", "0.5", "--absent", "missing"),
    ],
)
def test_measures_are_those_of_the_model(options: tuple[str, ...]) -> None:
    """In the training rows too, though trees are grown from other places of rare values."""
    Path("o.svm").write_text(OTHER)
    ran = fit(DATA, *options, "--valid", "o.svm")
    assert ran.report["training"] == pytest.approx(evaluated("d.svm", "--metric", "ndcg@10"), abs=1e-12)
    assert ran.report["validation"][0] == pytest.approx(evaluated("o.svm", "--metric", "ndcg@10"), abs=1e-12)
    assert fit(DATA, *options, "--valid", "o.svm", "--threads", "2").data == ran.data


def test_python_gives_the_same_model() -> None:
    data = fit(DATA, *AS_CATEGORY).data
    settings = {"rankers": 1, "trees": 12, "leaves": 8, "min_docs": 4}
    for categorical in ("1", 1, [1], ["1"]):
        model = lmart.train(lmart.read("d.svm"), categorical=categorical, **settings)  # type: ignore[arg-type]
        model.save("p.json")
        assert Path("p.json").read_bytes() == data
    assert lmart.train(lmart.read("d.svm"), **model.settings) == model


def test_values_that_are_new_or_missing() -> None:
    fit(DATA, *AS_CATEGORY)
    Path("n.svm").write_text("1:77 2:0\n1:78 2:0\n1:nan 2:0\n2:0\n1:0 2:0\n1:3 2:0\n1:2.5 2:0\n")
    shown = run("predict", "--model", "m.json", "--data", "n.svm")
    new, new_too, missing, absent, zero, _, fraction = map(float, shown.stdout.split())
    assert new == new_too == missing == fraction
    assert absent == zero
    assert "3 rows with a value of category '1' that training did not see" in shown.stderr
    with pytest.warns(UserWarning, match="1 row with a value of category '1'"):
        lmart.load("m.json").predict([[99, 0.0], [1, 0.0]])


def test_names_of_columns_and_files_of_names() -> None:
    rows = [line.split() for line in DATA.splitlines()]
    table = ["rel,qid,shop,other", *(f"{r[0]},{r[1][4:]},{r[2][2:]},{r[3][2:]}" for r in rows)]
    Path("d.csv").write_text("\n".join(table) + "\n")
    Path("names.txt").write_text("\nshop\n\n")
    models = []
    for given in ("shop", "names.txt"):
        run("train", "--data", "d.csv", *ONE, "--categorical", given, "-o", "c.json")
        models.append(Path("c.json").read_bytes())
    assert models[0] == models[1]
    assert json.loads(models[0])["settings"]["categorical"] == "shop"
    tree = run("show", "c.json", "--tree", "1").stdout
    assert "if shop in {" in tree or "if shop not in {" in tree
    facts = json.loads(run("show", "c.json", "--json").stdout)
    assert facts["categories"] == [{"feature": "shop", "values": 40}]
    assert "categories  shop (40 values)" in run("show", "c.json").stdout


def test_explanations_add_up_to_the_score() -> None:
    fit(DATA, *AS_CATEGORY)
    lines = run("predict", "--model", "m.json", "--data", "d.svm", "--format", "jsonl", "--explain").stdout.splitlines()
    for line in map(json.loads, lines[:50]):
        assert line["base"] + sum(line["contributions"].values()) == pytest.approx(line["score"], abs=1e-9)


def test_going_on_gives_the_same_bytes_on_the_same_data() -> None:
    whole = fit(DATA, *AS_CATEGORY).data
    fit(DATA, *AS_CATEGORY, "--trees", "5")
    Path("a.json").write_bytes(Path("m.json").read_bytes())
    again = fit(DATA, *AS_CATEGORY, "--trees", "7", "--continue-from", "a.json")
    assert again.data == whole
    assert fit(DATA, *ONE, "--trees", "7", "--continue-from", "a.json").data == whole
    assert again.report["continued_from"]["differences"] == []


def test_going_on_with_other_data_keeps_the_order_of_the_model() -> None:
    fit(DATA, *AS_CATEGORY, "--trees", "5")
    Path("a.json").write_bytes(Path("m.json").read_bytes())
    before = read_model("a.json").categories[0]
    gone_on = fit(shops(5, n_shops=50), *AS_CATEGORY, "--trees", "7", "--continue-from", "a.json")
    assert read_model("m.json").categories[0].values == before.values
    assert gone_on.report["training"] == pytest.approx(evaluated("d.svm", "--metric", "ndcg@10"), abs=1e-12)
    assert any("category '1' has other values" in text for text in gone_on.report["continued_from"]["differences"])
    fit(DATA, *ONE)
    Path("a.json").write_bytes(Path("m.json").read_bytes())
    assert "'1', which is no category" in refused(
        "--data", "d.svm", *AS_CATEGORY, "--continue-from", "a.json", status=2
    )


def test_folds_refit_tuning_and_checkpoints() -> None:
    Path("o.svm").write_text(OTHER.replace("qid:", "qid:o"))
    plain = fit(DATA, *AS_CATEGORY, "--checkpoint", "c.state").data
    assert plain == fit(DATA, *AS_CATEGORY).data
    crossed = fit(DATA, *AS_CATEGORY, "--folds", "3", "--oof", "oof.txt")
    assert len(Path("oof.txt").read_text().split()) == 480
    shown = run("eval", "--data", "d.svm", "--scores", "oof.txt", "--metric", "ndcg@10", "--json").stdout
    held_out = json.loads(shown)["metrics"]["ndcg@10"]
    assert crossed.report["cross_validation"]["mean"] == pytest.approx(held_out, abs=0.02)
    assert held_out < evaluated("d.svm", "--metric", "ndcg@10") - 0.02
    fit(DATA, *AS_CATEGORY, "--valid", "o.svm", "--refit", "--early-stop", "12")
    refitted = read_model("m.json")
    Path("both.svm").write_text(DATA + Path("o.svm").read_text())
    run("train", "--data", "both.svm", *AS_CATEGORY, "--trees", str(len(refitted.trees)), "-o", "b.json")
    assert read_model("b.json").categories[0].values == refitted.categories[0].values


@pytest.mark.parametrize(
    ("options", "status", "said"),
    [
        (("--categorical", "2"), 1, "d.svm: feature '2' is a category, but has the value"),
        (("--categorical", "9"), 1, "d.svm: there is no feature '9', which --categorical names"),
        (("--categorical", "1,1"), 2, "categorical names feature '1' twice"),
        (("--categorical", "1,"), 2, "categorical is '1,'; give names or indices, with commas between"),
        (("--categorical", "1", "--monotone", "1:+1"), 2, "monotone and categorical both name feature '1'"),
        (("--categorical", "./empty.txt"), 1, "empty.txt: holds no name"),
        (("--categorical", "twice.txt"), 1, "twice.txt:2: feature '1' stands there twice"),
    ],
)
def test_refusals(options: tuple[str, ...], status: int, said: str) -> None:
    Path("d.svm").write_text(DATA)
    Path("empty.txt").write_text("\n")
    Path("twice.txt").write_text("1\n1\n")
    assert said in refused(*ONE, *options, status=status)


def test_lists_add_up() -> None:
    fit(DATA, *ONE, "--categorical", "1", "--trees", "1")
    Path("x.svm").write_text(DATA.replace("\n", " 4:1\n").replace("1:3 ", "1:3 3:5 "))
    run("train", "--data", "x.svm", *ONE, "--categorical", "1", "--categorical", "3,4", "-o", "x.json")
    assert json.loads(Path("x.json").read_text())["settings"]["categorical"] == "1,3,4"
