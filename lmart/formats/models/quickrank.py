"""Models of QuickRank in XML, read and written.

QuickRank takes values and thresholds as float32, x <= threshold goes left, nan goes right, a feature that a row does
not name is 0. A score is the float64 sum of output x weight, in tree order.
"""

from __future__ import annotations

import codecs
import re

import numpy as np

from lmart.errors import ModelError, quote
from lmart.formats.format_records import WrittenModel
from lmart.formats.models.nodes import build_trees
from lmart.formats.models.targets import (
    as_plain_sum,
    name_notes,
    refuse_feature_numbers,
    score_notes,
    some,
    threshold_notes,
    zero_side_notes,
)
from lmart.formats.models.thresholds import of_less_or_equal32, round_down32, shortest32
from lmart.formats.models.tree_xml import MOST_FEATURE, WHOLE, most_trees, numbers_of, parse_trees, tree_elements
from lmart.scoring.ensemble import Ensemble, flatten

ADDED = re.compile(r"(OBV|OBLIVIOUS)?-?(LAMBDA)?MART([-_A-Z0-9]*)|DART|", re.IGNORECASE)  # sums of trees
BEFORE_ROOT = re.compile(rb"(?:\s+|<\?.{0,500}?\?>|<!--.{0,5000}?-->)*", re.DOTALL)


def looks_like(start: bytes) -> bool:
    """Return whether the first bytes of a file are those of a model of QuickRank."""
    text = start.removeprefix(codecs.BOM_UTF8)
    found = BEFORE_ROOT.match(text)
    return text[found.end() if found else 0 :].startswith((b"<ranker>", b"<ranker "))


def read(content: bytes, path: str) -> Ensemble:
    """Return the ensemble that a QuickRank model holds; feature k has the id k. ModelError for anything wrong."""
    text = content.removeprefix(codecs.BOM_UTF8)
    found = parse_trees(text, path, by_position=False)
    kind = found.info.get("type", "")
    if not ADDED.fullmatch(kind):
        raise ModelError(
            f"a QuickRank model of type {quote(kind)} is not read, only sums of trees such as LAMBDAMART", path
        )
    if len(found.ensemble_sizes) > 1:
        raise ModelError(f"there are {len(found.ensemble_sizes)} ensembles in one model; the model is damaged", path)
    said = found.info.get("trees", "")
    most = most_trees(int(said) if WHOLE.fullmatch(said) else None, found, path)
    with np.errstate(over="ignore", invalid="ignore"):
        leaves = numbers_of(found.outputs) * numbers_of(found.weights)[found.tree_of_leaf]
        thresholds32 = numbers_of(found.thresholds).astype(np.float32)  # QuickRank rounds to float64 first, too
    if not np.isfinite(leaves).all() or np.isposinf(thresholds32).any():
        raise ModelError("a number is too large; the model is damaged", path)
    flat, feature_ids = found.lay_out(of_less_or_equal32(thresholds32), np.zeros(len(thresholds32), np.bool_), leaves)
    settings = {"source": f"QuickRank {kind}" if kind else "QuickRank"} | most
    return Ensemble(build_trees(flat, len(feature_ids), path), feature_ids, settings=settings)


def write(ensemble: Ensemble) -> WrittenModel:
    """Return the ensemble as a LAMBDAMART model of QuickRank; weights are 1, leaf values exact.

    Thresholds are rounded down to float32, so that rows of float32 numbers come to the same leaves. Not held: sides of
    missing values, names. ModelError when a feature is not numbered from 1 up.
    """
    plain = as_plain_sum(ensemble)
    flat = flatten(plain.trees)
    refuse_feature_numbers(ensemble, flat, MOST_FEATURE, "QuickRank")
    thresholds = round_down32(flat.thresholds)
    features = ensemble.feature_ids[flat.split_columns].tolist()
    elements = tree_elements(flat, features, shortest32(thresholds), list(map(repr, flat.leaf_values.tolist())), 3)
    most_leaves = max((tree.n_leaves for tree in plain.trees), default=1)
    parts = [
        "<ranker>\n\t<info>\n\t\t<type>LAMBDAMART</type>\n",
        f"\t\t<trees>{len(elements)}</trees>\n\t\t<leaves>{most_leaves}</leaves>\n\t\t<shrinkage>1</shrinkage>\n",
        "\t\t<leafsupport>1</leafsupport>\n\t\t<discretization>0</discretization>\n\t\t<estop>0</estop>\n",
        "\t</info>\n\t<ensemble>\n",
    ]
    for number, element in enumerate(elements, 1):
        parts.append(f'\t\t<tree id="{number}" weight="1">\n{element}\t\t</tree>\n')
    parts.append("\t</ensemble>\n</ranker>\n")
    notes = threshold_notes(flat.thresholds, thresholds, "QuickRank")
    if lefts := int(np.count_nonzero(flat.missing_left)):
        sent = some(lefts, len(flat.thresholds), "split", "sends", "send")
        notes.append(f"{sent} nan to the left, where QuickRank sends it to the right")
    if ensemble.absent == "missing":
        notes += zero_side_notes(flat, "features that a row does not name", "QuickRank")
    notes += score_notes(ensemble, flat, flat.leaf_values, "float64", "QuickRank")
    notes += name_notes(ensemble, "QuickRank")
    return WrittenModel("".join(parts).encode(), tuple(notes))
