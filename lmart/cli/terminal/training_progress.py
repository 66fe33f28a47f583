"""Progress of a training: its rounds, folds or trials, with the measure by now and the best one so far."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from lmart.cli.terminal.progress import Label
from lmart.cli.train_request import SelectionOptions
from lmart.errors import counted
from lmart.reports.html_parts import shown
from lmart.reports.narration import BestSoFar, RoundCount, ranker_text, round_text
from lmart.training.remarks import of_each_ranker

if TYPE_CHECKING:
    from lmart.cli.terminal.progress import Progress
    from lmart.formats.trial_log import TrialsFile
    from lmart.settings.resolved import ResolvedSettings
    from lmart.training.rankers import RoundReport
    from lmart.training.tuning import Trial


class RoundProgress:
    """Shows each round of a run: a bar shows the validation set that decides, lines show all."""

    def __init__(
        self, progress: Progress, settings: ResolvedSettings, valid: Sequence[str], start: float | None
    ) -> None:
        self._progress = progress
        self._settings = settings
        self._valid = valid
        self._count = RoundCount(settings, start)

    def on_round(self, report: RoundReport) -> None:
        """Take a round."""
        done = self._count.take(report)
        self._progress.update(done, partial(round_label, report, self._settings, self._valid, self._count.best))


def round_label(report: RoundReport, settings: ResolvedSettings, valid: Sequence[str], best_so_far: BestSoFar) -> Label:
    """Return the measures after a round, and which of several rankers it belongs to."""
    measure, ranker = str(settings.measure), ranker_text(report, settings)
    plain = round_text(report, settings, valid, best_so_far)
    if not valid:
        value = shown(report.measure_training())
        return Label(plain, (plain, f"training {measure} {value}", f"{measure} {value}", value))
    value = shown(report.validation[0])
    best = best_so_far.text(report.round), best_so_far.text(report.round, where=False)
    of_set = f"{measure} {value} on {os.path.basename(valid[0])}"
    forms = (
        f"{ranker}{of_set}{best[0]}",
        f"{ranker}{measure} {value}{best[0]}",
        f"{measure} {value}{best[0]}",
        f"{measure} {value}{best[1]}",
        f"{value}{best[1]}",
        f"{measure} {value}",
        value,
    )
    return Label(plain, forms)


class FoldProgress:
    """Shows how far cross-validation is: by rounds when all folds grow side by side, else by folds."""

    def __init__(self, progress: Progress, settings: ResolvedSettings) -> None:
        self._progress = progress
        self._settings = settings
        self._side_by_side = settings.patience is not None
        self._done = 0  # rounds that all folds have had, but for the latest
        self._latest: dict[int, float] = {}  # measure by fold
        self._best = BestSoFar()

    def on_round(self, fold: int, report: RoundReport) -> None:
        """Take a round of a fold, as `cross_validate` reports it."""
        if not self._side_by_side:
            part = _part(report, self._settings)
            self._progress.update(fold, lambda: _fold_label(report, self._settings, fold), part)
            return
        if report.round > self._done:  # all folds have had the round before
            self._show_mean()
            self._done = report.round
        if report.validation[0] is not None:
            self._latest[fold] = report.validation[0]

    def finish(self, n_folds: int) -> None:
        """Show that all folds are done."""
        if self._side_by_side:
            self._show_mean()
        else:
            self._progress.update(n_folds)

    def _show_mean(self) -> None:
        if self._done:
            mean = sum(self._latest.values()) / max(1, len(self._latest))
            self._best.update(self._done, mean)
            text, best = f"mean {self._settings.measure} {mean:.6f}", self._best.text(self._done)
            short = self._best.text(self._done, where=False)
            forms = f"{text} over folds{best}", f"{text}{best}", f"{text}{short}", f"{mean:.6f}{short}", text
            self._progress.update(self._done, Label(forms[0], (*forms, f"{mean:.6f}")))


def _part(report: RoundReport, settings: ResolvedSettings) -> float:
    """Return which part of its fold or trial is done after a round, below 1; early stopping may end it sooner."""
    return min(report.round / max(settings.rounds, 1), 0.999)


def _fold_label(report: RoundReport, settings: ResolvedSettings, fold: int) -> Label:
    value, trees = shown(report.validation[0]), counted(report.round, "tree")
    plain = f"fold {fold + 1} at {trees}{of_each_ranker(settings)}, {settings.measure} {value}"
    short = f"{settings.measure} {value}"
    return Label(plain, (plain, f"fold {fold + 1} at {trees}, {short}", f"fold {fold + 1}, {short}", short, value))


class TrialProgress:
    """Shows how far a search is, by trials or by seconds, with its best trial; adds each new trial to its file."""

    def __init__(
        self, progress: Progress, selection: SelectionOptions, metric: str, trials: list[Trial], file: TrialsFile | None
    ) -> None:
        self._progress = progress
        self._selection = selection
        self._metric = metric
        self._trials = trials
        self._file = file
        self._began = time.monotonic() - sum(trial.seconds for trial in trials)

    def on_trial(self, trial: Trial) -> None:
        """Take a new trial, as `search` reports it."""
        self._trials.append(trial)
        if self._file is not None:
            self._file.append(trial.to_json())
        self._show("", 0.0)

    def on_round(self, settings: ResolvedSettings, fold: int, report: RoundReport) -> None:
        """Take a round of the current trial, as `search` reports it; `settings` are those that it started from."""
        if self._selection.folds is not None:
            state = f"fold {fold + 1}, round {report.round:,}, {settings.measure} {shown(report.validation[0])}"
            self._show(state, _part(report, settings))
        else:
            earlier = report.ranker - 1 if len(settings.rankers) > 1 else 0
            part = (earlier + _part(report, settings)) / max(len(settings.rankers), earlier + 1)
            self._show(f"ranker {report.ranker} with {counted(report.round, 'tree')}", part)

    def _show(self, state: str, part: float) -> None:
        from lmart.training.tuning import best_of

        trials = self._trials
        done = len(trials)
        if not self._selection.tune_trials:
            done, part = int(time.monotonic() - self._began), 0.0
        best = best_of(trials)
        best_so_far = "" if best is None else f"best {self._metric} {trials[best].measure:.6f}"
        number = f"trial {len(trials) + 1}"
        text = number + (f" {state}" if state else "")
        value = best_so_far.rpartition(" ")[2]
        forms = (
            [(text, best_so_far), (number, best_so_far), (best_so_far,), (value,)]
            if best_so_far
            else [(text,), (number,)]
        )
        joined = tuple(", ".join(filter(None, form)) for form in forms)
        self._progress.update(min(done, self._progress.total - 1), Label(joined[0], joined), part)
