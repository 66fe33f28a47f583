"""What `lmart train` does before it trains the model: find the number of trees by folds, or settings by trials."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from lmart.cli.options.idle import without_meaning
from lmart.cli.options.packed import given_on_command_line, packed
from lmart.cli.options.types import Real, Whole
from lmart.cli.terminal.console import Console
from lmart.errors import counted
from lmart.settings import TrainSettings
from lmart.settings import options as setting_fields

if TYPE_CHECKING:
    from lmart.data.dataset import RankingDataset
    from lmart.data.metadata import Sidecars
    from lmart.threads import WorkerPool
    from lmart.training.cross_validation import CrossValidation
    from lmart.training.rankers import RoundReport
    from lmart.training.tuning import Dimension, Measured, Trial

PATIENCE = 50  # of --early-stop in trials when it is not given

_OPTIONS = (
    click.option(
        "--folds",
        type=Whole(min=2),
        metavar="K",
        help="Cross-validate first: split the queries into K folds, train K models that each leave one fold out, and "
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
class SelectionOptions:
    """What the options ask for; `given` are the settings that are given on the command line."""

    folds: int | None
    oof: str | None
    tune: float | None
    tune_trials: int | None
    tune_file: str | None
    given: tuple[str, ...]

    @property
    def tunes(self) -> bool:
        return self.tune is not None or self.tune_trials is not None

    @property
    def selects(self) -> bool:
        """Whether anything is chosen before the model is trained."""
        return self.folds is not None or self.tunes


@dataclass(frozen=True)
class SelectedSettings:
    """The settings that the model is trained with, and what they were selected by."""

    settings: TrainSettings
    crossed: CrossValidation | None = None
    trials: Sequence[Trial] = ()
    space: Sequence[Dimension] = ()


def _selection_options(**values: Any) -> SelectionOptions:
    given = tuple(one.name for one in setting_fields() if given_on_command_line(one.name))
    return SelectionOptions(**values, given=given)


_NAMES = ("folds", "oof", "tune", "tune_trials", "tune_file")
selection_options = packed("selection", _selection_options, _NAMES, _OPTIONS)
"""Add the options; the command gets them packed as the keyword `selection: SelectionOptions`."""


def check_usage(
    selection: SelectionOptions, settings: TrainSettings, valid: Sequence[str], outputs: dict[str, str]
) -> None:
    """Raise a usage error when options do not go together; `outputs` are the outputs by option."""
    if selection.oof is not None and selection.folds is None:
        raise click.UsageError("--oof needs --folds: without, every model has seen every query")
    if selection.tune_file is not None and not selection.tunes:
        raise click.UsageError("--tune-file needs --tune or --tune-trials")
    if selection.tunes and selection.folds is None and not valid:
        raise click.UsageError("--tune needs --folds K or a --valid file to measure")
    if settings.early_stop and not valid and selection.folds is None:
        raise click.UsageError("--early-stop needs a --valid file or --folds to measure")
    if selection.selects and len(settings.objectives) > 1:
        raise click.UsageError("--folds and --tune choose one number of trees, so they take a single --objective")
    if outputs.get("--tune-file") == "-":
        raise click.UsageError("--tune-file must be a file: it is read and written")
    places: dict[str, str] = {}
    for option, path in outputs.items():
        standard = path in ("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")
        other = places.setdefault("-" if standard else os.path.realpath(path), option)
        if other != option:
            raise click.UsageError(f"{option} and {other} are the same file")
    if selection.tunes:
        from lmart.training.tuning import dimensions, load_optuna

        if not dimensions((*selection.given, *without_meaning(settings))):
            raise click.UsageError("every setting that --tune searches is given; leave some open")
        load_optuna()


def selection_data(
    train_set: RankingDataset,
    validation: tuple[RankingDataset, Sidecars] | None,
    selection: SelectionOptions,
    pool: WorkerPool,
    metadata: Sidecars,
) -> Measured:
    """Return what settings are measured by; `validation` is the first validation set with its metadata."""
    from lmart.training.tuning import Measured

    if selection.folds or validation is None:
        return Measured(train_set, None, selection.folds, pool, metadata)
    return Measured(train_set, validation[0], None, pool, metadata, validation[1])


def select_settings(
    selection: SelectionOptions, settings: TrainSettings, measured: Measured, console: Console, in_detail: bool
) -> SelectedSettings:
    """Return the settings to train the model with: as given, but for what --folds and --tune choose.

    in_detail : after a search by folds, cross-validate the winner once more, to report it in detail
    """
    selected = SelectedSettings(settings)
    if selection.tunes:
        selected = _tuned(selection, settings, measured, console)
        if selection.folds is None or not in_detail:
            return selected
        settings = replace(selected.settings, trees=settings.trees, early_stop=_patience(selection, settings))
    if selection.folds is not None:
        crossed = _crossed(selection.folds, settings, measured, console)
        final = replace(settings, trees=crossed.trees, early_stop=0)
        return replace(selected, settings=final, crossed=crossed)
    return selected


def _patience(selection: SelectionOptions, settings: TrainSettings) -> int:
    return settings.early_stop if "early_stop" in selection.given else PATIENCE


def _crossed(n_folds: int, settings: TrainSettings, measured: Measured, console: Console) -> CrossValidation:
    from lmart.training.cross_validation import cross_validate

    side_by_side = bool(settings.early_stop)
    total, unit = (settings.trees, "rounds") if side_by_side else (n_folds, "folds")
    with console.progress(total, unit) as progress:
        done = 0
        latest: dict[int, float] = {}

        def show_mean() -> None:
            if done:
                mean = sum(latest.values()) / max(1, len(latest))
                progress.update(done, f"mean {settings.metric} {mean:.6f} over folds")

        def on_round(fold: int, one: RoundReport) -> None:
            nonlocal done
            if not side_by_side:
                progress.update(fold, lambda: _fold_progress(one, settings, fold))
                return
            if one.round > done:  # all folds have had the round before
                show_mean()
                done = one.round
            if one.validation[0] is not None:
                latest[fold] = one.validation[0]

        found = cross_validate(measured.train_set, n_folds, settings, measured.pool, on_round, measured.sidecars)
        if side_by_side:
            show_mean()
        else:
            progress.update(n_folds)
    for text in found.warnings:
        console.warning(text)
    if found.start is not None:
        console.notice(f"the initial scores alone: {settings.metric} {found.start:.6f} over {n_folds} folds")
        if not found.trees:
            console.warning("no round is better than the initial scores alone, so the model will hold no tree")
    console.notice(
        f"{n_folds} folds: {settings.metric} {found.mean:.6f} with {counted(found.trees, 'tree')}, which were chosen "
        "on the same queries; only other data tells how good the model is"
    )
    if not found.stopped and len(found.curve) == settings.trees:
        report_unfinished(
            found.trees, settings.trees, settings.early_stop, f"mean {settings.metric} over folds", console
        )
    return found


def report_unfinished(best: int, grown: int, patience: int, what: str, console: Console) -> None:
    """Say so when a run used up --trees while a measure was still getting better, or was not yet known to be at its
    best: `best` of `grown` rounds. `patience` is that of --early-stop, 0 without.
    """
    if best > max(1, grown - max(1, grown // 10)):
        at = "" if best == grown else f" (best at {best:,})"
        console.notice(f"{what} was still getting better after {counted(grown, 'tree')}{at}: try more --trees")
    elif best > max(0, grown - patience):
        console.notice(f"--early-stop {patience} did not end the run: {what} is best at {best:,} of {grown:,} trees")


def _fold_progress(one: RoundReport, settings: TrainSettings, fold: int) -> str:
    value = "n/a" if one.validation[0] is None else f"{one.validation[0]:.6f}"
    return f"fold {fold + 1} at {counted(one.round, 'tree')}, {settings.metric} {value}"


def _tuned(
    selection: SelectionOptions, settings: TrainSettings, measured: Measured, console: Console
) -> SelectedSettings:
    from lmart.formats.trial_log import TrialsFile
    from lmart.training.tuning import best_of, dimensions, read_trial, search

    base = replace(settings, early_stop=_patience(selection, settings))
    space = dimensions((*selection.given, *without_meaning(settings)))
    seconds = None if selection.tune is None else selection.tune * 60
    trials: list[Trial] = []
    with ExitStack() as stack:
        file = None
        if selection.tune_file is not None:
            head = {
                "data": measured.digest(),
                "settings": base.to_json(),
                "folds": selection.folds,
                "search": [[one.name, one.low, one.high, one.log, list(one.choices)] for one in space],
            }
            if selection.folds is not None:
                head["stopping"] = "by the mean over folds"
            file = stack.enter_context(TrialsFile(selection.tune_file, head))
            console.kept = file.path
            trials = [read_trial(record, space, file.path, line) for line, record in enumerate(file.records, 2)]
            if trials:
                console.notice(f"going on after {counted(len(trials), 'trial')} in {file.path}")
        total = selection.tune_trials or max(1, round(seconds or 0))
        progress = stack.enter_context(console.progress(total, "trials" if selection.tune_trials else "seconds"))
        began = time.monotonic() - sum(one.seconds for one in trials)

        def show(state: str = "") -> None:
            done = len(trials) if selection.tune_trials else round(time.monotonic() - began)
            best = best_of(trials)
            known = "" if best is None else f"best {settings.metric} {trials[best].measure:.6f}"
            text = f"trial {len(trials) + 1}" + (f" {state}" if state else "")
            progress.update(min(done, total - 1), ", ".join(filter(None, (text, known))))

        def on_trial(trial: Trial) -> None:
            trials.append(trial)
            if file is not None:
                file.append(trial.to_json())
            show()

        def on_round(fold: int, one: RoundReport) -> None:
            show(
                f"with {counted(one.round, 'tree')}" if selection.folds is None else _fold_progress(one, settings, fold)
            )

        found = search(measured, base, space, trials, selection.tune_trials, seconds, on_trial, on_round)
        progress.update(total)
    best = best_of(found)
    assert best is not None  # the first trial fails as a whole, or has a measure
    winner = found[best]
    console.notice(
        f"trial {best + 1} of {len(found):,} is best: {settings.metric} {winner.measure:.6f} with "
        f"{counted(winner.trees, 'tree')}; being the best of many it looks better than it is, so measure it on other "
        "data"
    )
    if winner.trees == settings.trees:
        console.notice(f"the best trial took all of its {counted(winner.trees, 'tree')}: try more --trees")
    final = replace(settings, **winner.values, trees=winner.trees, early_stop=0)
    return SelectedSettings(final, None, found, space)
