"""Measure: what is measured, to which cutoff and under which conventions, as one value that prints and parses back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from lmart.errors import SettingsError, quote
from lmart.gains import Gain
from lmart.measures.kinds import KINDS, MeasureKind, kind_named, names_with

EMPTY_CHOICES = ("zero", "one", "skip")
TIES_CHOICES = ("input", "average")
DEFAULT_PERSISTENCE = 0.8
LARGEST_CUTOFF = 2**31 - 1
LARGEST_LABEL = 2**31 - 1

_FORMS = [form for kind in KINDS.values() for form in kind.syntax]
SYNTAX = f"{', '.join(_FORMS[:-1])} or {_FORMS[-1]}"

_ONLY_WITH_SCALE = f"has a largest label, which only {names_with('largest label')} takes"
_SYNTAX = re.compile(
    r"(?P<name>[a-z_]+)(?:\((?P<before>[^()]*)\))?(?:@(?P<cutoff>[^()]*))?(?:\((?P<after>[^()]*)\))?", re.DOTALL
)
_WHOLE = re.compile(r"0*[1-9][0-9]{0,9}")
_DECIMAL = re.compile(r"[0-9]*\.?[0-9]+(?:e-?[0-9]+)?")


@dataclass(frozen=True)
class Conventions:
    """How a measure is computed, apart from its name, cutoff and parameter.

    gain  : the gain of a label in ndcg and dcg
    empty : the value of a query without a relevant document (label > 0) in every measure but dcg: `zero`, `one`, or
            `skip` (it does not enter the mean); in ndcg also of a query whose relevant documents all have gain 0
    ties  : documents of equal score keep the order of the `input`, or the value is the `average` over all their
            orders
    """

    gain: Gain = field(default_factory=Gain)
    empty: str = "zero"
    ties: str = "input"

    def __post_init__(self) -> None:
        for name, value, choices in (("empty", self.empty, EMPTY_CHOICES), ("ties", self.ties, TIES_CHOICES)):
            if value not in choices:
                raise SettingsError(f"{name} is {quote(value)}; use {' or '.join(choices)}")

    def to_json(self) -> dict[str, str]:
        """Return the conventions as plain JSON values."""
        return {"gain": str(self.gain), "empty": self.empty, "ties": self.ties}


@dataclass(frozen=True)
class Measure:
    """One measure, higher is better: `parse_measure(str(measure), measure.conventions) == measure`.

    name        : of one of the KINDS
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
        if self.name not in KINDS:
            raise SettingsError(f"{quote(self.name)} is no measure; use {SYNTAX}")
        if self.cutoff is None and self.kind.needs_cutoff:
            raise SettingsError(f"{quote(self.name)} needs a cutoff, such as {self.name}@10")
        if self.cutoff is not None and not 1 <= self.cutoff <= LARGEST_CUTOFF:
            raise SettingsError(f"the cutoff of {quote(str(self))} is not a whole number from 1 to {LARGEST_CUTOFF}")
        if self.kind.parameter == "persistence" and self.persistence is None:
            object.__setattr__(self, "persistence", DEFAULT_PERSISTENCE)
        if self.persistence is not None:
            if self.kind.parameter != "persistence":
                only = names_with("persistence")
                raise SettingsError(f"{quote(str(self))} has a persistence, which only {only} takes")
            if not 0 < self.persistence < 1:
                raise SettingsError(f"the persistence of {quote(str(self))} is not between 0 and 1")
        if self.largest_label is not None:
            if not self.kind.uses_label_scale:
                raise SettingsError(f"{quote(str(self))} {_ONLY_WITH_SCALE}")
            if not 1 <= self.largest_label <= LARGEST_LABEL:
                raise SettingsError(f"max of {quote(str(self))} is not a whole number from 1 to {LARGEST_LABEL}")

    @property
    def kind(self) -> MeasureKind:
        """What measures of this name have in common."""
        return KINDS[self.name]

    def __str__(self) -> str:
        persistence = "" if self.persistence in (None, DEFAULT_PERSISTENCE) else f"({self.persistence!r})"
        largest = "" if self.largest_label is None else f"(max={self.largest_label})"
        return self.name + persistence + ("" if self.cutoff is None else f"@{self.cutoff}") + largest


def parse_measure(text: str, conventions: Conventions | None = None) -> Measure:
    """Parse `ndcg@10`, `map`, `rbp(0.95)@20`, `err@10(max=4)`, ... in either case; SettingsError says what is wrong.

    text        : the measure
    conventions : of the measure; None: the default
    The brackets may come before or after the cutoff.
    """
    match = _SYNTAX.fullmatch(text.strip().lower())
    kind = None if match is None else kind_named(match["name"])
    if match is None or kind is None:
        raise SettingsError(f"{quote(text.strip())} is no measure; use {SYNTAX}")
    cutoff = persistence = largest = None
    if match["cutoff"] is not None:
        if not _WHOLE.fullmatch(match["cutoff"]) or int(match["cutoff"]) > LARGEST_CUTOFF:
            raise SettingsError(f"the cutoff of {quote(text.strip())} is not a whole number from 1 to {LARGEST_CUTOFF}")
        cutoff = int(match["cutoff"])
    if match["before"] is not None and match["after"] is not None:
        raise SettingsError(f"{quote(text.strip())} is no measure; use {SYNTAX}")
    inside = match["after"] if match["before"] is None else match["before"]
    if inside is not None and kind.uses_label_scale:
        word, _, number = inside.replace(" ", "").partition("=")
        if word != "max" or not _WHOLE.fullmatch(number) or int(number) > LARGEST_LABEL:
            what = f"what is in the brackets of {quote(text.strip())} is not max= and a whole number"
            raise SettingsError(f"{what} from 1 to {LARGEST_LABEL}, as in {kind.name}@10(max=4)")
        largest = int(number)
    elif inside is not None:
        if inside.lstrip().startswith("max"):
            raise SettingsError(f"{quote(text.strip())} {_ONLY_WITH_SCALE}")
        if not _DECIMAL.fullmatch(inside):
            raise SettingsError(f"the persistence of {quote(text.strip())} is not a number between 0 and 1")
        persistence = float(inside)
    return Measure(kind.name, cutoff, persistence, conventions or Conventions(), largest)


def parse_measures(text: str, conventions: Conventions | None = None) -> tuple[Measure, ...]:
    """Parse a list with commas; order as given, repeated ones once.

    text        : measures as `parse_measure` reads them
    conventions : of all of them; None: the default
    SettingsError reports all bad names together.
    """
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
    advice = f"; use {SYNTAX}"
    unknown = any(fault.endswith(advice) for fault in faults)
    return "; ".join(fault.removesuffix(advice) for fault in faults) + (advice if unknown else "")
