"""Values of options as other tools write them, for training and for evaluation, and what they are here."""

from __future__ import annotations

import re
from collections.abc import Collection
from difflib import get_close_matches

CUTOFF = 0.75  # of the likeness of a word with a misspelled one

OBJECTIVES = {
    "lambdamart": "lambdarank rank:ndcg ndcg lambda-mart lambdarank-ndcg rank-ndcg 6 5 lambdamart:metric=ndcg",
    "ranknet": "rank:pairwise pairwise pairlogit pairlogitpairwise rank-net rank-pairwise 1",
    "lambdaloss": "ndcgloss2++ ndcg-loss2++ lambda-loss ndcg-loss2pp",
    "map": "rank:map average-precision ap lambdamart-map",
    "mrr": "rr reciprocal-rank lambdamart:metric=mrr",
    "err": "lambdamart:metric=err expected-reciprocal-rank",
    "xendcg": "rank-xendcg xe-ndcg xendcg-mart xe-ndcg-mart xentropy-ndcg",
    "yetirank": "yetirankpairwise yeti-rank yeti",
}
TREES = {
    "leafwise": "lossguide leaf-wise bestfirst best-first lossguided leaf",
    "depthwise": "levelwise level-wise depth-wise level depth",
    "oblivious": "symmetrictree symmetric symmetric-tree",
}
GAINS = {
    "exp2": "exp exponential 2^label-1 exp2-1 2^l-1 base2 pow2",
    "linear": "lin identity base label",
}
FORMATS = {
    "letor": "svm svmlight libsvm svmrank svm-light ltr letor4 svm-rank",
    "parquet": "pq",
    "lmart": "json",
    "lightgbm": "lgb lgbm lightgbm-text light-gbm",
    "xgboost": "xgb xgboost-json",
    "xgboost-ubj": "ubj ubjson xgboost-ubjson",
    "xgboost-dump": "elasticsearch opensearch dump xgboost-text",
    "lightgbm-json": "vespa lgb-json",
    "ranklib": "xml ranklib-xml",
    "c": "cpp c++ code source h c-source",
}
RESULTS = {
    "scores": "plain text txt score",
    "tsv": "tab table csv",
    "trec": "run trec-run treceval trec-eval",
    "jsonl": "json ndjson json-lines",
}
EMPTY = {"zero": "0 0.0 false", "one": "1 1.0 true perfect", "skip": "drop ignore exclude omit nan none remove"}
TIES = {"input": "first order stable file data", "average": "mean avg expected"}
ABSENT = {"zero": "0 0.0 zeros", "missing": "nan na none null missing-value"}
SWITCHES = {"error": "refuse raise fail", "last": "keep-last overwrite"}

TABLES = {
    "objective": OBJECTIVES,
    "tree": TREES,
    "gain": GAINS,
    "source_format": FORMATS,
    "target_format": FORMATS,
    "form": RESULTS,
    "empty": EMPTY,
    "ties": TIES,
    "absent": ABSENT,
    "duplicates": SWITCHES,
}
"""By the parameter of a command, the names of others by ours."""

_MEASURES = {
    "ndcg": "ndcg ndcg_cut normalized_discounted_cumulative_gain ndcg_score lambdarank",
    "dcg": "dcg dcg_score cg",
    "map": "map ap map_cut mean_average_precision average_precision meanaverageprecision",
    "mrr": "mrr rr recip_rank reciprocal_rank mean_reciprocal_rank meanreciprocalrank",
    "p": "p pre prec precision precisionat p_at precision_at",
    "recall": "recall r recallat recall_at",
    "err": "err expected_reciprocal_rank",
    "rbp": "rbp rank_biased_precision",
    "bpref": "bpref binary_preference",
    "kendall": "kendall tau kendall_tau kendalltau kendall_tau_b",
    "judged": "judged judged_at",
}
_WITH_CUTOFF = re.compile(r"([a-z_]+?)(?:[@_:](?:top=)?([0-9]+))?-?(?:;.*)?")
_PERSISTENCE = re.compile(r"rbp\((?:p=)?([0-9.]+)\)(?:@([0-9]+))?")


def close_words(word: str, known: Collection[str], most: int = 2, cutoff: float = CUTOFF) -> list[str]:
    """Return the known words that are spelled most like one, best first; none below the cut-off.

    A word with two letters that changed places is like no other.

    word   : as it was written
    known  : the words there are
    most   : how many are returned at most
    cutoff : likeness from 0 to 1, as difflib has it
    """
    folded = {one.lower(): one for one in known}
    swapped = [one for low, one in folded.items() if _are_swapped(low, word.lower())]
    if swapped:
        return swapped[:most]
    return [folded[one] for one in get_close_matches(word.lower(), folded, most, cutoff)]


def _are_swapped(one: str, other: str) -> bool:
    """Return whether two words differ by two neighbouring letters that changed places."""
    places = [place for place, letters in enumerate(zip(one, other, strict=False)) if letters[0] != letters[1]]
    if len(one) != len(other) or len(places) != 2 or places[1] != places[0] + 1:
        return False
    first, second = places
    return one[first] == other[second] and one[second] == other[first]


def values_for(foreign: str, parameter: str, choices: Collection[str]) -> list[str]:
    """Return what a value that a parameter does not take may stand for: at most two of its choices, best first.

    foreign   : as it was written
    parameter : name of the parameter of the command
    choices   : what the parameter takes
    """
    name = foreign.strip().lower().replace("_", "-")
    for ours, names in TABLES.get(parameter, {}).items():
        if name == ours.lower() or name in names.split():
            return [ours] if ours in choices else []
    return close_words(name, choices)


def measure_for(foreign: str) -> str | None:
    """Return the measure that other tools write as NDCG@10, ndcg_cut_10 or PrecisionAt:top=5; None for others.

    foreign : one measure as it was written
    """
    text = foreign.strip().lower()
    if found := _PERSISTENCE.fullmatch(text):
        return f"rbp({found[1]})" + (f"@{found[2]}" if found[2] else "")
    found = _WITH_CUTOFF.fullmatch(text)
    if found is None:
        return None
    for ours, names in _MEASURES.items():
        if found[1].rstrip("_") in names.split():
            return f"{ours}@{int(found[2])}" if found[2] else ours
    return None


def measures_for(foreign: str) -> str | None:
    """Return the list of measures that a list of other spellings stands for; None when one of them is not known.

    foreign : measures with commas between
    """
    found = [measure_for(one) for one in foreign.split(",")]
    return None if None in found else ",".join(filter(None, found))
