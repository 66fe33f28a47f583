"""The measures of one system or several over the same queries, as one value: what eval prints, writes and compares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from lmart.array_types import Float64Array, Int64Array
from lmart.measures.measured_queries import EvaluationReport

SystemKind: TypeAlias = Literal["model", "scores", "run"]
DataKind: TypeAlias = Literal["data", "qrels"]


@dataclass(frozen=True)
class SystemEvaluation:
    """One system and its measures.

    name   : what tables, files and messages call it, distinct among the systems measured together
    kind   : a model, a file of scores, or a TREC run
    path   : its file, as given
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

    name    : of the group
    queries : int64, places of its queries in `EvaluationResult.query_ids`, ascending
    reports : one a system
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
        content["systems"] = [one.to_json() for one in self.systems]
        if self.groups:
            content["groups"] = [self._group_to_json(group) for group in self.groups]
        return content

    def _group_to_json(self, group: QueryGroup) -> dict[str, Any]:
        named = zip(self.systems, group.reports, strict=True)
        return {
            "group": group.name,
            "queries": group.reports[0].n_queries,
            "empty_queries": group.reports[0].n_empty_queries,
            "systems": [{"name": one.name, "metrics": dict(report.values)} for one, report in named],
        }


def distinct_names(paths: Sequence[str]) -> list[str]:
    """Return a name for each file: its base name, with as many folders before it as make it distinct.

    paths : of the files; of a file that is given twice the second name is made by `numbered`

    >>> distinct_names(["a/run.txt", "b/run.txt", "c/scores.txt", "c/scores.txt"])
    ['a/run.txt', 'b/run.txt', 'scores.txt', 'scores.txt#2']
    """
    parts = [path.rstrip("/").split("/") for path in paths]
    depths = [1] * len(paths)
    while True:
        names = ["/".join(one[-depth:]) for one, depth in zip(parts, depths, strict=True)]
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

    names : that may be the same

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
    """Return the places of the largest value, from 0; none when all values are the same.

    values : means of one measure, by system; None where it is not defined
    """
    known = {value for value in values if value is not None}
    return [] if len(known) < 2 else [place for place, value in enumerate(values) if value == max(known)]
