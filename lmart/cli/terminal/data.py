"""The output of `lmart show DATA`: documents, queries, labels, a table of features, and what drifts from other data."""

from __future__ import annotations

import json
from collections.abc import Iterator

from lmart.cli.terminal.layout import Sheet, Table, facts, paragraph
from lmart.errors import counted, input_name, visible
from lmart.reports.data_drift import DataDrift
from lmart.reports.data_summary import DataSummary, FeatureFacts
from lmart.reports.html_parts import NOT_DEFINED
from lmart.reports.words import data_facts, distance_text, features_text

COLUMNS = ("feature", "min", "median", "max", "zeros", "missing", "distinct", "ndcg@10", "rising")


def data_lines(summary: DataSummary, top: int | None, sheet: Sheet) -> list[str]:
    """Return the lines on a file of data, with the `top` features that rank best by themselves; None: all."""
    lines = facts(list(data_facts(summary, summary.path)), sheet)
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
            (name, distance_text(found))
            for name, found in (("labels", drift.labels), ("sizes", drift.query_sizes))
            if found
        ),
        ("features", f"{n_clear:,} of {len(drift.features):,} drift clearly"),
        *(
            (name, features_text(found))
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
