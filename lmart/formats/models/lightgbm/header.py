"""What LightGBM's models say besides their trees: version, objective, names of features, gains, pandas categories."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from lmart.errors import LmartError, ModelError, quote
from lmart.gains import Gain

VERSIONS = ("v2", "v3", "v4")
# Objectives whose prediction is the sum of the leaf values as it is.
SUMS = (
    *("lambdarank", "rank_xendcg", "regression", "regression_l1", "huber", "fair", "quantile", "mape"),
    *("custom", "none", "null", "na"),
)
MULTICLASS = ("multiclass", "multiclassova")


class Header(NamedTuple):
    """The lines before the first tree: (line number, text) by key."""

    found: dict[str, tuple[int, str]]

    def text(self, key: str) -> str | None:
        """Return the text of a key, None without it."""
        return self.found[key][1].strip() if key in self.found else None

    def line(self, key: str) -> int | None:
        """Return the number of the line of a key, None without it."""
        return self.found[key][0] if key in self.found else None

    def whole(self, key: str, default: int | None, path: str) -> int:
        """Return the whole number of a key; ModelError when it is none, or when it is not there without a default."""
        text = self.text(key)
        if text is None and default is not None:
            return default
        if text is None:
            raise ModelError(f"the model does not say {key}; this is no model of LightGBM, or it was cut", path)
        if not (text.isascii() and text.isdigit() and len(text) < 10):
            raise ModelError(f"{key} is {quote(text, 30)}, not a whole number", path, self.line(key))
        return int(text)


def facts(version: str | None, objective: str | None) -> dict[str, Any]:
    """Return what the settings of an ensemble say of a model of LightGBM."""
    said = {"source": f"LightGBM {version}" if version else "LightGBM"}
    return said | {"objective": objective.split(maxsplit=1)[0]} if objective else said


def check_header(head: Header, path: str) -> None:
    """Refuse what lmart cannot score exactly as LightGBM does."""
    outputs = max(head.whole("num_class", None, path), head.whole("num_tree_per_iteration", 1, path))
    check_outputs(outputs, path)
    check_version(head.text("version"), path, head.line("version"))
    remedy = "remove its line 'objective=...'"
    check_objective(head.text("objective"), remedy, path, head.line("objective"))


def check_outputs(outputs: int, path: str) -> None:
    """Refuse models of several outputs."""
    if outputs > 1:
        raise ModelError(
            f"the model has {outputs} outputs (multiclass), which lmart does not support; train it with a ranking"
            " objective such as lambdarank",
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


def check_objective(objective: str | None, remedy: str, path: str, line: int | None = None) -> None:
    """Refuse objectives whose prediction is not the sum itself."""
    words = (objective or "").split()
    if not words or (words[0] in SUMS and "sqrt" not in words[1:]):
        return
    if words[0] in MULTICLASS:
        check_outputs(2, path)
    raise ModelError(
        f"the objective is {quote(objective or '', 40)}, whose predictions are not the raw scores of the trees, as"
        f" lmart's are; {remedy} to take the raw scores, or train it with lambdarank",
        path,
        line,
    )


def linear_refusal(number: int) -> str:
    """Return why a tree, counted from 1, is refused whose leaves have linear models."""
    return (
        f"tree {number} has linear models in its leaves (linear_tree), which lmart does not support; train it without"
        " linear_tree"
    )


def read_names(head: Header, rest: Sequence[bytes], path: str) -> list[str]:
    """Return the name of each column.

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
            head.line("feature_names"),
        )
    return words


def _split_names(text: str) -> list[str]:
    """Return the words between blanks; LightGBM takes all other white space as part of a name."""
    return [word for word in text.split(" ") if word]


def _join_names(words: list[str], rest: Sequence[bytes], n: int) -> list[str]:
    """Return the words with those joined that feature_importances shows to be one name, while there are too many."""
    blank: dict[str, list[list[str]]] = {}  # names with blanks, by their first word
    for line in rest:
        name = _split_names(line.decode("utf-8", "replace").rpartition("=")[0])
        if line.strip() == b"parameters:":
            break
        if len(name) > 1:
            blank.setdefault(name[0], []).append(name)
    joined: list[str] = []
    place = 0
    while place < len(words):
        fits = [name for name in blank.get(words[place], []) if words[place : place + len(name)] == name]
        name = max(fits, key=len, default=words[place : place + 1])
        joined.append(" ".join(name))
        place += len(name)
    return joined if len(joined) == n else words


def gain_of(head: Header, rest: Sequence[bytes]) -> str | None:
    """Return the gain of labels as text; None when the file does not say, or it is no gain of lmart.

    rest : the lines after the trees: settings without a table mean LightGBM's own, for objectives that rank
    """
    ranks = (head.text("objective") or "").split(maxsplit=1)[:1] in (["lambdarank"], ["rank_xendcg"])
    own = "exp2" if ranks and any(line.strip() == b"parameters:" for line in rest) else None
    table = next((line for line in rest if line.startswith(b"[label_gain: ")), b"")
    text = table.strip()[len(b"[label_gain: ") : -1].decode("utf-8", "replace")
    if not text:
        return own
    if "," not in text or not text.isascii() or len(text) > 10_000:
        return None
    try:
        return str(Gain.parse(text).simplest())
    except LmartError:
        return None
