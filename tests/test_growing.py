"""Arrays that grow."""

from __future__ import annotations

import numpy as np

from lmart.growing import GrowableArray


def test_elements_keep_their_values_and_order_while_the_array_grows() -> None:
    array = GrowableArray(np.int64)
    for count in (0, 1, 3, 0, 700, 2):
        added = array.extend(count)
        added[:] = np.arange(len(array) - count, len(array))
    assert len(array) == 706
    assert array.view.tolist() == array.finish().tolist() == list(range(706))


def test_a_view_that_was_given_out_keeps_its_memory_when_the_array_grows() -> None:
    array = GrowableArray(np.float64)
    early = array.extend(3)
    early[:] = [1.0, 2.0, 3.0]
    array.expect(10_000)
    array.extend(100_000)[:] = 7.0
    assert early.tolist() == [1.0, 2.0, 3.0]
    early[:] = 0.0  # memory of its own by now
    assert array.view[:4].tolist() == [1.0, 2.0, 3.0, 7.0]


def test_dropped_elements_are_written_anew_in_their_place() -> None:
    array = GrowableArray(np.int32)
    array.extend(5)[:] = 1
    array.shrink(2)
    assert len(array) == 2
    array.extend(2)[:] = 2
    assert array.finish().tolist() == [1, 1, 2, 2]


def test_what_is_expected_is_allocated_at_once() -> None:
    array = GrowableArray(np.int32)
    array.extend(10)[:] = 1
    array.expect(1000)
    first = array.view
    array.extend(990)
    assert np.shares_memory(first, array.view)
