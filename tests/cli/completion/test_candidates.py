"""What may stand at the cursor."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from lmart.cli.completion import ASKED, SHELLS, script_of, split_line
from lmart.cli.completion.candidates import Candidates, candidates
from lmart.cli.main import COMMANDS, main
from lmart.formats.registry import DATA_FORMATS, MODEL_FORMATS
from lmart.measures import KINDS
from lmart.settings import OBJECTIVES, TREE_FORMS


def found(line: str) -> Candidates:
    *before, current = split_line(line)
    return candidates(main, before, current)


def words(line: str) -> list[str]:
    return [word for word, _ in found(line).words]


def test_commands_and_options_of_the_program() -> None:
    assert words("lmart ") == [*COMMANDS, "help", "version"]
    assert words("lmart tr") == ["train"]
    assert set(words("lmart --")) >= {"--completion", "--version", "--help"}
    assert words("lmart --completion ") == list(SHELLS)
    assert words("lmart help e") == ["eval"]
    assert words("lmart help eval ") == [] == words("lmart nothing ")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_of_a_command_with_its_help(name: str) -> None:
    shown = found(f"lmart {name} --").words
    assert {"--help", "--threads", "--quiet"} <= {word for word, _ in shown}
    assert all(meaning.rstrip(".") for _, meaning in shown)


def test_opposites_are_options_too() -> None:
    assert words("lmart train --no") == ["--normalize", "--no-normalize"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("lmart train --tree ", ["auto", *TREE_FORMS]),
        ("lmart train --tree=ob", ["--tree=oblivious"]),
        ("lmart train --objective ", ["auto", *OBJECTIVES]),
        ("lmart train --objective map+e", ["map+err"]),
        ("lmart train --objective lambdamart+lambda", ["lambdamart+lambdaloss"]),
        ("lmart train --metric ndcg@1", ["ndcg@1", "ndcg@10", "ndcg@100"]),
        ("lmart train --metric map,", []),
        ("lmart eval --metric map,mr", ["map,mrr", "map,mrr@10"]),
        ("lmart train --leaves ", ["auto"]),
        ("lmart train --trees ", []),
        ("lmart train --gain ", ["exp2", "linear"]),
        ("lmart eval --ties a", ["average"]),
        ("lmart predict --format j", ["jsonl"]),
        ("lmart convert a b --to parq", ["parquet"]),
        ("lmart convert a b --from ", [*DATA_FORMATS, *MODEL_FORMATS]),
        ("lmart predict -m x --why 1 2 ", []),
        ("lmart train --seed 3 --max-d", ["--max-depth"]),
        ("lmart train -q --max-d", ["--max-depth"]),
    ],
)
def test_values(line: str, expected: list[str]) -> None:
    assert words(line) == expected


def test_all_measures_are_offered_and_only_lists_go_on() -> None:
    shown = words("lmart eval --metric ")
    assert {word.partition("@")[0] for word in shown} == set(KINDS)
    assert not {name for name, kind in KINDS.items() if kind.cutoff == "needed"} & set(shown)
    assert found("lmart eval --metric ").partial and found("lmart train --objective ").partial
    assert not found("lmart train --metric ").partial


@pytest.mark.parametrize(
    "line",
    [
        "lmart train --data ",
        "lmart train --data a b",
        "lmart train --trees 3 --data a --valid v w ",
        "lmart train --data=",
        "lmart eval --scores ",
        "lmart eval --per-query x",
        "lmart convert ",
        "lmart convert a ",
        "lmart convert --to csv a",
        "lmart train --monotone ",
    ],
)
def test_all_files_where_data_is_meant(line: str) -> None:
    assert found(line) == Candidates(files=True)


@pytest.mark.parametrize("line", ["lmart predict -m ", "lmart eval --model x", "lmart train --continue-from=m"])
def test_models_where_a_model_is_meant(line: str) -> None:
    offered = found(line)
    assert offered.files and {".json", ".json.gz", ".ubj", ".txt", ".xml"} <= set(offered.suffixes)
    assert ".csv" not in offered.suffixes


def test_after_one_file_of_an_option_of_one_file_come_options() -> None:
    assert "--model" in words("lmart predict --data x ")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("lmart", []),
        ("lmart ", [""]),
        ("lmart train --data 'my fi", ["train", "--data", "my fi"]),
        ('lmart train --data "my fi', ["train", "--data", "my fi"]),
        ("lmart train 'my file' ", ["train", "my file", ""]),
        (r"lmart train my\ fi", ["train", "my fi"]),
        (r"lmart train my\ ", ["train", "my "]),
        ("lmart train # x", ["train", "#", "x"]),
    ],
)
def test_words_of_a_line_that_is_not_finished(line: str, expected: list[str]) -> None:
    assert split_line(line) == expected


def test_what_the_scripts_read() -> None:
    assert found("lmart eval --ties i").lines() == "words\ninput\t\n"
    assert found("lmart eval --metric rbp@1").lines().startswith("parts\nrbp@1\t")
    assert Candidates(files=True).lines() == "files\n"
    assert Candidates(files=True, suffixes=(".a", ".b")).lines() == "files .a .b\n"


@pytest.mark.slow
def test_completion_loads_nothing_heavy() -> None:
    for line in ("lmart tr", "lmart train --metric nd", "lmart predict -m ", "lmart convert a b --to "):
        program = (
            "import sys; from lmart.cli.main import main\n"
            "try: main.main(sys.argv[1:])\n"
            "except SystemExit as ending: print(ending.code)\n"
            "print({'numpy', 'numba', 'rich'} & set(sys.modules))"
        )
        environment = {**os.environ, ASKED: "bash"}
        command = [sys.executable, "-c", program, line]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        assert done.stdout.splitlines()[-2:] == ["0", "set()"]


@pytest.mark.parametrize("shell", SHELLS)
def test_scripts_are_printed(shell: str) -> None:
    text = script_of(shell)
    assert text.isascii() and f"{ASKED}={shell}" in text
    assert max(map(len, text.splitlines())) <= 120
