"""The stages of `lmart train` after its inputs are read: resolve and select settings, fit, write."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from lmart.cli.model_selection import SelectedSettings, select_settings, selection_data, trial_patience
from lmart.cli.options.shared import ClusterOptions
from lmart.cli.signals import flush_output, interrupt_behind
from lmart.cli.terminal import training
from lmart.cli.terminal.training_progress import RoundProgress
from lmart.cli.train_inputs import TrainingInputs, read_on_workers, read_together
from lmart.cli.train_request import TrainJob, TrainRequest
from lmart.cli.train_state import begin
from lmart.data.dataset import RankingDataset
from lmart.errors import LmartError, counted
from lmart.formats.models.lmart_json import model_to_json
from lmart.formats.results.scores import write_scores
from lmart.reports import narration, run_report
from lmart.reports.run_report import RunRecord
from lmart.scoring.ensemble import Ensemble
from lmart.settings.resolved import ResolvedSettings
from lmart.streams import AtomicOutput, AtomicOutputs
from lmart.threads import WorkerPool
from lmart.training import remarks
from lmart.training.boosting import BoostingRun, TrainingRun
from lmart.training.checkpoint import MODEL, REFIT
from lmart.training.cross_validation import LEVEL, CrossValidation
from lmart.training.refitting import settings_of_refit
from lmart.training.resolving import Trainable, resolve_for
from lmart.training.train_result import TrainResult
from lmart.training.tuning import best_of


@dataclass(frozen=True, eq=False)
class FittedModel:
    """The result of a run, the settings it was trained with, and whether there was anything to learn.

    differences : why one run of all rounds would not give what a run gave that went on from a model
    refitted    : the model of all data, with the same trees of each ranker; None: there is none
    """

    result: TrainResult
    settings: ResolvedSettings
    can_learn: bool
    differences: tuple[str, ...] = ()
    refitted: TrainResult | None = None

    @property
    def ensemble(self) -> Ensemble:
        """The model that is written."""
        return (self.refitted or self.result).ensemble


def train(job: TrainJob, read: Callable[[], TrainingInputs]) -> FittedModel:
    """Read the inputs, select settings, fit the model and write all outputs."""
    with job.record.timed("reading"):
        inputs = read()
        resolved = resolve_settings(job.request, inputs)
        # Before time is spent on training, as the files may not fit together.
        together = read_together(job.request, inputs, job.pool) if job.request.files.refit else None
    report_inputs(job, inputs, resolved)
    begin(job, inputs)
    selected = select(job, inputs, resolved)
    try:
        fitted = fit(job, inputs, selected.settings)
    except BaseException as fault:
        if interrupt_behind(fault) is not None and job.request.files.on_interrupt == "model":
            try:
                write_model_so_far(job, inputs, selected)
            except LmartError as failed:  # which would not be told beside the interrupt
                job.console.warning(str(failed))
        raise
    if together is not None:
        fitted = refit(job, together, fitted)
    n_features = inputs.train_set.n_features
    training.report(remarks.after_training(fitted.result, fitted.settings, n_features, fitted.can_learn), job.console)
    write_outputs(job, inputs, selected, fitted)
    return fitted


def train_on_workers(job: TrainJob, cluster: ClusterOptions) -> FittedModel:
    """Do what `train` does on a cluster, as often as --retries allows when workers are lost."""
    from lmart.distributed.cluster import WorkerLost, connected

    console = job.console
    retries, warnings = job.request.files.retries, len(console.warnings)
    left_out: list[str] = []  # workers that do not respond, which a scheduler lists all the same
    while True:
        try:
            with connected(cluster.address, cluster.dask_security, job.pool.threads, left_out) as workers:
                return train(job, partial(read_on_workers, job.request, workers, console))
        except WorkerLost as fault:
            if not retries:
                raise
            job = replace(job, record=RunRecord())
            del console.warnings[warnings:]  # which the next attempt gives again
            console.warning(f"{fault.what}; starting again without it ({counted(retries, 'retry')} left)")
            left_out.append(fault.silent)
            retries, warnings = retries - 1, warnings + 1


def resolve_settings(request: TrainRequest, inputs: TrainingInputs) -> ResolvedSettings:
    """Return the settings of the run, worked out from the data; DataError when a label is above the largest given."""
    if inputs.sharded is not None:
        from lmart.distributed.sharded_sets import resolve_sharded

        return resolve_sharded(request.settings, inputs.sharded)
    with_positions = inputs.metadata.positions is not None
    settings = request.settings
    if request.selection.tunes and inputs.validation_sets:  # every trial stops early
        settings = replace(settings, early_stop=trial_patience(request.selection, settings))
    return resolve_for(settings, inputs.local_train_set, inputs.validation_sets, with_positions)


def report_inputs(job: TrainJob, inputs: TrainingInputs, settings: ResolvedSettings) -> None:
    """Report what was read, and the settings that were resolved by it."""
    request, console, positions = job.request, job.console, inputs.metadata.positions
    console.notice(narration.describe(inputs.train_set, settings.sampling_rate))
    for text in [] if request.selection.tunes else narration.automatic_choices(request.settings, settings):
        console.notice(text)
    if settings.recorded.largest_label is not None:
        console.notice(f"err stops with probability {run_report.stopping_probability(settings)} in all of the data")
    if positions is not None and len(positions.names) == 1:
        console.warning("every row has the same position, so there is no bias to learn")


def select(job: TrainJob, inputs: TrainingInputs, settings: ResolvedSettings) -> SelectedSettings:
    """Return the settings as they are, or what --folds and --tune select."""
    request, sets = job.request, inputs.in_memory
    if sets is None:
        return SelectedSettings(settings)
    validation = (sets.validation_sets[0], inputs.validation_metadata[0]) if sets.validation_sets else None
    data = selection_data(sets.train_set, validation, inputs.folds, job.pool, inputs.metadata, job.state)
    in_detail = request.files.report is not None or request.selection.oof is not None
    with job.record.timed("choosing"):
        return select_settings(request.selection, settings, data, job.state, job.console, in_detail)


def fit(job: TrainJob, inputs: TrainingInputs, settings: ResolvedSettings) -> FittedModel:
    """Train the model with the selected settings, showing progress; collect its rounds in the record."""
    files, metadata, console = job.request.files, job.request.metadata_files, job.console
    run = _start(inputs, settings, job.pool)
    for text in narration.starting(run, metadata.init_scores is not None, files.valid):
        console.notice(text)
    for text in run.warnings:
        if text not in inputs.warnings:
            console.warning(text)
    training.report(remarks.before_training(run, inputs.train_set, metadata.weights is not None), console)
    start = run.start.validation[0] if run.start is not None and run.start.validation else None
    with console.progress(settings.trees) as progress:
        shown = RoundProgress(progress, settings, files.valid, start)
        for report in run.rounds(job.state.log(MODEL)):
            job.record.add(report, in_detail=files.report is not None)
            shown.on_round(report)
    result = run.finish()
    return FittedModel(result, run.settings, run.can_learn, tuple(report.text for report in run.differences))


def refit(job: TrainJob, train_set: Trainable, fitted: FittedModel) -> FittedModel:
    """Train again on --data and --valid together, with the trees that each ranker has."""
    settings = settings_of_refit(fitted.settings, fitted.result)
    if settings is None:
        return fitted
    with job.record.timed("refitting"):
        run = TrainingRun(train_set, [], settings, job.pool)
        job.console.notice(f"trains again on all {counted(train_set.n_documents, 'document')} (--refit)")
        with job.console.progress(settings.trees) as progress:
            shown = RoundProgress(progress, settings, (), None)
            for report in run.rounds(job.state.log(REFIT)):
                shown.on_round(report)
        return replace(fitted, refitted=run.finish())


def _start(inputs: TrainingInputs, settings: ResolvedSettings, pool: WorkerPool) -> BoostingRun:
    """Return the run, ready to grow its first tree."""
    if inputs.sharded is not None:
        from lmart.distributed.driver import DistributedRun

        return DistributedRun(inputs.sharded, settings, pool, time.perf_counter())
    return TrainingRun(
        inputs.local_train_set,
        inputs.validation_sets,
        settings,
        pool,
        inputs.metadata,
        inputs.validation_metadata,
        inputs.continuation,
    )


def write_outputs(job: TrainJob, inputs: TrainingInputs, selected: SelectedSettings, fitted: FittedModel) -> None:
    """Write the model, the report and out-of-fold scores, all or none, and print the tables of the selection."""
    request = job.request
    report, oof = request.files.report, request.selection.oof
    model = model_to_json(fitted.ensemble)
    with AtomicOutputs() as files:
        if report is not None:
            content = _report(job, inputs, fitted, model)
            if selected.trials:
                content["tuning"] = run_report.tuning_entry(selected.space, selected.trials, best_of(selected.trials))
            if selected.cross_validation is not None:
                content["cross_validation"] = run_report.folds_entry(selected.cross_validation, LEVEL)
            files.open(report).write(run_report.json_text(content))
        folds, sets = selected.cross_validation, inputs.in_memory
        if oof is not None and folds is not None and sets is not None:
            _write_out_of_fold(folds, sets.train_set, files.open(oof))
        files.open(request.files.out).write(model)
        training.print_results(selected, job.console, to_output="-" not in request.outputs.values())
        flush_output()


def write_model_so_far(job: TrainJob, inputs: TrainingInputs, selected: SelectedSettings) -> None:
    """Write the outputs of the rounds that an interrupted run did; nothing when there are none."""
    if not job.state.has(MODEL):
        return
    # `fit` takes the rounds from the log and adds none; all that it would say was said before.
    job.record.rounds, job.record.training, job.state.closed = [], [], True
    console, quiet, warnings = job.console, job.console.quiet, list(job.console.warnings)
    console.quiet = 2
    try:
        fitted = fit(job, inputs, selected.settings)
    finally:
        console.quiet, console.warnings = quiet, warnings
    write_outputs(job, inputs, selected, fitted)


def _write_out_of_fold(crossed: CrossValidation, dataset: RankingDataset, out: AtomicOutput) -> None:
    """Write the scores of the folds' models, one a row, in input order."""
    scores = crossed.scores
    if dataset.input_rows is not None:
        scores = np.empty_like(scores)
        scores[dataset.input_rows] = crossed.scores
    write_scores(scores, out)


def report_result(job: TrainJob, fitted: FittedModel, seconds: float) -> None:
    """Report what was written, after all outputs are complete."""
    files, notice = job.request.files, job.console.notice
    notice(narration.summary(fitted.result, files.valid, files.out, seconds))
    if fitted.refitted is not None:
        notice("measures are of the model before --refit: no data is left to measure the one that was written")
    if job.request.metadata_files.init_scores is not None:
        notice("measures are of the initial scores and the trees together; the model holds the trees alone")


def _report(job: TrainJob, inputs: TrainingInputs, fitted: FittedModel, model: str) -> dict[str, object]:
    """Return what --report writes, without the entries of the selection.

    model : its text
    """
    request, result, files = job.request, fitted.result, job.request.files
    named = {"data": list(files.data), "validation": list(files.valid), **request.metadata_files.report()}
    continued = None
    if result.continued_from is not None:
        differences = list(fitted.differences)
        continued = {"model": files.continue_from, "trees": result.continued_from, "differences": differences}
    run = result, fitted.settings, inputs.train_set, job.record
    content = run_report.run_entries(*run, named, continued, job.console.warnings, inputs.metadata.positions)
    if request.trace is not None:
        content["run"] = request.trace.entry(files.out, model)
    if fitted.refitted is not None:
        content |= run_report.refit_entries(fitted.refitted)
    return content
