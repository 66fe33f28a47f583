"""The records of formats: each can be loaded, is recognised as it says, and one more record is all a format needs."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest
from helpers.commands import run
from helpers.paths import SAMPLE

from lmart.errors import DataError, ModelError
from lmart.formats.format_records import DataFormat, Lazy, ModelFormat, ResultFormat, WrittenModel
from lmart.formats.models import lmart_json
from lmart.formats.models.lmart_json import model_to_json
from lmart.formats.models.model_files import read_model
from lmart.formats.registry import (
    DATA_FORMATS,
    FORMATS,
    MODEL_FORMATS,
    OWN,
    RESULT_FORMATS,
    format_of_name,
    model_format_of,
)
from lmart.scoring.ensemble import Ensemble

ALL = [*FORMATS.values(), *RESULT_FORMATS.values()]


@pytest.mark.parametrize("one", ALL, ids=lambda one: f"{one.kind}-{one.name}")
def test_each_record_names_what_there_is(one: DataFormat | ModelFormat | ResultFormat) -> None:
    assert set(DATA_FORMATS) & set(MODEL_FORMATS) == set()
    assert bool(one.title) >= bool(one.package)
    if one.package:
        pytest.importorskip(one.package)
    for function in (one.reader, one.writer, getattr(one, "looks_like", None)):
        assert function is None or callable(function.load())


def test_a_name_says_one_format() -> None:
    suffixes = [suffix for one in FORMATS.values() for suffix in one.suffixes]
    assert len(set(suffixes)) == len(suffixes)
    for name, found in (("a.CSV.gz", "csv"), ("b/m.json.zst", OWN), ("a.txt", None), ("csv", None)):
        named = format_of_name(name)
        assert (None if named is None else named.name) == found


def test_content_says_whether_it_is_a_model() -> None:
    assert model_format_of(b'\xef\xbb\xbf \n{ "format" : "lmart"') == OWN
    for head in (b"", b"{", b'{"a": "format"}', b"1 qid:1 1:1\n", b"PAR1"):
        assert model_format_of(head) is None


def test_what_is_not_read_or_needs_a_package_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    unread = ModelFormat(name="kept", package="nothing_of_this_name", title="Kept")
    with pytest.raises(ModelError, match="m: the format 'kept' is not read"):
        unread.load_reader("m", ModelError)
    with pytest.raises(DataError, match="the format 'kept' is not written"):
        unread.load_writer("m", DataError)
    there = dataclasses.replace(unread, reader=Lazy("models.lmart_json", "write"))
    with pytest.raises(ModelError, match="m: Kept needs the package nothing_of_this_name: pip install nothing_of_this"):
        there.load_reader("m", ModelError)


# ---- one more model format ------------------------------------------------------------------------------------------

HEADS = (b"planted\n", b'{"planted": 1}\n')


class Planted(NamedTuple):
    """A model format: a line, then what lmart writes."""

    name: str
    head: bytes

    def read(self, content: bytes, path: str) -> Ensemble:
        if not content.endswith(b"}\n"):
            raise ModelError("the model ends in the middle", path)
        return lmart_json.read(content.removeprefix(self.head), path)

    def looks_like(self, start: bytes) -> bool:
        return start.startswith(self.head)

    def write(self, ensemble: Ensemble) -> WrittenModel:
        return WrittenModel(self.head + model_to_json(ensemble).encode(), ("the planted format rounds",))


@pytest.fixture(params=HEADS)
def planted(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Planted:
    """A model format in a module of its own, known by one record."""
    made = Planted("ranklib", request.param)
    module = ModuleType("lmart.formats.models.planted")
    module.__dict__.update(read=made.read, write=made.write, looks_like=made.looks_like)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    record = ModelFormat(
        name=made.name,
        suffixes=(".planted",),
        reader=Lazy("models.planted", "read"),
        writer=Lazy("models.planted", "write"),
        starts=(made.head[:1],),
        looks_like=Lazy("models.planted", "looks_like"),
    )
    monkeypatch.setitem(MODEL_FORMATS, made.name, record)
    monkeypatch.setitem(FORMATS, made.name, record)
    return made


def test_one_record_makes_a_model_format(planted: Planted, tmp_path: Path) -> None:
    model, other, back = tmp_path / "m.json", tmp_path / "m.planted", tmp_path / "back.json"
    data = SAMPLE / "test.svm"
    run("train", "-q", "--data", SAMPLE / "vali.svm", "--trees", "2", "--out", model)
    assert "m.planted: the planted format rounds" in run("convert", model, other).stderr
    assert other.read_bytes().startswith(planted.head)
    for source in (other, "-"):
        run("convert", source, back, stdin=other.read_bytes())
        assert back.read_bytes() == model.read_bytes()
    for name in ("m.json.txt", "model", "named.json"):  # known by content, whatever the name
        (tmp_path / name).write_bytes(other.read_bytes())
        scores = run("predict", "-m", tmp_path / name, "--data", data).stdout
        assert scores == run("predict", "-m", model, "--data", data).stdout
    other.write_bytes(planted.head + b"{")
    assert "m.planted: the model ends in the middle" in run("predict", "-m", other, "--data", data, status=1).stderr
    (tmp_path / "d").write_bytes(planted.head)
    said = run("predict", "-m", model, "--data", tmp_path / "d", status=1).stderr
    assert f"d: is a model by its name or content ({planted.name}); give a file of judged documents" in said


def test_a_format_that_is_only_written_is_refused_as_a_source(
    planted: Planted, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(FORMATS, planted.name, dataclasses.replace(MODEL_FORMATS[planted.name], reader=None))
    monkeypatch.setitem(MODEL_FORMATS, planted.name, dataclasses.replace(MODEL_FORMATS[planted.name], reader=None))
    (tmp_path / "m").write_bytes(planted.head)
    for source in ("m.planted", tmp_path / "m"):
        said = run("convert", source, tmp_path / "m.json", status=2).stderr
        assert (
            "the format 'ranklib' is only written; those read are: letor, csv, tsv, parquet; or lmart, lightgbm" in said
        )
    with pytest.raises(ModelError, match="m: the format 'ranklib' is not read"):
        read_model(str(tmp_path / "m"))
    with pytest.raises(ModelError, match="m: the format 'onnx' is not read"):
        read_model(str(tmp_path / "m"), "onnx")
