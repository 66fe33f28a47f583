"""What `lmart eval --dask` does: workers measure the queries of parts of the data, and this process takes the means."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, cast

from lmart.cli.cluster_files import as_given, one_for_each, without_grouping
from lmart.cli.eval_models import label_scale, matched, named_label_scale, with_gain_of
from lmart.cli.eval_systems import (
    EvalJob,
    as_groups,
    find_groups,
    grade_scale_of,
    judged_options,
    refuse_large_labels,
    telling_of,
    warn_of_single_documents,
    with_path,
)
from lmart.distributed.cluster import Cluster
from lmart.distributed.evaluated_parts import EvaluatedParts
from lmart.distributed.evaluation import MeasuredPart, PartFiles, PartPlan, measure_part
from lmart.distributed.joined_set import pass_on, warn_of_never_met
from lmart.distributed.parts import find_parts
from lmart.errors import DataError
from lmart.formats.models.model_files import read_model
from lmart.measures.measured_documents import Measurement
from lmart.measures.system_evaluation import EvaluationResult, SystemEvaluation, SystemKind, distinct_names
from lmart.scoring.ensemble import Ensemble
from lmart.scoring.scorer import Scorer
from lmart.streams import check_output


def evaluate_parts(job: EvalJob, cluster: Cluster, outputs: Sequence[str]) -> EvaluationResult:
    """Have the parts of the data measured on the workers, and return the measures of each system.

    job     : what is measured, and how
    cluster : whose workers read the data, files of scores and weights
    outputs : all that is written, which must be no file of these
    """
    inputs, console = job.inputs, job.console
    models = {one.path: read_model(one.path) for one in inputs.systems if one.kind == "model"}
    measures = with_gain_of(models, job.measures, job.is_gain_given, console)
    job = replace(job, measures=measures)
    files, names = find_files(job, cluster)
    for path in outputs:
        check_output(path, [one for own in files for one in (own.path, *own.scores, own.weights) if one is not None])
    parts = _measured(job, cluster, files, models)
    data = parts.data
    warn_of_single_documents(data, console)
    weights = parts.weights()
    groups = find_groups(job, parts.query_ids, data.source)
    scale = grade_scale_of(parts.labels, label_scale(models, measures, parts.labels, console))
    per_query = None if weights is None else weights.per_query
    measurement = Measurement(measures, job.pool, per_query, scale, tuple(groups.values()))
    systems, by_group = [], []
    try:
        refuse_large_labels(parts.labels, measures, parts.label_rows)
        parts.agree(scale, any(one.feature_names is None for one in models.values()))
        called = distinct_names([one.path for one in inputs.systems])
        for number, (name, given) in enumerate(zip(called, inputs.systems, strict=True)):
            if given.kind == "model":
                tell = telling_of(given.path if len(models) > 1 else "", console)
                matched(models[given.path], data, data.source, tell, inputs.strict)
            queries = parts.system(number)
            report = measurement.report(queries)
            by_group.append(measurement.by_group(queries))
            systems.append(SystemEvaluation(name, cast(SystemKind, given.kind), given.path, report))
    except DataError as fault:
        raise with_path(fault, data.source) from None
    return EvaluationResult(
        parts.query_ids,
        tuple(systems),
        names,
        "data",
        per_query,
        None if weights is None else weights.given_per,
        as_groups(groups, by_group),
    )


def find_files(job: EvalJob, cluster: Cluster) -> tuple[list[PartFiles], tuple[str, ...]]:
    """Return the parts of the data with the files beside them, and what the report calls the parts.

    job     : names them
    cluster : whose workers find them
    DataError when one is not there, or there are not as many files of scores or weights as parts.
    """
    inputs = job.inputs
    scores = [one.path for one in inputs.systems if one.kind == "scores"]
    weights = [] if inputs.weights is None else [inputs.weights]
    patterns = [*inputs.data, *scores, *weights]
    found = [[path for path, _ in own] for own in find_parts(cluster, patterns)]
    n = len(inputs.data)
    parts = [path for own in found[:n] for path in own]
    names = tuple(as_given(pattern, path) for pattern, own in zip(inputs.data, found[:n], strict=True) for path in own)
    beside = [
        one_for_each(option, pattern, own, "--data", parts)
        for option, pattern, own in zip(
            [*("--scores" for _ in scores), *("--weights" for _ in weights)], patterns[n:], found[n:], strict=True
        )
    ]
    of_scores, of_weights = beside[: len(scores)], beside[len(scores) :]
    return [
        PartFiles(path, tuple(own[i] for own in of_scores), of_weights[0][i] if of_weights else None)
        for i, path in enumerate(parts)
    ], names


def _measured(
    job: EvalJob, cluster: Cluster, files: Sequence[PartFiles], models: dict[str, Ensemble]
) -> EvaluatedParts:
    """Return the parts as workers measured them, and pass on what their readers told.

    job     : how they are measured, and where messages go
    cluster : whose workers measure
    files   : the parts
    models  : by file
    """
    prepared = {path: Scorer(model) for path, model in models.items()}
    scorers: Any = [prepared[one.path] for one in job.inputs.systems if one.kind == "model"]
    shared = cluster.share(scorers) if scorers else []
    by_document = job.measures[0].conventions.ties == "docid"
    options = judged_options(job, list(models.values()), keep_document_ids=by_document)
    kinds = tuple(one.kind for one in job.inputs.systems)
    plan = PartPlan(job.measures, options, kinds, named_label_scale(models, job.measures))

    def measure(calls: Sequence[tuple[PartFiles, PartPlan]]) -> Iterable[MeasuredPart]:
        """Measure parts by their plans on the workers."""
        return cluster.run_tasks(measure_part, [(cluster.run, own, how, shared) for own, how in calls])

    with job.console.progress(len(files), "files", plain=False) as shown, without_grouping():
        parts = EvaluatedParts(measure, files, plan, shown.update)
    telling = options.telling(job.console.notice, job.console.warning)
    pass_on(parts.data.found, telling)
    warn_of_never_met(parts.data, telling)
    return parts
