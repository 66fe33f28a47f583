"""Hashes of queries that stand in two parts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmart.distributed import query_places
from lmart.distributed.query_places import codes_of, repeated_codes

CODES = st.one_of(st.integers(0, 2**64 - 1), st.sampled_from([0, 1, 2**60 - 1, 2**60, 2**63, 2**64 - 1]))


@pytest.mark.slow
@given(st.lists(st.sets(CODES, max_size=9), max_size=5))
def test_hashes_are_compared_in_slices_or_at_once(parts: list[set[int]]) -> None:
    codes = [np.array(sorted(own), np.uint64) for own in parts]
    joined = [code for own in parts for code in own]
    expected = sorted({code for code in joined if joined.count(code) > 1})
    assert repeated_codes(codes).tolist() == expected
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(query_places, "SLICED", 0)
        assert repeated_codes(codes).tolist() == expected


def test_hashes_are_the_same_everywhere() -> None:
    assert codes_of(["1", "q\udcff"]).tolist() == codes_of(iter(["1", "q\udcff"])).tolist()
    assert codes_of(["17"]).tolist() == [0x20398D138E4D7BB4]
