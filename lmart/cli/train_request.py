"""What the command line of `lmart train` asks for, and whether its options go together. Light: loads no numpy."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from lmart.cli.options.cluster import ClusterOptions
from lmart.cli.options.data import refuse_two_standard_inputs
from lmart.cli.options.metadata import MetadataFiles
from lmart.cli.options.packed import given_on_command_line
from lmart.cli.options.selection import SelectionOptions, check_usage
from lmart.cli.terminal.console import Console
from lmart.constraints import MonotoneConstraints, is_list
from lmart.errors import quote
from lmart.formats.read_options import ReadOptions
from lmart.settings import TrainSettings
from lmart.settings.recipe import check_rankers
from lmart.settings.train_settings import idle_options

if TYPE_CHECKING:
    from lmart.scoring.ensemble import Ensemble


@dataclass(frozen=True)
class TrainFiles:
    """The files of a run but for those of metadata and selection, one field an option.

    data   : files of the training set
    valid  : files of validation sets, each a set of its own
    out    : where the model is written
    report : where the report is written; None: nowhere
    strict : refuse files whose columns or features are not those of the others, instead of a warning
    continue_from : model to go on from; None: from none
    settings_file : where settings are taken from; None: nowhere
    """

    data: Sequence[str]
    valid: Sequence[str]
    out: str
    report: str | None
    strict: bool
    continue_from: str | None
    settings_file: str | None


@dataclass(frozen=True)
class TrainRequest:
    """All options of a run but those of threads and messages.

    files          : what is read and written
    settings       : of the training, as given
    metadata_files : weights, initial scores and positions
    selection      : what is chosen before the model is trained
    read_options   : how files are read
    model          : the model to go on from, once it is read; None: none
    """

    files: TrainFiles
    settings: TrainSettings
    metadata_files: MetadataFiles
    selection: SelectionOptions
    read_options: ReadOptions
    model: Ensemble | None = None

    @property
    def constraints_file(self) -> str | None:
        """The file of monotone constraints; None when they are a list, or there are none."""
        return None if is_list(self.settings.monotone) else self.settings.monotone or None

    @property
    def inputs(self) -> list[str]:
        """All files that are read."""
        files = self.files
        optional = filter(
            None, [self.read_options.query_sizes, self.constraints_file, files.continue_from, files.settings_file]
        )
        return [*self.files.data, *self.files.valid, *self.metadata_files.paths, *optional]

    @property
    def outputs(self) -> dict[str, str]:
        """All files that are written, by option."""
        by_option = {
            "--out": self.files.out,
            "--report": self.files.report,
            "--oof": self.selection.oof,
            "--tune-file": self.selection.tune_file,
        }
        return {option: path for option, path in by_option.items() if path is not None}

    def checked(self, cluster: ClusterOptions) -> TrainRequest:
        """Return the request in standard form; a usage or settings error when options do not go together."""
        settings, metadata_files = self.settings, self.metadata_files
        settings = replace(settings, metric=str(settings.measure))
        path = self.constraints_file
        if path and ":" in path and not os.path.exists(path):
            raise click.UsageError(f"--monotone {quote(path)} is neither a list FEATURE:+1,FEATURE:-1,... nor a file")
        refuse_two_standard_inputs(self.inputs)
        cluster.check_usage(self._of_one_process, self.inputs)
        with_positions = metadata_files.positions is not None
        check_usage(self.selection, settings, self.files.valid, self.outputs, with_positions)
        if self.files.continue_from is not None:
            settings = self._of_one_ranker(settings)
        check_rankers(settings, with_positions)
        metadata_files.check_usage(settings, len(self.files.valid), given_on_command_line("position_bias_reg"))
        if path is None:
            settings = replace(settings, monotone=str(MonotoneConstraints.parse(settings.monotone)))
        return replace(self, settings=settings)

    @property
    def _of_one_process(self) -> list[tuple[str, object, str]]:
        """The options that need all rows in one process: name, value, and what to do instead."""
        alone = "leave out one of both"
        options, metadata, selection = self.read_options, self.metadata_files, self.selection
        return [
            ("--folds", selection.folds, alone),
            ("--tune", selection.tunes, alone),
            ("--continue-from", self.files.continue_from, alone),
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

    def with_constraints_read(self) -> TrainRequest:
        """Return the request with the monotone constraints of a file, if that is what is given, as a list."""
        from lmart.formats.metadata_files import read_monotone

        path = self.constraints_file
        if path is None:
            return self
        return replace(self, settings=replace(self.settings, monotone=str(read_monotone(path))))

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
