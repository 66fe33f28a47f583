"""Output of `lmart train`: notices, warnings, tables of folds and trials, and the winner's command line."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import click

from lmart.cli.model_selection import SelectedSettings
from lmart.cli.options.declare import given_on_command_line
from lmart.cli.options.settings_file import settings_file
from lmart.cli.terminal.console import Console
from lmart.cli.terminal.layout import Sheet, Table, standard_output
from lmart.errors import counted
from lmart.reports.html_parts import shown
from lmart.settings import AUTO, TrainSettings, in_words, setting

if TYPE_CHECKING:
    from lmart.training.cross_validation import CrossValidation, FurtherMeasure
    from lmart.training.remarks import Remark

NOT_OF_THE_MODEL = (
    "folds",
    "oof",
    "tune",
    "tune_trials",
    "tune_file",
    "report",
    "checkpoint",
    "threads",
    "quiet",
    "settings_file",
)


def report(remarks: Iterable[Remark], console: Console) -> None:
    """Report remarks on a run, each as a notice or a warning."""
    for remark in remarks:
        (console.warning if remark.is_warning else console.notice)(remark.text)


def print_results(selected: SelectedSettings, console: Console, to_output: bool) -> None:
    """Print the tables and the winner's command line: to standard output, or, when that is taken, as notices."""

    def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Print a table."""
        lines(table_lines(columns, rows, standard_output() if to_output else Sheet()))

    def lines(texts: Sequence[str]) -> None:
        """Print lines."""
        for text in texts:
            if to_output:
                click.echo(text)
            else:
                console.notice(text)

    metric, folds = str(selected.settings.measure), selected.cross_validation
    if folds is not None:
        table(*_fold_table(folds, metric))
        lines(
            [
                "",
                f"mean        {folds.mean:.6f} with {counted(folds.trees, 'tree')}",
                f"interval    {_interval(folds)}",
                f"std. error  {folds.standard_error:.6f} (over queries)",
                *(_further_mean(name, found) for name, found in folds.further.items()),
            ]
        )
    if selected.trials:
        if folds is not None:
            lines([""])
        table(*_trial_table(selected, metric))
        if alike := [dimension.name for dimension in selected.space if dimension.name not in _varying(selected)]:
            values = selected.trials[0].values
            values_of_all = ", ".join(f"{name.replace('_', '-')} {in_words(values[name])}" for name in alike)
            lines(["", f"in all trials: {values_of_all}"])
        none_needed = "no settings are better than the initial scores alone"
        lines(["", command_line(selected) if selected.winner.trees else none_needed])


def table_lines(columns: Sequence[str], rows: Sequence[Sequence[str]], sheet: Sheet) -> list[str]:
    """Return a table of numbers, in several blocks where the terminal is narrow."""
    width = max(len(row[0]) for row in (columns, *rows))
    header, *cells = [[f"{row[0]:>{width}}", *row[1:]] for row in (columns, *rows)]
    lines: list[str] = []
    for block in Table(header, cells).in_width(sheet.width):
        lines += [*([""] if lines else []), *block.lines(sheet)]
    return lines


def _interval(crossed: CrossValidation) -> str:
    from lmart.training.cross_validation import LEVEL

    if crossed.interval is None:
        return "n/a (fewer than two folds have a measure)"
    low, high = crossed.interval
    caution = "; too few folds to tell more" if (low, high) == (0.0, 1.0) else ""
    return f"{low:.6f} to {high:.6f} ({LEVEL:.0%}, Student's t over folds{caution})"


def _further_mean(name: str, found: FurtherMeasure) -> str:
    """Return the mean of a further measure with its interval."""
    interval = "" if found.interval is None else f", {found.interval[0]:.6f} to {found.interval[1]:.6f}"
    return f"{name:<10}  {found.mean:.6f}{interval}"


def _fold_table(crossed: CrossValidation, metric: str) -> tuple[list[str], list[list[str]]]:
    further = crossed.further.values()
    rows = [
        [
            crossed.names[n - 1] if crossed.names else str(n),
            str(fold.n_queries),
            str(fold.n_documents),
            shown(None if math.isnan(fold.measure) else fold.measure),
            shown(None if math.isnan(fold.best) else fold.best),
            str(fold.best_round * crossed.n_rankers),
            *(shown(None if math.isnan(found.measures[n - 1]) else found.measures[n - 1]) for found in further),
        ]
        for n, fold in enumerate(crossed.folds, 1)
    ]
    return ["fold", "queries", "documents", metric, "own best", "trees", *crossed.further], rows


def _trial_table(selected: SelectedSettings, metric: str) -> tuple[list[str], list[list[str]]]:
    from lmart.training.tuning import best_of

    best = best_of(selected.trials)
    names = _varying(selected)
    rows = [
        [
            f"{'* ' if place == best else ''}{place + 1}",
            "failed" if trial.measure is None else f"{trial.measure:.6f}",
            str(trial.trees),
            *(in_words(trial.values[name]) for name in names),
        ]
        for place, trial in enumerate(selected.trials)
    ]
    return ["trial", metric, "trees", *(name.replace("_", "-") for name in names)], rows


def _varying(selected: SelectedSettings) -> list[str]:
    """Return the searched settings that are not the same in all trials."""
    names = [dimension.name for dimension in selected.space]
    return [name for name in names if len({in_words(trial.values[name]) for trial in selected.trials}) > 1]


def command_line(selected: SelectedSettings) -> str:
    """Return the command that trains the model anew, without the search, quoted for the shell."""
    context = click.get_current_context()
    settings = {setting.name: getattr(selected.settings.recorded, setting.name) for setting in fields(TrainSettings)}
    searched = {dimension.name for dimension in selected.space}
    words = ["lmart", "train"]
    for option in context.command.params:
        name = option.name or ""
        if name in NOT_OF_THE_MODEL:
            continue
        flag = max(option.opts, key=len)
        value: Any
        if name in settings:
            value = settings[name]
            if name == "early_stop":
                said = value != 0  # 0 when the number of trees is chosen
            else:  # what was automatic and is filled in now holds for any number of rankers
                filled_in = setting(name).default is None and value is not None
                is_given = given_on_command_line(name) or name in settings_file().names
                said = is_given or name in searched or name == "trees" or filled_in
            if not said:
                continue
            value = AUTO if value is None else value
        elif given_on_command_line(name) or name == "out":
            value = context.params[name]
        else:
            continue
        if isinstance(value, bool):
            words += [flag if value else option.secondary_opts[0]]
        elif not isinstance(value, tuple):
            words += _valued(flag, str(value))
        elif all(_plain(entry) for entry in value):
            words += [flag, *value]
        else:
            words += [word for entry in value for word in _valued(flag, entry)]
    return shlex.join(words)


def _plain(value: str) -> bool:
    return value == "-" or not value.startswith("-")


def _valued(flag: str, value: str) -> list[str]:
    return [flag, value] if _plain(value) else [f"{flag}={value}"]
