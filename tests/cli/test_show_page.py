"""lmart show --html: the pages of a model, a run and data hold the numbers of --json, and more; and what is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.commands import run
from helpers.pages import Page, check_page
from helpers.paths import SAMPLE

import lmart
from lmart.formats.models.model_files import read_model, write_model
from lmart.reports.model_effects import SAMPLED_ROWS

pytest.importorskip("matplotlib")
TRAIN, TEST = SAMPLE / "train.svm", SAMPLE / "test.svm"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model of two rankers, and the report of its run."""
    folder = tmp_path_factory.mktemp("show")
    data: list[str | Path] = ["--data", TRAIN, "--valid", SAMPLE / "vali.svm"]
    some = ["--trees", "20", "--rankers", "2", "--early-stop", "5"]
    run("train", "-q", *data, *some, "--report", folder / "run.json", "-o", folder / "model.json")
    return folder


def page_of(*arguments: str | Path) -> str:
    return run("show", "-q", *arguments, "--html", "-").stdout


def as_json(*arguments: str | Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run("show", "-q", *arguments, "--json").stdout)
    found.pop("kind")
    return found


@pytest.fixture(scope="module")
def model_page(folder: Path) -> str:
    return page_of(folder / "model.json", "--data", TEST, "--train-report", folder / "run.json")


def test_the_page_of_a_model_holds_what_json_does(folder: Path, model_page: str) -> None:
    page, content = check_page(model_page), as_json(folder / "model.json", "--data", TEST)
    content["importance"] = [feature for feature in content["importance"] if feature["splits"]]
    assert page.content["model"] == content
    assert page.content["train_report"] == as_json(folder / "run.json")
    header, *rows = page.tables["features"]
    assert header[:4] == ["feature", "adds", "gain", "splits"]
    assert [row[:4] for row in rows] == [
        [one["feature"], one["contribution"], one["gain_share"], one["splits"]] for one in content["importance"]
    ]
    trees = [as_json(folder / "model.json", "--tree", number) for number in ("1", "11")]
    assert page.content["tree_drawings"] == [{k: v for k, v in tree.items() if k != "file"} for tree in trees]
    assert {"curve-1", "curve-2", "ranker-table"} <= page.tables.keys()


def test_effects_are_means_of_scores_and_contributions(folder: Path, model_page: str) -> None:
    page, model, data = Page(model_page), lmart.load(folder / "model.json"), lmart.read(TEST)
    effects = page.content["effects"]
    assert effects["rows"] == data.n_documents <= SAMPLED_ROWS
    assert effects["mean_score"] == pytest.approx(model.predict(data).mean(), abs=1e-12)
    assert len(effects["features"]) == 10
    first = effects["features"][0]
    assert first["feature"] == page.content["model"]["importance"][0]["feature"]
    table, column = data.to_numpy(), model.feature_ids.index(int(first["feature"]))
    own, contributions = table[:, column].copy(), model.explain(table).contributions[:, column]
    for value, score in zip(first["values"][::7], first["scores"][::7], strict=True):
        table[:, column] = value
        assert model.predict(table).mean() == pytest.approx(score, abs=1e-12)
    places = np.linspace(0, len(own) - 1, 400).round().astype(int)
    assert first["row_values"] == own[places].tolist()
    np.testing.assert_allclose(first["contributions"], contributions[places], atol=1e-12)
    _, *rows = page.tables["effect-1"]
    assert [list(map(float, row)) for row in rows] == [
        list(p) for p in zip(first["values"], first["scores"], strict=True)
    ]


def test_threads_and_formats_change_nothing(folder: Path, tmp_path: Path, model_page: str) -> None:
    command: list[str | Path] = [folder / "model.json", "--train-report", folder / "run.json"]
    assert page_of(*command, "--data", TEST, "--threads", "1") == model_page
    run("convert", "-q", TEST, tmp_path / "test.svm.gz")
    other = page_of(*command, "--data", tmp_path / "test.svm.gz")
    assert Page(other).content["effects"] == Page(model_page).content["effects"]


def test_effects_are_of_a_sample_of_stated_size(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lmart.reports.model_effects.SAMPLED_ROWS", 100)
    run("convert", "-q", TEST, tmp_path / "test.svm.gz")
    first, again = (Page(page_of(folder / "model.json", "--data", data)) for data in (TEST, tmp_path / "test.svm.gz"))
    effects = first.content["effects"]
    assert 30 < effects["rows"] <= 100 and effects == again.content["effects"]
    model, rows = lmart.load(folder / "model.json"), lmart.read(TEST).to_numpy()
    scores = model.predict(rows)
    column = model.feature_ids.index(int(effects["features"][0]["feature"]))
    contributions = dict(zip(model.explain(rows).contributions[:, column].tolist(), rows[:, column], strict=True))
    found = effects["features"][0]
    assert len(found["contributions"]) == effects["rows"]
    assert all(contributions[c] == value for c, value in zip(found["contributions"], found["row_values"], strict=True))
    assert min(scores) < effects["mean_score"] < max(scores)


def test_the_text_is_as_without_a_page(folder: Path, tmp_path: Path) -> None:
    for command in (
        [folder / "model.json"],
        [folder / "model.json", "--json"],
        [folder / "run.json"],
        [TEST],
        [TEST, TRAIN],
    ):
        page = tmp_path / "page.html"
        assert run("show", "-q", *command, "--html", page).stdout == run("show", "-q", *command).stdout
        check_page(page.read_text())


def test_a_tree_and_a_title_of_ones_own(folder: Path) -> None:
    text = page_of(folder / "model.json", "--tree", "3", "--title", "For <you>", "--top", "2", "--data", TEST)
    page = check_page(text)
    assert "<h3>Tree 3 of 20, of ranker 1</h3>" in text and "Tree 1 of" not in text
    assert page.texts[0] == page.content["title"] == "For <you>"
    assert len(page.tables["features"]) == 1 + 2 and len(page.content["effects"]["features"]) == 2


def test_a_model_that_cannot_be_explained_has_effects_without_dots(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "model.xml"
    write_model(read_model(str(folder / "model.json")), str(path), "ranklib")
    text = page_of(path, "--data", TEST)
    page = check_page(text)
    assert "There are no dots: the model does not say how many documents" in text
    assert "contributions" not in page.content["model"] and page.content["effects"]["features"][0]["scores"]
    assert "adds" not in page.tables["features"][0]


def test_categories_have_their_names_and_marks_in_place_of_a_line(in_folder: Path) -> None:
    rng = np.random.default_rng(1)
    shops, labels = rng.integers(3, 9, 300), rng.integers(0, 3, 300)
    rows = [f"{max(labels[k], shops[k] % 3)} qid:{k // 6} 1:{shops[k]} 2:{k % 7}" for k in range(300)]
    Path("d.svm").write_text("\n".join(rows) + "\n")
    few = ("--trees", "4", "--rankers", "1", "--min-docs", "4", "--categorical", "1")
    run("train", "-q", "--data", "d.svm", *few, "-o", "m.json")
    text = page_of("m.json", "--data", "d.svm")
    page, model = check_page(text), lmart.load("m.json")
    effect = next(one for one in page.content["effects"]["features"] if one["feature"] == "1")
    assert effect["categories"] == list("345678")
    table = lmart.read("d.svm").to_numpy()
    for value, score in zip(effect["values"], effect["scores"], strict=True):
        table[:, 0] = value
        assert model.predict(table).mean() == pytest.approx(score, abs=1e-12)
    assert "1 in {" in text or "1 not in {" in text


def test_the_page_of_a_run(folder: Path) -> None:
    page = check_page(page_of(folder / "run.json", "--top", "3"))
    assert page.content["train_report"] == as_json(folder / "run.json")
    assert len(page.tables["features"]) == 1 + 3
    report = json.loads((folder / "run.json").read_text())
    _, *rows = page.tables["curve-2"]
    assert [row[1] for row in rows] == [one["training"] for one in report["rounds"] if one["ranker"] == 2]


def test_the_page_of_data_holds_what_json_does() -> None:
    page, content = check_page(page_of(TRAIN, TEST)), as_json(TRAIN, TEST)
    other, drift = content.pop("other"), content.pop("drift")
    assert page.content["drift"] == drift
    for shown, expected in ((page.content["data"], content), (page.content["other"], other)):
        features = {feature["feature"]: feature for feature in shown.pop("features")}
        for feature in expected.pop("features"):
            histogram = features[feature["feature"]].pop("histogram")
            assert features[feature["feature"]] == feature
            assert sum(histogram["counts"][0]) == expected["sampled"] - feature["missing"]
        assert shown == expected
    header, *rows = page.tables["feature-table"]
    assert header[-2:] == ["ndcg@10", "rising"]
    best = [max(row[-2:]) for row in rows]
    assert best == sorted(best, reverse=True)
    _, *rows = page.tables["drift-table"]
    assert [row[0] for row in rows] == [one["name"] for one in drift["features"]]
    assert [row[4] for row in rows] == [one["ks"] for one in drift["features"]]
    header, *rows = page.tables["sizes"]
    assert header[1:3] == ["train.svm", "test.svm"] and sum(row[1] for row in rows) == content["queries"]["count"]
    _, *rows = page.tables["label-table"]
    assert {row[0]: row[1] for row in rows} == content["labels"]


def test_data_without_labels_or_queries_or_features(tmp_path: Path) -> None:
    pages = {}
    for name, text in {"a": "1 1:0.5\n2 1:nan\n", "b": "1:3 2:nan\n1:4\n", "c": "1 qid:1\n0 qid:1\n"}.items():
        (tmp_path / f"{name}.svm").write_text(text)
        pages[name] = check_page(page_of(tmp_path / f"{name}.svm"))
    assert "sizes" not in pages["a"].tables and "label-table" in pages["a"].tables
    assert "label-table" not in pages["b"].tables and "ndcg@10" not in pages["b"].tables["feature-table"][0]
    assert pages["b"].content["data"]["features"][1]["missing"] == 1
    assert pages["c"].content["data"]["features"] == []


def test_names_that_look_like_html(tmp_path: Path) -> None:
    data = tmp_path / "d<b>.csv"
    rows = "".join(f"{k % 3},{k // 6},{k * 7 % 5},{k * 3 % 4}\n" for k in range(60))
    data.write_text('label,qid,<i>$x^2$,"_</script>"\n' + rows)
    run("train", "-q", "--data", data, "--trees", "3", "--min-docs", "2", "-o", tmp_path / "m.json")
    for page in (page_of(data), page_of(tmp_path / "m.json", "--data", data)):
        check_page(page)
        assert "<i>$" not in page and "_</script>" not in page
        assert "_&lt;/script&gt;" in page


def test_a_page_without_charts_needs_no_matplotlib(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    check_page(page_of(folder / "model.json"))
    check_page(page_of(TEST))
    page = tmp_path / "p.html"
    for command in ([folder / "model.json", "--data", tmp_path / "none"], [folder / "run.json"]):
        said = run("show", "-q", *command, "--html", page, status=1).stderr
        assert said == f"lmart: error: {page}: a page needs the package matplotlib: pip install matplotlib\n"
    assert not page.exists()


def test_nothing_is_left_behind(folder: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("older")
    run("show", folder / "model.json", "--data", tmp_path / "none", "--html", page, status=1)
    run("show", folder / "model.json", "--train-report", folder / "model.json", "--html", page, status=1)
    run("show", folder / "model.json", "--html", tmp_path / "none" / "p.html", status=1)
    assert page.read_text() == "older" and [one.name for one in tmp_path.iterdir()] == ["page.html"]
    said = run("show", folder / "model.json", "--html", folder / "model.json", status=1).stderr
    assert re.match("lmart: error: .*model.json: ", said) and json.loads((folder / "model.json").read_text())


@pytest.mark.parametrize(
    ("command", "status", "words"),
    [
        (["m", "--html", "-", "--json"], 2, "--html - and --json both write to standard output"),
        (["m", "--html", "-", "--tsv"], 2, "--html - and --tsv both write to standard output"),
        (["m", "--train-report", "r"], 2, "--train-report is shown on the page; give --html too"),
        (["m", "--title", "t"], 2, "--title is that of the page; give --html too"),
        ([TEST, "--html", "p", "--train-report", "r"], 2, "--train-report needs a model, and this is data"),
        (["run.json", "--html", "p", "--train-report", "r"], 1, "--train-report needs a model; give the model"),
        (["-", "--html", "p", "--train-report", "-"], 2, "only one input can be '-'"),
        (["m", "--html", ""], 1, "the name of the output is empty"),
    ],
)
def test_refusals(folder: Path, command: list[str | Path], status: int, words: str) -> None:
    arguments = [folder / one if one == "run.json" else one for one in command]
    assert words in run("show", *arguments, status=status).stderr


def test_python_writes_the_same_page(folder: Path, tmp_path: Path) -> None:
    import lmart.plot

    model = lmart.load(folder / "model.json")
    lmart.plot.page(model, tmp_path / "p.html", lmart.read(TEST))
    found = check_page((tmp_path / "p.html").read_text()).content
    expected = Page(page_of(folder / "model.json", "--data", TEST)).content
    assert found["effects"] == expected["effects"]
    assert found["model"]["importance"] == expected["model"]["importance"]
    assert found["tree_drawings"] == expected["tree_drawings"]
