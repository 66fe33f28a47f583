"""Training on worker processes gives the bytes of training in one process; tests/bench/cluster_bytes.py has more."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.cluster_bytes import N_PARTS, USUAL, VARIANTS, sha_of, write_sets
from helpers.clusters import cluster

pytestmark = [pytest.mark.slow, pytest.mark.cluster]


@pytest.fixture(scope="module")
def sets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the data."""
    folder = tmp_path_factory.mktemp("sets")
    with contextlib.chdir(folder):
        write_sets()
    return folder


@pytest.fixture(scope="module", params=[(2, 2), (6, 1)], ids=["2 workers of 2 threads", "6 workers of 1 thread"])
def address(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a scheduler with workers."""
    n_workers, threads = request.param
    with cluster(n_workers, threads=[threads]) as running:
        yield running.address


@pytest.mark.parametrize("name", USUAL)
def test_any_workers_and_parts_give_the_bytes_of_one_process(name: str, address: str, sets: Path) -> None:
    with contextlib.chdir(sets):
        expected = sha_of(VARIANTS[name], N_PARTS[0])
        assert {sha_of(VARIANTS[name], n_parts, address) for n_parts in N_PARTS} == {expected}
