"""What `lmart eval --dask` does: workers measure the queries of parts of the data, and this process takes the means."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from lmart.cli.eval_request import GivenSystem
from lmart.cli.eval_systems import (
    EvalJob,
    JudgedData,
    QueriesOf,
    evaluate_systems,
    judged_options,
    matched,
    read_models,
)
from lmart.cli.options.shared import one_for_each
from lmart.distributed.cluster import Cluster
from lmart.distributed.evaluation import EvaluatedParts, MeasuredPart, PartInputs, PartPlan, measure_part
from lmart.distributed.reading import find_parts, pass_on, warn_of_never_met
from lmart.measures.evaluation import Measurement, label_scale
from lmart.measures.results import EvaluationResult, MeasuredQueries
from lmart.scoring.ensemble import Ensemble
from lmart.scoring.scorer import Scorer
from lmart.streams import check_output


def evaluate_parts(job: EvalJob, cluster: Cluster, outputs: Sequence[str]) -> EvaluationResult:
    """Have the parts of the data measured on the workers, and return the measures of each system."""
    job, models = read_models(job)
    inputs = job.inputs
    files, names = find_files(job, cluster)
    for path in outputs:
        check_output(path, [part for own in files for part in (own.path, *own.scores, own.weights) if part is not None])
    parts = _measured(job, cluster, files, models)

    def prepare(measurement: Measurement) -> QueriesOf:
        """Have parts measured again where that is needed, and return what joins those of a system."""
        parts.agree(measurement.scale, any(model.feature_names is None for model in models.values()))

        def queries_of(number: int, system: GivenSystem, tell: Callable[[str], None]) -> MeasuredQueries:
            """Return the queries of all parts as a system ranks them."""
            if system.kind == "model":
                matched(models[system.path], parts.data, parts.data.source, tell, inputs.strict)
            return parts.system(number)

        return queries_of

    data = JudgedData(
        parts.data.source,
        names,
        parts.data,
        parts.query_ids,
        parts.data.labels,
        parts.data.label_rows,
        parts.weights,
        prepare,
    )
    return evaluate_systems(job, models, data)


def find_files(job: EvalJob, cluster: Cluster) -> tuple[list[PartInputs], tuple[str, ...]]:
    """Return the files that workers read, part by part, and what the report calls the parts.

    DataError when one is not there, or there are not as many files of scores or weights as parts.
    """
    inputs = job.inputs
    scores = [system.path for system in inputs.systems if system.kind == "scores"]
    weights = [] if inputs.weights is None else [inputs.weights]
    patterns = [*inputs.data, *scores, *weights]
    found = [[path for path, _ in own] for own in find_parts(cluster, patterns)]
    n = len(inputs.data)
    parts = [path for own in found[:n] for path in own]
    names = tuple(_as_given(pattern, path) for pattern, own in zip(inputs.data, found[:n], strict=True) for path in own)
    one_each = [
        one_for_each(option, pattern, own, "--data", parts)
        for option, pattern, own in zip(
            [*("--scores" for _ in scores), *("--weights" for _ in weights)], patterns[n:], found[n:], strict=True
        )
    ]
    of_scores, of_weights = one_each[: len(scores)], one_each[len(scores) :]
    return [
        PartInputs(path, tuple(own[i] for own in of_scores), of_weights[0][i] if of_weights else None)
        for i, path in enumerate(parts)
    ], names


def _measured(
    job: EvalJob, cluster: Cluster, files: Sequence[PartInputs], models: dict[str, Ensemble]
) -> EvaluatedParts:
    """Return the parts as workers measured them, and pass on what their readers told."""
    prepared = {path: Scorer(model) for path, model in models.items()}
    scorers: Any = [prepared[system.path] for system in job.inputs.systems if system.kind == "model"]
    shared = cluster.share(scorers) if scorers else []
    by_document = job.measures[0].conventions.ties == "docid"
    options = judged_options(job, list(models.values()), keep_document_ids=by_document)
    kinds = tuple(system.kind for system in job.inputs.systems)
    plan = PartPlan(job.measures, options, kinds, label_scale(models, job.measures))

    def measure(calls: Sequence[tuple[PartInputs, PartPlan]]) -> Iterable[MeasuredPart]:
        """Measure parts by their plans on the workers."""
        return cluster.run_tasks(measure_part, [(cluster.run, own, how, shared) for own, how in calls])

    with job.console.progress(len(files), "files", plain=False) as shown:
        parts = EvaluatedParts(measure, files, plan, shown.update)
    telling = options.telling(job.console.notice, job.console.warning)
    pass_on(parts.data.found, telling)
    warn_of_never_met(parts.data, telling)
    return parts


def _as_given(pattern: str, path: str) -> str:
    """Return a file that matches a pattern as this process would have found it."""
    literal = ""
    for piece in pattern.split("/")[:-1]:
        if glob.has_magic(piece):
            break
        literal += piece + "/"
    absolute = os.path.join(os.path.abspath(literal), "")
    return literal + path.removeprefix(absolute) if path.startswith(absolute) else path
