"""lmart train."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import fields

import click

from lmart.cli.compiling import compile_ahead
from lmart.cli.options.cluster import ClusterOptions, cluster_options
from lmart.cli.options.common import quiet_option, thread_count, threads_option
from lmart.cli.options.data import data_options
from lmart.cli.options.metadata import MetadataFiles, metadata_options
from lmart.cli.options.multi_file import ManyFilesCommand
from lmart.cli.options.packed import packed
from lmart.cli.options.parsed_line import Once
from lmart.cli.options.selection import SelectionOptions, selection_options
from lmart.cli.options.settings import setting_options
from lmart.cli.options.settings_file import origin, settings_file_option
from lmart.cli.terminal.console import Console
from lmart.cli.train_request import TrainFiles, TrainRequest
from lmart.formats.read_options import ReadOptions
from lmart.memory import keep_memory_constant
from lmart.settings import TrainSettings

HELP = """Train a ranking model from judged documents and write it as one JSON file.

The model is an ensemble of regression trees, one per round, fitted to the gradients that improve the ranking of each
query (LambdaMART). The same data and settings give the same bytes, with any number of threads."""

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
    "train",
    cls=ManyFilesCommand,
    short_help="Train a ranking model from judged documents.",
    many=("--data", "--valid", "--valid-init-scores", "--valid-weights", "--valid-query-sizes"),
    help=HELP,
    epilog=EPILOG,
)
@click.option(
    "--data",
    metavar="FILE...",
    multiple=True,
    required=True,
    help="Judged documents to learn from.\f LETOR, CSV, TSV or Parquet; several files are one data set.",
)
@click.option(
    "--valid",
    metavar="FILE...",
    multiple=True,
    help="Judged documents to measure after each tree.\f Each file is a separate set; the first "
    "decides on early stopping.",
)
@click.option(
    "-o",
    "--out",
    cls=Once,
    metavar="MODEL",
    default="model.json",
    show_default=True,
    help="File for the model.",
)
@click.option(
    "--continue-from",
    metavar="MODEL",
    help="Continue boosting from a model.\f The model may have any format that lmart convert reads. "
    "The new model has its trees, followed by the new trees, which --trees counts.",
)
@settings_file_option
@setting_options
@metadata_options
@click.option(
    "--strict",
    is_flag=True,
    help="Refuse files whose columns or features differ.\f It refuses tables of --data that lack a "
    "column of the others, and --valid files whose features differ from those of --data.",
)
@click.option(
    "--report",
    metavar="FILE",
    help="Write a report of the run as JSON.\f The report has settings, measures of every round, "
    "warnings and seconds; see lmart-report(5).",
)
@selection_options
@cluster_options(
    "Train on the workers of a Dask cluster.\f The model has the same bytes. Each worker reads some adjacent "
    "files; a name may be a pattern in quotes, such as 'part-*.svm'."
)
@data_options
@threads_option
@quiet_option
@packed("files", TrainFiles, [one.name for one in fields(TrainFiles)])
def command(
    files: TrainFiles,
    settings: TrainSettings,
    metadata_files: MetadataFiles,
    selection: SelectionOptions,
    cluster: ClusterOptions,
    read_options: ReadOptions,
    threads: int | None,
    quiet: int,
) -> None:
    """Train a model; the help text is HELP.

    files          : what is read and written
    settings       : of the training, as given
    metadata_files : weights, initial scores and positions
    selection      : what is chosen before the model is trained
    cluster        : the workers of a cluster, if it is trained on some
    read_options   : how files are read
    threads        : to use; None: all of this process
    quiet          : how often --quiet is given
    """
    began = time.perf_counter()
    request = TrainRequest(files, settings, metadata_files, selection, read_options).checked(cluster)

    # Only now, as these load numpy and numba.
    from lmart.cli import train_run
    from lmart.cli.terminal.training import warn_after_training
    from lmart.cli.train_inputs import read_inputs
    from lmart.threads import WorkerPool

    request.check_outputs()
    request = request.with_constraints_read()
    if cluster.dask is None:  # a driver holds no rows, and gets its messages faster into memory that it has
        keep_memory_constant()
    console = Console(quiet, speaks=True)
    for text in origin(click.get_current_context()):
        console.notice(text)
    request = request.with_messages_to(console).with_model_read(console)
    record = train_run.RunRecord()
    count = thread_count(threads, console.notice)
    if cluster.on_this_machine:
        compile_ahead("train", count)
    with ExitStack() as stack:
        pool = stack.enter_context(WorkerPool(count))
        with record.timed("reading"):
            if cluster.dask is None:
                inputs = read_inputs(request, pool, console)
            else:
                from lmart.cli import train_cluster
                from lmart.distributed.cluster import connected

                workers = stack.enter_context(connected(cluster.address, cluster.dask_security, pool.threads))
                inputs = train_cluster.read_inputs(request, workers, console)
            resolved = train_run.resolve_settings(request, inputs)
        train_run.report_inputs(request, inputs, resolved, console)
        selected = train_run.select(request, inputs, resolved, record, pool, console)
        fitted = train_run.fit(request, inputs, selected.settings, record, pool, console)
    warn_after_training(fitted.result, fitted.settings, inputs.train_set.n_features, fitted.can_learn, console)
    train_run.write_outputs(request, inputs, selected, fitted, record, console)
    train_run.report_result(request, inputs, fitted, time.perf_counter() - began, console)
