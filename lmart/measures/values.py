"""Measure: what is measured, to which cutoff and under which conventions, as one value that prints and parses back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from lmart.errors import SettingsError, quote
from lmart.gains import Gain

EMPTY_CHOICES = ("zero", "one", "skip")
TIES_CHOICES = ("input", "average")
DEFAULT_PERSISTENCE = 0.8
LARGEST_CUTOFF = 2**31 - 1
LARGEST_LABEL = 2**31 - 1

MEANINGS = {
    "ndcg": "DCG divided by the DCG of the best order of the query's documents",
    "dcg": "sum of gain / log2(rank + 1)",
    "map": "mean over the relevant documents of the precision at their ranks; those below rank k count 0",
    "mrr": "1 / rank of the first relevant document; 0 when it is below rank k",
    "p": "relevant documents among the first k, divided by k, also when the query is shorter",
    "recall": "relevant documents among the first k, divided by all relevant ones of the query",
    "err": "expected 1 / rank at which a reader stops, who stops at a document with (2^label - 1) / 2^L; "
    "L is 4, or the data's largest label rounded up when that is more, or what is in brackets, as in err@10(max=5)",
    "rbp": "rank-biased precision, (1 - r) x sum over the relevant documents of r^(rank - 1); r is 0.8, "
    "or what is in brackets, as in rbp(0.95)",
}
"""One line a measure, for help and man pages; ranks in them are 1-based, relevant means label > 0."""

SPELLINGS = "ndcg[@k], dcg[@k], map[@k], mrr[@k], p@k, recall@k, err[@k], err[@k](max=L), rbp[@k] or rbp(R)[@k]"
NEED_CUTOFF = ("p", "recall")
ALIASES = {"ap": "map", "rr": "mrr", "recip_rank": "mrr", "precision": "p", "pre": "p"}

_SPELLING = re.compile(
    r"(?P<name>[a-z_]+)(?:\((?P<before>[^()]*)\))?(?:@(?P<cutoff>[^()]*))?(?:\((?P<after>[^()]*)\))?", re.DOTALL
)
_WHOLE = re.compile(r"0*[1-9][0-9]{0,9}")
_DECIMAL = re.compile(r"[0-9]*\.?[0-9]+(?:e-?[0-9]+)?")


@dataclass(frozen=True)
class Conventions:
    """What a number depends on besides the measure's name.

    gain  : what a label is worth in ndcg and dcg
    empty : what a query without a relevant document (label > 0) counts in every measure but dcg: `zero`, `one`, or
            `skip` (it does not enter the mean); in ndcg also a query whose relevant documents are worth nothing
    ties  : documents of equal score stand in the order of the `input`, or the value is the `average` over all their
            orders
    """

    gain: Gain = field(default_factory=Gain)
    empty: str = "zero"
    ties: str = "input"

    def __post_init__(self) -> None:
        for name, value, choices in (("empty", self.empty, EMPTY_CHOICES), ("ties", self.ties, TIES_CHOICES)):
            if value not in choices:
                raise SettingsError(f"{name} is {quote(value)}; use {' or '.join(choices)}")

    def to_json(self) -> dict[str, Any]:
        """Return the conventions as plain JSON values."""
        return {"gain": str(self.gain), "empty": self.empty, "ties": self.ties}


@dataclass(frozen=True)
class Measure:
    """One measure, higher is better: `parse_measure(str(measure), measure.conventions) == measure`.

    name        : a key of MEANINGS
    cutoff      : 1-based rank to which the list is looked at; None: the whole list
    persistence : of rbp, else None
    largest_label : L of err, whose reader stops at a document with (2^label - 1) / 2^L; None: as the data has it
    """

    name: str
    cutoff: int | None = None
    persistence: float | None = None
    conventions: Conventions = field(default_factory=Conventions)
    largest_label: int | None = None

    def __post_init__(self) -> None:
        if self.name not in MEANINGS:
            raise SettingsError(f"{quote(self.name)} is no measure; use {SPELLINGS}")
        if self.cutoff is None and self.name in NEED_CUTOFF:
            raise SettingsError(f"{quote(self.name)} needs a cutoff, such as {self.name}@10")
        if self.cutoff is not None and not 1 <= self.cutoff <= LARGEST_CUTOFF:
            raise SettingsError(f"the cutoff of {quote(str(self))} is not a whole number from 1 to {LARGEST_CUTOFF}")
        if self.name == "rbp" and self.persistence is None:
            object.__setattr__(self, "persistence", DEFAULT_PERSISTENCE)
        if self.persistence is not None:
            if self.name != "rbp":
                raise SettingsError(f"{quote(str(self))} has a persistence, which only rbp takes")
            if not 0 < self.persistence < 1:
                raise SettingsError(f"the persistence of {quote(str(self))} is not between 0 and 1")
        if self.largest_label is not None:
            if self.name != "err":
                raise SettingsError(f"{quote(str(self))} has a largest label, which only err takes")
            if not 1 <= self.largest_label <= LARGEST_LABEL:
                raise SettingsError(f"max of {quote(str(self))} is not a whole number from 1 to {LARGEST_LABEL}")

    def __str__(self) -> str:
        persistence = "" if self.persistence in (None, DEFAULT_PERSISTENCE) else f"({self.persistence!r})"
        largest = "" if self.largest_label is None else f"(max={self.largest_label})"
        return self.name + persistence + ("" if self.cutoff is None else f"@{self.cutoff}") + largest


def parse_measure(text: str, conventions: Conventions | None = None) -> Measure:
    """Parse `ndcg@10`, `map`, `rbp(0.95)@20`, `err@10(max=4)`, ... in either case; SettingsError says what is wrong.

    What is in brackets may stand before or behind the cutoff.
    """
    spelling = _SPELLING.fullmatch(text.strip().lower())
    name = "" if spelling is None else ALIASES.get(spelling["name"], spelling["name"])
    if spelling is None or name not in MEANINGS:
        raise SettingsError(f"{quote(text.strip())} is no measure; use {SPELLINGS}")
    cutoff = persistence = largest = None
    if spelling["cutoff"] is not None:
        if not _WHOLE.fullmatch(spelling["cutoff"]) or int(spelling["cutoff"]) > LARGEST_CUTOFF:
            raise SettingsError(f"the cutoff of {quote(text.strip())} is not a whole number from 1 to {LARGEST_CUTOFF}")
        cutoff = int(spelling["cutoff"])
    if spelling["before"] is not None and spelling["after"] is not None:
        raise SettingsError(f"{quote(text.strip())} is no measure; use {SPELLINGS}")
    inside = spelling["after"] if spelling["before"] is None else spelling["before"]
    if inside is not None and name == "err":
        word, _, number = inside.replace(" ", "").partition("=")
        if word != "max" or not _WHOLE.fullmatch(number) or int(number) > LARGEST_LABEL:
            what = f"what is in the brackets of {quote(text.strip())} is not max= and a whole number"
            raise SettingsError(f"{what} from 1 to {LARGEST_LABEL}, as in err@10(max=4)")
        largest = int(number)
    elif inside is not None:
        if inside.lstrip().startswith("max"):
            raise SettingsError(f"{quote(text.strip())} has a largest label, which only err takes")
        if not _DECIMAL.fullmatch(inside):
            raise SettingsError(f"the persistence of {quote(text.strip())} is not a number between 0 and 1")
        persistence = float(inside)
    return Measure(name, cutoff, persistence, conventions or Conventions(), largest)


def parse_measures(text: str, conventions: Conventions | None = None) -> tuple[Measure, ...]:
    """Parse a list with commas; order as given, repeated ones once. SettingsError reports all bad names together."""
    measures: list[Measure] = []
    faults: list[str] = []
    for part in text.split(","):
        try:
            measure = parse_measure(part, conventions)
        except SettingsError as fault:
            if fault.message not in faults:
                faults.append(fault.message)
        else:
            if measure not in measures:
                measures.append(measure)
    if faults:
        raise SettingsError(_joined(faults))
    return tuple(measures)


def _joined(faults: Sequence[str]) -> str:
    """Join the faults into one line that says `use ...` once."""
    advice = f"; use {SPELLINGS}"
    unknown = any(fault.endswith(advice) for fault in faults)
    return "; ".join(fault.removesuffix(advice) for fault in faults) + (advice if unknown else "")
