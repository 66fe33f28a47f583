"""Samples of rows for bin edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import reference.random_numbers
from hypothesis import given
from hypothesis import strategies as st

from lmart.kernels.exact.bit_mixing import mix_bits
from lmart.kernels.row_arrays import RowArrays, SharedColumnRows
from lmart.kernels.trees import edge_sample


def chosen(rows: list[dict[int, float]], first: int, halvings: int) -> tuple[list[int], Any]:
    """Return the numbers of the chosen rows, and the arrays that copy_chosen wrote."""
    offsets = np.cumsum([0, *map(len, rows)])
    columns = np.array([c for row in rows for c in row], np.int32)
    values = np.array([x for row in rows for x in row.values()], np.float64)
    key = np.uint64(mix_bits(np.uint64(5)))
    places = np.empty(len(rows), np.int64)
    n, n_cells, n_columns = edge_sample.choose_rows(offsets, columns, first, key, halvings, places)
    numbers, ends, starts = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    own_columns, own_values = np.empty(n_columns, np.int32), np.empty(n_cells)
    out = edge_sample.SampleSlices(numbers, ends, starts, own_columns, own_values, 0, 0)
    edge_sample.copy_chosen(RowArrays(offsets, columns, values), places[:n], first, out)
    return numbers.tolist(), (numbers, np.concatenate([[0], ends]), starts, own_columns, own_values, key)


def listed(arrays: Any, count: int) -> list[dict[int, float]]:
    _, offsets, starts, columns, values, _ = arrays
    return [
        dict(
            zip(
                columns[starts[i] : starts[i] + offsets[i + 1] - offsets[i]].tolist(),
                values[offsets[i] : offsets[i + 1]].tolist(),
                strict=True,
            )
        )
        for i in range(count)
    ]


some_rows = st.lists(
    st.one_of(
        st.just([0, 1, 2]), st.just([]), st.lists(st.integers(0, 5), unique=True, max_size=4).map(sorted)
    ).flatmap(lambda c: st.tuples(*(st.floats(-9, 9) for _ in c)).map(lambda x: dict(zip(c, x, strict=True)))),
    max_size=40,
)


@given(some_rows, st.integers(0, 1000), st.integers(0, 2), st.integers(0, 3))
def test_rows_are_chosen_by_their_number_and_thinned_as_if_chosen_so_at_once(
    rows: list[dict[int, float]], first: int, halvings: int, more: int
) -> None:
    numbers, arrays = chosen(rows, first, halvings)
    assert numbers == [
        first + i for i in range(len(rows)) if reference.random_numbers.is_chosen(first + i, 5, halvings)
    ]
    assert listed(arrays, len(numbers)) == [rows[i - first] for i in numbers]
    again, expected = chosen(rows, first, halvings + more)
    n, n_cells, n_columns = edge_sample.thin_rows(arrays[0], SharedColumnRows(*arrays[1:5]), arrays[5], halvings + more)
    assert arrays[0][:n].tolist() == again
    assert listed(arrays, n) == listed(expected, n)
    assert (n_cells, n_columns) == (len(expected[4]), len(expected[3]))


def test_rows_with_the_same_columns_have_them_once() -> None:
    _, arrays = chosen([{1: 0.5, 4: 1.0}] * 50, 7, 0)
    assert len(arrays[3]) == 2 and set(arrays[2].tolist()) == {0}
