"""Measure: what is measured, to which cutoff and under which conventions, as one value that prints and parses back."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from lmart.decimals import MOST_COUNTED, decimal, whole
from lmart.errors import SettingsError, quote
from lmart.foreign_names import measure_for
from lmart.functions import refuse_name
from lmart.measures.conventions import LARGEST_LEVEL, Conventions, level_text
from lmart.measures.kinds import KINDS, MeasureKind, kind_named, names_with

NO_FUNCTIONS: Mapping[str, MeasureKind] = {}

DEFAULT_PERSISTENCE = 0.8
LARGEST_CUTOFF = MOST_COUNTED

_FORMS = [form for kind in KINDS.values() for form in kind.syntax]
SYNTAX = f"{', '.join(_FORMS[:-1])} or {_FORMS[-1]}"

_BINARY = ", ".join(kind.name for kind in KINDS.values() if kind.is_binary)
_ONLY_WITH_SCALE = f"has a largest label, which only {names_with('largest label')} takes"
_ONLY_BINARY = f"has a least relevant label, which only {_BINARY} take"
_SYNTAX = re.compile(
    r"(?P<name>[a-z_]+[0-9]?)(?:\((?P<before>[^()]*)\))?(?:@(?P<cutoff>[^()]*))?(?:\((?P<after>[^()]*)\))?", re.DOTALL
)
_NOT_IN_BRACKETS = re.compile(r",(?![^()]*\))")


@dataclass(frozen=True)
class Measure:
    """One measure, higher is better: `parse_measure(str(measure), measure.conventions) == measure`.

    name          : of one of the KINDS
    cutoff        : 1-based rank to which the list is looked at; None: the whole list
    persistence   : of rbp, else None
    conventions   : apart from name, cutoff and parameters
    largest_label : L of err, whose reader stops at a document with (2^label - 1) / 2^L; None: as the data has it
    level         : the least label of a relevant document; None: as the conventions say
    recall_level  : of iprec, from 0 to 1, else None
    own           : what a function of a program measures, which has no more than a name; None: one of the KINDS
    """

    name: str
    cutoff: int | None = None
    persistence: float | None = None
    conventions: Conventions = field(default_factory=Conventions)
    largest_label: int | None = None
    level: float | None = None
    recall_level: float | None = None
    own: MeasureKind | None = None

    def __post_init__(self) -> None:
        if self.own is not None:
            return
        if self.name not in KINDS:
            raise SettingsError(f"{quote(self.name)} is no measure; use {SYNTAX}")
        self._check_cutoff()
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
            if not 1 <= self.largest_label <= MOST_COUNTED:
                raise SettingsError(f"max of {quote(str(self))} is not a whole number from 1 to {MOST_COUNTED}")
        if self.level is not None:
            if not self.kind.is_binary:
                raise SettingsError(f"{quote(str(self))} {_ONLY_BINARY}")
            if not 0 < self.level <= LARGEST_LEVEL:
                raise SettingsError(f"rel of {quote(str(self))} is not a number above 0, up to {LARGEST_LEVEL}")
        self._check_recall()

    def _check_cutoff(self) -> None:
        if self.cutoff is None and self.kind.cutoff == "needed":
            raise SettingsError(f"{quote(self.name)} needs a cutoff, such as {self.name}@10")
        if self.cutoff is not None and self.kind.cutoff == "none":
            raise SettingsError(f"{quote(str(self))} has a cutoff, but {self.name} goes by whole queries")
        if self.cutoff is not None and not 1 <= self.cutoff <= LARGEST_CUTOFF:
            raise SettingsError(f"the cutoff of {quote(str(self))} is not a whole number from 1 to {LARGEST_CUTOFF}")

    def _check_recall(self) -> None:
        if self.kind.parameter != "recall level":
            if self.recall_level is not None:
                raise SettingsError(f"{quote(str(self))} has a recall, which only {names_with('recall level')} takes")
            return
        if self.recall_level is None or not 0 <= self.recall_level <= 1:
            raise SettingsError(f"{self.name} needs a recall from 0 to 1, as in {self.name}@0.1")
        if self.conventions.ties == "average":
            what = f"{quote(str(self))} has no mean over the orders of equal scores"
            raise SettingsError(f"{what}; order them by --ties input, reverse or docid")

    @property
    def kind(self) -> MeasureKind:
        """What measures of this name have in common."""
        return self.own or KINDS[self.name]

    @property
    def least_relevant(self) -> float | None:
        """The least label of a relevant document; None: any label above 0."""
        return self.conventions.relevant if self.level is None else self.level

    def __str__(self) -> str:
        cutoff = "" if self.cutoff is None else f"@{self.cutoff}"
        if self.recall_level is not None:
            cutoff = f"@{level_text(self.recall_level)}"
        named = [] if self.level is None else [f"rel={level_text(self.level)}"]
        if self.largest_label is not None:
            named.append(f"max={self.largest_label}")
        if self.persistence not in (None, DEFAULT_PERSISTENCE):
            return f"{self.name}({','.join([repr(self.persistence), *named])}){cutoff}"
        return self.name + cutoff + (f"({','.join(named)})" if named else "")


def parse_measure(text: str, conventions: Conventions | None = None) -> Measure:
    """Parse `ndcg@10`, `map`, `rbp(0.95)@20`, `p@5(rel=2)`, ... in either case; SettingsError says what is wrong.

    The brackets may come before or after the cutoff; in `rbp@0.8` the number is the persistence.
    """
    try:
        return _parsed(text, conventions)
    except SettingsError as fault:
        raise SettingsError(_joined([fault.message], text)) from None


def _parsed(text: str, conventions: Conventions | None) -> Measure:
    shown = quote(text.strip())
    refuse_name("metric", text.strip())
    match = _SYNTAX.fullmatch(text.strip().lower())
    kind = None if match is None else kind_named(match["name"])
    if match is None or kind is None:
        raise SettingsError(f"{shown} is no measure; use {SYNTAX}")
    inside = [group for group in (match["before"], match["after"]) if group is not None]
    parameters: dict[str, float] = {}
    cutoff = match["cutoff"]
    rank = None if cutoff is None else whole(cutoff)
    if kind.parameter == "recall level":
        rank, parameters["recall_level"] = None, _recall(cutoff, shown, kind)
    elif cutoff is not None and rank is None and kind.parameter == "persistence":
        parameters["persistence"] = _persistence(cutoff, shown)
    elif cutoff is not None and (rank is None or not 1 <= rank <= LARGEST_CUTOFF):
        raise SettingsError(f"the cutoff of {shown} is not a whole number from 1 to {LARGEST_CUTOFF}")
    for entry in ",".join(inside).replace(" ", "").split(",") if inside else ():
        name, value = _parameter(entry, kind, shown)
        if name in parameters:
            raise SettingsError(f"{shown} gives {'max' if name == 'largest_label' else name} twice")
        parameters[name] = value
    return Measure(
        kind.name,
        rank,
        parameters.get("persistence"),
        conventions or Conventions(),
        int(parameters["largest_label"]) if "largest_label" in parameters else None,
        parameters.get("rel"),
        parameters.get("recall_level"),
    )


def _recall(text: str | None, shown: str, kind: MeasureKind) -> float:
    """Return the recall that a text is; `shown` is the measure, in quotes."""
    recall = None if text is None else decimal(text)
    if recall is None or not 0 <= recall <= 1:
        raise SettingsError(f"{shown} needs a recall from 0 to 1, as in {kind.name}@0.1")
    return recall


def _persistence(text: str, shown: str) -> float:
    """Return the persistence that a text is; `shown` is the measure, in quotes."""
    share = decimal(text)
    if share is None or not 0 < share < 1:
        raise SettingsError(f"the persistence of {shown} is not a number between 0 and 1")
    return share


def _parameter(entry: str, kind: MeasureKind, shown: str) -> tuple[str, float]:
    """Return the name and value of one parameter in the brackets of a measure."""
    word, equals, number = entry.partition("=")
    if word == "rel" and equals:
        if not kind.is_binary:
            raise SettingsError(f"{shown} {_ONLY_BINARY}")
        level = decimal(number)
        if level is None or not 0 < level <= LARGEST_LEVEL:
            raise SettingsError(
                f"rel in {shown} is not a number above 0, up to {LARGEST_LEVEL}, as in {kind.name}(rel=2)"
            )
        return "rel", level
    if kind.uses_label_scale:
        largest = whole(number) if word == "max" else None
        if largest is None or not 1 <= largest <= MOST_COUNTED:
            what = f"the brackets of {shown} do not hold max= and a whole number"
            raise SettingsError(f"{what} from 1 to {MOST_COUNTED}, as in {kind.name}@10(max=4)")
        return "largest_label", largest
    if word == "max":
        raise SettingsError(f"{shown} {_ONLY_WITH_SCALE}")
    if kind.parameter != "persistence":
        how = f"; use rel= and a number, as in {kind.name}(rel=2)" if kind.is_binary else ""
        raise SettingsError(f"{quote(entry)} in {shown} is no parameter of {kind.name}{how}")
    return "persistence", _persistence(entry, shown)


def parse_measures(
    text: str, conventions: Conventions | None = None, own: Mapping[str, MeasureKind] = NO_FUNCTIONS
) -> tuple[Measure, ...]:
    """Parse a list with commas; order as given, repeated ones once.

    own : what functions of a program measure, by the names that stand for them in the list

    SettingsError reports all bad names together.
    """
    measures: list[Measure] = []
    faults: list[str] = []
    for part in _NOT_IN_BRACKETS.split(text):
        try:
            name = part.strip()
            if name in own:
                measure = Measure(name, conventions=conventions or Conventions(), own=own[name])
            else:
                measure = _parsed(part, conventions)
        except SettingsError as fault:
            if fault.message not in faults:
                faults.append(fault.message)
        else:
            if measure not in measures:
                measures.append(measure)
    if faults:
        raise SettingsError(_joined(faults, text))
    return _with_lowest_cutoff(measures)


def _with_lowest_cutoff(measures: Sequence[Measure]) -> tuple[Measure, ...]:
    """Return the measures with their lowest cutoff of ndcg, where the conventions ask for it."""
    cutoffs = [measure.cutoff or LARGEST_CUTOFF for measure in measures if "empty_ndcg" in measure.kind.conventions]
    conventions = measures[0].conventions
    if conventions.empty_ndcg == "lowest" and cutoffs:
        conventions = replace(conventions, lowest_cutoff=min(cutoffs))
    return tuple(replace(measure, conventions=conventions) for measure in measures)


def measures_for(text: str) -> str | None:
    """Return the list of measures that a list, as other tools may write it, stands for; None if some are not known."""
    meant: list[str] = []
    for part in _NOT_IN_BRACKETS.split(text):
        ways = (part.strip(), measure_for(part, meant[-1] if meant else None))
        ours = next((way for way in ways if way is not None and _is_measure(way)), None)
        if ours is None:
            return None
        meant.append(ours)
    return ",".join(meant)


def _is_measure(text: str) -> bool:
    try:
        _parsed(text, None)
    except SettingsError:
        return False
    return True


def _joined(faults: Sequence[str], text: str) -> str:
    """Join the faults of a list into one line that ends in the measures that are meant, or in the syntax, once."""
    advice = f"; use {SYNTAX}"
    unknown = any(fault.endswith(advice) for fault in faults)
    meant = measures_for(text)
    if meant is not None and meant != text.strip().lower():
        hint = f"; perhaps {quote(meant)}"
    else:
        hint = advice if unknown else ""
    return "; ".join(fault.removesuffix(advice) for fault in faults) + hint
