"""What `lmart train` reports of a run: notices, warnings, progress, and the content of --report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from lmart.cli.terminal.console import Console
from lmart.cli.terminal.layout import shown
from lmart.errors import counted, input_name
from lmart.settings import TrainSettings
from lmart.settings.recipe import PLAIN
from lmart.training import remarks

if TYPE_CHECKING:
    from lmart.data.dataset import DataSize
    from lmart.settings.resolved import RankerSettings, ResolvedSettings
    from lmart.training.boosting import BoostingRun
    from lmart.training.continuation import Continuation, Difference
    from lmart.training.rankers import RoundReport
    from lmart.training.remarks import Remark
    from lmart.training.train_result import TrainResult


def describe(dataset: DataSize, share: float) -> str:
    """Return how large the training set is, and which `share` of its rows each tree is grown from.

    dataset : the training set
    share   : of its rows that each tree is grown from
    """
    documents, features = counted(dataset.n_documents, "document"), counted(dataset.n_features, "feature")
    sampled = f"; each tree is grown from {share:.0%} of the documents (--sample)" if share < 1 else ""
    return f"read {documents} of {counted(dataset.n_queries, 'query', 'queries')} with {features}{sampled}"


def report_automatic(requested: TrainSettings, settings: ResolvedSettings, tunes: bool, console: Console) -> None:
    """Report the rankers of the model, and which settings of theirs were chosen automatically.

    requested : the settings as given
    settings  : those of the run
    tunes     : settings are searched
    console   : where it is reported
    """
    automatic = (requested.objective, requested.leaves)
    if tunes or (None not in automatic and len(settings.rankers) == 1):
        return
    described = [_describe_ranker(one) for one in settings.rankers]
    why = f"auto: {counted(settings.facts.n_queries, 'query', 'queries')}, {counted(settings.trees, 'tree')}"
    is_default = requested.rankers is None and requested.objective is None
    instead = f"; --rankers 1 trains {PLAIN.objective} alone"
    if len(described) == 1:
        is_plain = settings.rankers[0].objective.name == PLAIN.objective
        console.notice(f"{described[0]} ({why}){instead if is_default and not is_plain else ''}")
    else:
        most = f"{'up to ' if settings.shares_trees else ''}{len(described)} rankers"
        if is_default:
            better = "which ranks better than one of as many trees on public data"
            console.notice(f"by default trains {most} and averages them, {better}{instead}")
        chosen = f" ({why})" if None in automatic else ""
        console.notice(f"the mean of {most}{chosen}: {'; '.join(described)}")


def _describe_ranker(settings: RankerSettings) -> str:
    """Describe a ranker in a few words."""
    tree = settings.tree
    form = "" if tree.form.is_usual else f"{tree.form.name} trees of "
    features = f" and {settings.feature_rate:.3g} of the features" if settings.feature_rate < 1 else ""
    return f"{settings.objective.name} with {form}{counted(tree.max_leaves, 'leaf', 'leaves')}{features}"


def stopping_probability(settings: ResolvedSettings) -> str:
    """Return the equation of the probability with which a reader stops, in expected reciprocal rank.

    settings : with the largest label
    """
    return f"(2^label - 1) / 2^{settings.largest_label}"


def measures_by_set(training: float | None, validation: Sequence[float | None], valid: Sequence[str]) -> str:
    """Return the measure of the training set and of each validation set.

    training   : of the training set
    validation : of each validation set
    valid      : their files
    """
    sets = [("training", training), *zip(valid, validation, strict=True)]
    return ", ".join(f"{shown(value)} on {name}" for name, value in sets)


def summary(result: TrainResult, settings: ResolvedSettings, valid: Sequence[str], out: str, seconds: float) -> str:
    """Return how many trees were written, how long it took, and their measures.

    result   : of the run
    settings : of the run
    valid    : the validation files
    out      : the file of the model
    seconds  : since the command began
    """
    measures = measures_by_set(result.training, result.validation, valid)
    trees = counted(len(result.ensemble.trees), "tree")
    best = f" (best of {result.rounds} rounds)" if result.n_trees < result.rounds else ""
    if len(result.rankers) > 1:
        best = f" of {len(result.rankers)} rankers" + (best and f" (of {result.rounds} grown)")
    if result.continued_from is not None:
        best = f", {result.n_trees:,} of them new{best}"
    return f"wrote {trees}{best} to {out} in {duration(seconds)}; {settings.measure} {measures}"


def duration(seconds: float) -> str:
    """Return a time as it is told, such as `12.3 s`, `5 min 7 s` or `2 h 0 min`.

    seconds : of it
    """
    if seconds < 99.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def continuing(continuation: Continuation, differences: Sequence[Difference]) -> str:
    """Return what the run goes on from, and why one run of all rounds would not give the same model.

    continuation : the model
    differences  : as the run has them
    """
    what = f"going on from {input_name(continuation.path)} with {counted(continuation.n_trees, 'tree')}"
    if not differences:
        return what
    return f"{what}; one run of all rounds would not give the same: {'; '.join(one.text for one in differences)}"


def warn_before_training(run: BoostingRun, dataset: DataSize, weighted: bool, console: Console) -> None:
    """Report how many queries have no pair of documents to learn from.

    run      : which is ready to start
    dataset  : the training set
    weighted : it has weights
    console  : where it is reported
    """
    _report(remarks.before_training(run, dataset, weighted), console)


def warn_after_training(
    result: TrainResult, settings: ResolvedSettings, n_features: int, can_learn: bool, console: Console
) -> None:
    """Report what kept the run from learning, or from learning more.

    result     : of the run
    settings   : of the run
    n_features : of the data
    can_learn  : whether there was anything to learn
    console    : where it is reported
    """
    _report(remarks.after_training(result, settings, n_features, can_learn), console)


def _report(found: Iterable[Remark], console: Console) -> None:
    for one in found:
        (console.warning if one.is_warning else console.notice)(one.text)


def settings_and_data(result: TrainResult, settings: ResolvedSettings, dataset: DataSize) -> dict[str, Any]:
    """Return the first entries of --report: settings, size of the data, measure and share of rows.

    result   : of the run
    settings : of the run
    dataset  : the training set
    """
    return {
        "settings": settings.recorded.to_json(),
        "data": {
            "documents": dataset.n_documents,
            "queries": dataset.n_queries,
            "features": dataset.n_features,
            "idle_queries": result.n_idle_queries,
            "split_features": result.n_features_split,
        },
        "metric": str(settings.measure),
        "sample": result.sampling_rate,
    }


def measures_of_run(
    result: TrainResult, rounds: Sequence[RoundReport], training: Sequence[float | None]
) -> dict[str, Any]:
    """Return the entries of --report for the rounds; `training` is the measure of the training set after each.

    result   : of the run
    rounds   : in their order
    training : measure of the training set after each round
    """
    return {
        "rounds": [
            {"ranker": one.ranker, "round": one.round, "training": value, "validation": list(one.validation)}
            for one, value in zip(rounds, training, strict=True)
        ],
        "stopped": result.stopped,
        "best_round": result.n_trees,
        "rankers": _rankers(result),
        "training": result.training,
        "validation": list(result.validation),
    }


def _rankers(result: TrainResult) -> list[dict[str, Any]]:
    """Return which trees belong to which ranker: first_tree from 1, null when it has none."""
    rankers: list[dict[str, Any]] = []
    first = 1 + (result.continued_from or 0)
    for one in result.rankers:
        rankers.append(
            {
                "objective": one.objective,
                "tree": one.tree,
                "leaves": one.leaves,
                "features": one.features,
                "seed": one.seed,
                "first_tree": first if one.trees else None,
                "trees": one.trees,
                "rounds": one.rounds,
                "stopped": one.stopped,
                "validation": list(one.validation),
            }
        )
        first += one.trees
    return rankers


def importance(result: TrainResult) -> dict[str, Any]:
    """Return the entry of --report for features: the share of split gain and the splits of those that are split on.

    result : of the run
    """
    from lmart.scoring.importance import importance_by_name, split_importance

    return {"importance": importance_by_name(result.ensemble, split_importance(result.ensemble))}


def optional_entries(result: TrainResult, settings: ResolvedSettings) -> dict[str, Any]:
    """Return the entries of --report that only some runs have: initial scores, expected reciprocal rank.

    result   : of the run
    settings : of the run
    """
    entries: dict[str, Any] = {}
    if result.start is not None:
        entries["start"] = {"training": result.start.training, "validation": list(result.start.validation)}
    if settings.uses_label_scale:
        entries["err"] = stopping_probability(settings)
    return entries
