"""TrainSettings: defaults as the contract fixes them, ranges, words."""

from __future__ import annotations

import json
import math
from dataclasses import FrozenInstanceError, fields
from typing import Any

import pytest

from lmart.errors import ExitStatus, SettingsError
from lmart.gains import Gain
from lmart.settings import TrainSettings, options, range_in_words

DEFAULTS = {
    "trees": 300,
    "rankers": "auto",
    "tree": "auto",
    "leaves": "auto",
    "learning_rate": 0.1,
    "max_depth": 0,
    "min_docs": 20,
    "min_hessian": 0.001,
    "l2": 0.0,
    "max_bins": 255,
    "objective": "auto",
    "truncation": 30,
    "sigma": 1.0,
    "normalize": True,
    "gain": "exp2",
    "metric": "ndcg@10",
    "early_stop": 0,
    "absent": "zero",
    "sample": "auto",
    "features": "auto",
    "monotone": "",
    "position_bias_reg": 0.0,
    "seed": 0,
}


def test_defaults() -> None:
    assert TrainSettings().to_json() == DEFAULTS


@pytest.mark.parametrize("text", ["", "lambdamart+", "+", "lambdamart+Err", "auto+err"])
def test_objectives_are_known_ones(text: str) -> None:
    with pytest.raises(SettingsError, match=r"objective is .*; use 'lambdamart', .* or 'yetirank'"):
        TrainSettings(objective=text)


def test_an_objective_takes_one_turn() -> None:
    with pytest.raises(SettingsError, match=r"objective is 'err\+err', which names one twice"):
        TrainSettings(objective="err+err")


def test_json_is_strict_and_keeps_the_order_of_declaration() -> None:
    shown = TrainSettings(gain=Gain.parse("0,1,5"), sample=0.5).to_json()
    assert json.loads(json.dumps(shown, allow_nan=False)) == shown
    assert list(shown) == [one.name for one in options() if one.name not in ("linear", "categorical")]
    assert list(TrainSettings(linear=0.2, categorical="3").to_json()) == [one.name for one in options()]
    assert "largest_label" not in shown and TrainSettings(largest_label=5).to_json()["largest_label"] == 5
    assert (shown["gain"], shown["sample"]) == ("0,1,5", 0.5)


def test_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        TrainSettings().trees = 3  # type: ignore[misc]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("trees", v) for v in (-1, -5)],
        *[("leaves", v) for v in (0, 1, 2**20 + 1)],
        *[("learning_rate", v) for v in (0.0, -0.1, math.nan, math.inf)],
        *[("max_bins", v) for v in (1, 256)],
        *[("sample", v) for v in (0.0, 1.5, math.nan)],
        *[(name, -1) for name in ("max_depth", "min_hessian", "l2", "truncation", "early_stop", "seed")],
        *[("min_docs", 0), ("sigma", 0.0), ("absent", "none"), ("seed", 2**63), ("objective", "mse")],
    ],
)
def test_outside_the_range(name: str, value: Any) -> None:
    with pytest.raises(SettingsError, match=f"{name.replace('_', '-')} is ") as caught:
        TrainSettings(**{name: value})
    assert caught.value.status == ExitStatus.USAGE
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("trees", 0),
        ("leaves", 2),
        ("learning_rate", 1e-300),
        ("max_bins", 2),
        ("sample", 1.0),
        ("min_docs", 1),
        ("l2", 0),
    ],
)
def test_edges_of_the_range(name: str, value: Any) -> None:
    assert getattr(TrainSettings(**{name: value}), name) == value


def test_every_setting_is_explained_in_a_sentence() -> None:
    for one in options():
        help = one.metadata["help"]
        assert help[0].isupper() and help.endswith(".") and "  " not in help


def test_ranges_in_words() -> None:
    assert range_in_words(low=2, high=255) == "from 2 to 255"
    assert range_in_words(low=1) == "from 1 up"
    assert range_in_words(above=0) == "above 0"
    assert range_in_words(above=0, high=1) == "above 0, up to 1"
    assert range_in_words(high=3) == "up to 3"
    assert range_in_words() == ""


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("trees", 2.5),
        ("trees", "x"),
        ("trees", True),
        ("trees", None),
        ("learning_rate", "0.1"),
        ("learning_rate", False),
        ("normalize", "no"),
        ("normalize", 1),
        ("gain", "linear"),
        ("metric", 3),
        ("leaves", 8.0),
        ("sample", "auto"),
    ],
)
def test_a_value_of_another_type_is_refused(name: str, value: object) -> None:
    with pytest.raises(SettingsError, match=f"{name.replace('_', '-')} is .*, which is not "):
        TrainSettings(**{name: value})  # type: ignore[arg-type]


def test_a_whole_number_may_stand_for_a_float() -> None:
    assert str(TrainSettings(learning_rate=1, l2=0).to_json()["learning_rate"]) == "1.0"
    assert TrainSettings(leaves=None, sample=None, objective=None) == TrainSettings()


@pytest.mark.parametrize("one", [one for one in fields(TrainSettings) if str(one.type).startswith(("int", "float"))])
@pytest.mark.parametrize("value", [10**301, -(10**301), 10**400, -(10**400), 10**5000], ids="abcde")
def test_every_number_has_bounds(one: Any, value: Any) -> None:
    name = one.name.replace("_", "-")
    with pytest.raises(SettingsError, match=rf"^{name} is .*, which is outside its range: .* ?\d") as refusal:
        TrainSettings(**{one.name: value})
    assert len(str(refusal.value)) < 200


@pytest.mark.parametrize("value", [2, 0, 10**400, 10**5000, "true", None], ids="abcdef")
def test_a_switch_is_true_or_false(value: object) -> None:
    with pytest.raises(SettingsError, match=r"^normalize is .*, which is not True or False$"):
        TrainSettings(normalize=value)  # type: ignore[arg-type]
