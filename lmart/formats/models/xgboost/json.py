"""XGBoost's models as save_model writes them: JSON from 1.0 on, and from 1.6 on the same document in UBJSON."""

from __future__ import annotations

import json
import re
from typing import NoReturn

import numpy as np

from lmart.errors import ModelError, quote
from lmart.formats.format_records import WrittenModel
from lmart.formats.models.json_text import json_start, parse_json
from lmart.formats.models.targets import join_whole
from lmart.formats.models.xgboost.reading import read_document
from lmart.formats.models.xgboost.writing import FLOATS, WrittenTrees, document, prepare, spell
from lmart.scoring.ensemble import Ensemble

DOCUMENT = re.compile(r'\{\s*("version"\s*:\s*\[[\d,\s]*\]\s*,\s*)?"learner"\s*:')
KINDS = (b"gbtree", b"gblinear", b"dart")


def looks_like(start: bytes) -> bool:
    """Return whether the first bytes of a file are those of a JSON model of XGBoost, or of its old binary format."""
    text = json_start(start[:65536])
    return DOCUMENT.match(text) is not None or _is_old(start)


def _is_old(start: bytes) -> bool:
    """Return whether the bytes are of the binary format that XGBoost wrote before JSON, or of a pickled model."""
    if start[:5] in (b"binf\x00", b"bs64\t") or start[:4] == b"binf":
        return True
    binary = b"\x00" in start[:64] and not start.startswith(b"{")
    return (binary and any(kind in start[:512] for kind in KINDS)) or (start[:1] == b"\x80" and b"xgboost" in start)


def read(content: bytes, path: str) -> Ensemble:
    """Return the model that a file holds; ModelError when it is no sound one."""
    if not json_start(content[:4096]).startswith("{"):
        refuse_other(content, path)
    return read_document(parse_json(content, path), path)


def write(ensemble: Ensemble) -> WrittenModel:
    """Return the model as JSON that XGBoost 1.6 to 3 load; ModelError when it cannot hold it."""
    model = prepare(ensemble)
    return WrittenModel(_json_text(model), tuple(model.notes))


def refuse_other(content: bytes, path: str) -> NoReturn:
    """Refuse what is no JSON, and say what to do when it is another way in which models of XGBoost are kept."""
    if not content.strip():
        raise ModelError("the file is empty", path)
    if _is_old(content[:4096]):
        raise ModelError(
            "this is a model in XGBoost's old binary format, or pickled; load it in an XGBoost from 1.0 to 3.0 that"
            " reads it, and save it again as .json",
            path,
        )
    start = content[:200].split(b"\n", 1)[0].rstrip(b"\r")
    if start.startswith(b"booster["):
        raise ModelError("this is a text dump of XGBoost, which is for reading by eye; save the model as .json", path)
    raise ModelError(f"this is no model of XGBoost: it starts with {quote(start, 40)}", path)


def _json_text(model: WrittenTrees) -> bytes:
    """Return the document as JSON, one tree a line."""
    content = document(model)
    booster = content["learner"]["gradient_booster"]["model"]
    trees, booster["trees"] = booster["trees"], []
    spelled = {name: spell(model.arrays[name]) for name in FLOATS}
    lines = []
    for tree, start, stop in zip(trees, model.offsets[:-1].tolist(), model.offsets[1:].tolist(), strict=True):
        entries = []
        for key, value in tree.items():
            if key in spelled:
                text = f"[{','.join(spelled[key][start:stop])}]"
            elif isinstance(value, np.ndarray):
                text = f"[{join_whole(value, ',')}]"
            else:
                text = json.dumps(value, separators=(",", ":"))
            entries.append(f'"{key}":{text}')
        lines.append("{" + ",".join(entries) + "}")
    shell = json.dumps(content, separators=(",", ":"), ensure_ascii=False)
    head, mark, tail = shell.partition('"trees":[]')
    return (head + mark[:-1] + "\n" + ",\n".join(lines) + "]" + tail + "\n").encode()
