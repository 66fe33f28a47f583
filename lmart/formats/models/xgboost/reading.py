"""XGBoost's document of a model, the same tree of keys in JSON and UBJSON, as an Ensemble.

XGBoost rounds every value to float32, takes the left child when it is below the split condition, and adds up in
float32. A categorical split sends the values of its set to the right. Every entry may be of a wrong kind.
Source: XGBoost, predictor/predict_fn.h, common/categorical.h and tree/tree_model.cc.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple, NoReturn, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from lmart.array_types import BoolArray, Float32Array, Float64Array, Int32Array, Int64Array
from lmart.data.categories import Categories
from lmart.decimals import is_decimal
from lmart.errors import ModelError
from lmart.formats.models.coded_categories import category_of_codes, on_numbers
from lmart.formats.models.json_text import shown
from lmart.formats.models.nodes import (
    Features,
    build_trees,
    category_ranges,
    counts_to_offsets,
    list_features,
    set_edges,
)
from lmart.formats.models.thresholds import of_less32
from lmart.scoring.ensemble import Ensemble, FlatTrees

# Objectives whose prediction is the sum of base score and leaf values as it is.
SUMS = (
    *("rank:ndcg", "rank:map", "rank:pairwise", "reg:squarederror", "reg:linear", "reg:squaredlogerror"),
    *("reg:pseudohubererror", "reg:absoluteerror", "reg:quantileerror", "binary:logitraw"),
)
MOST_CATEGORIES = 1 << 24  # of XGBoost
MOST_LEVELS = 20_000  # of a tree

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
        kind = booster.get("name")
        if not isinstance(kind, str) or kind not in ("gbtree", "dart"):
            self.refuse(f"the model is of kind {shown(kind)}, and lmart reads trees only: gbtree and dart")
        if "learner_train_param" in self.learner and "model" not in booster:
            self.refuse("these are settings without a model, as save_config gives them; save the model with save_model")
        self.weights = self.numbers(booster, "weight_drop") if kind == "dart" else None
        inner = self.item(booster, "gbtree", dict) if kind == "dart" else booster
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


def part_of(owner: dict[str, object], key: str) -> dict[str, object]:
    """Return the object under a key, an empty one where there is none."""
    entry = owner.get(key)
    return entry if isinstance(entry, dict) else {}


def length(value: object) -> int:
    """Return the length of a list or array, -1 for anything else."""
    return len(value) if isinstance(value, (list, np.ndarray)) else -1


def number_array(entries: object) -> Numbers | None:
    """Return a list of JSON numbers as an array, whole ones as int64, true and false as bool.

    entries : of any kind; an array is returned as it is, for anything but numbers None
    """
    if isinstance(entries, np.ndarray) or not isinstance(entries, list):
        return entries if isinstance(entries, np.ndarray) else None
    types = set(map(type, entries))
    try:
        if types <= {int}:
            return np.array(entries, np.int64)
        if types <= {int, float}:
            return np.array(entries, np.float64)
        return np.array(entries, np.bool_) if types <= {bool} else None
    except OverflowError:
        return None


def category_edges32(numbers: Int64Array) -> Float64Array:
    """Return where the test of a set of categories changes sides: it holds above an odd number of edges, float64.

    numbers : int64, ascending, from 0 to below 2^24; category c is every value whose float32 is from c to below c + 1
    """
    ranges = category_ranges(numbers).astype(np.float32)
    return of_less32(ranges.ravel())


def _read_sets(model: Document, number: int) -> dict[int, Int64Array]:
    """Return the categories of each categorical node of a tree, counted from 0."""
    tree = model.trees[number]
    found = []
    for key in ("categories", "categories_nodes", "categories_segments", "categories_sizes"):
        part = number_array(tree.get(key))
        if part is None or part.dtype.kind not in "iu" or part.ndim != 1:
            model.refuse(f"tree {number + 1}: {key!r} is not there or no list of whole numbers; the model is damaged")
        found.append(part.astype(np.int64))
    categories, nodes, starts, sizes = found
    if not len(nodes) == len(starts) == len(sizes) or len(np.unique(nodes)) != len(nodes):
        model.refuse(f"tree {number + 1}: its sets of categories do not fit together; the model is damaged")
    outside = (starts < 0) | (sizes < 0) | (starts > len(categories)) | (sizes > len(categories) - starts)
    if outside.any() or int(sizes.sum()) > len(categories):
        model.refuse(f"tree {number + 1}: its sets of categories are longer than 'categories'; the model is damaged")
    if len(categories) and (categories.min() < 0 or categories.max() >= MOST_CATEGORIES):
        model.refuse(f"tree {number + 1}: a category is not from 0 to {MOST_CATEGORIES - 1}; the model is damaged")
    return {
        int(node): categories[start : start + size]
        for node, start, size in zip(nodes.tolist(), starts.tolist(), sizes.tolist(), strict=True)
    }


def _read_categories(model: Document, features: Features) -> tuple[Categories, ...]:
    """Return the features whose values are codes in the trees, as of a DataFrame; none where codes are the values."""
    listed = part_of(model.model, "cats").get("enc")
    found = []
    for column, encoding in enumerate(listed if isinstance(listed, list) else ()):
        values = encoding.get("values") if isinstance(encoding, dict) else None
        if values is None or length(values) == 0:
            continue
        offsets = encoding.get("offsets")
        codes = _texts(values, offsets) if offsets is not None else number_array(values)
        if codes is None:
            model.refuse("'cats' is of a wrong kind; the model is damaged")
        if isinstance(codes, np.ndarray):
            codes = codes.tolist()
        elif not all(map(str.isascii, codes)):
            model.refuse(
                "the model splits on categories of a DataFrame ('cats') with texts beyond ASCII, of which XGBoost cuts"
                " off the end (seen in 3.2); train it on whole numbers"
            )
        if codes == list(range(len(codes))) or column not in features.feature_ids:
            continue
        category = category_of_codes(int(features.columns(np.array([column]))[0]), codes)
        if category is None:
            model.refuse(
                f"the model splits on categories of a DataFrame ('cats'), one of which has {shown(codes)}, not just"
                " texts or whole numbers, each once; train it on whole numbers"
            )
        found.append(category)
    return tuple(found)


def _texts(values: object, offsets: object) -> list[str] | None:
    """Return texts that stand end to end as bytes; None when they are none."""
    letters, starts = number_array(values), number_array(offsets)
    if letters is None or starts is None or letters.dtype.kind not in "iu" or starts.dtype.kind not in "iu":
        return None
    content, bounds = letters.astype(np.uint8).tobytes(), starts.tolist()
    if bounds[:1] != [0] or bounds[-1:] != [len(content)] or bounds != sorted(bounds):
        return None
    return [content[first:last].decode(errors="replace") for first, last in itertools.pairwise(bounds)]


class _Arrays(NamedTuple):
    """The arrays of all trees end to end.

    offsets : int64[n_trees + 1], where the nodes of each tree start
    left, right, columns : int64[n], as in the file: -1 is no child
    values  : float32[n], split conditions, and leaf values
    default_left, categorical : bool[n]
    gains   : float64[n], None if unknown
    hessians : float64[n], hessian sums of the training documents, None if unknown
    """

    offsets: Int64Array
    left: Int64Array
    right: Int64Array
    columns: Int64Array
    values: Float32Array
    default_left: BoolArray
    categorical: BoolArray
    gains: Float64Array | None
    hessians: Float64Array | None


def read_document(document: object, path: str) -> Ensemble:
    """Return the model of a document; ModelError when it is no sound one, or one that lmart cannot score exactly."""
    model = Document(document, path)
    n_columns, base_score, objective = _check_learner(model)
    arrays = _read_arrays(model)
    is_reached = _reach(arrays, path)
    is_leaf = is_reached & (arrays.left < 0)
    is_split = is_reached & (arrays.left >= 0)
    sizes = [int(is_split[a:b].sum()) for a, b in zip(arrays.offsets[:-1], arrays.offsets[1:], strict=True)]
    owner = np.repeat(np.arange(len(sizes)), np.diff(arrays.offsets))
    node_offsets = counts_to_offsets(sizes)
    place = np.cumsum(is_split) - 1 - node_offsets[owner]  # among the splits of the tree
    leaf_place = np.cumsum(is_leaf) - 1 - node_offsets[owner] - owner  # each tree has a leaf more than splits
    code = np.where(is_split, place, ~leaf_place)

    def children(child: Int64Array) -> Int32Array:
        """Return the children of the splits as `FlatTrees` counts them, from those of all nodes."""
        codes: Int32Array = code[(child + arrays.offsets[owner])[is_split]].astype(np.int32)
        return codes

    used = arrays.columns[is_split]
    default = None if model.major_version >= 2 else "f"  # version 1 names the columns of arrays f0, f1 ...
    features = list_features(n_columns, _names(model, n_columns), used, default, path)
    thresholds = of_less32(np.where(arrays.categorical, np.float32(0), arrays.values)[is_split])
    bound_offsets, bounds = set_edges(thresholds, _category_edges(model, arrays, is_split), path)
    flat = FlatTrees(
        node_offsets,
        features.columns(used),
        thresholds,
        arrays.default_left[is_split],
        children(arrays.left),
        children(arrays.right),
        _leaf_values(model, arrays, is_leaf, owner),
        bound_offsets,
        bounds,
    )
    categories = _read_categories(model, features) if arrays.categorical[is_split].any() else ()
    flat = on_numbers(flat, categories)
    return Ensemble(
        build_trees(
            flat,
            len(features.feature_ids),
            path,
            None if arrays.gains is None else arrays.gains[is_split],
            leaf_weights=None if arrays.hessians is None else arrays.hessians[is_leaf],
        ),
        features.feature_ids,
        features.feature_names,
        base_score,
        "missing",
        _gain(model, objective),
        _facts(model, objective),
        sums="float32",
        categories=categories,
        remarks=_remarks(model),
    )


def _remarks(model: Document) -> tuple[str, ...]:
    """Return a remark when XGBoost stopped early, as some of its functions then use fewer rounds than the file has."""
    best = part_of(model.learner, "attributes").get("best_iteration")
    parallel = model.parameter(part_of(model.model, "gbtree_model_param"), "num_parallel_tree", 1)
    total = len(model.trees) // max(parallel, 1)
    if not (isinstance(best, str) and best.isascii() and best.isdigit() and len(best) < 10) or int(best) + 1 >= total:
        return ()
    used = int(best) + 1
    return (
        f"lmart uses all {total:,} rounds, as XGBoost's Booster does; its XGBRanker uses {used:,}, up to best_iteration"
        f" (save booster[:{used}] to use only these)",
    )


def _facts(model: Document, objective: str | None) -> dict[str, Any]:
    """Return what the settings of the ensemble say."""
    version = ".".join(map(str, model.version))
    facts: dict[str, Any] = {"source": f"XGBoost {version}" if len(model.version) == 3 else "XGBoost"}
    if objective is not None:
        facts["objective"] = objective
    return facts


def _gain(model: Document, objective: str | None) -> str | None:
    """Return the gain of labels as text; None for objectives without."""
    if objective != "rank:ndcg":
        return None
    flag = part_of(model.learner["objective"], "lambdarank_param").get("ndcg_exp_gain")
    return "linear" if str(flag).lower() in ("0", "false") else "exp2"


def _check_learner(model: Document) -> tuple[int, float, str | None]:
    """Return the number of columns, the base score and the objective; refuse what lmart cannot score exactly."""
    parameters = model.item(model.learner, "learner_model_param", dict)
    if model.parameter(parameters, "num_class", 0) > 1 or model.parameter(parameters, "num_target", 1) > 1:
        model.refuse(
            "the model has several outputs (multi-class or multi-target), which lmart does not support; train it with a"
            " ranking objective such as rank:ndcg"
        )
    objective = part_of(model.learner, "objective").get("name")
    if objective is not None and not (isinstance(objective, str) and objective in SUMS):
        model.refuse(
            f"the objective is {shown(objective)}, whose predictions are not the sums of the leaf values;"
            " train it with rank:ndcg; or, to take the sums as scores, save it as .json, and there change the objective"
            " to binary:logitraw and base_score to the margin it stands for"
        )
    base = parameters.get("base_score", "0.5")
    text = base.strip() if isinstance(base, str) else repr(base) if isinstance(base, (int, float)) else ""
    text = text[1:-1].strip() if text.startswith("[") and text.endswith("]") else text
    with np.errstate(over="ignore"):
        number = np.float32(float(text) if is_decimal(text) else np.nan)
    if not np.isfinite(number):
        model.refuse(f"base_score is {shown(base)}, not one number; the model is damaged or has several outputs")
    return model.parameter(parameters, "num_feature", 0), float(number), objective


def _names(model: Document, n_columns: int) -> list[str] | None:
    """Return the names of the columns, None without any."""
    names = model.learner.get("feature_names")
    if names is None or length(names) == 0:
        return None
    if not isinstance(names, list) or not set(map(type, names)) <= {str}:
        model.refuse("feature_names is no list of texts; the model is damaged")
    if len(names) != n_columns:
        model.refuse(f"there are {len(names)} feature_names, and num_feature is {n_columns}; the model is damaged")
    return names


def _read_arrays(model: Document) -> _Arrays:
    """Return the arrays of all trees end to end; refuse those of wrong lengths and kinds."""
    listed = model.model.get("tree_info")
    groups = number_array(listed)
    if listed is not None and (groups is None or len(groups) != len(model.trees) or np.any(groups)):
        model.refuse("the trees belong to several outputs (tree_info), which lmart does not support")
    if not model.trees:
        model.refuse("the model has no tree")
    sizes = []
    for number, tree in enumerate(model.trees, 1):
        if model.parameter(part_of(tree, "tree_param"), "size_leaf_vector", 1) > 1:
            model.refuse(f"tree {number} has vectors in its leaves (multi-output), which lmart does not support")
        size = len(model.numbers(tree, "left_children"))
        if not 0 < size < 2**31:
            model.refuse(f"tree {number} has no node; the model is damaged")
        sizes.append(size)

    def whole(key: str) -> Int64Array:
        """Return the whole numbers of all trees under a key."""
        return _joined(model, key, sizes, "iub").astype(np.int64)

    def known(key: str) -> Float64Array | None:
        """Return the numbers of all trees under a key that models may lack."""
        if any(length(tree.get(key)) != size for tree, size in zip(model.trees, sizes, strict=True)):
            return None
        return _joined(model, key, sizes, "iuf").astype(np.float64)

    with np.errstate(over="ignore", invalid="ignore"):  # a signalling nan of UBJSON; nan is looked for later
        gains, hessians = known("loss_changes"), known("sum_hessian")
        values = _joined(model, "split_conditions", sizes, "iuf").astype(np.float32)
    has_types = [length(tree.get("split_type")) > 0 for tree in model.trees]
    n_nodes = sum(sizes)
    kinds = whole("split_type") if all(has_types) else np.zeros(n_nodes, np.int64)
    if any(has_types) and not all(has_types):
        model.refuse("some trees have split_type and some have none; the model is damaged")
    if len(kinds) and (kinds.min() < 0 or kinds.max() > 1):
        model.refuse(f"split_type is {int(kinds.max())}, which is neither numerical nor categorical")
    return _Arrays(
        counts_to_offsets(sizes),
        whole("left_children"),
        whole("right_children"),
        whole("split_indices"),
        values,
        whole("default_left") != 0,
        kinds == 1,
        gains,
        hessians,
    )


def _joined(model: Document, key: str, sizes: list[int], kinds: str) -> Numbers:
    """Return one array of all trees end to end; `kinds` are the kinds of dtype that may stand there."""
    lists = [tree.get(key) for tree in model.trees]
    if all(type(part) is list and len(part) == size for part, size in zip(lists, sizes, strict=True)):
        joined = number_array(list(itertools.chain.from_iterable(lists)))  # type: ignore[arg-type]
        if joined is not None and joined.dtype.kind in kinds:
            return joined
    parts = []
    for number, (tree, size) in enumerate(zip(model.trees, sizes, strict=True), 1):
        part = number_array(tree.get(key))
        if part is None or part.ndim != 1 or part.dtype.kind not in kinds:
            model.refuse(f"tree {number}: {key!r} is not there or no list of numbers of its kind; the model is damaged")
        if len(part) != size:
            model.refuse(f"tree {number}: {key!r} has {len(part)} entries, {size} are due; the model is damaged")
        parts.append(part)
    return np.concatenate(parts)


def _reach(arrays: _Arrays, path: str) -> BoolArray:
    """Return which nodes the roots reach, bool[n]: deleted ones are left out. Level by level, all trees at once."""

    def refuse(node: int, words: str) -> NoReturn:
        """Raise ModelError with the tree of a node."""
        tree = int(np.searchsorted(arrays.offsets, node, side="right"))
        raise ModelError(f"tree {tree}: {words}; the model is damaged", path)

    sizes = np.diff(arrays.offsets)
    owner = np.repeat(np.arange(len(sizes)), sizes)
    seen = np.zeros(len(arrays.left), np.bool_)
    level = arrays.offsets[:-1]
    depth = 0
    while len(level):
        seen[level] = True
        depth += 1
        if depth > MOST_LEVELS:
            refuse(int(level[0]), f"the tree has more than {MOST_LEVELS:,} levels")
        left, right = arrays.left[level], arrays.right[level]
        half = (left < 0) != (right < 0)
        if half.any():
            refuse(int(level[half][0]), "a node has only one child")
        splits = level[left >= 0]
        room = sizes[owner[splits]]
        outside = (arrays.left[splits] >= room) | (arrays.right[splits] >= room)
        if outside.any():
            refuse(int(splits[outside][0]), "a child is none of its nodes")
        start = arrays.offsets[owner[splits]]
        below = np.sort(np.concatenate([arrays.left[splits] + start, arrays.right[splits] + start]))
        twice = seen[below]
        twice[1:] |= below[1:] == below[:-1]
        if twice.any():
            refuse(int(below[twice][0]), "a node is the child of two nodes, or of itself")
        level = below
    bad = seen & (np.isnan(arrays.values)) & ~((arrays.left >= 0) & arrays.categorical)
    if bad.any():
        refuse(int(np.argmax(bad)), "a split condition or leaf value is nan")
    return seen


def _leaf_values(model: Document, arrays: _Arrays, is_leaf: BoolArray, owner: Int64Array) -> Float64Array:
    """Return the leaf values, those of DART times the weight of their tree, rounded to float32 as XGBoost does."""
    values = arrays.values[is_leaf]
    if model.weights is not None:
        weights = number_array(model.weights)
        if weights is None or weights.dtype.kind not in "iuf" or len(weights) != len(model.trees):
            model.refuse(f"weight_drop is not a number for each of the {len(model.trees)} trees; the model is damaged")
        with np.errstate(over="ignore", invalid="ignore"):
            values = weights.astype(np.float32)[owner[is_leaf]] * values
    return values.astype(np.float64)


def _category_edges(model: Document, arrays: _Arrays, is_split: BoolArray) -> dict[int, Float64Array]:
    """Return where the tests of categorical splits change sides, by place among all splits."""
    nodes = np.flatnonzero(is_split & arrays.categorical)
    place = np.cumsum(is_split) - 1
    edges: dict[int, Float64Array] = {}
    sets: dict[int, Int64Array] = {}
    current = -1
    for node in nodes.tolist():
        tree = int(np.searchsorted(arrays.offsets, node, side="right")) - 1
        if tree != current:
            current, sets = tree, _read_sets(model, tree)
        local = node - int(arrays.offsets[tree])
        if local not in sets:
            model.refuse(f"tree {tree + 1}: a categorical split has no categories; the model is damaged")
        edges[int(place[node])] = category_edges32(np.unique(sets[local]))
    return edges
