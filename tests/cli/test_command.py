"""Files without their options."""

from __future__ import annotations

import pytest
from helpers.commands import run


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("train data.svm", "--data data.svm"),
        ("train a.svm b.svm --trees 3", "--data a.svm b.svm"),
        ("train --data a.svm --trees 3 b.svm", "--data b.svm"),
        ("train --trees 3 my.svm --valid v.svm", "--data my.svm"),
        ("train data=t.svm num_leaves=31 eta=0.1", "--data t.svm --leaves 31 --learning-rate 0.1"),
        ("predict model.json test.svm", "--model model.json --data test.svm"),
        ("predict test.svm model.json", "--model model.json --data test.svm"),
        ("predict -m model.json test.svm", "--data test.svm"),
        ("predict --data test.svm model.json", "--model model.json"),
        ("eval model.json test.svm", "--model model.json --data test.svm"),
    ],
)
def test_files_without_an_option_are_told_theirs(line: str, meant: str) -> None:
    said = run(*line.split(), status=2).stderr
    assert f"; perhaps {meant}; see 'lmart {line.split(maxsplit=1)[0]} --help'\n" in said


def test_names_are_quoted_for_the_shell() -> None:
    assert "perhaps --data 'my data.svm';" in run("train", "my data.svm", status=2).stderr


def test_other_refusals_say_nothing_of_files() -> None:
    assert "perhaps" not in run("train", "x.svm", "--trees", "0", status=2).stderr
    assert "perhaps" not in run("convert", "a", "b", "c", status=2).stderr
    assert "perhaps" not in run("train", status=2).stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            "predict -m m --data a b",
            "--data takes one value, not 'b' too; join the files first, or run",
        ),
        ("predict -m m n --data a", "-m takes one value, not 'n' too; give one model"),
        ("convert a b --from csv tsv", "--from takes one value, not 'tsv' too; give it once"),
        ("convert a b c", "got unexpected extra argument (c)"),
    ],
)
def test_a_second_value_of_an_option_that_takes_one(words: str, said: str) -> None:
    assert run(*words.split(), status=2).stderr.startswith(f"lmart: error: {said}")
