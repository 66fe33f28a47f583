"""Model.save, Model.evaluate and what a Model says of itself: as the commands do."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.commands import run
from helpers.paths import SAMPLE

import lmart
from lmart.errors import ArrayError, DataError, ModelError, OutputError, SettingsError
from lmart.formats.registry import MODEL_FORMATS

DATA, TEST = lmart.read(SAMPLE / "train.svm"), lmart.read(SAMPLE / "test.svm")
MODEL = lmart.train(DATA, trees=12, rankers=2)


def test_what_a_model_says() -> None:
    assert repr(MODEL) == "<lmart.Model: 12 trees of 2 rankers, 20 features>"
    assert MODEL.n_trees == 12
    assert MODEL.settings["rankers"] == 2 and MODEL.settings["learning_rate"] == 0.1
    MODEL.settings.clear()
    assert MODEL.settings


@pytest.mark.parametrize("name", [name for name, one in MODEL_FORMATS.items() if one.writer and one.reader])
def test_every_format_is_what_convert_writes(name: str, tmp_path: Path) -> None:
    MODEL.save(tmp_path / "m.json")
    _save_quietly(tmp_path / "python", name)
    run("convert", tmp_path / "m.json", tmp_path / "command", "--to", name, "-qq")
    assert (tmp_path / "python").read_bytes() == (tmp_path / "command").read_bytes()
    assert lmart.load(tmp_path / "python").n_trees >= 12


def _save_quietly(path: Path, format: str | None = None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        MODEL.save(path, format=format)


def test_the_name_says_the_format(tmp_path: Path) -> None:
    MODEL.save(str(tmp_path / "m.txt"))
    assert json.loads((tmp_path / "m.txt").read_text())["format"] == "lmart"
    MODEL.save(tmp_path / "m.json.gz")
    assert (tmp_path / "m.json.gz").read_bytes()[:2] == b"\x1f\x8b"
    _save_quietly(tmp_path / "code", "c")
    _save_quietly(tmp_path / "m.c")
    assert (tmp_path / "m.c").read_bytes() == (tmp_path / "code").read_bytes()


def test_what_cannot_be_saved(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is no format 'pickle' of models; use 'lmart', 'lightgbm',"):
        MODEL.save(tmp_path / "m", format="pickle")
    with pytest.raises(ValueError, match=r"the name is that of data \(csv\)"):
        MODEL.save(tmp_path / "m.csv")
    with pytest.raises(OutputError):
        MODEL.save(tmp_path / "none" / "m.json")
    assert not list(tmp_path.iterdir())
    with pytest.raises(ModelError):
        lmart.load(SAMPLE / "test.svm")


def test_what_a_format_cannot_hold_is_warned_of(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match=r"m\.xml: ") as told:
        MODEL.save(tmp_path / "m.xml", format="ranklib")
    assert told[0].filename == __file__


@pytest.mark.parametrize("options", [(), ("--empty", "skip"), ("--empty", "one", "--ties", "average")])
def test_measures_are_those_of_eval(options: tuple[str, ...], tmp_path: Path) -> None:
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
def test_conventions_are_those_of_eval(given: dict[str, Any], tmp_path: Path) -> None:
    MODEL.save(tmp_path / "m.json")
    metric = "ndcg@3,ndcg@10,map@10,p@10,dcg"
    options: list[str] = []
    for name, value in given.items():
        text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
        options += ["--" + name.replace("_", "-"), text]
    arguments = ("--data", str(SAMPLE / "test.svm"), "--metric", metric, "--json", *options)
    expected = json.loads(run("eval", "-m", tmp_path / "m.json", *arguments).stdout)["metrics"]
    assert MODEL.evaluate(TEST, metric=metric, **given) == expected != MODEL.evaluate(TEST, metric=metric)


def test_messages_are_those_of_eval(tmp_path: Path) -> None:
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


def test_models_can_be_pickled_and_copied() -> None:
    MODEL.explain(TEST)
    expected = MODEL.predict(TEST).tolist()
    for made in (pickle.loads(pickle.dumps(MODEL)), copy.deepcopy(MODEL)):
        assert made.predict(TEST).tolist() == expected
        assert made.explain(TEST).base == MODEL.explain(TEST).base


def test_a_model_that_does_not_know_its_gain_is_measured_with_exp2(tmp_path: Path) -> None:
    known = lmart.train(DATA, trees=3)
    unknown = lmart.Model(dataclasses.replace(known.ensemble, gain=None))
    assert unknown.evaluate(TEST) == known.evaluate(TEST)
    unknown.save(tmp_path / "own.json")
    assert lmart.load(tmp_path / "own.json").ensemble.gain is None
