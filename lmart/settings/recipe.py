"""The rankers whose mean is the model: the table of how they differ, and the part of it that settings allow.

The mean of rankers that err differently ranks better than one ranker of as many trees, as long as each has enough of
them. The order was chosen by cross-validation within the
training data of MQ2008, OHSUMED and LightGBM's example, and on generated data of 2,000 and 6,000 queries, on which one
YetiRank ranker did better than one LambdaMART ranker of as many trees.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from lmart.errors import SettingsError
from lmart.gains import Gain
from lmart.settings.data_facts import DataFacts
from lmart.settings.kinds import OBJECTIVES
from lmart.settings.train_settings import TrainSettings, setting

AUTOMATIC = 4  # most rankers of `--rankers auto`
SIZE_OF_EFFORT = 350.0  # queries and documents, their geometric mean, that trees x learning rate of 1 fit
LEAST_EFFORT = 2.0  # trees x learning rate that any ranker needs
OBLIVIOUS_LEAVES = 64  # of an oblivious tree whose leaves are chosen automatically: six splits
LINEAR_WEIGHT = 0.4  # of `--linear auto`, in a mean of several rankers
_SEED_STEP = 0x9E3779B97F4A7C15  # 2^64 / golden ratio, so that seeds near each other share no ranker's seed


class Variation(NamedTuple):
    """How a ranker differs from others.

    objective    : name of its objective
    tree         : name of the form of its trees
    feature_rate : share of the features that each tree may split on
    """

    objective: str
    tree: str
    feature_rate: float

    @property
    def help(self) -> str:
        """The variation in a few words."""
        features = "all features" if self.feature_rate == 1.0 else f"{self.feature_rate:g} of the features for each"
        return f"{self.objective}, {self.tree} trees, {features}"


VARIATIONS = (
    Variation("yetirank", "leafwise", 1.0),
    Variation("lambdamart", "leafwise", 1.0),
    Variation("lambdamart", "oblivious", 1.0),
    Variation("yetirank", "oblivious", 0.5),
    Variation("lambdamart", "leafwise", 0.5),
    Variation("yetirank", "leafwise", 0.5),
    Variation("yetirank", "oblivious", 1.0),
    Variation("lambdamart", "oblivious", 0.5),
)
PLAIN = Variation("lambdamart", "leafwise", 1.0)  # of `--rankers 1`, and where there are few trees for any data


class Plan(NamedTuple):
    """The rankers of a run, worked out once from the settings and the data.

    table        : the variations that the settings allow, each once
    most         : the largest number of rankers that all differ
    n_rankers    : rankers of the run, at most one for each tree
    shares_trees : early stopping decides how many rankers there are. Each ranker may grow all trees that the rankers
                   before it left, and another begins while at least as many trees are left as the largest ranker holds
    """

    table: tuple[Variation, ...]
    most: int
    n_rankers: int
    shares_trees: bool

    def variations(self) -> tuple[Variation, ...]:
        """Return how each ranker differs; SettingsError when two of them would be the same.

        With more rankers than the table has, it starts again; rankers then differ by their seeds alone.
        """
        n_rankers, distinct = self.n_rankers, len(self.table)
        if n_rankers > self.most:
            differ = "1 differs" if distinct == 1 else f"{distinct} differ"
            what = f"rankers is {n_rankers}, but with the other settings only {differ}"
            raise SettingsError(f"{what}; use fewer, or --features below 1")
        return tuple(self.table[k % distinct] for k in range(n_rankers))


def plan_rankers(settings: TrainSettings, facts: DataFacts) -> Plan:
    """Return the rankers that a run on this data trains.

    settings : an objective, form of tree or share of features that is given holds for all rankers; several objectives
    facts    : of the data; with a bias of positions, only objectives that learn it are taken, and the automatic number
               is 1

    The mean of rankers is better than a single ranker only when each has enough trees to fit the data. With early
    stopping, the trees of the rankers before show how many that is. Without, it is estimated: a ranker needs
    trees x learning rate of 1 for each SIZE_OF_EFFORT of the geometric mean of queries and documents.
    """
    table = _distinct(settings, facts.with_positions)
    by_seed = all(_has_chance(variation, settings) for variation in table)
    most = int(setting("rankers").metadata["high"]) if by_seed else len(table)
    shares_trees = False
    if settings.rankers is not None:
        n_rankers = settings.rankers
    elif settings.objective is not None:
        n_rankers = len(settings.objectives)
    elif facts.with_positions:
        n_rankers = 1
    else:
        n_rankers = min(AUTOMATIC, most)
        stops = settings.early_stop > 0 and facts.with_validation
        shares_trees = stops and not _is_plain(settings) and most > 1
        if not shares_trees:
            needed = max(LEAST_EFFORT, math.sqrt(facts.n_queries * facts.n_documents) / SIZE_OF_EFFORT)
            n_rankers = max(1, int(min(n_rankers, settings.trees * settings.learning_rate / needed)))
    return Plan(tuple(table), most, min(n_rankers, max(1, settings.trees)), shares_trees)


def linear_weight(settings: TrainSettings, facts: DataFacts, plan: Plan) -> float:
    """Return the weight of a linear ranker in the mean, 0 for none; SettingsError when it cannot be as it is given."""
    if settings.linear is not None:
        if settings.linear > 0 and facts.with_positions:
            raise SettingsError("linear rankers know no positions; leave out linear, or use 0")
        return settings.linear
    is_default = settings.rankers is None and settings.objective is None
    several = plan.n_rankers > 1 or plan.shares_trees
    # Without a validation set nothing says whether the data is one where features add up: where only their interactions
    # matter, a linear ranker in the mean was measured to lose 0.06 of NDCG@10.
    return LINEAR_WEIGHT if is_default and several and facts.with_validation else 0.0


def check_rankers(settings: TrainSettings, with_positions: bool) -> None:
    """Raise SettingsError when two rankers would be the same, or an objective has none, before the data is known."""
    named = len(settings.objectives) if settings.objective is not None else 0
    for name, most in (("rankers", settings.rankers), ("trees", settings.trees or None)):
        if most is not None and named > most:
            raise SettingsError(f"objective names {named}, and {name} is {most}; give as many {name}, or more")
    if settings.rankers is None:
        return
    plan_rankers(settings, DataFacts(0, 0, with_positions=with_positions)).variations()


def _distinct(settings: TrainSettings, with_positions: bool) -> list[Variation]:
    """Return the table as far as settings do not say otherwise, each variation once.

    Objectives that cannot learn a bias of positions are left out where there are positions, and those that go by labels
    where `gain` is another than exp2.
    """
    table = [PLAIN, *VARIATIONS] if _is_plain(settings) else [*VARIATIONS]
    if with_positions:
        table = [variation for variation in table if OBJECTIVES[variation.objective].positions]
    if settings.gain != Gain():
        table = [variation for variation in table if OBJECTIVES[variation.objective].relevance == "gain"]
    if settings.objective is not None:
        names = [kind.name for kind in settings.objectives]
        plain = [Variation(name, "leafwise", 1.0) for name in names]
        table = plain + [variation._replace(objective=name) for variation in VARIATIONS for name in names]
    fixed = [
        variation._replace(
            tree=variation.tree if settings.tree is None else settings.tree,
            feature_rate=variation.feature_rate if settings.features is None else settings.features,
        )
        for variation in table
        if settings.tree is not None or not (settings.monotone and variation.tree == "oblivious")
    ]
    return list(dict.fromkeys(fixed))


def _is_plain(settings: TrainSettings) -> bool:
    """Return whether the first ranker is the plain algorithm: for one ranker, and where there are few trees."""
    effort = settings.trees * settings.learning_rate
    return settings.rankers == 1 or (settings.rankers is None and effort < 2 * LEAST_EFFORT)


def ranker_seed(seed: int, number: int) -> int:
    """Return the seed of a ranker, numbered from 0, up to 2^63 - 1: that of the run for the first."""
    return seed if number == 0 else (seed + number * _SEED_STEP) % (1 << 63)


def _has_chance(variation: Variation, settings: TrainSettings) -> bool:
    """Return whether rankers of this kind differ by their seeds."""
    return (
        variation.feature_rate < 1.0
        or settings.objective_kind(variation.objective).random
        or settings.sample not in (None, 1.0)
    )
