"""Access to the keys of XGBoost's document of a model, whose every entry may be of a wrong kind."""

from __future__ import annotations

from typing import NoReturn, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from lmart.errors import ModelError
from lmart.formats.models.json_text import shown

# Objectives whose prediction is the sum of base score and leaf values as it is.
SUMS = (
    *("rank:ndcg", "rank:map", "rank:pairwise", "reg:squarederror", "reg:linear", "reg:squaredlogerror"),
    *("reg:pseudohubererror", "reg:absoluteerror", "reg:quantileerror", "binary:logitraw"),
)


Numbers: TypeAlias = npt.NDArray[np.generic]
Kind = TypeVar("Kind")


class Document:
    """The document and how to refuse it."""

    def __init__(self, document: object, path: str) -> None:
        self.path = path
        if not isinstance(document, dict) or not isinstance(document.get("learner"), dict):
            raise ModelError("this is JSON without an object 'learner', so no model that XGBoost saved", path)
        self.learner = document["learner"]
        version = document.get("version")
        listed = version if isinstance(version, (list, np.ndarray)) else []
        self.version = [int(number) for number in listed if isinstance(number, (int, np.integer))]
        self.major_version = self.version[0] if self.version else 0
        booster = self.item(self.learner, "gradient_booster", dict)
        self.kind = booster.get("name")
        if not isinstance(self.kind, str) or self.kind not in ("gbtree", "dart"):
            self.refuse(f"the model is of kind {shown(self.kind)}, and lmart reads trees only: gbtree and dart")
        if "learner_train_param" in self.learner and "model" not in booster:
            self.refuse("these are settings without a model, as save_config gives them; save the model with save_model")
        self.weights = self.numbers(booster, "weight_drop") if self.kind == "dart" else None
        inner = self.item(booster, "gbtree", dict) if self.kind == "dart" else booster
        self.model = self.item(inner, "model", dict)
        trees = self.item(self.model, "trees", list)
        if not set(map(type, trees)) <= {dict}:
            self.refuse("an entry of 'trees' is no object; the model is damaged")
        self.trees: list[dict[str, object]] = trees

    def refuse(self, words: str) -> NoReturn:
        """Raise ModelError with these words."""
        raise ModelError(words, self.path)

    def item(self, owner: dict[str, object], key: str, kind: type[Kind]) -> Kind:
        """Return an entry of an object; refuse it when it is not there or of another kind."""
        entry = owner.get(key)
        if not isinstance(entry, kind):
            self.refuse(f"there is no {key!r}, or it is of a wrong kind; the model is damaged")
        return entry

    def numbers(self, owner: dict[str, object], key: str) -> list[object] | Numbers:
        """Return an entry of an object that is a list of JSON or an array of UBJSON; refuse others."""
        entry = owner.get(key)
        return entry if isinstance(entry, np.ndarray) else self.item(owner, key, list)

    def parameter(self, owner: dict[str, object], key: str, default: int) -> int:
        """Return a whole number that the file has as text, the default without it."""
        value = owner.get(key, default)
        text = str(value) if isinstance(value, (str, int)) else ""
        if not (text.isascii() and text.isdigit() and len(text) < 11):
            self.refuse(f"{key} is {shown(value)}, not a whole number; the model is damaged")
        return int(text)


def length(value: object) -> int:
    """Return the length of a list or array, -1 for anything else."""
    return len(value) if isinstance(value, (list, np.ndarray)) else -1


def number_array(entries: list[object]) -> Numbers | None:
    """Return a list of JSON numbers as an array, whole ones as int64, true and false as bool; None for other lists."""
    types = set(map(type, entries))
    try:
        if types <= {int}:
            return np.array(entries, np.int64)
        if types <= {int, float}:
            return np.array(entries, np.float64)
        return np.array(entries, np.bool_) if types <= {bool} else None
    except OverflowError:
        return None
