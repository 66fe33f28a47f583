"""Rows as the kernels write them, against their slow twins, at any cut into pieces."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pytest
import reference.row_text
from hypothesis import given
from hypothesis import strategies as st

from lmart.data.dataset import SparseRows
from lmart.formats.documents.blocks import RowBlock
from lmart.formats.documents.text_writer import powers_of_ten, rows_of, texts_of
from lmart.kernels.text import row_text

IDS = [1, 23, 4567890, 12345678, 9223372036854775807]
IDS_TEXT = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Z"], exclude_characters='#,"\t'), min_size=1, max_size=20
)
VALUES = st.one_of(st.integers(-100, 100).map(float), st.floats(), st.sampled_from([0.0, math.nan, 0.25]))


class Row(NamedTuple):
    label: float
    cells: dict[int, float]
    document: str


ROWS = st.lists(
    st.builds(
        Row,
        st.floats(0, 100),
        st.dictionaries(st.integers(0, len(IDS) - 1), VALUES).map(lambda cells: dict(sorted(cells.items()))),
        st.one_of(st.just(""), IDS_TEXT),
    ),
    min_size=1,
    max_size=12,
)


def block_of(
    rows: list[Row], sizes: list[int], queries: list[str] | None, has_labels: bool, has_documents: bool
) -> RowBlock:
    offsets = np.cumsum([0, *(len(row.cells) for row in rows)])
    columns = np.array([column for row in rows for column in row.cells], np.int32)
    values = np.array([value for row in rows for value in row.cells.values()], np.float64)
    labels = np.array([row.label for row in rows]) if has_labels else None
    documents = [row.document for row in rows] if has_documents else None
    return RowBlock(SparseRows(offsets, columns, values), labels, queries, np.cumsum([0, *sizes]), False, documents, 1)


def queries_of(n: int, draw: st.DataObject) -> tuple[list[int], list[str]]:
    sizes: list[int] = []
    while sum(sizes) < n:
        sizes.append(draw.draw(st.integers(1, n - sum(sizes))))
    return sizes, draw.draw(st.lists(IDS_TEXT, min_size=len(sizes), max_size=len(sizes)))


def written(write: object, n: int, cut: int) -> str:
    """The rows as two calls write them, one after the other."""
    text = b""
    for start, stop in ((0, cut), (cut, n)):
        out = np.zeros(20_000, np.uint8)
        text += out[: write(start, stop, out)].tobytes()  # type: ignore[operator]
    return text.decode()


@pytest.mark.slow
@given(ROWS, st.data(), st.booleans(), st.booleans(), st.booleans())
def test_letor_rows(
    rows: list[Row], draw: st.DataObject, has_labels: bool, has_queries: bool, has_documents: bool
) -> None:
    sizes, queries = queries_of(len(rows), draw)
    block = block_of(rows, sizes, queries if has_queries else None, has_labels, has_documents)
    taken = rows_of(block, texts_of(block.query_ids), texts_of(block.document_ids))
    names = b"".join(f"{feature_id}:".encode().ljust(24, b"\0") for feature_id in IDS)
    words = np.frombuffer(names, "<u8").reshape(-1, 3).copy()
    lengths = np.array([len(str(feature_id)) + 1 for feature_id in IDS], np.uint64)
    text = written(
        lambda start, stop, out: row_text.write_letor_rows(taken, start, stop, words, lengths, powers_of_ten(), out),
        len(rows),
        draw.draw(st.integers(0, len(rows) - 1)),
    )
    query_of_row = np.repeat(queries, sizes).tolist()
    assert text == "".join(
        reference.row_text.letor_line(
            row.label if has_labels else None,
            query if has_queries else None,
            {IDS[column]: value for column, value in row.cells.items()},
            row.document if has_documents else "",
        )
        for row, query in zip(rows, query_of_row, strict=True)
    )


@pytest.mark.slow
@pytest.mark.parametrize("delimiter", [",", "\t"])
@given(ROWS, st.data(), st.booleans(), st.booleans(), st.sampled_from([0.0, math.nan]))
def test_table_rows(
    delimiter: str, rows: list[Row], draw: st.DataObject, has_labels: bool, has_texts: bool, absent: float
) -> None:
    sizes, queries = queries_of(len(rows), draw)
    block = block_of(rows, sizes, queries if has_texts else None, has_labels, has_texts)
    taken = rows_of(block, texts_of(block.query_ids), texts_of(block.document_ids))
    is_missing, n_columns = math.isnan(absent), len(IDS) + 1
    text = written(
        lambda start, stop, out: row_text.write_table_rows(
            taken, start, stop, n_columns, ord(delimiter), is_missing, powers_of_ten(), out
        ),
        len(rows),
        draw.draw(st.integers(0, len(rows) - 1)),
    )
    expected = ""
    for row, query in zip(rows, np.repeat(queries, sizes).tolist(), strict=True):
        first = [reference.row_text.number(row.label)] if has_labels else []
        first += [query, row.document] if has_texts else []
        expected += reference.row_text.table_line(first, row.cells, n_columns, absent, delimiter)
    assert text == expected


@pytest.mark.parametrize("absent", [0.0, math.nan])
def test_a_row_of_one_missing_value_is_no_blank_line(absent: float) -> None:
    rows = [Row(0.0, cells, "") for cells in ({0: math.nan}, {}, {0: 7.0})]
    taken = rows_of(block_of(rows, [3], None, False, False), texts_of(None), texts_of(None))
    text = written(
        lambda start, stop, out: row_text.write_table_rows(
            taken, start, stop, 1, ord(","), math.isnan(absent), powers_of_ten(), out
        ),
        3,
        1,
    )
    assert text == "".join(reference.row_text.table_line([], row.cells, 1, absent, ",") for row in rows)
    assert "\n\n" not in text
