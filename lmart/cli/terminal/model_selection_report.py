"""What `lmart train` reports of a selection by folds or trials: tables, the winner's command line, files."""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import click

from lmart.cli.model_selection import SelectedSettings
from lmart.cli.options.packed import given_on_command_line
from lmart.cli.options.settings_file import PARAMETER, given_by_file
from lmart.cli.terminal.console import Console
from lmart.cli.terminal.layout import Sheet, Table, shown, standard_output
from lmart.errors import counted
from lmart.settings import AUTO, TrainSettings, setting

if TYPE_CHECKING:
    from lmart.data.dataset import RankingDataset
    from lmart.streams import AtomicOutput
    from lmart.training.cross_validation import CrossValidation

NOT_OF_THE_MODEL = ("folds", "oof", "tune", "tune_trials", "tune_file", "report", "threads", "quiet", PARAMETER)
SURROGATE = re.compile("[\ud800-\udfff]")


def report(selected: SelectedSettings) -> dict[str, object]:
    """Return what --report says of the selection."""
    content: dict[str, object] = {}
    if selected.trials:
        from lmart.training.tuning import best_of

        best = best_of(selected.trials)
        content["tuning"] = {
            "searched": [one.name for one in selected.space],
            "trials": [one.to_json() for one in selected.trials],
            "best": None if best is None else best + 1,
        }
    if selected.cross_validation is not None:
        from lmart.training.cross_validation import LEVEL

        one = selected.cross_validation
        content["cross_validation"] = {
            "trees": one.trees,
            "rankers": one.n_rankers,
            "mean": one.mean,
            **({} if one.start is None else {"start": one.start}),
            "interval": None if one.interval is None else list(one.interval),
            "interval_is": f"of the mean, {LEVEL:.0%}, by Student's t over the folds, cut to what the measure can be",
            "standard_error_over_queries": one.standard_error,
            "folds": [
                {
                    "fold": number,
                    "queries": fold.n_queries,
                    "documents": fold.n_documents,
                    "measure": _or_none(fold.measure),
                    "best_round": fold.best_round,
                    "best": _or_none(fold.best),
                    "rounds": fold.rounds,
                }
                for number, fold in enumerate(one.folds, 1)
            ],
            "curve": one.curve.tolist(),
            "fold_of_query": (one.fold_of_query + 1).tolist(),
            "warnings": list(one.warnings),
        }
    return content


def json_text(content: Mapping[str, object]) -> str:
    """Return the report as strict JSON; bytes of a name that are no UTF-8 stand in it escaped, as in messages."""
    text = json.dumps(content, indent=1, allow_nan=False)
    if "\\ud" in text:  # perhaps a lone surrogate, which is what Python makes of such bytes
        text = json.dumps(_without_surrogates(content), indent=1, allow_nan=False)
    return text + "\n"


def _without_surrogates(value: object) -> object:
    if isinstance(value, str):
        return SURROGATE.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), value)
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_without_surrogates(one) for one in value]
    return value


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value


def write_out_of_fold(crossed: CrossValidation, dataset: RankingDataset, out: AtomicOutput) -> None:
    """Write the scores of the folds' models, one a row, in input order."""
    import numpy as np

    from lmart.formats.results.scores import write_scores

    scores = crossed.scores
    if dataset.input_rows is not None:
        scores = np.empty_like(scores)
        scores[dataset.input_rows] = crossed.scores
    write_scores(scores, out)


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
            ]
        )
    if selected.trials:
        if folds is not None:
            lines([""])
        table(*_trial_table(selected, metric))
        if alike := [one.name for one in selected.space if one.name not in _varying(selected)]:
            values = selected.trials[0].values
            told = ", ".join(f"{name.replace('_', '-')} {_cell(values[name])}" for name in alike)
            lines(["", f"in all trials: {told}"])
        none_needed = "no settings are better than the initial scores alone"
        lines(["", command_line(selected) if selected.winner.trees else none_needed])


def table_lines(columns: Sequence[str], rows: Sequence[Sequence[str]], sheet: Sheet) -> list[str]:
    """Return a table of numbers, in several blocks where the terminal is narrow.

    columns : their names
    rows    : cells
    sheet   : the output
    """
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


def _fold_table(crossed: CrossValidation, metric: str) -> tuple[list[str], list[list[str]]]:
    rows = [
        [
            str(n),
            str(one.n_queries),
            str(one.n_documents),
            shown(_or_none(one.measure)),
            shown(_or_none(one.best)),
            str(one.best_round * crossed.n_rankers),
        ]
        for n, one in enumerate(crossed.folds, 1)
    ]
    return ["fold", "queries", "documents", metric, "own best", "trees"], rows


def _trial_table(selected: SelectedSettings, metric: str) -> tuple[list[str], list[list[str]]]:
    from lmart.training.tuning import best_of

    best = best_of(selected.trials)
    names = _varying(selected)
    rows = [
        [
            f"{'* ' if place == best else ''}{place + 1}",
            "failed" if one.measure is None else f"{one.measure:.6f}",
            str(one.trees),
            *(_cell(one.values[name]) for name in names),
        ]
        for place, one in enumerate(selected.trials)
    ]
    return ["trial", metric, "trees", *(name.replace("_", "-") for name in names)], rows


def _varying(selected: SelectedSettings) -> list[str]:
    """Return the searched settings that are not the same in all trials."""
    names = [one.name for one in selected.space]
    return [name for name in names if len({_cell(one.values[name]) for one in selected.trials}) > 1]


def _cell(value: object) -> str:
    if value is None:
        return AUTO
    return ("no", "yes")[value] if isinstance(value, bool) else str(value)


def command_line(selected: SelectedSettings) -> str:
    """Return the command that trains the model anew, without the search, quoted for the shell."""
    context = click.get_current_context()
    settings = {one.name: getattr(selected.settings.recorded, one.name) for one in fields(TrainSettings)}
    searched = {one.name for one in selected.space}
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
                given = given_on_command_line(name) or given_by_file(name)
                said = given or name in searched or name == "trees" or filled_in
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
        elif all(_plain(one) for one in value):
            words += [flag, *value]
        else:
            words += [word for one in value for word in _valued(flag, one)]
    return shlex.join(words)


def _plain(value: str) -> bool:
    return value == "-" or not value.startswith("-")


def _valued(flag: str, value: str) -> list[str]:
    return [flag, value] if _plain(value) else [f"{flag}={value}"]
