"""How much is drawn, and from which seed."""

from __future__ import annotations

import pytest

from lmart.errors import SettingsError
from lmart.measures.resampling import Resampling


def test_fewer_resamples_of_many_queries_but_not_fewer_than_asked_for() -> None:
    default = Resampling()
    drawn = [default.resamples_of(n) for n in (0, 10, 31_531, 50_000, 100_000, 10**7)]
    assert drawn == [10_000, 10_000, 10_000, 10_000, 5_000, 1_000]
    assert Resampling(resamples=77).resamples_of(10**7) == 77


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"seed": -1}, "seed"),
        ({"seed": 2**63}, "seed"),
        ({"level": 0.0}, "level"),
        ({"level": 1.0}, "level"),
        ({"resamples": 0}, "resamples"),
        ({"flips": 10_000_001}, "flips"),
    ],
)
def test_what_is_out_of_range_is_refused(wrong: dict[str, float], named: str) -> None:
    with pytest.raises(SettingsError, match=f"^{named} is .*; use "):
        Resampling(**wrong)  # type: ignore[arg-type]
