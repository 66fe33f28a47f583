"""lmart train."""

from __future__ import annotations

import time
from contextlib import ExitStack, nullcontext
from dataclasses import replace

import click

from lmart.cli.command import HelpfulCommand, words_of
from lmart.cli.compile import compile_ahead
from lmart.cli.options.declare import group
from lmart.cli.options.settings_file import origin, settings_file
from lmart.cli.options.shared import ClusterOptions, Running, cluster_options, data_options, running_options
from lmart.cli.options.types import MeasureType
from lmart.cli.run_trace import RunTrace
from lmart.cli.terminal.console import Console
from lmart.cli.train_request import MetadataFiles, SelectionOptions, TrainFiles, TrainJob, TrainRequest, is_names
from lmart.constraints import is_list
from lmart.formats.read_options import ReadOptions
from lmart.memory import keep_memory_constant
from lmart.settings import TrainSettings
from lmart.streams.digests import InputDigests, recording_digests

HELP = """Train a ranking model from judged documents and write it as one JSON file.

The model is an ensemble of regression trees, one per round, fitted to the gradients that improve the ranking of each
query (LambdaMART). The same data and settings give the same model, byte for byte, with any number of threads."""

EPILOG = """\b
Examples:
  lmart train --data train.svm --out model.json
  lmart train --data train.svm --valid vali.svm --early-stop 30
  lmart train --data train.svm --folds 5 --early-stop 20 --oof scores.txt
  lmart train --data train.svm --leaves 15 --min-docs 5 --report run.json
  lmart train --data train.svm --settings run.json --seed 1
  lmart train --data train.svm --monotone 1:+1,2:+1 --trees 50
  lmart train --data train.svm --trees 40 --rankers 1 --out first.json
  lmart train --data train.svm --trees 60 --continue-from first.json
  lmart train --data train.svm --folds 3 --tune-trials 3 --trees 50
  lmart train --data 'tra*.svm' --trees 20 --dask local:2
"""


@click.command(
    "train", cls=HelpfulCommand, short_help="Train a ranking model from judged documents.", help=HELP, epilog=EPILOG
)
@group("files", TrainFiles)
@group(
    "settings",
    TrainSettings,
    metric={"type": MeasureType(), "is_list": bool},
    monotone={"is_list": is_list},
    categorical={"is_list": is_names},
)
@group("metadata_files", MetadataFiles)
@group("selection", SelectionOptions)
@cluster_options(
    "Train on the workers of a Dask cluster.",
    "The model has the same bytes. Each worker reads some adjacent files; a name may be a pattern in quotes, such as "
    "'part-*.svm'.",
)
@data_options
@running_options
def command(
    files: TrainFiles,
    settings: TrainSettings,
    metadata_files: MetadataFiles,
    selection: SelectionOptions,
    cluster: ClusterOptions,
    read_options: ReadOptions,
    running: Running,
) -> None:
    """Train a model; the help text is HELP."""
    digests = settings_file().digests or InputDigests()
    request = TrainRequest(files, settings, metadata_files, selection, read_options).checked(cluster)
    trace = RunTrace(("train", *words_of(click.get_current_context())), request.inputs, digests)
    with nullcontext() if files.report is None else recording_digests(digests):
        _train(replace(request, trace=trace), cluster, running)


def _train(request: TrainRequest, cluster: ClusterOptions, running: Running) -> None:
    """Train the model and report it."""
    start = time.perf_counter()
    # Only now, as these load numpy and numba.
    from lmart.cli import train_run
    from lmart.cli.train_inputs import read_inputs
    from lmart.cli.train_state import run_state
    from lmart.reports.run_report import RunRecord
    from lmart.threads import WorkerPool

    files = request.files
    request.check_outputs()
    request = request.with_lists_read()
    if cluster.dask is None:  # a driver holds no rows, and gets its messages faster into memory that it has
        keep_memory_constant()
    console = Console(running.quiet, speaks=True)
    for text in [] if files.settings_file is None else origin(files.settings_file):
        console.notice(text)
    request = request.with_messages_to(console).with_model_read(console)
    count = running.thread_count(console)
    if cluster.on_this_machine:
        compile_ahead("train", count)
    with ExitStack() as stack:
        state = stack.enter_context(run_state(files.checkpoint, console))
        pool = stack.enter_context(WorkerPool(count))
        job = TrainJob(request, pool, state, console, RunRecord())
        if cluster.dask is None:
            fitted = train_run.train(job, lambda: read_inputs(request, pool, console))
        else:
            fitted = train_run.train_on_workers(job, cluster)
        state.remove()
    train_run.report_result(job, fitted, time.perf_counter() - start)
