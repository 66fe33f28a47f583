"""Choosing from Python, as --folds and --tune do: `lmart.cross_validate` and `lmart.tune`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np

from lmart.data.dataset import RankingDataset
from lmart.data.metadata import Metadata
from lmart.data.python_dataset import Dataset, in_memory, training_metadata, validation_metadata
from lmart.errors import SettingsError, naming_arguments, quote, warn
from lmart.foreign_names import perhaps
from lmart.interface.arguments import Settings, check_together, given_back, settings_of
from lmart.interface.folds import check_folds, folds_of
from lmart.interface.signatures import listing_settings
from lmart.interface.training import OF_DATA, training_set, validation_sets
from lmart.interrupts import safe_interrupts
from lmart.settings import RECORDED, TrainSettings
from lmart.threads import WorkerPool, threads_to_use
from lmart.training import cross_validation
from lmart.training.cross_validation import CrossValidation
from lmart.training.folds import Folds
from lmart.training.resolving import resolve_for
from lmart.training.search_space import TRIAL_PATIENCE, open_dimensions
from lmart.training.tuning import Measured, Trial, best_of, best_settings, search


class SelectionArguments(Settings, total=False):
    """The keywords of `lmart.cross_validate` and `lmart.tune`."""

    group: object
    weights: object
    init_scores: object
    positions: object
    feature_names: Sequence[str] | None
    allow_inf: bool
    threads: int | None
    largest_label: int | None


@dataclass(frozen=True)
class Tuning:
    """What a search for settings found.

    trials   : in their order
    best     : the best of them; being the best of many it looks better than it is, so measure it on other data
    settings : that train the model: `lmart.train(X, y, qid, **settings)`, with `valid` where the search had it
    """

    trials: tuple[Trial, ...]
    best: Trial
    settings: dict[str, Any]


@listing_settings(SelectionArguments)
def cross_validate(
    X: object,
    y: object = None,
    qid: object = None,
    folds: object = 5,
    fold_by: object = None,
    **settings: Unpack[SelectionArguments],
) -> CrossValidation:
    """Train a model for each fold on the other folds and measure it on its own, as `lmart train --folds` does.

    X, y, qid : judged documents, as in `lmart.train`
    folds     : number of folds, from 2 up; queries stay whole. Or the name of the fold of each query: a dict by query
                id, or one a query, or one a row
    fold_by   : in the same forms, a value of each query, such as its user: queries of equal values stay in one fold
    settings  : those of `lmart.train`, and `group`, `weights`, `init_scores`, `positions`, `feature_names`,
                `allow_inf` and `threads`; with `early_stop` the folds stop by their mean

    `trees` of the result is the number of trees with the best mean, `scores` are those of each row by the model that
    did not see its query. The errors are those of `lmart.train`; DataError when there are more folds than queries, or
    a query has no fold.

    >>> import lmart
    >>> found = lmart.cross_validate(lmart.read("data/sample/train.svm"), folds=3, rankers=1, trees=20)
    >>> len(found.folds), found.curve.shape, found.scores.shape
    (3, (20,), (1760,))
    """
    check_folds(folds, fold_by)
    arguments = _read_arguments(X, y, qid, settings, "cross_validate")
    with naming_arguments(), safe_interrupts(), WorkerPool(arguments.threads) as pool:
        judged = in_memory(arguments.train_set, "X", arguments.allow_inf)
        metadata = training_metadata(arguments.train_set)
        messages = check_together(arguments.settings, arguments.names, True, metadata.positions is not None)
        resolved = resolve_for(arguments.settings, judged, (), metadata.positions is not None)
        assigned = folds_of(folds, fold_by, judged, arguments.settings.seed)
        found = cross_validation.cross_validate(judged, assigned, resolved, pool, metadata=metadata)
    for text in (*messages, *found.warnings):
        warn(text)
    if judged.input_rows is None:
        return found
    scores = np.empty_like(found.scores)
    scores[judged.input_rows] = found.scores
    return replace(found, scores=scores)


@listing_settings(SelectionArguments)
def tune(
    X: object,
    y: object = None,
    qid: object = None,
    valid: object = None,
    folds: object = None,
    trials: int | None = None,
    minutes: float | None = None,
    fold_by: object = None,
    **settings: Unpack[SelectionArguments],
) -> Tuning:
    """Search for good settings, as `lmart train --tune-trials` and `--tune` do; needs the extra `tune`.

    X, y, qid : judged documents, as in `lmart.train`
    valid     : a validation set that measures the trials; else give `folds`
    folds     : folds that measure the trials, as in `cross_validate`
    trials    : most trials
    minutes   : most minutes; the first limit that is reached ends the search
    fold_by   : as in `cross_validate`
    settings  : as in `cross_validate`; those that are given stay as they are, `trees` limits the trees of each trial

    >>> import lmart
    >>> data = lmart.read("data/sample/train.svm")
    >>> found = lmart.tune(data, folds=2, trials=2, trees=10)
    >>> len(found.trials), lmart.train(data, **found.settings).n_trees == found.best.trees
    (2, True)
    """
    _check_search(valid, folds, trials, minutes)
    if folds is not None or fold_by is not None:
        check_folds(folds, fold_by)
    arguments = _read_arguments(X, y, qid, settings, "tune")
    metadata = training_metadata(arguments.train_set)
    with_positions = metadata.positions is not None
    messages = check_together(arguments.settings, arguments.names, True, with_positions)
    patience = arguments.settings.early_stop if "early_stop" in arguments.names else TRIAL_PATIENCE
    space = open_dimensions(arguments.names, arguments.settings, with_positions)
    if not space:
        raise SettingsError("every setting that is searched is given; leave some open")
    with naming_arguments(), safe_interrupts(), WorkerPool(arguments.threads) as pool:
        judged = in_memory(arguments.train_set, "X", arguments.allow_inf)
        sets = [
            (in_memory(data, "valid", arguments.allow_inf, judged), validation_metadata(data))
            for data in validation_sets(valid, arguments.train_set, arguments.settings)
        ]
        base = replace(arguments.settings, early_stop=patience)
        resolved = resolve_for(base, judged, [rows for rows, _ in sets], with_positions)
        assigned = None if folds is None else folds_of(folds, fold_by, judged, base.seed)
        measured = _measured(judged, metadata, sets, assigned, pool)
        seconds = None if minutes is None else minutes * 60
        found = search(measured, resolved, space, (), trials, seconds, lambda trial: None)
    for text in messages:
        warn(text)
    place = best_of(found)
    assert place is not None  # the first trial fails as a whole, or has a measure
    chosen = best_settings(resolved, found[place], folds is not None)
    return Tuning(tuple(found), found[place], given_back(chosen.recorded))


def _check_search(valid: object, folds: object, trials: int | None, minutes: float | None) -> None:
    """Raise SettingsError when nothing measures the trials, no limit ends the search, or a number is out of range."""
    if (valid is None) == (folds is None):
        raise SettingsError("trials are measured on a validation set, or on folds; give either valid or folds")
    if trials is None and minutes is None:
        raise SettingsError("when the search ends is not given; give trials or minutes")
    if (trials is not None and trials < 1) or (minutes is not None and not minutes > 0):
        raise SettingsError(f"trials is {trials} and minutes is {minutes}; give numbers above 0")


def _measured(
    judged: RankingDataset,
    metadata: Metadata,
    sets: Sequence[tuple[RankingDataset, Metadata]],
    folds: int | Folds | None,
    pool: WorkerPool,
) -> Measured:
    """Return what trials are measured by: folds, or the first validation set."""
    if folds is not None:
        return Measured(judged, None, folds, pool, metadata)
    return Measured(judged, sets[0][0], None, pool, metadata, sets[0][1])


@dataclass(frozen=True, eq=False)
class _Arguments:
    """What a program gives: the data, the settings with the names of those that are given, and the run."""

    train_set: Dataset
    settings: TrainSettings
    names: tuple[str, ...]
    allow_inf: bool
    threads: int


def _read_arguments(X: object, y: object, qid: object, keywords: Mapping[str, Any], function: str) -> _Arguments:
    allowed = [*SelectionArguments.__annotations__]
    if unknown := next((name for name in keywords if name not in allowed), None):
        hint = perhaps("argument", unknown, allowed)
        raise TypeError(f"{function}() has no argument {quote(unknown)}{hint}")
    data = training_set(X, y, qid, keywords)
    settings = {name: value for name, value in keywords.items() if name not in (*OF_DATA, "allow_inf", "threads")}
    names = tuple(name for name in settings if name not in RECORDED)
    run = bool(keywords.get("allow_inf", False)), threads_to_use(keywords.get("threads"))
    return _Arguments(data, settings_of(settings), names, *run)
