"""What the command line of `lmart train` asks for, and whether its options go together. Light: loads no numpy."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import click

from lmart.cli.options.declare import given_on_command_line
from lmart.cli.options.settings_file import settings_file, take_settings
from lmart.cli.options.shared import ClusterOptions, check_inputs
from lmart.cli.options.types import WholeOrFile
from lmart.cli.run_trace import RunTrace
from lmart.cli.terminal.console import Console
from lmart.constraints import MonotoneConstraints, is_list
from lmart.errors import DataError, quote
from lmart.formats.read_options import ReadOptions
from lmart.settings import WITH_POSITIONS, TrainSettings
from lmart.settings import options as setting_fields
from lmart.settings.declared import declared
from lmart.settings.recipe import check_rankers
from lmart.settings.train_settings import idle_options

if TYPE_CHECKING:
    from lmart.binning.validation_set import CodedDataset
    from lmart.data.dataset import RankingDataset
    from lmart.data.metadata import Metadata
    from lmart.reports.run_report import RunRecord
    from lmart.scoring.ensemble import Ensemble
    from lmart.threads import WorkerPool
    from lmart.training.checkpoint import RunState
    from lmart.training.resolving import Trainable
    from lmart.training.search_space import Dimension


@dataclass(frozen=True)
class TrainFiles:
    """The files of a run but for those of metadata and selection."""

    data: tuple[str, ...] = declared(
        (),
        "Judged documents to learn from.",
        "LETOR, CSV, TSV or Parquet; several files are one data set.",
        metavar="FILE...",
        multiple=True,
        required=True,
    )
    valid: tuple[str, ...] = declared(
        (),
        "Judged documents to measure after each tree.",
        "Each file is a separate set; the first decides on early stopping.",
        metavar="FILE...",
        multiple=True,
    )
    refit: bool = declared(
        False,
        "Train once more at the end, on --data and --valid together.",
        "Each ranker gets as many trees as it had after the first training, with early stopping by --valid, and a "
        "linear ranker its weight. All measures are those of the first training, as no data is left to measure the "
        "model that is written.",
    )
    out: str = declared(
        "model.json", "File for the model.", flags=("-o", "--out"), metavar="MODEL", instead="give it once"
    )
    continue_from: str | None = declared(
        None,
        "Continue boosting from a model.",
        "The model may have any format that lmart convert reads. The new model has its trees, followed by the new "
        "trees, which --trees counts.",
        metavar="MODEL",
    )
    checkpoint: str | None = declared(
        None,
        "Keep the state of the run in FILE, and resume from it.",
        "lmart writes FILE while it trains, in at most 2 % of the time, and when it is interrupted or terminated. The "
        "same command then resumes from FILE, also after a crash, and writes the same model as an undisturbed run. "
        "lmart deletes FILE when the run is complete.",
        metavar="FILE",
    )
    on_interrupt: str = declared(
        "nothing",
        "What to write when the run is interrupted.",
        "model: the model of the trees so far, and the report, when the interrupt or SIGTERM comes while the model is "
        "trained; the exit status is 130 or 143 all the same.",
        choices=("nothing", "model"),
    )
    retries: int = declared(
        0,
        "With --dask, start again up to N times after losing a worker.",
        "The run goes on after the trees that are grown, with the workers that are left, and writes the same model as "
        "an undisturbed run. A worker that was stopped and no longer responds counts as lost.",
        low=0,
    )
    settings_file: str | None = declared(
        None,
        "Take settings from FILE, such as a model or a report.",
        "FILE may also be a --tune-file, the output of --tune, another command line `lmart train ...`, or JSON such as "
        '{"trees": 300, "leaves": 15}. From a command line lmart takes only the settings, and a notice names its other '
        "options. Options on the command line override FILE. With the settings of a model or report, and the same "
        "data, you get the same model, byte for byte.",
        flags=("--settings",),
        metavar="FILE",
        is_eager=True,
        callback=take_settings,
    )
    strict: bool = declared(
        False,
        "Refuse files whose columns or features differ.",
        "It refuses tables of --data that lack a column of the others, and --valid files whose features differ from "
        "those of --data.",
    )
    report: str | None = declared(
        None,
        "Write a report of the run as JSON.",
        "The report has settings, measures of every round, warnings and seconds; see lmart-report(5).",
        metavar="FILE",
    )


@dataclass(frozen=True)
class MetadataFiles:
    """Files of metadata; those of validation sets are in the order of --valid."""

    weights: str | None = declared(
        None,
        "Weights of queries, or of rows.",
        "One per line, for each query or for each row; their count decides between the two. They apply to training and "
        "to every printed measure of --data: of training, of --folds and of --tune.",
        metavar="FILE",
    )
    valid_weights: Sequence[str] = declared(
        (),
        "Weights for the measures of --valid, one FILE each.",
        "In the order of the --valid files. Without it, all their queries count the same.",
        metavar="FILE...",
        multiple=True,
    )
    valid_query_sizes: Sequence[str] = declared(
        (),
        "Like --query-sizes, for --valid, one FILE each.",
        "In the order of the --valid files.",
        metavar="FILE...",
        multiple=True,
    )
    init_scores: str | None = declared(
        None,
        "Start from these scores instead of 0.",
        "One number per line, for each row of --data. They are not in the model: add the predictions to the initial "
        "scores of new documents yourself. With --early-stop and --folds the model has no tree if no round is better "
        "than these scores alone. To continue from a model, use --continue-from; if you start from its scores here, "
        "give another --seed, because the random numbers start anew.",
        metavar="FILE",
    )
    valid_init_scores: Sequence[str] = declared(
        (),
        "Like --init-scores, for --valid, one FILE each.",
        "In the order of the --valid files.",
        metavar="FILE...",
        multiple=True,
    )
    positions: str | None = declared(
        None,
        "Position at which users saw each row.",
        "One word or number per line, for each row of --data. lmart then learns the effect of positions on clicks "
        "together with the model, but keeps it out of the model; --report lists it (for several rankers, that of the "
        f"first). Only with --objective {' or '.join(WITH_POSITIONS)}, which auto then chooses.",
        metavar="FILE",
    )

    @property
    def paths(self) -> list[str]:
        """All files that are given."""
        single = (self.weights, self.init_scores, self.positions)
        return [*filter(None, single), *self.valid_weights, *self.valid_query_sizes, *self.valid_init_scores]

    def check_usage(self, settings: TrainSettings, n_validation_sets: int, gives_regularization: bool) -> None:
        """Raise a usage error when options do not go together, SettingsError when one does not fit the objective."""
        if self.init_scores is None and self.valid_init_scores:
            raise click.UsageError("--valid-init-scores needs --init-scores: both start from scores, or neither")
        n_files = len(self.valid_init_scores)
        if self.init_scores is not None and n_files != n_validation_sets:
            raise click.UsageError(
                "--init-scores needs a file of --valid-init-scores for each of --valid, in the same order: there are "
                f"{n_files} for {n_validation_sets}"
            )
        for option, files in (("--valid-weights", self.valid_weights), ("--valid-query-sizes", self.valid_query_sizes)):
            if files and len(files) != n_validation_sets:
                raise click.UsageError(
                    f"{option} needs a file for each of --valid, in the same order: there are {len(files)} for "
                    f"{n_validation_sets}"
                )
        if self.positions is not None:
            settings.check_positions()
        elif gives_regularization:
            raise click.UsageError("--position-bias-reg needs --positions")

    def report(self) -> dict[str, Any]:
        """Return the files as --report lists them."""
        by_name = {
            "weights": self.weights,
            "validation_weights": list(self.valid_weights),
            "validation_query_sizes": list(self.valid_query_sizes),
            "init_scores": self.init_scores,
            "validation_init_scores": list(self.valid_init_scores),
            "positions": self.positions,
        }
        return {name: paths for name, paths in by_name.items() if paths}

    def read(self, train_set: Trainable) -> Metadata:
        """Read the metadata of the training set; DataError names file and line."""
        from lmart.data.metadata import Metadata
        from lmart.formats import metadata_files as files

        expected = train_set.n_documents, train_set.source, train_set.input_rows
        weights = None
        if self.weights is not None:
            read = files.read_weights(self.weights, train_set.query_offsets, train_set.input_rows)
            weights = read.per_query if read.given_per == "query" else read.per_document
        return Metadata(
            weights,
            None if self.init_scores is None else files.read_init_scores(self.init_scores, *expected),
            None if self.positions is None else files.read_positions(self.positions, *expected),
        )

    def validation_read_options(self, read_options: ReadOptions, n_validation_sets: int) -> list[ReadOptions]:
        """Return how each validation set is read: as the training set, but with the query sizes of its own."""
        sizes: Sequence[str | None] = self.valid_query_sizes or [None] * n_validation_sets
        return [replace(read_options, query_sizes=path) for path in sizes]

    def read_for_validation(self, validation_sets: Sequence[RankingDataset | CodedDataset]) -> list[Metadata]:
        """Read the metadata of each validation set: its weights, and its initial scores."""
        from lmart.data.metadata import Metadata
        from lmart.formats import metadata_files as files

        nothing = [None] * len(validation_sets)
        metadata = []
        for dataset, weights, init_scores in zip(
            validation_sets, self.valid_weights or nothing, self.valid_init_scores or nothing, strict=True
        ):
            rows = dataset.input_rows
            by_query = None if weights is None else files.read_weights(weights, dataset.query_offsets, rows).per_query
            scores = None
            if init_scores is not None:
                scores = files.read_init_scores(init_scores, len(dataset.labels), dataset.source, rows)
            metadata.append(Metadata(by_query, scores))
        return metadata


def _settings_on_command_line() -> tuple[str, ...]:
    return tuple(setting.name for setting in setting_fields() if given_on_command_line(setting.name))


@dataclass(frozen=True)
class SelectionOptions:
    """What is chosen before the model is trained, and the settings that are given, so that a search keeps them."""

    folds: int | str | None = declared(
        None,
        "Cross-validate first, to choose the number of trees.",
        "lmart splits the queries into K folds, trains K models that each leave one fold out, and measures each on the "
        "queries that it did not see. Then it trains the model on all data, with the number of trees that has the best "
        "mean measure over the folds. FILE names the fold of each query: 'qid TAB fold' on each line.",
        type=WholeOrFile(2),
        metavar="K|FILE",
    )
    fold_by: str | None = declared(
        None,
        "Keep related queries in one fold of --folds K, such as those of a user.",
        "Queries of the same value are in the same fold. COLUMN is a column of the tables of --data, which is then no "
        "feature; all rows of a query have the same value in it. For data without this column, FILE has "
        "'qid TAB value' on each line.",
        metavar="COLUMN|FILE",
    )
    oof: str | None = declared(
        None,
        "Write the out-of-fold scores of --folds to FILE.",
        "Each comes from the model that did not see the query; one number per row, in input order.",
        metavar="FILE",
    )
    tune: float | None = declared(
        None,
        "Minutes to search for good settings first.",
        "--folds or the first --valid file measures them. Settings on the command line stay as they are; --trees "
        "limits the trees of each trial.",
        above=0,
        metavar="MINUTES",
    )
    tune_trials: int | None = declared(
        None,
        "Search for good settings with N trials.",
        "The result then does not depend on time. With --tune, the first limit that is reached ends the search.",
        low=1,
    )
    tune_file: str | None = declared(
        None,
        "Keep the trials in FILE, and resume from it.",
        "lmart writes FILE after each trial; the same command resumes the search.",
        metavar="FILE",
    )
    on_command_line: tuple[str, ...] = field(default_factory=_settings_on_command_line)
    by_file: Sequence[str] = field(default_factory=lambda: settings_file().names)

    @property
    def given(self) -> tuple[str, ...]:
        """The settings that are given, on the command line or by --settings."""
        return self.on_command_line + tuple(name for name in self.by_file if name not in self.on_command_line)

    @property
    def files(self) -> list[str]:
        """The files that are read; --fold-by may name a column."""
        paths = [path for path in (self.folds, self.fold_by) if isinstance(path, str)]
        return [path for path in paths if path == "-" or os.path.exists(path)]

    @property
    def tunes(self) -> bool:
        """Whether settings are searched for."""
        return self.tune is not None or self.tune_trials is not None

    @property
    def selects(self) -> bool:
        """Whether anything is chosen before the model is trained."""
        return self.folds is not None or self.tunes


def searched(selection: SelectionOptions, settings: TrainSettings, with_positions: bool) -> tuple[Dimension, ...]:
    """Return what a search tries: see `open_dimensions`."""
    from lmart.training.search_space import open_dimensions

    return open_dimensions(selection.given, settings, with_positions)


def check_selection(
    selection: SelectionOptions,
    settings: TrainSettings,
    valid: Sequence[str],
    outputs: dict[str, str],
    with_positions: bool = False,
) -> None:
    """Raise a usage error when options do not go together."""
    if selection.fold_by is not None and not isinstance(selection.folds, int):
        what = "which is not given" if selection.folds is None else "and a file says already what is in each fold"
        raise click.UsageError(f"--fold-by needs --folds K, {what}")
    if selection.fold_by == "":
        raise click.UsageError("--fold-by is empty; give a column, or a file")
    if selection.oof is not None and selection.folds is None:
        raise click.UsageError("--oof needs --folds: without, every model has seen every query")
    if selection.tune_file is not None and not selection.tunes:
        raise click.UsageError("--tune-file needs --tune or --tune-trials")
    if selection.tunes and selection.folds is None and not valid:
        raise click.UsageError("--tune needs --folds K or a --valid file to measure")
    if settings.early_stop and not valid and selection.folds is None:
        context = click.get_current_context()
        is_of_file = context.get_parameter_source("early_stop") is click.core.ParameterSource.DEFAULT_MAP
        else_none = "; for the settings of the file without it, --early-stop 0" if is_of_file else ""
        raise click.UsageError(f"--early-stop needs a --valid file or --folds to measure{else_none}")
    for option in ("--tune-file", "--checkpoint"):
        path = outputs.get(option, "")
        if path == "-" or (os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)):
            raise click.UsageError(f"{option} must be a file: it is read and written")
    places: dict[str, str] = {}
    for option, path in outputs.items():
        standard = path in ("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")
        other = places.setdefault("-" if standard else os.path.realpath(path), option)
        if other != option:
            raise click.UsageError(f"{option} and {other} are the same file")
    if selection.tunes:
        from lmart.training.tuning import load_optuna

        if not searched(selection, settings, with_positions):
            raise click.UsageError("every setting that --tune searches is given; leave some open")
        load_optuna()


@dataclass(frozen=True)
class TrainRequest:
    """All options of a run but those of threads and messages, and the model to go on from, once it is read.

    trace : what identifies the run in its report
    """

    files: TrainFiles
    settings: TrainSettings
    metadata_files: MetadataFiles
    selection: SelectionOptions
    read_options: ReadOptions
    model: Ensemble | None = None
    trace: RunTrace | None = None

    @property
    def constraints_file(self) -> str | None:
        """The file of monotone constraints; None when they are a list, or there are none."""
        return None if is_list(self.settings.monotone) else self.settings.monotone or None

    @property
    def categories_file(self) -> str | None:
        """The file that names the categories; None when they are a list, or there are none."""
        return None if is_names(self.settings.categorical) else self.settings.categorical or None

    @property
    def inputs(self) -> list[str]:
        """All files that are read."""
        files = self.files
        optional = filter(
            None,
            [
                self.read_options.query_sizes,
                self.constraints_file,
                self.categories_file,
                files.continue_from,
                files.settings_file,
            ],
        )
        return [*self.files.data, *self.files.valid, *self.metadata_files.paths, *self.selection.files, *optional]

    @property
    def outputs(self) -> dict[str, str]:
        """All files that are written, by option."""
        by_option = {
            "--out": self.files.out,
            "--report": self.files.report,
            "--oof": self.selection.oof,
            "--tune-file": self.selection.tune_file,
            "--checkpoint": self.files.checkpoint,
        }
        return {option: path for option, path in by_option.items() if path is not None}

    def checked(self, cluster: ClusterOptions) -> TrainRequest:
        """Return the request in standard form; a usage or settings error when options do not go together."""
        settings, metadata_files = self.settings, self.metadata_files
        settings = replace(settings, metric=",".join(map(str, settings.measures)))
        path = self.constraints_file
        if path and ":" in path and not os.path.exists(path):
            raise click.UsageError(f"--monotone {quote(path)} is neither a list FEATURE:+1,FEATURE:-1,... nor a file")
        check_inputs(self.inputs, self.read_options)
        cluster.check_usage(self._of_one_process, self.inputs)
        if self.files.retries and cluster.dask is None:
            raise click.UsageError("--retries needs --dask ADDRESS: it is about workers that are lost")
        if self.files.checkpoint is not None and "-" in self.inputs:
            raise click.UsageError("standard input does not go with --checkpoint: the run reads it again to go on")
        with_positions = metadata_files.positions is not None
        if self.files.refit:
            self._check_refit()
        check_selection(self.selection, settings, self.files.valid, self.outputs, with_positions)
        if self.files.continue_from is not None:
            settings = self._of_one_ranker(settings)
        check_rankers(settings, with_positions)
        metadata_files.check_usage(settings, len(self.files.valid), given_on_command_line("position_bias_reg"))
        if path is None:
            settings = replace(settings, monotone=str(MonotoneConstraints.parse(settings.monotone)))
        read_options = replace(self.read_options, fold_column=self.selection.fold_by)
        return replace(self, settings=settings, read_options=read_options)

    def _check_refit(self) -> None:
        """Raise a usage error when --data and --valid cannot be read as one data set."""
        if not self.files.valid:
            raise click.UsageError("--refit needs a --valid file, which is what it adds to --data")
        if self.files.continue_from is not None:
            raise click.UsageError("--refit does not go with --continue-from; leave out one of both")
        if self.metadata_files.paths or self.read_options.query_sizes:
            what = "--refit reads --data and --valid as one data set"
            raise click.UsageError(
                f"{what}, without weights, initial scores, positions or query sizes; leave these out"
            )
        if "-" in self.inputs:
            raise click.UsageError("--refit reads its inputs twice, so none can be standard input; give files")

    @property
    def _of_one_process(self) -> list[tuple[str, object, str]]:
        """The options that need all rows in one process: name, value, and what to do instead."""
        alone = "leave out one of both"
        options, metadata, selection = self.read_options, self.metadata_files, self.selection
        return [
            ("--folds", selection.folds, alone),
            ("--fold-by", selection.fold_by, alone),
            ("--tune", selection.tunes, alone),
            ("--continue-from", self.files.continue_from, alone),
            ("--refit", self.files.refit, alone),
            ("--on-interrupt", self.files.on_interrupt != "nothing", alone),
            ("--positions", metadata.positions, alone),
            ("--group-by-qid", options.group_by_qid, "put the rows of each query together, in one file"),
            ("--query-sizes", options.query_sizes, "put queries into the data first, with 'lmart convert'"),
            (
                "--valid-query-sizes",
                metadata.valid_query_sizes,
                "put queries into the data first, with 'lmart convert'",
            ),
        ]

    def _of_one_ranker(self, settings: TrainSettings) -> TrainSettings:
        """Return the settings of a run that goes on from a model; a usage error when that cannot be."""
        option, why = "--continue-from", "drop one of both"
        if self.selection.selects:
            selecting = "--folds" if self.selection.folds is not None else "--tune"
            raise click.UsageError(f"{selecting} does not go with {option}: the model has seen every query; {why}")
        if self.metadata_files.positions is not None:
            raise click.UsageError(f"--positions does not go with {option}: a model holds no bias of positions; {why}")
        if (settings.rankers or 1) > 1:
            raise click.UsageError(f"{option} adds the trees of one ranker; give --rankers 1, or leave it out")
        if settings.rankers is None and len(settings.objectives) > 1:
            raise click.UsageError(f"{option} adds the trees of one ranker; give one --objective")
        return replace(settings, rankers=1)

    def check_outputs(self) -> None:
        """Raise OutputError when an output cannot be written, or is one of the inputs."""
        from lmart.streams import check_output

        for option, path in self.outputs.items():
            check_output(path, self.inputs, appended=option == "--tune-file")
        if self.selection.selects:  # whose tables go to standard output
            check_output("-", self.inputs)

    def with_lists_read(self) -> TrainRequest:
        """Return the request with the monotone constraints and the categories that files hold as lists."""
        from lmart.formats.metadata_files import read_categories, read_monotone

        settings = self.settings
        if self.constraints_file is not None:
            settings = replace(settings, monotone=str(read_monotone(self.constraints_file)))
        if self.categories_file is not None:
            settings = replace(settings, categorical=",".join(read_categories(self.categories_file)))
        return replace(self, settings=settings)

    def with_model_read(self, console: Console) -> TrainRequest:
        """Return the request with the model to go on from, if there is one, and the meaning of absent cells from it.

        ModelError when it cannot be read, or no tree can be added; SettingsError when --absent contradicts it.
        """
        from lmart.formats.models.model_files import read_model
        from lmart.training.continuation import prepare

        path = self.files.continue_from
        if path is None:
            return self
        model = read_model(path, tell=console.notice)
        prepared = prepare(model, path, self.settings, given_on_command_line("absent"))
        for text in prepared.notices:
            console.notice(text)
        for text in prepared.warnings:
            console.warning(text)
        return replace(self, settings=prepared.settings, model=prepared.model)

    def with_messages_to(self, console: Console) -> TrainRequest:
        """Return the request with what readers report going to the console; warn of settings without effect."""
        for text in idle_options(self.settings, self.selection.on_command_line):
            console.warning(text)
        return replace(self, read_options=self.read_options.telling(console.notice, console.warning, console.reading()))


@dataclass(frozen=True, eq=False)
class TrainJob:
    """A run of train: what is asked for, and what the run works with."""

    request: TrainRequest
    pool: WorkerPool
    state: RunState
    console: Console
    record: RunRecord


def is_names(text: str) -> bool:
    """Return whether --categorical is a list of names, not a file, whose name has a folder or a suffix."""
    return not (("/" in text or "." in text) and os.path.isfile(text))


@contextmanager
def reading_validation() -> Iterator[None]:
    """Name, in a refusal of a validation set, the option that holds for it: --valid-query-sizes."""
    try:
        yield
    except DataError as fault:
        # but not in the `lmart convert` that a refusal advises, which has one file and one option
        message = re.sub(r"(?<!OUT )--query-sizes", "--valid-query-sizes", fault.message)
        raise DataError(message, fault.path, fault.line, fault.more) from None
