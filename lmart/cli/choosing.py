"""What `lmart train` does before it trains the model: find the number of trees by folds, or settings by trials."""

from __future__ import annotations

import functools
import os
import shlex
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from lmart.cli.console import Console
from lmart.cli.options import Real, Whole
from lmart.settings import TrainSettings

if TYPE_CHECKING:
    from lmart.boosting import RoundReport
    from lmart.crossvalidation import CrossValidation
    from lmart.dataset import RankingDataset
    from lmart.streams import AtomicOutput
    from lmart.threads import WorkerPool
    from lmart.tuning import Dimension, Measured, Trial

PATIENCE = 50  # of --early-stop in trials when it is not given
NOT_OF_THE_MODEL = ("folds", "oof", "tune", "tune_trials", "tune_file", "early_stop", "report", "threads", "quiet")

_OPTIONS = (
    click.option(
        "--folds",
        type=Whole(min=2),
        metavar="K",
        help="Cross-validate first: deal the queries to K folds, train K models that each leave one fold out, and "
        "measure each on the queries it did not see. The model is then trained on all data with the number of trees "
        "that has the best mean measure over the folds.",
    ),
    click.option(
        "--oof",
        metavar="FILE",
        help="Write what --folds gives each row: the score by the model that did not see its query, one number a row, "
        "in input order.",
    ),
    click.option(
        "--tune",
        type=Real(min=0, min_open=True),
        metavar="MINUTES",
        help="Search for settings first, for so long, by the measure of --folds, or of the first --valid file. "
        "Settings given on the command line stay as they are; --trees is the most that a trial may grow.",
    ),
    click.option(
        "--tune-trials",
        type=Whole(min=1),
        metavar="N",
        help="Search until N settings were tried; the result then does not depend on time. With --tune: whichever "
        "comes first.",
    ),
    click.option(
        "--tune-file",
        metavar="FILE",
        help="Keep what was tried in FILE, from trial to trial; the same command goes on from there.",
    ),
)


@dataclass(frozen=True)
class Choosing:
    """What the options ask for; `given` are the settings that stood on the command line."""

    folds: int | None
    oof: str | None
    tune: float | None
    tune_trials: int | None
    tune_file: str | None
    given: tuple[str, ...]

    @property
    def tunes(self) -> bool:
        return self.tune is not None or self.tune_trials is not None


@dataclass(frozen=True)
class Chosen:
    """The settings that the model is trained with, and what they were chosen by."""

    settings: TrainSettings
    crossed: CrossValidation | None = None
    trials: Sequence[Trial] = ()
    space: Sequence[Dimension] = ()


def choosing_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options; the command gets them packed as the keyword `choosing: Choosing`."""

    @functools.wraps(function)
    def packed(
        *args: Any,
        folds: int | None,
        oof: str | None,
        tune: float | None,
        tune_trials: int | None,
        tune_file: str | None,
        **others: Any,
    ) -> Any:
        given = tuple(one.name for one in fields(TrainSettings) if _stood_there(one.name))
        return function(*args, choosing=Choosing(folds, oof, tune, tune_trials, tune_file, given), **others)

    wrapped: Callable[..., Any] = packed
    for option in reversed(_OPTIONS):
        wrapped = option(wrapped)
    return wrapped


def _stood_there(name: str) -> bool:
    return click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE


def check_usage(choosing: Choosing, settings: TrainSettings, valid: Sequence[str], outputs: dict[str, str]) -> None:
    """Raise a usage error when options do not go together; `outputs` are the outputs by option."""
    if choosing.oof is not None and choosing.folds is None:
        raise click.UsageError("--oof needs --folds: without, every model has seen every query")
    if choosing.tune_file is not None and not choosing.tunes:
        raise click.UsageError("--tune-file needs --tune or --tune-trials")
    if choosing.tunes and choosing.folds is None and not valid:
        raise click.UsageError("--tune needs --folds K or a --valid file to measure")
    if settings.early_stop and not valid and choosing.folds is None:
        raise click.UsageError("--early-stop needs a --valid file or --folds to measure")
    if outputs.get("--tune-file") == "-":
        raise click.UsageError("--tune-file must be a file: it is read and written")
    places: dict[str, str] = {}
    for option, path in outputs.items():
        other = places.setdefault("-" if path == "-" else os.path.realpath(path), option)
        if other != option:
            raise click.UsageError(f"{option} and {other} are the same file")
    if choosing.tunes:
        from lmart.tuning import dimensions, load_optuna

        if not dimensions(choosing.given):
            raise click.UsageError("every setting that --tune searches is given; leave some open")
        load_optuna()


def measured(
    train_set: RankingDataset, judge: RankingDataset | None, choosing: Choosing, pool: WorkerPool, weights: Any
) -> Measured:
    """Return what settings are measured by; `judge` is the first validation set."""
    from lmart.tuning import Measured

    return Measured(train_set, None if choosing.folds else judge, choosing.folds, pool, weights)


def choose(
    choosing: Choosing, settings: TrainSettings, measured: Measured, console: Console, in_detail: bool
) -> Chosen:
    """Return the settings to train the model with: as given, but for what --folds and --tune choose.

    in_detail : after a search by folds, cross-validate the winner once more, to tell all about it
    """
    chosen = Chosen(settings)
    if choosing.tunes:
        chosen = _tuned(choosing, settings, measured, console)
        if choosing.folds is None or not in_detail:
            return chosen
        settings = replace(chosen.settings, trees=settings.trees, early_stop=_patience(choosing, settings))
    if choosing.folds is not None:
        crossed = _crossed(choosing.folds, settings, measured, console)
        final = replace(settings, trees=crossed.trees, early_stop=0)
        return replace(chosen, settings=final, crossed=crossed)
    return chosen


def _patience(choosing: Choosing, settings: TrainSettings) -> int:
    return settings.early_stop if "early_stop" in choosing.given else PATIENCE


def _crossed(n_folds: int, settings: TrainSettings, measured: Measured, console: Console) -> CrossValidation:
    from lmart.crossvalidation import cross_validate

    with console.progress(n_folds, "folds") as progress:
        done = 0

        def on_round(fold: int, one: RoundReport) -> None:
            nonlocal done
            done = max(done, fold)  # a fold that stopped early may go on when all have had their turn
            progress.update(done, lambda: _said(one, settings, fold))

        found = cross_validate(measured.train_set, n_folds, settings, measured.pool, on_round, measured.weights)
        progress.update(n_folds)
    for text in found.warnings:
        console.warning(text)
    console.notice(
        f"{n_folds} folds: {settings.metric} {found.mean:.6f} with {_trees(found.trees)}, which were chosen on the "
        "same queries; only other data tells how good the model is"
    )
    return found


def _said(one: RoundReport, settings: TrainSettings, fold: int) -> str:
    value = one.validation[0]
    return f"fold {fold + 1} at {_trees(one.round)}, {settings.metric} {'n/a' if value is None else f'{value:.6f}'}"


def _trees(number: int) -> str:
    return f"{number:,} tree" + ("" if number == 1 else "s")


def _tuned(choosing: Choosing, settings: TrainSettings, measured: Measured, console: Console) -> Chosen:
    from lmart.formats.trials import TrialsFile
    from lmart.tuning import best_of, dimensions, read_trial, search

    base = replace(settings, early_stop=_patience(choosing, settings))
    space = dimensions(choosing.given)
    seconds = None if choosing.tune is None else choosing.tune * 60
    trials: list[Trial] = []
    with ExitStack() as stack:
        file = None
        if choosing.tune_file is not None:
            head = {
                "data": measured.digest(),
                "settings": base.to_json(),
                "folds": choosing.folds,
                "search": [[one.name, one.low, one.high, one.log, list(one.choices)] for one in space],
            }
            file = stack.enter_context(TrialsFile(choosing.tune_file, head))
            trials = [read_trial(record, space, file.path, line) for line, record in enumerate(file.records, 2)]
            if trials:
                count = f"{len(trials):,} trial" + ("" if len(trials) == 1 else "s")
                console.notice(f"going on after {count} in {file.path}")
        total = choosing.tune_trials or max(1, round(seconds or 0))
        progress = stack.enter_context(console.progress(total, "trials" if choosing.tune_trials else "seconds"))
        began = time.monotonic() - sum(one.seconds for one in trials)

        def tell(said: str = "") -> None:
            done = len(trials) if choosing.tune_trials else round(time.monotonic() - began)
            best = best_of(trials)
            known = "" if best is None else f"best {settings.metric} {trials[best].measure:.6f}"
            text = f"trial {len(trials) + 1}" + (f" {said}" if said else "")
            progress.update(min(done, total - 1), ", ".join(filter(None, (text, known))))

        def on_trial(trial: Trial) -> None:
            trials.append(trial)
            if file is not None:
                file.append(trial.to_json())
            tell()

        def on_round(fold: int, one: RoundReport) -> None:
            tell(f"with {_trees(one.round)}" if choosing.folds is None else _said(one, settings, fold))

        found = search(measured, base, space, trials, choosing.tune_trials, seconds, on_trial, on_round)
        progress.update(total)
    best = best_of(found)
    assert best is not None  # the first trial fails as a whole, or has a measure
    winner = found[best]
    console.notice(
        f"trial {best + 1} of {len(found):,} is best: {settings.metric} {winner.measure:.6f} with "
        f"{_trees(winner.trees)}; being the best of many it looks better than it is, so measure it on other data"
    )
    final = replace(settings, **winner.values, trees=winner.trees, early_stop=0)
    return Chosen(final, None, found, space)


def report(chosen: Chosen) -> dict[str, Any]:
    """Return what --report says of the choice."""
    content: dict[str, Any] = {}
    if chosen.trials:
        from lmart.tuning import best_of

        best = best_of(chosen.trials)
        content["tuning"] = {
            "searched": [one.name for one in chosen.space],
            "trials": [one.to_json() for one in chosen.trials],
            "best": None if best is None else best + 1,
        }
    if chosen.crossed is not None:
        from lmart.crossvalidation import LEVEL

        one = chosen.crossed
        content["cross_validation"] = {
            "trees": one.trees,
            "mean": one.mean,
            "interval": list(one.interval),
            "interval_is": f"of the mean, {LEVEL:.0%}, by Student's t over the folds",
            "standard_error_over_queries": one.standard_error,
            "folds": [
                {
                    "fold": number,
                    "queries": fold.n_queries,
                    "documents": fold.n_documents,
                    "measure": fold.measure,
                    "best_round": fold.best_round,
                    "best": fold.best,
                    "rounds": fold.rounds,
                }
                for number, fold in enumerate(one.folds, 1)
            ],
            "curve": one.curve.tolist(),
            "fold_of_query": (one.fold_of_query + 1).tolist(),
            "warnings": list(one.warnings),
        }
    return content


def write_out_of_fold(crossed: CrossValidation, dataset: RankingDataset, out: AtomicOutput) -> None:
    """Write the scores of the folds' models, one a row, in input order."""
    import numpy as np

    from lmart.formats.scores import write_scores

    scores = crossed.scores
    if dataset.input_rows is not None:
        scores = np.empty_like(scores)
        scores[dataset.input_rows] = crossed.scores
    write_scores(scores, out)


def print_results(chosen: Chosen, console: Console, to_output: bool) -> None:
    """Print the tables and the winner's command line: to standard output, or, when that is taken, as notices."""
    from lmart.cli.tables import print_table, table_lines

    def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        if to_output:
            print_table(columns, rows)
        else:
            lines(table_lines(columns, rows))

    def lines(texts: Sequence[str]) -> None:
        for text in texts:
            if to_output:
                click.echo(text)
            else:
                console.notice(text)

    metric = chosen.settings.metric
    if chosen.crossed is not None:
        table(*_fold_table(chosen.crossed, metric))
        low, high = chosen.crossed.interval
        lines(
            [
                "",
                f"mean      {chosen.crossed.mean:.6f} with {_trees(chosen.crossed.trees)}",
                f"interval  {low:.6f} to {high:.6f} (95%, Student's t over folds)",
                f"error     {chosen.crossed.standard_error:.6f} (standard error over queries)",
            ]
        )
    if chosen.trials:
        if chosen.crossed is not None:
            lines([""])
        table(*_trial_table(chosen, metric))
        lines(["", command_line(chosen)])


def _fold_table(crossed: CrossValidation, metric: str) -> tuple[list[str], list[list[str]]]:
    rows = [
        [str(n), str(one.n_queries), str(one.n_documents), f"{one.measure:.6f}", f"{one.best:.6f}", str(one.best_round)]
        for n, one in enumerate(crossed.folds, 1)
    ]
    return ["fold", "queries", "documents", metric, "own best", "trees"], rows


def _trial_table(chosen: Chosen, metric: str) -> tuple[list[str], list[list[str]]]:
    from lmart.tuning import best_of

    best = best_of(chosen.trials)
    names = [one.name for one in chosen.space]
    rows = [
        [
            f"{'* ' if place == best else ''}{place + 1}",
            "failed" if one.measure is None else f"{one.measure:.6f}",
            str(one.trees),
            *(_cell(one.values[name]) for name in names),
        ]
        for place, one in enumerate(chosen.trials)
    ]
    return ["trial", metric, "trees", *(name.replace("_", "-") for name in names)], rows


def _cell(value: Any) -> str:
    return ("no", "yes")[value] if isinstance(value, bool) else str(value)


def command_line(chosen: Chosen) -> str:
    """Return the command that trains the model anew, without the search, quoted for the shell."""
    context = click.get_current_context()
    settings = {one.name: getattr(chosen.settings, one.name) for one in fields(TrainSettings)}
    searched = {one.name for one in chosen.space}
    words = ["lmart", "train"]
    for option in context.command.params:
        name = option.name or ""
        if name in NOT_OF_THE_MODEL:
            continue
        flag = max(option.opts, key=len)
        value: Any
        if name in settings:
            if not (_stood_there(name) or name in searched or name == "trees"):
                continue
            value = settings[name]
            value = "auto" if value is None else value
        elif _stood_there(name) or name == "out":
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
