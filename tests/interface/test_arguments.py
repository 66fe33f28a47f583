"""Keywords of lmart.train are the options of lmart train."""

from __future__ import annotations

import pytest

from lmart.cli.main import main
from lmart.errors import SettingsError
from lmart.interface.arguments import Settings, TrainArguments, settings_of
from lmart.interface.reading import ReadArguments
from lmart.settings import options


def test_every_setting_is_a_keyword() -> None:
    assert list(Settings.__annotations__) == [one.name for one in options()]


def test_keywords_have_the_names_of_options() -> None:
    command = main.get_command(None, "train")  # type: ignore[arg-type]
    assert command is not None
    known = {one.name for one in command.params}
    own = {"group", "feature_names", "verbose", "callback", "validation_fraction", "largest_label", "continued_from"}
    assert set(TrainArguments.__annotations__) - own <= known
    assert set(ReadArguments.__annotations__) <= known


@pytest.mark.parametrize("value", [10**400, 10**5000, -(10**5000), [10**5000]], ids="abcd")
@pytest.mark.parametrize("name", ["trees", "seed", "l2", "gain", "metric", "objective", "monotone", "normalize"])
def test_numbers_of_any_size_are_settings_errors(name: str, value: object) -> None:
    with pytest.raises(SettingsError) as fault:
        settings_of({name: value})
    assert len(str(fault.value)) < 200


@pytest.mark.parametrize("monotone", [{10**5000: 1}, {-1: 1}, {1: 10**5000}, {1: 0.5}], ids="abcd")
def test_directions_of_any_size_are_settings_errors(monotone: dict[int, int]) -> None:
    with pytest.raises(SettingsError, match=r"^monotone "):
        settings_of({"monotone": monotone})
