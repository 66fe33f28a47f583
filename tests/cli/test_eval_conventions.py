"""The options of conventions of `lmart eval`: presets, single options, and what the report says of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from helpers.evaluation import call, close, measured, refused, strict, write
from helpers.other_tools import data_sets, ours

from lmart.cli.main import main
from lmart.measures import CHOICES
from lmart.measures.presets import PRESETS

pytestmark = pytest.mark.usefixtures("in_folder")

NAMES = "ndcg@1,ndcg@5,ndcg@10,dcg@3,map,map@3,mrr,p@5,recall@5,err@10,rbp,bpref,kendall,judged@5"


def tied_data() -> list[str]:
    """The first data set on which tools part, with its document ids."""
    ranking = data_sets()[0]
    rows = []
    for q, documents in ranking.queries():
        for row in range(documents.start, documents.stop):
            rows.append(f"{ranking.labels[row]:g} qid:{q} 1:1 # docid = {ranking.ids[row]}\n")
    Path("t.svm").write_text("".join(rows))
    Path("t.txt").write_text("".join(f"{score!r}\n" for score in ranking.scores.tolist()))
    return ["--data", "t.svm", "--scores", "t.txt"]


@pytest.mark.parametrize("like", [None, *PRESETS])
def test_a_preset_measures_as_its_conventions_say(like: str | None) -> None:
    given = tied_data()
    asked = [*given, "--metric", NAMES, *(["--like", like] if like else [])]
    content = strict(call(*asked, "--json").stdout)
    assert content["metrics"] == ours(data_sets()[0], NAMES, like)
    assert content["conventions"]["like"] == like
    conventions = None if like is None else PRESETS[like].conventions
    table = call(*asked).stdout
    assert ("like           " in table) == (like is not None)
    for name, choices in CHOICES.items():
        value = next(iter(choices)) if conventions is None else getattr(conventions, name)
        assert content["conventions"][name] == value
        line = f"{name.replace('_', ' '):<13}  {value} ({choices[value]})\n"
        assert (line in table) == (name in ("empty", "ties") or value != next(iter(choices))), name


def test_single_options_override_a_preset_in_any_order() -> None:
    given = [*tied_data(), "--metric", NAMES]
    for options in (["--like", "lightgbm", "--empty", "zero"], ["--empty", "zero", "--like", "lightgbm"]):
        content = strict(call(*given, *options, "--json").stdout)
        assert content["metrics"] == ours(data_sets()[0], NAMES, "lightgbm", empty="zero")
        assert (content["conventions"]["empty"], content["conventions"]["like"]) == ("zero", "lightgbm")


@pytest.mark.parametrize(
    ("option", "metric", "values"),
    [
        (["--discount", "letor"], "dcg@3", {"dcg@3": 1 + 3}),
        (["--relevant", "2"], "map,p@2,map(rel=1)", {"map": 1 / 2, "p@2": 0.5, "map(rel=1)": 1}),
        (["--relevant", "1.5"], "mrr", {"mrr": 0.5}),
        (["--short", "zero"], "ndcg@3,ndcg@9", {"ndcg@3": 0.796708, "ndcg@9": 0}),
        (["--p-divisor", "length"], "p@10", {"p@10": 2 / 3}),
        (["--map-divisor", "k"], "map@1,map", {"map@1": 1, "map": 1}),
        (["--map-divisor", "length"], "map@1", {"map@1": 1}),
        (["--ties", "reverse"], "mrr", {"mrr": 1}),
    ],
)
def test_single_options(option: list[str], metric: str, values: dict[str, float]) -> None:
    given = [*write("1 2 0"), "--metric", metric, *option]
    assert measured(*given) == {name: close(value) for name, value in values.items()}


def test_ties_by_document_id_and_scores_of_32_bits() -> None:
    Path("d.svm").write_text("0 qid:1 1:1 # docid = b\n1 qid:1 1:1 # docid = a\n2 qid:1 1:1 # docid = a2\n")
    Path("d.txt").write_text("1\n1.000000001\n1\n")
    given = ["--data", "d.svm", "--scores", "d.txt", "--metric", "mrr(rel=1),mrr(rel=2)"]
    assert list(measured(*given).values()) == [1, close(1 / 3)]
    assert list(measured(*given, "--precision", "single").values()) == [0.5, close(1 / 3)]
    assert list(measured(*given, "--precision", "single", "--ties", "docid").values()) == [0.5, 0.5]
    # without ids, by the number in the query as text: 9, 8, ..., 2, 11, 10, 1
    data = write("0 0 0 0 0 0 0 0 0 1 0 / 1 0 0", [1.0] * 14)
    assert measured(*data, "--ties", "docid", "--metric", "mrr") == {"mrr": close((1 / 10 + 1 / 3) / 2)}


def test_the_report_says_what_is_relevant() -> None:
    given = [*write("1 2 0 / 1 0"), "--metric", "map"]
    table = call(*given, "--relevant", "2").stdout
    assert "empty queries  1 (no label of 2 or more)\n" in table and "relevant       label >= 2\n" in table
    assert "relevant" not in call(*given).stdout
    assert strict(call(*given, "--relevant", "0.5", "--json").stdout)["conventions"]["relevant"] == "label >= 0.5"


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["--like", "lgbm"], "lgbm"),
        (["--relevant", "0"], "above 0"),
        (["--relevant", "x"], "'x'"),
        (["--discount", "log"], "log"),
        (["--metric", "map", "--discount", "letor"], "--discount counts in ndcg and dcg only"),
        (
            ["--metric", "ndcg,map(rel=2)", "--relevant", "2"],
            "(map, gmap, mrr, success, p, recall, recall_cap, rprec, f1, iprec, rbp, bpref, auc) without rel=",
        ),
        (["--metric", "ndcg,map@3", "--short", "zero"], "--short counts in ndcg@k only"),
        (["--metric", "map", "--map-divisor", "k"], "--map-divisor counts in map@k and gmap@k only"),
        (["--metric", "map", "--p-divisor", "length"], "--p-divisor counts in p@k and f1@k only"),
        (["--metric", "judged,dcg", "--empty", "skip"], "--empty counts in all measures but dcg and judged"),
    ],
)
def test_wrong_usage(arguments: list[str], part: str) -> None:
    line = refused(*arguments, "--data", "no.svm", "--scores", "no.txt", status=2)
    assert part in line and line.endswith("see 'lmart eval --help'")


def test_the_gain_of_a_preset_goes_before_that_of_the_model() -> None:
    write("0 3 1 2 0 1 / 2 0 1 3 3 0")
    trained = CliRunner().invoke(main, ["train", "--data", "d.svm", "--trees", "2", "--min-docs", "1", "-q"])
    assert trained.exit_code == 0
    given = ["--data", "d.svm", "-m", "model.json", "--metric", "ndcg@2", "--json"]
    told = call(*given, "--like", "trec_eval")
    assert "measuring with the gain linear, as --like trec_eval says; the model was trained with exp2" in told.stderr
    assert strict(told.stdout)["conventions"]["gain"] == "linear"
    kept = call(*given, "--like", "trec_eval", "--gain", "exp2")
    assert "measuring" not in kept.stderr and strict(kept.stdout)["conventions"]["gain"] == "exp2"
