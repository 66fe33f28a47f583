"""Columns of texts in tables as categories: CSV, TSV and Parquet give one model, from Python too."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from helpers.commands import run

import lmart
from lmart.errors import DataError
from lmart.formats.models.model_files import read_model

NAMES = ["plain", "with, comma", "ünï", "12", 'a "quote"', "x y", "Q", "r"]
ONE = ("--rankers", "1", "--trees", "10", "--min-docs", "4")


def table(seed: int, n_queries: int = 60, new: bool = False) -> list[list[str]]:
    """Rows of label, query, shop, price and a title that is never the same; some shops are missing, or new."""
    rng = np.random.default_rng(seed)
    worth = np.array([1.5, -1.0, 0.5, -2.0, 1.0, 0.0, -0.5, 2.0])
    rows = []
    for q in range(n_queries):
        shop, price = rng.integers(0, 8, 6), rng.normal(size=6)
        rank = (worth[shop] + 0.2 * price + 0.2 * rng.gumbel(size=6)).argsort().argsort()
        names = ["" if rng.random() < 0.05 else "never seen" if new and rng.random() < 0.1 else NAMES[s] for s in shop]
        rows += [[str(int(rank[k] > 3)), f"q{q}", names[k], f"{price[k]:.3f}", f"{q}/{k}"] for k in range(6)]
    return rows


def write(name: str, rows: list[list[str]], header: str = "rel,qid,shop,price,title") -> None:
    mark = "\t" if name.endswith("tsv") else ","
    lines = [header.split(","), *rows]
    quoted = [['"' + x.replace('"', '""') + '"' if mark in x or '"' in x else x for x in line] for line in lines]
    Path(name).write_text("".join(mark.join(line) + "\n" for line in quoted))


@pytest.fixture(autouse=True)
def tables(in_folder: None) -> None:
    write("d.csv", table(1))
    write("v.csv", table(2, new=True))


def refused(*options: str) -> str:
    """The one line of a training run that fails."""
    return run("train", *options, *ONE, "-o", "m.json", status=1).stderr


def trained(data: str, *options: str, name: str = "m.json") -> bytes:
    run("train", "--data", data, *ONE, *options, "-o", name)
    return Path(name).read_bytes()


def test_all_forms_of_tables_give_one_model() -> None:
    whole = trained("d.csv", "--categorical", "shop", "--ignore-columns", "title")
    write("d.tsv", table(1))
    assert trained("d.tsv", "--categorical", "shop", "--ignore-columns", "title") == whole
    assert trained("d.csv", "--categorical", "shop", "--ignore-columns", "title", "--threads", "2") == whole
    (shop,) = read_model("m.json").categories
    assert sorted(shop.values) == sorted(NAMES)
    data = lmart.read("d.csv", categorical="shop", ignore_columns=["title"])
    model = lmart.train(data, categorical=["shop"], rankers=1, trees=10, min_docs=4)
    model.save("p.json")
    assert Path("p.json").read_bytes() == whole
    shown = run("predict", "-m", "m.json", "--data", "v.csv")
    others = lmart.read("v.csv", categorical="auto", ignore_columns=["title"])
    with pytest.warns(UserWarning, match="category 'shop' that training did not see"):
        found = model.predict(others)
    assert [float(line) for line in shown.stdout.split()] == found.tolist()
    assert "a value of category 'shop' that training did not see" in shown.stderr


@pytest.mark.peers
def test_parquet_gives_the_same_model() -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = table(1)
    texts = pyarrow.array([row[2] or None for row in rows])
    columns = {
        "rel": [int(row[0]) for row in rows],
        "qid": [row[1] for row in rows],
        "shop": texts.dictionary_encode(),
        "price": [float(row[3]) for row in rows],
    }
    parquet.write_table(pyarrow.table(columns), "d.parquet")
    whole = trained("d.csv", "--categorical", "shop", "--ignore-columns", "title")
    assert trained("d.parquet", "--categorical", "shop") == whole
    assert trained("d.parquet", "--categorical", "auto", name="a.json") != whole  # only by what the settings say
    assert "name it with --categorical" in refused("--data", "d.parquet")


def test_auto_takes_texts_but_titles() -> None:
    shown = run("train", "--data", "d.csv", "--valid", "v.csv", *ONE, "--categorical", "auto", "-o", "m.json")
    assert "d.csv: categories: 'shop' (8 values)\n" in shown.stderr
    assert "d.csv: column 'title' is left out: its values hardly repeat" in shown.stderr
    model = read_model("m.json")
    assert [len(each.values) for each in model.categories] == [8, 0]
    assert model.settings["categorical"] == "auto"
    assert "title" not in run("predict", "-m", "m.json", "--data", "v.csv").stderr
    run("train", "--data", "d.csv", *ONE, "--categorical", "auto", "--folds", "3", "-o", "f.json")


def test_texts_that_are_whole_numbers_are_numbers() -> None:
    ids = [[*row[:2], str(3 * len(row[2])), *row[3:]] for row in table(1)]
    write("i.csv", ids)
    write("f.csv", [[*row[:2], f"{row[2]}.0", *row[3:]] for row in ids])
    options = ("--categorical", "shop", "--ignore-columns", "title")
    assert trained("i.csv", *options) == trained("f.csv", *options)
    assert set(map(type, read_model("m.json").categories[0].values)) == {int}


def test_a_column_of_texts_is_refused_with_a_hint() -> None:
    line = refused("--data", "d.csv")
    assert "column 'shop' holds text" in line
    assert "name it with --categorical" in line
    with pytest.raises(DataError, match="column 'shop' holds texts; name it with categorical"):
        lmart.train(lmart.read("d.csv", categorical="auto"), trees=1)


def test_texts_that_are_not_utf8_are_refused() -> None:
    Path("b.csv").write_bytes(Path("d.csv").read_bytes().replace("ünï".encode(), b"\xfc"))
    line = refused("--data", "b.csv", "--categorical", "shop", "--ignore-columns", "title", "--max-errors", "1")
    assert "value of column 'shop'" in line


def test_going_on_and_eval_of_several_models() -> None:
    options = ("--categorical", "shop", "--ignore-columns", "title")
    whole = trained("d.csv", *options)
    trained("d.csv", *options, "--trees", "4", name="a.json")
    assert trained("d.csv", *options, "--trees", "6", "--continue-from", "a.json") == whole
    shown = run("eval", "--data", "v.csv", "-m", "m.json", "-m", "a.json", "--metric", "ndcg@5", "--json")
    assert len(json.loads(shown.stdout)["systems"]) == 2
    trained("v.csv", *options, name="o.json")
    line = run("eval", "--data", "v.csv", "-m", "m.json", "-m", "o.json", "--metric", "ndcg@5", status=1).stderr
    assert "the models have other values of category 'shop'" in line


def test_all_rows_are_fitted_again_with_texts_of_both_sets() -> None:
    """A text that only --valid has is one of the model; also where the data is in memory, for folds."""
    options = ("--categorical", "shop", "--ignore-columns", "title", "--valid", "v.csv", "--refit", "--early-stop", "3")
    trained("d.csv", *options)
    (shop,) = read_model("m.json").categories
    assert sorted(map(str, shop.values)) == sorted([*NAMES, "never seen"])
    write("again.csv", [[row[0], f"again {row[1]}", *row[2:]] for row in table(2, new=True)])
    both = trained("d.csv", *options, "--folds", "2")
    (shop,) = read_model("m.json").categories
    trees = str(len(read_model("m.json").trees))
    run("train", "--data", "d.csv", "again.csv", *ONE, *options[:4], "--trees", trees, "-o", "w.json")
    assert both[both.index(b'"trees": [\n') :] == (whole := Path("w.json").read_bytes())[whole.index(b'"trees": [\n') :]
    assert shop.values == read_model("w.json").categories[0].values


def test_auto_goes_on_from_a_model_with_categories_of_both_kinds() -> None:
    kinds = [[*row[:3], str(len(row[2])), *row[3:]] for row in table(1)]
    write("k.csv", kinds, "rel,qid,shop,kind,price,title")
    trained("k.csv", "--categorical", "shop,kind", "--ignore-columns", "title", "--trees", "3", name="a.json")
    trained("k.csv", "--categorical", "auto", "--trees", "3", "--continue-from", "a.json")
    assert [len(each.values) for each in read_model("m.json").categories] == [8, 7, 0]


def test_validation_rows_that_are_collected_by_query_are_known_by_their_texts() -> None:
    options = ("--valid", "v.csv", "--categorical", "shop", "--ignore-columns", "title", "--report", "r.json")
    whole = trained("d.csv", *options)
    measures = json.loads(Path("r.json").read_text())["rankers"]
    assert trained("d.csv", *options, "--group-by-qid") == whole
    assert json.loads(Path("r.json").read_text())["rankers"] == measures


def test_numbers_in_place_of_texts_are_refused() -> None:
    """LETOR text has no texts: its numbers are not the places of some in the model."""
    rows = [row for row in table(3) if row[2]]
    Path("n.svm").write_text("".join(f"{row[0]} qid:{row[1][1:]} 1:{len(row[2])} 2:{row[3]}\n" for row in rows))
    write("n.csv", [[*row[:2], str(len(row[2])), *row[3:]] for row in rows])
    options = ("--categorical", "shop", "--ignore-columns", "title")
    trained("d.csv", *options)
    line = "n.svm: feature 'shop' is a category of texts, but LETOR text has numbers; give a table: CSV, TSV or Parquet"
    for command in (
        ("predict", "-m", "m.json", "--data", "n.svm"),
        ("predict", "-m", "m.json", "--data", "n.svm", "-o", "p.tsv"),
        ("eval", "-m", "m.json", "--data", "n.svm"),
        ("show", "m.json", "--data", "n.svm"),
        ("train", "--data", "d.csv", "--valid", "n.svm", *options, *ONE, "-o", "o.json"),
    ):
        assert line in run(*command, status=1).stderr, command
    with pytest.raises(DataError, match="feature 'shop' is a category of texts, but LETOR"):
        lmart.load("m.json").predict_letor("n.svm")
    Path("other.svm").write_text("1 qid:1 2:0.5\n")  # which does not name the category
    run("predict", "-m", "m.json", "--data", "other.svm")


def test_texts_of_numbers_stay_texts_when_the_model_has_texts() -> None:
    """Going on, 12 is the text of the model, also where the new data has no other; an array cannot say so."""
    trained("d.csv", "--categorical", "shop", "--ignore-columns", "title", name="a.json")
    only = [[*row[:2], "12", *row[3:]] for row in table(4)]
    write("only.csv", only)
    more = ("--categorical", "shop", "--ignore-columns", "title", "--continue-from", "a.json")
    trained("only.csv", *more)
    assert read_model("m.json").categories[0].values == read_model("a.json").categories[0].values
    run("predict", "-m", "m.json", "--data", "only.csv")
    numbers = np.array([[3.0, float(row[3])] for row in only])
    labels, ids = [int(row[0]) for row in only], [row[1] for row in only]
    data = lmart.Dataset(numbers, labels, ids, feature_names=["shop", "price"])
    with pytest.raises(DataError, match="feature 'shop' is a category of texts in the model, but has numbers"):
        lmart.train(data, categorical=["shop"], continue_from="a.json")


def test_why_names_the_texts() -> None:
    run("train", "--data", "d.csv", "--categorical", "shop", "--ignore-columns", "title", *ONE, "-o", "m.json")
    header, query = "rel,qid,shop,price\n", ["1,q,ünï,0", "0,q,new,0", "0,q,,0"]
    Path("w.csv").write_text(header + "\n".join(query) + "\n")

    def shops(*documents: str) -> list[str]:
        lines = run("predict", "-q", "-m", "m.json", "--data", "w.csv", "--why", "q", *documents).stdout.splitlines()
        return [line for line in lines if line.startswith("shop")]

    assert "  ünï  not seen in training  " in shops("1", "2")[0]
    assert "  ünï     missing  " in shops("1", "3")[0]
