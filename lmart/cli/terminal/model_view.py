"""What `lmart show MODEL` prints: the facts, the rankers, the features by importance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from lmart.cli.terminal.layout import NOT_DEFINED, Sheet, Table, cells, facts, paragraph, shown
from lmart.errors import counted, input_name, visible
from lmart.formats.number_text import shortest
from lmart.formats.registry import OWN
from lmart.reports.model_summary import FeatureImportance, ModelSummary, RankerFacts
from lmart.reports.tree_shapes import depths


class Explained(NamedTuple):
    """The data whose scores were explained.

    path : of the data
    rows : number of its rows
    """

    path: str
    rows: int


def model_lines(
    summary: ModelSummary, path: str, top: int | None, sheet: Sheet, explained: Explained | None = None
) -> list[str]:
    """Return the lines that tell what is in a model.

    summary   : of the model
    path      : of its file
    top       : features to list; None: all
    sheet     : what they are written on
    explained : the data of the contributions; None: there is none
    """
    lines = facts(_facts(summary, path, explained), sheet)
    if len(summary.rankers) > 1:
        lines += ["", *_ranker_table(summary.rankers, sheet)]
    return [*lines, *importance_lines(summary.importance, top, sheet, len(summary.rankers))]


def _facts(summary: ModelSummary, path: str, explained: Explained | None) -> list[tuple[str, str]]:
    model, rankers = summary.ensemble, summary.rankers
    n_leaves = sum(one.leaves for one in rankers)
    found = [("model", f"{visible(input_name(path))} ({summary.format})")]
    several = f"; the mean of {len(rankers)} rankers" if len(rankers) > 1 else ""
    average = "; a score is their mean" if model.average else ""
    found.append(("trees", f"{len(model.trees):,}{several}{average}"))
    if len(rankers) == 1 and rankers[0].objective is not None:
        one = rankers[0]
        found.append(("ranker", ", ".join(visible(word) for word in (one.objective, one.tree) if word)))
    if model.trees:
        sizes = [tree.n_leaves for tree in model.trees]
        span = _span(min(sizes), max(sizes))
        found.append(("leaves", f"{n_leaves:,}; {span} a tree, {n_leaves / len(sizes):.1f} on average"))
        levels = depths(model.trees)
        found.append(("depth", f"{_span(int(levels.min()), int(levels.max()))}, {levels.mean():.1f} on average"))
    if summary.documents is not None and summary.leaf_documents is not None:
        fewest, median, most = summary.leaf_documents
        leaf = f"{_span(fewest, most)} in a leaf, half of the leaves up to {median:,}"
        found.append(("documents", f"{summary.documents:,}; {leaf}"))
    unused = summary.unused
    found.append(("features", f"{model.n_features - len(unused):,} of {model.n_features:,} are split on"))
    if unused:
        found.append(("no split on", _listed(unused)))
    absent = "0" if model.absent == "zero" else "missing"
    base = "" if model.base_score == 0 else f"start at {shortest(float(model.base_score))}; "
    sums = "; summed in single precision" if model.sums == "float32" else ""
    found.append(("scores", f"{base}a feature that a row does not name is {absent}{sums}"))
    metric = model.settings.get("metric")
    if summary.format == OWN and isinstance(metric, str):
        stopped = " chose how many trees each ranker has" if model.settings.get("early_stop") else ""
        found.append(("measure", f"{visible(metric)}{stopped}"))
    if not model.settings:
        pass  # nothing is told
    elif summary.format == OWN:
        found.append(("settings", settings_text(summary.changed)))
    else:
        found.append(("the file says", _named_values(summary.changed)))
    if explained is not None:
        found.append(
            ("contributions", f"to {counted(explained.rows, 'score')} of {visible(input_name(explained.path))}")
        )
    return found


def settings_text(changed: Mapping[str, Any]) -> str:
    """Return the settings that differ from the defaults, as text.

    changed : values by name
    """
    if not changed:
        return "the defaults"
    return f"{_named_values(changed)}; others are the defaults"


def _named_values(values: Mapping[str, Any]) -> str:
    words = (f"{visible(name.replace('_', '-'))} {visible(_setting(value))}" for name, value in values.items())
    return ", ".join(words)


def _setting(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value) if value != "" else "none"


def _span(low: int, high: int) -> str:
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _listed(names: Sequence[str], most: int = 10) -> str:
    more = f", and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(map(visible, names[:most])) + more


def _ranker_table(rankers: Sequence[RankerFacts], sheet: Sheet) -> list[str]:
    """Return the table of the rankers: one a line, or, where that is too wide, with what it is on a line of its own."""
    header = ["ranker", "trees", "numbers", "leaves", "depth", "features"]
    rows = []
    for number, one in enumerate(rankers, 1):
        share = "" if one.features in (None, 1.0) else f", {one.features:g} of the features a tree"
        kind = f"{number}  {visible(one.objective or NOT_DEFINED)}, {visible(one.tree or NOT_DEFINED)}{share}"
        numbers = "none" if one.first_tree is None else f"{one.first_tree:,}-{one.first_tree + one.trees - 1:,}"
        rows.append(
            [kind, f"{one.trees:,}", numbers, _span(one.fewest, one.most), f"{one.depth:,}", f"{one.split_features:,}"]
        )
    table = Table(header, rows)
    lines = table.lines(sheet)
    if sheet.width is None or max(map(cells, table.lines(Sheet()))) <= sheet.width:
        return lines
    told = []
    for row in rows:
        first, what = row[0].split("  ", 1)
        told.append((first, f"{what}: {row[1]} trees ({row[2]}), leaves {row[3]}, depth {row[4]}, {row[5]} features"))
    return [sheet.bold("rankers"), *facts(told, sheet)]


def importance_lines(features: Sequence[FeatureImportance], top: int | None, sheet: Sheet, n_rankers: int) -> list[str]:
    """Return an empty line and the table of features, the most important first; nothing when there is none.

    features  : in their order; those without a split are left out
    top       : features to list; None: all
    sheet     : what they are written on
    n_rankers : number of rankers of the model
    """
    used = [one for one in features if one.splits]
    if not used:
        return []
    has_gain, has_contribution = used[0].gain_share is not None, used[0].contribution is not None
    header = ["feature", *["adds"] * has_contribution, *["gain"] * has_gain, "splits"]
    listed = used[:top]
    rows = []
    for one in listed:
        adds = [] if one.contribution is None else [shown(one.contribution)]
        share = [] if one.gain_share is None else [f"{one.gain_share:.2%}"]
        rows.append([visible(one.feature), *adds, *share, f"{one.splits:,}"])
    values = [_bar_value(one) for one in listed]
    largest = max(values)
    lines = ["", *Table(header, rows).lines(sheet, [value / largest if largest > 0 else 0.0 for value in values])]
    notes = []
    if len(listed) < len(used):
        rest = used[len(listed) :]
        share_left = sum(one.gain_share or 0.0 for one in rest)
        gain = f" with {share_left:.2%} of the gain" if has_gain else ""
        notes.append(f"{counted(len(rest), 'more feature')}{gain}: --top {len(used)} shows all.")
    if has_contribution:
        notes.append("adds: mean absolute contribution to a score.")
    if has_gain:
        mean = ", the mean over rankers" if n_rankers > 1 else ""
        notes.append(f"gain: share of the split gain{mean}. splits: nodes that split on it.")
    else:
        notes.append("The file does not say what splits gained: splits are the nodes that split on it.")
    return [*lines, *[sheet.faint(line) for text in notes for line in paragraph(text, sheet)]]


def _bar_value(one: FeatureImportance) -> float:
    """Return what a feature's bar shows: what the features are ordered by."""
    known = (value for value in (one.contribution, one.gain_share) if value is not None)
    return next(known, float(one.splits))


def importance_table(features: Sequence[FeatureImportance]) -> Iterator[str]:
    """Yield the lines of a table of all features, tab-separated, every digit, for other programs.

    features : in their order
    """
    has_gain = any(one.gain_share is not None for one in features)
    has_contribution = any(one.contribution is not None for one in features)
    columns = ["feature", *["contribution"] * has_contribution, *["gain_share"] * has_gain, "splits"]
    yield "\t".join(columns) + "\n"
    for one in features:
        numbers = [repr(value) for value in (one.contribution, one.gain_share) if value is not None]
        yield "\t".join([visible(one.feature), *numbers, str(one.splits)]) + "\n"
