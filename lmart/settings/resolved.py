"""Settings as training uses them: numbers and values, worked out once from what is given and what the data is like."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from lmart.constraints import MonotoneConstraints
from lmart.gains import SMALLEST_GRADE_SCALE, Gain
from lmart.measures.measure import Measure
from lmart.settings.data_facts import DataFacts
from lmart.settings.kinds import LINEAR, LISTNET, TREE_FORMS, ObjectiveKind, TreeForm
from lmart.settings.recipe import OBLIVIOUS_LEAVES, Variation, linear_weight, plan_rankers, ranker_seed
from lmart.settings.train_settings import TrainSettings

EVERY_RANK = 2**63 - 1  # as a truncation: all pairs count
SMALL_DATA = 200_000  # documents up to which `--sample auto` takes all
LOWEST_SAMPLING_RATE = 0.3


class TreeSettings(NamedTuple):
    """How a tree is grown.

    form       : in which order leaves are split
    max_leaves : that its leaves, its depth and its form allow
    max_depth  : splits between root and leaf that they allow
    """

    form: TreeForm
    max_leaves: int
    max_depth: int
    min_documents: int
    min_hessian: float
    l2: float
    learning_rate: float


@dataclass(frozen=True)
class RankerSettings:
    """How one ranker is trained; those of other rankers are made by `dataclasses.replace`.

    objective     : what its trees are fitted to
    tree          : how they are grown
    largest_label : L of the objective err, a whole number that no label is above
    truncation    : a pair counts when its upper document is at a rank below this; EVERY_RANK: all pairs
    normalize     : whether the lambdas of each query are normalised
    position_bias_reg : L2 regularisation of the bias of positions
    """

    objective: ObjectiveKind
    tree: TreeSettings
    gain: Gain
    largest_label: int
    truncation: int
    sigma: float
    normalize: bool
    position_bias_reg: float
    sampling_rate: float
    feature_rate: float
    seed: int
    trees: int


@dataclass(frozen=True)
class ResolvedSettings:
    """The settings of a run.

    recorded    : as the model and reports hold them: those given, with the largest label, the number of rankers, if
                  it is known before the run, and what else holds for all rankers filled in
    rankers     : the settings of each ranker, in the order of training; the model is their mean
    trees       : most trees of all rankers together
    patience    : trees without a better measure after which to stop; None: no early stopping
    measures    : of all sets; the first decides
    linear      : weight of a linear ranker in the mean, 0 for none
    shares_trees : each ranker may grow all trees that those before it left, and the last rankers may not be trained
    """

    recorded: TrainSettings
    facts: DataFacts
    rankers: tuple[RankerSettings, ...]
    trees: int
    patience: int | None
    measures: tuple[Measure, ...]
    constraints: MonotoneConstraints
    linear: float = 0.0
    shares_trees: bool = False

    @property
    def measure(self) -> Measure:
        """The measure that decides: on early stopping, folds and trials."""
        return self.measures[0]

    def of_first_ranker(self) -> ResolvedSettings:
        """Return the settings that train the first ranker alone, with all trees."""
        first = self.rankers[0]
        varied = Variation(first.objective.name, first.tree.form.name, first.feature_rate)
        recorded = _of_one_ranker(replace(self.recorded, linear=self.linear or None), varied, self.facts)
        return replace(self, recorded=recorded, rankers=(first,), shares_trees=False)

    @property
    def linear_ranker(self) -> RankerSettings:
        """The settings of the linear ranker."""
        first = self.rankers[0]
        return replace(
            first,
            objective=LISTNET,
            tree=first.tree._replace(form=LINEAR, max_leaves=self.recorded.max_bins),
            sigma=1.0,
            sampling_rate=1.0,
            feature_rate=1.0,
            trees=0,
        )

    @property
    def rounds(self) -> int:
        """The trees that every ranker may have: the most rounds of cross-validation."""
        return self.rankers[-1].trees

    @property
    def sampling_rate(self) -> float:
        """The share of the documents that each tree is grown from."""
        return self.rankers[0].sampling_rate

    @property
    def largest_label(self) -> int:
        """L of err, the same for the measure, the objective and all data sets."""
        return self.rankers[0].largest_label

    @property
    def uses_label_scale(self) -> bool:
        """Whether a measure or an objective has stopping probabilities, which need the largest label."""
        return _uses_label_scale(self.measures, tuple(ranker.objective for ranker in self.rankers))

    @property
    def uses_gain(self) -> bool:
        """Whether a measure or an objective goes by the gains of labels, not by their order alone."""
        of_measures = any(measure.kind.uses_gain for measure in self.measures)
        return of_measures or any(ranker.objective.relevance == "gain" for ranker in self.rankers)

    @property
    def binary_relevance(self) -> bool:
        """Whether all objectives only know documents that are relevant, and others."""
        return all(ranker.objective.relevance == "relevant" for ranker in self.rankers)

    @property
    def objective_uses_label_scale(self) -> bool:
        """Whether an objective has stopping probabilities."""
        return any(ranker.objective.relevance == "stopping probability" for ranker in self.rankers)


def resolve(settings: TrainSettings, facts: DataFacts) -> ResolvedSettings:
    """Return the settings of a run on data with these facts.

    settings : as given; `resolve` of settings that are `recorded` already changes nothing but what `facts` change

    SettingsError when the measure or the monotone constraints cannot be parsed.
    """
    plan = plan_rankers(settings, facts)
    varied, n_rankers = plan.variations(), plan.n_rankers
    trees, further = (settings.trees, 0) if plan.shares_trees else divmod(settings.trees, n_rankers)
    measures, kinds = settings.measures, tuple(settings.objective_kind(variation.objective) for variation in varied)
    chosen = largest = None
    if _uses_label_scale(measures, kinds):
        chosen = next((measure.largest_label for measure in measures if measure.largest_label), settings.largest_label)
        largest = chosen or (facts.grade_scale if facts.grade_scale != SMALLEST_GRADE_SCALE else None)
    rankers = tuple(
        RankerSettings(
            objective=kind,
            tree=_tree_settings(settings, TREE_FORMS[variation.tree], facts.n_queries),
            gain=settings.gain,
            largest_label=chosen or facts.grade_scale,
            truncation=settings.truncation or EVERY_RANK,
            sigma=settings.sigma,
            normalize=settings.normalize,
            position_bias_reg=settings.position_bias_reg,
            sampling_rate=settings.sample or _automatic_sampling_rate(facts.n_documents),
            feature_rate=variation.feature_rate,
            seed=ranker_seed(settings.seed, number),
            trees=trees + (number < further),
        )
        for number, (variation, kind) in enumerate(zip(varied, kinds, strict=True))
    )
    linear = linear_weight(settings, facts, plan)
    recorded = replace(
        settings,
        rankers=None if plan.shares_trees else n_rankers,
        linear=linear if linear or plan.shares_trees else None,
        largest_label=largest,
    )
    if n_rankers == 1:
        recorded = _of_one_ranker(recorded, varied[0], facts)
    return ResolvedSettings(
        recorded=recorded,
        facts=facts,
        rankers=rankers,
        trees=settings.trees,
        patience=settings.early_stop or None,
        measures=measures,
        constraints=MonotoneConstraints.parse(settings.monotone),
        linear=linear,
        shares_trees=plan.shares_trees,
    )


def _of_one_ranker(settings: TrainSettings, variation: Variation, facts: DataFacts) -> TrainSettings:
    """Return the settings of a run of one ranker with what else follows from the data filled in."""
    leaves = settings.leaves or automatic_leaves(facts.n_queries, TREE_FORMS[variation.tree])
    filled = {
        "tree": variation.tree,
        "objective": variation.objective,
        "features": variation.feature_rate,
        "leaves": leaves,
    }
    return replace(settings, rankers=1, **filled)  # type: ignore[arg-type]


def _uses_label_scale(measures: tuple[Measure, ...], objectives: tuple[ObjectiveKind, ...]) -> bool:
    """Return whether a measure or an objective has stopping probabilities, which need the largest label."""
    in_objective = any(kind.relevance == "stopping probability" for kind in objectives)
    return in_objective or any(measure.kind.uses_label_scale for measure in measures)


def automatic_leaves(n_queries: int, form: TreeForm) -> int:
    """Return one leaf for every 32 queries, from 8 to 31; for oblivious trees OBLIVIOUS_LEAVES.

    Few queries overfit soon: on sets of 60 to 500 queries, 6 to 16 leaves ranked new queries better than 31. The leaves
    of an oblivious tree share their splits, so that more of them overfit less.
    """
    return OBLIVIOUS_LEAVES if form.oblivious else min(31, max(8, n_queries // 32))


def _automatic_sampling_rate(n_documents: int) -> float:
    """Return 1 for small data, else what leaves SMALL_DATA documents, but at least LOWEST_SAMPLING_RATE."""
    return 1.0 if n_documents <= SMALL_DATA else max(LOWEST_SAMPLING_RATE, SMALL_DATA / n_documents)


def _tree_settings(settings: TrainSettings, form: TreeForm, n_queries: int) -> TreeSettings:
    """Return how trees are grown; oblivious trees have only levels that their leaves can fill."""
    leaves = settings.leaves or automatic_leaves(n_queries, form)
    depth = leaves.bit_length() - 1 if form.oblivious else leaves - 1
    if settings.max_depth:
        depth = min(depth, settings.max_depth)
    most = min(leaves, 1 << min(depth, leaves.bit_length()))
    limits = (settings.min_docs, settings.min_hessian, settings.l2, settings.learning_rate)
    return TreeSettings(form, most, depth, *limits)
