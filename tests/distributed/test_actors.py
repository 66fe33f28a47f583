"""Adding results of objects, one after the other and along a tree."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from helpers.shards import LocalActors

from lmart.distributed.actors import FAN_IN, LinkedActor, below


class Total(NamedTuple):
    value: int

    def plus(self, other: Total) -> Total:
        return Total(self.value + other.value)


class Answer(NamedTuple):
    """What a call to another worker gives: it is there at once."""

    value: Any

    def result(self) -> Any:
        return self.value


class Holder(LinkedActor):
    def __init__(self, value: int) -> None:
        super().__init__()
        self.value, self.told = value, 0

    def times(self, factor: int) -> Total:
        return Total(self.value * factor)

    def tell(self, number: int) -> None:
        self.told = number


class Elsewhere:
    """Stands for an object on another worker."""

    def __init__(self, held: Holder) -> None:
        self._held = held

    def add_up(self, method: str, arguments: tuple[Any, ...]) -> Answer:
        return Answer(self._held.add_up(method, arguments))


@pytest.mark.parametrize("n", [1, 2, FAN_IN, FAN_IN + 1, FAN_IN + 2, 23, 128])
def test_each_result_is_added_once_along_the_tree(n: int) -> None:
    held = [Holder(3**number) for number in range(n)]
    for number, one in enumerate(held):
        assert len(below(number, n)) <= FAN_IN
        one.link([Elsewhere(held[other]) for other in below(number, n)])
    total = sum(7 * 3**number for number in range(n))
    assert held[0].add_up("times", (7,)) == Total(total)
    assert LocalActors(held).add("times", 7) == Total(total)
    assert held[0].add_up("tell", (5,)) is None
    assert {one.told for one in held} == {5}


def test_calls_are_added_one_by_one() -> None:
    actors = LocalActors([Holder(1), Holder(10)])
    assert list(actors.add_each("times", [(1,), (2,), (3,)])) == [Total(11), Total(22), Total(33)]
    assert list(actors.add_each("times", [])) == []
