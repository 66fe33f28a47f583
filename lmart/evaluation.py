"""Evaluating from Python: `lmart.evaluate` and `lmart.compare`, and what they return."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from lmart.array_types import BoolArray, Float64Array
from lmart.data.dataset import RankingDataset
from lmart.data.from_python import array_of, as_floats, cells_of, column_labels
from lmart.data.metadata import Weights, weights_of
from lmart.data.named_documents import document_names
from lmart.data.python_dataset import ArrayDataset, Dataset, measured_part
from lmart.errors import ArrayError, counted, first_repeated, load_package, naming_arguments, quote, visible, warn
from lmart.formats.query_groups import grouped_queries
from lmart.functions import Metric, names_of
from lmart.gains import Gain
from lmart.interrupts import safe_interrupts
from lmart.measures import DEFAULT_METRICS, Measure, parse_measures
from lmart.measures.comparing import Comparison, SystemStatistics, statistics_of
from lmart.measures.evaluation import (
    Measurement,
    RankedSystem,
    Trained,
    warn_of_large_labels,
    warn_of_single_documents,
    with_gain_of,
)
from lmart.measures.judgments import Judgments, docid_order
from lmart.measures.own import own_kinds
from lmart.measures.presets import conventions_like
from lmart.measures.resampling import DEFAULT_FLIPS, DEFAULT_LEVEL, Resampling
from lmart.measures.results import EvaluationResult, SystemKind, best_places
from lmart.measures.summary import Interval, Summary
from lmart.reports.html_parts import shown, text
from lmart.threads import WorkerPool, threads_to_use

ONLY_SYSTEM = "scores"  # its name, when it is given none


@runtime_checkable
class ScoringModel(Protocol):
    """A model that scores data sets, such as `lmart.Model`."""

    @property
    def ensemble(self) -> Trained:
        """What it learned, and with which gain."""

    def predict(self, features: object, *, threads: int | None = None) -> Float64Array:
        """Return the score of each row."""


class MeasureChoice(NamedTuple):
    """What is measured, and by which conventions.

    gives_gain : whether the caller gave the gain, so that no model's takes its place
    """

    measures: tuple[Measure, ...]
    gives_gain: bool


def choose_measures(
    metric: Metric, like: str | None, gain: str | Sequence[float] | Gain | None, **words: Any
) -> MeasureChoice:
    """Return the measures; SettingsError when there is no such measure or convention."""
    conventions = conventions_like(like, gain=None if gain is None else Gain.of(gain), **words)
    names, functions = names_of("metric", metric if isinstance(metric, str) or callable(metric) else list(metric))
    measures = parse_measures(names, conventions, own_kinds(functions))
    return MeasureChoice(measures, gain is not None or like is not None)


def evaluate(
    y: object,
    scores: object,
    qid: object = None,
    metric: Metric = DEFAULT_METRICS,
    *,
    group: object = None,
    weights: object = None,
    by: Mapping[str, str] | None = None,
    document_ids: Sequence[str] | None = None,
    like: str | None = None,
    gain: str | Sequence[float] | Gain | None = None,
    discount: str | None = None,
    relevant: float | None = None,
    empty: str | None = None,
    ties: str | None = None,
    short: str | None = None,
    p_divisor: str | None = None,
    map_divisor: str | None = None,
    unjudged: str | None = None,
    precision: str | None = None,
    level: float = DEFAULT_LEVEL,
    resamples: int | None = None,
    flips: int = DEFAULT_FLIPS,
    seed: int = 0,
    threads: int | None = None,
) -> Evaluation:
    """Measure how well scores from anywhere rank judged documents, as `lmart eval` does.

    y            : label of each document, a number from 0 up, nan where it is not judged; or a `lmart.Dataset`, which
                   has its own `qid`, weights and document ids
    scores       : score of each document, higher ranks first; or, if y is a Dataset, a `lmart.Model` that scores it; or
                   several systems by name, as a mapping of such columns and models, or a DataFrame
    qid          : id of the query of each document; documents of a query are adjacent
    metric       : measures in a list or with commas, as `lmart eval --metric` takes them; lmart-measures(7) has all;
                   or functions of your own, which are called with scores, labels, query_offsets and weights of the
                   queries and return a number for each query
    group        : instead of `qid`, the number of documents of each query
    weights      : one number from 0 up a query, or one a document, for the means
    by           : group of each query by its id, to measure each group alone too
    document_ids : id of each document, for ties='docid'; None: their numbers in the query
    like         : tool whose conventions replace the defaults, such as 'trec_eval'
    gain         : 'exp2', 'linear' or a table such as [0, 1, 3, 7]; None: as `like` has it, else that of
                   the models, or exp2
    discount, relevant, empty, ties, short, p_divisor, map_divisor, unjudged, precision : single conventions, as the
                   options of `lmart eval`
    level, resamples, flips, seed : of intervals and comparisons, as the options of `lmart eval`
    threads      : threads to use, None: all that this process may use; no number depends on it

    ArrayError when the columns do not fit together, SettingsError when there is no such measure or convention.

    >>> import lmart
    >>> y, qid = [2, 0, 1, 0, 1], ["a", "a", "a", "b", "b"]
    >>> lmart.evaluate(y, [0.9, 0.5, 0.7, 0.1, 0.2], qid, "ndcg@10,map")["map"]
    1.0
    >>> both = lmart.evaluate(y, {"old": [1, 2, 3, 4, 5], "new": [3, 1, 2, 1, 2]}, qid, "mrr")
    >>> both["mrr"]
    {'old': 1.0, 'new': 1.0}
    """
    words = {"discount": discount, "relevant": relevant, "empty": empty, "ties": ties, "short": short}
    words |= {"p_divisor": p_divisor, "map_divisor": map_divisor, "unjudged": unjudged, "precision": precision}
    choice = choose_measures(metric, like, gain, **words)
    judged = _judged(y, qid, group, document_ids)
    if weights is not None:
        judged = replace(judged, weights=weights_of(weights, judged.data.query_offsets))
    columns = _columns(scores)
    models = {name: column for name, column in columns.items() if isinstance(column, ScoringModel)}
    if models and not isinstance(y, Dataset):
        raise ArrayError("a model needs features to score; give a lmart.Dataset as y")
    systems = {
        name: _checked(models[name].predict(y, threads=threads) if name in models else column, name, judged)
        for name, column in columns.items()
    }
    return measure_systems(
        choice,
        judged,
        list(systems),
        lambda name, pool: systems[name],
        Resampling(seed, level, resamples, flips),
        by,
        threads,
        {name: model.ensemble for name, model in models.items()},
    )


def compare(
    y: object,
    scores: object,
    qid: object = None,
    metric: Metric = DEFAULT_METRICS,
    *,
    all_pairs: bool = False,
    **options: Any,
) -> Comparisons:
    """Compare systems that rank the same documents, query by query; the first one is the baseline.

    y, qid, metric : as in `lmart.evaluate`
    scores         : two systems or more by name, as a mapping of columns or a DataFrame
    all_pairs      : compare each system with each one before it
    options        : further keywords of `lmart.evaluate`

    >>> import lmart
    >>> y, qid = [2, 0, 1, 0, 1], ["a", "a", "a", "b", "b"]
    >>> (found,) = lmart.compare(y, {"old": [1, 2, 3, 5, 4], "new": [3, 1, 2, 1, 2]}, qid, "mrr")
    >>> found.difference, found.wins, found.losses
    (0.25, 1, 0)
    """
    return evaluate(y, scores, qid, metric, **options).compare(all_pairs)


@dataclass(frozen=True, eq=False)
class JudgedColumns:
    """Judged documents, as a program gives them.

    is_judged    : bool[n_documents]; None: all are
    document_ids : n_documents texts; None: they have none
    weights      : of the queries; None: all 1
    """

    data: RankingDataset | ArrayDataset
    is_judged: BoolArray | None = None
    document_ids: Sequence[str] | None = None
    weights: Weights | None = None


def judged_dataset(dataset: Dataset) -> JudgedColumns:
    """Return the documents of a data set."""
    data, weights = measured_part(dataset)
    return JudgedColumns(data, None, data.document_ids, weights)


def measure_systems(
    choice: MeasureChoice,
    judged: JudgedColumns,
    names: Sequence[str],
    scores_of: Callable[[str, WorkerPool], Float64Array],
    resampling: Resampling,
    by: Mapping[str, str] | None = None,
    threads: int | None = None,
    models: Mapping[str, Trained] | None = None,
) -> Evaluation:
    """Return the measures of systems over the same documents.

    scores_of : returns the scores of a system, by its name, float64[n_documents]
    by        : group of each query by its id; None: no groups
    models    : those whose training the measures depend on, by name; None: none
    """
    data, weights, of_models = judged.data, judged.weights, models or {}
    measures = choice.measures
    if not choice.gives_gain:
        with naming_arguments():
            measures = with_gain_of(of_models, measures, None, lambda remark: None)
    by_document = measures[0].conventions.ties == "docid"
    warn_of_single_documents(data, warn)
    with naming_arguments(), safe_interrupts(), WorkerPool(threads_to_use(threads)) as pool:
        ties = None
        if by_document:
            ties = docid_order(document_names(judged.document_ids, data.query_offsets), data.query_offsets)
        groups = {} if by is None else grouped_queries({str(k): str(v) for k, v in by.items()}, data.query_ids)
        per_query = None if weights is None else weights.per_query
        measurement = Measurement.over(measures, data.labels, data.input_rows, of_models, pool, per_query, warn, groups)
        evaluator = measurement.evaluator(Judgments(data.labels, data.query_offsets, judged.is_judged, None, ties))
        kinds: dict[str, SystemKind] = dict.fromkeys(of_models, "model")
        systems = (
            RankedSystem(name, kinds.get(name, "scores"), name, evaluator.measure(scores_of(name, pool)), {})
            for name in names
        )
        given_per = None if weights is None else weights.given_per
        result = measurement.result(systems, data.query_ids, (data.source,), given_per)
    warn_of_large_labels(measures, data.labels, warn)
    return Evaluation(result, resampling, threads)


def _judged(y: object, qid: object, group: object, document_ids: Sequence[str] | None) -> JudgedColumns:
    """Return labels and queries; ArrayError when they do not fit together."""
    if isinstance(y, Dataset):
        if qid is not None or group is not None:
            raise ArrayError("a Dataset has its own qid; leave it out")
        judged = judged_dataset(y)
    else:
        labels = as_floats(cells_of(y, "y"), "y")
        is_judged = ~np.isnan(labels)
        dataset = Dataset(np.zeros((len(labels), 0)), np.where(is_judged, labels, 0.0), qid, group)
        judged = replace(judged_dataset(dataset), is_judged=None if is_judged.all() else is_judged)
    if document_ids is not None:
        ids = [str(cell) for cell in cells_of(document_ids, "document_ids").tolist()]
        if len(ids) != judged.data.n_documents:
            raise ArrayError(f"there are {len(ids)} document_ids for {counted(judged.data.n_documents, 'document')}")
        judged = replace(judged, document_ids=ids)
    return judged


def _columns(scores: object) -> dict[str, object]:
    """Return what gives the scores of each system, by its name; ArrayError when there is none, or a name repeats."""
    if isinstance(scores, Mapping):
        named = [(str(name), column) for name, column in scores.items()]
    elif (labels := column_labels(scores, "scores")) is not None:
        named = [(str(label), scores[label]) for label in labels]  # type: ignore[index]
    else:
        named = [(ONLY_SYSTEM, scores)]
    if not named:
        raise ArrayError("scores holds no system; give a column of scores, or several by name")
    if (repeated := first_repeated(name for name, _ in named)) is not None:
        raise ArrayError(f"two systems are named {quote(repeated)}; give each a name of its own")
    return dict(named)


def _checked(column: object, name: str, judged: JudgedColumns) -> Float64Array:
    """Return scores; ArrayError when there are others than one for each document, or some are no numbers."""
    what, n_documents = "scores" if name == ONLY_SYSTEM else f"scores of {name!r}", judged.data.n_documents
    array = array_of(column, what)
    if array.ndim == 2 and array.shape[1] != 1:
        raise ArrayError(f"{what} has several columns; give systems by name, as {{'a': scores[:, 0], ...}}")
    numbers = as_floats(cells_of(array, what), what)
    if len(numbers) != n_documents:
        raise ArrayError(f"{what} has {len(numbers)} entries for {counted(n_documents, 'document')}")
    if np.isnan(numbers).any():
        row = int(np.argmax(np.isnan(numbers)))
        raise ArrayError(f"entry {row} (from 0) of {what} is nan; every document needs a score")
    return numbers


class Evaluation(Mapping[str, Any]):
    """Measures of one system or several: `evaluation["ndcg@10"]` is the mean, of several systems the means by name.

    It is a mapping over the measures, and equal to a dict of the same content. None stands for a measure when no query
    counts. Intervals are drawn when they are asked for.
    """

    def __init__(self, result: EvaluationResult, resampling: Resampling, threads: int | None = None) -> None:
        self.result = result
        self._resampling = resampling
        self._threads = threads

    def __getitem__(self, measure: str) -> Any:
        if measure not in self.result.measures:
            raise KeyError(measure)
        return self._by_name([system.report.values[measure] for system in self.result.systems])

    def __iter__(self) -> Iterator[str]:
        return iter(self.result.measures)

    def __len__(self) -> int:
        return len(self.result.measures)

    def _by_name(self, values: Sequence[Any]) -> Any:
        """Return the value of the only system, or those of several by name."""
        return dict(zip(self.systems, values, strict=True)) if len(values) > 1 else values[0]

    @property
    def systems(self) -> tuple[str, ...]:
        """The names of the systems."""
        return tuple(system.name for system in self.result.systems)

    @property
    def query_ids(self) -> list[str]:
        """The ids of the queries, in the order of `per_query`."""
        return list(self.result.query_ids)

    @property
    def conventions(self) -> dict[str, Any]:
        """The conventions of all measures, as `lmart eval --json` has them."""
        found: dict[str, Any] = self.result.to_json()["conventions"]
        return found

    @property
    def per_query(self) -> dict[str, Any]:
        """By measure float64[n_queries], of several systems such arrays by name; nan where a query is left out."""
        systems = self.result.systems
        return {name: self._by_name([system.report.per_query[name] for system in systems]) for name in self}

    @property
    def groups(self) -> dict[str, dict[str, Any]]:
        """By group of queries, the measures over it alone."""
        return {
            group.name: {name: self._by_name([report.values[name] for report in group.reports]) for name in self}
            for group in self.result.groups
        }

    @cached_property
    def statistics(self) -> tuple[dict[str, Summary], ...]:
        """Of each system, by measure: mean, median, count, standard deviation and bootstrap interval."""
        return self._statistics(compared=False, all_pairs=False).summaries

    @property
    def intervals(self) -> dict[str, Any]:
        """By measure the bootstrap interval of the mean, of several systems by name."""
        return {name: self._by_name([summaries[name].interval for summaries in self.statistics]) for name in self}

    def compare(self, all_pairs: bool = False) -> Comparisons:
        """Return the comparison of each system with the first, or with `all_pairs` of each two, in each measure."""
        if len(self.systems) < 2:
            raise ValueError("a comparison needs two systems or more; give their scores by name")
        statistics = self._statistics(compared=True, all_pairs=all_pairs)
        return Comparisons(statistics.comparisons, self.result.query_ids)

    def _statistics(self, compared: bool, all_pairs: bool) -> SystemStatistics:
        with safe_interrupts(), WorkerPool(threads_to_use(self._threads)) as pool:
            return statistics_of(self.result, self._resampling, pool, compared, all_pairs)

    def to_json(self) -> dict[str, Any]:
        """Return what `lmart eval --json` prints, as plain values."""
        content = self.result.to_json()
        self._statistics(compared=True, all_pairs=False).add_to(content, self.result)
        return content

    def to_dataframe(self, per_query: bool = False) -> Any:
        """Return a DataFrame of pandas: a row for each system and measure, or for each query.

        per_query : a row for each query and system, with its measures, in place of means
        """
        pandas = load_package("pandas", "a DataFrame", ArrayError)
        if not per_query:
            columns = ["system", "measure", "mean", "low", "high", "median", "std", "queries"]
            return pandas.DataFrame(self._rows(), columns=columns)
        parts = [
            pandas.DataFrame({"qid": self.query_ids, "system": system.name, **system.report.per_query})
            for system in self.result.systems
        ]
        return pandas.concat(parts, ignore_index=True)

    def _rows(self) -> Iterator[tuple[Any, ...]]:
        for system, summaries in zip(self.systems, self.statistics, strict=True):
            for name, summary in summaries.items():
                low, high = summary.interval or (None, None)
                yield system, name, summary.mean, low, high, summary.median, summary.std, summary.count

    def to_latex(self, digits: int = 4) -> str:
        """Return a table for LaTeX with booktabs: a line for each system, the best mean of a measure in bold.

        digits : behind the point
        """
        header, rows, best = self._table(digits)
        cells = [
            [_latex(cell) if (i, j) not in best else rf"\textbf{{{_latex(cell)}}}" for j, cell in enumerate(row)]
            for i, row in enumerate(rows)
        ]
        return _latex_table(list(map(_latex, header)), cells)

    def _repr_html_(self) -> str:
        header, rows, best = self._table(4)
        cells = [
            [text(cell) if (i, j) not in best else f"<b>{text(cell)}</b>" for j, cell in enumerate(row)]
            for i, row in enumerate(rows)
        ]
        queries = counted(self.result.systems[0].report.n_queries, "query")
        return _html_table(header, cells, f"Means over {queries}")

    def __repr__(self) -> str:
        header, rows, _ = self._table(6)
        return _text_table(header, rows)

    def _table(self, digits: int) -> tuple[list[str], list[list[str]], set[tuple[int, int]]]:
        """Return header and rows of a table with a line for each system, and the places of the best means."""
        means = [[system.report.values[name] for name in self] for system in self.result.systems]
        best = {(i, j + 1) for j, column in enumerate(zip(*means, strict=True)) for i in best_places(column)}
        cells = ([shown(value, f".{digits}f") for value in row] for row in means)
        return ["system", *self], [[name, *row] for name, row in zip(self.systems, cells, strict=True)], best


class Comparisons(Sequence[Comparison]):
    """Comparisons of systems, those of a measure together; each has difference, interval and p values as attributes."""

    def __init__(self, comparisons: Iterable[Comparison], query_ids: Sequence[str]) -> None:
        self._comparisons = tuple(comparisons)
        self._query_ids = query_ids

    def __getitem__(self, place: Any) -> Any:
        return self._comparisons[place]

    def __len__(self) -> int:
        return len(self._comparisons)

    def to_json(self) -> list[dict[str, Any]]:
        """Return them as `lmart eval --json` does, as plain values."""
        return [comparison.to_json(self._query_ids) for comparison in self._comparisons]

    def to_dataframe(self) -> Any:
        """Return a DataFrame of pandas, a row for each comparison."""
        pandas = load_package("pandas", "a DataFrame", ArrayError)
        rows = []
        for row in self.to_json():
            low, high = row.pop("interval") or (None, None)
            del row["gained"], row["lost"]
            rows.append(row | {"low": low, "high": high})
        return pandas.DataFrame(rows)

    def to_latex(self, digits: int = 4) -> str:
        """Return a table for LaTeX with booktabs.

        digits : of differences, behind the point
        """
        header, rows = self._table(digits)
        return _latex_table(list(map(_latex, header)), [list(map(_latex, row)) for row in rows])

    def _repr_html_(self) -> str:
        header, rows = self._table(4)
        return _html_table(header, [list(map(text, row)) for row in rows], "Differences of the means, query by query")

    def __repr__(self) -> str:
        return _text_table(*self._table(6))

    def _table(self, digits: int) -> tuple[list[str], list[list[str]]]:
        header = ["measure", "system", "baseline", "difference", "interval", "win/tie/loss", "p rand"]
        measures = [comparison.measure for comparison in self._comparisons]
        is_adjusted = len(set(measures)) < len(measures)  # a single comparison of a measure needs no adjusted p
        rows = []
        for comparison in self._comparisons:
            test = comparison.randomization
            rows.append(
                [
                    comparison.measure,
                    comparison.system,
                    comparison.baseline,
                    shown(comparison.difference, f"+.{digits}f"),
                    _interval(comparison.interval, digits),
                    f"{comparison.wins}/{comparison.ties}/{comparison.losses}",
                    shown(None if test is None else test.p, ".4g"),
                    *([shown(comparison.p_holm, ".4g")] if is_adjusted else []),
                    shown(comparison.p_t, ".4g"),
                ]
            )
        return [*header, *(["p holm"] if is_adjusted else []), "p t"], rows


def _interval(ends: Interval | None, digits: int) -> str:
    return "n/a" if ends is None else "..".join(f"{end:+.{digits}f}" for end in ends)


def _text_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table with columns of equal width, texts to the left and numbers to the right."""
    rows = [[visible(cell) for cell in row] for row in (header, *rows)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows)
    return "\n".join(line.rstrip() for line in lines)


def _html_table(header: Sequence[str], rows: Sequence[Sequence[str]], caption: str) -> str:
    """Return a table of cells that are HTML."""
    head = "".join(f"<th>{text(cell)}</th>" for cell in header)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><caption>{text(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


_LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
_LATEX |= {sign: f"\\{sign}" for sign in "&%$#_{}"}


def _latex(cell: str) -> str:
    return "".join(_LATEX.get(sign, sign) for sign in visible(cell))


def _latex_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table of cells that are LaTeX."""
    lines = [" & ".join(row) + r" \\" for row in (header, *rows)]
    columns = "l" + "r" * (len(header) - 1)
    parts = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", lines[0], r"\midrule", *lines[1:], r"\bottomrule"]
    return "\n".join([*parts, r"\end{tabular}", ""])
