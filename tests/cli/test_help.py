"""-h fits one screen, --help is in groups, and neither has a line that a terminal would break."""

from __future__ import annotations

import re

import click
import pytest
from helpers.commands import run

from lmart.cli.command import HelpfulCommand
from lmart.cli.help import LAYOUTS, SHARED
from lmart.cli.main import COMMANDS, main
from lmart.errors import ExitStatus

SCREEN, FULL, WIDEST = 24, 125, 80
CONTEXT = click.Context(main, info_name="lmart")
WHOLE = [(), ("-h",), *((name, "-h") for name in COMMANDS), *((name, "--help") for name in COMMANDS)]


def command(name: str) -> click.Command:
    found = main.get_command(CONTEXT, name)
    assert found is not None
    return found


def options(name: str) -> list[click.Option]:
    return [one for one in command(name).params if isinstance(one, click.Option) and not one.hidden]


@pytest.mark.parametrize("name", COMMANDS)
def test_one_screen(name: str) -> None:
    lines = run(name, "-h").stdout.splitlines()
    assert len(lines) <= SCREEN
    assert lines[0].startswith(f"Usage: lmart {name} [OPTIONS]")
    assert lines[-1] == f"'lmart {name} --help' shows all options."
    assert 1 <= sum(line.startswith("  lmart ") for line in lines) <= 3
    for one in options(name):
        if one.required:
            assert any(max(one.opts, key=len) in line for line in lines[1:]), one.name


def test_the_dozen_options_of_train_that_matter_are_on_its_screen() -> None:
    shown = re.findall(r"^  (?:-\w, )?(--[a-z-]+)", run("train", "-h").stdout, re.MULTILINE)
    assert shown == [f"--{name.replace('_', '-')}" for name in LAYOUTS["train"].usual.split()]
    assert len(shown) == 12


@pytest.mark.parametrize("name", COMMANDS)
def test_the_full_help_has_every_option_once_and_fits_a_few_screens(name: str) -> None:
    text = run(name, "--help").stdout
    assert len(text.splitlines()) <= FULL
    for one in options(name):
        (where,) = re.findall(rf"^  (?:-\w, )?{re.escape(max(one.opts, key=len))}(?= |$)", _plain(text), re.MULTILINE)
        assert where


def _plain(text: str) -> str:
    return text.replace("--[no-]", "--")


def test_train_has_its_headings() -> None:
    headings = re.findall(r"^([A-Z][a-z ]+):$", run("train", "--help").stdout, re.MULTILINE)
    assert headings == [
        "Files",
        "Trees",
        "Objective",
        "Validation and stopping",
        "Choosing settings",
        "Starting scores and clicks",
        "On a cluster",
        "Reading the data",
        "Running",
        "Examples",
    ]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_a_heading(name: str) -> None:
    assert isinstance(command(name), HelpfulCommand), "make it a HelpfulCommand"
    assert "\nMore:\n" not in run(name, "--help").stdout, "name the option in cli/help.py"


@pytest.mark.parametrize("columns", [80, 200])
@pytest.mark.parametrize("arguments", WHOLE, ids=" ".join)
def test_no_line_is_too_long(arguments: tuple[str, ...], columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert max(map(len, run(*arguments).stdout.splitlines())) <= WIDEST


@pytest.mark.parametrize("name", COMMANDS)
def test_options_are_described_within_a_narrow_terminal(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    text = run(name, "-h").stdout
    described = re.findall(r"^      (.*)$", text, re.MULTILINE)
    assert len(described) > 3
    assert max(map(len, described)) <= 40 - 6


@pytest.mark.parametrize("name", COMMANDS)
def test_short_helps_end_in_a_full_stop(name: str) -> None:
    for one in options(name):
        assert one.help is not None
        assert re.search(r"\.(\.\.)?$", one.help), one.help
        assert len(one.help) <= 200


def test_the_program_says_its_commands_whole_and_its_exit_statuses() -> None:
    text = run("-h").stdout
    assert len(text.splitlines()) <= SCREEN
    assert "..." not in text
    for name in COMMANDS:
        assert f"  {name} " in text and command(name).get_short_help_str(200) in text
    told = re.search(r"Exit status: ([^.]*)\.", text)
    assert told is not None
    listed = ", ".join(f"{int(one)} {one.brief}" for one in ExitStatus)
    assert " ".join(told[1].split()) == listed


def test_defaults_stand_in_brackets() -> None:
    text = " ".join(run("train", "--help").stdout.split())
    for shown in ("[model.json]", "[300]", "[ndcg@10]", "(required)", "[all available]", "[30]"):
        assert shown in text
    assert "from 1 up" not in text  # ranges are for the manual


def test_layouts_name_options_that_there_are() -> None:
    context = click.Context(main)
    commands = {name: main.get_command(context, name) for name in main.list_commands(context)}
    options = {name: {one.name for one in command.params} for name, command in commands.items() if command is not None}
    for name, layout in LAYOUTS.items():
        assert not {*layout.usual.split(), *" ".join(layout.groups.values()).split()} - options[name], name
    assert not set(" ".join(SHARED.values()).split()) - set().union(*options.values())


@pytest.mark.parametrize("asked", ["-h", "--help"])
def test_a_layout_with_a_name_that_no_option_has_is_a_mistake(asked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = LAYOUTS["compile"]._replace(usual="generic specific", groups={"Compiling": "generic specific"})
    monkeypatch.setitem(LAYOUTS, "compile", wrong)
    with pytest.raises(KeyError, match="specific"):
        run("compile", asked)
