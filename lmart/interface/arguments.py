"""The keywords of `lmart.train`: settings by their names on the command line, and what else a run can be given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypeAlias, TypedDict

import numpy as np

from lmart.array_types import Float64Array
from lmart.constraints import MonotoneConstraints
from lmart.errors import SettingsError, shown
from lmart.foreign_names import perhaps
from lmart.functions import SEPARATORS, Metric, ObjectiveFunction, OwnFunction, functions_by_name, names_of
from lmart.gains import Gain
from lmart.settings import AUTO, RECORDED, TrainSettings, options, setting
from lmart.settings.kinds import ObjectiveName, TreeName
from lmart.settings.recipe import check_rankers
from lmart.settings.train_settings import idle_options
from lmart.training.rankers import RoundReport

Auto = Literal["auto"] | None
AbsentName = Literal["zero", "missing"]
Objective: TypeAlias = "ObjectiveName | ObjectiveFunction | Sequence[ObjectiveName | ObjectiveFunction] | Auto"


class Settings(TypedDict, total=False):
    """The settings of `lmart.train`, each an option of `lmart train`; None or 'auto': as the data wants it."""

    trees: int
    rankers: int | Auto
    linear: float | Auto
    tree: TreeName | Auto
    leaves: int | Auto
    learning_rate: float
    max_depth: int
    min_docs: int
    min_hessian: float
    l2: float
    max_bins: int
    objective: Objective
    truncation: int
    sigma: float
    normalize: bool
    gain: str | Sequence[float] | Float64Array | Gain
    metric: Metric
    early_stop: int
    absent: AbsentName
    sample: float | Auto
    features: float | Auto
    monotone: str | Mapping[str, int] | Mapping[int, int]
    categorical: str | int | Sequence[str | int]
    position_bias_reg: float
    seed: int


class TrainArguments(Settings, total=False):
    """All keywords of `lmart.train`."""

    group: object
    weights: object
    init_scores: object
    positions: object
    continue_from: object
    folds: object
    fold_by: object
    validation_fraction: float | None
    refit: bool
    feature_names: Sequence[str] | None
    allow_inf: bool
    strict: bool
    threads: int | None
    verbose: bool
    callback: Callable[[RoundReport], object] | None
    largest_label: int | None
    continued_from: int


@dataclass(frozen=True)
class Run:
    """How a run is made, besides its settings and data.

    continue_from : a Model, or the file of one, to go on boosting from; None: from none
    folds     : that choose the number of trees, as in `lmart.cross_validate`; None: there are none
    fold_by   : what keeps queries together in folds
    validation_fraction : share of the queries of X that become the validation set; None: none do
    refit     : the last model is trained on X and the validation sets together
    allow_inf : infinite values of arrays are data
    strict    : features that only one of training and validation sets has are refused, instead of a warning
    callback  : called after each round; None: nothing is
    """

    continue_from: object = None
    folds: object = None
    fold_by: object = None
    validation_fraction: float | None = None
    refit: bool = False
    allow_inf: bool = False
    strict: bool = False
    threads: int | None = None
    verbose: bool = False
    callback: Callable[[RoundReport], object] | None = None


def settings_of(keywords: Mapping[str, Any], others: Sequence[str] = ()) -> TrainSettings:
    """Return settings from keywords, or from the `settings` of a model; None or 'auto' may follow from the data.

    TypeError for an unknown name, with the one of the settings or `others` that may be meant; SettingsError for a value
    that is not allowed.
    """
    names = [option.name for option in options()]
    values: dict[str, Any] = {}
    functions: list[OwnFunction] = []
    for name, value in keywords.items():
        if name in RECORDED:
            continue
        if name not in names:
            raise TypeError(f"there is no setting {name!r}{perhaps('argument', name, [*names, *others])}")
        if name in SEPARATORS:
            named, own = names_of(name, value)
            values[name], functions = _value(name, named), [*functions, *own]
        else:
            values[name] = _value(name, value)
    settings = TrainSettings(**values, functions=tuple(functions))
    constraints = str(MonotoneConstraints.parse(settings.monotone))
    return replace(settings, metric=",".join(map(str, settings.measures)), monotone=constraints)


def given_back(settings: TrainSettings) -> dict[str, Any]:
    """Return settings as `lmart.train` takes them, with the functions that names stand for."""
    named = {"objective": (settings.objective or "").split("+"), "metric": list(map(str, settings.measures))}
    values = settings.to_json()
    for name, parts in named.items():
        if own := functions_by_name(settings.functions, name):
            values[name] = [own.get(part, part) for part in parts]
    return values


def _value(name: str, value: Any) -> Any:
    """Return a setting as TrainSettings takes it."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, str) and value == AUTO and setting(name).default is None:
        return None
    if name == "gain":
        return Gain.of(value)
    if name == "monotone" and isinstance(value, Mapping):
        return ",".join(f"{_feature(feature)}:{_direction(feature, way)}" for feature, way in value.items() if way)
    if name == "categorical" and not isinstance(value, str):
        return ",".join(_feature(feature, name) for feature in ([value] if isinstance(value, int) else value))
    return value


def _feature(name: object, setting: str = "monotone") -> str:
    if isinstance(name, int) and not 0 <= name < 2**63:
        raise SettingsError(f"{setting} names feature {shown(name)}; use a name, or an index from 0 to 2^63 - 1")
    return str(name)


def _direction(feature: object, way: object) -> str:
    if way not in (1, -1):
        raise SettingsError(
            f"monotone of {shown(feature)} is {shown(way)}; use 1 where the score may only rise, -1 or 0"
        )
    return "+1" if way == 1 else "-1"


def run_of(keywords: Mapping[str, Any]) -> tuple[Run, dict[str, Any]]:
    """Return how a run is made, and the keywords that are left."""
    own = {field.name for field in fields(Run)}
    run = Run(**{name: value for name, value in keywords.items() if name in own})
    return run, {name: value for name, value in keywords.items() if name not in own}


def of_one_ranker(settings: TrainSettings, with_positions: bool) -> TrainSettings:
    """Return the settings of a run that goes on from a model; SettingsError when that cannot be."""
    if with_positions:
        raise SettingsError("positions do not go with continue_from: a model holds no bias of positions")
    if (settings.rankers or 1) > 1 or (settings.rankers is None and len(settings.objectives) > 1):
        raise SettingsError("continue_from adds the trees of one ranker; give rankers=1 and one objective")
    return replace(settings, rankers=1)


def check_validation_fraction(fraction: object, with_valid: bool) -> None:
    """Raise SettingsError when a share of X cannot be the validation set."""
    if with_valid:
        raise SettingsError("validation_fraction holds out queries of X for validation; give no valid, or leave it out")
    if not isinstance(fraction, int | float) or not 0 < fraction < 1:
        raise SettingsError(f"validation_fraction is {shown(fraction)}; give a share between 0 and 1, such as 0.1")


def check_refit(with_valid: bool, with_metadata: bool, continues: bool) -> None:
    """Raise SettingsError when X and the validation sets cannot be one data set to train on."""
    if not with_valid:
        raise SettingsError("refit needs a validation set, which is what it adds to X; give valid=(X, y, qid)")
    if continues:
        raise SettingsError("refit does not go with continue_from; leave out one of both")
    if with_metadata:
        what = "refit trains on X and valid as one data set"
        raise SettingsError(f"{what}, without weights, init_scores and positions; leave these out")


def check_together(settings: TrainSettings, names: Sequence[str], with_valid: bool, with_positions: bool) -> list[str]:
    """Return warnings of named settings without effect; SettingsError for those that do not fit."""
    if settings.early_stop and not with_valid:
        raise SettingsError("early_stop needs a validation set to measure; give valid=(X, y, qid)")
    if with_positions:
        settings.check_positions()
    elif "position_bias_reg" in names and settings.position_bias_reg:
        raise SettingsError("position_bias_reg needs positions; give them, or leave it out")
    check_rankers(settings, with_positions)
    changed = [name for name in names if getattr(settings, name) != setting(name).default]
    return idle_options(settings, changed)
