"""lmart convert from model to model: each format there and back, names, verification, refusals."""

from __future__ import annotations

import gzip
import json
import math
import random
import re
import time
from pathlib import Path

import numpy as np
import pytest
from helpers.commands import run
from helpers.paths import SAMPLE

import lmart
from lmart.formats.documents.reading import read_dataset
from lmart.formats.feature_maps import read_feature_map, rename_features
from lmart.formats.models.model_files import read_model
from lmart.formats.read_options import ReadOptions
from lmart.formats.registry import MODEL_FORMATS, OWN, model_format_of
from lmart.scoring.ensemble import Ensemble


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.json"
    run("train", "-q", "--data", SAMPLE / "train.svm", "--trees", "3", "--out", path)
    return path


def test_a_feature_map_renames_and_verifies(model: Path, tmp_path: Path) -> None:
    names, out = tmp_path / "f.map", tmp_path / "named.json"
    names.write_text("# feature name\n1 bm25 q\n\n2\tpage rank\tq\n")
    result = run("convert", model, out, "--feature-map", names, "--verify", SAMPLE / "test.svm", "--strict")
    assert json.loads(out.read_text())["feature_names"][:3] == ["bm25", "page rank", "3"]
    assert "lmart, 3 trees, 20 features; verified with 600 rows and " in result.stderr
    assert "largest difference 0, 0 rows changed leaf" in result.stderr


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "there is no line"),
        ("1\n", "1: '1' has no new name"),
        ("1 a\n1 b\n", "2: the feature '1' is named twice"),
        ("1 a\n2 a\n", "2: two features get the name 'a'"),
        ("1 click through rate\n", "1: '1 click through rate' has 'through rate' after the new name"),
        ("1\tclicks\trate\n", "1: '1\\tclicks\\trate' has 'rate' after the new name"),
        ("1\tclicks\tq\tq\n", "1: '1\\tclicks\\tq\\tq' has 'q q' after the new name"),
        ("1 2\n", "two features would have the name '2'"),
        ("77 a\n", "the model has no feature '77'"),
    ],
)
def test_a_feature_map_that_does_not_fit_is_refused(text: str, what: str, model: Path, tmp_path: Path) -> None:
    names, out = tmp_path / "f.map", tmp_path / "out.json"
    names.write_text(text)
    result = run("convert", model, out, "--feature-map", names, status=1)
    assert what in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not out.exists()


def test_a_feature_map_of_many_features_is_read_in_time(tmp_path: Path) -> None:
    n = 60_000
    names = tmp_path / "f.map"
    names.write_text("".join(f"{i} name{i} float\n" for i in range(1, n + 1)))
    started = time.process_time()
    found = rename_features(Ensemble((), np.arange(1, n + 1)), read_feature_map(str(names)), str(names))
    assert time.process_time() - started < 5  # a scan of all names for each takes minutes
    assert found.feature_names is not None
    assert found.feature_names[-1] == f"name{n}"


def test_a_model_of_solr_gets_names_and_scores_from_zero_up(model: Path, tmp_path: Path) -> None:
    out, again = tmp_path / "solr.json", tmp_path / "again.json"
    options = ("--to", "solr", "--name", "ranker 2", "--store", "products", "--nonnegative")
    result = run("convert", model, out, *options, "--verify", SAMPLE / "test.svm")
    assert "solr.json: a last tree adds " in result.stderr
    said = json.loads(out.read_text())
    assert (said["name"], said["store"]) == ("ranker 2", "products")
    scores = [float(line) for line in run("predict", "-m", out, "--data", SAMPLE / "test.svm").stdout.split()]
    assert min(scores) >= 0
    assert "nothing is added" in run("convert", out, again, "--to", "solr", "--nonnegative").stderr
    assert again.read_bytes() == out.read_bytes()  # names are kept
    said["name"] = None
    out.write_text(json.dumps(said))
    run("convert", out, again, "--to", "solr")
    assert json.loads(again.read_text())["name"] == "lmart"


def test_a_named_dump_is_the_request_that_plugins_take(model: Path, tmp_path: Path) -> None:
    plain, named, again = (tmp_path / name for name in ("plain", "named", "again"))
    run("convert", model, plain, "--to", "xgboost-dump", "--nonnegative")
    options = ("--to", "xgboost-dump", "--name", 'my "model"', "--nonnegative", "--verify", SAMPLE / "test.svm")
    assert "largest difference" in run("convert", model, named, *options).stderr
    said = json.loads(named.read_text())["model"]
    assert said["name"] == 'my "model"'
    assert said["model"] == {"type": "model/xgboost+json", "definition": plain.read_text()}
    run("convert", named, again, "--to", "xgboost-dump")
    assert again.read_text() == plain.read_text()


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (("--to", "ranklib", "--name", "a"), "--name is for --to xgboost-dump or solr, and DST is ranklib"),
        (("--store", "a"), "--store is for --to solr, and DST is lmart"),
        (("--to", "solr", "--name", ""), "--name is empty"),
        (("--to", "onnx", "--nonnegative"), "--nonnegative needs a tool that adds trees in order"),
        (("--to", "csv", "--nonnegative"), "--nonnegative is for models, and csv holds data"),
        (("--to", "csv", "--feature-map", "f"), "--feature-map is for models, and csv holds data"),
    ],
)
def test_options_that_the_target_does_not_need_are_refused(options: tuple[str, ...], what: str, tmp_path: Path) -> None:
    source = SAMPLE / "test.svm" if "csv" in options else tmp_path / "no.json"
    result = run("convert", source, tmp_path / "out.json", *options, status=2)
    assert what in result.stderr


def test_an_option_for_data_is_said_to_have_no_effect_on_a_model(model: Path, tmp_path: Path) -> None:
    assert "--absent has no effect on a model" in run("convert", model, tmp_path / "m", "--absent", "missing").stderr


def test_options_for_models_are_refused_with_data(tmp_path: Path) -> None:
    for option in (["--strict"], ["--verify", SAMPLE / "test.svm"], ["--feature-map", "f.map"]):
        result = run("convert", SAMPLE / "test.svm", tmp_path / "a.csv", *option, status=2)
        assert f"{option[0]} is for models, and csv holds data" in result.stderr


def test_data_of_another_model_cannot_verify(model: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.svm"
    other.write_text("1 qid:1 500:1\n")
    result = run("convert", model, tmp_path / "out.json", "--verify", other, status=1)
    assert "no feature of the data is in the model" in result.stderr
    assert not (tmp_path / "out.json").exists()


# Each format there and back

BOTH = [
    name for name, one in MODEL_FORMATS.items() if one.reader is not None and one.writer is not None and name != OWN
]
EXACT = ("lightgbm", "lightgbm-json")  # in thresholds, leaf values and sums
FOREIGN_NAME = "{}.model"  # which says no format, so that contents must


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with data of float32 numbers, multiples of 1/64, a model of it, and the model in each format."""
    folder = tmp_path_factory.mktemp("plain")
    rng = random.Random(4)
    rows = []
    for query in range(40):
        for _ in range(12):
            values = [rng.randrange(-128, 129) / 64 for _ in range(5)]
            label = max(0, min(4, int(values[0] + values[1] + rng.random() + 1.5)))
            rows.append(f"{label} qid:{query} " + " ".join(f"{i}:{x}" for i, x in enumerate(values, 1)) + "\n")
    (folder / "data.svm").write_text("".join(rows))
    small = ("--trees", "12", "--leaves", "8", "--min-docs", "5", "--rankers", "1")
    run("train", "-q", "--data", folder / "data.svm", *small, "--out", folder / "model.json")
    for name in BOTH:
        run("convert", folder / "model.json", folder / FOREIGN_NAME.format(name), "--to", name, "-qq")
    return folder


def leaves(model: Path, data: Path) -> list[list[float]]:
    """The float32 leaf value that each tree gives each row, by a walk of its own."""
    ensemble = read_model(str(model))
    dataset = read_dataset([str(data)], ReadOptions())
    assert dataset.feature_ids.tolist() == ensemble.feature_ids.tolist()
    found = []
    for row in dataset.features.dense(dataset.n_features, math.nan).tolist():
        values = []
        for tree in ensemble.trees:
            node = 0
            while node >= 0:
                is_left = row[tree.split_columns[node]] <= tree.thresholds[node]
                node = int((tree.left if is_left else tree.right)[node])
            values.append(float(np.float32(tree.leaf_values[~node])))
        found.append(values)
    return found


def predicted(model: Path, data: Path) -> list[float]:
    return [float(line) for line in run("predict", "-m", model, "--data", data).stdout.split()]


@pytest.mark.parametrize("name", BOTH)
def test_there_and_back_no_row_changes_its_leaf(name: str, plain: Path, tmp_path: Path) -> None:
    there, back = tmp_path / "there", tmp_path / "back.json"
    data = plain / "data.svm"
    result = run("convert", plain / "model.json", there, "--to", name, "--verify", data)
    told = re.search(rf"{name}, 12 trees, 5 features; verified with 480 rows and \d+ planted rows: (.*)", result.stderr)
    assert told is not None, result.stderr
    difference = re.fullmatch(r"largest difference (\S+), 0 rows changed leaf", told[1])
    assert difference is not None and float(difference[1]) <= (0.0 if name in EXACT else 1e-6)
    assert not [line for line in result.stderr.splitlines() if name in EXACT and "warning" in line]
    run("convert", there, back, "--verify", data, "--strict")
    assert leaves(back, data) == leaves(plain / "model.json", data)
    again = tmp_path / "again"
    run("convert", back, again, "--to", name, "-qq")
    assert predicted(again, data) == predicted(there, data)


@pytest.mark.parametrize("name", BOTH)
def test_other_commands_take_the_file_as_it_is(name: str, plain: Path, tmp_path: Path) -> None:
    model, data, back = plain / FOREIGN_NAME.format(name), plain / "data.svm", tmp_path / "back.json"
    run("convert", model, back, "-q")
    scores, own = predicted(model, data), predicted(plain / "model.json", data)
    assert scores == predicted(back, data) == lmart.load(model).predict_letor(data).tolist()
    assert scores == own if name in EXACT else scores == pytest.approx(own, abs=1e-6)
    shown = [run("eval", "-m", one, "--data", data, "--json").stdout for one in (model, plain / "model.json")]
    assert json.loads(shown[0])["metrics"] == pytest.approx(json.loads(shown[1])["metrics"], abs=1e-3)


@pytest.mark.parametrize("name", BOTH)
def test_a_format_is_known_by_its_content(name: str, plain: Path, tmp_path: Path) -> None:
    content = (plain / FOREIGN_NAME.format(name)).read_bytes()
    assert model_format_of(content[: 1 << 16]) == name
    out = tmp_path / "same"
    run("convert", "-", out, "--to", OWN, "-q", stdin=content)
    run("convert", plain / FOREIGN_NAME.format(name), tmp_path / "file", "-q")
    assert out.read_bytes() == (tmp_path / "file").read_bytes()
    compressed = tmp_path / "packed"
    compressed.write_bytes(gzip.compress(content))
    run("convert", compressed, tmp_path / "unpacked", "-q")
    assert (tmp_path / "unpacked").read_bytes() == out.read_bytes()


@pytest.mark.parametrize("name", BOTH)
def test_strict_refuses_what_a_format_cannot_hold(name: str, plain: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    if name in EXACT:
        assert "warning" not in run("convert", plain / "model.json", out, "--to", name, "--strict").stderr
        return
    result = run("convert", plain / "model.json", out, "--to", name, "--strict", status=1)
    (line,) = result.stderr.splitlines()
    assert re.search(r"error: .*: 8\d\b.* thresholds? .*float32.*; convert without --strict to accept it$", line)
    assert not out.exists()


def test_round_the_ring_no_row_changes_its_leaf(plain: Path, tmp_path: Path) -> None:
    data = plain / "data.svm"
    ring = [plain / "model.json", *(tmp_path / one for one in ("a.txt", "b.json", "c.xgb", "d.json"))]
    for source, target, to in zip(ring, ring[1:], ("lightgbm", OWN, "xgboost", OWN), strict=False):
        run("convert", source, target, "--to", to, "--verify", data, "-q")
    assert predicted(ring[0], data) == predicted(ring[1], data) == predicted(ring[2], data)
    assert predicted(ring[3], data) == predicted(ring[4], data) == pytest.approx(predicted(ring[0], data), abs=1e-6)
    assert leaves(ring[4], data) == leaves(ring[0], data)


def test_formats_that_are_only_written_say_so(plain: Path, tmp_path: Path) -> None:
    run("convert", plain / "model.json", tmp_path / "model.c", "-q")
    result = run("convert", tmp_path / "model.c", tmp_path / "back.json", status=2)
    assert "the format 'c' is only written" in result.stderr
    for arguments in (["--from", "onnx"], ["--to", "onnx", "--verify", plain / "data.svm"]):
        result = run("convert", plain / "model.json", tmp_path / "out", *arguments, status=2)
        assert "only written" in result.stderr


# A model where data is due, and data where a model is


@pytest.mark.parametrize("name", [OWN, *BOTH])
def test_a_model_is_refused_as_data(name: str, plain: Path, tmp_path: Path) -> None:
    model = plain / ("model.json" if name == OWN else FOREIGN_NAME.format(name))
    out = tmp_path / "out"
    calls: list[list[str | Path]] = [["train", "--data", model]]
    calls += [["predict", "-m", plain / "model.json", "--data", model]]
    for arguments in calls:
        (line,) = run(*arguments, "-o", out, status=1).stderr.splitlines()
        assert f"{model}: is a model by its name or content ({name}); give a file of judged documents" in line
    (line,) = run("convert", model, tmp_path / "out.csv", status=2).stderr.splitlines()
    assert f"{name} holds a model and csv data; convert data to data, model to model" in line
    assert not list(tmp_path.iterdir())


def test_data_is_refused_as_a_model(plain: Path, tmp_path: Path) -> None:
    data, out = plain / "data.svm", tmp_path / "out"
    calls: list[list[str | Path]] = [["predict", "-m", data], ["train", "--continue-from", data]]
    for arguments in calls:
        (line,) = run(*arguments, "--data", data, "-o", out, status=1).stderr.splitlines()
        assert line.startswith(f"lmart: error: {data}: this is no lmart model: it starts with ")
    (line,) = run("eval", "-m", data, "--data", data, status=1).stderr.splitlines()
    assert line.startswith(f"lmart: error: {data}: this is no lmart model: it starts with ")
    for name in [OWN, *BOTH]:
        (line,) = run("convert", data, out, "--to", name, status=2).stderr.splitlines()
        assert f"letor holds data and {name} a model; convert data to data, model to model" in line
        read = run("convert", "--from", name, "-", out, "--to", OWN, status=1, stdin=data.read_bytes()).stderr
        assert len(read.splitlines()) == 1 and read.startswith("lmart: error: standard input")
    assert not out.exists()


def test_standard_output_has_its_name_in_messages(model: Path) -> None:
    result = run("convert", model, "-", "--to", "solr")
    assert "lmart: standard output: solr, 3 trees" in result.stderr
    assert "standard input" not in result.stderr


def test_a_name_that_is_no_unicode_is_refused_in_one_line(model: Path, tmp_path: Path) -> None:
    parsed = json.loads(model.read_text())
    parsed["feature_names"] = ["\ud800", *map(str, parsed["feature_ids"][1:])]
    model.write_text(json.dumps(parsed))
    result = run("convert", model, tmp_path / "m.txt", "--to", "lightgbm", status=1)
    assert "a name holds '\\ud800', which is no character" in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("target", ["lightgbm", "lightgbm-json", "xgboost", "xgboost-ubj"])
def test_names_that_the_format_changes_can_be_verified(target: str, model: Path, tmp_path: Path) -> None:
    parsed = json.loads(model.read_text())
    odd = ["a[b", "a_b", "a b", 'say "x"', "c,d"]
    parsed["feature_names"] = [*odd, *(f"n{index}" for index in parsed["feature_ids"][5:])]
    model.write_text(json.dumps(parsed))
    result = run("convert", model, tmp_path / "out", "--to", target, "--verify", SAMPLE / "test.svm")
    assert "got '_' in place" in result.stderr
    assert "0 rows changed leaf" in result.stderr


def test_every_command_tells_that_training_stopped_early(model: Path, tmp_path: Path) -> None:
    early, data = tmp_path / "early.json", SAMPLE / "test.svm"
    run("convert", model, early, "--to", "xgboost", "-qq")
    parsed = json.loads(early.read_text())
    parsed["learner"]["attributes"] = {"best_iteration": "0"}
    early.write_text(json.dumps(parsed))
    told = "lmart uses all 3 rounds, as XGBoost's Booster does; its XGBRanker uses 1"
    for command in (
        ("predict", "-m", early, "--data", data),
        ("eval", "-m", early, "--data", data),
        ("convert", early, tmp_path / "own.json"),
        ("show", early),
        (
            "train",
            "--continue-from",
            early,
            "--data",
            SAMPLE / "train.svm",
            "--trees",
            "1",
            "--out",
            tmp_path / "on.json",
        ),
    ):
        assert told in run(*command).stderr
    with pytest.warns(UserWarning, match="early.json: lmart uses all 3 rounds"):
        lmart.load(early)


@pytest.mark.parametrize("target", ["lightgbm", "xgboost", "xgboost-dump"])
def test_a_table_keeps_its_columns_through_other_tools(target: str, tmp_path: Path) -> None:
    data, model, there = tmp_path / "d.csv", tmp_path / "m.json", tmp_path / "there"
    rows = [(x * 5 // 40, x // 20, f"{x % 7},{x}") for x in range(40)]
    data.write_text("label,qid,bm25,clicks\n" + "".join(f"{label},{qid},{cells}\n" for label, qid, cells in rows))
    run("train", "-q", "--data", data, "--trees", "2", "--min-docs", "1", "--out", model)
    run("convert", model, there, "--to", target, "-qq")
    assert b"f0" not in there.read_bytes() and b"Column_0" not in there.read_bytes()
    scores = predicted(there, data)
    assert scores == pytest.approx(predicted(model, data), abs=1e-6)
    assert run("predict", "-m", there, "--data", data).stderr == ""
