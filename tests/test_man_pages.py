"""The manual pages have all that the program knows, and nothing else; they are well-formed, and their examples run."""

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
from helpers.manual import MAN, plain, section
from helpers.paths import ROOT, SAMPLE

from lmart import __version__
from lmart.cli.main import COMMANDS, main
from lmart.errors import ExitStatus
from lmart.formats.registry import MODEL_FORMATS
from lmart.manpages import example_lines, pages
from lmart.measures import KINDS, Conventions
from lmart.measures.presets import PRESETS
from lmart.measures.resampling import DEFAULT_FLIPS, DRAWS, EXACT_UP_TO, LEAST_RESAMPLES, MOST_RESAMPLES

NAMES = ["lmart.1", *(f"lmart-{name}.1" for name in COMMANDS)]
MEASURES = "lmart-measures.7"
ALL = sorted(path.name for path in MAN.iterdir())
CONTEXT = click.Context(main, info_name="lmart")


def command(name: str) -> click.Command:
    found = main.get_command(CONTEXT, name)
    assert found is not None
    return found


def test_there_is_a_page_for_every_command_and_every_page_is_installed() -> None:
    assert {*NAMES} == {name for name in ALL if name.endswith(".1")}
    installed = re.findall(
        r'^"man/(.*)" = "share/man/man(\d)/(.*)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE
    )
    assert sorted(name for name, number, as_name in installed if name == as_name and name[-1] == number) == ALL


def test_generated_parts_are_current() -> None:
    for name, text in pages(MAN).items():
        assert (MAN / name).read_text("ascii") == text, "run: python -m lmart.manpages man/"


def test_generated_parts_are_made_anew(tmp_path: Path) -> None:
    for name in ALL:
        text = (MAN / name).read_text("ascii")
        text = re.sub(r'(?s)(\n\.\\" BEGIN [^\n]*\n).*?(\.\\" END\n)', r"\1old\n\2", text.replace(__version__, "0.0.0"))
        (tmp_path / name).write_text(text)
    assert pages(tmp_path) == {name: (MAN / name).read_text("ascii") for name in ALL}


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
    text = (MAN / name).read_text("ascii")
    sections = re.findall(r"^\.SH (.*)$", text, re.MULTILINE)
    of_program = ["COMMANDS", "OPTIONS", "COMPLETION", "MEMORY AND LIMITS"]
    own = of_program if name == "lmart.1" else ["OPTIONS", "EXAMPLES"]
    closing = ["EXIT STATUS", "FILES", "ENVIRONMENT", "SEE ALSO"]
    own += ["FORMATS OF MODELS"] if name == "lmart-convert.1" else []
    own += ["JSON"] if name == "lmart-show.1" else []
    assert sections == ["NAME", "SYNOPSIS", "DESCRIPTION", *own, *closing]
    assert all(f"\\fB{int(status)}\\fR" in text for status in ExitStatus)


@pytest.mark.parametrize("name", ALL)
def test_pages_name_their_version_and_pages_that_exist(name: str) -> None:
    text = plain(name)
    assert f'"lmart {__version__}"' in text.partition("\n.SH ")[0]
    assert not re.search(r"\b(19|20)\d\d-\d\d", text)
    named = re.findall(r"\b(lmart(?:-[a-z]+)?)\s*\((\d)\)", text)
    assert named
    assert {f"{page}.{number}" for page, number in named} <= set(ALL)


@pytest.mark.parametrize("name", ALL)
def test_every_option_named_is_one_of_the_commands(name: str) -> None:
    known = {"--no-cache-dir", "--host", "--nthreads", "--memory-limit"}  # of pip and dask
    for one in (main, *map(command, COMMANDS)):
        for option in one.get_params(CONTEXT):
            known |= {*option.opts, *option.secondary_opts}
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*[a-z]", plain(name))) <= known


def test_the_page_on_measures_has_every_measure_convention_and_preset() -> None:
    text = (MAN / MEASURES).read_text("ascii").replace("\\-", "-")
    assert re.findall(r"^\.SH (.*)$", text, re.MULTILINE) == [
        "NAME", "DESCRIPTION", "SYNTAX", "MEASURES", "CONVENTIONS", "PRESETS", "STATISTICS", "SEE ALSO",
    ]  # fmt: skip
    for kind in KINDS.values():
        assert f"\\fB{', '.join(kind.syntax)}\\fR" in text
        assert kind.equation and kind.source and kind.meaning[0].isupper() + len(kind.meaning) < 62
    conventions = re.findall(r"^\\fB(.*)\\fR$", text.partition(".SH CONV")[2].partition("\n.SH ")[0], re.MULTILINE)
    expected = []
    for name in (field.name for field in fields(Conventions) if field.name not in ("like", "lowest_cutoff")):
        option = f"--{name.replace('_', '-')}"
        has_option = any(option in one.opts for one in command("eval").params)
        expected.append(name.replace("_", " ") + f" ({option})" * has_option)
    assert sorted(conventions) == sorted(expected)
    for name in PRESETS:
        assert f"\n\\fB{name}\\fR\n" in text


def test_the_page_on_measures_has_the_parameters_and_numbers_of_the_code() -> None:
    syntax = " ".join(section(MEASURES, "SYNTAX").split())
    for chosen in (
        [kind.name for kind in KINDS.values() if kind.is_binary],
        [kind.name for kind in KINDS.values() if kind.uses_label_scale],
        [kind.name for kind in KINDS.values() if kind.parameter == "persistence"],
    ):
        assert re.search(rf"in {', '.join(chosen)}[.;,]", syntax), chosen
    statistics = " ".join(section(MEASURES, "STATISTICS").split())
    for number in (MOST_RESAMPLES, DRAWS, LEAST_RESAMPLES, DEFAULT_FLIPS, EXACT_UP_TO):
        assert re.search(rf"(?<![\d,]){number:,}(?!,?\d)", statistics), number


def test_every_format_of_models_is_on_the_page() -> None:
    text = section("lmart-convert.1", "FORMATS OF MODELS")
    found = {}
    for entry in text.split("\n.TP\n")[1:]:
        name, rest = entry.split("\n", 1)
        found[name] = dict(part.split("\n", 1) for part in rest.split(".TP 10\n")[1:])
    assert list(found) == list(MODEL_FORMATS)
    for name, parts in found.items():
        assert list(parts) == ["Features", "Read", "Written"], name
        assert parts["Read"].startswith("no.") == (MODEL_FORMATS[name].reader is None), name
        assert parts["Written"].startswith("no.") == (MODEL_FORMATS[name].writer is None), name


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_examples_run(name: str, tmp_path: Path) -> None:
    """Training of fewer trees, where the example does not say how many."""
    lines = [line for line in example_lines(command(name).epilog or "") if "--dask" not in line]
    assert lines
    if find_spec("matplotlib") is None:
        lines = [line for line in lines if "--html" not in line]
    lines = [re.sub("^lmart train (?!.*--trees )", "lmart train --trees 10 ", line) for line in lines]
    needs_model = name != "train" and any("model.json" in line for line in lines)
    run_examples([TRAINING] * needs_model + lines, tmp_path)


@pytest.mark.slow
@pytest.mark.cluster
def test_examples_on_a_cluster_run(tmp_path: Path) -> None:
    lines = [line for name in COMMANDS for line in example_lines(command(name).epilog or "") if "--dask" in line]
    assert lines
    run_examples([TRAINING, *lines], tmp_path)


TRAINING = "lmart train --data data/sample/train.svm --trees 5 --out model.json --report run.json"


def run_examples(lines: list[str], folder: Path) -> None:
    """Run command lines where they find the sample by its names alone."""
    for sample in SAMPLE.glob("*.svm"):
        (folder / sample.name).symlink_to(sample)
    run_lines(lines, folder)


@pytest.mark.parametrize("page", ALL)
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
    for block in re.findall(r"^\.nf\n(.*?)^\.fi$", (MAN / name).read_text("ascii"), re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            assert len(re.sub(r"\\&|\\(?=-)|\\\((?:aq|ga)", "", line).replace("\\e", " ")) <= 73, line
