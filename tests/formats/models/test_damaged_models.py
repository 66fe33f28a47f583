"""Damaged models of other tools: whatever the bytes, a reader returns a sound model or refuses in one line."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

import numpy as np
import pytest

from lmart.errors import ModelError
from lmart.formats.models import quickrank, ranklib, solr
from lmart.scoring.ensemble import Ensemble, flatten, structure_fault

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
READERS: dict[str, tuple[Callable[[bytes, str], Ensemble], bytes]] = {
    "ranklib": (ranklib.read, f"## LambdaMART\n\n{TREES}".encode()),
    "forest": (ranklib.read, f"## Random Forests\n\n{TREES}{TREES}".encode()),
    "quickrank": (quickrank.read, f"<ranker><info><type>MART</type></info>{TREES}</ranker>".encode()),
    "solr": (solr.read, json.dumps(SOLR).encode()),
}
PIECES = (
    *(b"<split>", b"</split>", b"<output>1</output>", b"<feature>1</feature>", b"<threshold>1</threshold>", b"</tree>"),
    *(b'<tree weight="1">', b"<ensemble>", b"</ensemble>", b"<!--", b"-->", b"<![CDATA[", b"&lt;", b"&a;", b"<info>"),
    *(
        b"</lmart-model>",
        b"<!DOCTYPE a [<!ENTITY b 'c'>]>",
        b"\n#",
        b"\r",
        b"\x00",
        b"\xff",
        b"\xef\xbb\xbf",
        b"<",
        b">",
    ),
    *(
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b'"',
        b'"value": 1,',
        b'"feature": null',
        b"null",
        b"true",
        b"\\ud800",
        b'{"left":',
    ),
    *(b"1e999", b"-1e999", b"nan", b"-Infinity", b"9" * 500, b"-1", b"0", b"1_0", b"3.5e38", b"1e-46", b" "),
)


def damage(rng: random.Random, content: bytes) -> bytes:
    """The bytes with some of them changed, taken out, doubled or put in."""
    damaged = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 5))):
        i, j = sorted((rng.randrange(len(damaged) + 1), rng.randrange(len(damaged) + 1)))
        match rng.randrange(5):
            case 0:
                damaged[i : i + 1] = bytes([rng.randrange(256)])
            case 1:
                del damaged[i : i + rng.choice((1, 3, 30))]
            case 2:
                damaged[i:i] = rng.choice(PIECES) * rng.choice((1, 1, 2, 100))
            case 3:
                damaged[i:i] = damaged[i:j]
            case _:
                del damaged[j:]
    return bytes(damaged)


@pytest.mark.parametrize("case", READERS)
def test_a_sound_model_or_one_line(case: str) -> None:
    read, content = READERS[case]
    if case != "forest":  # of two trees a bag, which is refused
        assert len(read(content, "m").trees) == 2
    rng = random.Random(case)
    accepted = refused = 0
    for _ in range(1500):
        try:
            model = read(damage(rng, content), "m")
        except ModelError as fault:
            assert "\n" not in str(fault)
            refused += 1
            continue
        flat = flatten(model.trees)
        assert structure_fault(flat, model.n_features) is None
        assert (np.diff(model.feature_ids) > 0).all()
        accepted += 1
    assert refused > 500
    assert (accepted > 0) == (case != "forest")


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


@pytest.mark.parametrize("case", BOMBS)
@pytest.mark.parametrize("read", [ranklib.read, quickrank.read])
def test_large_hostile_files_are_refused_soon(read: Callable[[bytes, str], Ensemble], case: str) -> None:
    with pytest.raises(ModelError):
        model = read(BOMBS[case], "m")
        assert not model.trees  # an ensemble without trees is sound
        raise ModelError("no tree")


@pytest.mark.parametrize("content", [b"[" * 3_000_000, b'{"a":' * 500_000, b'{"class": "' + b"x" * 3_000_000, b""])
def test_large_hostile_json_is_refused_soon(content: bytes) -> None:
    with pytest.raises(ModelError):
        solr.read(content, "m")
