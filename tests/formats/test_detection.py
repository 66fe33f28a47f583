"""Files that are neither a model nor data, but known: each reader says what they are and what to do."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest
from helpers.commands import run
from helpers.paths import SAMPLE

from lmart.errors import DataError, ModelError
from lmart.formats.detection import data_format, detect_format, refuse_foreign
from lmart.formats.models.model_files import parse_model
from lmart.formats.read_options import ReadOptions

CATBOOST = {"features_info": {}, "model_info": {}, "oblivious_trees": [], "scale_and_bias": [1, [0]]}
KNOWN = {
    "lfs": (b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n", "Git LFS", "'git lfs pull'"),
    "dvc": (b"outs:\n- md5: a304\n  path: m.json\n", "DVC", "'dvc pull'"),
    "annex": (b"../.git/annex/objects/aB/Cd/SHA256E-s1--0.json\n", "git-annex", "'git annex get'"),
    "conflict": (b'<<<<<<< HEAD\n{"format": "lmart"}\n=======\n', "a merge conflict of Git", "resolve"),
    "html": (b"\xef\xbb\xbf\n<!DOCTYPE html>\n<html><title>404</title></html>", "a web page", "download it again"),
    "s3": (b'<?xml version="1.0"?>\n<Error><Code>AccessDenied</Code></Error>', "an error message", "download it again"),
    "pmml": (b'<?xml version="1.0"?>\n<PMML version="4.4"/>', "a model in PMML", "give "),
    "catboost": (b"CBM1\x08\x05\0\0" + bytes(range(200)), "a model of CatBoost, ", "give "),
    "catboost json": (json.dumps(CATBOOST, indent=1).encode(), "a model of CatBoost in JSON", "give "),
    "onnx": (b"\x08\x0a\x12\x04onnx:\x07", "an ONNX model", "made from"),
    "c": (b"/* A ranking model written by lmart: 1 tree", "C source", "made from"),
    "notebook": (b'{\n "cells": [],\n "nbformat": 4\n}', "a Jupyter notebook", "give "),
    "measures": (b'{"queries": 4, "metrics": {"map": 1}}', "lmart eval --json", "give "),
    "pickle": (pickle.dumps({"a": [1]}), "a pickle", "save its content"),
    "old pickle": (pickle.dumps({"a": 1}, 0), "a pickle", "save its content"),
    "r": (b"RDX3\nX\n\0\0\0\3", "data of R", "save its content"),
    "npy": (b"\x93NUMPY\1\0v\0", "a NumPy array", "give "),
    "feather": (b"ARROW1\0\0", "Arrow (Feather)", "give "),
    "orc": (b"ORC\x0e\x08", "ORC", "give "),
    "tar": (b"a" * 100 + bytes(157) + b"ustar\x0000", "a tar archive", "unpack"),
    "pdf": (b"%PDF-1.4\n", "a PDF", "give "),
    "script": (b"#!/usr/bin/env python\nprint(1)\n", "a program", "give "),
    "qrels": (b"301 0 FBIS3-10082 1\n301 0 FBIS3-10169 0\n", "TREC qrels", "--qrels"),
    "qrels, tabs": (b"301\t0\t10082\t-1", "TREC qrels", "--qrels"),
    "run": (b"301 Q0 FBIS3-10082 1 2.5 tag\n", "a TREC run", "--run"),
}


@pytest.mark.parametrize("name", KNOWN)
def test_what_a_file_is_and_what_to_do_is_said_of_models_and_data(name: str) -> None:
    content, what, advice = KNOWN[name]
    with pytest.raises(ModelError) as as_model:
        parse_model(content, "m")
    with pytest.raises(DataError) as as_data:
        refuse_foreign("m", content, "letor")
    for refused in (as_model, as_data):
        message = str(refused.value)
        assert message.startswith("m: this is ")
        assert what in message
        assert advice in message
        assert "\n" not in message


def test_commands_say_it(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(KNOWN["lfs"][0])
    said = f"lmart: error: {path}: this is a pointer of Git LFS, not the file itself; get it with 'git lfs pull'\n"
    for words in (("show", path), ("predict", "-m", path, "--data", "x"), ("train", "--data", path, "-o", "/dev/null")):
        assert run(*words, status=1).stderr == said
    for out in ("m.json", "d.csv"):
        assert run("convert", path, tmp_path / out, status=1).stderr == said


@pytest.mark.parametrize("option", ["--scores", "--weights", "--qrels", "--run"])
def test_files_of_lines_are_looked_at_too(option: str, tmp_path: Path) -> None:
    path, other = tmp_path / "file", tmp_path / "other"
    path.write_bytes(KNOWN["html"][0])
    other.write_text("1 0 d 1\n")
    trec = {"--qrels": ("--run", other), "--run": ("--qrels", other)}
    more = trec.get(option, ("--data", SAMPLE / "test.svm", *(() if option == "--scores" else ("--scores", other))))
    said = run("eval", option, path, *more, status=1).stderr
    assert said == f"lmart: error: {path}: this is a web page (HTML), perhaps an error message; download it again\n"


@pytest.mark.parametrize(
    "content",
    [
        b"ORC,label,qid\n1,1,1\n",
        b"CBM1,label,qid\n1,1,1\n",
        b"ARROW1,label,qid\n1,1,1\n",
        b"label,qid,features_info\n",
        b"label\tqid\t7\t3\n1\ta\t2\t5\n",
        b"1 qid:1 1:0.5 # a b\n",
        b"1 # 0 d 1\n",
        b"1 1:2 2:3 3\n",
        b"0.5\n",
    ],
)
def test_data_that_begins_alike_is_data(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    assert detect_format(str(path), "data") in ("letor", "csv", "tsv")
    refuse_foreign("m", content, data_format("m", content, ReadOptions()))


def test_a_table_without_a_header_is_called_so(tmp_path: Path) -> None:
    forms = {b"1,1,0.5\n0,1,0.3\n": "csv", b"1\t1\t.5e3\n": "tsv", b"1 2 3\n": "letor", b"1,2\n": "letor"}
    assert {text: data_format("m", text, ReadOptions()) for text in forms} == forms
    path = tmp_path / "table"
    path.write_bytes(b"1,1,0.5\n0,1,0.3\n")
    assert detect_format(str(path)) == "csv"
    message = run("train", "--data", path, "-o", tmp_path / "m", status=1).stderr
    assert "table:1: the first line looks like data, not a header" in message
