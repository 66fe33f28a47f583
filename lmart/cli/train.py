"""lmart train."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from lmart.cli import model_selection as choices
from lmart.cli.options.common import definitions, quiet_option, thread_count, threads_option
from lmart.cli.options.data import data_options, refuse_two_standard_inputs
from lmart.cli.options.idle import idle_options
from lmart.cli.options.metadata import SidecarFiles, reading_validation, sidecar_options
from lmart.cli.options.multi_file import ManyFilesCommand
from lmart.cli.options.settings import setting_options
from lmart.cli.signals import flush_output, keep_memory_constant
from lmart.cli.terminal import model_selection_report
from lmart.constraints import format_monotone, is_list, parse_monotone
from lmart.errors import counted, quote
from lmart.formats.read_options import ReadOptions
from lmart.gains import SMALLEST_GRADE_SCALE
from lmart.settings import OBJECTIVES, TrainSettings

if TYPE_CHECKING:
    from lmart.binning.validation_set import CodedDataset
    from lmart.cli.terminal.console import Console
    from lmart.data.dataset import RankingDataset
    from lmart.training.boosting import Trainable, TrainingRun, TrainResult
    from lmart.training.rankers import RoundReport

HELP = """Learn a ranking model from judged documents and write it as one JSON file.

The model is an ensemble of regression trees fitted, one a round, to the gradients that would improve the ranking of
each query (LambdaMART). The same data and settings give the same bytes, whatever the number of threads.

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

Several objectives with + between make a ranker each, one after the other, and the model is the mean of them: the trees
of all, with leaf values divided by their number. With --early-stop each goes on behind the best round so far and is
kept as far as the mean gets better by it; otherwise they share --trees evenly. This goes neither with --folds and
--tune nor with --positions.

Trees of --tree oblivious have one split a level, and as many levels as --leaves leaves of one depth allow; where a side
would be smaller than --min-docs or --min-hessian allow, the leaf stays as it is. They do not go with --monotone.

Values become small codes while they are read, so the raw data is never all in memory (but with --group-by-qid,
--folds or --tune it is). Beyond 200,000 rows --data is read twice; what comes through a pipe is kept in a temporary
file in TMPDIR for that, compressed if it came so.

With --early-stop the model holds exactly the trees of the best round on the first --valid file. Measures are means
over queries, by --weights or --valid-weights where there are some; queries without a relevant document count as 0, ties
are in file order. The measure and the objective err take the largest label of all --data and --valid files, at least 4,
for all of them and for every fold; --metric 'err@10(max=5)' says another, for both.

With --folds or --tune the number of trees, or more settings, are chosen first, by queries that the models did not
see; then the model is trained with them on all of --data, and what was found is printed. With --early-stop all folds
grow side by side, each with its binned rows in memory (1 byte a value), until their mean measure has not been better
for so many rounds. The folds decide when both they and a --valid file are given; the file is then only measured. As the
choice was made on the same queries, the measure printed is somewhat better than the model will be."""

EPILOG = """\b
Examples:
  lmart train --data data/sample/train.svm --out model.json
  lmart train --data data/sample/train.svm --valid data/sample/vali.svm --early-stop 30 --trees 500
  lmart train --data data/sample/train.svm --leaves 15 --min-docs 5 --report run.json
  lmart train --data data/sample/train.svm --monotone 1:+1,2:+1 --trees 50
  lmart train --data data/sample/train.svm --folds 5 --early-stop 20 --oof scores.txt
  lmart train --data data/sample/train.svm --folds 3 --tune-trials 3 --trees 50 --tune-file trials.jsonl
"""


@click.command(
    cls=ManyFilesCommand,
    many=("--data", "--valid", "--valid-init-scores", "--valid-weights", "--valid-query-sizes"),
    help=HELP.format(objectives=definitions(OBJECTIVES)),
    epilog=EPILOG,
)
@click.option(
    "--data",
    metavar="FILE...",
    multiple=True,
    required=True,
    help="Judged documents to learn from: LETOR, CSV, TSV or Parquet; several files are one data set.",
)
@click.option(
    "--valid",
    metavar="FILE...",
    multiple=True,
    help="Judged documents to measure after each tree; each file is a set of its own, the first one decides.",
)
@click.option(
    "-o", "--out", metavar="MODEL", default="model.json", show_default=True, help="Where the model is written."
)
@setting_options
@sidecar_options
@click.option(
    "--strict",
    is_flag=True,
    help="Refuse tables of --data that lack a column of the others, and --valid files whose features are not those of "
    "--data.",
)
@click.option(
    "--report", metavar="FILE", help="Write the run as JSON: settings, measures of every round, warnings, seconds."
)
@choices.choosing_options
@data_options
@threads_option
@quiet_option
def command(
    data: Sequence[str],
    valid: Sequence[str],
    out: str,
    settings: TrainSettings,
    beside: SidecarFiles,
    strict: bool,
    report: str | None,
    choosing: choices.Choosing,
    read_options: ReadOptions,
    threads: int | None,
    quiet: int,
) -> None:
    from lmart.measures.values import parse_measure, parse_measures

    if len(parse_measures(settings.metric)) > 1:
        raise click.UsageError(f"--metric takes one measure here, not the list {quote(settings.metric)}")
    settings = replace(settings, metric=str(parse_measure(settings.metric)))
    constraints_file = None if is_list(settings.monotone) else settings.monotone
    if constraints_file and ":" in constraints_file and not os.path.exists(constraints_file):
        what = f"--monotone {quote(constraints_file)} is neither a list FEATURE:+1,FEATURE:-1,... nor a file"
        raise click.UsageError(what)
    inputs = [*data, *valid, *beside.paths, *filter(None, [read_options.query_sizes, constraints_file])]
    refuse_two_standard_inputs(inputs)
    named = {"--out": out, "--report": report, "--oof": choosing.oof, "--tune-file": choosing.tune_file}
    outputs = {option: path for option, path in named.items() if path is not None}
    choices.check_usage(choosing, settings, valid, outputs)
    beside.check_usage(settings, len(valid), choices.stood_there("position_bias_reg"))
    without_effect = idle_options(settings, choosing.given)
    constraints = {} if constraints_file else parse_monotone(settings.monotone)

    import time

    from lmart.binning.streaming import read_training_set, read_validation_set
    from lmart.cli.terminal.console import Console
    from lmart.formats.metadata_files import read_monotone
    from lmart.formats.models.lmart_json import model_to_json
    from lmart.formats.registry import for_models, read_dataset
    from lmart.scoring.feature_matching import match_dataset
    from lmart.streams import AtomicOutputs, check_output
    from lmart.threads import WorkerPool
    from lmart.training.boosting import TrainingRun, resolve_share, without_trees
    from lmart.training.score_tracking import with_label_scale

    for option, path in (outputs | ({"": "-"} if choosing.chooses else {})).items():
        check_output(path, inputs, appended=option == "--tune-file")
    if constraints_file:
        constraints = read_monotone(constraints_file)
    settings = replace(settings, monotone=format_monotone(constraints))
    keep_memory_constant()
    console = Console(quiet)
    read_options = read_options.telling(console.notice, console.warning)
    for text in without_effect:
        console.warning(text)
    rounds: list[RoundReport] = []
    with WorkerPool(thread_count(threads, console.notice)) as pool:
        began = time.perf_counter()
        train_set: Trainable
        validation_sets: Sequence[RankingDataset | CodedDataset]
        raw: tuple[RankingDataset, list[RankingDataset]] | None = None
        if not choosing.tunes:  # which may choose another gain
            read_options = replace(read_options, gain=settings.gain)
        told: list[str] = []  # of how validation sets match, before the time is spent
        valid_options = replace(read_options, beside_others=True)
        of_validation = list(zip(valid, beside.options_of_validation(valid_options, len(valid)), strict=True))
        if choosing.chooses:  # the data is binned anew for each model
            in_memory = read_dataset(data, read_options, pool)
            models = [without_trees(in_memory, settings)]
            with reading_validation():
                raw = (
                    in_memory,
                    [read_dataset([path], for_models(options, models), pool) for path, options in of_validation],
                )
            train_set, validation_sets = raw
            _check_columns(train_set, settings, strict, console)
            for one in raw[1]:
                matcher = match_dataset(without_trees(train_set, settings), one)
                matcher.refuse(one.source, strict)
                told += matcher.warnings(one.source)
        else:
            train_set = read_training_set(data, read_options, settings, pool)
            _check_columns(train_set, settings, strict, console)
            model, edges = without_trees(train_set, settings), train_set.features.edges
            with reading_validation():
                coded = [
                    read_validation_set(path, options, model, edges, pool, strict) for path, options in of_validation
                ]
            told += [text for one in coded for text in one.warnings]
            validation_sets = coded
        for text in told:
            console.warning(text)
        sidecars, of_valid = beside.read(train_set), beside.read_for_validation(validation_sets)
        alone = choosing.chooses or sidecars.positions is not None
        asked, settings = settings, settings.for_queries(train_set.n_queries, alone)
        settings = with_label_scale(settings, [train_set, *validation_sets])
        seconds = {"reading": time.perf_counter() - began}
        console.notice(_describe(train_set, resolve_share(settings, train_set.n_documents)))
        _tell_automatic(asked, settings, choosing, train_set.n_queries, console)
        if settings.largest_label is not None:
            console.notice(f"err stops with probability {_stopping(settings)} in all of the data")
        if sidecars.positions is not None and len(sidecars.positions.names) == 1:
            console.warning("every row has the same position, so there is no bias to learn")
        chosen = choices.Chosen(settings)
        if raw is not None:
            judge = (raw[1][0], of_valid[0]) if raw[1] else None
            measured = choices.measured(raw[0], judge, choosing, pool, sidecars)
            in_detail = report is not None or choosing.oof is not None
            began = time.perf_counter()
            chosen = choices.choose(choosing, settings, measured, console, in_detail)
            seconds["choosing"] = time.perf_counter() - began
            settings = chosen.settings
        training: list[float | None] = []
        run = TrainingRun(train_set, validation_sets, settings, pool, sidecars, of_valid)
        settings = run.settings
        for text in run.warnings:
            if text not in told:
                console.warning(text)
        _warn_before(run, train_set, sidecars.weights is not None, console)
        if run.start is not None:
            reached = _reached(run.start.training, run.start.validation, valid)
            console.notice(f"the initial scores alone: {settings.metric} {reached}")
        with console.progress(settings.trees) as progress:
            for made in run.rounds():
                rounds[made.round - 1 :] = [made]
                if report is not None:
                    training[made.round - 1 :] = [made.measure_training()]
                progress.update(made.round, partial(_measures, made, settings, valid))
        result = run.finish()
    _warn_after(result, settings, train_set.n_features, run.can_learn, console)
    with AtomicOutputs() as files:
        if report is not None:
            content = _report(result, settings, rounds, training, train_set, data, valid, seconds | result.seconds)
            content["files"] |= beside.report()
            content["warnings"] = console.warnings
            if sidecars.positions is not None:
                bias = result.position_bias.tolist()
                content["position_bias"] = dict(zip(sidecars.positions.names, bias, strict=True))
            files.open(report).write(model_selection_report.json_text(content | model_selection_report.report(chosen)))
        if choosing.oof is not None and chosen.crossed is not None and raw is not None:
            model_selection_report.write_out_of_fold(chosen.crossed, raw[0], files.open(choosing.oof))
        files.open(out).write(model_to_json(result.ensemble))
        model_selection_report.print_results(chosen, console, to_output="-" not in outputs.values())
        flush_output()
    console.notice(_summary(result, settings, valid, out))
    if sidecars.init_scores is not None:
        console.notice("measures are of the initial scores and the trees together; the model holds the trees alone")


def _check_columns(dataset: Trainable, settings: TrainSettings, strict: bool, console: Console) -> None:
    """Warn of each table of --data that lacks a column of the others, or refuse it."""
    from lmart.errors import DataError
    from lmart.scoring.feature_matching import missing_columns

    counted_as = "0" if settings.absent == "zero" else "missing"
    for path, what in missing_columns(dataset).items():
        if strict:
            raise DataError(f"{what}; give the files the same columns, or do without --strict", path)
        console.warning(f"{'standard input' if path == '-' else path}: {what}; counted as {counted_as}")


def _describe(dataset: Trainable, share: float) -> str:
    documents, features = counted(dataset.n_documents, "document"), counted(dataset.n_features, "feature")
    sampled = f"; each tree is grown from {share:.0%} of the documents (--sample)" if share < 1 else ""
    return f"read {documents} of {counted(dataset.n_queries, 'query', 'queries')} with {features}{sampled}"


def _tell_automatic(
    asked: TrainSettings, settings: TrainSettings, choosing: choices.Choosing, n_queries: int, console: Console
) -> None:
    """Say which objective and how many leaves were chosen by how many queries there are."""
    chosen = []
    if asked.objective is None:
        chosen.append(f"objective {settings.objective}")
    if asked.leaves is None and settings.leaves is not None and not choosing.tunes:
        chosen.append(counted(settings.leaves, "leaf", "leaves"))
    if chosen:
        console.notice(f"{', '.join(chosen)} (auto: {counted(n_queries, 'query', 'queries')})")


def _stopping(settings: TrainSettings) -> str:
    return f"(2^label - 1) / 2^{settings.largest_label or SMALLEST_GRADE_SCALE}"


def _shown(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.6f}"


def _measures(one: RoundReport, settings: TrainSettings, valid: Sequence[str]) -> str:
    if len(settings.objectives) > 1:
        which = f"ranker {one.ranker} of {len(settings.objectives)}, "
        return which + _measures_alone(one, settings, valid)
    return _measures_alone(one, settings, valid)


def _measures_alone(one: RoundReport, settings: TrainSettings, valid: Sequence[str]) -> str:
    if not valid:
        return f"training {settings.metric} {_shown(one.measure_training())}"
    return f"{settings.metric} " + ", ".join(f"{_shown(v)} on {p}" for v, p in zip(one.validation, valid, strict=True))


def _reached(training: float | None, validation: Sequence[float | None], valid: Sequence[str]) -> str:
    sets = [("training", training), *zip(valid, validation, strict=True)]
    return ", ".join(f"{_shown(value)} on {name}" for name, value in sets)


def _summary(result: TrainResult, settings: TrainSettings, valid: Sequence[str], out: str) -> str:
    reached = _reached(result.training, result.validation, valid)
    trees = counted(len(result.ensemble.trees), "tree")
    best = f" (best of {result.rounds} rounds)" if result.best_round < result.rounds else ""
    return f"wrote {trees}{best} to {out}; {settings.metric} {reached}"


def _warn_before(run: TrainingRun, dataset: Trainable, weighted: bool, console: Console) -> None:
    """Say how many queries there is nothing to learn from."""
    idle, queries = run.n_idle_queries, dataset.n_queries
    binary = set(run.settings.objectives) <= {"map", "mrr"}
    of_what = "labels" if run.settings.gain.kind != "table" else "gains"
    pair = "pair of a relevant document and another" if binary else f"pair of documents with different {of_what}"
    single = int((dataset.query_offsets[1:] - dataset.query_offsets[:-1] == 1).sum())
    if idle == queries:
        hint = "no query has two documents, so check the qid column" if single == queries else "check the labels"
        largest = run.settings.largest_label
        if "err" in run.settings.objectives and largest is not None and single < queries:
            hint += f", or name a smaller one than max={largest}, beside which they may be worth nothing"
        of_all = counted(queries, "query", "queries")
        console.warning(f"nothing to learn: none of {of_all} has a {pair}; {hint}; every score will be 0")
    elif not run.can_learn and weighted:
        console.warning(f"nothing to learn: no query with a weight above 0 has a {pair}; every score will be 0")
    elif idle:
        have = "has" if idle == 1 else "have"
        why = f" ({single:,} with a single document)" if single else ""
        # A notice: hardly any data is without such queries.
        console.notice(f"{idle:,} of {counted(queries, 'query', 'queries')} {have} no {pair}{why}")


def _warn_after(
    result: TrainResult, settings: TrainSettings, n_features: int, can_learn: bool, console: Console
) -> None:
    """Say what kept the run from learning, or from learning more."""
    if not can_learn:
        return
    if not result.n_features_split:
        why = "every feature is constant" if n_features else "the data has no features"
        console.warning(f"nothing to split on: {why}; every score will be 0")
    elif result.stopped == "split":
        console.warning(
            f"stopped after {counted(result.rounds, 'tree')} of {settings.trees:,}: no split is left that gains and "
            f"leaves on each side {counted(settings.min_docs, 'document')} (--min-docs) and a hessian of "
            f"{settings.min_hessian:g} (--min-hessian)" + ("" if result.rounds else "; every score will be 0")
        )
    for one in result.rankers:
        if one.trees or len(result.rankers) == 1:
            continue
        if one.rounds:
            console.notice(f"{one.objective} added no tree: with none of its rounds is {settings.metric} better")
        elif one.stopped == "split":
            console.warning(f"{one.objective} added no tree: no split was left")
        else:
            console.warning(f"{one.objective} added no tree: --trees is used up")
    if result.start is not None and result.rounds and not result.best_round:
        console.warning("no round is better than the initial scores alone, so the model holds no tree")
    if settings.early_stop and result.stopped == "trees" and result.validation and result.best_round:
        choices.tell_of_end(result.best_round, result.rounds, settings.early_stop, settings.metric, console)


def _rankers(result: TrainResult) -> list[dict[str, Any]]:
    """Return whose trees are which, first_tree from 1, null when there is none."""
    found, first = [], 1
    for one in result.rankers:
        found.append({"objective": one.objective, "first_tree": first if one.trees else None, "trees": one.trees})
        first += one.trees
    return found


def _report(
    result: TrainResult,
    settings: TrainSettings,
    rounds: Sequence[RoundReport],
    training: Sequence[float | None],
    dataset: Trainable,
    data: Sequence[str],
    valid: Sequence[str],
    seconds: dict[str, float],
) -> dict[str, Any]:
    from lmart.training.score_tracking import uses_label_scale

    extra: dict[str, Any] = {}
    if result.start is not None:
        extra["start"] = {"training": result.start.training, "validation": list(result.start.validation)}
    if uses_label_scale(settings):
        extra["err"] = _stopping(settings)
    return {
        "settings": settings.to_json(),
        "data": {
            "documents": dataset.n_documents,
            "queries": dataset.n_queries,
            "features": dataset.n_features,
            "idle_queries": result.n_idle_queries,
            "split_features": result.n_features_split,
        },
        "metric": settings.metric,
        "sample": result.share,
        "rounds": [
            {"round": one.round, "training": value, "validation": list(one.validation)}
            for one, value in zip(rounds, training, strict=True)
        ],
        "stopped": result.stopped,
        "best_round": result.best_round,
        "rankers": _rankers(result),
        "training": result.training,
        "validation": list(result.validation),
        "files": {"data": list(data), "validation": list(valid)},
        "seconds": seconds,
    } | extra
