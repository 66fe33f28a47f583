"""What is refused of a cluster, with a stand-in for its client."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Generator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lmart.distributed import cluster, parts
from lmart.distributed.cluster import Cluster
from lmart.errors import DataError, LmartError

OWN = {"lmart": "0.1.0", "numba": "0.60.0", "numpy": "2.0.0"}


class Client:
    """Answers as a client of `distributed` does."""

    status = "running"
    loop: Any = None
    scheduler = type("scheduler", (), {"ncores": None})

    def __init__(self, threads: dict[str, int], versions: dict[str, dict[str, Any]]) -> None:
        self.threads, self.versions = threads, versions

    def sync(self, function: object, **options: object) -> dict[str, int]:
        return self.threads

    def get_versions(self, packages: list[str]) -> dict[str, Any]:
        workers = {address: {"packages": own} for address, own in self.versions.items()}
        return {"client": {"packages": OWN}, "workers": workers}


@pytest.mark.parametrize(
    "theirs, said",
    [
        (OWN | {"numba": "0.61.0"}, "the worker tcp://b has numba 0.61.0, but this command 0.60.0; install"),
        (OWN | {"lmart": "0.2.0"}, "the worker tcp://b has lmart 0.2.0, but this command 0.1.0; install"),
        (OWN | {"lmart": None}, "the worker tcp://b cannot load lmart, but this command 0.1.0; install"),
        ({}, "the worker tcp://b cannot load lmart"),
    ],
)
def test_other_versions_are_refused_by_name(theirs: dict[str, str | None], said: str) -> None:
    client = Client({"tcp://a": 1, "tcp://b": 2}, {"tcp://a": OWN, "tcp://b": theirs})
    with pytest.raises(LmartError, match=said):
        Cluster(client, "the cluster")


def test_a_cluster_without_workers_is_refused() -> None:
    with pytest.raises(LmartError, match="the cluster has no workers"):
        Cluster(Client({}, {}), "the cluster")


def test_files_of_a_pattern_are_found_by_name(in_folder: Path) -> None:
    for name in ("b-10.svm", "b-9.svm", "a.svm", "b[1].svm"):
        Path(name).write_text(name)
    found = parts.find_files(["b-*.svm", "a.svm", "b[1].svm"])
    assert found == [[("b-10.svm", 8), ("b-9.svm", 7)], [("a.svm", 5)], [("b[1].svm", 8)]]
    with pytest.raises(DataError, match=r"^c\*: no file of the workers matches it"):
        parts.find_files(["a.svm", "c*"])
    with pytest.raises(DataError, match=r"^c\.svm: .*, as a worker sees it"):
        parts.find_files(["c.svm"])


class Slow:
    """A future whose result takes a while, even when it is done."""

    def __init__(self, fault: BaseException | None = None) -> None:
        self.asked, self.fault = 0, fault

    def __await__(self) -> Generator[Any, None, str]:
        self.asked += 1
        yield from asyncio.sleep(0.2).__await__()
        if self.fault is not None:
            raise self.fault
        return "result"


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """A cluster that is looked at every few milliseconds while it is waited for."""
    monkeypatch.setattr(cluster, "WAITED", 0.02)
    monkeypatch.setattr(cluster, "NOTICED", 0.05)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    client = Client({"tcp://a": 1}, {"tcp://a": OWN})
    client.loop = SimpleNamespace(asyncio_loop=loop)
    yield Cluster(client, "the cluster")
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def test_a_result_that_takes_long_is_asked_for_once(waiting: Cluster) -> None:
    future = Slow()
    assert waiting.wait(future) == "result"
    assert future.asked == 1


@pytest.mark.parametrize(
    "fault, raised, said",
    [
        (DataError("wrong", "a.svm", 3), DataError, "a.svm:3: wrong"),
        (ValueError("no"), ValueError, "no"),
        (asyncio.CancelledError(), LmartError, "the cluster: a worker cannot be reached"),
        (concurrent.futures.CancelledError(), LmartError, "the cluster: a worker cannot be reached"),
        (OSError("broken"), LmartError, "a worker cannot be reached .broken."),
        (PermissionError(13, "denied"), PermissionError, "denied"),
    ],
)
def test_what_a_task_raises(fault: BaseException, raised: type[BaseException], said: str, waiting: Cluster) -> None:
    with pytest.raises(raised, match=said):
        waiting.wait(Slow(fault))


def test_a_worker_that_is_lost_while_it_is_waited_for(waiting: Cluster) -> None:
    waiting._client.threads = {}
    with pytest.raises(LmartError, match="the worker tcp://a is lost"):
        waiting.wait(Slow())
