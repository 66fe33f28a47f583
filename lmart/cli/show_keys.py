"""What every key of `lmart show --json` means: lmart-show(1) is made from this, and a test compares both ways.

A path is written as the keys from the top, with [] for the entries of a list. Light: the manual pages need no numpy.
"""

from __future__ import annotations

INTRODUCTION = (
    "--json prints one object. Its key kind says what it tells of: a model, a tree (of --tree) or a report. file is "
    "the file, as given. Below, a path is the keys from the top, with [] for the entries of a list. null stands for "
    "what is not known."
)

_IMPORTANCE = {
    "importance": "All features, the most important first; in a report those that are split on.",
    "importance[].feature": "Name of the feature, or its index as text.",
    "importance[].gain_share": "Its share of the split gain, from 0 to 1: the mean over the rankers, each by itself.",
    "importance[].splits": "Nodes that split on it.",
}
_SETTINGS = {
    "settings": "All settings of the training, or what the file of another tool says of its making.",
    "changed_settings": "Those of them that differ from the defaults of lmart.",
}

MODEL = {
    "format": "Name of the format of the file, as in lmart-convert(1).",
    "trees": "Number of trees.",
    "leaves": "Number of leaves of all trees.",
    "depth": "Most splits between the root and a leaf.",
    "documents": "Documents that the trees were grown from.",
    "leaf_documents": "Documents of a leaf; null when the model does not say.",
    "leaf_documents.fewest": "Of the smallest leaf.",
    "leaf_documents.median": "Half of the leaves have at most so many.",
    "leaf_documents.most": "Of the largest leaf.",
    "features.model": "Number of features of the model.",
    "features.split": "Number of features that a tree splits on.",
    "features.unused": "The other features.",
    "base_score": "The score without any tree.",
    "absent": "zero or missing: what it means that a row does not name a feature.",
    "gain": "What a label was worth in training; null when the model does not say.",
    "sums": "float64, or float32 where the sum is rounded after each tree.",
    "average": "Whether the sum is divided by the number of trees.",
    **_SETTINGS,
    "rankers": "Each ranker that the model is the mean of; one when it is no mean.",
    "rankers[].first_tree": "Number of its first tree, from 1; null when it has none.",
    "rankers[].trees": "Number of its trees.",
    "rankers[].objective": "What they were fitted to.",
    "rankers[].tree": "How they were grown.",
    "rankers[].features": "Share of the features that each could split on.",
    "rankers[].leaves": "Leaves of its trees.",
    "rankers[].fewest": "Leaves of its smallest tree.",
    "rankers[].most": "Leaves of its largest tree.",
    "rankers[].depth": "Most splits between the root and a leaf.",
    "rankers[].split_features": "Number of features that they split on.",
    **_IMPORTANCE,
    "importance[].contribution": "With --data, its mean absolute contribution to a score.",
    "contributions.data": "With --data, the file whose scores were explained.",
    "contributions.rows": "Number of its rows.",
}
TREE = {
    "tree": "Number of the tree, from 1.",
    "ranker": "Number of its ranker, from 1.",
    "nodes": "Its inner nodes in the order of reading: what goes left stands before what goes right.",
    "nodes[].node": "Number of the node, as in the model file.",
    "nodes[].depth": "Splits above it.",
    "nodes[].feature": "What it asks about.",
    "nodes[].threshold": "A value up to it goes left.",
    "nodes[].bounds": "Further bounds, if there are any; see lmart-model(5).",
    "nodes[].missing": "left or right: where a missing value goes.",
    "nodes[].left": "What is on the left: an object of node or leaf, with its number.",
    "nodes[].right": "What is on the right.",
    "nodes[].split_gain": "What the split gained.",
    "nodes[].documents": "Training documents.",
    "leaves": "Its leaves, in the same order.",
    "leaves[].leaf": "Number of the leaf, as in the model file.",
    "leaves[].depth": "Splits above it.",
    "leaves[].value": "What it adds to the score.",
    "leaves[].documents": "Training documents.",
}
REPORT = {
    "metric": "The measure of all values.",
    "data": "Size of the training set, as in the report.",
    "files": "The files of the run, as in the report.",
    "measures": "The measure of the whole model.",
    "measures[].set": "training, or the validation file.",
    "measures[].value": "The measure of this set.",
    "stopped": "What ended the run: trees, early or split.",
    **_SETTINGS,
    "rankers": "Each ranker.",
    "rankers[].objective": "What its trees were fitted to.",
    "rankers[].tree": "How they were grown.",
    "rankers[].leaves": "Most leaves of a tree.",
    "rankers[].features": "Share of the features that each could split on.",
    "rankers[].first_tree": "Number of its first tree in the model; null when it has none.",
    "rankers[].trees": "Number of its trees in the model, those of its first rounds.",
    "rankers[].stopped": "What ended it.",
    "rankers[].rounds": "Numbers of its rounds.",
    "rankers[].curves": "Its learning curves.",
    "rankers[].curves[].set": "training, or the validation file.",
    "rankers[].curves[].values": "The measure after each round.",
    **_IMPORTANCE,
    "seconds": "By stage.",
    "warnings": "Of the run.",
    "cross_validation": "As in the report, with --folds.",
    "tuning": "As in the report, with --tune.",
}
KEYS = {"model": MODEL, "tree": TREE, "report": REPORT}
"""Meanings by kind and path."""
