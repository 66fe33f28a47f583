"""Models of RankLib: LambdaMART, MART and Random Forests, read and written.

RankLib takes values, thresholds and leaf values as float32, nan as 0, x <= threshold goes left. A score is a float32
sum; each leaf value is multiplied by the weight of its tree in float64 and added, and the sum rounded (version 2.1
rounds each product, too). Random Forests are the float64 mean of such sums, one an <ensemble>.
"""

from __future__ import annotations

import codecs
import re
from typing import NamedTuple

import numpy as np

from lmart.array_types import Float32Array, Float64Array
from lmart.errors import ModelError, counted, quote
from lmart.formats.format_records import WrittenModel
from lmart.formats.models.nodes import build_trees
from lmart.formats.models.targets import (
    as_plain_sum,
    expand_bounds,
    leaves_in_float32,
    name_notes,
    refuse_feature_numbers,
    score_notes,
    some,
    threshold_notes,
    zero_side_notes,
)
from lmart.formats.models.thresholds import nearest32, of_less_or_equal32, round_down32, shortest32
from lmart.formats.models.tree_xml import MOST_FEATURE, most_trees, numbers_of, parse_trees, tree_elements
from lmart.scoring.ensemble import Ensemble, FlatTrees, flatten

FORESTS = "random forests"
OF_TREES = ("lambdamart", "mart", FORESTS)
OTHERS = (
    *("ranknet", "rankboost", "adaboost", "adarank", "coordinate ascent", "lambdarank", "listnet"),
    *("linear regression",),
)
SAID = re.compile(rb"^##[ \t]*No\. of (trees|bags)[ \t]*=[ \t]*([0-9]{1,9})[ \t\r]*$", re.MULTILINE)
HEADER = re.compile(rb"##[ \t]*([^\r\n]*)")


def _kind(content: bytes) -> str | None:
    """Return the kind of ranker that the first line names, None when it names none."""
    found = HEADER.match(content.removeprefix(codecs.BOM_UTF8).lstrip(b" \t\r\n"))
    return None if found is None else found[1].decode("utf-8", "replace").strip()


def looks_like(start: bytes) -> bool:
    """Return whether the first bytes of a file are those of a model of RankLib, of any kind."""
    kind = _kind(start)
    if kind is not None:
        return kind.lower() in OF_TREES or kind.lower() in OTHERS
    text = re.sub(rb"\s*(<\?xml\b[^>]*\?>)?\s*", b"", start.removeprefix(codecs.BOM_UTF8)[:1000], count=1)
    return text.startswith((b"<ensemble>", b"<ensemble "))


def read(content: bytes, path: str) -> Ensemble:
    """Return the ensemble that a RankLib model holds; ModelError for anything wrong.

    Feature k has the id k. A first line '## LambdaMART' may be missing. As in RankLib the first <split> in a <split> is
    the left one, whatever its pos says.
    """
    kind = _kind(content) or "LambdaMART"
    if kind.lower() not in OF_TREES:
        raise ModelError(
            f"a RankLib model of kind {quote(kind)} is not read, only LambdaMART, MART and Random Forests", path
        )
    text = b"\n" + content.removeprefix(codecs.BOM_UTF8).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    text = re.sub(rb"\n#[^\n]*", b"\n", text)[1:]  # keeps the numbers of lines
    found = parse_trees(text, path, by_position=True)
    is_forest = kind.lower() == FORESTS
    if not is_forest and len(found.ensemble_sizes) > 1:
        raise ModelError(f"a {kind} model has {len(found.ensemble_sizes)} ensembles, where RankLib takes one", path)
    if is_forest and any(size != 1 for size in found.ensemble_sizes):
        raise ModelError(
            "a bag of the Random Forests holds several trees, whose sums RankLib rounds before it averages them; only"
            " bags of one tree are read",
            path,
        )
    said = {key.decode(): int(number) for key, number in SAID.findall(content.partition(b"<")[0])}
    if is_forest and (bags := said.get("bags", len(found.ensemble_sizes))) != len(found.ensemble_sizes):
        what = f"the head says {counted(bags, 'bag')}, but the model has {len(found.ensemble_sizes):,}"
        raise ModelError(f"{what}; the file was cut or put together, copy it again", path)
    most = {} if is_forest else most_trees(said.get("trees"), found, path)
    with np.errstate(over="ignore", invalid="ignore"):
        weights = _nearest32(found.weights).astype(np.float64)
        leaves = _nearest32(found.outputs).astype(np.float64) * weights[found.tree_of_leaf]
        if is_forest:
            leaves = leaves.astype(np.float32).astype(np.float64)
        thresholds32 = _nearest32(found.thresholds)
    if not np.isfinite(leaves).all() or np.isposinf(thresholds32).any():
        raise ModelError("a number is too large for float32, which RankLib holds; the model is damaged", path)
    thresholds = of_less_or_equal32(thresholds32)
    flat, feature_ids = found.lay_out(thresholds, thresholds >= 0.0, leaves)
    return Ensemble(
        build_trees(flat, len(feature_ids), path),
        feature_ids,
        settings={"source": f"RankLib {kind}"} | ({} if is_forest else _common_weight(weights)) | most,
        sums="float64" if is_forest else "float32",
        average=is_forest,
    )


def _common_weight(weights: Float64Array) -> dict[str, float]:
    """Return the weight of the trees as a setting, by which `write` gets their leaf values back exactly."""
    same = len(weights) > 0 and bool((weights == weights[0]).all())
    return {"weight": float(shortest32(weights[:1].astype(np.float32))[0])} if same else {}


def _nearest32(texts: list[str]) -> Float32Array:
    return nearest32(texts, numbers_of(texts))


def write(ensemble: Ensemble) -> WrittenModel:
    """Return the ensemble as a LambdaMART model of RankLib, an average as Random Forests.

    Thresholds are rounded down to float32, so that rows of float32 numbers come to the same leaves; leaf values are
    rounded to float32, and weights are 1, but trees that came from RankLib get theirs back. Not held: sides of missing
    values, names. ModelError when a feature is not numbered from 1 up.
    """
    is_forest = ensemble.average and ensemble.sums == "float64" and ensemble.base_score == 0 and bool(ensemble.trees)
    plain = expand_bounds(ensemble) if is_forest else as_plain_sum(ensemble)
    flat = flatten(plain.trees)
    refuse_feature_numbers(ensemble, flat, MOST_FEATURE, "RankLib")
    thresholds = round_down32(flat.thresholds)
    leaves = _weigh(flat, None if is_forest else ensemble.settings.get("weight"))
    features = ensemble.feature_ids[flat.split_columns].tolist()
    elements = tree_elements(flat, features, shortest32(thresholds), shortest32(leaves.outputs), 2)
    most_leaves = max((tree.n_leaves for tree in plain.trees), default=1)
    notes = threshold_notes(flat.thresholds, thresholds, "RankLib")
    absent = " (also features that a row does not name)" if ensemble.absent == "missing" else ""
    notes += zero_side_notes(flat, f"missing values{absent}", "RankLib")
    if is_forest:
        changed = np.abs(flat.leaf_values - leaves.values)
        if changed.any():
            rounded = some(int(np.count_nonzero(changed)), len(changed), "leaf value")
            notes.append(f"{rounded} rounded to float32, and so a score can differ by at most {changed.max():.1e}")
    else:
        notes += score_notes(ensemble, flat, leaves.values, "float32", "RankLib")
    notes += name_notes(ensemble, "RankLib")
    text = _text(elements, shortest32(leaves.weights), is_forest, most_leaves)
    return WrittenModel(text.encode(), tuple(notes))


class _Leaves(NamedTuple):
    """Leaf values as RankLib holds them.

    values : float64[n_leaves], output x weight
    """

    weights: Float32Array
    outputs: Float32Array
    values: Float64Array


def _weigh(flat: FlatTrees, weight: object) -> _Leaves:
    """Return the leaf values with weight 1, and with `weight` in those trees where it gives them exactly."""
    outputs, weights = leaves_in_float32(flat, "RankLib"), np.ones(flat.n_trees, np.float32)
    values = outputs.astype(np.float64)
    if type(weight) is not float or not 1e-30 < abs(weight) < 1e30:
        return _Leaves(weights, outputs, values)
    if flat.n_trees and (values != flat.leaf_values).any():
        tree_weight = np.float32(weight)
        with np.errstate(over="ignore", invalid="ignore"):
            divided = (flat.leaf_values / np.float64(tree_weight)).astype(np.float32)
            product = divided.astype(np.float64) * np.float64(tree_weight)
        is_exact = np.logical_and.reduceat(product == flat.leaf_values, flat.leaf_offsets[:-1])
        in_exact = np.repeat(is_exact, flat.leaf_offsets[1:] - flat.leaf_offsets[:-1])
        weights[is_exact] = tree_weight
        outputs, values = np.where(in_exact, divided, outputs), np.where(in_exact, product, values)
    return _Leaves(weights, outputs, values)


def _text(elements: list[str], weights: list[str], is_forest: bool, most_leaves: int) -> str:
    """Return the file: a head that names the kind of ranker in its first line, and the trees, one tag a line."""
    head = f"## Random Forests\n## No. of bags = {len(elements)}\n" if is_forest else "## LambdaMART\n"
    head += f"## No. of trees = {1 if is_forest else len(elements)}\n## No. of leaves = {most_leaves}\n"
    head += f"## Learning rate = {weights[0] if weights else '1.0'}\n\n"
    trees = [
        f'\t<tree id="{1 if is_forest else number}" weight="{weight}">\n{element}\t</tree>\n'
        for number, (element, weight) in enumerate(zip(elements, weights, strict=True), 1)
    ]
    ensembles = trees if is_forest else ["".join(trees)]
    return head + "".join(f"<ensemble>\n{inside}</ensemble>\n" for inside in ensembles)
