"""Conventions: how measures are computed where tools differ, as one value; a table says what each may be and means."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from numbers import Real
from typing import Any

from lmart.decimals import MOST_COUNTED
from lmart.errors import SettingsError, either, shown
from lmart.foreign_names import perhaps
from lmart.gains import Gain

CHOICES: dict[str, dict[str, str]] = {
    "empty": {
        "zero": "an empty query counts 0, except in dcg and judged",
        "one": "an empty query counts 1, except in dcg and judged",
        "skip": "empty queries are left out, except in dcg and judged",
    },
    "ties": {
        "input": "documents of equal score in the order of the data",
        "reverse": "equal scores in the reverse order of the data",
        "docid": "equal scores by document id, the last id first",
        "average": "mean over all orders of documents of equal score",
    },
    "discount": {"log2": "1 / log2(rank + 1)", "letor": "1 at ranks 1 and 2, then 1 / log2(rank)"},
    "short": {
        "whole": "ndcg@k of a query shorter than k looks at all of it",
        "zero": "ndcg@k of a query shorter than k is 0",
    },
    "p_divisor": {"k": "p@k is divided by k", "length": "p@k is divided by k or the length of a shorter query"},
    "map_divisor": {
        "relevant": "map@k is divided by the relevant documents",
        "k": "map@k is divided by the relevant documents, k at most",
        "length": "map@k is divided by the relevant documents, at most those looked at",
    },
    "ideal": {"gain": "the best order goes by gain", "label": "the best order goes by label"},
    "empty_ndcg": {
        "label": "in ndcg: no label above 0, or no gain to the cutoff",
        "ideal": "in ndcg: a best order with a DCG of 0",
        "lowest": "in ndcg: a best order with a DCG of 0 at the lowest cutoff",
    },
    "empty_p": {"empty": "an empty query counts in p as in others", "zero": "an empty query counts 0 in p"},
    "empty_weight": {
        "query": "an empty query has its own weight",
        "one": "what an empty query counts in ndcg has the weight 1",
    },
    "missing": {"zero": "a query with nothing retrieved counts", "skip": "a query with nothing retrieved is left out"},
    "unjudged": {
        "count": "an unjudged document is ranked, and not relevant",
        "remove": "unjudged documents are taken out of the ranking",
    },
    "precision": {"double": "scores are compared in 64 bits", "single": "scores are rounded to 32 bits, then compared"},
}
"""For each convention that is one of a few words: the words, the default first, and what each means."""

LARGEST_LEVEL = MOST_COUNTED


@dataclass(frozen=True)
class Conventions:
    """How a measure is computed, apart from its name, cutoff and parameters; CHOICES says what the words mean.

    gain         : the gain of a label in ndcg and dcg
    empty        : the value of a query without a relevant document in every measure but dcg and judged: `zero`, `one`,
                   or `skip` (it does not enter the mean); in ndcg also of a query whose relevant documents all have
                   gain 0, in kendall of one whose judged documents have the same label
    ties         : documents of equal score keep the order of the `input`, or its `reverse`, or go by document id
                   (`docid`: the caller gives Evaluator a tie order), or the value is the `average` over all orders
    discount     : of ndcg and dcg, by rank
    relevant     : the least label of a relevant document in binary measures; None: any above 0
    short        : ndcg@k of queries shorter than k
    p_divisor    : what p@k is divided by
    map_divisor  : what map@k is divided by
    ideal        : what the best order of ndcg goes by
    empty_ndcg   : which queries are empty in ndcg
    lowest_cutoff : with empty_ndcg `lowest`, of the ndcg asked for, as `parse_measures` finds it; None: the whole list
    empty_p      : what an empty query counts in p
    empty_weight : weight of an empty query in the weighted mean
    missing      : queries of which nothing is retrieved
    unjudged     : documents that are retrieved and not judged
    precision    : of scores, when they are compared
    """

    gain: Gain = field(default_factory=Gain)
    empty: str = "zero"
    ties: str = "input"
    discount: str = "log2"
    relevant: float | None = None
    short: str = "whole"
    p_divisor: str = "k"
    map_divisor: str = "relevant"
    ideal: str = "gain"
    empty_ndcg: str = "label"
    empty_p: str = "empty"
    empty_weight: str = "query"
    missing: str = "zero"
    unjudged: str = "count"
    precision: str = "double"
    like: str | None = None
    lowest_cutoff: int | None = None

    def __post_init__(self) -> None:
        for name, choices in CHOICES.items():
            word = getattr(self, name)
            if not isinstance(word, str) or word not in choices:
                hint = perhaps(name, word, choices) if isinstance(word, str) else ""
                raise SettingsError(f"{name} is {shown(word)}; use {either(list(choices))}{hint}")
        level = self.relevant
        if level is not None and not (isinstance(level, Real) and 0 < level <= LARGEST_LEVEL):
            raise SettingsError(f"the least label of a relevant document is {shown(self.relevant)}; use one above 0")

    @property
    def relevance(self) -> str:
        """When a document is relevant, as a formula."""
        return "label > 0" if self.relevant is None else f"label >= {level_text(self.relevant)}"

    def to_json(self) -> dict[str, Any]:
        """Return the conventions as plain JSON values."""
        words = {
            convention.name: getattr(self, convention.name)
            for convention in fields(self)
            if convention.name != "lowest_cutoff"
        }
        return words | {"gain": str(self.gain), "relevant": self.relevance}


def level_text(level: float) -> str:
    """Return the shortest text of a least label of relevance, `2` or `0.5`, which parses back."""
    return str(int(level)) if level == int(level) else repr(level)
