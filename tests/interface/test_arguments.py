"""Keywords of lmart.train are the options of lmart train."""

from __future__ import annotations

from lmart.cli.main import main
from lmart.interface.arguments import Settings, TrainArguments
from lmart.interface.reading import ReadArguments
from lmart.settings import options


def test_every_setting_is_a_keyword() -> None:
    assert list(Settings.__annotations__) == [one.name for one in options()]


def test_keywords_have_the_names_of_options() -> None:
    command = main.get_command(None, "train")  # type: ignore[arg-type]
    assert command is not None
    known = {one.name for one in command.params}
    own = {"group", "feature_names", "verbose", "callback", "largest_label", "continued_from"}
    assert set(TrainArguments.__annotations__) - own <= known
    assert set(ReadArguments.__annotations__) <= known
