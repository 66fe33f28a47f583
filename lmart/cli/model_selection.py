"""What `lmart train` does before it trains the model: find the number of trees by folds, or settings by trials."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from lmart.cli.options.idle import without_meaning
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

    @property
    def chooses(self) -> bool:
        """Whether anything is chosen before the model is trained."""
        return self.folds is not None or self.tunes


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
        given = tuple(one.name for one in setting_fields() if stood_there(one.name))
        return function(*args, choosing=Choosing(folds, oof, tune, tune_trials, tune_file, given), **others)

    wrapped: Callable[..., Any] = packed
    for option in reversed(_OPTIONS):
        wrapped = option(wrapped)
    return wrapped


def stood_there(name: str) -> bool:
    """Say whether an option of the command stood on the command line."""
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
    if choosing.chooses and len(settings.objectives) > 1:
        raise click.UsageError("--folds and --tune choose one number of trees, so they take a single --objective")
    if outputs.get("--tune-file") == "-":
        raise click.UsageError("--tune-file must be a file: it is read and written")
    places: dict[str, str] = {}
    for option, path in outputs.items():
        standard = path in ("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")
        other = places.setdefault("-" if standard else os.path.realpath(path), option)
        if other != option:
            raise click.UsageError(f"{option} and {other} are the same file")
    if choosing.tunes:
        from lmart.training.tuning import dimensions, load_optuna

        if not dimensions((*choosing.given, *without_meaning(settings))):
            raise click.UsageError("every setting that --tune searches is given; leave some open")
        load_optuna()


def measured(
    train_set: RankingDataset,
    judge: tuple[RankingDataset, Sidecars] | None,
    choosing: Choosing,
    pool: WorkerPool,
    sidecars: Sidecars,
) -> Measured:
    """Return what settings are measured by; `judge` is the first validation set, and what stands beside it."""
    from lmart.training.tuning import Measured

    if choosing.folds or judge is None:
        return Measured(train_set, None, choosing.folds, pool, sidecars)
    return Measured(train_set, judge[0], None, pool, sidecars, judge[1])


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
    from lmart.training.cross_validation import cross_validate

    side_by_side = bool(settings.early_stop)
    total, unit = (settings.trees, "rounds") if side_by_side else (n_folds, "folds")
    with console.progress(total, unit) as progress:
        done = 0
        latest: dict[int, float] = {}

        def tell_of_mean() -> None:
            if done:
                mean = sum(latest.values()) / max(1, len(latest))
                progress.update(done, f"mean {settings.metric} {mean:.6f} over folds")

        def on_round(fold: int, one: RoundReport) -> None:
            nonlocal done
            if not side_by_side:
                progress.update(fold, lambda: _said(one, settings, fold))
                return
            if one.round > done:  # all folds have had the round before
                tell_of_mean()
                done = one.round
            if one.validation[0] is not None:
                latest[fold] = one.validation[0]

        found = cross_validate(measured.train_set, n_folds, settings, measured.pool, on_round, measured.sidecars)
        if side_by_side:
            tell_of_mean()
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
        tell_of_end(found.trees, settings.trees, settings.early_stop, f"mean {settings.metric} over folds", console)
    return found


def tell_of_end(best: int, grown: int, patience: int, what: str, console: Console) -> None:
    """Say so when a run used up --trees while a measure was still getting better, or was not yet known to be at its
    best: `best` of `grown` rounds. `patience` is that of --early-stop, 0 without.
    """
    if best > max(1, grown - max(1, grown // 10)):
        at = "" if best == grown else f" (best at {best:,})"
        console.notice(f"{what} was still getting better after {counted(grown, 'tree')}{at}: try more --trees")
    elif best > max(0, grown - patience):
        console.notice(f"--early-stop {patience} did not end the run: {what} is best at {best:,} of {grown:,} trees")


def _said(one: RoundReport, settings: TrainSettings, fold: int) -> str:
    value = "n/a" if one.validation[0] is None else f"{one.validation[0]:.6f}"
    return f"fold {fold + 1} at {counted(one.round, 'tree')}, {settings.metric} {value}"


def _tuned(choosing: Choosing, settings: TrainSettings, measured: Measured, console: Console) -> Chosen:
    from lmart.formats.trial_log import TrialsFile
    from lmart.training.tuning import best_of, dimensions, read_trial, search

    base = replace(settings, early_stop=_patience(choosing, settings))
    space = dimensions((*choosing.given, *without_meaning(settings)))
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
            if choosing.folds is not None:
                head["stopping"] = "by the mean over folds"
            file = stack.enter_context(TrialsFile(choosing.tune_file, head))
            console.kept = file.path
            trials = [read_trial(record, space, file.path, line) for line, record in enumerate(file.records, 2)]
            if trials:
                console.notice(f"going on after {counted(len(trials), 'trial')} in {file.path}")
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
            tell(f"with {counted(one.round, 'tree')}" if choosing.folds is None else _said(one, settings, fold))

        found = search(measured, base, space, trials, choosing.tune_trials, seconds, on_trial, on_round)
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
    return Chosen(final, None, found, space)
