"""Laying out: what fits a width, bars, curves; names give way, numbers do not."""

from __future__ import annotations

import pytest

from lmart.cli.terminal.layout import Sheet, Table, bar, cells, curve, facts, paragraph, shortened, spans

NARROW = Sheet(40, True)
ROWS = [["title_anchor_bm25_normalised_by_length", "0.123456", "99.99%"], ["x", "-1.000000", "0.01%"]]


def test_off_a_terminal_nothing_is_shortened() -> None:
    assert Table(["feature", "adds", "gain"], ROWS).lines(Sheet(), [1.0, 0.01]) == [
        "feature                                      adds    gain",
        "title_anchor_bm25_normalised_by_length   0.123456  99.99%  ########################",
        "x                                       -1.000000   0.01%  #",
    ]


def test_on_a_narrow_terminal_names_are_shortened_and_bars_left_out() -> None:
    lines = Table(["feature", "adds", "gain"], ROWS).lines(NARROW, [1.0, 0.01])
    assert lines[1] == "title_anch..by_length   0.123456  99.99%"
    assert max(map(cells, lines)) <= 40
    lines = Table(["feature", "adds", "gain"], ROWS).lines(Sheet(12), [1.0, 0.01])
    assert lines[1] == "titl..ngth   0.123456  99.99%"


def test_wide_characters_take_two_columns() -> None:
    lines = Table(["feature", "n"], [["\u6587" * 30, "1"], ["x", "2"]]).lines(NARROW)
    assert {cells(line) for line in lines} == {40}


@pytest.mark.parametrize(
    ("share", "plain", "drawn"),
    [(0.0, "", ""), (1e-9, "#", "\u258f"), (0.5, "####", "\u2588" * 4), (1.0, "#" * 8, "\u2588" * 8)],
)
def test_bars(share: float, plain: str, drawn: str) -> None:
    assert bar(share, 8, Sheet()) == plain
    assert bar(share, 8, NARROW) == drawn


def test_bars_have_eighths() -> None:
    assert bar(0.5 + 3 / 64, 8, NARROW) == "\u2588" * 4 + "\u258d"


def test_curves_rise_to_their_highest_value() -> None:
    values = [k / 7 for k in range(8)]
    assert curve(values, 8, NARROW) == "▁▂▃▄▅▆▇█"
    assert curve(values, 8, Sheet()) == ".:-=+*%#"
    assert curve([0.5, 0.5], 8, NARROW) == "██"
    assert curve([None, 0.5, None], 8, Sheet()) == " # "
    assert curve([], 8, Sheet()) == ""


def test_a_steep_beginning_leaves_room_for_the_rest() -> None:
    drawn = curve([0.0, *(0.9 + k / 100 for k in range(8))], 9, NARROW)
    assert drawn[0] == "▁" and len(set(drawn)) >= 5


def test_many_values_share_characters() -> None:
    assert spans(10, 4) == [(0, 2), (2, 5), (5, 7), (7, 10)]
    assert spans(3, 8) == [(0, 1), (1, 2), (2, 3)]
    assert len(curve([k / 100 for k in range(100)], 8, NARROW)) == 8


def test_facts_go_on_below_themselves() -> None:
    lines = facts([("name", "one two three four five six seven eight")], Sheet(20))
    assert lines == ["name  one two three", "      four five six", "      seven eight"]
    assert facts([("name", "one two"), ("x", "")], Sheet()) == ["name  one two", "x     "]


def test_long_names_are_shortened_in_a_paragraph_but_numbers_are_not() -> None:
    lines = paragraph("/data/2026/some/where/model.json -0.0035245174332949581234", Sheet(20))
    assert lines == ["/data/202..odel.json", "-0.0035245174332949581234"]


@pytest.mark.parametrize("values", [[1e308, -1e308], [-1e308, 0.5, 0.6, 0.7], [1e308] * 99, [5e-324, -5e-324]])
def test_curves_of_the_largest_numbers(values: list[float]) -> None:
    assert 1 <= len(curve(values, 9, Sheet())) <= 9


def test_names_are_shortened_in_the_middle() -> None:
    assert shortened("title_anchor_bm25", 17) == "title_anchor_bm25"
    assert shortened("title_anchor_bm25", 12) == "title.._bm25"
    assert shortened("\u6587" * 9, 12) == "\u6587\u6587\u6587..\u6587\u6587"
