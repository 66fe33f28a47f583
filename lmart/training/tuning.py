"""Tuning: a search for settings, each measured on queries that its models were not trained on.

Settings are proposed by optuna's tree-structured Parzen estimator (Bergstra et al. 2011). A proposal depends
only on the seed and the trials before it, so a resumed search continues as if it had not been interrupted.
"""

from __future__ import annotations

import hashlib
import math
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import numpy as np

from lmart.data.dataset import RankingDataset
from lmart.data.metadata import NO_METADATA, Metadata
from lmart.errors import DataError, LmartError, load_package, quote
from lmart.settings import TrainSettings
from lmart.settings.data_facts import DataFacts
from lmart.settings.recipe import plan_rankers
from lmart.settings.resolved import ResolvedSettings, resolve
from lmart.threads import WorkerPool
from lmart.training.boosting import TrainingRun
from lmart.training.cross_validation import cross_validate
from lmart.training.folds import Folds
from lmart.training.rankers import RoundReport
from lmart.training.search_space import Dimension, Value, is_number
from lmart.training.tree_log import TreeLog

RANDOM_TRIALS = 10  # drawn at random before the estimator is used
DRAWS = 20  # attempts to draw settings that were not tried before
DIGITS = 3  # of a proposed number: more would only make it harder to read


@dataclass(frozen=True)
class Trial:
    """One trial of the search.

    values  : of the searched settings; None where a setting is automatic
    measure : with the best number of trees, on queries not trained on; None when the training failed
    """

    values: dict[str, Any]
    measure: float | None
    trees: int
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """Return the trial as plain JSON values."""
        return {"values": self.values, "measure": self.measure, "trees": self.trees, "seconds": self.seconds}


def read_trial(record: dict[str, Any], space: Sequence[Dimension], path: str, line: int) -> Trial:
    """Return the trial that `to_json` wrote as `record`; DataError when it does not fit this search."""
    values, measure, trees, seconds = (record.get(key) for key in ("values", "measure", "trees", "seconds"))
    sound = (
        isinstance(values, dict)
        and list(values) == [dimension.name for dimension in space]
        and all(dimension.holds(values[dimension.name]) for dimension in space)
        and (measure is None or is_number(measure))
        and type(trees) is int
        and trees >= 0
        and is_number(seconds)
    )
    if not sound:
        what = f"{quote(str(record))} is no trial of this search"
        raise DataError(f"{what}; delete the line or choose another name", path, line)
    return Trial(values or {}, measure, trees or 0, max(float(seconds or 0.0), 0.0))


def best_of(trials: Sequence[Trial]) -> int | None:
    """Return the index of the best trial, the first on ties; None when none has a measure."""
    measured = [(-trial.measure, index) for index, trial in enumerate(trials) if trial.measure is not None]
    return min(measured)[1] if measured else None


def best_settings(base: ResolvedSettings, best: Trial, by_folds: bool) -> ResolvedSettings:
    """Return the settings that train the model of the best trial of a search from `base`."""
    chosen = replace(base.recorded, **best.values)
    if by_folds or chosen.rankers == 1:
        chosen = replace(chosen, trees=best.trees, early_stop=0)
    # else each ranker is stopped by itself, as in the trial: the very model that was measured
    return resolve(chosen, base.facts)


class _OutOfTime(Exception):
    """The time is up: the trial under way is dropped."""


@dataclass(frozen=True)
class Measured:
    """How settings are measured: by cross-validation when there are folds, else on the validation set.

    folds  : which queries are in which fold, or the number of folds; None: there are none
    log_of : returns the log of the trees of a trial, by its settings
    """

    train_set: RankingDataset
    validation_set: RankingDataset | None
    folds: int | Folds | None
    pool: WorkerPool
    metadata: Metadata = NO_METADATA
    validation_metadata: Metadata = NO_METADATA
    log_of: Callable[[TrainSettings], TreeLog] = lambda settings: TreeLog()

    def measure(self, settings: ResolvedSettings, on_round: Callable[[int, RoundReport], None]) -> tuple[float, int]:
        """Return the measure of the settings, and the number of trees that has it."""
        log = self.log_of(settings.recorded)
        if self.folds is not None:
            sets = self.train_set, self.folds
            result_of_folds = cross_validate(*sets, settings, self.pool, on_round, self.metadata, log)
            return result_of_folds.mean, result_of_folds.trees
        assert self.validation_set is not None
        validation = [self.validation_set], [self.validation_metadata]
        run = TrainingRun(self.train_set, validation[0], settings, self.pool, self.metadata, validation[1])
        for report in run.rounds(log):
            on_round(0, report)
        result = run.finish()
        fewest = 1 if result.start is None else 0
        return result.validation[0] or 0.0, max(fewest, result.n_trees)

    @property
    def n_folds(self) -> int:
        """The number of folds, 0 without."""
        return len(self.folds) if isinstance(self.folds, Folds) else self.folds or 0

    def digest(self) -> str:
        """Return a hash of all data that measures depend on."""
        mark = hashlib.blake2b(digest_size=16)
        for dataset in (self.train_set, self.validation_set):
            if dataset is None:
                continue
            mark.update(repr((dataset.n_documents, dataset.feature_names, list(dataset.query_ids))).encode())
            rows = dataset.features
            for array in (rows.offsets, rows.columns, rows.values, dataset.feature_ids, dataset.query_offsets):
                mark.update(np.ascontiguousarray(array).data)
            mark.update(np.ascontiguousarray(dataset.labels).data)
        positions = self.metadata.positions
        codes = None if positions is None else positions.codes
        starts = self.metadata.init_scores, self.validation_metadata.init_scores
        weights = self.metadata.weights, self.validation_metadata.weights
        metadata = (*starts, codes, *weights)
        for name, values in zip(("init", "valid", "positions", "weights", "valid weights"), metadata, strict=True):
            if values is not None:
                mark.update(name.encode() + np.ascontiguousarray(values).tobytes())
        if isinstance(self.folds, Folds):
            mark.update(b"folds" + self.folds.of_query.tobytes())
        return mark.hexdigest()


def search(
    measured: Measured,
    base: ResolvedSettings,
    space: Sequence[Dimension],
    trials: Sequence[Trial],
    most_trials: int | None,
    most_seconds: float | None,
    on_trial: Callable[[Trial], None],
    on_round: Callable[[int, RoundReport], None] = lambda fold, report: None,
) -> list[Trial]:
    """Run trials until `most_trials` or `most_seconds` is reached; return all trials, the earlier ones first.

    base         : settings of the first trial, which always runs; later trials replace the searched settings in it
    trials       : of the interrupted search that this one resumes; they and their seconds count
    most_trials  : None: no limit
    most_seconds : None: no limit; a trial under way when the time is up is dropped
    LmartError when optuna is not installed, or the first trial fails; later failures are recorded as trials without a
    measure.
    """
    load_optuna()
    all_trials = list(trials)
    search_start = time.monotonic() - math.fsum(trial.seconds for trial in trials)

    def out_of_time() -> bool:
        """Return whether the time is up; the first trial always runs."""
        return most_seconds is not None and bool(all_trials) and time.monotonic() - search_start >= most_seconds

    def watch(fold: int, report: RoundReport) -> None:
        """Hand on the report of a round, and end the trial when the time is up."""
        on_round(fold, report)
        if out_of_time():
            raise _OutOfTime

    while (most_trials is None or len(all_trials) < most_trials) and not out_of_time():
        values = propose(space, all_trials, base.recorded, base.facts.with_positions)
        if values is None:
            break
        start = time.monotonic()
        measure, trees = None, 0
        try:
            measure, trees = measured.measure(resolve(replace(base.recorded, **values), base.facts), watch)
        except _OutOfTime:
            break
        except LmartError:
            if not all_trials:
                raise
        all_trials.append(Trial(values, measure, trees, time.monotonic() - start))
        on_trial(all_trials[-1])
    return all_trials


def propose(
    space: Sequence[Dimension], trials: Sequence[Trial], base: TrainSettings, with_positions: bool = False
) -> dict[str, Any] | None:
    """Return the next values: first those of `base`, then values not tried before; None when none were found.

    No two rankers of a proposal are the same.
    """
    if not trials:
        return {dimension.name: getattr(base, dimension.name) for dimension in space}
    optuna = load_optuna()
    kinds = optuna.distributions
    ranges: dict[str, Any] = {}
    for dimension in space:
        if dimension.choices:
            ranges[dimension.name] = kinds.CategoricalDistribution(dimension.choices)
        else:
            kind = kinds.IntDistribution if dimension.whole else kinds.FloatDistribution
            ranges[dimension.name] = kind(dimension.low, dimension.high, log=dimension.log)
    tried = [trial.values for trial in trials]
    facts = DataFacts(0, 0, with_positions=with_positions)
    study = optuna.create_study(direction="maximize")
    for trial in trials:
        if any(trial.values[dimension.name] is None for dimension in space if not dimension.choices):
            continue  # the estimator knows only numbers
        # The first trial may lie outside the ranges.
        places = {dimension.name: dimension.nearest(trial.values[dimension.name]) for dimension in space}
        state = optuna.trial.TrialState.FAIL if trial.measure is None else optuna.trial.TrialState.COMPLETE
        study.add_trial(
            optuna.trial.create_trial(state=state, value=trial.measure, params=places, distributions=ranges)
        )
    for draw in range(DRAWS):
        # A sampler of its own for each draw: the seed and the trials alone decide on it, as a resumed search needs.
        study.sampler = _sampler(optuna, base.seed, len(trials), draw)
        drawn = study.ask(ranges).params
        values: dict[str, Any] = {dimension.name: _rounded(drawn[dimension.name]) for dimension in space}
        proposed = replace(base, **values)
        most = plan_rankers(proposed, facts).most
        if "rankers" in values:
            values["rankers"] = min(values["rankers"], most)
        elif (proposed.rankers or 1) > most:
            continue
        if values not in tried:
            return values
    return None


def _rounded(value: Value) -> Value:
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def _sampler(optuna: ModuleType, seed: int, number: int, draw: int) -> Any:
    mark = hashlib.blake2b(f"{seed} {number} {draw}".encode(), digest_size=4).digest()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # `multivariate` is called experimental
        return optuna.samplers.TPESampler(
            seed=int.from_bytes(mark, "little"), multivariate=True, n_startup_trials=RANDOM_TRIALS
        )


def load_optuna() -> ModuleType:
    """Return the package optuna, made silent; LmartError when it is not installed."""
    optuna: ModuleType = load_package("optuna", "tuning", LmartError)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna
