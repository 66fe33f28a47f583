"""What notebooks complete and `help` shows: every setting, with its type, range and default."""

from __future__ import annotations

import inspect
import pydoc
from collections.abc import Callable
from typing import Any, get_args

import pytest

import lmart
from lmart.interface.arguments import AbsentName, Run
from lmart.settings import OBJECTIVES, TREE_FORMS, options, range_in_words, setting
from lmart.settings.kinds import ObjectiveName, TreeName

FUNCTIONS = (lmart.train, lmart.cross_validate, lmart.tune)
TYPES = {name: kind.__forward_arg__ for name, kind in lmart.Settings.__annotations__.items()}


def text_of(value: object) -> object:
    return str(value) if type(value).__name__ == "Gain" else value


def test_the_settings_of_the_typed_dict_are_those_there_are() -> None:
    assert list(TYPES) == [option.name for option in options()]
    for option in options():
        declared = str(option.type)
        if declared == "Gain":
            continue
        assert ("Auto" in TYPES[option.name]) == declared.endswith("None") or option.name == "objective"
        if declared.startswith(("int", "float", "bool")):
            assert TYPES[option.name] == declared.replace("None", "Auto")


def test_words_are_those_that_settings_take() -> None:
    assert get_args(ObjectiveName) == tuple(OBJECTIVES)
    assert get_args(TreeName) == tuple(TREE_FORMS)
    assert get_args(AbsentName) == setting("absent").metadata["choices"]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_signatures_list_every_setting_with_its_default(function: Callable[..., Any]) -> None:
    parameters = inspect.signature(function).parameters
    for option in options():
        assert parameters[option.name].default == text_of(option.default)
        assert parameters[option.name].annotation == TYPES[option.name]
    assert {"weights", "threads", "allow_inf"} <= parameters.keys()
    assert not {"largest_label", "continued_from", "settings"} & parameters.keys()
    if function is lmart.train:
        assert {name: parameters[name].default for name in Run.__annotations__} == vars(Run())


@pytest.mark.parametrize("function", FUNCTIONS)
def test_help_tells_every_setting_its_range_and_its_default(function: Callable[..., Any]) -> None:
    shown = " ".join(pydoc.render_doc(function).split())
    for option in options():
        default = "auto" if option.default is None else repr(text_of(option.default))
        assert f" {option.name} = {default}: {option.metadata['help'].split()[0]}" in shown
        range_ = range_in_words(*(option.metadata.get(name) for name in ("low", "high", "above")))
        assert range_.lower() in shown.lower()
    assert "--" not in shown.partition("each with its default")[2]


def test_the_estimator_has_the_types_and_the_list_too() -> None:
    pytest.importorskip("sklearn")
    ranker = pytest.importorskip("lmart.sklearn").LambdaMARTRanker
    parameters = inspect.signature(ranker.__init__).parameters
    for option in options():
        assert parameters[option.name].annotation == TYPES[option.name]
        assert f"\n{option.name} = " in ranker.__doc__
