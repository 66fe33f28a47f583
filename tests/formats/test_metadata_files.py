"""Metadata files that are refused, with line and token."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.training_runs import learnable, refused

DATA = learnable(3)

pytestmark = pytest.mark.usefixtures("in_folder")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("1\n2\n", "i: holds 2 scores, but d.svm has 200 rows"),
        ("1\nnan\n", "i:2: score 'nan' is not finite"),
        ("1\n1e400\n", "i:2: score '1e400' is too large for a number"),
        ("0\n" * 199 + "-1e101\n", "i:200: score '-1e101' is too large to start from; use scores from -1e+100 to"),
        ("1 2\n", "i:1: there is more than one number in '1 2'"),
        ("0\n\n1\n", "i:2: the line is empty"),
        ("", "i: holds 0 scores"),
    ],
)
def test_initial_scores_that_are_refused(content: str, said: str) -> None:
    Path("d.svm").write_text(DATA)
    Path("i").write_text(content)
    assert said in refused("--init-scores", "i")
    Path("v.svm").write_text(DATA)
    Path("ok").write_text("0\n" * 200)
    line = refused("--valid", "v.svm", "--init-scores", "ok", "--valid-init-scores", "i")
    assert said.replace("d.svm", "v.svm") in line


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"1\n2\n", "p: holds 2 positions, but d.svm has 200 rows; give one for each row"),
        (b"1\n\n2\n", "p:2: the line is empty; give one position for each row"),
        (b"1\n1\t3\n", "p:2: there is more than one word in '1\\t3'"),
        (b"1\n\xff\n", "p:2: position '\\xff' is not UTF-8"),
        (b"", "p: holds 0 positions"),
    ],
)
def test_positions_that_are_refused(content: bytes, said: str) -> None:
    Path("d.svm").write_text(DATA)
    Path("p").write_bytes(content)
    assert said in refused("--positions", "p")
    assert "no.p: there is no such file" in refused("--positions", "no.p")
