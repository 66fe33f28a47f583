"""What `lmart train` does before it trains the model: find the number of trees by folds, or settings by trials."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from lmart.cli.terminal.console import Console
from lmart.cli.terminal.training_progress import FoldProgress, TrialProgress
from lmart.cli.train_request import SelectionOptions, searched
from lmart.errors import counted
from lmart.reports import narration
from lmart.settings.resolved import ResolvedSettings, resolve
from lmart.settings.train_settings import TrainSettings
from lmart.training import remarks
from lmart.training.search_space import TRIAL_PATIENCE

if TYPE_CHECKING:
    from lmart.data.dataset import RankingDataset
    from lmart.data.metadata import Metadata
    from lmart.formats.trial_log import TrialsFile
    from lmart.threads import WorkerPool
    from lmart.training.checkpoint import RunState
    from lmart.training.cross_validation import CrossValidation
    from lmart.training.folds import Folds
    from lmart.training.search_space import Dimension
    from lmart.training.tree_log import TreeLog
    from lmart.training.tuning import Measured, Trial


@dataclass(frozen=True)
class SelectedSettings:
    """The settings that the model is trained with, and what they were selected by."""

    settings: ResolvedSettings
    cross_validation: CrossValidation | None = None
    trials: Sequence[Trial] = ()
    space: Sequence[Dimension] = ()

    @property
    def winner(self) -> Trial:
        """The best trial of a search."""
        return _winner(self.trials)[1]


def selection_data(
    train_set: RankingDataset,
    validation: tuple[RankingDataset, Metadata] | None,
    folds: int | Folds | None,
    pool: WorkerPool,
    metadata: Metadata,
    state: RunState,
) -> Measured:
    """Return what settings are measured by."""
    from lmart.data.metadata import NO_METADATA
    from lmart.training.checkpoint import TRIAL
    from lmart.training.tuning import Measured

    def log_of(settings: TrainSettings) -> TreeLog:
        """Return the log of the trees of a trial."""
        return state.log(TRIAL + json.dumps(settings.to_json()))

    if folds is not None or validation is None:
        return Measured(train_set, None, folds, pool, metadata, NO_METADATA, log_of)
    return Measured(train_set, validation[0], None, pool, metadata, validation[1], log_of)


def select_settings(
    selection: SelectionOptions,
    settings: ResolvedSettings,
    measured: Measured,
    state: RunState,
    console: Console,
    in_detail: bool,
) -> SelectedSettings:
    """Return the settings to train the model with: as given, but for what --folds and --tune choose."""
    selected = SelectedSettings(settings)
    if selection.tunes:
        selected = _search(selection, settings, measured, state, console)
        if selection.folds is None or not in_detail:
            return selected
        stopping = replace(settings.recorded, early_stop=trial_patience(selection, settings.recorded))
        settings = resolve(replace(stopping, **selected.winner.values), settings.facts)
    if selection.folds is not None:
        cross_validation = _cross_validate(settings, measured, state, console)
        final = replace(settings.recorded, trees=cross_validation.trees, early_stop=0)
        return replace(selected, settings=resolve(final, settings.facts), cross_validation=cross_validation)
    return selected


def trial_patience(selection: SelectionOptions, settings: TrainSettings) -> int:
    """Return the rounds without a better measure after which a trial stops."""
    return settings.early_stop if "early_stop" in selection.given else TRIAL_PATIENCE


def _cross_validate(
    settings: ResolvedSettings, measured: Measured, state: RunState, console: Console
) -> CrossValidation:
    """Cross-validate the settings, showing progress, and report the number of trees with the best mean."""
    from lmart.training.checkpoint import FOLDS
    from lmart.training.cross_validation import cross_validate

    assert measured.folds is not None
    n_folds = measured.n_folds
    total, unit = (n_folds, "folds") if settings.patience is None else (settings.rounds, "rounds")
    with console.progress(total, unit) as progress:
        shown = FoldProgress(progress, settings)
        data, log = measured.train_set, state.log(FOLDS)
        result = cross_validate(data, measured.folds, settings, measured.pool, shown.on_round, measured.metadata, log)
        shown.finish(n_folds)
    for text in result.warnings:
        console.warning(text)
    if result.start is not None:
        console.notice(f"the initial scores alone: {settings.measure} {result.start:.6f} over {n_folds} folds")
        if not result.trees:
            console.warning("no round is better than the initial scores alone, so the model will hold no tree")
    console.notice(narration.crossed(result, settings))
    remark = remarks.after_folds(result, settings)
    if remark is not None:
        console.notice(remark)
    return result


def _search(
    selection: SelectionOptions, settings: ResolvedSettings, measured: Measured, state: RunState, console: Console
) -> SelectedSettings:
    """Search for settings, from trial to trial, and report the best one."""
    from lmart.training.tuning import best_settings, search

    patience = trial_patience(selection, settings.recorded)
    base = resolve(replace(settings.recorded, early_stop=patience), settings.facts)
    space = searched(selection, settings.recorded, settings.facts.with_positions)
    seconds = None if selection.tune is None else selection.tune * 60
    with ExitStack() as stack:
        file, trials = None, _trials_of(state, space)
        if selection.tune_file is not None:
            file = stack.enter_context(_open_trials(selection.tune_file, base, space, measured))
            trials = trials if state.searched else _earlier_trials(file, space, console)
        total = selection.tune_trials or max(1, round(seconds or 0))
        unit = "trials" if selection.tune_trials else "seconds"
        progress = stack.enter_context(console.progress(total, unit))
        shown = TrialProgress(progress, selection, str(settings.measure), trials, file)
        on_round = partial(shown.on_round, settings)

        def on_trial(trial: Trial) -> None:
            """Keep a trial, and show it."""
            shown.on_trial(trial)
            state.end_trial(trial.to_json())

        found = trials
        if not state.searched:
            state.trials = [trial.to_json() for trial in trials]
            found = search(measured, base, space, trials, selection.tune_trials, seconds, on_trial, on_round)
            state.end_search([trial.to_json() for trial in found])
        progress.update(total)
    winner = _report_best(found, settings, selection.folds is not None, console)
    return SelectedSettings(best_settings(base, winner, selection.folds is not None), None, found, space)


def _open_trials(path: str, base: ResolvedSettings, space: Sequence[Dimension], measured: Measured) -> TrialsFile:
    """Open the file of trials, which must be of the same data, settings and search."""
    from lmart.formats.trial_log import TrialsFile

    head = {
        "data": measured.digest(),
        "settings": base.recorded.to_json(),
        "folds": measured.n_folds or None,
        "search": [
            [dimension.name, dimension.low, dimension.high, dimension.log, list(dimension.choices)]
            for dimension in space
        ],
    }
    if measured.folds is not None:
        head["stopping"] = "by the mean over folds"
    return TrialsFile(path, head)


def _trials_of(state: RunState, space: Sequence[Dimension]) -> list[Trial]:
    """Return the trials of the run that this one goes on from."""
    from lmart.training.tuning import read_trial

    return [read_trial(record, space, "the checkpoint", line) for line, record in enumerate(state.trials, 2)]


def _earlier_trials(file: TrialsFile, space: Sequence[Dimension], console: Console) -> list[Trial]:
    """Return the trials that the file holds, and report how many there are."""
    from lmart.training.tuning import read_trial

    console.kept = f"what was tried is kept in {file.path}"
    trials = [read_trial(record, space, file.path, line) for line, record in enumerate(file.records, 2)]
    if trials:
        console.notice(f"going on after {counted(len(trials), 'trial')} in {file.path}")
    return trials


def _winner(trials: Sequence[Trial]) -> tuple[int, Trial]:
    """Return the best trial with its index."""
    from lmart.training.tuning import best_of

    best = best_of(trials)
    assert best is not None  # the first trial fails as a whole, or has a measure
    return best, trials[best]


def _report_best(trials: Sequence[Trial], settings: ResolvedSettings, by_folds: bool, console: Console) -> Trial:
    """Return the best trial, and report its measure."""
    best, winner = _winner(trials)
    console.notice(
        f"trial {best + 1} of {len(trials):,} is best: {settings.measure} {winner.measure:.6f} with "
        f"{counted(winner.trees, 'tree')}; being the best of many it looks better than it is, so measure it on other "
        "data"
    )
    chosen = resolve(replace(settings.recorded, **winner.values), settings.facts)
    if winner.trees == (chosen.rounds * len(chosen.rankers) if by_folds else settings.trees):
        console.notice(f"the best trial took all of its {counted(winner.trees, 'tree')}: try more --trees")
    return winner
