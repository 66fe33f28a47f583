"""XGBoost's document of a model as its keys, and as JSON."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from lmart.array_types import Float32Array, Int64Array
from lmart.formats.models.targets import join_whole
from lmart.formats.models.tree_building import counts_to_offsets
from lmart.formats.models.xgboost_writing import WrittenTrees

VERSION = [2, 1, 0]  # whose keys are written: 1.6 to 3 know them
FLOATS = ("base_weights", "loss_changes", "split_conditions", "sum_hessian")


def document(model: WrittenTrees) -> dict[str, Any]:
    """Return the whole document; arrays are numpy arrays of the types that XGBoost's binary format has."""
    trees = []
    by_tree: dict[int, list[tuple[int, Int64Array]]] = {}
    for (of_tree, node), members in sorted(model.categories.items()):
        by_tree.setdefault(of_tree, []).append((node, members))
    for number, (start, stop) in enumerate(zip(model.offsets[:-1].tolist(), model.offsets[1:].tolist(), strict=True)):
        sets = by_tree.get(number, [])
        sizes = [len(members) for _, members in sets]
        tree: dict[str, Any] = {name: array[start:stop] for name, array in model.arrays.items()}
        tree["categories"] = np.concatenate([np.zeros(0, np.int64), *(members for _, members in sets)]).astype(np.int32)
        tree["categories_nodes"] = np.array([node for node, _ in sets], np.int32)
        tree["categories_segments"] = counts_to_offsets(sizes)[:-1]
        tree["categories_sizes"] = np.array(sizes, np.int64)
        tree["id"] = number
        tree["tree_param"] = {
            "num_deleted": "0",
            "num_feature": str(model.columns.total),
            "num_nodes": str(stop - start),
            "size_leaf_vector": "1",
        }
        trees.append(dict(sorted(tree.items())))
    used = {int(model.arrays["split_indices"][model.offsets[of_tree] + node]) for of_tree, node in model.categories}
    n_columns = model.columns.total
    types = ["c" if j in used else "float" for j in range(n_columns)] if model.columns.names or used else []
    parameters = {
        "base_score": _spelled(model.base_score),
        "boost_from_average": "0",
        "num_class": "0",
        "num_feature": str(n_columns),
        "num_target": "1",
    }
    learner = {
        "attributes": {},
        "feature_names": model.columns.names or [],
        "feature_types": types,
        "gradient_booster": {
            "model": {
                "gbtree_model_param": {"num_parallel_tree": "1", "num_trees": str(len(trees))},
                "iteration_indptr": list(range(len(trees) + 1)),
                "tree_info": [0] * len(trees),
                "trees": trees,
            },
            "name": "gbtree",
        },
        "learner_model_param": parameters,
        "objective": _objective(model.objective, model.gain),
    }
    return {"learner": learner, "version": VERSION}


def _objective(name: str, gain: str | None) -> dict[str, Any]:
    """Return the entry of an objective with the parameters that XGBoost wants to see with it."""
    if name.startswith("rank:"):
        before_2 = {"fix_list_weight": "0", "num_pairsample": "1"}  # XGBoost 1 has other parameters
        linear = {"ndcg_exp_gain": "0"} if gain == "linear" else {}
        return {"lambda_rank_param": before_2, "lambdarank_param": linear, "name": name}
    extra = {
        "reg:pseudohubererror": {"pseudo_huber_param": {"huber_slope": "1"}},
        "reg:quantileerror": {"quantile_loss_param": {"quantile_alpha": "[0.5]"}},
    }
    return {"name": name, **extra.get(name, {"reg_loss_param": {"scale_pos_weight": "1"}})}


def _spelled(number: np.float32) -> str:
    """Return a float32 as XGBoost reads it back equal, always with a point or an exponent."""
    text = f"{float(number):.9g}"
    return text if set(text) & set(".en") else text + ".0"


def spell(numbers: Float32Array) -> list[str]:
    """Return each float32 as text that reads back equal, always with a point or an exponent, as XGBoost demands."""
    distinct, places = np.unique(numbers, return_inverse=True)
    texts = list(map(_spelled, distinct))
    return [texts[place] for place in places.tolist()]


def json_text(model: WrittenTrees) -> bytes:
    """Return the document as JSON, one tree a line."""
    whole = document(model)
    booster = whole["learner"]["gradient_booster"]["model"]
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
    shell = json.dumps(whole, separators=(",", ":"), ensure_ascii=False)
    before, mark, after = shell.partition('"trees":[]')
    return (before + mark[:-1] + "\n" + ",\n".join(lines) + "]" + after + "\n").encode()
