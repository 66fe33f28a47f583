"""Presets: the conventions of other tools, a record each, so that the same scores get the same numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from lmart.errors import SettingsError, quote
from lmart.foreign_names import perhaps
from lmart.gains import Gain
from lmart.measures.conventions import Conventions

_LINEAR = Gain("linear")


@dataclass(frozen=True)
class Preset:
    """The conventions of one tool.

    tool     : the tool, and the versions it was compared with or read
    measures : which of its measures are meant, by its own names
    notes    : what else to know, for the manual page
    """

    name: str
    tool: str
    conventions: Conventions
    measures: str
    notes: str = ""


def _preset(name: str, tool: str, measures: str, notes: str, **conventions: Any) -> Preset:
    return Preset(name, tool, Conventions(**conventions, like=name), measures, notes)


_ALL = (
    _preset(
        "lightgbm",
        "LightGBM 4.7",
        "ndcg and map at eval_at",
        "A table of label_gain goes to --gain. Labels are whole numbers. In ndcg it asks at the lowest cutoff of the "
        "run whether a query is empty, and adds the 1 of such a query without its weight.",
        empty="one",
        relevant=1.0,
        map_divisor="length",
        ideal="label",
        empty_ndcg="lowest",
        empty_weight="one",
    ),
    _preset(
        "xgboost",
        "XGBoost 3.2",
        "ndcg@k, map@k and pre@k",
        "Its ndcg@k- and map@k- are those of --empty zero, and ndcg_exp_gain=False is --gain linear. It holds "
        "scores and weights in 32 bits, and in ndcg adds the 1 of an empty query without its weight.",
        empty="one",
        map_divisor="k",
        p_divisor="length",
        empty_ndcg="ideal",
        empty_p="zero",
        empty_weight="one",
        precision="single",
    ),
    _preset(
        "ranklib",
        "RankLib 2.18",
        "NDCG@k, DCG@k, MAP, P@k, RR@k and ERR@k",
        "It uses the whole part of a label, and 10 for a k that is not given. If a query id occurs in two places of "
        "a file, its numbers are wrong.",
        relevant=1.0,
        p_divisor="length",
        empty_ndcg="ideal",
    ),
    _preset(
        "trec_eval",
        "trec_eval 10.0 (and 9.0, with --precision single)",
        "ndcg, ndcg_cut, map, map_cut, gm_map, P, recall, recip_rank, success, Rprec, iprec_at_recall, set_F and bpref",
        "Its -l LEVEL is --relevant LEVEL, its -c --missing zero, its -J --unjudged remove. Documents without an id "
        "are called by their number in the query, as in lmart predict --format trec.",
        gain=_LINEAR,
        ties="docid",
        relevant=1.0,
        empty_ndcg="ideal",
        missing="skip",
    ),
    _preset(
        "sklearn",
        "scikit-learn 1.9",
        "ndcg_score and dcg_score with k",
        "It refuses queries of one document. With ignore_ties=True the order of equal scores is that "
        "of an unstable sort.",
        gain=_LINEAR,
        ties="average",
        empty_ndcg="ideal",
    ),
    _preset(
        "letor4",
        "Eval-Score-4.0.pl of LETOR 4.0",
        "NDCG@k, P@k and MAP",
        "It knows the labels 0 to 2 and prints four digits. Its MeanNDCG, the mean over all k, is no measure here.",
        discount="letor",
        short="zero",
        relevant=1.0,
        empty_ndcg="ideal",
    ),
    _preset(
        "mslr",
        "the script of MSLR-WEB10K and WEB30K",
        "NDCG@k, P@k and MAP",
        "As letor4 for the labels 0 to 4; a document is relevant from label 2 on in P and MAP, and in them only.",
        discount="letor",
        short="zero",
        relevant=2.0,
        empty_ndcg="ideal",
    ),
    _preset(
        "gdeval",
        "gdeval.pl 1.3 of the TREC web track",
        "ndcg@k and err@k",
        "It prints five digits and leaves out topics without a positive judgment; with a scale -j other than 4 write "
        "err@k(max=J).",
        empty="skip",
        ties="docid",
        relevant=1.0,
        empty_ndcg="ideal",
        missing="skip",
    ),
)

PRESETS = {preset.name: preset for preset in _ALL}


def conventions_like(name: str | None, **overrides: Any) -> Conventions:
    """Return the conventions of a preset, or lmart's own, with the overrides that are not None; or SettingsError."""
    if name is not None and name not in PRESETS:
        raise SettingsError(f"{quote(name)} is no preset; use {', '.join(PRESETS)}{perhaps('like', name, PRESETS)}")
    conventions = Conventions() if name is None else PRESETS[name].conventions
    return replace(conventions, **{field: value for field, value in overrides.items() if value is not None})
