"""What LightGBM's models say besides their trees: version, objective, names of features, gains, pandas categories."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from lmart.array_types import Int64Array
from lmart.errors import LmartError, ModelError, quote
from lmart.formats.models.nodes import Features, list_features
from lmart.gains import Gain

VERSIONS = ("v2", "v3", "v4")
# Objectives whose prediction is the sum of the leaf values as it is.
SUMS = (
    *("lambdarank", "rank_xendcg", "regression", "regression_l1", "huber", "fair", "quantile", "mape"),
    *("custom", "none", "null", "na"),
)
MULTICLASS = ("multiclass", "multiclassova")
MOST_COLUMNS = 1 << 24


class Header(NamedTuple):
    """The lines before the first tree: (line number, text) by key."""

    found: dict[str, tuple[int, str]]

    def text(self, key: str) -> str | None:
        """Return the text of a key, None without it."""
        return self.found[key][1].strip() if key in self.found else None

    def whole(self, key: str, default: int | None, path: str) -> int:
        """Return the whole number of a key; ModelError when it is none, or when it is not there without a default."""
        text = self.text(key)
        if text is None and default is not None:
            return default
        if text is None:
            raise ModelError(f"the model does not say {key}; this is no model of LightGBM, or it was cut", path)
        if not (text.isascii() and text.isdigit() and len(text) < 10):
            raise ModelError(f"{key} is {quote(text, 30)}, not a whole number", path, self.found[key][0])
        return int(text)

    @property
    def average(self) -> bool:
        """Whether the sum is divided by the number of trees."""
        return "average_output" in self.found

    def facts(self) -> dict[str, Any]:
        """Return what the settings of the ensemble say of it."""
        return facts(self.text("version"), self.text("objective"))


def facts(version: str | None, objective: str | None) -> dict[str, Any]:
    """Return what the settings of an ensemble say of a model of LightGBM."""
    known: dict[str, Any] = {"source": f"LightGBM {version}" if version else "LightGBM"}
    if objective:
        known["objective"] = objective.split()[0]
    return known


def check_header(head: Header, path: str) -> None:
    """Refuse what lmart cannot score exactly as LightGBM does."""
    classes, outputs = head.whole("num_class", None, path), head.whole("num_tree_per_iteration", 1, path)
    check_outputs(classes, outputs, path)
    check_version(head.text("version"), path, head.found.get("version", (None,))[0])
    line = head.found.get("objective", (None,))[0]
    check_objective(head.text("objective"), path, line, "remove its line 'objective=...'")


def check_outputs(classes: int, outputs: int, path: str) -> None:
    """Refuse models of several outputs."""
    if classes > 1 or outputs > 1:
        raise ModelError(
            f"the model has {max(classes, outputs)} outputs (multiclass), which lmart does not support; train it with"
            " a ranking objective such as lambdarank",
            path,
        )


def check_version(version: str | None, path: str, line: int | None = None) -> None:
    """Refuse versions of the format that are not known."""
    if version and version not in VERSIONS:
        raise ModelError(
            f"the format of the model is version {quote(version, 20)}; this lmart knows v2 to v4 (LightGBM 2.1 to 4)",
            path,
            line,
        )


def check_objective(objective: str | None, path: str, line: int | None, remedy: str) -> None:
    """Refuse objectives whose prediction is not the sum itself."""
    words = (objective or "").split()
    if not words or (words[0] in SUMS and "sqrt" not in words[1:]):
        return
    if words[0] in MULTICLASS:
        check_outputs(2, 2, path)
    raise ModelError(
        f"the objective is {quote(objective or '', 40)}, whose predictions are not the raw scores of the trees, as"
        f" lmart's are; {remedy} to take the raw scores, or train it with lambdarank",
        path,
        line,
    )


def read_names(head: Header, rest: Sequence[bytes], path: str) -> list[str]:
    """Return the name of each column.

    head : the lines before the trees
    path : what to call the file in messages
    rest : the lines after the trees. Old versions wrote names with blanks in them as they are; the importances there
           tell such names apart.
    """
    n = head.whole("max_feature_idx", None, path) + 1
    if "feature_names" not in head.found:
        raise ModelError("the model does not say feature_names; it was cut", path)
    words = _split_names(head.found["feature_names"][1])
    if len(words) > n:
        words = _join_names(words, rest, n)
    if len(words) != n:
        raise ModelError(
            f"feature_names has {len(words)} words, max_feature_idx says {n} columns; where a name has blanks in it,"
            " replace them by '_'",
            path,
            head.found["feature_names"][0],
        )
    return words


def _split_names(text: str) -> list[str]:
    """Return the words between blanks; LightGBM takes all other white space as part of a name."""
    return [word for word in text.split(" ") if word]


def _join_names(words: list[str], rest: Sequence[bytes], n: int) -> list[str]:
    """Return the words with those joined that feature_importances shows to be one name, while there are too many."""
    known: dict[str, list[list[str]]] = {}
    for line in rest:
        name = _split_names(line.decode("utf-8", "replace").rpartition("=")[0])
        if line.strip() == b"parameters:":
            break
        if len(name) > 1:
            known.setdefault(name[0], []).append(name)
    joined: list[str] = []
    place = 0
    while place < len(words):
        fits = [name for name in known.get(words[place], []) if words[place : place + len(name)] == name]
        name = max(fits, key=len, default=words[place : place + 1])
        joined.append(" ".join(name))
        place += len(name)
    return joined if len(joined) == n else words


def list_columns(head: Header, names: list[str], used: Int64Array, path: str) -> Features:
    """Return the features of the model; `used` are the columns of its splits, any number of times."""
    return list_features(len(names), names, used, "Column_", path)


def gain_of(head: Header, rest: Sequence[bytes]) -> str | None:
    """Return the gain of labels as text; None when the file does not say, or it is no gain of lmart.

    head : the lines before the trees
    rest : the lines after the trees: settings without a table mean LightGBM's own, for objectives that rank
    """
    ranks = (head.text("objective") or "").split()[:1] in (["lambdarank"], ["rank_xendcg"])
    own = "exp2" if ranks and any(line.strip() == b"parameters:" for line in rest) else None
    for line in rest:
        if line.startswith(b"[label_gain: "):
            text = line.strip()[len(b"[label_gain: ") : -1].decode("utf-8", "replace")
            return parse_gain(text) if text else own
    return own


def parse_gain(text: str) -> str | None:
    """Return the gain that a label_gain of LightGBM is, as text; None when it is no gain of lmart."""
    if "," not in text or not text.isascii() or len(text) > 10_000:
        return None
    try:
        return str(Gain.parse(text).simplest())
    except LmartError:
        return None


def check_pandas(rest: Sequence[bytes], path: str) -> None:
    """Refuse categorical splits on numbers that stand for other values, which only a DataFrame of pandas shows."""
    for number, line in enumerate(reversed(rest)):
        if line.startswith(b"pandas_categorical:"):
            try:
                listed = json.loads(line.partition(b":")[2])
            except (ValueError, RecursionError):
                listed = None
            check_categories(listed, path)
        if number > 10:
            return


def check_categories(listed: object, path: str) -> None:
    """Refuse categories of pandas that are not the whole numbers from 0 up themselves."""
    for categories in listed if isinstance(listed, list) else ():
        if not isinstance(categories, list) or categories != list(range(len(categories))):
            raise ModelError(
                "the model splits on categories of a DataFrame (pandas_categorical), for which its file has codes;"
                " train it on the codes, or, if your data holds the codes, set pandas_categorical to null",
                path,
            )
