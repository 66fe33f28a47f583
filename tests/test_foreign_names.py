"""Names of other tools lead to our options."""

from __future__ import annotations

import pytest
from helpers.commands import run

from lmart.cli.main import COMMANDS, main
from lmart.foreign_names import OURS, option_for


@pytest.mark.parametrize(
    ("command", "foreign", "ours"),
    [
        ("train", "--eta", "--learning-rate"),
        ("train", "--n_estimators", "--trees"),
        ("train", "--num-leaves=31", "--leaves"),
        ("train", "--colsample_bytree", "--features"),
        ("train", "--kcv", "--folds"),
        ("train", "--group", "--query-sizes"),
        ("eval", "--train", "--data"),
        ("predict", "--nthread", "--threads"),
    ],
)
def test_a_name_of_another_tool_leads_to_ours(command: str, foreign: str, ours: str) -> None:
    said = run(command, foreign, "x", status=2).stderr
    name = foreign.partition("=")[0]
    assert f"no such option '{name}'; perhaps '{ours}'; see" in said


def test_only_options_that_the_command_has_are_named() -> None:
    assert "--learning-rate" not in run("eval", "--eta", "1", status=2).stderr


def test_ours_exist_and_no_foreign_name_is_listed_twice() -> None:
    commands = [main.get_command(None, name) for name in COMMANDS]  # type: ignore[arg-type]
    known = {name for one in commands if one is not None for option in one.params for name in option.opts}
    assert set(OURS) <= known
    names = [name for listed in OURS.values() for name in listed.split()]
    assert len(names) == len(set(names))
    assert option_for("--LEARNING_RATE") is None
