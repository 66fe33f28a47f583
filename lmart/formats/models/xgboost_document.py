"""Access to the keys of XGBoost's document of a model, whose every entry may be of a wrong kind."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from lmart.errors import ModelError, quote

# Objectives whose prediction is the sum of base score and leaf values as it is.
SUMS = (
    *("rank:ndcg", "rank:map", "rank:pairwise", "reg:squarederror", "reg:linear", "reg:squaredlogerror"),
    *("reg:pseudohubererror", "reg:absoluteerror", "reg:quantileerror", "binary:logitraw"),
)


class Document:
    """The document and how to refuse it."""

    def __init__(self, document: Any, path: str) -> None:
        self.path = path
        if not isinstance(document, dict) or not isinstance(document.get("learner"), dict):
            raise ModelError("this is JSON without 'learner', so no model that XGBoost saved", path)
        self.learner = document["learner"]
        self.version = document.get("version")
        booster = self.item(self.learner, "gradient_booster", dict)
        self.kind = booster.get("name")
        if not isinstance(self.kind, str) or self.kind not in ("gbtree", "dart"):
            self.refuse(f"the model is of kind {shown(self.kind)}, and lmart reads trees only: gbtree and dart")
        self.weights = self.item(booster, "weight_drop", (list, np.ndarray)) if self.kind == "dart" else None
        inner = self.item(booster, "gbtree", dict) if self.kind == "dart" else booster
        self.model = self.item(inner, "model", dict)
        trees = self.item(self.model, "trees", list)
        if not set(map(type, trees)) <= {dict}:
            self.refuse("an entry of 'trees' is no object; the model is damaged")
        self.trees: list[dict[str, Any]] = trees

    def refuse(self, words: str) -> NoReturn:
        """Refuse the model in these words."""
        raise ModelError(words, self.path)

    def item(self, owner: dict[str, Any], key: str, kind: type | tuple[type, ...]) -> Any:
        """Return an entry of an object; refuse it when it is not there or of another kind."""
        if not isinstance(owner.get(key), kind):
            self.refuse(f"there is no {key!r}, or it is of a wrong kind; the model is damaged")
        return owner[key]

    def parameter(self, owner: dict[str, Any], key: str, default: int) -> int:
        """Return a whole number that the file has as text, the default without it."""
        value = owner.get(key, default)
        text = str(value) if isinstance(value, (str, int)) else ""
        if not (text.isascii() and text.isdigit() and len(text) < 11):
            self.refuse(f"{key} is {shown(value)}, not a whole number; the model is damaged")
        return int(text)


def shown(value: Any) -> str:
    """Return a value of the document for a message, an object or list by its kind only."""
    if isinstance(value, (dict, list, np.ndarray)):
        return "an object" if isinstance(value, dict) else "a list"
    return quote(str(value), 30)


def length(value: Any) -> int:
    """Return the length of a list or array, -1 for anything else."""
    return len(value) if isinstance(value, (list, np.ndarray)) else -1


def number_array(entries: list[Any]) -> npt.NDArray[Any] | None:
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
