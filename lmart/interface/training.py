"""Training from Python: `lmart.train`."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from itertools import chain
from typing import Any, Unpack

from lmart.binning.categories import bin_training_set, describe_idle
from lmart.binning.edge_sample import CHUNK
from lmart.binning.validation_set import code_dataset
from lmart.data.categories import placed_rows
from lmart.data.dataset import RankingDataset, Unbinned, join_datasets
from lmart.data.from_python import refuse_path
from lmart.data.python_dataset import (
    Dataset,
    in_memory,
    split_queries,
    text_features,
    training_metadata,
    unbinned,
    validation_metadata,
)
from lmart.errors import ArrayError, SettingsError, naming_arguments, warn
from lmart.interface.arguments import (
    Run,
    TrainArguments,
    check_refit,
    check_together,
    check_validation_fraction,
    of_one_ranker,
    run_of,
    settings_of,
)
from lmart.interface.folds import check_folds, folds_of
from lmart.interface.signatures import listing_settings
from lmart.interface.verbose import Telling
from lmart.interrupts import safe_interrupts
from lmart.model import Model, load
from lmart.reports.run_report import RunRecord, folds_entry, read_report, refit_entries, run_entries
from lmart.scoring.ensemble import Ensemble
from lmart.scoring.feature_matching import check_columns
from lmart.scoring.scorer import ModelScores
from lmart.settings import AUTO, RECORDED, TrainSettings
from lmart.settings.resolved import ResolvedSettings, resolve
from lmart.threads import WorkerPool, chunks, threads_to_use
from lmart.training import remarks
from lmart.training.boosting import TrainingRun, without_trees
from lmart.training.continuation import Continuation, prepare
from lmart.training.cross_validation import LEVEL, CrossValidation, cross_validate
from lmart.training.folds import held_out_queries
from lmart.training.rankers import RoundReport
from lmart.training.refitting import settings_of_refit
from lmart.training.resolving import resolve_for
from lmart.training.train_result import TrainResult

_METADATA = ("weights", "init_scores", "positions")
_OF_ARRAYS = ("group", "feature_names")
OF_DATA = (*_METADATA, *_OF_ARRAYS)


@listing_settings(TrainArguments)
def train(
    X: object, y: object = None, qid: object = None, valid: object = None, **settings: Unpack[TrainArguments]
) -> Model:
    """Learn a ranking model from judged documents, as `lmart train` does: the same data and settings, the same bytes.

    X     : the features, in any form that `lmart.Dataset` takes, or a Dataset, such as `lmart.read` returns
    y     : the labels, one a row; None with a Dataset
    qid   : the id of each row's query; rows of a query are adjacent. Or give `group`, the number of rows of each query
    valid : a validation set, (X, y, qid) or a Dataset, or a list of them; all are measured after each tree, and the
            first decides on early stopping
    settings : the options of `lmart train`, with underscores: those listed below, and explained by lmart-train(1);
            `**model.settings` are those of another model. `monotone` may be a dict, of 1 or -1 by feature, `gain` a
            list of numbers, `objective` and `metric` a list or functions of your own, as lmart-python(7) explains,
            `continue_from` a Model or the file of one. `categorical` may be a list; in a DataFrame it decides which
            columns of texts or of categories are read.
            For the data: `group`, `weights`, `init_scores` and `positions` as in Dataset, `feature_names`, `allow_inf`
            to take infinite values as they are, `strict` to refuse validation sets whose features are not those of X.
            For the run: `validation_fraction` in place of `valid`, to hold out this share of the queries of X; `folds`
            and `fold_by`, as in `lmart.cross_validate`, to choose the number of trees first;
            `refit` (True: train once more at the end on X and `valid` together, with the trees of the first training,
            whose measures `history` has);
            `threads` (None: all that this process may use; the result never depends on it), `callback` (called after
            each round with a RoundReport), and `verbose` (True: what the command line tells, on standard error, and
            in a notebook a bar).

    TypeError for a setting that does not exist, with the one that may be meant; SettingsError for a value that is not
    allowed; ArrayError and DataError, which name the row, for data that cannot be used. UserWarnings say what may be
    wrong; nothing is printed. See also `lmart.cross_validate`, `lmart.tune` and `lmart.sklearn`.

    >>> import lmart
    >>> model = lmart.train(lmart.read("data/sample/train.svm"), rankers=1, trees=20)
    >>> model
    <lmart.Model: 20 trees of 1 ranker, 20 features>
    >>> X, y, qid = [[0.0, 1.0], [2.0, 0.0], [1.0, 1.0], [0.0, 3.0]], [0, 1, 1, 0], [7, 7, 8, 8]
    >>> lmart.train(X, y, qid, trees=2, rankers=1, min_docs=1).n_trees
    2
    """
    run, keywords = run_of(settings)
    train_set = training_set(X, y, qid, keywords)
    keywords = {name: value for name, value in keywords.items() if name not in OF_DATA}
    chosen = settings_of(keywords, ("X", "y", "qid", "valid", *TrainArguments.__annotations__))
    train_set, sets = _sets(train_set, valid, run, chosen)
    names = [name for name in keywords if name not in RECORDED]
    previous = _model_before(run.continue_from)
    _check_run(run, train_set, sets, previous is not None)
    if previous is not None:
        chosen = of_one_ranker(chosen, training_metadata(train_set).positions is not None)
    measured = bool(sets) or run.folds is not None
    messages = check_together(chosen, names, measured, training_metadata(train_set).positions is not None)
    with naming_arguments(), safe_interrupts(), WorkerPool(threads_to_use(run.threads)) as pool:
        if previous is not None:
            prepared = prepare(*previous, chosen, "absent" in names)
            messages += prepared.warnings
            chosen, previous = prepared.settings, (prepared.model, previous[1])
        telling = Telling(run.verbose)
        with telling.compiling():
            model = _fit(_Inputs(train_set, sets, previous), chosen, run, pool, messages, telling)
    for text in messages:
        warn(text)
    return model


def training_set(X: object, y: object, qid: object, keywords: Mapping[str, Any]) -> Dataset:
    """Return the training set, with the metadata of the keywords; ArrayError when they do not fit together."""
    metadata = {name: keywords.get(name) for name in _METADATA}
    of_arrays = {name: keywords.get(name) for name in _OF_ARRAYS}
    if not isinstance(X, Dataset):
        refuse_path(X)
        if y is None:
            raise ArrayError("there are no labels; give y, one label a row, or a lmart.Dataset")
        return Dataset(X, y, qid, **of_arrays, **metadata, categorical=keywords.get("categorical"))
    others = {"y": y, "qid": qid, **of_arrays}
    if twice := [name for name, value in others.items() if value is not None]:
        raise ArrayError(f"a Dataset has its own {' and '.join(twice)}; leave that out")
    return X.with_metadata(**metadata)


def validation_sets(valid: object, train_set: Dataset, settings: TrainSettings) -> list[Dataset]:
    """Return the validation sets; ArrayError when `valid` is something else.

    Their columns are categories of texts where those of the training set are, or the settings name them.
    """
    if valid is None:
        return []
    categorical = [*text_features(train_set), *settings.categories]
    listed = valid if isinstance(valid, list) else [valid]
    sets = []
    for valid_set in listed:
        if isinstance(valid_set, tuple) and len(valid_set) == 3:
            sets.append(Dataset(*valid_set, categorical=categorical))
        elif isinstance(valid_set, Dataset):
            sets.append(valid_set)
        else:
            what = f"a {type(valid_set).__name__}"
            if isinstance(valid_set, tuple):
                what += f" of {len(valid_set)}"
            raise ArrayError(f"valid is {what}; give (X, y, qid), a lmart.Dataset, or a list of these")
    return sets


def _sets(train_set: Dataset, valid: object, run: Run, settings: TrainSettings) -> tuple[Dataset, list[Dataset]]:
    """Return the training set and the validation sets; with `validation_fraction` the queries held out are one.

    ArrayError when some of them start from initial scores and others do not, and as `validation_sets`.
    """
    sets = validation_sets(valid, train_set, settings)
    if run.validation_fraction is not None:
        check_validation_fraction(run.validation_fraction, bool(sets))
        with naming_arguments():
            judged = in_memory(train_set, "X", run.allow_inf)
            weights = training_metadata(train_set).weights
            held_out = held_out_queries(judged, run.validation_fraction, settings.seed, weights)
            train_set, *sets = split_queries(train_set, judged, held_out)
    starts = [validation_metadata(dataset).init_scores is not None for dataset in (train_set, *sets)]
    if any(starts) and not all(starts):
        how = "valid=lmart.Dataset(X, y, qid, init_scores=...)"
        raise ArrayError(f"init_scores are given for some of X and valid; give them for all: {how}")
    return train_set, sets


def _check_run(run: Run, train_set: Dataset, sets: Sequence[Dataset], continues: bool) -> None:
    """Raise SettingsError when folds or `refit` do not go with the rest, such as with a model that is continued."""
    if run.folds is not None or run.fold_by is not None:
        check_folds(run.folds, run.fold_by)
        if continues:
            raise SettingsError("folds do not go with continue_from: the model has seen every query")
    if run.refit:
        metadata = [astuple(training_metadata(dataset)) for dataset in (train_set, *sets)]
        has_metadata = any(values is not None for values in chain.from_iterable(metadata))
        check_refit(bool(sets), has_metadata, continues)


@dataclass(frozen=True, eq=False)
class _Inputs:
    """The data of a run, and the model to go on from with its name."""

    train_set: Dataset
    valid: Sequence[Dataset]
    previous: tuple[Ensemble, str] | None


def _model_before(model: object) -> tuple[Ensemble, str] | None:
    """Return the model of `continue_from`, and what to call it."""
    if model is None:
        return None
    if isinstance(model, Model):
        return model.ensemble, "continue_from"
    if isinstance(model, str | os.PathLike):
        return load(model).ensemble, os.fspath(model)
    raise ArrayError(f"continue_from is a {type(model).__name__}; give a lmart.Model, or the file of one")


def _fit(
    inputs: _Inputs, settings: TrainSettings, run: Run, pool: WorkerPool, messages: list[str], telling: Telling
) -> Model:
    """Return the model; add to the messages what to warn of."""
    train_set, sets, start = inputs.train_set, inputs.valid, time.perf_counter()
    judged = unbinned(train_set, "X", run.allow_inf)
    if not len(judged.labels):
        raise ArrayError("X has no rows; give documents to learn from")
    messages += check_columns(judged, settings.absent, run.strict)
    messages += describe_idle(judged, len(judged.labels)) if settings.categorical == AUTO else []
    scorer = None if inputs.previous is None else ModelScores(inputs.previous[0], pool)
    binned = bin_training_set(judged, settings, pool, scorer)
    model = without_trees(binned, settings, binned.categories)
    every, coded = [judged], []
    sources = ["valid"] if len(sets) == 1 else [f"valid[{number}]" for number in range(len(sets))]
    for source, valid_set in zip(sources, sets, strict=True):
        rows = unbinned(valid_set, source, run.allow_inf, judged)
        coded.append(code_dataset(rows, model, binned.features.edges, pool, run.strict))
        every.append(rows)
    messages += [text for valid_set in coded for text in valid_set.warnings]
    continuation = None
    if inputs.previous is not None and scorer is not None:
        continuation = _continuation(*inputs.previous, scorer, every, run, pool, messages)
    metadata, read = training_metadata(train_set), time.perf_counter()
    resolved = resolve_for(settings, binned, coded, metadata.positions is not None)
    telling.valid = sources
    telling.read(binned, settings, resolved)
    together = _joined(inputs, sources, judged, run) if run.refit else None
    crossed, record = None, RunRecord({"reading": read - start})
    if run.folds is not None:
        with record.timed("choosing"):
            crossed = _cross_validate(train_set, resolved, run, pool)
        messages += crossed.warnings
        telling.folds(crossed, resolved)
        resolved = resolve(replace(resolved.recorded, trees=crossed.trees, early_stop=0), resolved.facts)
    of_valid = [validation_metadata(valid_set) for valid_set in sets]
    training = TrainingRun(binned, coded, resolved, pool, metadata, of_valid, continuation)
    messages += [text for text in training.warnings if text not in messages]
    telling.start(training, metadata.init_scores is not None)
    messages += telling.remarks(remarks.before_training(training, binned, metadata.weights is not None))
    result = _boost(training, run.callback, record, telling)
    again = None if together is None else settings_of_refit(training.settings, result)
    refitted = None
    if together is not None and again is not None:
        with record.timed("refitting"):
            refitted = _boost(TrainingRun(together, [], again, pool), None, RunRecord(), Telling(verbose=False))
    after = remarks.after_training(result, training.settings, binned.n_features, training.can_learn)
    messages += telling.remarks(after)
    telling.trained(result)
    files = {"data": [judged.source], "validation": [judged_set.source for judged_set in every[1:]]}
    continued = None
    if inputs.previous is not None:
        differences = [difference.text for difference in training.differences]
        continued = {"model": inputs.previous[1], "trees": result.continued_from, "differences": differences}
    content = run_entries(result, training.settings, binned, record, files, continued, messages, metadata.positions)
    if crossed is not None:
        content["cross_validation"] = folds_entry(crossed, LEVEL)
    if refitted is not None:
        content |= refit_entries(refitted)
    return Model((refitted or result).ensemble, read_report(content, "Model.history"))


def _joined(inputs: _Inputs, sources: Sequence[str], judged: Unbinned, run: Run) -> RankingDataset:
    """Return the training set and the validation sets as one data set, for `refit`."""
    of_sets = [in_memory(*named, run.allow_inf, judged) for named in zip(inputs.valid, sources, strict=True)]
    return join_datasets([in_memory(inputs.train_set, "X", run.allow_inf), *of_sets])


def _cross_validate(train_set: Dataset, settings: ResolvedSettings, run: Run, pool: WorkerPool) -> CrossValidation:
    """Return what the folds of a run find."""
    judged, metadata = in_memory(train_set, "X", run.allow_inf), training_metadata(train_set)
    folds = folds_of(run.folds, run.fold_by, judged, settings.recorded.seed)
    return cross_validate(judged, folds, settings, pool, metadata=metadata)


def _continuation(
    model: Ensemble,
    name: str,
    training: ModelScores,
    sets: Sequence[Unbinned],
    run: Run,
    pool: WorkerPool,
    messages: list[str],
) -> Continuation:
    """Return the model to go on from with its scores of all sets, the training set first.

    training : has the scores of the training set
    """
    rows = sets[0]
    scores = [training.finish(rows.source, rows.table_features, run.strict)]
    messages += training.matcher.warnings(rows.source, "only new trees can split on them")
    for rows in sets[1:]:
        scorer = ModelScores(model, pool)
        columns = scorer.matcher.column_map(rows.feature_ids, rows.feature_names)
        placed = placed_rows(rows.features, rows.texts, columns, model.categories, model.feature_name)
        for start, stop in chunks(len(rows.labels), CHUNK) or [(0, 0)]:
            scorer.add([placed.between(start, stop)], rows.feature_ids, rows.feature_names)
        scores.append(scorer.finish(rows.source, {}, strict=False))
    made = Continuation(model, name, scores[0], tuple(scores[1:]), training.of_model, training.kept)
    made.check_scores()
    return made


def _boost(
    training: TrainingRun, callback: Callable[[RoundReport], object] | None, record: RunRecord, telling: Telling
) -> TrainResult:
    """Grow all trees, and record the rounds."""
    progress = telling.rounds(training)
    for report in training.rounds():
        record.add(report, in_detail=True)
        for listener in (callback, progress):
            if listener is not None:
                listener(report)
    if progress is not None:
        progress.close()
    return training.finish()
