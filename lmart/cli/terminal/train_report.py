"""What `lmart train` reports of a run: notices, warnings, progress, and the content of --report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lmart.cli.model_selection import report_unfinished
from lmart.cli.terminal.console import Console
from lmart.errors import counted
from lmart.gains import SMALLEST_GRADE_SCALE
from lmart.settings import TrainSettings
from lmart.training.score_tracking import uses_label_scale

if TYPE_CHECKING:
    from lmart.training.boosting import Trainable, TrainingRun, TrainResult
    from lmart.training.rankers import RoundReport


def describe(dataset: Trainable, share: float) -> str:
    """Return how large the training set is, and which `share` of its rows each tree is grown from."""
    documents, features = counted(dataset.n_documents, "document"), counted(dataset.n_features, "feature")
    sampled = f"; each tree is grown from {share:.0%} of the documents (--sample)" if share < 1 else ""
    return f"read {documents} of {counted(dataset.n_queries, 'query', 'queries')} with {features}{sampled}"


def report_automatic(
    requested: TrainSettings, settings: TrainSettings, tunes: bool, n_queries: int, console: Console
) -> None:
    """Report which objective and how many leaves were set by the number of queries; `tunes`: leaves are searched."""
    automatic = []
    if requested.objective is None:
        automatic.append(f"objective {settings.objective}")
    if requested.leaves is None and settings.leaves is not None and not tunes:
        automatic.append(counted(settings.leaves, "leaf", "leaves"))
    if automatic:
        console.notice(f"{', '.join(automatic)} (auto: {counted(n_queries, 'query', 'queries')})")


def stopping_probability(settings: TrainSettings) -> str:
    """Return the equation of the probability with which a reader stops, in expected reciprocal rank."""
    return f"(2^label - 1) / 2^{settings.largest_label or SMALLEST_GRADE_SCALE}"


def round_progress(one: RoundReport, settings: TrainSettings, valid: Sequence[str]) -> str:
    """Return the measures after a round, and which of several rankers it belongs to."""
    ranker = f"ranker {one.ranker} of {len(settings.objectives)}, " if len(settings.objectives) > 1 else ""
    if not valid:
        return f"{ranker}training {settings.metric} {_shown(one.measure_training())}"
    measures = ", ".join(f"{_shown(value)} on {path}" for value, path in zip(one.validation, valid, strict=True))
    return f"{ranker}{settings.metric} {measures}"


def measures_by_set(training: float | None, validation: Sequence[float | None], valid: Sequence[str]) -> str:
    """Return the measure of the training set and of each validation set."""
    sets = [("training", training), *zip(valid, validation, strict=True)]
    return ", ".join(f"{_shown(value)} on {name}" for name, value in sets)


def summary(result: TrainResult, settings: TrainSettings, valid: Sequence[str], out: str) -> str:
    """Return how many trees were written, and their measures."""
    measures = measures_by_set(result.training, result.validation, valid)
    trees = counted(len(result.ensemble.trees), "tree")
    best = f" (best of {result.rounds} rounds)" if result.best_round < result.rounds else ""
    return f"wrote {trees}{best} to {out}; {settings.metric} {measures}"


def _shown(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.6f}"


def warn_before_training(run: TrainingRun, dataset: Trainable, weighted: bool, console: Console) -> None:
    """Report how many queries have no pair of documents to learn from."""
    without_pair, queries = run.n_idle_queries, dataset.n_queries
    binary = set(run.settings.objectives) <= {"map", "mrr"}
    of_what = "labels" if run.settings.gain.kind != "table" else "gains"
    pair = "pair of a relevant document and another" if binary else f"pair of documents with different {of_what}"
    single = int((dataset.query_offsets[1:] - dataset.query_offsets[:-1] == 1).sum())
    if without_pair == queries:
        hint = "no query has two documents, so check the qid column" if single == queries else "check the labels"
        largest = run.settings.largest_label
        if "err" in run.settings.objectives and largest is not None and single < queries:
            hint += f", or name a smaller one than max={largest}, beside which they may be worth nothing"
        of_all = counted(queries, "query", "queries")
        console.warning(f"nothing to learn: none of {of_all} has a {pair}; {hint}; every score will be 0")
    elif not run.can_learn and weighted:
        console.warning(f"nothing to learn: no query with a weight above 0 has a {pair}; every score will be 0")
    elif without_pair:
        have = "has" if without_pair == 1 else "have"
        why = f" ({single:,} with a single document)" if single else ""
        # A notice: hardly any data is without such queries.
        console.notice(f"{without_pair:,} of {counted(queries, 'query', 'queries')} {have} no {pair}{why}")


def warn_after_training(
    result: TrainResult, settings: TrainSettings, n_features: int, can_learn: bool, console: Console
) -> None:
    """Report what kept the run from learning, or from learning more."""
    if not can_learn:
        return
    if not result.n_features_split:
        why = "every feature is constant" if n_features else "the data has no features"
        console.warning(f"nothing to split on: {why}; every score will be 0")
    elif result.stopped == "split":
        console.warning(
            f"stopped after {counted(result.rounds, 'tree')} of {settings.trees:,}: no split is left that gains and "
            f"leaves on each side {counted(settings.min_docs, 'document')} (--min-docs) and a hessian of "
            f"{settings.min_hessian:g} (--min-hessian)" + ("" if result.rounds else "; every score will be 0")
        )
    _report_rankers_without_trees(result, settings, console)
    if result.start is not None and result.rounds and not result.best_round:
        console.warning("no round is better than the initial scores alone, so the model holds no tree")
    if settings.early_stop and result.stopped == "trees" and result.validation and result.best_round:
        report_unfinished(result.best_round, result.rounds, settings.early_stop, settings.metric, console)


def _report_rankers_without_trees(result: TrainResult, settings: TrainSettings, console: Console) -> None:
    for one in result.rankers:
        if one.trees or len(result.rankers) == 1:
            continue
        if one.rounds:
            console.notice(f"{one.objective} added no tree: with none of its rounds is {settings.metric} better")
        elif one.stopped == "split":
            console.warning(f"{one.objective} added no tree: no split was left")
        else:
            console.warning(f"{one.objective} added no tree: --trees is used up")


def settings_and_data(result: TrainResult, settings: TrainSettings, dataset: Trainable) -> dict[str, Any]:
    """Return the first entries of --report: settings, size of the data, measure and share of rows."""
    return {
        "settings": settings.to_json(),
        "data": {
            "documents": dataset.n_documents,
            "queries": dataset.n_queries,
            "features": dataset.n_features,
            "idle_queries": result.n_idle_queries,
            "split_features": result.n_features_split,
        },
        "metric": settings.metric,
        "sample": result.share,
    }


def measures_of_run(
    result: TrainResult, rounds: Sequence[RoundReport], training: Sequence[float | None]
) -> dict[str, Any]:
    """Return the entries of --report for the rounds; `training` is the measure of the training set after each."""
    return {
        "rounds": [
            {"round": one.round, "training": value, "validation": list(one.validation)}
            for one, value in zip(rounds, training, strict=True)
        ],
        "stopped": result.stopped,
        "best_round": result.best_round,
        "rankers": _rankers(result),
        "training": result.training,
        "validation": list(result.validation),
    }


def _rankers(result: TrainResult) -> list[dict[str, Any]]:
    """Return which trees belong to which ranker: first_tree from 1, null when it has none."""
    rankers, first = [], 1
    for one in result.rankers:
        rankers.append({"objective": one.objective, "first_tree": first if one.trees else None, "trees": one.trees})
        first += one.trees
    return rankers


def optional_entries(result: TrainResult, settings: TrainSettings) -> dict[str, Any]:
    """Return the entries of --report that only some runs have: initial scores, expected reciprocal rank."""
    entries: dict[str, Any] = {}
    if result.start is not None:
        entries["start"] = {"training": result.start.training, "validation": list(result.start.validation)}
    if uses_label_scale(settings):
        entries["err"] = stopping_probability(settings)
    return entries
