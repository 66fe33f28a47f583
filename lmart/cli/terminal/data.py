"""The output of `lmart show DATA`: documents, queries, labels, a table of features, and what drifts from other data."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from lmart.cli.terminal.layout import NOT_DEFINED, Sheet, Table, facts, paragraph
from lmart.decimals import shortest
from lmart.errors import counted, input_name, visible
from lmart.reports.data_drift import DataDrift, Drift
from lmart.reports.data_summary import DataSummary, FeatureFacts

LISTED = 8  # names in a line
COLUMNS = ("feature", "min", "median", "max", "zeros", "missing", "distinct", "ndcg@10", "rising")


def data_lines(summary: DataSummary, top: int | None, sheet: Sheet) -> list[str]:
    """Return the lines on a file of data, with the `top` features that rank best by themselves; None: all."""
    lines = facts(list(_facts(summary)), sheet)
    ordered = sorted(summary.features, key=lambda feature: -feature.best_ndcg)
    listed = ordered[:top]
    if not listed:
        return lines
    header = [*COLUMNS[:-2], *(COLUMNS[-2:] if summary.data_order is not None else ())]
    table = Table(header, [_cells(feature, summary) for feature in listed])
    for part in table.in_width(sheet.width):
        lines += ["", *part.lines(sheet)]
    notes = []
    if len(listed) < len(ordered):
        notes.append(f"{counted(len(ordered) - len(listed), 'more feature')}: --top all shows all.")
    if summary.data_order is not None:
        notes.append("ndcg@10: of ranking by the feature alone, largest first; rising: smallest first.")
    return [*lines, *[sheet.faint(line) for text in notes for line in paragraph(text, sheet)]]


def _facts(summary: DataSummary) -> Iterator[tuple[str, str]]:
    yield "data", visible(input_name(summary.path))
    yield "documents", f"{summary.documents:,}"
    sizes = summary.query_sizes
    if summary.query_ids is None:
        yield "queries", "no query ids"
    else:
        low, high = int(sizes.min()), int(sizes.max())
        yield (
            "queries",
            f"{len(sizes):,}, of {low:,} to {high:,} documents, half of them up to {_middle(sizes.tolist()):,}",
        )
    if summary.labels is None:
        yield "labels", "none"
    elif summary.labels:
        yield "labels", ", ".join(f"{shortest(value)}: {count:,}" for value, count in summary.labels.items())
    elif summary.label_range is not None:
        yield "labels", f"many, from {' to '.join(map(shortest, summary.label_range))}"
    if summary.labels is not None and summary.query_ids is not None:
        yield "no order", f"{counted(summary.one_label, 'query', 'queries')} with one label in all documents"
        yield "ndcg@10", f"{summary.data_order:.6f} as the documents stand in the file"
    features = summary.features
    yield "features", f"{len(features):,}"
    for name, found in {
        "constant": [feature.name for feature in features if feature.is_constant],
        "equal": [
            f"{feature.name} = {feature.equal_to}"
            for feature in features
            if feature.equal_to and not feature.is_constant
        ],
        "by query": [feature.name for feature in features if not feature.varying and not feature.is_constant],
    }.items():
        if found and not (name == "by query" and summary.query_ids is None):
            what = "constant in each query: " if name == "by query" else ""
            yield name, f"{what}{_listed(found)}"
    if summary.sampled < summary.documents:
        yield "sampled", f"medians and distinct values are those of {summary.sampled:,} documents"


def _cells(feature: FeatureFacts, summary: DataSummary) -> list[str]:
    """Return a line of the table of features."""
    n = max(1, summary.documents)
    values = [feature.lowest, feature.sampled.median, feature.highest]
    more = "+" if summary.sampled < summary.documents and feature.sampled.distinct > 100 else ""
    cells = [
        visible(feature.name),
        *(NOT_DEFINED if value is None else f"{value:.6g}" for value in values),
        *(f"{100 * count / n:.1f}%" if count else "0" for count in (feature.zeros, feature.missing)),
        f"{feature.sampled.distinct:,}{more}",
    ]
    if feature.high_first is not None and feature.low_first is not None:
        cells += [f"{feature.high_first:.6f}", f"{feature.low_first:.6f}"]
    return cells


def data_table(summary: DataSummary, drift: DataDrift | None) -> Iterator[str]:
    """Yield the lines of a table of all features, tab-separated, every digit, for other programs."""
    distances = {} if drift is None else {feature.name: feature.distance for feature in drift.features}
    for place, feature in enumerate(summary.features):
        entries = feature.to_json()
        if drift is not None:
            entries["ks"] = distances.get(feature.name)
        if not place:
            yield "\t".join(entries) + "\n"
        cells = (
            NOT_DEFINED if cell is None else visible(cell) if isinstance(cell, str) else json.dumps(cell)
            for cell in entries.values()
        )
        yield "\t".join(cells) + "\n"


def drift_lines(drift: DataDrift, path: str, top: int | None, sheet: Sheet) -> list[str]:
    """Return the lines on how other data differs, whose file is `path`."""
    lines = ["", sheet.bold(f"compared with {visible(input_name(path))}")]
    n_clear = sum(feature.is_clear for feature in drift.features)
    entries = [
        ("queries", f"{counted(len(drift.common_queries), 'query id', 'query ids')} in common"),
        *(
            (name, _distance(found))
            for name, found in (("labels", drift.labels), ("sizes", drift.query_sizes))
            if found
        ),
        ("features", f"{n_clear:,} of {len(drift.features):,} drift clearly"),
        *(
            (name, _listed(found))
            for name, found in (("only first", drift.missing), ("only other", drift.extra))
            if found
        ),
    ]
    lines += facts(entries, sheet)
    rows = [
        [visible(feature.name), f"{feature.distance:.4f}", f"{feature.critical:.4f}"]
        for feature in drift.features[:top]
    ]
    if rows:
        table = Table(("feature", "KS", "by chance"), rows)
        lines += ["", *table.lines(sheet, [feature.distance for feature in drift.features[:top]])]
        note = "KS: largest difference of the cumulative distributions of a feature; by chance: what it rarely exceeds."
        lines += map(sheet.faint, paragraph(note, sheet))
    return lines


def _distance(drift: Drift) -> str:
    what = "differ clearly" if drift.is_clear else "do not differ clearly"
    return f"{what}: KS {drift.distance:.4f}, {drift.critical:.4f} by chance"


def _listed(names: Sequence[str]) -> str:
    more = f", and {len(names) - LISTED:,} more" if len(names) > LISTED else ""
    return f"feature{'s' * (len(names) > 1)} {', '.join(map(visible, names[:LISTED]))}{more}"


def _middle(sizes: list[int]) -> int:
    return sorted(sizes)[(len(sizes) - 1) // 2]
