"""Models, runs and data in words: names and values that the terminal and pages list."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from lmart.decimals import shortest
from lmart.errors import counted, input_name, listed, visible
from lmart.formats.registry import OWN
from lmart.reports.data_drift import Drift
from lmart.reports.data_summary import DataSummary
from lmart.reports.html_parts import NOT_DEFINED, shown
from lmart.reports.model_summary import ModelSummary, depths
from lmart.reports.run_report import RunReport
from lmart.scoring.ensemble import rankers_in_words

LISTED = 8  # features in a line


class Explained(NamedTuple):
    """The data whose scores were explained."""

    path: str
    rows: int


def model_facts(summary: ModelSummary, path: str, explained: Explained | None = None) -> list[tuple[str, str]]:
    """Return what a model is, and of which settings."""
    model, rankers = summary.ensemble, summary.rankers
    n_leaves = sum(ranker.leaves for ranker in rankers)
    found = [("model", f"{visible(input_name(path))} ({summary.format})")]
    several = f"; the mean of {rankers_in_words([ranker.tree for ranker in rankers])}" if len(rankers) > 1 else ""
    average = "; a score is their mean" if model.average else ""
    found.append(("trees", f"{len(model.trees):,}{several}{average}"))
    if len(rankers) == 1 and rankers[0].objective is not None:
        ranker = rankers[0]
        found.append(("ranker", ", ".join(visible(word) for word in (ranker.objective, ranker.tree) if word)))
    if model.trees:
        sizes = [tree.n_leaves for tree in model.trees]
        of_tree = span(min(sizes), max(sizes))
        found.append(("leaves", f"{n_leaves:,}; {of_tree} a tree, {n_leaves / len(sizes):.1f} on average"))
        levels = depths(model.trees)
        found.append(("depth", f"{span(int(levels.min()), int(levels.max()))}, {levels.mean():.1f} on average"))
    if summary.documents is not None and summary.leaf_documents is not None:
        fewest, median, most = summary.leaf_documents
        leaf = f"{span(fewest, most)} in a leaf, half of the leaves up to {median:,}"
        found.append(("documents", f"{summary.documents:,}; {leaf}"))
    unused = summary.unused
    found.append(("features", f"{model.n_features - len(unused):,} of {model.n_features:,} are split on"))
    if unused:
        found.append(("no split on", listed(unused, LISTED, visible)))
    if model.categories:
        counts = [(each.column, counted(len(each.values), "value")) for each in model.categories]
        names = [f"{model.feature_name(column)} ({values})" for column, values in counts]
        found.append(("categories", listed(names, LISTED, visible)))
    absent = "0" if model.absent == "zero" else "missing"
    base = "" if model.base_score == 0 else f"start at {shortest(float(model.base_score))}; "
    sums = "; summed in single precision" if model.sums == "float32" else ""
    found.append(("scores", f"{base}a feature that a row does not name is {absent}{sums}"))
    metric = model.settings.get("metric")
    if summary.format == OWN and isinstance(metric, str):
        stopped = " chose how many trees each ranker has" if model.settings.get("early_stop") else ""
        found.append(("measure", f"{visible(metric)}{stopped}"))
    if not model.settings:
        pass
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
    """Return the settings that differ from the defaults, as text."""
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


def span(low: int, high: int) -> str:
    """Return numbers from a smallest to a largest one, in words."""
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def run_facts(report: RunReport, path: str, name: Callable[[str], str] = input_name) -> list[tuple[str, str]]:
    """Return how a run went; `name` gives the files their names."""
    content = report.content
    files = _object(content.get("files"))
    found = [("report", f"{visible(input_name(path))} (of lmart train)")]
    found += _trace(_object(content.get("run")))
    size = _object(content.get("data"))
    counts = [
        counted(size[key], singular, many)
        for key, singular, many in (
            ("documents", "document", None),
            ("queries", "query", "queries"),
            ("features", "feature", None),
        )
        if isinstance(size.get(key), int)
    ]
    found.append(("data", "; ".join(filter(None, (_files(files.get("data"), name), ", ".join(counts))))))
    if files.get("validation"):
        found.append(("validation", _files(files["validation"], name)))
    grown, kept = sum(len(ranker.rounds) for ranker in report.rankers), sum(ranker.trees for ranker in report.rankers)
    several = f" of {len(report.rankers)} rankers" if len(report.rankers) > 1 else ""
    found.append(("trees", f"{kept:,}{several}; {counted(grown, 'round')}"))
    continued = _object(content.get("continued_from"))
    if isinstance(continued.get("trees"), int):
        found.append(
            ("continued", f"from {counted(continued['trees'], 'tree')} of {visible(str(continued.get('model')))}")
        )
    for metric, measures in {report.metric: report.measures, **report.further}.items():
        for place, (measured, value) in enumerate(measures):
            found.append((metric if place == 0 else "", f"{shown(value)} on {visible(name(measured))}"))
    found += _selection(content, report.metric)
    found.append(("settings", settings_text(report.changed)))
    seconds = _object(content.get("seconds"))
    spent = [f"{visible(stage)} {time:.1f}" for stage, time in seconds.items() if isinstance(time, int | float)]
    found.append(("seconds", ", ".join(spent) or NOT_DEFINED))
    warnings = content.get("warnings")
    texts = [visible(str(text)) for text in warnings] if isinstance(warnings, list) else []
    return [*found, *(("warning", text) for text in texts)]


def _trace(run: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield when a run was, with which version and command line, as far as the report has it."""
    if isinstance(run.get("started"), str) and isinstance(run.get("seconds"), int | float):
        yield "run", visible(f"{run['started']}, {run['seconds']:,.1f} s, lmart {run.get('version')}")
    if isinstance(run.get("command"), str):
        yield "command", visible(run["command"])


def _selection(content: Mapping[str, Any], metric: str) -> list[tuple[str, str]]:
    """Return the results of folds and of tuning in the report."""
    found = []
    folds = _object(content.get("cross_validation"))
    if isinstance(folds.get("mean"), int | float) and isinstance(folds.get("folds"), list):
        match folds.get("interval"):
            case [int() | float() as low, int() | float() as high]:
                between = f", {low:.6f} to {high:.6f}"
            case _:
                between = ""
        found.append(("folds", f"{metric} {folds['mean']:.6f}{between} over {len(folds['folds'])} folds"))
        for name, further in _object(folds.get("further")).items():
            if isinstance(mean := _object(further).get("mean"), int | float):
                found.append(("", f"{visible(name)} {mean:.6f}"))
    tuning = _object(content.get("tuning"))
    if isinstance(tuning.get("trials"), list):
        best = tuning.get("best")
        number = str(best) if isinstance(best, int) else "none"
        found.append(("tuning", f"{counted(len(tuning['trials']), 'trial')}; the best is {number}"))
    return found


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _files(paths: object, name: Callable[[str], str]) -> str:
    return ", ".join(visible(name(str(path))) for path in paths) if isinstance(paths, list) else ""


def data_facts(summary: DataSummary, path: str) -> Iterator[tuple[str, str]]:
    """Yield what a file of data holds, without its features."""
    yield "data", visible(input_name(path))
    yield "documents", f"{summary.documents:,}"
    sizes = summary.query_sizes
    if summary.query_ids is None:
        yield "queries", "no query ids"
    else:
        ascending = sorted(sizes.tolist())
        low, middle, high = ascending[0], ascending[(len(sizes) - 1) // 2], ascending[-1]
        yield "queries", f"{len(sizes):,}, of {low:,} to {high:,} documents, half of them up to {middle:,}"
    if summary.labels is None:
        yield "labels", "none"
    elif summary.labels:
        yield "labels", ", ".join(f"{shortest(value)}: {count:,}" for value, count in summary.labels.items())
    elif summary.label_range is not None:
        yield "labels", f"many, from {' to '.join(map(shortest, summary.label_range))}"
    if summary.labels is not None and summary.query_ids is not None:
        yield "no order", f"{counted(summary.one_label, 'query')} with one label in all documents"
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
            yield name, f"{what}{features_text(found)}"
    if summary.sampled < summary.documents:
        yield "sampled", f"medians and distinct values are those of {summary.sampled:,} documents"


def distance_text(drift: Drift) -> str:
    """Return whether distributions differ, in words."""
    what = "differ clearly" if drift.is_clear else "do not differ clearly"
    return f"{what}: KS {drift.distance:.4f}, {drift.critical:.4f} by chance"


def features_text(names: Sequence[str]) -> str:
    """Return a list of features in words, cut when it is long."""
    return f"feature{'s' * (len(names) > 1)} {listed(names, LISTED, visible)}"
