"""lmart train."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import fields

import click

from lmart.cli.compiling import compile_ahead
from lmart.cli.options.cluster import CLUSTER_NEEDS, ClusterOptions, cluster_options
from lmart.cli.options.common import definitions, quiet_option, thread_count, threads_option
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
from lmart.settings import OBJECTIVES, TrainSettings
from lmart.settings.recipe import VARIATIONS

HELP = """Train a ranking model from judged documents and write it as one JSON file.

The model is an ensemble of regression trees fitted, one a round, to the gradients that would improve the ranking of
each query (LambdaMART). The same data and settings give the same bytes, whatever the number of threads.
\f
What a better ranking is, --objective says:

\b
{objectives}

Those by pairs minimise the sum of weight x log(1 + exp(-sigma (s - t))) over the pairs of documents of a query, s being
the score of the better one and t that of the other; --truncation, --sigma and --normalize mean the same for all of
them. So do neighbours in yetirank, with weight 0.85^k |y - z| / (10 m), k the rank of the upper one from 0, y and z
their labels and m the highest of the query; the orders are by sigma s + ln(r / (1 - r)), r uniform from 0 to 1, and
--normalize does not divide by |s - t|. xendcg minimises the sum of -p ln q, p being the share of gain + 1 - r in its
sum over the query and q that of exp(sigma s). --weights holds for every objective. --metric is only measured and may be
something else than the objective.

The model is the mean of --rankers rankers, which differ in objective, form of tree, drawn features and seed, and so
err differently:

\b
{rankers}

Lines that do not go with --positions, a --gain other than exp2 or --monotone are left out, and lines that become the
same count once. What --objective, --tree and --features say holds for all of them; several objectives with + between
are taken in turn. Each ranker is trained by itself, one after the other, with an even share of --trees, and with
--early-stop each holds the trees up to its own best round on the first --valid file. There, --rankers auto lets each
ranker grow all trees that those before it left, and begins another while at least as many are left as the largest
holds. Leaf values are then multiplied so
that the training scores of all rankers spread equally within queries, and divided by the number of rankers that have
trees: scores stay a plain sum over all trees. With --init-scores they are only divided. The measure reported at the end
is that of the whole model. With --folds all rankers of all folds get one number of trees, the one with the best mean of
the whole model. --rankers 1 --objective lambdamart is the plain algorithm.

Trees of --tree oblivious have one split a level, and as many levels as --leaves leaves of one depth allow; where a side
would be smaller than --min-docs or --min-hessian allow, the leaf stays as it is. They do not go with --monotone.

Values become small codes while they are read, so the raw data is never all in memory (but with --group-by-qid,
--folds or --tune it is). Beyond 200,000 rows --data is read twice; what comes through a pipe is kept in a temporary
file in TMPDIR for that, compressed if it came so.

Queries with constant labels, the same for all of their documents, have no pair to learn from; their number is told.

With --early-stop each ranker holds exactly the trees of its best round on the first --valid file. Measures are means
over queries, by --weights or --valid-weights where there are some; queries without a relevant document count as 0, ties
are in file order. The measure and the objective err take the largest label of all --data and --valid files, at least 4,
for all of them and for every fold; --metric 'err@10(max=5)' says another, for both.

With --continue-from boosting starts at the scores of a model. With one of lmart's own, of one ranker, and the same data
and settings, the result has the bytes of one run of all rounds; else a notice says what differs. The settings are those
of the command line, but for what an absent index means, and one ranker goes on. With --early-stop no tree is added when
no round is better than the model alone.

With --dask the work is done by the workers of a Dask cluster (pip install distributed): dask scheduler and dask
worker start one, local:N is one for the time of the command. The model has the bytes that this process alone would
write from the same files in the same order, whatever the number of workers and of their threads. Workers read the
files from storage that they share, at the same path for all of them. Names may be patterns in quotes, and a worker
looks for the files. The files of a pattern are taken in the order of their names, character by character. Each worker
reads some adjacent files of --data and holds their rows, so there should be at least as many files as workers, of about
the same size; rows of a query are in one file. A pattern of --valid is one set. --weights, --init-scores and those of
--valid are patterns too: one file with each file of the set. More than five workers need connections between them too.
{cluster_needs} --folds, --tune, --continue-from, --positions, --query-sizes and --group-by-qid do not go with
--dask.

With --folds or --tune the number of trees, or more settings, are chosen first, by queries that the models did not
see; then the model is trained with them on all of --data, and what was found is printed. With --early-stop all folds
grow side by side, each with its binned rows in memory (1 byte a value), until their mean measure has not been better
for so many rounds. The folds decide when both they and a --valid file are given; the file is then only measured. As the
choice was made on the same queries, the measure printed is somewhat better than the model will be. --tune searches
rankers, objective, tree, features, learning-rate, leaves, min-docs, l2, truncation and normalize, as far as they are
not given; the first trial has what would be chosen without it."""

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
    help=HELP.format(
        cluster_needs=CLUSTER_NEEDS,
        objectives=definitions({kind.name: kind.help for kind in OBJECTIVES.values()}),
        rankers=definitions({str(number): one.help for number, one in enumerate(VARIATIONS, 1)}),
    ),
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
    help="Judged documents to measure after each tree.\f Each file is a set of its own, the first one decides.",
)
@click.option(
    "-o",
    "--out",
    cls=Once,
    metavar="MODEL",
    default="model.json",
    show_default=True,
    help="Where the model is written.",
)
@click.option(
    "--continue-from",
    metavar="MODEL",
    help="Go on boosting from a model.\f It may be of lmart or any other format that lmart convert reads: the new "
    "model has its trees and then the new ones, which --trees counts.",
)
@settings_file_option
@setting_options
@metadata_options
@click.option(
    "--strict",
    is_flag=True,
    help="Refuse files whose columns or features differ.\f These are tables of --data that lack a column of the "
    "others, and --valid files whose features are not those of --data.",
)
@click.option(
    "--report",
    metavar="FILE",
    help="Write the run as JSON.\f It has settings, measures of every round, warnings, seconds; see lmart-report(5).",
)
@selection_options
@cluster_options(
    "Train on the workers of a Dask cluster.\f The model has the same bytes. Workers read the files themselves, each "
    "some adjacent ones; a name may be a pattern in quotes, such as 'part-*.svm'."
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
    from lmart.cli.terminal.train_report import warn_after_training
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
