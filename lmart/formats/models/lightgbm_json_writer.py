"""Writing of LightGBM's JSON model, as Vespa takes it."""

from __future__ import annotations

import json

import numpy as np

from lmart.errors import counted
from lmart.formats.models.lightgbm_conditions import set_members
from lmart.formats.models.lightgbm_writing import WrittenTree, column_ranges, prepare
from lmart.formats.models.targets import join_whole
from lmart.formats.models.tree_building import LARGEST_NUMBER
from lmart.formats.models.written_model import WrittenModel
from lmart.scoring.ensemble import Ensemble

INFINITE = 1e300  # what LightGBM writes for an infinite threshold


def write(ensemble: Ensemble) -> WrittenModel:
    """Return the model as JSON that Vespa takes; ModelError when it cannot hold it."""
    model = prepare(ensemble, is_text=False)
    notes = model.notes
    n_sets = sum(len(tree.sets) for tree in model.trees)
    if n_sets:
        notes.append(f"{counted(n_sets, 'categorical split')}: Vespa compares them with whole numbers only")
    if ensemble.average:
        notes.append("Vespa gives the sum of the trees, not their average; the order of documents is the same")
    infos = {
        name: {
            "min_value": found[0] if isinstance(found, tuple) else int(found[0]),
            "max_value": found[1] if isinstance(found, tuple) else int(found[-1]),
            "values": [] if isinstance(found, tuple) else found.tolist(),
        }
        for name, found in zip(model.names, column_ranges(model.trees, len(model.names)), strict=True)
        if found is not None
    }
    used = np.concatenate([np.zeros(0, np.int64), *(tree.columns for tree in model.trees)])
    times = np.bincount(used, minlength=len(model.names)).tolist()
    head = {
        "name": "tree",
        "version": "v4",
        "num_class": 1,
        "num_tree_per_iteration": 1,
        "label_index": 0,
        "max_feature_idx": len(model.names) - 1,
        "objective": model.objective,
        "average_output": ensemble.average,
        "feature_names": model.names,
        "monotone_constraints": [],
        "feature_infos": infos,
    }
    tail = {
        "feature_importances": {name: times[i] for i, name in enumerate(model.names) if times[i]},
        "pandas_categorical": [],
    }
    trees = ",\n".join(
        f'{{"tree_index": {number}, "num_leaves": {len(tree.leaf_values)}, "num_cat": {len(tree.sets)},'
        f' "shrinkage": 1, "tree_structure": {_tree_text(tree)}}}'
        for number, tree in enumerate(model.trees)
    )
    lines = [f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in head.items()]
    lines.append(f'"tree_info": [\n{trees}\n]')
    lines += [f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in tail.items()]
    return WrittenModel(("{\n" + ",\n".join(lines) + "\n}\n").encode(), tuple(notes))


def _tree_text(tree: WrittenTree) -> str:
    """Return one tree as nested objects, by an explicit stack."""
    leaves = [
        f'{{"leaf_index": {i}, "leaf_value": {value!r}'
        + (f', "leaf_count": {tree.leaf_counts[i]}' if tree.leaf_counts is not None else "")
        + "}"
        for i, value in enumerate(tree.leaf_values.tolist())
    ]
    if len(leaves) == 1:
        return leaves[0].replace('"leaf_index": 0, ', "")
    with np.errstate(over="ignore"):
        above = np.minimum(np.nextafter(tree.thresholds, np.inf), LARGEST_NUMBER) + 0.0
    numbers, kinds, columns = above.tolist(), tree.decision_types.tolist(), tree.columns.tolist()
    gains = None if tree.split_gains is None else tree.split_gains.tolist()
    splits = []
    for i, (number, kind) in enumerate(zip(numbers, kinds, strict=True)):
        if kind == 1:
            members = join_whole(set_members(tree.sets[int(tree.thresholds[i])]), "||")
            test = f'"threshold": "{members}", "decision_type": "==", "default_left": false, "missing_type": "None"'
        else:
            side = "true" if kind & 2 else "false"
            test = f'"threshold": {number!r}, "decision_type": "<"'
            if tree.thresholds[i] == LARGEST_NUMBER:  # every number goes left
                test = f'"threshold": {INFINITE!r}, "decision_type": "<="'
            test += f', "default_left": {side}, "missing_type": "NaN"'
        gain = "" if gains is None else f', "split_gain": {gains[i]!r}'
        count = "" if tree.internal_counts is None else f', "internal_count": {tree.internal_counts[i]}'
        splits.append(f'{{"split_index": {i}, "split_feature": {columns[i]}{gain}, {test}{count}, "left_child": ')
    left, right = tree.left.tolist(), tree.right.tolist()
    parts: list[str] = []
    waiting: list[int | str] = [0]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            parts.append(item)
        elif item < 0:
            parts.append(leaves[~item])
        else:
            parts.append(splits[item])
            waiting += ["}", right[item], ', "right_child": ', left[item]]
    return "".join(parts)
