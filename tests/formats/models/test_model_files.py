"""Model.save and lmart.load write and read the files that `lmart convert` does."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest
from helpers.commands import run
from helpers.paths import SAMPLE

import lmart
from lmart.errors import ModelError, OutputError
from lmart.formats.registry import MODEL_FORMATS

MODEL = lmart.train(lmart.read(SAMPLE / "train.svm"), trees=12, rankers=2)


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
