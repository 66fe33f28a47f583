"""Progress of a selection by folds or trials, with the measure so far."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from lmart.cli.options.selection import SelectionOptions
from lmart.errors import counted

if TYPE_CHECKING:
    from lmart.cli.terminal.progress import Progress
    from lmart.formats.trial_log import TrialsFile
    from lmart.settings.resolved import ResolvedSettings
    from lmart.training.rankers import RoundReport
    from lmart.training.tuning import Trial


class FoldProgress:
    """Shows how far cross-validation is: by rounds when all folds grow side by side, else by folds."""

    def __init__(self, progress: Progress, settings: ResolvedSettings) -> None:
        self._progress = progress
        self._settings = settings
        self._side_by_side = settings.patience is not None
        self._done = 0  # rounds that all folds have had, but for the latest
        self._latest: dict[int, float] = {}  # measure by fold

    def on_round(self, fold: int, one: RoundReport) -> None:
        """Take a round of a fold, as `cross_validate` reports it."""
        if not self._side_by_side:
            rounds = sum(ranker.trees for ranker in self._settings.rankers[: one.ranker - 1]) + one.round
            self._progress.update(fold, lambda: _fold_state(one, self._settings, fold), rounds / self._settings.trees)
            return
        if one.round > self._done:  # all folds have had the round before
            self._show_mean()
            self._done = one.round
        if one.validation[0] is not None:
            self._latest[fold] = one.validation[0]

    def finish(self, n_folds: int) -> None:
        """Show that all folds are done."""
        if self._side_by_side:
            self._show_mean()
        else:
            self._progress.update(n_folds)

    def _show_mean(self) -> None:
        if self._done:
            mean = sum(self._latest.values()) / max(1, len(self._latest))
            self._progress.update(self._done, f"mean {self._settings.measure} {mean:.6f} over folds")


def of_each_ranker(settings: ResolvedSettings) -> str:
    """Return what a number of trees in cross-validation is of, if there are several rankers."""
    return " of each ranker" if len(settings.rankers) > 1 else ""


def _shown(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.6f}"


def _fold_state(one: RoundReport, settings: ResolvedSettings, fold: int) -> str:
    value = _shown(one.validation[0])
    return f"fold {fold + 1} at {counted(one.round, 'tree')}{of_each_ranker(settings)}, {settings.measure} {value}"


class TrialProgress:
    """Shows how far a search is, by trials or by seconds, with its best trial; adds each new trial to its file.

    trials : those of an earlier search; new ones are added
    file   : where each new trial is kept; None: nowhere
    """

    def __init__(
        self,
        progress: Progress,
        selection: SelectionOptions,
        metric: str,
        trials: list[Trial],
        file: TrialsFile | None,
    ) -> None:
        self._progress = progress
        self._selection = selection
        self._metric = metric
        self._trials = trials
        self._file = file
        self._began = time.monotonic() - sum(one.seconds for one in trials)

    def on_trial(self, trial: Trial) -> None:
        """Take a new trial, as `search` reports it."""
        self._trials.append(trial)
        if self._file is not None:
            self._file.append(trial.to_json())
        self._show("")

    def on_round(self, settings: ResolvedSettings, fold: int, one: RoundReport) -> None:
        """Take a round of the current trial, as `search` reports it; `settings` are those that it started from."""
        if self._selection.folds is not None:
            self._show(f"fold {fold + 1}, round {one.round:,}, {settings.measure} {_shown(one.validation[0])}")
        else:
            self._show(f"ranker {one.ranker} with {counted(one.round, 'tree')}")

    def _show(self, state: str) -> None:
        from lmart.training.tuning import best_of

        trials = self._trials
        done = len(trials) if self._selection.tune_trials else round(time.monotonic() - self._began)
        best = best_of(trials)
        known = "" if best is None else f"best {self._metric} {trials[best].measure:.6f}"
        text = f"trial {len(trials) + 1}" + (f" {state}" if state else "")
        self._progress.update(min(done, self._progress.total - 1), ", ".join(filter(None, (text, known))))
