"""Lines for the user about a run: what kept it from learning, or from learning more. Loads no numpy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from lmart.data.feature_names import USUAL
from lmart.errors import counted, quote

if TYPE_CHECKING:
    from lmart.data.dataset import DataSize
    from lmart.settings.resolved import ResolvedSettings
    from lmart.training.boosting import BoostingRun
    from lmart.training.cross_validation import CrossValidation
    from lmart.training.train_result import TrainResult


class Remark(NamedTuple):
    """A line for the user.

    is_warning : something may be wrong; else it may be good to know
    """

    text: str
    is_warning: bool = False


def before_training(run: BoostingRun, dataset: DataSize, weighted: bool) -> Iterator[Remark]:
    """Yield which features may be no features, whether the gain suits the labels, and how many queries have no pair."""
    for name in run.empty.feature_names or ():
        if (role := USUAL.get(name.lower())) is not None:
            what = f"the feature {quote(name)} is named as {role} usually are"
            yield Remark(f"{what}; leave it out if it holds them", True)
    without_pair, queries = run.n_idle_queries, dataset.n_queries
    settings = run.settings
    of_gain = settings.recorded.gain.remark(settings.facts.grade_scale) if settings.uses_gain else None
    if of_gain is not None:
        yield Remark(of_gain, True)
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
        of_all = "the only query has no" if queries == 1 else f"none of {counted(queries, 'query')} has a"
        yield Remark(f"nothing to learn: {of_all} {pair}; {hint}; {nothing}", True)
    elif not run.can_learn and weighted:
        yield Remark(f"nothing to learn: no query with a weight above 0 has a {pair}; {nothing}", True)
    elif without_pair:
        have = "has" if without_pair == 1 else "have"
        why = f" ({single:,} with a single document)" if single else ""
        # No warning: hardly any data is without such queries.
        yield Remark(f"{without_pair:,} of {counted(queries, 'query')} {have} no {pair}{why}")


def after_training(
    result: TrainResult, settings: ResolvedSettings, n_features: int, can_learn: bool
) -> Iterator[Remark]:
    """Yield what kept the run from learning, or from learning more."""
    if not can_learn:
        return
    nothing = _consequence(result.continued_from is not None)
    if not result.n_features_split:
        why = "every feature is constant" if n_features else "the data has no features"
        yield Remark(f"nothing to split on: {why}; {nothing}", True)
    elif result.stopped == "split":
        yield Remark(
            f"stopped after {counted(result.rounds, 'tree')} of {settings.trees:,}: no split is left that gains and "
            f"leaves on each side {counted(settings.recorded.min_docs, 'document')} (--min-docs) and a hessian of "
            f"{settings.recorded.min_hessian:g} (--min-hessian)" + ("" if result.rounds else f"; {nothing}"),
            True,
        )
    yield from _rankers_without_trees(result, settings)
    if result.linear is not None and result.linear.weight < settings.linear:
        what = "the linear ranker is worse than the trees on the validation set"
        yield Remark(f"{what}: its weight is {result.linear.weight:.2g} in place of {settings.linear:g}")
    if result.start is not None and result.rounds and not result.n_trees:
        if result.continued_from is None:
            yield Remark("no round is better than the initial scores alone, so the model holds no tree", True)
        else:
            yield Remark("no round is better than what the run started from, so no tree is added to the model", True)
    if settings.patience is None or not result.validation:
        return
    numbered = list(enumerate(result.rankers, 1))
    used_up = [(number, part) for number, part in numbered if part.stopped == "trees" and part.trees]
    if used_up:  # one line for all: the ranker that was best at the latest round
        number, part = max(used_up, key=lambda pair: pair[1].trees / pair[1].rounds)
        several = len(result.rankers) > 1
        ranker = f"--trees ended {len(used_up)} of {len(result.rankers)} rankers; ranker {number}: " * several
        text = unfinished(part.trees, part.rounds, settings.patience, f"{ranker}{settings.measure}")
        if text is not None:
            yield Remark(text)


def _rankers_without_trees(result: TrainResult, settings: ResolvedSettings) -> Iterator[Remark]:
    if len(result.rankers) == 1 or not result.rounds:  # another remark says so
        return
    for number, part in enumerate(result.rankers, 1):
        if part.trees:
            continue
        ranker = f"ranker {number} of {len(result.rankers)}, {part.objective},"
        if part.rounds:
            yield Remark(
                f"{ranker} has no tree: no round of it is better than the initial scores by {settings.measure}"
            )
        else:
            yield Remark(f"{ranker} has no tree: no split was left", True)


def _consequence(continues: bool) -> str:
    """Return what follows when nothing is learned."""
    return "no tree is added to the model" if continues else "every score will be 0"


def after_folds(found: CrossValidation, settings: ResolvedSettings) -> str | None:
    """Return a line when folds used up their trees before the mean was known to be at its best; None when it was."""
    grown = len(found.curve)
    if found.stopped or grown < settings.rounds:
        return None
    mean = f"mean {settings.measure} over folds"
    return unfinished(found.rounds, grown, settings.patience or 0, mean, of_each_ranker(settings))


def of_each_ranker(settings: ResolvedSettings) -> str:
    """Return what a number of trees in cross-validation is of, if there are several rankers."""
    return " of each ranker" if len(settings.rankers) > 1 else ""


def unfinished(best: int, grown: int, patience: int, what: str, of_what: str = "") -> str | None:
    """Return a line when a run used up its trees before a measure was known to be at its best; None when it was."""
    if best > max(1, grown - max(1, grown // 10)):
        at = "" if best == grown else f" (best at {best:,})"
        return f"{what} was still getting better after {counted(grown, 'tree')}{of_what}{at}: try more --trees"
    if best > max(0, grown - patience):
        return f"--early-stop {patience} did not end the run: {what} is best at {best:,} of {grown:,} trees{of_what}"
    return None
