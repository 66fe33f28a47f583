"""Results of an evaluation: the measures of queries, their means, and those of several systems side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from lmart.array_types import BoolArray, Float64Array, Int64Array
from lmart.errors import DataError
from lmart.measures.conventions import Conventions
from lmart.measures.judgments import query_sums
from lmart.measures.kinds import kind_named
from lmart.measures.measure import Measure


@dataclass(frozen=True)
class EvaluationReport:
    """The measures of one ranking.

    values          : mean over the queries by str(measure), None when no query counts
    per_query       : float64[n_queries] by str(measure), nan where the query is skipped
    n_empty_queries : queries without a relevant document
    grade_scales    : L of each measure of err by str(measure), whose stopping probability is (2^label - 1) / 2^L
    grade_scale     : L of the first of them, or what it would be
    """

    values: dict[str, float | None]
    per_query: dict[str, Float64Array]
    n_queries: int
    n_documents: int
    n_empty_queries: int
    grade_scale: int
    conventions: Conventions
    grade_scales: dict[str, int] = field(default_factory=dict)

    @property
    def stopping(self) -> str:
        """How likely a reader of err stops at a document, as a formula; with one of each measure when L differs."""
        if len(set(self.grade_scales.values())) < 2:
            return f"(2^label - 1) / 2^{self.grade_scale}"
        return ", ".join(f"(2^label - 1) / 2^{scale} in {name}" for name, scale in self.grade_scales.items())

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain JSON values, without the queries one by one."""
        return {
            "queries": self.n_queries,
            "documents": self.n_documents,
            "empty_queries": self.n_empty_queries,
            "conventions": self.conventions.to_json() | {"err": self.stopping},
            "metrics": dict(self.values),
        }


class ScaledWeights(NamedTuple):
    """Weights of queries, scaled by a power of two to at most 1.

    unit : what a weight of 1 is then
    """

    per_query: Float64Array
    unit: float


@dataclass(frozen=True, eq=False)
class MeasuredQueries:
    """What the measures of a ranking are in each query: all that their means depend on.

    values     : float64[n_queries] by str(measure), nan where the query is skipped
    unweighted : bool[n_queries] by str(measure), queries whose value enters the mean with the weight 1; of measures
                 that have such queries
    sizes      : int64[n_queries], documents
    is_empty   : bool[n_queries], whether no document is relevant
    too_large  : by str(measure), for those that are too large for a number in some query: the largest label of the
                 first of these queries
    """

    values: dict[str, Float64Array]
    unweighted: dict[str, BoolArray]
    sizes: Int64Array
    is_empty: BoolArray
    too_large: dict[str, float]

    def taken(self, queries: Int64Array) -> MeasuredQueries:
        """Return the queries at these places, int64."""
        return MeasuredQueries(
            {name: values[queries] for name, values in self.values.items()},
            {name: unweighted[queries] for name, unweighted in self.unweighted.items()},
            self.sizes[queries],
            self.is_empty[queries],
            self.too_large,
        )

    def report(self, measures: Sequence[Measure], weights: ScaledWeights | None, scale: int) -> EvaluationReport:
        """Return the means; DataError when a DCG is too large for a number."""
        conventions, means = measures[0].conventions, {}
        for measure in measures:
            name = str(measure)
            if name in self.too_large:
                raise DataError(
                    f"{name} is too large for a number: the gain {conventions.gain} of label "
                    f"{self.too_large[name]:g} is too large; measure ndcg, or use --gain linear"
                )
            mean = weighted_mean(self.values[name], weights, self.unweighted.get(name))
            means[name] = mean if mean is None or not measure.kind.is_geometric else exponential(mean)
        scales = label_scales(measures, scale)
        return EvaluationReport(
            means,
            self.values,
            len(self.sizes),
            int(self.sizes.sum()),
            int(np.count_nonzero(self.is_empty)),
            next(iter(scales.values()), scale),
            conventions,
            scales,
        )


def joined_queries(parts: Sequence[MeasuredQueries]) -> MeasuredQueries:
    """Return the queries of all parts, one part after the other."""
    first = parts[0]
    too_large: dict[str, float] = {}
    for part in reversed(parts):
        too_large |= part.too_large
    return MeasuredQueries(
        {name: np.concatenate([part.values[name] for part in parts]) for name in first.values},
        {name: np.concatenate([part.unweighted[name] for part in parts]) for name in first.unweighted},
        np.concatenate([part.sizes for part in parts]),
        np.concatenate([part.is_empty for part in parts]),
        too_large,
    )


def label_scales(measures: Sequence[Measure], scale: int) -> dict[str, int]:
    """Return L of each measure of err, by str(measure)."""
    return {str(measure): measure.largest_label or scale for measure in measures if measure.kind.uses_label_scale}


def weighted_mean(
    values: Float64Array, weights: ScaledWeights | None, unweighted: BoolArray | None = None
) -> float | None:
    """Return the weighted mean over the queries that count, the same in any order of the queries; None without any.

    unweighted : bool[n_queries], queries whose value enters the sum with the weight 1; None: none
    """
    counts = ~np.isnan(values)
    own = np.ones(len(values)) if weights is None else weights.per_query
    total = math.fsum(own[counts].tolist())
    if total == 0:
        return None
    if weights is not None and unweighted is not None:
        own = np.where(unweighted, weights.unit, own)
    products = values[counts] if weights is None else values[counts] * own[counts]
    try:
        return math.fsum(products.tolist()) / total
    except OverflowError:  # of dcg only; a power of two changes no digit
        return math.fsum(np.ldexp(products, -64).tolist()) / total * 2.0**64


LN2 = 0.6931471805599453
LEAST_OF_GEOMETRIC_MEANS = 0.00001
"""What a value counts at least in a geometric mean, as in trec_eval."""


def is_geometric(name: str) -> bool:
    """Return whether the mean of a measure is geometric, so that values of queries are logarithms."""
    kind = kind_named(name.partition("@")[0].partition("(")[0])
    return kind is not None and kind.is_geometric


def logarithms_note(measures: Sequence[str]) -> str:
    """Return a sentence on measures whose differences are logarithms, with a blank before it; '' without any."""
    names = [name for name in measures if is_geometric(name)]
    return f" A difference in {' or '.join(names)} is the logarithm of a ratio." if names else ""


def logarithms(values: Float64Array) -> Float64Array:
    """Return the natural logarithms of values from 0 to 1, nan of nan, with the same digits on any machine."""
    from lmart.kernels.exact.exact_math import log2_of_one_plus

    found = np.maximum(values, LEAST_OF_GEOMETRIC_MEANS)
    counts = ~np.isnan(found)
    found[counts] = [-log2_of_one_plus(1.0 / value - 1.0) * LN2 for value in found[counts].tolist()]
    return found


def exponential(logarithm: float) -> float:
    """Return the number that has this natural logarithm, at most 0, with the same digits on any machine."""
    from lmart.kernels.exact.exact_math import exp_minus

    return float(exp_minus(-min(logarithm, 0.0)))


def scaled_weights(weights: Float64Array, query_offsets: Int64Array) -> ScaledWeights:
    """Return a weight for each query, scaled by a power of two to at most 1, from those of queries or documents.

    DataError when there are neither as many as queries nor as many as documents, or one is negative or not finite.
    """
    n_queries, n_documents = len(query_offsets) - 1, int(query_offsets[-1])
    if len(weights) not in (n_queries, n_documents):
        raise DataError(
            f"there are {len(weights)} weights, but {n_queries} queries and {n_documents} documents; "
            "give one weight a query or one a document"
        )
    bad = ~(np.isfinite(weights) & (weights >= 0))
    if bad.any():
        i = int(np.argmax(bad))
        raise DataError(f"weight {i + 1} is {float(weights[i])!r}; use finite numbers from 0 up")
    exponent = min(1023, -int(np.frexp(weights.max(initial=0.0))[1]))  # 2.0**1024 is inf
    scaled, unit = np.ldexp(weights, exponent), float(np.ldexp(1.0, exponent))
    if len(weights) != n_queries:
        scaled = query_sums(scaled, query_offsets) / np.maximum(np.diff(query_offsets), 1)
    return ScaledWeights(scaled, unit)


SystemKind: TypeAlias = Literal["model", "scores", "run"]
DataKind: TypeAlias = Literal["data", "qrels"]


@dataclass(frozen=True)
class SystemEvaluation:
    """One system and its measures.

    name   : what tables, files and messages call it, distinct among the systems measured together
    kind   : a model, a file of scores, or a TREC run
    report : its measures; `report.per_query` has the queries of the result, in that order
    counts : what else is known of it, by name: of a run how many documents and queries it has
    """

    name: str
    kind: SystemKind
    path: str
    report: EvaluationReport
    counts: dict[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the system as plain JSON values, without the queries one by one."""
        own = {"name": self.name, "kind": self.kind, "path": self.path}
        return own | self.counts | {"metrics": dict(self.report.values)}


@dataclass(frozen=True)
class QueryGroup:
    """A group of queries, and the measures of each system over them alone.

    queries : int64, places of its queries in `EvaluationResult.query_ids`, ascending
    """

    name: str
    queries: Int64Array
    reports: tuple[EvaluationReport, ...]


@dataclass(frozen=True)
class EvaluationResult:
    """The measures of one system or several over the same queries.

    query_ids    : n_queries texts; the queries of every `per_query` array, in this order
    systems      : at least one, in the order of the command line; all with the same measures and conventions
    data         : the files they were measured on, as given
    data_kind    : judged documents, or TREC qrels
    weights      : float64[n_queries], what each query counts in the means; None: all 1
    weights_per  : 'query' or 'row', what had a weight each in their file; None: no weights
    groups       : in the order of first appearance in the data; empty without groups
    """

    query_ids: Sequence[str]
    systems: tuple[SystemEvaluation, ...]
    data: tuple[str, ...]
    data_kind: DataKind = "data"
    weights: Float64Array | None = None
    weights_per: str | None = None
    groups: tuple[QueryGroup, ...] = ()

    @property
    def measures(self) -> tuple[str, ...]:
        """The names of the measures, in order."""
        return tuple(self.systems[0].report.values)

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain JSON values, without the queries one by one.

        The measures of a single system also stand at the top, as "metrics".
        """
        content = self.systems[0].report.to_json()
        if self.weights_per is not None:
            content["conventions"]["weights"] = self.weights_per
        if len(self.systems) > 1:
            del content["metrics"]
        content["data"] = list(self.data)
        content["systems"] = [system.to_json() for system in self.systems]
        if self.groups:
            content["groups"] = [self._group_to_json(group) for group in self.groups]
        return content

    def _group_to_json(self, group: QueryGroup) -> dict[str, Any]:
        named = zip(self.systems, group.reports, strict=True)
        return {
            "group": group.name,
            "queries": group.reports[0].n_queries,
            "empty_queries": group.reports[0].n_empty_queries,
            "systems": [{"name": system.name, "metrics": dict(report.values)} for system, report in named],
        }


def distinct_names(paths: Sequence[str]) -> list[str]:
    """Return a name for each file: its base name, with as many folders before it as make it distinct.

    A file that is given twice gets a second name by `numbered`.

    >>> distinct_names(["a/run.txt", "b/run.txt", "c/scores.txt", "c/scores.txt"])
    ['a/run.txt', 'b/run.txt', 'scores.txt', 'scores.txt#2']
    """
    parts = [path.rstrip("/").split("/") for path in paths]
    depths = [1] * len(paths)
    while True:
        names = ["/".join(folders[-depth:]) for folders, depth in zip(parts, depths, strict=True)]
        again = False
        for i, name in enumerate(names):
            others = [j for j, other in enumerate(names) if other == name and paths[j] != paths[i]]
            if others and depths[i] < len(parts[i]):
                depths[i] += 1
                again = True
        if not again:
            break
    return numbered(names)


def numbered(names: Sequence[str]) -> list[str]:
    """Return names of which no two are the same: the second NAME is NAME#2, or NAME#3 where that is taken.

    >>> numbered(["a", "a", "a#2", "a"])
    ['a', 'a#3', 'a#2', 'a#4']
    """
    taken = set(names)
    distinct: list[str] = []
    for name in names:
        own, number = name, 1
        while own in (taken if number > 1 else distinct):
            number += 1
            own = f"{name}#{number}"
        taken.add(own)
        distinct.append(own)
    return distinct


def best_places(values: Sequence[float | None]) -> list[int]:
    """Return the places of the largest value, from 0; none when all values are the same."""
    defined = {value for value in values if value is not None}
    return [] if len(defined) < 2 else [place for place, value in enumerate(values) if value == max(defined)]


def exact_sum(values: Sequence[float]) -> list[float]:
    """Return a few numbers whose sum is exactly that of the values, the largest first.

    `math.fsum` of such numbers, of several groups, is that of all values. Source: Shewchuk 1997, as `math.fsum` has it.
    OverflowError when the sum is too large for a number.
    """
    parts: list[float] = []
    while rest := math.fsum([*values, *(-part for part in parts)]):
        parts.append(rest)
    return parts
