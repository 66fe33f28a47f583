"""Files beside the data: what counts as a line is the same in all of them, and they are read no further than needed."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from lmart.errors import DataError
from lmart.formats import line_reader as module
from lmart.formats.line_reader import COMMENT, WORD_COMMENT, read_lines
from lmart.formats.metadata_files import read_init_scores, read_monotone, read_positions, read_query_sizes, read_weights
from lmart.formats.results.scores import read_scores

OFFSETS = np.array([0, 2, 3], np.int64)


def sizes(path: str) -> list[int]:
    return [size for part in read_query_sizes(path) for size in part.tolist()]


READERS: dict[str, Callable[[str], object]] = {
    "scores": lambda path: read_scores(path, 3).tolist(),
    "init scores": lambda path: read_init_scores(path, 3, "d").tolist(),
    "weights": lambda path: read_weights(path, OFFSETS).per_document.tolist(),
    "query sizes": sizes,
    "positions": lambda path: read_positions(path, 3, "d").codes.tolist(),
    "constraints": read_monotone,
}
PLAIN = dict.fromkeys(READERS, (b"1", b"3", b"2")) | {"constraints": (b"a:+1", b"b:-1", b"c # d:+")}


def read(reader: str, content: bytes, folder: Path) -> object:
    (folder / "x").write_bytes(content)
    return READERS[reader](str(folder / "x"))


@pytest.mark.parametrize("reader", READERS)
def test_marks_blanks_comments_and_line_ends_are_alike_in_all_files(reader: str, tmp_path: Path) -> None:
    a, b, c = PLAIN[reader]
    expected = read(reader, b"\n".join([a, b, c]), tmp_path)
    for content in (
        b"\xef\xbb\xbf" + a + b"\r\n" + b + b"\r\n" + c + b"\r\n",
        a + b"\n \t" + b + b" \n" + c + b"\n\n \t\r\n",
        b"# a comment\n" + a + b" # one\n" + b + b"\t# two\r\n  # three\n" + c + b"\n# four",
        gzip.compress(a + b"\n" + b + b"\n") + gzip.compress(c),
    ):
        assert read(reader, content, tmp_path) == expected, content


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("blank", [b"\x0c", b"\x0b", b"\x1c", b"\xa0"])
def test_what_only_some_call_blank_is_refused_with_its_line(reader: str, blank: bytes, tmp_path: Path) -> None:
    """A form feed at the end once was a blank for one step and a fault for the next."""
    a, b, c = PLAIN[reader]
    for content in (b"\n".join([a, b, c, blank]), b"\n".join([a, b, c + b"\n\n" + blank + b"\n"])):
        with pytest.raises(DataError) as refusal:
            read(reader, content, tmp_path)
        assert refusal.value.line in (4, 5)
        assert str(refusal.value).isprintable()


@pytest.mark.parametrize("reader", ["scores", "init scores", "positions"])
def test_an_empty_line_between_rows_is_no_row_to_skip(
    reader: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for size in (1 << 20, 1, 3):
        monkeypatch.setattr(module, "read_pieces", lambda path, size=size: pieces_of(Path(path).read_bytes(), size))
        for content, line in ((b"1\n\n2\n3\n", 2), (b"1\n# x\n\n\n2\n", 3), (b"\n1\n2\n3", 1)):
            with pytest.raises(DataError, match="the line is empty; give one") as refusal:
                read(reader, content, tmp_path)
            assert refusal.value.line == line
        with pytest.raises(DataError) as refusal:  # the first fault is told
            read(reader, b"1\n2 2\n\n3\n", tmp_path)
        assert refusal.value.line == 2
    assert read("weights", b"1\n\n3\n\n2\n", tmp_path) == read("weights", b"1\n3\n2\n", tmp_path)


def pieces_of(content: bytes, size: int) -> Iterator[bytes]:
    return (content[start : start + size] for start in range(0, len(content), size))


def test_lines_do_not_depend_on_the_pieces_they_come_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = b"\xef\xbb\xbf1\r\n\n# c\n 22 # d\n\n\n\n333\n\t\n4#4\n" + b"5" * 30 + b"\n\n6"
    pattern: re.Pattern[bytes]
    for pattern, last in ((COMMENT, b"4"), (WORD_COMMENT, b"4#4")):
        expected = [(b"1", 1), (b"22", 4), (b"333", 8), (last, 10), (b"5" * 30, 11), (b"6", 13)]
        for size in range(1, 30):
            monkeypatch.setattr(module, "read_pieces", lambda path, size=size: pieces_of(content, size))
            found = [pair for lines in read_lines("x", pattern) for pair in zip(*lines, strict=True)]
            assert found == expected


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("piece", [bytes(100), b"1" * 100, b" " * 100])
def test_a_line_without_end_is_not_read_to_its_end(
    reader: str, piece: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b, _ = PLAIN[reader]
    taken = []

    def endless(path: str) -> Iterator[bytes]:
        yield a + b"\n" + b + b"\n"
        for i in range(5000):
            taken.append(i)
            yield piece

    monkeypatch.setattr(module, "read_pieces", endless)
    with pytest.raises(DataError, match="x:3: the line is longer than 65536 bytes; is it the right file") as refusal:
        READERS[reader](str(tmp_path / "x"))
    assert len(taken) < 1000
    assert refusal.value.line == 3
    monkeypatch.setattr(module, "LONGEST_LINE", 20)
    monkeypatch.setattr(module, "read_pieces", lambda path: iter([a + b"\n" + piece + b"\n" + b + b"\n"]))
    with pytest.raises(DataError, match="x:2: the line is longer than 20 bytes"):
        READERS[reader](str(tmp_path / "x"))


@pytest.mark.parametrize(
    ("reader", "said"),
    [
        ("scores", "holds more than 13 scores, but the data has 3 rows"),
        ("init scores", "holds more than 13 scores, but d has 3 rows"),
        ("weights", "there are more than 13 weights, but the data has 2 queries and 3 rows"),
        ("positions", "holds more than 13 positions, but d has 3 rows"),
    ],
)
def test_far_more_lines_than_rows_are_not_read(reader: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MANY_MORE", 6)
    taken = []

    def endless(path: str) -> Iterator[bytes]:
        for i in range(100):
            taken.append(i)
            yield b"1\n"

    monkeypatch.setattr(module, "read_pieces", endless)
    with pytest.raises(DataError, match=said):
        READERS[reader]("x")
    assert len(taken) == 13
    monkeypatch.setattr(module, "read_pieces", lambda path: islice(endless(path), 12))
    with pytest.raises(DataError, match="12"):  # a few too many are counted
        READERS[reader]("x")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"1\n1000000000001\n", "x:2: query size '1000000000001' is above 1000000000000; give the row count"),
        (b"1\n" + b"9" * 5000 + b"\n", "x:2: query size '9999.*' is above"),
        (b"1\n-2\n", "x:2: query size '-2' is not a whole number"),
    ],
)
def test_sizes_that_are_refused(content: bytes, said: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=said):
        read("query sizes", content, tmp_path)


def test_a_position_may_begin_with_a_number_sign(tmp_path: Path) -> None:
    (tmp_path / "p").write_bytes(b"#1\n#2 # second\n#\n")
    assert read_positions(str(tmp_path / "p"), 3, "d").names == ("#1", "#2", "#")
