"""How a run goes, in words: what was read and chosen, the measures by now, what was written. Loads no numpy.

The command line and `lmart.train(verbose=True)` say the same; `training.remarks` has what may be wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from lmart.errors import counted, input_name
from lmart.reports.html_parts import shown
from lmart.settings.recipe import PLAIN

if TYPE_CHECKING:
    from lmart.data.dataset import DataSize
    from lmart.settings import TrainSettings
    from lmart.settings.resolved import RankerSettings, ResolvedSettings
    from lmart.training.boosting import BoostingRun
    from lmart.training.continuation import Continuation, Difference
    from lmart.training.cross_validation import CrossValidation
    from lmart.training.measured import Measures
    from lmart.training.rankers import RoundReport
    from lmart.training.train_result import TrainResult


def describe(dataset: DataSize, share: float) -> str:
    """Return how large the training set is, and which `share` of its rows each tree is grown from."""
    documents, features = counted(dataset.n_documents, "document"), counted(dataset.n_features, "feature")
    sampled = f"; each tree is grown from {share:.0%} of the documents (--sample)" if share < 1 else ""
    return f"read {documents} of {counted(dataset.n_queries, 'query')} with {features}{sampled}"


def automatic_choices(requested: TrainSettings, settings: ResolvedSettings) -> Iterator[str]:
    """Yield which rankers the model has, and which settings of theirs were chosen automatically."""
    automatic = (requested.objective, requested.leaves)
    if None not in automatic and len(settings.rankers) == 1:
        return
    described = [_describe_ranker(ranker) for ranker in settings.rankers]
    linear = f"; a linear ranker of weight {settings.linear:g}" if settings.linear else ""
    why = f"auto: {counted(settings.facts.n_queries, 'query')}, {counted(settings.trees, 'tree')}"
    is_default = requested.rankers is None and requested.objective is None
    instead = f"; --rankers 1 trains {PLAIN.objective} alone"
    if len(described) == 1:
        is_plain = settings.rankers[0].objective.name == PLAIN.objective
        yield f"{described[0]} ({why}){linear}{instead if is_default and not is_plain else ''}"
    else:
        most = f"{'up to ' if settings.shares_trees else ''}{len(described)} rankers"
        if is_default:
            better = "which ranks better on public data than a single ranker with as many trees"
            yield f"by default trains {most} and averages them, {better}{instead}"
        chosen = f" ({why})" if None in automatic else ""
        yield f"the mean of {most}{chosen}: {'; '.join(described)}{linear}"


def _describe_ranker(settings: RankerSettings) -> str:
    """Describe a ranker in a few words."""
    tree = settings.tree
    form = "" if tree.form.is_usual else f"{tree.form.name} trees of "
    features = f" and {settings.feature_rate:.3g} of the features" if settings.feature_rate < 1 else ""
    return f"{settings.objective.name} with {form}{counted(tree.max_leaves, 'leaf', 'leaves')}{features}"


def crossed(found: CrossValidation, settings: ResolvedSettings) -> str:
    """Return what folds found."""
    trees = counted(found.trees, "tree")
    return (
        f"{len(found.folds)} folds: {settings.measure} {found.mean:.6f} with {trees}, which were chosen on the same "
        "queries; only other data tells how good the model is"
    )


def continuing(continuation: Continuation, differences: Sequence[Difference]) -> str:
    """Return which model the run continues, and why one run of all rounds would not give the same model."""
    what = f"going on from {input_name(continuation.path)} with {counted(continuation.n_trees, 'tree')}"
    if not differences:
        return what
    why = "; ".join(difference.text for difference in differences)
    return f"{what}; one run of all rounds would not give the same: {why}"


def starting(run: BoostingRun, with_init_scores: bool, valid: Sequence[str]) -> Iterator[str]:
    """Yield which model a run continues, and the measures before its first round, if it starts from any scores."""
    if run.continuation is not None:
        yield continuing(run.continuation, run.differences)
    if run.start is not None:
        starts = {"the model": run.continuation is not None, "the initial scores": with_init_scores}
        measures = with_training(run.start.training_measures, run.start.validation_measures, valid)
        yield f"{' and '.join(what for what, is_there in starts.items() if is_there)} alone: {measures}"


def with_training(training: Measures, validation: Sequence[Measures], valid: Sequence[str]) -> str:
    """Return the measures of the training set and of each validation set, whose names are `valid`."""
    return _measured([("training", training), *zip(valid, validation, strict=True)])


def _measured(sets: Sequence[tuple[str, Measures]]) -> str:
    """Return the measures of data sets: `ndcg@10 0.7 on a, 0.6 on b`; of several, `ndcg@10 0.7, map 0.5 on a; ...`."""
    name, *further = sets[0][1]
    if not further:
        return f"{name} {', '.join(f'{shown(measures[name])} on {of_set}' for of_set, measures in sets)}"
    return "; ".join(f"{_listed(measures)} on {of_set}" for of_set, measures in sets)


def _listed(measures: Measures) -> str:
    return ", ".join(f"{name} {shown(value)}" for name, value in measures.items())


def summary(result: TrainResult, valid: Sequence[str], out: str | None, seconds: float) -> str:
    """Return how many trees the model has, how long it took, and its measures.

    out : the file that it was written to; None: it was not
    """
    n_linear = 0 if result.linear is None else result.linear.trees
    trees = counted(len(result.ensemble.trees) - n_linear, "tree")
    best = f" (best of {result.rounds} rounds)" if result.n_trees < result.rounds else ""
    if len(result.rankers) > 1:
        best = f" of {len(result.rankers)} rankers" + (best and f" (of {result.rounds} grown)")
    if result.continued_from is not None:
        best = f", {result.n_trees:,} of them new{best}"
    if n_linear:
        best += f" and {n_linear:,} of a linear ranker"
    done = f"trained {trees}{best}" if out is None else f"wrote {trees}{best} to {out}"
    measures = with_training(result.training_measures, result.validation_measures, valid)
    return f"{done} in {duration(seconds)}; {measures}"


def duration(seconds: float) -> str:
    """Return a time in words, such as `12.3 s`, `5 min 7 s` or `2 h 0 min`."""
    if seconds < 99.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


class RoundCount:
    """How far a run is, round by round.

    best : the best measure of the ranker that grows, by which its rounds are told
    """

    def __init__(self, settings: ResolvedSettings, start: float | None) -> None:
        self._settings, self._start = settings, start
        self._before = [sum(ranker.trees for ranker in settings.rankers[:k]) for k in range(len(settings.rankers))]
        self._ranker = self._rounds = 0
        self.best = BestSoFar()

    def take(self, report: RoundReport) -> int:
        """Take a round, and return how many of the rounds of all rankers are done."""
        self._rounds += 1
        if report.ranker != self._ranker:
            self._ranker, self.best = report.ranker, BestSoFar(self._start)
        if report.validation:
            self.best.update(report.round, report.validation[0])
        return self._rounds if self._settings.shares_trees else self._before[report.ranker - 1] + report.round


class BestSoFar:
    """Keeps the best of the measures after each round, the first on ties."""

    def __init__(self, start: float | None = None) -> None:
        self.value = start
        self.round = 0

    def update(self, number: int, value: float | None) -> None:
        """Take the measure after a round; None is never better."""
        if value is not None and (self.value is None or value > self.value):
            self.value, self.round = value, number

    def text(self, number: int, where: bool = True) -> str:
        """Return the best measure and the rounds since, after a comma; '' when this round is the best."""
        if self.value is None or self.round == number:
            return ""
        at = f" at {self.round:,}" if where else ""
        return f", best {self.value:.6f}{at}, {number - self.round:,} since"


def ranker_text(report: RoundReport, settings: ResolvedSettings) -> str:
    """Return which of several rankers a round belongs to, with a comma behind; '' of a single one."""
    n_rankers = len(settings.rankers)
    most = f"up to {n_rankers}" if settings.shares_trees else n_rankers
    return f"ranker {report.ranker} of {most}, " if n_rankers > 1 else ""


def round_text(report: RoundReport, settings: ResolvedSettings, valid: Sequence[str], best: BestSoFar) -> str:
    """Return the measures after a round: of the validation sets, or without any of the training set."""
    ranker = ranker_text(report, settings)
    if not valid:
        return f"{ranker}training {_listed(report.measure_all())}"
    measures = _measured(list(zip(valid, report.validation_measures, strict=True)))
    return f"{ranker}{measures}{best.text(report.round)}"
