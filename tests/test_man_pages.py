"""The committed manual pages are what the commands say, complete, well-formed roff, and their examples run."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path

import click
import pytest
from helpers.commands import run_lines
from helpers.paths import ROOT, SAMPLE

from lmart import __version__
from lmart.cli.main import COMMANDS, main
from lmart.cli.model_formats import supported
from lmart.errors import ExitStatus
from lmart.formats.registry import MODEL_FORMATS
from lmart.manpages import example_lines, pages
from lmart.measures import KINDS, Conventions
from lmart.measures.presets import PRESETS

MAN = ROOT / "man"
NAMES = ["lmart.1", *(f"lmart-{name}.1" for name in COMMANDS)]
MEASURES = "lmart-measures.7"
REPORT = "lmart-report.5"
CONTEXT = click.Context(main, info_name="lmart")


def command(name: str) -> click.Command:
    found = main.get_command(CONTEXT, name)
    assert found is not None
    return found


def test_there_is_a_page_for_every_command_and_for_report_and_measures() -> None:
    assert list(pages()) == [*NAMES, MEASURES, REPORT]


@pytest.mark.parametrize("name", [*NAMES, MEASURES, REPORT])
def test_committed_pages_are_current(name: str) -> None:
    assert (MAN / name).read_text("ascii") == pages()[name], "run: python -m lmart.manpages man/"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_explained(name: str) -> None:
    for option in command(name).get_params(click.Context(command(name), CONTEXT, name)):
        if not isinstance(option, click.Option) or option.hidden:
            continue
        assert option.help is not None, option.name
        sentence = re.sub(r"\s*\[default: .*\]$", "", option.help)
        assert sentence.endswith("."), option.help
        record = option.get_help_record(click.Context(command(name), CONTEXT, name))
        assert record is not None
        if option.required:
            assert "[required]" in record[1]
        elif isinstance(option.default, str | int | float) and not (option.is_flag or option.count):
            assert "default: " in record[1], option.name


@pytest.mark.parametrize("name", NAMES)
def test_pages_say_all_that_a_page_must(name: str) -> None:
    text = pages()[name]
    sections = re.findall(r"^\.SH (.*)$", text, re.MULTILINE)
    own = ["COMMANDS", "OPTIONS", "COMPLETION"] if name == "lmart.1" else ["OPTIONS", "EXAMPLES"]
    closing = ["EXIT STATUS", "FILES", "ENVIRONMENT", "SEE ALSO"]
    own += ["FORMATS OF MODELS"] if name == "lmart-convert.1" else []
    own += ["JSON"] if name == "lmart-show.1" else []
    assert sections == ["NAME", "SYNOPSIS", "DESCRIPTION", *own, *closing]
    assert text.startswith('.\\" Generated') and __version__ in text
    assert all(f"\\fB{int(status)}\\fR" in text for status in ExitStatus)
    assert text.isascii() and not re.search(r"\b(19|20)\d\d-\d\d", text)


def test_the_page_on_measures_has_every_measure_convention_and_preset() -> None:
    text = pages()[MEASURES].replace("\\-", "-")
    assert re.findall(r"^\.SH (.*)$", text, re.MULTILINE) == [
        "NAME", "DESCRIPTION", "SYNTAX", "MEASURES", "CONVENTIONS", "PRESETS", "STATISTICS", "SEE ALSO",
    ]  # fmt: skip
    for kind in KINDS.values():
        assert f"\\fB{', '.join(kind.syntax)}\\fR" in text
        assert kind.equation and kind.source and kind.meaning[0].isupper() + len(kind.meaning) < 62
    asked = {one.name for one in fields(Conventions)} - {"like", "lowest_cutoff"}
    for name in (*PRESETS, *(name.replace("_", " ") for name in asked)):
        assert re.search(rf"^\\fB{name}( \(--[a-z-]+\))?\\fR$", text, re.MULTILINE), name
    assert text.isascii() and __version__ in text


def test_every_format_of_models_says_what_it_holds() -> None:
    assert list(supported()) == list(MODEL_FORMATS)
    for name, one in supported().items():
        assert bool(one.read) == (MODEL_FORMATS[name].reader is not None), name
        assert bool(one.written) == (MODEL_FORMATS[name].writer is not None), name
        assert all(text == "" or text.endswith(".") for text in one[1:])


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_examples_run(name: str, tmp_path: Path) -> None:
    lines = example_lines(command(name).epilog or "")
    assert lines
    if find_spec("matplotlib") is None:
        lines = [line for line in lines if "--html" not in line]
    for sample in SAMPLE.glob("*.svm"):
        (tmp_path / sample.name).symlink_to(sample)
    needs_model = name != "train" and any("model.json" in line for line in lines)
    first = (
        ["lmart train --data data/sample/train.svm --trees 5 --out model.json --report run.json"] if needs_model else []
    )
    run_lines(first + lines, tmp_path)


@pytest.mark.parametrize("page", sorted(path.name for path in MAN.glob("*.[157]")))
def test_roff_is_well_formed(page: str) -> None:
    if shutil.which("groff") is None:
        pytest.skip("groff is not here")
    done = subprocess.run(
        ["groff", "-man", "-ww", "-z", "-Tutf8", MAN / page], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""


@pytest.mark.parametrize("name", NAMES)
def test_lines_that_are_not_filled_fit_80_columns(name: str) -> None:
    """Behind the indent of 7 that pages have."""
    for block in re.findall(r"^\.nf\n(.*?)^\.fi$", pages()[name], re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            assert len(re.sub(r"\\&|\\(?=-)|\\\((?:aq|ga)", "", line).replace("\\e", " ")) <= 73, line


def test_all_formats_have_a_page() -> None:
    assert {"lmart-data.5", "lmart-model.5", "lmart-report.5"} <= {path.name for path in MAN.iterdir()}


@pytest.mark.slow
def test_the_examples_of_the_report_run(tmp_path: Path) -> None:
    lines = example_lines(pages()["lmart-report.5"].replace("\\-", "-"))
    run_lines(lines, tmp_path)
    assert (tmp_path / "model.json").read_bytes() == (tmp_path / "again.json").read_bytes()
