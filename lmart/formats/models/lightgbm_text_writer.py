"""Writing of LightGBM's text model, version v4, which LightGBM 2.3 to 4 load."""

from __future__ import annotations

import numpy as np

from lmart.array_types import Float64Array, Int64Array
from lmart.errors import counted
from lmart.formats.models.lightgbm_conditions import near_zero, set_words
from lmart.formats.models.lightgbm_writing import WrittenEnsemble, WrittenTree, column_ranges, prepare
from lmart.formats.models.targets import join_whole
from lmart.formats.models.tree_building import counts_to_offsets
from lmart.formats.models.written_model import WrittenModel
from lmart.scoring.ensemble import Ensemble


def write(ensemble: Ensemble) -> WrittenModel:
    """Return the model as LightGBM's text format; LightGBM's scores equal those of the ensemble bit for bit.

    Exceptions are in the notes: values up to 1e-35, which LightGBM takes as 0, float32 sums, and absent indices.
    """
    model = prepare(ensemble, is_text=True)
    close = sum(int(np.count_nonzero(near_zero(tree.thresholds[tree.decision_types > 7]))) for tree in model.trees)
    notes = model.notes
    if close:
        notes.insert(
            0,
            f"{counted(close, 'threshold')} between -1e-35 and 1e-35: LightGBM takes values that near to 0 as 0, so"
            " only such values could change side",
        )
    blocks = [f"Tree={number}\n{_tree_text(tree)}\n\n" for number, tree in enumerate(model.trees)]
    sizes = " ".join(str(len(block.encode())) for block in blocks)
    head, tail = _head_text(model, ensemble), _tail_text(model, ensemble)
    text = f"{head}tree_sizes={sizes}\n\n{''.join(blocks)}end of trees\n\n{tail}"
    return WrittenModel(text.encode(), tuple(notes))


def _head_text(model: WrittenEnsemble, ensemble: Ensemble) -> str:
    """Return the lines before the sizes of the trees."""
    infos = [
        "none"
        if found is None
        else f"[{found[0]!r}:{found[1]!r}]"
        if isinstance(found, tuple)
        else ":".join(map(str, found.tolist()))
        for found in column_ranges(model.trees, len(model.names))
    ]
    lines = [
        "tree",
        "version=v4",
        "num_class=1",
        "num_tree_per_iteration=1",
        "label_index=0",
        f"max_feature_idx={len(model.names) - 1}",
        f"objective={model.objective}",
        *(["average_output"] if ensemble.average else []),
        f"feature_names={' '.join(model.names)}",
        f"feature_infos={' '.join(infos)}",
    ]
    return "\n".join(lines) + "\n"


def _tail_text(model: WrittenEnsemble, ensemble: Ensemble) -> str:
    """Return the lines after the trees: how many splits each feature has, and the few settings that still count."""
    used = np.concatenate([np.zeros(0, np.int64), *(tree.columns for tree in model.trees)])
    times = np.bincount(used, minlength=len(model.names))
    order = [int(column) for column in np.argsort(-times, kind="stable") if times[column]]
    importances = "".join(f"{model.names[column]}={times[column]}\n" for column in order)
    return f"feature_importances:\n{importances}\n{_settings_text(model, ensemble.gain)}pandas_categorical:null\n"


def _settings_text(model: WrittenEnsemble, gain: str | None) -> str:
    """Return the lines of settings: none where the gain is not known, as LightGBM would take its own for it."""
    if gain is None:
        return ""
    table = ""
    if gain != "exp2":
        table = f"[label_gain: {','.join(map(str, range(32))) if gain == 'linear' else gain}]\n"
    return f"parameters:\n[objective: {model.objective}]\n{table}\nend of parameters\n\n"


def _tree_text(tree: WrittenTree) -> str:
    """Return the lines of one tree after its number."""
    lines = [f"num_leaves={len(tree.leaf_values)}", f"num_cat={len(tree.sets)}"]

    def add(key: str, numbers: Float64Array | Int64Array) -> None:
        """Add the line of a key."""
        lines.append(f"{key}={' '.join(map(repr, numbers.tolist()))}")

    if len(tree.columns):
        add("split_feature", tree.columns)
        if tree.split_gains is not None:
            add("split_gain", tree.split_gains)
        thresholds = list(map(repr, tree.thresholds.tolist()))
        for node in np.flatnonzero(tree.decision_types == 1).tolist():
            thresholds[node] = str(int(tree.thresholds[node]))
        lines.append(f"threshold={' '.join(thresholds)}")
        add("decision_type", tree.decision_types)
        add("left_child", tree.left)
        add("right_child", tree.right)
    add("leaf_value", tree.leaf_values)
    if tree.leaf_counts is not None and tree.internal_counts is not None:
        add("leaf_count", tree.leaf_counts)
        if len(tree.columns):
            add("internal_count", tree.internal_counts)
    if tree.sets:
        words = [set_words(ranges) for ranges in tree.sets]
        add("cat_boundaries", counts_to_offsets([len(part) for part in words]))
        lines.append(f"cat_threshold={join_whole(np.concatenate(words).astype(np.int64), ' ')}")
    lines += ["is_linear=0", "shrinkage=1"]
    return "\n".join(lines) + "\n"
