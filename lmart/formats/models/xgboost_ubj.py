"""XGBoost's binary model (`save_model("model.ubj")`), written by XGBoost from 1.6 on: its JSON document in UBJSON."""

from __future__ import annotations

from lmart.formats.models.ubjson import decode, encode
from lmart.formats.models.written_model import WrittenModel
from lmart.formats.models.xgboost_document_writer import document
from lmart.formats.models.xgboost_json import refuse_other
from lmart.formats.models.xgboost_reading import read_document
from lmart.formats.models.xgboost_writing import prepare
from lmart.scoring.ensemble import Ensemble


def looks_like(start: bytes) -> bool:
    """Return whether the first bytes of a file are those of a binary model of XGBoost."""
    return start[:1] == b"{" and start[1:2] in (b"L", b"l", b"I", b"i", b"U", b"#") and b"learner" in start[:65536]


def read(content: bytes, path: str) -> Ensemble:
    """Return the model that a file holds; `path` is what to call it in messages. ModelError when it is no sound one."""
    if content[:1] != b"{":
        refuse_other(content, path)
    return read_document(decode(content, path), path)


def write(ensemble: Ensemble) -> WrittenModel:
    """Return the model as the binary document that XGBoost 1.6 to 3 load; ModelError when it cannot hold it."""
    model = prepare(ensemble)
    return WrittenModel(encode(document(model)), tuple(model.notes))
