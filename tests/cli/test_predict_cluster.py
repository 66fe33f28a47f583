"""Outputs of workers get their names, whatever is lost meanwhile, and nothing finished is deleted."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from helpers.cluster_here import ClusterHere

from lmart.cli import predict_cluster
from lmart.cli.predict_cluster import PUT_AFTER_LOSS, interrupts_later, put_all_in_place
from lmart.errors import LmartError
from lmart.streams.outputs import StagedFile, StagedOutput
from lmart.streams.temporaries import let_go

N = 2 * PUT_AFTER_LOSS + 3
LOST = "the worker tcp://a:1 is lost: it ended; run this command again"


class LosingWorkers(ClusterHere):
    """A cluster of which a worker is lost while outputs get their names.

    first : of the tasks, from 0, that are lost
    last  : of them
    done  : the work of these tasks is done all the same
    """

    def __init__(self, first: int, last: int, done: bool) -> None:
        super().__init__()
        self.first, self.last, self.done, self.sizes = first, last, done, list[int]()

    def run_tasks(self, function: Callable[..., Any], calls: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
        for call in calls:
            is_lost = self.first <= len(self.sizes) <= self.last
            self.sizes.append(len(call[0]))
            if not is_lost or self.done:
                yield from super().run_tasks(function, [call])
            if is_lost:
                raise LmartError(LOST)


@pytest.fixture
def staged(in_folder: Path) -> list[StagedFile]:
    found = []
    for number in range(N):
        with StagedOutput(f"{number:03}", "run", lambda: None) as out:
            out.write(str(number))
        assert out.staged is not None
        found.append(out.staged)
    let_go(str(in_folder), "run")
    return found


def named() -> list[str]:
    return sorted(name for name in os.listdir() if not name.startswith("."))


def unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predict_cluster, "are_seen", lambda staged: False)


@pytest.mark.parametrize("done", [False, True])
def test_this_process_gives_the_names_when_a_worker_is_lost(done: bool, staged: list[StagedFile]) -> None:
    cluster = LosingWorkers(0, 99, done)
    assert put_all_in_place(cluster, staged, "*") is None  # type: ignore[arg-type]
    assert sorted(os.listdir()) == named() and len(named()) == N
    assert cluster.sizes == [N]


@pytest.mark.parametrize("done", [False, True])
def test_workers_that_are_left_give_the_names_where_this_process_does_not_see_them(
    done: bool, staged: list[StagedFile], monkeypatch: pytest.MonkeyPatch
) -> None:
    unseen(monkeypatch)
    cluster = LosingWorkers(0, 2, done)
    assert put_all_in_place(cluster, staged, "*") is None  # type: ignore[arg-type]
    assert sorted(os.listdir()) == named() and len(named()) == N
    assert max(cluster.sizes[1:]) <= PUT_AFTER_LOSS  # done before the cluster is looked at


def test_what_nobody_can_name_is_kept_and_told_of(staged: list[StagedFile], monkeypatch: pytest.MonkeyPatch) -> None:
    unseen(monkeypatch)
    calls = 0

    def run_tasks(self: ClusterHere, function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
        nonlocal calls
        calls += 1
        if calls != 2:
            raise LmartError(LOST)
        function(*tasks[0])
        yield None

    monkeypatch.setattr(ClusterHere, "run_tasks", run_tasks)
    fault = put_all_in_place(ClusterHere(), staged, "*")  # type: ignore[arg-type]
    n_named = len(named())
    assert 0 < n_named <= PUT_AFTER_LOSS
    assert str(fault) == (
        f"{n_named:03}: cannot be replaced: the worker tcp://a:1 is lost: it ended; what was made is kept as "
        f"{staged[n_named].temporary} (and at most {N - n_named - 1} more files likewise), unless it has its name by "
        "now; move it where you want it"
    )
    assert len(os.listdir()) == N


def test_interrupts_wait() -> None:
    before = signal.getsignal(signal.SIGINT)
    done = 0
    with pytest.raises(KeyboardInterrupt), interrupts_later():
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)
            done += 1
    assert done == 2
    assert signal.getsignal(signal.SIGINT) is before
    with interrupts_later():
        pass
    assert signal.getsignal(signal.SIGINT) is before
