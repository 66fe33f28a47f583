"""Files of groups of queries."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmart.errors import DataError
from lmart.formats.query_groups import grouped_queries, read_query_groups


def read(tmp_path: Path, content: bytes) -> dict[str, str]:
    path = tmp_path / "g.tsv"
    path.write_bytes(content)
    return read_query_groups(str(path))


@pytest.mark.parametrize(
    ("content", "groups"),
    [
        (b"1\thead\n2\ttail\n", {"1": "head", "2": "tail"}),
        (b"qid\tgroup\n1\tlong and #blank\n", {"1": "long and #blank"}),
        (b"1\ta\r\n\n \n#2 3\t b \n", {"1": "a", "#2 3": "b"}),
        (b"\xef\xbb\xbf1\t\xc3\xa9", {"1": "é"}),
        (b"1\ta\nqid\tgroup\n", {"1": "a", "qid": "group"}),
    ],
)
def test_groups(content: bytes, groups: dict[str, str], tmp_path: Path) -> None:
    assert read(tmp_path, content) == groups


@pytest.mark.parametrize(
    ("content", "line", "part"),
    [
        (b"1\ta\n2 b\n", 2, "'2 b' has no group, which stands behind a tab; give 'qid TAB group' on each line"),
        (b"1\t\n", 1, "'1' has no group"),
        (b"1\ta\tb\n", 1, "more or fewer than two fields"),
        (b"1\t \ta\n", 1, "more or fewer than two fields"),
        (b"1\ta\n\n1\ta\n", 3, "query '1' has a group already, in line 1"),
        (b"1\t\xff\n", 1, "is not valid UTF-8"),
        (b"1\ta\x07\n", 1, "group 'a\\x07' holds a control character"),
        (b"", None, "holds no group"),
        (b"qid\tgroup\n", None, "holds no group"),
    ],
)
def test_faults_name_line_and_token(content: bytes, line: int | None, part: str, tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        read(tmp_path, content)
    assert (caught.value.line, part in caught.value.message) == (line, True), caught.value.message


def test_what_stands_behind_the_tab_is_named(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("qid\tfold\n1\ta\n2\n")
    with pytest.raises(DataError, match="'2' has no fold, which stands behind a tab; give 'qid TAB fold' on each line"):
        read_query_groups(str(tmp_path / "f"), "fold")
    (tmp_path / "f").write_text("qid\tgroup\n")
    assert read_query_groups(str(tmp_path / "f"), "fold") == {"qid": "group"}


def test_queries_of_groups_in_order_of_the_data() -> None:
    groups = {"a": "x", "b": "y", "d": "x", "e": "z"}
    found = grouped_queries(groups, ["b", "c", "d", "a"])
    assert {name: places.tolist() for name, places in found.items()} == {"y": [0], "x": [2, 3], "(none)": [1]}
    assert list(found) == ["y", "x", "(none)"]
    same = grouped_queries({"a": "(none)", "b": "y"}, ["a", "b", "c"])
    assert {name: places.tolist() for name, places in same.items()} == {"y": [1], "(none)": [0, 2]}
