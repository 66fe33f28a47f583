"""Names of systems, and results as JSON."""

from __future__ import annotations

import pytest

from lmart.measures.system_evaluation import best_places, distinct_names


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["run.txt"], ["run.txt"]),
        (["/a/b/run.txt", "c/other.txt"], ["run.txt", "other.txt"]),
        (["a/x/run.txt", "b/x/run.txt"], ["a/x/run.txt", "b/x/run.txt"]),
        (["a/x/run.txt", "a/y/run.txt", "other.txt"], ["x/run.txt", "y/run.txt", "other.txt"]),
        (["run.txt", "a/run.txt"], ["run.txt", "a/run.txt"]),
        (["a/run.txt", "a/run.txt", "a/run.txt"], ["run.txt", "run.txt#2", "run.txt#3"]),
        (["a/run.txt", "b/run.txt", "b/run.txt"], ["a/run.txt", "b/run.txt", "b/run.txt#2"]),
        (["-", "a.txt"], ["-", "a.txt"]),
        (["sc", "sc", "sc#2"], ["sc", "sc#3", "sc#2"]),
        (["sc#2", "sc", "sc", "sc#2"], ["sc#2", "sc", "sc#3", "sc#2#2"]),
        (["sc", "sc", "sc", "x/sc#2"], ["sc", "sc#3", "sc#4", "sc#2"]),
    ],
)
def test_names_are_base_names_made_distinct(paths: list[str], names: list[str]) -> None:
    assert distinct_names(paths) == names
    assert len(set(names)) == len(names)


def test_the_best_stand_out_only_among_others() -> None:
    assert best_places([0.1, None, 0.3, 0.3]) == [2, 3]
    assert best_places([0.2, 0.2, None]) == best_places([None]) == best_places([]) == []
