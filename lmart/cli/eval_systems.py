"""Measuring models, files of scores and TREC runs over one set of judged documents, which is read once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np

from lmart.array_types import Float64Array, Int64Array
from lmart.cli.eval_request import EvalInputs, GivenSystem
from lmart.cli.terminal.console import Console
from lmart.data.dataset import DataSize, RankingDataset, SparseRows, TableColumns
from lmart.data.named_documents import JudgedDocuments, Run, document_names, judgments_of
from lmart.errors import DataError, ModelError, counted, input_name, listed, quote
from lmart.formats.documents.feature_table import FeatureTable
from lmart.formats.documents.reading import for_models, read_dataset
from lmart.formats.metadata_files import Weights, read_weights
from lmart.formats.models.model_files import read_model
from lmart.formats.query_groups import NO_GROUP, grouped_queries, read_query_groups
from lmart.formats.read_options import ReadOptions
from lmart.formats.results.scores import read_scores
from lmart.formats.results.trec import read_qrels, read_run
from lmart.measures import Measure
from lmart.measures.evaluation import (
    Measurement,
    RankedSystem,
    warn_of_large_labels,
    warn_of_single_documents,
    with_gain_of,
)
from lmart.measures.judgments import Judgments, docid_order, query_sums
from lmart.measures.rankings import AlignedRun, align_run
from lmart.measures.results import (
    EvaluationReport,
    EvaluationResult,
    MeasuredQueries,
    SystemKind,
    distinct_names,
    numbered,
)
from lmart.scoring.ensemble import Ensemble
from lmart.scoring.feature_matching import FeatureMatcher, match_dataset
from lmart.scoring.scorer import ModelScores
from lmart.threads import WorkerPool

if TYPE_CHECKING:
    from lmart.distributed.evaluation import QueryWeights


@dataclass(frozen=True)
class EvalJob:
    """What one run of eval has to do.

    gain_given_by : the option that gives the gain, so that no model's takes its place; None: there is none
    """

    inputs: EvalInputs
    measures: tuple[Measure, ...]
    gain_given_by: str | None
    read_options: ReadOptions
    pool: WorkerPool
    console: Console


QueriesOf: TypeAlias = Callable[[int, GivenSystem, Callable[[str], None]], MeasuredQueries]
"""Gets a system's number, from 0, the system, and what warns; returns the queries as the system ranks them."""


@dataclass(frozen=True)
class JudgedData:
    """The data over which systems are measured, whether this process has read it or workers have.

    labels  : float64[n], of all documents, or only those that are above all labels before them
    weights : returns the weights of queries; None of them: each query counts the same
    prepare : gets how queries are measured, and returns what measures them for each system
    """

    source: str
    files: tuple[str, ...]
    size: DataSize
    query_ids: Sequence[str]
    labels: Float64Array
    rows: Int64Array | None
    weights: Callable[[], Weights | QueryWeights | None]
    prepare: Callable[[Measurement], QueriesOf]


def evaluate_data(job: EvalJob) -> EvaluationResult:
    """Read the data, and return the measures of each model and file of scores."""
    job, models = read_models(job)
    inputs = job.inputs
    by_document = job.measures[0].conventions.ties == "docid"
    judged = ScoredData(job, models, keep_document_ids=by_document)
    dataset = judged.dataset
    labels, offsets = dataset.labels, dataset.query_offsets

    def prepare(measurement: Measurement) -> QueriesOf:
        """Return what scores the documents by a system and measures the queries."""
        ties = docid_order(document_names(dataset.document_ids, offsets), offsets) if by_document else None
        evaluator = measurement.evaluator(Judgments(labels, offsets, tie_order=ties))

        def queries_of(number: int, system: GivenSystem, tell: Callable[[str], None]) -> MeasuredQueries:
            """Return the queries as a system ranks them."""
            if system.kind == "model":
                return evaluator.measure(judged.scores(system.path, tell))
            return evaluator.measure(scores_of_file(system.path, dataset))

        return queries_of

    data = JudgedData(
        dataset.source,
        inputs.data,
        dataset,
        dataset.query_ids,
        labels,
        dataset.input_rows,
        lambda: weights_of(job, dataset),
        prepare,
    )
    return evaluate_systems(job, models, data)


def read_models(job: EvalJob) -> tuple[EvalJob, dict[str, Ensemble]]:
    """Read the models, by file; return them after the job, whose measures have the gain of the models."""
    notice = job.console.notice
    models = {
        system.path: read_model(system.path, tell=notice) for system in job.inputs.systems if system.kind == "model"
    }
    return replace(job, measures=with_gain_of(models, job.measures, job.gain_given_by, notice)), models


def evaluate_systems(job: EvalJob, models: dict[str, Ensemble], data: JudgedData) -> EvaluationResult:
    """Return the measures of each model and file of scores over the same data."""
    inputs, console, measures = job.inputs, job.console, job.measures
    warn_of_single_documents(data.size, console.warning)
    weights = data.weights()
    per_query = None if weights is None else weights.per_query
    groups = find_groups(job, data.query_ids, data.source)
    names = system_names(inputs.systems)
    with naming(data.source):
        measurement = Measurement.over(
            measures, data.labels, data.rows, models, job.pool, per_query, console.warning, groups
        )
        queries_of = data.prepare(measurement)
        systems = (
            RankedSystem(
                name,
                cast(SystemKind, system.kind),
                system.path,
                queries_of(number, system, _telling(system.path if len(models) > 1 else "", console)),
                {},
            )
            for number, (name, system) in enumerate(zip(names, inputs.systems, strict=True))
        )
        weights_per = None if weights is None else weights.given_per
        result = measurement.result(systems, data.query_ids, data.files, weights_per)
    warn_of_large_labels(measures, data.labels, console.warning)
    return result


def system_names(systems: Sequence[GivenSystem]) -> list[str]:
    """Return what to call each system: the name that it was given, else one made of its file; all distinct."""
    of_files = iter(distinct_names([system.path for system in systems if system.name is None]))
    return numbered([next(of_files) if system.name is None else system.name for system in systems])


def _telling(model: str, console: Console) -> Callable[[str], None]:
    """Return the function that warns, naming the model's file where there are several (else it is '')."""
    return lambda text: console.warning(f"{text} (model {model})" if model else text)


def judged_options(job: EvalJob, models: Sequence[Ensemble], keep_document_ids: bool) -> ReadOptions:
    """Return how the data that is measured is read.

    Without models no column of a table is parsed.
    """
    read_options = replace(job.read_options, keep_document_ids=keep_document_ids)
    if any(measure.kind.uses_gain for measure in job.measures):
        read_options = replace(read_options, gain=job.measures[0].conventions.gain)
    return for_models(read_options, models)


class ScoredData:
    """The data that is measured, scored by each model while it is read, so that values of features are not kept.

    models : by file
    """

    def __init__(self, job: EvalJob, models: dict[str, Ensemble], keep_document_ids: bool) -> None:
        """Read the data."""
        self._strict = job.inputs.strict
        self._scorers = {path: ModelScores(model, job.pool) for path, model in models.items()}
        self._faults: dict[str, ModelError] = {}
        # Whether names of tables go by their numbers depends on all names, and a later table may have more.
        nameless = any(model.feature_names is None for model in models.values())
        self._needs_all_names = nameless and len(job.inputs.data) > 1
        options = judged_options(job, list(models.values()), keep_document_ids)
        options = options.telling(job.console.notice, job.console.warning, job.console.reading())
        self.dataset = read_dataset(job.inputs.data, options, job.pool, self._take)
        if self._needs_all_names and self.dataset.feature_names is not None:
            self._add([self.dataset.features], self.dataset.feature_ids, self.dataset.feature_names)

    def _take(self, parts: Sequence[SparseRows], table: FeatureTable) -> bool:
        """Score the next rows, unless that has to wait for the rest; return whether it was done."""
        if self._needs_all_names and table.names is not None:
            return False
        self._add(parts, table.ids, table.names)
        return True

    def _add(self, parts: Sequence[SparseRows], ids: Int64Array, names: Sequence[str] | None) -> None:
        for path, scorer in self._scorers.items():
            try:
                scorer.add(parts, ids, names)
            except ModelError as fault:  # what is wrong with the data is told before
                self._faults.setdefault(path, fault)

    def scores(self, path: str, tell: Callable[[str], None]) -> Float64Array:
        """Return the scores of a model, with warnings of features that only one of data and model has."""
        scorer, dataset = self._scorers[path], self.dataset
        matched(scorer.model, dataset, dataset.source, tell, self._strict)
        if path in self._faults:
            raise self._faults[path]
        scores = scorer.finish(dataset.source, dataset.table_features, self._strict)
        for text in scorer.matcher.unseen_values():
            tell(f"{input_name(dataset.source)}: {text}")
        return scores if dataset.input_rows is None else scores[dataset.input_rows]


def weights_of(job: EvalJob, dataset: RankingDataset) -> Weights | None:
    """Read one weight a query, or one a row; None when there is no file of weights."""
    path = job.inputs.weights
    return None if path is None else read_weights(path, dataset.query_offsets, dataset.input_rows)


def find_groups(job: EvalJob, query_ids: Sequence[str], source: str) -> dict[str, Int64Array]:
    """Return the places of the queries of each group; empty without a file of groups.

    DataError when no query of the data has a group.
    """
    path = job.inputs.groups
    if path is None:
        return {}
    group_of_query = read_query_groups(path)
    grouped = set(query_ids) & group_of_query.keys()
    if not grouped:
        ids = f"it has {quote(next(iter(group_of_query)))}, {input_name(source)} has {quote(query_ids[0])}"
        raise DataError(f"no query of the data has a group: {ids}; do both name the queries alike?", path)
    if others := len(group_of_query) - len(grouped):
        job.console.notice(f"{input_name(path)}: {counted(others, 'query')} not in {input_name(source)}")
    if without := [query_id for query_id in query_ids if query_id not in group_of_query]:
        some = counted(len(without), "query")
        what = f"{some} of {input_name(source)} without a group, {NO_GROUP}: {listed(without, 1)}"
        job.console.notice(f"{input_name(path)}: {what}")
    return grouped_queries(group_of_query, query_ids)


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Name a file in refusals that name none."""
    try:
        yield
    except DataError as fault:
        raise fault if fault.path is not None else DataError(fault.message, path, fault.line, fault.more) from None


def matched(
    ensemble: Ensemble, data: TableColumns, source: str, tell: Callable[[str], None], strict: bool
) -> FeatureMatcher:
    """Return the matcher of data to a model, with warnings of features that only one of both has.

    DataError when the data does not belong to the model.
    """
    matcher = match_dataset(ensemble, data)
    matcher.refuse(source, strict)
    matcher.refuse_numbers(source)
    for text in matcher.warnings(source):
        tell(text)
    return matcher


def scores_of_file(path: str, dataset: RankingDataset) -> Float64Array:
    """Read one score a row, and return them in the order of the data set."""
    scores = read_scores(path, dataset.n_documents, input_name(dataset.source))
    return scores if dataset.input_rows is None else scores[dataset.input_rows]


def evaluate_runs(job: EvalJob) -> EvaluationResult:
    """Read the judgments and, one by one, the runs; return the measures of each, over all judged queries."""
    inputs, weights = job.inputs, None
    if inputs.qrels is None:
        dataset = ScoredData(job, {}, keep_document_ids=True).dataset
        judgments, weights = judgments_of(dataset), weights_of(job, dataset)
    else:
        judgments = read_qrels(inputs.qrels)
    groups = find_groups(job, judgments.query_ids, judgments.source)
    labels = np.maximum(judgments.labels, 0.0)
    per_query = None if weights is None else weights.per_query
    warn = job.console.warning
    with naming(judgments.source):
        measurement = Measurement.over(job.measures, labels, judgments.rows, {}, job.pool, per_query, warn, groups)
    counting = np.full(len(judgments.query_ids), job.measures[0].conventions.missing == "zero")
    systems = []
    for name, system in zip(system_names(inputs.systems), inputs.systems, strict=True):
        run = read_run(system.path)
        aligned = align_run(judgments, run, job.measures[0].conventions.ties == "docid")
        _tell(aligned, run, judgments, job)
        counting |= aligned.found
        with naming(judgments.source):
            measured = measurement.evaluator(aligned.documents).measure(aligned.scores)
        systems.append(RankedSystem(name, "run", system.path, measured, _counts(aligned)))
    with naming(judgments.source):
        result = measurement.result(
            systems,
            judgments.query_ids,
            inputs.data if inputs.qrels is None else (inputs.qrels,),
            None if weights is None else weights.given_per,
            "data" if inputs.qrels is None else "qrels",
        )
    warn_of_large_labels(job.measures, labels, warn)
    n_judged = query_sums((judgments.labels >= 0).astype(np.float64), judgments.query_offsets)

    def counted_in(report: EvaluationReport, queries: Int64Array) -> EvaluationReport:
        """Return a report that counts queries of some run, and their judged documents: the same for every run."""
        counted = queries[counting[queries]]
        n_empty = int(np.count_nonzero(measured.is_empty[counted]))
        n_documents = int(n_judged[counted].sum())
        return replace(report, n_queries=len(counted), n_documents=n_documents, n_empty_queries=n_empty)

    every = np.arange(len(counting))
    return replace(
        result,
        systems=tuple(replace(system, report=counted_in(system.report, every)) for system in result.systems),
        groups=tuple(
            replace(group, reports=tuple(counted_in(report, group.queries) for report in group.reports))
            for group in result.groups
        ),
    )


def _counts(aligned: AlignedRun) -> dict[str, int]:
    """Return what there is to count in a run, by name."""
    judged, retrieved = aligned.documents.judged, aligned.documents.retrieved
    assert judged is not None and retrieved is not None
    return {
        "retrieved": int(np.count_nonzero(retrieved)),
        "unjudged": int(np.count_nonzero(retrieved & ~judged)),
        "missing_queries": aligned.n_missing,
        "unknown_queries": aligned.n_unknown,
    }


def _tell(aligned: AlignedRun, run: Run, judgments: JudgedDocuments, job: EvalJob) -> None:
    """Say which queries and documents only one of run and judgments has."""
    called, source = input_name(run.source), input_name(judgments.source)
    counts = _counts(aligned)
    if counts["retrieved"] == counts["unjudged"]:
        job.console.warning(f"{called}: no document of the run is judged in {source}; does it name documents alike?")
    if run.rises:
        what = "scores rise with the ranks, as distances do, but higher scores rank first"
        job.console.notice(f"{called}: {what}; change their sign if low ones are better")
    if aligned.n_unknown:
        judged = set(judgments.query_ids)
        first = next(query_id for query_id in run.query_ids if query_id not in judged)
        queries = counted(aligned.n_unknown, "query")
        others = "" if aligned.n_unknown == 1 else ", ..."
        job.console.notice(
            f"{called}: {queries} of the run not judged in {source} and left out: {quote(first)}{others}"
        )
    if aligned.n_missing:
        ranked = set(run.query_ids)
        first = next(query_id for query_id in judgments.query_ids if query_id not in ranked)
        queries = counted(aligned.n_missing, "judged query")
        skipped = job.measures[0].conventions.missing == "skip"
        how = "left out of its means" if skipped else "counted as if nothing were found"
        others = "" if aligned.n_missing == 1 else ", ..."
        job.console.notice(f"{called}: {queries} not in the run, {how}: {quote(first)}{others}")
