"""Options of `lmart train` that select settings before the model is trained: folds and the search for settings.

The command gets them packed as one `selection: SelectionOptions`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from lmart.cli.options.packed import given_on_command_line, packed
from lmart.cli.options.settings_file import given_by_file
from lmart.cli.options.types import Real, Whole
from lmart.settings import TrainSettings
from lmart.settings import options as setting_fields
from lmart.settings.train_settings import without_meaning

if TYPE_CHECKING:
    from lmart.training.search_space import Dimension

_OPTIONS = (
    click.option(
        "--folds",
        type=Whole(min=2),
        metavar="K",
        help="Cross-validate first, to choose the number of trees.\f lmart splits the queries into K "
        "folds, trains K models that each leave one fold out, and measures each on the queries that "
        "it did not see. Then it trains the model on all data, with the number of trees that has the "
        "best mean measure over the folds.",
    ),
    click.option(
        "--oof",
        metavar="FILE",
        help="Write the out-of-fold scores of --folds to FILE.\f Each comes from the model that did not "
        "see the query; one number per row, in input order.",
    ),
    click.option(
        "--tune",
        type=Real(min=0, min_open=True),
        metavar="MINUTES",
        help="Search for good settings first, for this long.\f --folds or the first --valid file measures "
        "them. Settings on the command line stay as they are; --trees limits the trees of each trial.",
    ),
    click.option(
        "--tune-trials",
        type=Whole(min=1),
        metavar="N",
        help="Search for good settings with N trials.\f The result then does not depend on time. With "
        "--tune, the first limit that is reached ends the search.",
    ),
    click.option(
        "--tune-file",
        metavar="FILE",
        help="Keep the trials in FILE, and resume from it.\f lmart writes FILE after each trial; the same "
        "command resumes the search.",
    ),
)


@dataclass(frozen=True)
class SelectionOptions:
    """What the options ask for.

    `given` are the settings that are given, and stay as they are in a search: on the command line, or by --settings;
    `on_command_line` are those given there.

    folds       : number of folds
    oof         : file of out-of-fold scores
    tune        : minutes to search
    tune_trials : number of trials
    tune_file   : file of trials
    """

    folds: int | None
    oof: str | None
    tune: float | None
    tune_trials: int | None
    tune_file: str | None
    given: tuple[str, ...]
    on_command_line: tuple[str, ...] = ()

    @property
    def tunes(self) -> bool:
        """Whether settings are searched for."""
        return self.tune is not None or self.tune_trials is not None

    @property
    def selects(self) -> bool:
        """Whether anything is chosen before the model is trained."""
        return self.folds is not None or self.tunes


def _selection_options(
    folds: int | None, oof: str | None, tune: float | None, tune_trials: int | None, tune_file: str | None
) -> SelectionOptions:
    given = tuple(one.name for one in setting_fields() if given_on_command_line(one.name))
    by_file = tuple(one.name for one in setting_fields() if given_by_file(one.name) and one.name not in given)
    return SelectionOptions(folds, oof, tune, tune_trials, tune_file, given + by_file, given)


_NAMES = ("folds", "oof", "tune", "tune_trials", "tune_file")
selection_options = packed("selection", _selection_options, _NAMES, _OPTIONS)
"""Add the options; the command gets them packed as the keyword `selection: SelectionOptions`."""


def searched(selection: SelectionOptions, settings: TrainSettings, with_positions: bool) -> tuple[Dimension, ...]:
    """Return what a search tries: no settings that are given, mean nothing, or have one value that is allowed."""
    from lmart.training.search_space import dimensions

    fixed = [*selection.given, *without_meaning(settings)]
    if settings.monotone:
        fixed.append("tree")  # oblivious ones do not go with it
    if with_positions:
        fixed.append("objective")
    return dimensions(fixed)


def check_usage(
    selection: SelectionOptions,
    settings: TrainSettings,
    valid: Sequence[str],
    outputs: dict[str, str],
    with_positions: bool = False,
) -> None:
    """Raise a usage error when options do not go together."""
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
    if outputs.get("--tune-file") == "-":
        raise click.UsageError("--tune-file must be a file: it is read and written")
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
