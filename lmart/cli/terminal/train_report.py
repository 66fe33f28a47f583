"""What `lmart train` reports of a run: notices, warnings, progress, and the content of --report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lmart.cli.model_selection import report_unfinished
from lmart.cli.terminal.console import Console
from lmart.errors import counted, input_name
from lmart.settings import TrainSettings

if TYPE_CHECKING:
    from lmart.data.dataset import DataSize
    from lmart.settings.resolved import RankerSettings, ResolvedSettings
    from lmart.training.boosting import BoostingRun
    from lmart.training.continuation import Continuation, Difference
    from lmart.training.rankers import RoundReport
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
    if len(described) == 1:
        console.notice(f"{described[0]} ({why})")
    else:
        chosen = f" ({why})" if None in automatic else ""
        most = (
            f"up to {len(described)} rankers, each with the trees that others leave,"
            if settings.shares_trees
            else (f"{len(described)} rankers")
        )
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


def round_progress(one: RoundReport, settings: ResolvedSettings, valid: Sequence[str]) -> str:
    """Return the measures after a round, and which of several rankers it belongs to.

    one      : the round
    settings : of the run
    valid    : the validation files
    """
    n_rankers = len(settings.rankers)
    most = f"up to {n_rankers}" if settings.shares_trees else n_rankers
    ranker = f"ranker {one.ranker} of {most}, " if n_rankers > 1 else ""
    if not valid:
        return f"{ranker}training {settings.measure} {_shown(one.measure_training())}"
    measures = ", ".join(f"{_shown(value)} on {path}" for value, path in zip(one.validation, valid, strict=True))
    return f"{ranker}{settings.measure} {measures}"


def measures_by_set(training: float | None, validation: Sequence[float | None], valid: Sequence[str]) -> str:
    """Return the measure of the training set and of each validation set.

    training   : of the training set
    validation : of each validation set
    valid      : their files
    """
    sets = [("training", training), *zip(valid, validation, strict=True)]
    return ", ".join(f"{_shown(value)} on {name}" for name, value in sets)


def summary(result: TrainResult, settings: ResolvedSettings, valid: Sequence[str], out: str) -> str:
    """Return how many trees were written, and their measures.

    result   : of the run
    settings : of the run
    valid    : the validation files
    out      : the file of the model
    """
    measures = measures_by_set(result.training, result.validation, valid)
    trees = counted(len(result.ensemble.trees), "tree")
    best = f" (best of {result.rounds} rounds)" if result.best_round < result.rounds else ""
    if len(result.rankers) > 1:
        best = f" of {len(result.rankers)} rankers" + (best and f" (of {result.rounds} grown)")
    if result.continued_from is not None:
        best = f", {result.best_round:,} of them new{best}"
    return f"wrote {trees}{best} to {out}; {settings.measure} {measures}"


def continuing(continuation: Continuation, differences: Sequence[Difference]) -> str:
    """Return what the run goes on from, and why one run of all rounds would not give the same model.

    continuation : the model
    differences  : as the run has them
    """
    what = f"going on from {input_name(continuation.path)} with {counted(continuation.n_trees, 'tree')}"
    if not differences:
        return what
    return f"{what}; one run of all rounds would not give the same: {'; '.join(one.text for one in differences)}"


def _consequence(continues: bool) -> str:
    """Return what follows when nothing is learned."""
    return "no tree is added to the model" if continues else "every score will be 0"


def _shown(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.6f}"


def warn_before_training(run: BoostingRun, dataset: DataSize, weighted: bool, console: Console) -> None:
    """Report how many queries have no pair of documents to learn from.

    run      : which is ready to start
    dataset  : the training set
    weighted : it has weights
    console  : where it is reported
    """
    without_pair, queries = run.n_idle_queries, dataset.n_queries
    settings = run.settings
    of_what = "labels" if settings.recorded.gain.kind != "table" else "gains"
    differ = f"pair of documents with different {of_what}"
    pair = "pair of a relevant document and another" if settings.binary_relevance else differ
    nothing = _consequence(run.continuation is not None)
    single = dataset.n_single
    if without_pair == queries:
        hint = "no query has two documents, so check the qid column" if single == queries else "check the labels"
        largest = settings.recorded.largest_label
        if settings.objective_uses_label_scale and largest is not None and single < queries:
            hint += f", or give a smaller one than max={largest}: with it all stopping probabilities may round to 0"
        of_all = counted(queries, "query", "queries")
        console.warning(f"nothing to learn: none of {of_all} has a {pair}; {hint}; {nothing}")
    elif not run.can_learn and weighted:
        console.warning(f"nothing to learn: no query with a weight above 0 has a {pair}; {nothing}")
    elif without_pair:
        have = "has" if without_pair == 1 else "have"
        why = f" ({single:,} with a single document)" if single else ""
        # A notice: hardly any data is without such queries.
        console.notice(f"{without_pair:,} of {counted(queries, 'query', 'queries')} {have} no {pair}{why}")


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
    if not can_learn:
        return
    nothing = _consequence(result.continued_from is not None)
    if not result.n_features_split:
        why = "every feature is constant" if n_features else "the data has no features"
        console.warning(f"nothing to split on: {why}; {nothing}")
    elif result.stopped == "split":
        console.warning(
            f"stopped after {counted(result.rounds, 'tree')} of {settings.trees:,}: no split is left that gains and "
            f"leaves on each side {counted(settings.recorded.min_docs, 'document')} (--min-docs) and a hessian of "
            f"{settings.recorded.min_hessian:g} (--min-hessian)" + ("" if result.rounds else f"; {nothing}")
        )
    _report_rankers_without_trees(result, settings, console)
    if result.start is not None and result.rounds and not result.best_round:
        if result.continued_from is None:
            console.warning("no round is better than the initial scores alone, so the model holds no tree")
        else:
            console.warning("no round is better than what the run started from, so no tree is added to the model")
    if settings.patience is None or not result.validation:
        return
    unfinished = [(number, one) for number, one in enumerate(result.rankers, 1) if one.stopped == "trees" and one.trees]
    if unfinished:  # one line for all: the ranker that was best at the latest round
        number, one = max(unfinished, key=lambda pair: pair[1].trees / pair[1].rounds)
        several = len(result.rankers) > 1
        ranker = f"{len(unfinished)} of {len(result.rankers)} rankers used up their trees; ranker {number}: " * several
        report_unfinished(one.trees, one.rounds, settings.patience, f"{ranker}{settings.measure}", console)


def _report_rankers_without_trees(result: TrainResult, settings: ResolvedSettings, console: Console) -> None:
    if len(result.rankers) == 1 or not result.rounds:  # which is told already
        return
    for number, one in enumerate(result.rankers, 1):
        if one.trees:
            continue
        ranker = f"ranker {number} of {len(result.rankers)}, {one.objective},"
        if one.rounds:
            console.notice(
                f"{ranker} has no tree: no round of it is better than the initial scores by {settings.measure}"
            )
        else:
            console.warning(f"{ranker} has no tree: no split was left")


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
        "sample": result.share,
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
        "best_round": result.best_round,
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
