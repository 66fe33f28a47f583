"""Measuring TREC runs against qrels, or against the labels of data whose documents have ids."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lmart.array_types import Int64Array
from lmart.cli.eval_systems import EvalJob, find_groups, read_judged, weights_of, with_path
from lmart.data.named_documents import JudgedDocuments, Run, judgments_of
from lmart.errors import DataError, counted, input_name, quote
from lmart.formats.metadata_files import Weights
from lmart.formats.results.trec import read_qrels, read_run
from lmart.measures.evaluation import Measurement, RankedSystem, warn_of_large_labels
from lmart.measures.judgments import query_sums
from lmart.measures.rankings import AlignedRun, align_run
from lmart.measures.results import EvaluationReport, EvaluationResult, distinct_names


def evaluate_runs(job: EvalJob) -> EvaluationResult:
    """Read the judgments and, one by one, the runs; return the measures of each, over all judged queries."""
    inputs, weights = job.inputs, None
    if inputs.qrels is None:
        judgments, weights = _judgments_of_data(job)
    else:
        judgments = read_qrels(inputs.qrels)
    groups = find_groups(job, judgments.query_ids, judgments.source)
    labels = np.maximum(judgments.labels, 0.0)
    per_query = None if weights is None else weights.per_query
    warn = job.console.warning
    try:
        measurement = Measurement.over(job.measures, labels, judgments.rows, {}, job.pool, per_query, warn, groups)
    except DataError as fault:
        raise with_path(fault, judgments.source) from None
    counting = np.full(len(judgments.query_ids), job.measures[0].conventions.missing == "zero")
    systems = []
    for name, given in zip(distinct_names([one.path for one in inputs.systems]), inputs.systems, strict=True):
        run = read_run(given.path)
        aligned = align_run(judgments, run, job.measures[0].conventions.ties == "docid")
        _tell(aligned, run, judgments, job)
        counting |= aligned.found
        try:
            measured = measurement.evaluator(aligned.documents).measure(aligned.scores)
        except DataError as fault:
            raise with_path(fault, judgments.source) from None
        systems.append(RankedSystem(name, "run", given.path, measured, _counts(aligned)))
    try:
        result = measurement.result(
            systems,
            judgments.query_ids,
            inputs.data if inputs.qrels is None else (inputs.qrels,),
            None if weights is None else weights.given_per,
            "data" if inputs.qrels is None else "qrels",
        )
    except DataError as fault:
        raise with_path(fault, judgments.source) from None
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
        systems=tuple(replace(one, report=counted_in(one.report, every)) for one in result.systems),
        groups=tuple(
            replace(group, reports=tuple(counted_in(report, group.queries) for report in group.reports))
            for group in result.groups
        ),
    )


def _judgments_of_data(job: EvalJob) -> tuple[JudgedDocuments, Weights | None]:
    """Return the labels of the data by document id, and the weights of its queries."""
    dataset = read_judged(job, [], keep_document_ids=True)
    return judgments_of(dataset), weights_of(job, dataset)


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
        first = next(one for one in run.query_ids if one not in judged)
        queries = counted(aligned.n_unknown, "query", "queries")
        others = "" if aligned.n_unknown == 1 else ", ..."
        job.console.notice(
            f"{called}: {queries} of the run not judged in {source} and left out: {quote(first)}{others}"
        )
    if aligned.n_missing:
        ranked = set(run.query_ids)
        first = next(one for one in judgments.query_ids if one not in ranked)
        queries = counted(aligned.n_missing, "judged query", "judged queries")
        skipped = job.measures[0].conventions.missing == "skip"
        how = "left out of its means" if skipped else "counted as if nothing were found"
        others = "" if aligned.n_missing == 1 else ", ..."
        job.console.notice(f"{called}: {queries} not in the run, {how}: {quote(first)}{others}")
