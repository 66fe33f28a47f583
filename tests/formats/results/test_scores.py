"""Scores files: exact both ways, and refusals that name line and token."""

from __future__ import annotations

import gzip
import io
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmart.errors import DataError
from lmart.formats.results import scores as module
from lmart.formats.results.scores import format_scores, read_scores, write_scores


def read(tmp_path: Path, content: bytes, n_documents: int | None = None) -> list[float]:
    path = tmp_path / "scores.txt"
    path.write_bytes(content)
    scores: list[float] = read_scores(str(path), n_documents, "data.svm").tolist()
    return scores


@given(numbers=st.lists(st.floats(allow_nan=False, allow_infinity=False)))
def test_what_is_written_reads_back_equal(numbers: list[float], tmp_path_factory: pytest.TempPathFactory) -> None:
    out = io.BytesIO()
    write_scores(np.array(numbers), out)
    assert out.getvalue() == "".join(f"{number!r}\n" for number in numbers).encode()
    back = read(tmp_path_factory.mktemp("s"), out.getvalue(), len(numbers))
    assert [math.copysign(1, x) * abs(x) for x in back] == numbers
    assert list(map(repr, back)) == list(map(repr, numbers))


def test_long_lists_are_written_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "NUMBERS_AT_A_TIME", 3)
    out = io.BytesIO()
    write_scores(np.arange(8.0), out)
    assert out.getvalue() == format_scores([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0])


@pytest.mark.parametrize(
    ("content", "numbers"),
    [
        (b"1\n2\n", [1, 2]),
        (b"1\r\n-.5\r\n", [1, -0.5]),
        (b" 1e3 \n\t+2.\n3", [1000, 2, 3]),
        (b"\xef\xbb\xbf7\n", [7]),
        (b"", []),
        (b"\n", []),
        (b"1e-400\n5e-324\n\n\r\n", [0, 5e-324]),
        (gzip.compress(b"1\n2\n", mtime=0) + gzip.compress(b"3\n", mtime=0), [1, 2, 3]),
        (b"0" * 400 + b"1.5\n", [1.5]),
    ],
)
def test_what_is_taken(tmp_path: Path, content: bytes, numbers: list[float]) -> None:
    assert read(tmp_path, content) == numbers


@pytest.mark.parametrize(
    ("content", "line", "parts"),
    [
        (b"1\nnan\n", 2, ["'nan'", "finite"]),
        (b"1\n2\n-Infinity\n", 3, ["'-Infinity'", "finite"]),
        (b"1\n+inf\n", 2, ["'+inf'"]),
        (b"1e999\n", 1, ["'1e999'", "too large"]),
        (b"1\n\n2\n", 2, ["empty"]),
        (b"\n1\n", 1, ["empty"]),
        (b"1\n1_000\n", 2, ["'1_000'", "not a number"]),
        (b"q1\t0.5\n", 1, ["not a number"]),
        (b"0.5\t0.25\n", 1, ["more than one number"]),
        (b"1\n0x10\n", 2, ["'0x10'"]),
        (b"1\n1e\n", 2, ["'1e'"]),
        (b"1\n--1\n", 2, ["'--1'"]),
        (b"1,5\n", 1, ["'1,5'"]),
        ("1\n\u0661\n".encode(), 2, ["not a number"]),
        (b"1\n\x1b[2J\n", 2, ["not a number"]),
        (b"\xff\xfe1\x00\n", 1, ["not a number"]),
        (b"1\n2\x00\n", 2, ["not a number"]),
        (b"1\n2\x0b\n", 2, ["not a number"]),
        (b"1\n" + b"7" * 100 + b"x\n", 2, ["..."]),
        (b"1\r2\r3\r\n", 1, ["more than one number"]),
        (b'{"a": 1}\n', 1, ["not a number"]),
    ],
)
def test_refusals_name_line_and_token(tmp_path: Path, content: bytes, line: int, parts: list[str]) -> None:
    with pytest.raises(DataError) as refusal:
        read(tmp_path, content)
    assert refusal.value.line == line
    assert refusal.value.path == str(tmp_path / "scores.txt")
    assert all(part in refusal.value.message for part in parts)
    assert str(refusal.value).isprintable()


def test_the_first_of_several_faults_is_told(tmp_path: Path) -> None:
    with pytest.raises(DataError) as refusal:
        read(tmp_path, b"1\ninf\n2\nx\n")
    assert refusal.value.line == 2


def test_a_wrong_count_names_both_numbers(tmp_path: Path) -> None:
    for content, n, parts in (
        (b"1\n2\n", 3, ("2 scores", "3 rows")),
        (b"1\n", 0, ("1 score,", "0 rows")),
        (b"", 1, ("1 row;",)),
    ):
        with pytest.raises(DataError) as refusal:
            read(tmp_path, content, n)
        assert all(part in refusal.value.message for part in (*parts, "data.svm"))
    assert read(tmp_path, b"1\n2\n3", 3) == [1, 2, 3]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none\.txt"):
        read_scores(str(tmp_path / "none.txt"))
