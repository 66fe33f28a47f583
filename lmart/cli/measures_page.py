"""What the manual page on measures says, from the records of measures, conventions and presets."""

from __future__ import annotations

from dataclasses import fields
from typing import NamedTuple

from lmart.cli.options.conventions import OPTION_NAMES
from lmart.cli.statistics_page import NOTES, STATISTICS
from lmart.measures.conventions import CHOICES, Conventions
from lmart.measures.kinds import KINDS, MeasureKind
from lmart.measures.presets import PRESETS, Preset

INTRODUCTION = """
lmart eval and --metric of lmart train take the measures below. Each is computed for every query
by itself, and what is reported is the mean over the queries, weighted where there are weights. Higher is better in all
of them.

Documents rank by score, higher first; i counts ranks from 1; k is the cutoff, and without one the whole list counts. A
document is relevant when its label is above 0, or reaches the level that is given; R is the number of relevant
documents of the query, those that are not retrieved too. A document that is not judged is not relevant and has no gain.
"""

_SYNTAX = """
A measure is a name, a cutoff after @ and parameters in brackets, in either case: ndcg@10, map, rbp(0.95)@20,
err@10(max=4), p@5(rel=2), rbp(0.95,rel=2). The brackets may stand before or after the cutoff. Where several measures
are taken, commas stand between them.
"""
_PARAMETERS = {
    "rel=LABEL": "the least label of a relevant document, in {binary}; else --relevant, else any above 0",
    "max=L": "the largest label of the scale, in {scale}",
    "R": "the persistence, in {persistence}, as in rbp(0.95), or rbp@0.95",
}

_CONVENTIONS = """
Tools compute measures of the same name differently. These are the points in which they differ, and what each may be;
the first is what lmart does when nothing else is said. lmart eval prints what holds, and --json names all of them.
"""
_GAIN = (
    "gain",
    "What a label is worth in ndcg and dcg: exp2, 2^label - 1; linear, the label; or a table from label 0 up.",
)
_RELEVANT = ("relevant", "The least label of a relevant document in binary measures; without it any above 0.")
_EMPTY = """A query is empty when no label reaches the level of relevance; in ndcg as below; in kendall when its judged
documents have one label."""

_PRESETS = """
--like NAME takes on the conventions of a tool; options of single conventions change them one by one. Measures that the
tool does not have are computed by its conventions too. What is not listed is as lmart does it.
"""


class Entry(NamedTuple):
    """A term, its text, and smaller terms with their texts below it."""

    term: str
    text: str
    parts: tuple[tuple[str, str], ...] = ()


def sections() -> list[tuple[str, str, list[Entry]]]:
    """Return the title, the opening words and the entries of each section of the page."""
    return [
        ("SYNTAX", _SYNTAX, [Entry(term, f"{text}.") for term, text in _parameters().items()]),
        ("MEASURES", "", [_measure(kind) for kind in KINDS.values()]),
        ("CONVENTIONS", f"{_CONVENTIONS}\n{_EMPTY}", _conventions()),
        ("PRESETS", f"{_PRESETS}\n\b\n{_table()}", [_preset(preset) for preset in PRESETS.values()]),
        ("STATISTICS", STATISTICS, [Entry(term, *of_term) for term, of_term in NOTES.items()]),
    ]


def _parameters() -> dict[str, str]:
    names = {
        "binary": _names([kind for kind in KINDS.values() if kind.is_binary]),
        "scale": _names([kind for kind in KINDS.values() if kind.uses_label_scale]),
        "persistence": _names([kind for kind in KINDS.values() if kind.parameter == "persistence"]),
    }
    return {term: text.format(**names) for term, text in _PARAMETERS.items()}


def _names(kinds: list[MeasureKind]) -> str:
    return ", ".join(kind.name for kind in kinds)


def _measure(kind: MeasureKind) -> Entry:
    also = f" Also read as {', '.join(kind.aliases)}." if kind.aliases else ""
    parts = [("Equation", f"{kind.equation}.")]
    parts += [("Notes", kind.notes)] if kind.notes else []
    return Entry(", ".join(kind.syntax), _sentence(kind.meaning) + also, (*parts, ("Source", f"{kind.source}.")))


def _sentence(text: str) -> str:
    first = text.split(maxsplit=1)[0]
    return f"{text if '@' in first else text[0].upper() + text[1:]}."


def _conventions() -> list[Entry]:
    entries = []
    for field in fields(Conventions):
        name = field.name
        option = f" (--{name.replace('_', '-')})" if name in OPTION_NAMES else ""
        if name in CHOICES:
            meanings = tuple((value, _sentence(meaning)) for value, meaning in CHOICES[name].items())
            entries.append(Entry(_shown(name) + option, _QUESTIONS[name], meanings))
    return [Entry(f"{_GAIN[0]} (--gain)", _GAIN[1]), Entry(f"{_RELEVANT[0]} (--relevant)", _RELEVANT[1]), *entries]


_QUESTIONS = {
    "empty": "What an empty query counts.",
    "ties": "In which order documents of equal score stand.",
    "discount": "By what the gain at a rank is multiplied in ndcg and dcg.",
    "short": "Queries with fewer than k documents in ndcg@k.",
    "p_divisor": "Queries with fewer than k documents in p@k.",
    "map_divisor": "By what the sum of precisions is divided in map@k.",
    "ideal": "The best order of ndcg.",
    "empty_ndcg": "Which queries are empty in ndcg.",
    "empty_p": "Empty queries in p.",
    "empty_weight": "Empty queries in a weighted mean, when they count 1.",
    "missing": "Queries of which the ranking holds no document.",
    "precision": "The scores.",
}


def _shown(name: str) -> str:
    return name.replace("_", " ")


def _table() -> str:
    """Return the conventions that are most asked for, a line a preset."""
    names = ("gain", "discount", "ties", "empty", "short", "p_divisor", "map_divisor", "relevant")
    rows = [["", *map(_shown, names)]]
    for preset in PRESETS.values():
        shown = (getattr(preset.conventions, name) for name in names[:-1])
        rows.append([preset.name, *map(str, shown), preset.conventions.relevance.removeprefix("label ")])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def _preset(preset: Preset) -> Entry:
    default, own = Conventions(), preset.conventions
    differs = []
    for field in fields(Conventions):
        value = getattr(own, field.name)
        if field.name == "like" or value == getattr(default, field.name):
            continue
        said = own.relevance if field.name == "relevant" else f"{_shown(field.name)} {value}"
        differs.append(said)
    parts = [("Measures", f"{preset.measures}."), ("Differs", f"{', '.join(differs)}.")]
    return Entry(preset.name, f"{preset.tool}.", (*parts, *((("Notes", preset.notes),) if preset.notes else ())))
