"""What is in a model: its facts and its trees, as plain values that `lmart show` prints and writes as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from lmart.array_types import Float64Array, Int64Array
from lmart.decimals import shortest
from lmart.errors import visible
from lmart.scoring.ensemble import Ensemble, RankerPart, Tree, flatten, node_sums
from lmart.scoring.importance import Importance, importance_order, split_importance, trees_by_ranker
from lmart.settings import TrainSettings

LISTED_VALUES = 4  # of a set of categories, in words


class Step(NamedTuple):
    """A step of reading a tree from its root.

    kind   : 'if' at a node, before what goes left; 'else' at a node, before what goes right; 'leaf' at a leaf
    number : of the node or the leaf, from 0, as in the model file
    depth  : splits above it
    """

    kind: Literal["if", "else", "leaf"]
    number: int
    depth: int


def steps(tree: Tree) -> Iterator[Step]:
    """Yield the steps of reading a tree: each node, what goes left, then what goes right."""
    waiting = [Step("if", 0, 0) if len(tree.thresholds) else Step("leaf", 0, 0)]
    while waiting:
        step = waiting.pop()
        yield step
        if step.kind == "if":
            waiting += [Step("else", step.number, step.depth), _child(int(tree.left[step.number]), step.depth + 1)]
        elif step.kind == "else":
            waiting.append(_child(int(tree.right[step.number]), step.depth + 1))


def _child(child: int, depth: int) -> Step:
    return Step("if", child, depth) if child >= 0 else Step("leaf", ~child, depth)


def node_documents(tree: Tree) -> list[int] | None:
    """Return how many training documents each inner node had; None when the leaves do not say."""
    if tree.leaf_documents is None:
        return None
    counts: list[int] = node_sums(flatten((tree,)), tree.leaf_documents).tolist()
    return counts


def depths(trees: Sequence[Tree]) -> Int64Array:
    """Return the most splits between the root and a leaf of each tree, int64[n_trees]."""
    flat = flatten(trees)
    found = np.zeros(flat.n_trees, np.int64)
    owner = flat.tree_of_node
    level = flat.node_offsets[:-1][np.diff(flat.node_offsets) > 0]
    while len(level):
        found[np.unique(owner[level])] += 1
        start = flat.node_offsets[owner[level]]
        below = np.concatenate(
            [child[level] + np.where(child[level] >= 0, start, 0) for child in (flat.left, flat.right)]
        )
        is_node = np.concatenate([flat.left[level], flat.right[level]]) >= 0
        level = below[is_node]
    return found


@dataclass(frozen=True)
class RankerFacts:
    """The trees of one ranker, or of a model that is no mean of rankers.

    first_tree : number of its first tree, from 1; None when it has none. Others are None when the model does not say
    """

    first_tree: int | None
    trees: int
    objective: str | None
    tree: str | None
    features: float | None
    leaves: int
    fewest: int
    most: int
    depth: int
    split_features: int


@dataclass(frozen=True)
class FeatureImportance:
    """How much a feature matters.

    gain_share   : share of the split gain, from 0 to 1; None when the model does not say what its splits gained
    contribution : mean absolute contribution to the scores of some data; None: no data was given
    """

    feature: str
    gain_share: float | None
    splits: int
    contribution: float | None = None

    @property
    def decisive(self) -> float:
        """The number by which features are ordered: the contribution, else the share of gain, else the splits."""
        shares = (value for value in (self.contribution, self.gain_share) if value is not None)
        return next(shares, float(self.splits))


@dataclass(frozen=True, eq=False)
class ModelSummary:
    """What is in a model.

    changed    : settings of lmart that differ from the defaults; of another tool all that the file says
    documents  : that the trees were grown from, the most of a tree; None when the model does not say
    leaf_documents : of a leaf, the fewest, the median and the most; None when the model does not say
    """

    ensemble: Ensemble
    format: str
    rankers: tuple[RankerFacts, ...]
    importance: tuple[FeatureImportance, ...]
    changed: dict[str, Any]
    documents: int | None
    leaf_documents: tuple[int, int, int] | None

    @property
    def unused(self) -> list[str]:
        """The features that no tree splits on, in the order of the model."""
        used = {importance.feature for importance in self.importance if importance.splits}
        names = (self.ensemble.feature_name(column) for column in range(self.ensemble.n_features))
        return [name for name in names if name not in used]

    def to_json(self) -> dict[str, Any]:
        """Return the summary as plain JSON values."""
        model = self.ensemble
        unused = self.unused
        documents = self.leaf_documents
        in_leaves = None if documents is None else dict(zip(("fewest", "median", "most"), documents, strict=True))
        features = {"model": model.n_features, "split": model.n_features - len(unused), "unused": unused}
        return {
            "format": self.format,
            "trees": len(model.trees),
            "leaves": sum(ranker.leaves for ranker in self.rankers),
            "depth": max((ranker.depth for ranker in self.rankers), default=0),
            "documents": self.documents,
            "leaf_documents": in_leaves,
            "features": features,
            "categories": [
                {"feature": model.feature_name(each.column), "values": len(each.values)} for each in model.categories
            ],
            "base_score": float(model.base_score),
            "absent": model.absent,
            "gain": model.gain,
            "sums": model.sums,
            "average": model.average,
            "settings": model.settings,
            "changed_settings": self.changed,
            "rankers": [asdict(ranker) for ranker in self.rankers],
            "importance": [asdict(importance) for importance in self.importance],
        }


def summarize(ensemble: Ensemble, format: str, contributions: Float64Array | None = None) -> ModelSummary:
    """Return what is in a model.

    contributions : float64[n_features], mean absolute contributions to the scores of some data; None: no data was given
    """
    parts: Sequence[RankerPart | None] = ensemble.rankers or [None]
    groups = trees_by_ranker(ensemble)
    firsts = np.cumsum([1, *map(len, groups)]).tolist()
    rankers = [
        _ranker_facts(part, trees, first, ensemble)
        for part, trees, first in zip(parts, groups, firsts[:-1], strict=True)
    ]
    by_tree = [tree.leaf_documents for tree in ensemble.trees if tree.leaf_documents is not None]
    documents = max((int(counts.sum()) for counts in by_tree), default=None)
    every = np.sort(np.concatenate([np.zeros(0, np.int64), *by_tree])).tolist()
    in_leaves = (int(every[0]), int(every[(len(every) - 1) // 2]), int(every[-1])) if every else None
    importance = tuple(rank_features(ensemble, split_importance(ensemble), contributions))
    changed = changed_settings(ensemble.settings)
    return ModelSummary(ensemble, format, tuple(rankers), importance, changed, documents, in_leaves)


def _ranker_facts(part: RankerPart | None, trees: Sequence[Tree], first: int, ensemble: Ensemble) -> RankerFacts:
    """Return the facts of one ranker; `part` None: the model is no mean of several."""
    leaves = [tree.n_leaves for tree in trees]
    columns = {column for tree in trees for column in tree.split_columns.tolist()}
    said = ensemble.settings
    texts = {name: said.get(name) if isinstance(said.get(name), str) else None for name in ("objective", "tree")}
    share = float(said["features"]) if type(said.get("features")) in (int, float) else None
    return RankerFacts(
        first if trees else None,
        len(trees),
        texts["objective"] if part is None else part.objective,
        texts["tree"] if part is None else part.tree,
        share if part is None else part.features,
        sum(leaves),
        min(leaves, default=0),
        max(leaves, default=0),
        int(depths(trees).max(initial=0)),
        len(columns),
    )


def rank_features(
    ensemble: Ensemble, found: Importance, contributions: Float64Array | None = None
) -> list[FeatureImportance]:
    """Return all features: by contribution where there is one, else by share of gain, else by splits."""
    m = ensemble.n_features
    shares = [None] * m if found.gain_shares is None else found.gain_shares.tolist()
    adds = [None] * m if contributions is None else contributions.tolist()
    splits = found.splits.tolist()
    return [
        FeatureImportance(ensemble.feature_name(k), shares[k], splits[k], adds[k])
        for k in importance_order(found, contributions)
    ]


def changed_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that differ from the defaults of lmart, and those that it does not know."""
    defaults = TrainSettings().to_json()
    return {name: value for name, value in settings.items() if name not in defaults or value != defaults[name]}


def tree_to_json(ensemble: Ensemble, number: int) -> dict[str, Any]:
    """Return one tree as plain JSON values: its nodes and leaves, each with its depth, in the order of reading.

    Nodes and leaves have the numbers of the model file; a child is {"node": N} or {"leaf": N}.
    """
    tree = ensemble.trees[number - 1]
    documents = node_documents(tree)
    nodes, leaves = [], []
    for step in steps(tree):
        k = step.number
        if step.kind == "if":
            column, bounds = int(tree.split_columns[k]), node_bounds(tree, k)
            left_set = left_values(ensemble, column, bounds)
            node = {
                "node": k,
                "depth": step.depth,
                "feature": ensemble.feature_name(column),
                "threshold": bounds[0],
                **({"bounds": bounds[1:]} if len(bounds) > 1 else {}),
                **({} if left_set is None else {"values": left_set.values, "unseen": left_set.unseen}),
                "missing": "left" if tree.missing_left[k] else "right",
                "left": _child_to_json(int(tree.left[k])),
                "right": _child_to_json(int(tree.right[k])),
                "split_gain": None if tree.split_gains is None else float(tree.split_gains[k]),
                "documents": None if documents is None else documents[k],
            }
            nodes.append(node)
        elif step.kind == "leaf":
            counted = None if tree.leaf_documents is None else int(tree.leaf_documents[k])
            value = float(tree.leaf_values[k])
            leaves.append({"leaf": k, "depth": step.depth, "value": value, "documents": counted})
    return {"tree": number, "ranker": ranker_of_tree(ensemble, number), "nodes": nodes, "leaves": leaves}


class LeftSet(NamedTuple):
    """The values of a category that go left.

    values : in their order
    others : the values that go right
    unseen : where values go that training did not see: 'left' or 'right'
    """

    values: list[int] | list[str]
    others: list[int] | list[str]
    unseen: str

    def text(self, name: str) -> str:
        """Return that the value of a category is in this set; where unseen values go left too, not in the other one."""
        listed = self.others if self.unseen == "left" else self.values
        texts = [visible(str(value)) for value in listed[:LISTED_VALUES]]
        if more := len(listed) - len(texts):
            texts.append(f"and {more:,} more")
        return f"{name}{' not' * (self.unseen == 'left')} in {{{', '.join(texts)}}}"


def left_values(ensemble: Ensemble, column: int, bounds: Sequence[float]) -> LeftSet | None:
    """Return the values of a category that go left at a node of these bounds; None for a feature that is none."""
    for of_feature in ensemble.categories:
        if of_feature.column == column:
            goes_left, unseen_left = of_feature.split(bounds)
            sides: tuple[list[Any], list[Any]] = [], []
            for value, is_left in zip(of_feature.values, goes_left.tolist(), strict=True):
                sides[not is_left].append(value)
            return LeftSet(*sides, "left" if unseen_left else "right")
    return None


def node_bounds(tree: Tree, node: int) -> list[float]:
    """Return the threshold of a node and its further bounds, ascending."""
    found = [float(tree.thresholds[node])]
    if tree.bounds is not None and tree.bound_offsets is not None:
        found += tree.bounds[tree.bound_offsets[node] : tree.bound_offsets[node + 1]].tolist()
    return found


def ranges_text(name: str, bounds: Sequence[float]) -> str:
    """Return the values that go left at a node, in words: an even number of its bounds are below them."""
    texts = [shortest(bound) for bound in bounds]
    ranges = [f"{name} <= {texts[0]}"]
    ranges += [f"{low} < {name} <= {high}" for low, high in zip(texts[1::2], texts[2::2], strict=False)]
    ranges += [f"{name} > {texts[-1]}"] if len(texts) % 2 == 0 else []
    return " or ".join(ranges)


def ranker_of_tree(ensemble: Ensemble, number: int) -> int:
    """Return the number of the ranker that a tree belongs to, from 1."""
    ends = np.cumsum([len(trees) for trees in trees_by_ranker(ensemble)])
    return int(np.searchsorted(ends, number)) + 1


def _child_to_json(child: int) -> dict[str, int]:
    return {"node": child} if child >= 0 else {"leaf": ~child}
