"""Damaged files of other tools' models: every one is refused in one line, or is a sound model."""

from __future__ import annotations

import random
import re
from typing import Any

import numpy as np
import pytest
from helpers.foreign_models import check_sound, random_tree, with_bounds

from lmart.errors import ModelError
from lmart.formats.models.lightgbm import json as lightgbm_json
from lmart.formats.models.lightgbm import text as lightgbm_text
from lmart.formats.models.xgboost import dump as xgboost_dump
from lmart.formats.models.xgboost import json as xgboost_json
from lmart.formats.models.xgboost import ubjson as xgboost_ubj
from lmart.formats.models.xgboost.reading import category_edges32
from lmart.scoring.ensemble import Ensemble

TOKEN = re.compile(rb'-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|"[^"\\]{0,30}"|true|false|null')
TOKENS = (
    *(b"0", b"-1", b"1e999", b"nan", b"NaN", b"inf", b"null", b"true", b'""', b"[]", b"{}", b"9" * 30, b"[", b"}"),
    *(b"2147483648", b"-2147483649", b"4294967295", b"9223372036854775808", b"1_0", b"\xff", b"\r\n", b"="),
    *(b"Tree=0", b"num_leaves=1000000000", b"num_cat=99999999", b"end of trees", b'"3||1"', b"[$d#L" + b"\x7f" * 8),
    *(b"[$T#l\x7f\xff\xff\xff", b"[#L" + b"\x7f" * 8, b"Z", b"[" * 3000, b'{"a":' * 3000, b"1.5", b'"a"'),
)


def damage(rng: random.Random, content: bytes) -> bytes:
    """The content with one to three faults: bytes changed or cut, numbers and texts exchanged, parts repeated."""
    for _ in range(rng.randint(1, 3)):
        kind, place = rng.randrange(6), rng.randrange(len(content))
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
        elif rng.random() < 0.2:
            content = content[: place + 1]
    return content or b"0"


@pytest.mark.parametrize("form", [lightgbm_text, lightgbm_json, xgboost_json, xgboost_ubj, xgboost_dump])
def test_damaged_files_are_refused_or_sound(form: Any) -> None:
    numbers = np.random.default_rng(1)
    trees = [random_tree(numbers, n_leaves, 3, True) for n_leaves in (6, 1, 4)]
    trees[0] = with_bounds(trees[0], {1: (category_edges32(np.array([1, 3, 4])), True)})
    content = form.write(Ensemble(tuple(trees), np.array([1, 2, 4]), base_score=0.25)).content
    rng = random.Random(7)
    outcomes = {"refused": 0, "sound": 0}
    for _ in range(400):
        damaged = damage(rng, content)
        form.looks_like(damaged[:4096])
        try:
            check_sound(form.read(damaged, "file"))
            outcomes["sound"] += 1
        except ModelError as fault:
            assert "\n" not in str(fault)
            outcomes["refused"] += 1
    assert min(outcomes.values()) > 5
