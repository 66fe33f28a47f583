"""The page of a file of data, and of two: queries, labels, features with histograms, and what drifts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from lmart.array_types import Float64Array, Int64Array
from lmart.decimals import shortest
from lmart.errors import counted, input_name
from lmart.measures.results import distinct_names
from lmart.reports.data_drift import DataDrift, Drift
from lmart.reports.data_summary import DataSummary, FeatureFacts, SampledValues
from lmart.reports.html_parts import (
    Cell,
    bar,
    facts,
    note,
    number,
    table,
    table_of_features,
    text,
    verdict_paragraph,
)
from lmart.reports.pages.frame import render
from lmart.reports.words import data_facts, distance_text, features_text

BINS = 20  # of a histogram
MOST_ROWS = 1000  # features of the page
MOST_LABELS = 30  # rows of the table of labels
EDGE = 0.01  # share of values at each end that the first and the last bar also count


class Histogram(NamedTuple):
    """How many values lie in equal parts of a range; the first and the last part also hold what lies beyond.

    counts : in each part, of each file
    """

    low: float
    high: float
    counts: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, eq=False)
class DataPage:
    """What the page of data shows: a file, or two and how they differ.

    listed : features that are shown at once; None: all
    """

    summaries: Sequence[DataSummary]
    drift: DataDrift | None
    listed: int | None
    title: str | None = None

    @property
    def features(self) -> list[FeatureFacts]:
        """The features of the first file that are on the page, those first that rank best by themselves."""
        return sorted(self.summaries[0].features, key=lambda feature: -feature.best_ndcg)[:MOST_ROWS]

    def to_json(self) -> dict[str, Any]:
        """Return the content as plain JSON values."""
        first, *others = self.summaries
        shown = self.features
        content: dict[str, Any] = {"data": _data_to_json(first, shown)}
        if self.title is not None:
            content["title"] = self.title
        if self.drift is not None:
            names = {feature.name for feature in shown}
            content["other"] = _data_to_json(others[0], [own for own in others[0].features if own.name in names])
            drift = self.drift.to_json()
            content["drift"] = drift | {"features": drift["features"][:MOST_ROWS]}
        return content


def _data_to_json(summary: DataSummary, features: Sequence[FeatureFacts]) -> dict[str, Any]:
    content = summary.to_json(features)
    for entry, feature in zip(content["features"], features, strict=True):
        made = _histogram([feature.sampled])
        entry["histogram"] = None if made is None else made._asdict()
    return {"file": summary.path, **content}


def _histogram(samples: Sequence[SampledValues]) -> Histogram | None:
    """Return the distributions of one feature in files, over their common range; None when all values are missing."""
    ends = [end for values in samples for end in values.range_without(EDGE)]
    if not ends:
        return None
    low, high = min(ends), max(ends)
    if low == high:
        low, high = low - 0.5, high + 0.5
    return Histogram(low, high, tuple(tuple(values.histogram(low, high, BINS).tolist()) for values in samples))


def render_data_page(page: DataPage) -> str:
    """Return the page as HTML; the same content gives the same bytes."""
    names = distinct_names([input_name(summary.path) for summary in page.summaries])
    title = page.title or f"Data {' and '.join(names)}"
    head = verdict_paragraph(_verdict(page, names)) + facts(data_facts(page.summaries[0], names[0]))
    return render(title, head, _sections(page, names), page.to_json())


def _verdict(page: DataPage, names: Sequence[str]) -> Iterator[str]:
    """Yield sentences that say what matters most."""
    first = page.summaries[0]
    queries = "" if first.query_ids is None else f" of {counted(len(first.query_sizes), 'query')}"
    yield f"{names[0]} holds {counted(first.documents, 'document')}{queries}."
    best = max(first.features, key=lambda feature: feature.best_ndcg, default=None)
    if best is not None and first.data_order is not None:
        yield (
            f"The best single feature, {best.name}, ranks them with NDCG@10 {best.best_ndcg:.4f}; as they stand in the "
            f"file they have {first.data_order:.4f}."
        )
    idle = sum(feature.is_constant for feature in first.features)
    if idle:
        yield f"{counted(idle, 'feature is', 'features are')} constant."
    drift = page.drift
    if drift is not None:
        clear = [feature for feature in drift.features if feature.is_clear]
        named = f", most of all {clear[0].name} (KS {clear[0].distance:.3f})" if clear else ""
        are = "is" if len(clear) == 1 else "are"
        yield f"{len(clear):,} of {len(drift.features):,} features {are} distributed otherwise in {names[1]}{named}."


def _sections(page: DataPage, names: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Yield the name, the title and the content of each section."""
    first = page.summaries[0]
    if page.drift is not None:
        yield "drift", "What drifts", _drift(page, page.drift, names)
    yield "features", "Features", _features(page)
    if first.query_ids is not None:
        yield "queries", "Sizes of queries", _sizes(page.summaries, names)
    if first.labels:
        yield "labels", "Labels", _labels(page.summaries, names)


def _features(page: DataPage) -> str:
    """Return the table of features, the best at once, others on demand."""
    first, shown = page.summaries[0], page.features
    judged = first.data_order is not None
    header = ["feature", "values", "min", "median", "max", "zeros", "missing", "distinct"]
    header += ["ndcg@10", "rising"] * judged
    caption = "Features, those first that rank best by themselves" if judged else "Features"
    rows = [_feature(feature, first, judged) for feature in shown]
    made = table_of_features(caption, header, rows, "feature-table", "more-features", page.listed)
    if left := len(first.features) - len(shown):
        made += note(f"{left:,} further features are left out; lmart show --tsv lists all.")
    notes = [
        f"Values: how they are distributed, from the smallest to the largest, in {counted(first.sampled, 'document')}; "
        "the first and the last bar also count the smallest and the largest 1%."
    ]
    if judged:
        notes.append("ndcg@10: of ranking by the feature alone, largest first; rising: smallest first.")
    return made + note(text(" ".join(notes)))


def _feature(feature: FeatureFacts, summary: DataSummary, judged: bool) -> list[str | Cell]:
    n = max(1, summary.documents)
    made = _histogram([feature.sampled])
    label = "" if made is None else f"{shortest(made.low)} to {shortest(made.high)}"
    values = (feature.lowest, feature.sampled.median, feature.highest)
    return [
        text(feature.name),
        "" if made is None else _bars(made.counts, label),
        *(number(value, ".6g") for value in values),
        *(f"{100 * count / n:.1f}%" if count else "0" for count in (feature.zeros, feature.missing)),
        number(feature.sampled.distinct, ",d"),
        *([number(feature.high_first), number(feature.low_first)] if judged else []),
    ]


def _bars(counts: Sequence[Sequence[int]], label: str) -> str:
    """Return a small histogram: bars for the first file, a line for the other, each as shares of its own values."""
    shares = [np.array(own) / max(1, sum(own)) for own in counts]
    most = max(float(own.max()) for own in shares) or 1.0
    heights = [np.round(100 - 100 * own / most, 1).tolist() for own in shares]
    bars = "".join(f"M{x} 100V{y:g}h1V100z" for x, y in enumerate(heights[0]) if y < 100)
    lines = "".join(f'<path class="other" d="M0 100{"".join(f"V{y:g}h1" for y in own)}V100"/>' for own in heights[1:])
    box = f'viewBox="0 0 {len(heights[0])} 100" preserveAspectRatio="none"'
    return f'<svg class="bars" role="img" aria-label="{text(label)}" {box}><path d="{bars}"/>{lines}</svg>'


def _sizes(summaries: Sequence[DataSummary], names: Sequence[str]) -> str:
    """Return how many queries have how many documents."""
    sizes = [summary.query_sizes for summary in summaries if summary.query_ids is not None]
    edges = _size_edges(np.concatenate(sizes))
    rows: list[list[str | Cell]] = []
    counts = [np.histogram(own, [*edges, np.inf])[0] for own in sizes]
    largest = max(float((own / max(1, own.sum())).max()) for own in counts)
    for place, low in enumerate(edges.tolist()):
        high = int(edges[place + 1]) - 1 if place + 1 < len(edges) else max(int(own.max()) for own in sizes)
        share = float(counts[0][place]) / max(1, int(counts[0].sum()))
        sizes_there = f"{int(low):,}" if high <= low else f"{int(low):,} to {high:,}"
        rows.append([sizes_there, *(number(int(own[place]), ",d") for own in counts), bar(100 * share / largest)])
    header = ["documents", *(names if len(sizes) > 1 else ["queries"]), "share of the queries"]
    return table("Queries by their number of documents", header, rows, "sizes")


def _size_edges(sizes: Int64Array) -> Float64Array:
    """Return where groups of sizes begin: each size alone, or about a dozen groups of round numbers."""
    low, high = int(sizes.min()), int(sizes.max())
    step = 1
    while (high - low) // step >= 14:
        digits = str(step).rstrip("0")
        step = step * 2 if digits in ("1", "5") else step * 5 // 2
    first = low // step * step
    return np.arange(max(first, 0), high + 1, step).astype(np.float64)


def _labels(summaries: Sequence[DataSummary], names: Sequence[str]) -> str:
    """Return how many documents have which label."""
    counted_labels = [summary.labels for summary in summaries if summary.labels]
    values = sorted({label for labels in counted_labels for label in labels})
    sums = [sum(labels.values()) for labels in counted_labels]
    rows: list[list[str | Cell]] = []
    for value in values[:MOST_LABELS]:
        counts = [labels.get(value, 0) for labels in counted_labels]
        cells = [number(count, ",d") for count in counts]
        shares = [f"{100 * count / of_all:.1f}%" for count, of_all in zip(counts, sums, strict=True)]
        pairs = [cell for pair in zip(cells, shares, strict=True) for cell in pair]
        rows.append([shortest(value), *pairs, bar(100 * counts[0] / sums[0])])
    titles = names if len(counted_labels) > 1 else ["documents"]
    header = ["label", *(title for name in titles for title in (name, "share")), "share of the documents"]
    more = len(values) - len(rows)
    left_out = note(f"{counted(more, 'further label')} left out.") if more else ""
    return table("Documents by label", header, rows, "label-table") + left_out


def _drift(page: DataPage, drift: DataDrift, names: Sequence[str]) -> str:
    """Return what differs between both files."""
    entries = [("queries", f"{counted(len(drift.common_queries), 'query id', 'query ids')} in both")]
    distances = {"labels": drift.labels, "sizes": drift.query_sizes}
    entries += [(name, distance_text(found)) for name, found in distances.items() if found]
    entries += [
        (f"only in {name}", features_text(found))
        for name, found in zip(names, (drift.missing, drift.extra), strict=True)
        if found
    ]
    samples = [{facts.name: facts.sampled for facts in summary.features} for summary in page.summaries]
    rows = [_drifted(found, [own[found.name] for own in samples]) for found in drift.features[:MOST_ROWS]]
    header = ["feature", "values", f"median, {names[0]}", f"median, {names[1]}", "KS", "by chance", ""]
    caption = f"Features by how far they differ; bars: {names[0]}, line: {names[1]}"
    made = table_of_features(caption, header, rows, "drift-table", "more-drift", page.listed) if rows else ""
    return (
        facts(entries)
        + made
        + note(
            "KS: largest difference of the cumulative distributions of a feature (Kolmogorov-Smirnov), of documents "
            "drawn at random; by chance: what it rarely exceeds, over all features together."
        )
    )


def _drifted(found: Drift, samples: Sequence[SampledValues]) -> list[str | Cell]:
    histogram = _histogram(samples)
    bars = "" if histogram is None else _bars(histogram.counts, "distributions in both files")
    distance = number(found.distance, ".4f")
    return [
        text(found.name),
        bars,
        *(number(values.median, ".6g") for values in samples),
        Cell(distance, "best") if found.is_clear else distance,
        number(found.critical, ".4f"),
        bar(100 * found.distance),
    ]
