"""The settings of a training run: every default, range and one-line meaning, once.

The command line, the model file, the man pages and the README take them from here.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import Field, dataclass, field, fields
from typing import TYPE_CHECKING, Any

from lmart.constraints import MonotoneConstraints, is_list
from lmart.decimals import LARGEST_REAL, MOST_COUNTED
from lmart.errors import SettingsError, either, first_repeated, quote, shown
from lmart.foreign_names import perhaps
from lmart.functions import OwnFunction, functions_by_name, refuse_name
from lmart.gains import Gain
from lmart.settings.declared import declared
from lmart.settings.kinds import OBJECTIVES, TREE_FORMS, ObjectiveKind, check_positions, own_objective

if TYPE_CHECKING:
    from lmart.measures.measure import Measure

AUTO = "auto"  # written for a setting that depends on the data
RECORDED = ("largest_label", "continued_from")  # in the settings of a model, but no options: they follow from its run


@dataclass(frozen=True)
class TrainSettings:
    """How to train; raises SettingsError when a value is of another type or outside its range."""

    trees: int = declared(300, "Maximum number of trees, over all rankers.", "Each round adds a tree.", low=1)
    rankers: int | None = declared(
        None,
        "Number of rankers to train and average.",
        "1: a single, plain ranker. Each has an even share of --trees. They differ in objective, form of tree, drawn "
        "features and seed, except for those that you set. auto: up to 4. With --early-stop and --valid, another "
        "ranker begins while at least as many trees are left as the largest ranker holds; otherwise each has enough "
        "trees for the data: trees x learning rate of at least 2, and of at least the square root of queries x "
        "documents, divided by 350. With --objective, a ranker for each objective; with --positions, 1. More than 8 "
        "need something that each draws by chance, as with --features below 1.",
        low=1,
        high=64,
        other=AUTO,
    )
    linear: float | None = declared(
        None,
        "Weight of a linear ranker in the mean; 0: none.",
        "Its score is a weighted sum of each feature's value, the logarithm of that and its quantile, fitted to the "
        "cross entropy of the gains. The model holds it as a tree for each feature that matters, which do not count in "
        "--trees. auto: 0.4 if --rankers and --objective are auto and that gives several rankers, with "
        "--valid; otherwise 0. The weight is smaller, or 0, where the first --valid file shows that the linear ranker "
        "is clearly worse than the trees.",
        low=0,
        high=0.9,
        other=AUTO,
    )
    tree: str | None = declared(
        None,
        f"How a tree grows: {either(tuple(TREE_FORMS))}.",
        "At the leaf with the highest gain, level by level, or with one split for all leaves of a level. auto: as the "
        "table of rankers in lmart-train(1) says, leafwise for a single ranker.",
        choices=tuple(TREE_FORMS),
        other=AUTO,
        metavar="FORM|auto",
    )
    leaves: int | None = declared(
        None,
        "Maximum number of leaves per tree.",
        "auto: a leaf for every 32 queries, from 8 to 31; 64 where all leaves of a level share a split. While a tree "
        "grows, the histograms of its leaves take up to 512 MB, or what 8 leaves need if that is more: with more "
        "leaves, some are computed again, which takes longer. There is no such limit where all leaves of a level share "
        "a split.",
        low=2,
        high=1 << 20,
        other=AUTO,
    )
    learning_rate: float = declared(0.1, "Shrinkage: factor on the values of all leaves.", above=0)
    max_depth: int = declared(
        0, "Maximum depth of a tree; 0: no limit.", "The depth is the number of splits from root to leaf.", low=0
    )
    min_docs: int = declared(
        20,
        "Minimum number of documents in a leaf.",
        "Counted exactly, not estimated. Features that no split could divide so, such as most of wide, sparse data, "
        "take no memory, and a linear ranker leaves them out too.",
        low=1,
    )
    min_hessian: float = declared(0.001, "Minimum sum of hessians in a leaf.", low=0)
    l2: float = declared(
        0.0, "L2 regularisation of leaf values.", "It is added to the sum of hessians of a leaf.", low=0, high=1e100
    )
    max_bins: int = declared(
        255, "Maximum number of bins per feature.", "Missing values have a bin of their own.", low=2, high=255
    )
    objective: str | None = declared(
        None,
        f"Objective: {either(tuple(OBJECTIVES))}, or several with +.",
        "Trees are fitted to it; several are taken in turn by the rankers. auto: yetirank and lambdamart for several "
        "rankers, lambdamart for --rankers 1 and for few trees (trees x learning rate below 4), yetirank for a single "
        "ranker of large data.",
        choices=tuple(OBJECTIVES),
        joined=True,
        other=AUTO,
    )
    truncation: int = declared(
        30,
        "Use a pair only if one of its documents is in the top N; 0: all pairs.",
        "The top N are those of the current order.",
        low=0,
    )
    sigma: float = declared(1.0, "Slope of the pair sigmoid.", above=0, high=1_000_000)
    normalize: bool = declared(
        True, "Normalise the lambdas of each query.", "LightGBM's lambdarank_norm does the same."
    )
    gain: Gain = declared(
        Gain(),
        "Gain of a label: exp2 (2^label - 1), linear, or a table.",
        "A table G0,G1,... has the gains of the labels from 0 up.",
    )
    metric: str = declared(
        "ndcg@10",
        "Measures to log, validate and stop by.",
        "`lmart eval --help` lists them. Of several, separated by commas, all are shown and reported, and the first "
        "decides on --early-stop, --folds and --tune.",
        metavar="MEASURES",
    )
    early_stop: int = declared(
        0,
        "Stop after N trees without improvement; 0: off.",
        "Each ranker stops by itself when --metric has not improved for N trees: on the first --valid file, or in the "
        "mean over --folds.",
        low=0,
    )
    absent: str = declared(
        "zero",
        "How to read an index that a row omits.",
        "An explicit nan is always missing.",
        choices=("zero", "missing"),
    )
    sample: float | None = declared(
        None,
        "Fraction of documents for each tree; 1: all.",
        "Drawn by gradient, without bias. auto: 1 up to 200,000 documents, beyond that 200,000 of them, but at least "
        "0.3.",
        above=0,
        high=1,
        other=AUTO,
    )
    features: float | None = declared(
        None,
        "Fraction of features for each tree; 1: all.",
        "Drawn anew for each tree. auto: as the table of rankers in lmart-train(1) says, 1 for a single ranker.",
        above=0,
        high=1,
        other=AUTO,
    )
    monotone: str = declared(
        "",
        "Monotone constraints: +1 increasing, -1 decreasing.",
        "The score never falls, or never rises, with these features. Name them by index or column name: a list "
        "FEATURE:+1,FEATURE:-1,... or a FILE of such lines.",
        metavar="LIST|FILE",
        shown="none",
    )
    categorical: str = declared(
        "",
        "Features whose values are categories, not quantities.",
        "Name them by index or column name: a list NAME,NAME,... or a FILE with a name on each line. The values are "
        "whole numbers or, in tables, texts; auto: all columns of texts, except where values hardly repeat. They are "
        "put in the order of what they add to a score by themselves, and trees split that order; a category that is "
        "the same for all documents of each query goes by how frequent its values are. The model keeps the order, and "
        "values that training did not see have a place of their own in it.",
        metavar="LIST|FILE|auto",
        shown="none",
    )
    position_bias_reg: float = declared(
        0.0, "L2 regularisation of the bias of each position.", "With --positions only.", low=0, high=1e100
    )
    seed: int = declared(0, "Random seed.", low=0, high=2**63 - 1)
    # The L of err, as measure and objective. No option: it follows from the data. None: 4, or a largest label above it.
    largest_label: int | None = field(default=None, metadata={"low": 1})
    # What names in `objective` and `metric` stand for that are no names of lmart; not written anywhere.
    functions: tuple[OwnFunction, ...] = ()

    def __post_init__(self) -> None:
        for option in _written():
            object.__setattr__(self, option.name, of_declared_type(option, getattr(self, option.name)))
            if option.name != "trees" or self.trees != 0:  # 0 is allowed: the initial scores alone may be best
                check_range(option, getattr(self, option.name), functions_by_name(self.functions, option.name))
        constrained = MonotoneConstraints.parse(self.monotone).directions if is_list(self.monotone) else {}
        if both := [name for name in self.categories if name in constrained]:
            what = f"monotone and categorical both name feature {quote(both[0])}"
            raise SettingsError(f"{what}; a category has no direction, so leave it out of one of them")
        if self.monotone and self.tree is not None and TREE_FORMS[self.tree].oblivious:
            others = " or ".join(quote(form.name) for form in TREE_FORMS.values() if not form.oblivious)
            raise SettingsError(f"monotone does not go with tree {quote(self.tree)}; use {others}")

    def check_positions(self) -> None:
        """Raise SettingsError when the objective does not go with positions."""
        if self.objective is not None:
            check_positions(self.objective)

    @property
    def categories(self) -> tuple[str, ...]:
        """The names or indices of the features that are categories; SettingsError when one is empty or stands twice."""
        listed = "" if self.categorical == AUTO else self.categorical
        names = tuple(name.strip() for name in listed.split(",")) if listed else ()
        if "" in names:
            raise SettingsError(f"categorical is {quote(self.categorical)}; give names or indices, with commas between")
        if (twice := first_repeated(names)) is not None:
            raise SettingsError(f"categorical names feature {quote(twice)} twice")
        return names

    @property
    def objectives(self) -> tuple[ObjectiveKind, ...]:
        """The objectives whose rankers are averaged; the first of all where it depends on the data."""
        return tuple(self.objective_kind(name) for name in (self.objective or next(iter(OBJECTIVES))).split("+"))

    def objective_kind(self, name: str) -> ObjectiveKind:
        """Return the objective of this name, which may be a function of a program."""
        function = functions_by_name(self.functions, "objective").get(name)
        return OBJECTIVES[name] if function is None else own_objective(name, function)

    @property
    def measure(self) -> Measure:
        """The first of the measures, which decides."""
        return self.measures[0]

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The measures with the gain of these settings; SettingsError when `metric` names none that may be trained."""
        from lmart.measures.conventions import Conventions
        from lmart.measures.measure import parse_measures

        own = {}
        if self.functions:  # of which NumPy is needed, which takes long to load
            from lmart.measures.own import own_kinds

            own = own_kinds(self.functions)
        measures = parse_measures(self.metric, Conventions(gain=self.gain), own)
        for measure in measures:
            if not measure.kind.is_trained:
                what = f"nothing can be trained for {quote(str(measure))}"
                raise SettingsError(f"{what}; use another measure, such as ndcg@10")
        return measures

    def to_json(self) -> dict[str, Any]:
        """Return the settings as plain JSON values, in the order they are declared."""
        shown = {option.name: getattr(self, option.name) for option in _written()}
        if self.largest_label is None:
            del shown["largest_label"]
        automatic = {option.name: AUTO for option in options() if option.default is None and shown[option.name] is None}
        if self.linear is None:
            del shown["linear"], automatic["linear"]
        if not self.categorical:
            del shown["categorical"]
        return shown | {"gain": str(self.gain)} | automatic


def _written() -> tuple[Field[Any], ...]:
    """Return the declarations of what models and reports hold of settings."""
    return tuple(option for option in fields(TrainSettings) if option.name != "functions")


def options() -> tuple[Field[Any], ...]:
    """Return the declarations of the settings that are options of `lmart train`, in their order."""
    return tuple(option for option in fields(TrainSettings) if "help" in option.metadata)


def setting(name: str) -> Field[Any]:
    """Return the declaration of one setting: `.default`, and `.metadata` as in `Declaration`."""
    return next(option for option in fields(TrainSettings) if option.name == name)


TYPES = {"int": (int, "a whole number"), "float": (float, "a number"), "bool": (bool, "True or False")}
TYPES |= {"str": (str, "text"), "Gain": (Gain, "a Gain")}


def of_declared_type(option: Field[Any], value: object) -> object:
    """Return a setting's value, an int converted to float where its field declares a float.

    SettingsError when the value is of another type than the field declares; True and False are no numbers.
    """
    declared, _, optional = str(option.type).partition(" | ")
    kind, words = TYPES[declared]
    if (isinstance(value, kind) and (kind is bool or not isinstance(value, bool))) or (value is None and optional):
        return value
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value) if abs(value) < 2**1023 else value  # which no range holds
    raise SettingsError(f"{option.name.replace('_', '-')} is {shown(value)}, which is not {words}")


def check_range(option: Field[Any], value: object, others: Collection[str] = ()) -> None:
    """Raise SettingsError when a value is not finite or outside the range or choices that its field declares.

    others : words that are allowed besides the choices
    """
    low, high, above = (option.metadata.get(name) for name in ("low", "high", "above"))
    name = option.name.replace("_", "-")
    if (choices := option.metadata.get("choices")) and isinstance(value, str):
        named = value.split("+") if option.metadata.get("joined") else [value]
        if not set(named) <= {*choices, *others}:
            unknown = next(word for word in named if word not in (*choices, *others))
            refuse_name(name, unknown)
            hint = perhaps(option.name, unknown, choices)
            raise SettingsError(f"{name} is {quote(value)}; use {either([*map(quote, choices)])}{hint}")
        if len(set(named)) < len(named):
            raise SettingsError(f"{name} is {quote(value)}, which names one twice")
    if value is None or isinstance(value, bool) or not isinstance(value, int | float):
        return
    if isinstance(value, float) and not math.isfinite(value):
        raise SettingsError(f"{name} is {value}, which is not a finite number")
    if high is None:
        high = MOST_COUNTED if str(option.type).startswith("int") else LARGEST_REAL
    if not (low is None or low <= value) or value > high or not (above is None or above < value):
        words = range_in_words(low, high, above)
        raise SettingsError(f"{name} is {shown(value)}, which is outside its range: {words}")


def range_in_words(low: float | None = None, high: float | None = None, above: float | None = None) -> str:
    """Return the range of a number, such as `from 2 to 255` or `above 0`; empty when every number is allowed."""
    if above is not None:
        return f"above {above}" if high is None else f"above {above}, up to {high}"
    if low is not None:
        return f"from {low} up" if high is None else f"from {low} to {high}"
    return "" if high is None else f"up to {high}"


def without_meaning(settings: TrainSettings) -> list[str]:
    """Return the settings that mean nothing to any of the objectives."""
    return [
        option.name
        for option in options()
        if all(_ignores(kind, option.name, settings) for kind in settings.objectives)
    ]


def _ignores(kind: ObjectiveKind, name: str, settings: TrainSettings) -> bool:
    """Return whether a setting means nothing to an objective.

    All gains but those of a table are in the order of labels, so an objective that goes by their order needs none.
    """
    by_labels = kind.relevance == "order of gains" and settings.gain.kind != "table"
    return name in kind.ignored or (name == "gain" and by_labels)


def in_words(value: object) -> str:
    """Return the value of a setting as people write it: auto, yes, no, or the number or text."""
    if value is None:
        return AUTO
    return ("no", "yes")[value] if isinstance(value, bool) else str(value)


def idle_options(settings: TrainSettings, given: Sequence[str]) -> list[str]:
    """Return a line for each of the settings that changes nothing in this run."""
    warnings = []
    for name in without_meaning(settings):
        if name not in given:
            continue
        if name != "gain":
            warnings.append(f"--{name} has no effect on --objective {settings.objective}")
        elif not any(measure.kind.uses_gain for measure in settings.measures):
            warnings.append(
                f"--gain has no effect on --objective {settings.objective} and --metric {settings.metric}; "
                "it is kept in the model for lmart eval"
            )
    return warnings
