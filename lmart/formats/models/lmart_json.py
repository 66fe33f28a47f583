"""The model file: one strict JSON document, described for other programs in man/lmart-model.5.

Written with every number in its shortest exact form, one tree a line, the same bytes for the same model. Read with
everything checked; a damaged file is refused in one line.
"""

from __future__ import annotations

import codecs
import itertools
import json
import sys
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from lmart.errors import LmartError, ModelError, first_repeated, quote
from lmart.formats.format_records import GIVE_MODEL
from lmart.formats.models.json_text import BLANKS, parse_json, spelled
from lmart.formats.models.lmart_json_trees import INTEGERS, NUMBERS, VERSION, read_trees
from lmart.formats.models.written_model import WrittenModel
from lmart.gains import Gain
from lmart.scoring.ensemble import Ensemble, RankerPart, Tree
from lmart.strict_json import NotStrict, check_numbers

FORMAT = "lmart"
HEAD_KEYS = (
    *("format", "version", "settings", "gain", "absent", "base_score", "sums", "average"),
    *("feature_ids", "feature_names", "rankers", "trees"),
)
OPTIONAL_HEAD_KEYS = ("sums", "average", "feature_names", "rankers")


def model_to_json(ensemble: Ensemble) -> str:
    """Return the model as JSON text that ends in a newline; equal models give equal text."""
    in_head = ensemble.sums != "float64" or ensemble.average or bool(ensemble.rankers) or ensemble.gain is None
    uses_2 = in_head or any(tree.bounds is not None or tree.leaf_weights is not None for tree in ensemble.trees)
    head: dict[str, object] = {
        "format": FORMAT,
        "version": VERSION if uses_2 else 1,
        "settings": ensemble.settings,
        "gain": ensemble.gain,
        "absent": ensemble.absent,
        "base_score": float(ensemble.base_score),
    }
    if ensemble.sums != "float64":
        head["sums"] = ensemble.sums
    if ensemble.average:
        head["average"] = True
    head["feature_ids"] = ensemble.feature_ids.tolist()
    if ensemble.feature_names is not None:
        head["feature_names"] = list(ensemble.feature_names)
    if ensemble.rankers:
        head["rankers"] = [part._asdict() for part in ensemble.rankers]
    lines = [f"{_dump(key)}: {_dump(value)}" for key, value in head.items()]
    trees = ",\n".join(_dump(_tree_to_json(tree, ensemble.feature_ids)) for tree in ensemble.trees)
    lines.append(f'"trees": [\n{trees}\n]' if trees else '"trees": []')
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _dump(value: object) -> str:
    return json.dumps(value, allow_nan=False, separators=(", ", ": "))


def _tree_to_json(tree: Tree, feature_ids: npt.NDArray[np.int64]) -> dict[str, object]:
    made: dict[str, object] = {
        "split_features": feature_ids[tree.split_columns].tolist(),
        "thresholds": tree.thresholds.tolist(),
        "missing_left": tree.missing_left.tolist(),
        "left": tree.left.tolist(),
        "right": tree.right.tolist(),
        "leaf_values": tree.leaf_values.tolist(),
    }
    if tree.split_gains is not None:
        made["split_gains"] = tree.split_gains.tolist()
    if tree.leaf_documents is not None:
        made["leaf_documents"] = tree.leaf_documents.tolist()
    if tree.leaf_weights is not None:
        made["leaf_weights"] = tree.leaf_weights.tolist()
    if tree.bounds is not None and tree.bound_offsets is not None:
        made["bound_offsets"] = tree.bound_offsets.tolist()
        made["bounds"] = tree.bounds.tolist()
    return made


def write(ensemble: Ensemble) -> WrittenModel:
    """Return the content of the model file; nothing is lost."""
    return WrittenModel(model_to_json(ensemble).encode(), ())


def model_from_json(content: bytes, path: str) -> Ensemble:
    """Return the checked model that a file holds; `path` is what to call it in messages. ModelError."""
    document = _parse(content, path)
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ModelError(f'this is JSON but no lmart model: it does not say "format": "{FORMAT}"', path)
    version = document.get("version")
    if type(version) is not int or version < 1:
        raise ModelError(f"the version of the format is {spelled(version)}, not a whole number from 1 up", path)
    if version > VERSION:
        raise ModelError(
            f"the model has format version {spelled(version)}, this lmart knows up to {VERSION}; install a newer lmart",
            path,
        )
    _check_keys(document, HEAD_KEYS, OPTIONAL_HEAD_KEYS, "the model", path)
    if not isinstance(document["settings"], dict):
        raise ModelError("'settings' is not an object", path)
    try:
        check_numbers(document["settings"])
    except NotStrict as fault:
        raise ModelError(f"in 'settings' {fault}; the model is damaged", path) from None
    gain = document["gain"]
    try:
        Gain.parse(gain if isinstance(gain, str) else "" if gain is not None else "exp2")
    except LmartError:
        raise ModelError(f"'gain' is {spelled(gain)}, not exp2, linear or a table such as '0,1,3,7'", path) from None
    if document["absent"] not in ("zero", "missing"):
        raise ModelError(f"'absent' is {spelled(document['absent'])}; it must be 'zero' or 'missing'", path)
    base_score = document["base_score"]
    if type(base_score) not in NUMBERS or not abs(base_score) <= sys.float_info.max:
        raise ModelError(f"'base_score' is {spelled(base_score)}, not a finite number", path)
    if document.get("sums", "float64") not in ("float64", "float32"):
        raise ModelError(f"'sums' is {spelled(document['sums'])}; it must be 'float64' or 'float32'", path)
    if type(document.get("average", False)) is not bool:
        raise ModelError(f"'average' is {spelled(document['average'])}; it must be true or false", path)
    feature_ids = _feature_ids(document["feature_ids"], path)
    return Ensemble(
        read_trees(document["trees"], feature_ids, path),
        feature_ids,
        _feature_names(document.get("feature_names"), len(feature_ids), path),
        float(base_score),
        document["absent"],
        gain,
        document["settings"],
        document.get("sums", "float64"),
        document.get("average", False),
        _rankers(document.get("rankers", []), len(document["trees"]), path),
    )


def _parse(content: bytes, path: str) -> object:
    """Return what the JSON text says; one clear line for everything that is not strict JSON."""
    if not content.removeprefix(codecs.BOM_UTF8).strip(BLANKS.encode()):
        raise ModelError(f"the file is empty; {GIVE_MODEL}", path)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        line = content.count(b"\n", 0, fault.start) + 1
        raise ModelError(
            f"this is no model: it is not UTF-8 text; {GIVE_MODEL}",
            path,
            line,
        ) from None
    start = text.lstrip(BLANKS)[:200].split("\n", 1)[0].rstrip(BLANKS)
    if not start.startswith("{"):
        raise ModelError(
            f"this is no lmart model: it starts with {quote(start, 40)}; {GIVE_MODEL}",
            path,
        )
    return parse_json(content, path, strict=True)


def _check_keys(
    found: Mapping[str, object], known: tuple[str, ...], optional: tuple[str, ...], where: str, path: str
) -> None:
    for key in known:
        if key not in found and key not in optional:
            raise ModelError(f"{where} has no '{key}'; the model is damaged", path)
    for key in found:
        if key not in known:
            raise ModelError(f"{where} has a key {quote(key)} that format version {VERSION} does not know", path)


def _feature_ids(listed: object, path: str) -> npt.NDArray[np.int64]:
    if not isinstance(listed, list) or not set(map(type, listed)) <= INTEGERS:
        raise ModelError("'feature_ids' is not a list of whole numbers", path)
    if any(not 0 <= index < 2**63 for index in listed):
        wrong = next(index for index in listed if not 0 <= index < 2**63)
        raise ModelError(f"'feature_ids' holds {quote(str(wrong))}, which is not from 0 to 2^63 - 1", path)
    for before, after in itertools.pairwise(listed):
        if after <= before:
            raise ModelError(f"'feature_ids' is not ascending: {after} comes after {before}", path)
    return np.array(listed, dtype=np.int64)


def _feature_names(listed: object, n_features: int, path: str) -> tuple[str, ...] | None:
    if listed is None:
        return None
    if not isinstance(listed, list) or not set(map(type, listed)) <= {str}:
        raise ModelError("'feature_names' is not a list of texts", path)
    if len(listed) != n_features:
        raise ModelError(f"there are {len(listed)} feature names for {n_features} feature ids", path)
    if (twice := first_repeated(listed)) is not None:
        raise ModelError(f"two features have the name {quote(twice)}", path)
    return tuple(listed)


def _rankers(listed: object, n_trees: int, path: str) -> tuple[RankerPart, ...]:
    """Return which trees belong to which ranker; ModelError when the list is none, or its trees are not n_trees."""
    if not isinstance(listed, list):
        raise ModelError("'rankers' is not a list", path)
    kinds = {"trees": int, "objective": str, "tree": str, "leaves": int, "features": float, "seed": int}
    for number, one in enumerate(listed, 1):
        if not isinstance(one, dict) or set(one) != set(kinds):
            raise ModelError(f"ranker {number}: this is not an object with {', '.join(kinds)}", path)
        wrong = next(
            (key for key, kind in kinds.items() if type(one[key]) not in (kind, int if kind is float else kind)), None
        )
        if wrong is None and not abs(one["features"]) <= sys.float_info.max:
            wrong = "features"
        if wrong is not None or one["trees"] < 0:
            raise ModelError(f"ranker {number}: '{wrong or 'trees'}' is {spelled(one[wrong or 'trees'])}", path)
    if listed and sum(one["trees"] for one in listed) != n_trees:
        raise ModelError(f"the rankers have {sum(one['trees'] for one in listed):,} trees, the model {n_trees:,}", path)
    return tuple(RankerPart(**one) for one in listed)
