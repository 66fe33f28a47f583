"""Damaged and hostile files of other tools' models: every one is refused in one line and soon, or is a sound model."""

from __future__ import annotations

import json
import random
import re
from types import ModuleType
from typing import NamedTuple

import numpy as np
import pytest
from helpers.foreign_models import check_sound, random_tree, with_bounds

from lmart.errors import ModelError
from lmart.formats.models import quickrank, ranklib, solr
from lmart.formats.models.lightgbm import json as lightgbm_json
from lmart.formats.models.lightgbm import text as lightgbm_text
from lmart.formats.models.xgboost import dump as xgboost_dump
from lmart.formats.models.xgboost import json as xgboost_json
from lmart.formats.models.xgboost import ubjson as xgboost_ubj
from lmart.formats.models.xgboost.reading import category_edges32
from lmart.scoring.ensemble import Ensemble

TOKEN = re.compile(rb'-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|"[^"\\]{0,30}"|true|false|null|</?\w+>')
TOKENS = [
    *(b"0", b"-1", b"1e999", b"-1e999", b"nan", b"NaN", b"inf", b"-Infinity", b"null", b"true", b'""', b"[]", b"{}"),
    *(b"[", b"]", b"{", b"}", b",", b'"', b"9" * 30, b"9" * 500, b"2147483648", b"-2147483649", b"4294967295"),
    *(b"9223372036854775808", b"1_0", b"1.5", b"3.5e38", b"1e-46", b"\xff", b"\x00", b"\r\n", b"\n#", b"=", b" "),
    *(b"Tree=0", b"num_leaves=1000000000", b"num_cat=99999999", b"end of trees", b'"3||1"', b'"a"', b"\\ud800"),
    *(b"[$d#L" + b"\x7f" * 8, b"[$T#l\x7f\xff\xff\xff", b"[#L" + b"\x7f" * 8, b"Z", b"[" * 3000, b'{"a":' * 3000),
    *(b"<split>", b"</split>", b"<output>1</output>", b"<feature>1</feature>", b"<threshold>1</threshold>", b"</tree>"),
    *(b'<tree weight="1">', b"<ensemble>", b"</ensemble>", b"<!--", b"-->", b"<![CDATA[", b"&lt;", b"&a;", b"<info>"),
    *(b"</lmart-model>", b"<!DOCTYPE a [<!ENTITY b 'c'>]>", b"\xef\xbb\xbf", b'"value": 1,', b'"feature": null'),
]


class Case(NamedTuple):
    """A format, and a sound model in it."""

    form: ModuleType
    content: bytes


def written(form: ModuleType) -> Case:
    rng = np.random.default_rng(1)
    trees = [random_tree(rng, n_leaves, 3, True) for n_leaves in (6, 1, 4)]
    trees[0] = with_bounds(trees[0], {1: (category_edges32(np.array([1, 3, 4])), True)})
    return Case(form, form.write(Ensemble(tuple(trees), np.array([1, 2, 4]), base_score=0.25)).content)


SPLITS = (
    '<split><feature>3</feature><threshold>0.1</threshold><split pos="left"><output>-1.5</output></split>\n'
    '<split pos="right"><feature>1</feature><threshold>-2.5E-3</threshold><split pos="left">\n'
    '<output>0.25</output></split><split pos="right"><output>7</output></split></split></split>'
)
TREES = f'<ensemble><tree id="1" weight="0.1">{SPLITS}</tree>\n<tree id="2" weight="1">{SPLITS}</tree></ensemble>\n'
NODE = {
    "feature": "f3",
    "threshold": "0.1",
    "left": {"value": "1"},
    "right": {"feature": "f1", "threshold": -0.5, "left": {"value": 3}, "right": {"value": -4.5}},
}
SOLR = {
    "class": solr.CLASS,
    "features": [{"name": "f1"}, {"name": "f3"}],
    "params": {"trees": [{"weight": "1", "root": NODE}, {"weight": 0.5, "root": {"value": "0.3"}}]},
}
FOREST = TREES.replace('<tree id="2"', '</ensemble>\n<ensemble><tree id="2"')
CASES = {
    "lightgbm": written(lightgbm_text),
    "lightgbm-json": written(lightgbm_json),
    "xgboost": written(xgboost_json),
    "xgboost-ubj": written(xgboost_ubj),
    "xgboost-dump": written(xgboost_dump),
    "ranklib": Case(ranklib, f"## LambdaMART\n\n{TREES}".encode()),
    "forest": Case(ranklib, f"## Random Forests\n\n{FOREST}".encode()),
    "quickrank": Case(quickrank, f"<ranker><info><type>MART</type></info>{TREES}</ranker>".encode()),
    "solr": Case(solr, json.dumps(SOLR).encode()),
}


def damage(rng: random.Random, content: bytes) -> bytes:
    """The content with one to three faults: bytes changed or cut, numbers and texts exchanged, parts repeated."""
    for _ in range(rng.randint(1, 3)):
        kind, place = rng.randrange(7), rng.randrange(len(content))
        spans = [found.span() for found in TOKEN.finditer(content)] or [(0, 1)]
        start, stop = rng.choice(spans)
        if kind == 0:
            content = content[:place] + bytes([rng.randrange(256)]) + content[place + 1 :]
        elif kind == 1:
            content = content[:start] + rng.choice(TOKENS) + content[stop:]
        elif kind == 2:
            other = rng.choice(spans)
            content = content[:start] + content[other[0] : other[1]] + content[stop:]
        elif kind == 3:
            content = content[:place] + content[place + rng.randrange(1, 60) :]
        elif kind == 4:
            content = content[:place] + content[start : start + 200] + content[place:]
        elif kind == 5:
            content = content[:place] + rng.choice(TOKENS) * rng.choice((1, 1, 2, 100)) + content[place:]
        elif rng.random() < 0.2:
            content = content[: place + 1]
        content = content or b"0"
    return content


@pytest.mark.parametrize("name", CASES)
def test_damaged_files_are_refused_or_sound(name: str) -> None:
    form, content = CASES[name]
    assert len(form.read(content, "file").trees) > 1
    rng = random.Random(7)
    outcomes = {"refused": 0, "sound": 0}
    for _ in range(800):
        damaged = damage(rng, content)
        form.looks_like(damaged[:4096])
        try:
            check_sound(form.read(damaged, "file"))
            outcomes["sound"] += 1
        except ModelError as fault:
            assert "\n" not in str(fault)
            outcomes["refused"] += 1
    assert min(outcomes.values()) > 5


BOMBS = {
    "text": b"<ensemble><tree weight='1'><split><output>" + b"1" * 3_000_000,
    "open": b"<a>" * 1_000_000,
    "attributes": b"<ensemble " + b" ".join(b'a%d="1"' % i for i in range(100_000)) + b"></ensemble>",
    "trees": b"<ensemble>" + b'<tree id="1" weight="1">' * 100_000,
    "entities": b'<!DOCTYPE a [<!ENTITY b "cc"><!ENTITY d "&b;&b;">]><ensemble>&d;</ensemble>',
    "blanks": b"<ensemble><tree id='1' weight='1'><split>" + b" " * 3_000_000,
    "comments": b"<!--" * 500_000,
    "features": b"<ensemble><tree weight='1'>" + b"<split><feature>1</feature><threshold>1</threshold>" * 120_000,
}


@pytest.mark.parametrize("name", BOMBS)
@pytest.mark.parametrize("form", [ranklib, quickrank])
def test_large_hostile_files_are_refused_soon(form: ModuleType, name: str) -> None:
    with pytest.raises(ModelError):
        model = form.read(BOMBS[name], "m")
        assert not model.trees  # an ensemble without trees is sound
        raise ModelError("no tree")


@pytest.mark.parametrize("content", [b"[" * 3_000_000, b'{"a":' * 500_000, b'{"class": "' + b"x" * 3_000_000, b""])
def test_large_hostile_json_is_refused_soon(content: bytes) -> None:
    with pytest.raises(ModelError):
        solr.read(content, "m")
