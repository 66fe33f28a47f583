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
from lmart.cli.terminal.layout import Sheet, Table, shown, standard_output
from lmart.errors import counted, input_name
from lmart.settings import AUTO, TrainSettings, setting
from lmart.settings.recipe import PLAIN
from lmart.training import remarks

if TYPE_CHECKING:
    from lmart.data.dataset import DataSize
    from lmart.settings.resolved import RankerSettings, ResolvedSettings
    from lmart.training.boosting import BoostingRun
    from lmart.training.continuation import Continuation, Difference
    from lmart.training.cross_validation import CrossValidation
    from lmart.training.remarks import Remark
    from lmart.training.train_result import TrainResult

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


def describe(dataset: DataSize, share: float) -> str:
    """Return how large the training set is, and which `share` of its rows each tree is grown from."""
    documents, features = counted(dataset.n_documents, "document"), counted(dataset.n_features, "feature")
    sampled = f"; each tree is grown from {share:.0%} of the documents (--sample)" if share < 1 else ""
    return f"read {documents} of {counted(dataset.n_queries, 'query', 'queries')} with {features}{sampled}"


def report_automatic(requested: TrainSettings, settings: ResolvedSettings, tunes: bool, console: Console) -> None:
    """Report the rankers of the model, and which settings of theirs were chosen automatically."""
    automatic = (requested.objective, requested.leaves)
    if tunes or (None not in automatic and len(settings.rankers) == 1):
        return
    described = [_describe_ranker(ranker) for ranker in settings.rankers]
    linear = f"; a linear ranker of weight {settings.linear:g}" if settings.linear else ""
    why = f"auto: {counted(settings.facts.n_queries, 'query', 'queries')}, {counted(settings.trees, 'tree')}"
    is_default = requested.rankers is None and requested.objective is None
    instead = f"; --rankers 1 trains {PLAIN.objective} alone"
    if len(described) == 1:
        is_plain = settings.rankers[0].objective.name == PLAIN.objective
        console.notice(f"{described[0]} ({why}){linear}{instead if is_default and not is_plain else ''}")
    else:
        most = f"{'up to ' if settings.shares_trees else ''}{len(described)} rankers"
        if is_default:
            better = "which ranks better on public data than a single ranker with as many trees"
            console.notice(f"by default trains {most} and averages them, {better}{instead}")
        chosen = f" ({why})" if None in automatic else ""
        console.notice(f"the mean of {most}{chosen}: {'; '.join(described)}{linear}")


def _describe_ranker(settings: RankerSettings) -> str:
    """Describe a ranker in a few words."""
    tree = settings.tree
    form = "" if tree.form.is_usual else f"{tree.form.name} trees of "
    features = f" and {settings.feature_rate:.3g} of the features" if settings.feature_rate < 1 else ""
    return f"{settings.objective.name} with {form}{counted(tree.max_leaves, 'leaf', 'leaves')}{features}"


def measures_by_set(training: float | None, validation: Sequence[float | None], valid: Sequence[str]) -> str:
    """Return the measure of the training set and of each validation set."""
    sets = [("training", training), *zip(valid, validation, strict=True)]
    return ", ".join(f"{shown(value)} on {name}" for name, value in sets)


def summary(result: TrainResult, settings: ResolvedSettings, valid: Sequence[str], out: str, seconds: float) -> str:
    """Return how many trees were written, how long it took, and their measures."""
    measures = measures_by_set(result.training, result.validation, valid)
    n_linear = 0 if result.linear is None else result.linear.trees
    trees = counted(len(result.ensemble.trees) - n_linear, "tree")
    best = f" (best of {result.rounds} rounds)" if result.n_trees < result.rounds else ""
    if len(result.rankers) > 1:
        best = f" of {len(result.rankers)} rankers" + (best and f" (of {result.rounds} grown)")
    if result.continued_from is not None:
        best = f", {result.n_trees:,} of them new{best}"
    if n_linear:
        best += f" and {n_linear:,} of a linear ranker"
    return f"wrote {trees}{best} to {out} in {duration(seconds)}; {settings.measure} {measures}"


def duration(seconds: float) -> str:
    """Return a time in words, such as `12.3 s`, `5 min 7 s` or `2 h 0 min`."""
    if seconds < 99.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def continuing(continuation: Continuation, differences: Sequence[Difference]) -> str:
    """Return which model the run continues, and why one run of all rounds would not give the same model."""
    what = f"going on from {input_name(continuation.path)} with {counted(continuation.n_trees, 'tree')}"
    if not differences:
        return what
    why = "; ".join(difference.text for difference in differences)
    return f"{what}; one run of all rounds would not give the same: {why}"


def warn_before_training(run: BoostingRun, dataset: DataSize, weighted: bool, console: Console) -> None:
    """Report how many queries have no pair of documents to learn from."""
    _report(remarks.before_training(run, dataset, weighted), console)


def warn_after_training(
    result: TrainResult, settings: ResolvedSettings, n_features: int, can_learn: bool, console: Console
) -> None:
    """Report what kept the run from learning, or from learning more."""
    _report(remarks.after_training(result, settings, n_features, can_learn), console)


def _report(found: Iterable[Remark], console: Console) -> None:
    for remark in found:
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
            ]
        )
    if selected.trials:
        if folds is not None:
            lines([""])
        table(*_trial_table(selected, metric))
        if alike := [dimension.name for dimension in selected.space if dimension.name not in _varying(selected)]:
            values = selected.trials[0].values
            values_of_all = ", ".join(f"{name.replace('_', '-')} {_cell(values[name])}" for name in alike)
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


def _fold_table(crossed: CrossValidation, metric: str) -> tuple[list[str], list[list[str]]]:
    rows = [
        [
            crossed.names[n - 1] if crossed.names else str(n),
            str(fold.n_queries),
            str(fold.n_documents),
            shown(None if math.isnan(fold.measure) else fold.measure),
            shown(None if math.isnan(fold.best) else fold.best),
            str(fold.best_round * crossed.n_rankers),
        ]
        for n, fold in enumerate(crossed.folds, 1)
    ]
    return ["fold", "queries", "documents", metric, "own best", "trees"], rows


def _trial_table(selected: SelectedSettings, metric: str) -> tuple[list[str], list[list[str]]]:
    from lmart.training.tuning import best_of

    best = best_of(selected.trials)
    names = _varying(selected)
    rows = [
        [
            f"{'* ' if place == best else ''}{place + 1}",
            "failed" if trial.measure is None else f"{trial.measure:.6f}",
            str(trial.trees),
            *(_cell(trial.values[name]) for name in names),
        ]
        for place, trial in enumerate(selected.trials)
    ]
    return ["trial", metric, "trees", *(name.replace("_", "-") for name in names)], rows


def _varying(selected: SelectedSettings) -> list[str]:
    """Return the searched settings that are not the same in all trials."""
    names = [dimension.name for dimension in selected.space]
    return [name for name in names if len({_cell(trial.values[name]) for trial in selected.trials}) > 1]


def _cell(value: object) -> str:
    if value is None:
        return AUTO
    return ("no", "yes")[value] if isinstance(value, bool) else str(value)


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
