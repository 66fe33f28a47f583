"""What is refused of a cluster, with a stand-in for its client."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import threading
from collections.abc import Generator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from helpers.waiting import LIMIT

from lmart.distributed import cluster, reading
from lmart.distributed.cluster import SILENT, Cluster, SignsOfLife, WorkerActors
from lmart.distributed.connecting import begin, code_digest
from lmart.errors import DataError, LmartError

OWN: dict[str, str | None] = {"lmart": "0.1.0", "numba": "0.60.0", "numpy": "2.0.0"}


LOOP = asyncio.new_event_loop()
threading.Thread(target=LOOP.run_forever, daemon=True).start()


class Client:
    """Answers as a client of `distributed` does."""

    status = "running"
    scheduler = type("scheduler", (), {"ncores": "ncores", "identity": "identity", "versions": "versions"})

    def __init__(
        self, threads: dict[str, int], versions: dict[str, dict[str, Any]], scheduler: dict[str, str | None] = OWN
    ) -> None:
        self.threads, self.versions, self.of_scheduler = threads, versions, scheduler

    def sync(self, function: Any, **options: object) -> Any:
        if callable(function):
            return asyncio.run_coroutine_threadsafe(function(), LOOP).result()
        if function == "ncores":
            return self.threads
        if function == "versions":
            return {"packages": self.of_scheduler}
        assert function == "identity"
        workers = {
            address: {"nthreads": n, "status": "running" if n else "paused"} for address, n in self.threads.items()
        }
        return {"workers": workers}

    def run(self, function: Any, *arguments: Any, workers: list[str], on_error: str) -> dict[str, Any]:
        assert on_error == "return"
        if arguments:  # the packages whose versions are asked
            return {address: {"packages": self.versions[address]} for address in workers}
        return dict.fromkeys(workers, function())


@pytest.fixture(autouse=True)
def own_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    versions = SimpleNamespace(get_versions=lambda packages: {"packages": OWN})
    monkeypatch.setattr(cluster, "load_distributed", lambda: SimpleNamespace(versions=versions))


@pytest.mark.parametrize(
    "theirs, said",
    [
        (OWN | {"numba": "0.61.0"}, "the worker tcp://b has numba 0.61.0, but this command has 0.60.0; install"),
        (OWN | {"lmart": "0.2.0"}, "the worker tcp://b has lmart 0.2.0, but this command has 0.1.0; install"),
        (OWN | {"lmart": None}, "the worker tcp://b cannot load lmart, but this command has 0.1.0; install"),
        ({}, "the worker tcp://b cannot load lmart"),
    ],
)
def test_other_versions_are_refused_by_name(theirs: dict[str, str | None], said: str) -> None:
    client = Client({"tcp://a": 1, "tcp://b": 2}, {"tcp://a": OWN, "tcp://b": theirs})
    with pytest.raises(LmartError, match=said):
        Cluster(client, "the cluster")


@pytest.mark.parametrize("theirs", ["0" * 64, "", AttributeError("module has no attribute 'code_digest'")])
def test_other_code_of_the_same_version_is_refused(theirs: object) -> None:
    class Older(Client):
        def run(self, function: Any, *arguments: Any, workers: list[str], on_error: str) -> dict[str, Any]:
            found = super().run(function, *arguments, workers=workers, on_error=on_error)
            return found if arguments else found | {"tcp://b": theirs}

    client = Older({"tcp://a": 1, "tcp://b": 2}, {"tcp://a": OWN, "tcp://b": OWN})
    with pytest.raises(LmartError, match=r"the worker tcp://b runs other code of lmart .* than this command; install"):
        Cluster(client, "the cluster")


@pytest.mark.parametrize("theirs", [{}, {"tcp://b": ConnectionRefusedError()}])
def test_a_worker_that_does_not_tell_its_code_is_lost(theirs: dict[str, Any]) -> None:
    class Losing(Client):
        def run(self, function: Any, *arguments: Any, workers: list[str], on_error: str) -> dict[str, Any]:
            if arguments:
                return super().run(function, *arguments, workers=workers, on_error=on_error)
            return super().run(function, workers=["tcp://a"], on_error=on_error) | theirs

    with pytest.raises(LmartError, match="the worker tcp://b is lost"):
        Cluster(Losing({"tcp://a": 1, "tcp://b": 2}, {"tcp://a": OWN, "tcp://b": OWN}), "the cluster")


def test_code_that_a_process_has_loaded_is_compared(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whatever is installed over it meanwhile."""
    (tmp_path / "kinds.py").write_text("old")
    monkeypatch.setattr("lmart.__file__", str(tmp_path / "__init__.py"))
    loaded = code_digest()
    (tmp_path / "kinds.py").write_text("new")
    assert code_digest() == loaded
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "kinds.py").write_text("new")
    monkeypatch.setattr("lmart.__file__", str(tmp_path / "other" / "__init__.py"))
    assert code_digest() != loaded


def test_a_scheduler_of_another_environment_is_refused() -> None:
    """It loads what it hands on to workers."""
    client = Client({"tcp://a": 1}, {"tcp://a": OWN}, OWN | {"lmart": None})
    with pytest.raises(LmartError, match="the Dask scheduler tcp://s cannot load lmart, but this"):
        Cluster(client, "the Dask scheduler tcp://s")


def test_a_cluster_without_workers_is_refused() -> None:
    with pytest.raises(LmartError, match="the cluster has no workers that accept work; start"):
        Cluster(Client({}, {}), "the cluster")
    with pytest.raises(LmartError, match="the cluster has no workers that accept work: all are short of memory"):
        Cluster(Client({"tcp://a": 0}, {}), "the cluster")


def test_workers_that_take_no_work_are_left_out() -> None:
    client = Client({"tcp://a": 0, "tcp://b": 2}, {"tcp://a": OWN, "tcp://b": OWN})
    assert Cluster(client, "the cluster").addresses == ["tcp://b"]


def test_workers_that_were_lost_are_left_out_and_not_asked() -> None:
    client = Client({"tcp://a": 1, "tcp://b": 2}, {"tcp://b": OWN})
    assert Cluster(client, "the cluster", without=["tcp://a", ""]).addresses == ["tcp://b"]


class Slow:
    """A future whose result takes a while, even when it is done."""

    def __init__(self, fault: BaseException | None = None, status: str = "finished") -> None:
        self.asked, self.fault, self.status = 0, fault, status

    def __await__(self) -> Generator[Any, None, str]:
        self.asked += 1
        yield from asyncio.sleep(0.2).__await__()
        if self.fault is not None:
            raise self.fault
        return "result"


def joined() -> Cluster:
    return Cluster(Client({"tcp://a": 1, "tcp://b": 1}, {"tcp://a": OWN, "tcp://b": OWN}), "the cluster")


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """A cluster that is looked at every few milliseconds while it is waited for."""
    monkeypatch.setattr(cluster, "WAITED", 0.02)
    monkeypatch.setattr(cluster, "NOTICED", 0.05)
    return joined()


def test_a_worker_that_was_started_anew_at_its_address_is_lost() -> None:
    """As a nanny does on a fixed port: the address is there, what the worker held is not."""
    one = joined()
    one._actors = WorkerActors(one, [Slow(), Slow()])
    one.check()
    one._actors.held[1].status = "error"
    with pytest.raises(LmartError, match="the worker tcp://b is lost"):
        one.check()


class ClosedWorker(Client):
    """Its worker b is gone at the second look."""

    def sync(self, function: Any, **options: object) -> Any:
        found = super().sync(function, **options)
        if function == "ncores":
            self.threads = {"tcp://a": 1}
        return found


@pytest.mark.parametrize(
    "fault",
    [
        RuntimeError("cannot schedule new futures after shutdown"),  # of a worker that is closing
        ValueError("Worker holding Actor was lost.  Status: cancelled"),
        OSError("Unable to contact Actor's worker"),
        asyncio.CancelledError(),
    ],
    ids=repr,
)
def test_faults_of_a_worker_that_is_about_to_be_missed(fault: BaseException) -> None:
    one = Cluster(ClosedWorker({"tcp://a": 1, "tcp://b": 1}, {"tcp://a": OWN, "tcp://b": OWN}), "the cluster")
    with pytest.raises(LmartError, match="the worker tcp://b is lost"):
        one.failure(fault)


def test_faults_of_the_work_are_raised_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "NOTICED", 0)
    for fault in (KeyError("a mistake"), OSError(5, "Input/output error"), RuntimeError("lost in a table")):
        assert joined().failure(fault) is fault
    for lost in (
        OSError("Unable to contact"),
        ConnectionResetError(104, "reset"),
        RuntimeError("Worker holding Actor was lost."),
    ):
        assert "a worker cannot be reached" in str(joined().failure(lost))


def test_faults_of_files_and_memory_are_told_at_once() -> None:
    fault = FileNotFoundError(2, "No such file", "part.svm")
    assert joined().failure(fault) is fault
    future: concurrent.futures.Future[None] = concurrent.futures.Future()
    future.set_exception(MemoryError("of 9 GB"))
    with pytest.raises(LmartError, match="a worker ran out of memory "):
        joined().wait(future)


def test_a_worker_without_news_in_many_looks_is_named() -> None:
    signs, never = SignsOfLife(), {"last_seen": 5.0}
    for look in range(SILENT):
        signs.look({"a": never, "b": {"last_seen": float(look)}}, ["a", "b"])
    with pytest.raises(LmartError, match="the worker a no longer responds"):
        signs.look({"a": never, "b": {"last_seen": -1.0}}, ["a", "b"])


def test_looks_go_on_while_there_is_news() -> None:
    signs = SignsOfLife()
    for look in range(5 * SILENT):
        signs.look({"a": {"last_seen": look // (SILENT - 1)}}, ["a"])
    assert not signs.are_due()


def test_a_call_that_never_returns_is_left_behind() -> None:
    assert begin(sorted, [2, 1], reverse=True).result(9) == [2, 1]
    with pytest.raises(ZeroDivisionError):
        begin(divmod, 1, 0).result(9)
    ended = threading.Event()
    with pytest.raises(TimeoutError):
        begin(ended.wait).result(0.01)
    ended.set()


def test_files_of_a_pattern_are_found_by_name(in_folder: Path) -> None:
    for name in ("b-10.svm", "b-9.svm", "a.svm", "b[1].svm"):
        Path(name).write_text(name)
    found = reading.find_files(["b-*.svm", "a.svm", "b[1].svm"])
    assert found == [[("b-10.svm", 8), ("b-9.svm", 7)], [("a.svm", 5)], [("b[1].svm", 8)]]
    Path("d-1.svm").symlink_to("gone.svm")
    with pytest.raises(DataError, match=r"^d-1\.svm: .*, as a worker sees it; check the name"):
        reading.find_files(["d-*.svm"])
    os.mkfifo("pipe")
    with pytest.raises(DataError, match=r"^pipe: is a pipe"):
        reading.find_files(["pip?"])
    Path("e-1.svm").mkdir()
    assert [one.path for one in reading.find_files(["e-*"])[0]] == ["e-1.svm"]  # which readers refuse
    with pytest.raises(DataError, match=r"^c\*: no file that the workers see matches it"):
        reading.find_files(["a.svm", "c*"])
    with pytest.raises(DataError, match=r"^c\.svm: .*, as a worker sees it"):
        reading.find_files(["c.svm"])


class Done:
    """A future whose work was done at once."""

    def __init__(self, value: int, waiting: list[int]) -> None:
        self.value, self.waiting = value, waiting

    def __await__(self) -> Generator[Any, None, int]:
        yield from asyncio.sleep(0).__await__()
        self.waiting.remove(self.value)
        return self.value


class Mapping(Client):
    """Keeps which tasks are handed in and not yet asked for."""

    def __init__(self) -> None:
        super().__init__({"tcp://a": 1}, {"tcp://a": OWN})
        self.waiting: list[int] = []
        self.at_once: list[int] = []

    def map(self, function: Any, *arguments: Any, workers: list[str], **options: object) -> list[Done]:
        assert workers == ["tcp://a"] and not options["allow_other_workers"]
        added = [function(*one) for one in zip(*arguments, strict=True)]
        self.waiting += added
        self.at_once.append(len(self.waiting))
        return [Done(one, self.waiting) for one in added]


@pytest.mark.slow
def test_many_tasks_are_handed_in_by_and_by_and_answered_in_order() -> None:
    client = Mapping()
    found = list(Cluster(client, "the cluster").run_tasks(lambda a, b: a + b, [(k, 1000) for k in range(10_000)]))
    assert found == list(range(1000, 11_000))
    assert len(client.at_once) < 50 and max(client.at_once) <= 600
    assert list(Cluster(client, "the cluster").run_tasks(len, [])) == []


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
        (TimeoutError(), LmartError, "the cluster: a worker cannot be reached"),
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


class Failing(Client):
    """Its first task takes a while, its second one fails at once."""

    def map(self, function: Any, *arguments: Any, **options: object) -> list[Slow]:
        return [Slow(), Slow(DataError("wrong", "b.svm", 3), "error")]


@pytest.mark.parametrize("earlier, told", [(0.0, True), (60.0, False)])
def test_a_fault_of_a_later_task_is_told_in_time(
    earlier: float, told: bool, waiting: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within a while, that is: those before it may have faults too, which one process would tell of first."""
    monkeypatch.setattr(cluster, "EARLIER", earlier)
    waiting._client = Failing(waiting._client.threads, waiting._client.versions)
    results: Iterator[Any] = waiting.run_tasks(len, [("a",), ("b",)])
    if not told:
        assert next(results) == "result"
    with pytest.raises(DataError, match=r"b\.svm:3: wrong"):
        next(results)


def test_a_fault_of_a_later_object_is_told_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong, slow = DataError("wrong", "b.svm", 3), DataError("slow", "a.svm", 1)

    async def fail(fault: DataError, after: asyncio.Event, then: asyncio.Event) -> None:
        await after.wait()
        then.set()
        raise fault

    async def both(first_fails: bool) -> list[None]:
        begun, failed, never = asyncio.Event(), asyncio.Event(), asyncio.Event()
        begun.set()
        first = fail(slow, failed if first_fails else never, never)
        return await cluster._all([first, asyncio.sleep(0), fail(wrong, begun, failed)])

    for earlier, expected in ((LIMIT, slow), (0.01, wrong)):
        monkeypatch.setattr(cluster, "EARLIER", earlier)
        with pytest.raises(DataError) as raised:
            asyncio.run_coroutine_threadsafe(both(expected is slow), LOOP).result()
        assert raised.value is expected
