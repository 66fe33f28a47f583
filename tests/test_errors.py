"""Helpers of messages: names that are there a second time."""

from __future__ import annotations

import time

from lmart.errors import first_repeated


def test_the_value_whose_second_place_is_first_is_repeated() -> None:
    assert first_repeated(["a", "b", "c", "b", "a"]) == "b"
    assert first_repeated(iter(range(5))) is None


def test_many_values_are_looked_up_not_compared_with_each_other() -> None:
    began = time.process_time()
    assert first_repeated([*range(200_000), 199_999]) == 199_999
    assert time.process_time() - began < 1.0
