"""The pool keeps order, hands on failures and ends; the processor count follows affinity and control groups."""

from __future__ import annotations

import _thread
import gzip
import itertools
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from helpers.commands import run, shell
from helpers.paths import ROOT, SAMPLE
from helpers.waiting import LIMIT, wait_until
from hypothesis import given
from hypothesis import strategies as st

from lmart import threads
from lmart.cli.terminal.progress import TerminalProgress
from lmart.errors import DataError
from lmart.streams import open_input
from lmart.threads import WorkerPool, available_processors, chunks


class TestWorkerPool:
    @pytest.mark.parametrize("n_threads", [1, 2, 3, 8])
    @pytest.mark.parametrize("n_calls", [0, 1, 2, 7, 100])
    def test_results_come_in_the_order_of_the_calls(self, n_threads: int, n_calls: int) -> None:
        with WorkerPool(n_threads) as pool:
            for _ in range(20):
                assert pool.run(divmod, [(i, 7) for i in range(n_calls)]) == [divmod(i, 7) for i in range(n_calls)]

    def test_calls_really_run_side_by_side(self) -> None:
        both = threading.Barrier(2, timeout=LIMIT)
        with WorkerPool(2) as pool:
            assert sorted(pool.run(both.wait, [(), ()])) == [0, 1]

    def test_a_slow_call_does_not_hold_up_the_others(self) -> None:
        taken: list[int] = []
        others_done = threading.Event()

        def call(i: int) -> None:
            if i == 0:
                assert others_done.wait(LIMIT)
            taken.append(i)
            if len(taken) == 19:
                others_done.set()

        with WorkerPool(2) as pool:
            pool.run(call, [(i,) for i in range(20)])
        assert taken[-1] == 0

    @pytest.mark.parametrize("n_threads", [1, 2, 4])
    def test_an_exception_reaches_the_caller_and_the_pool_lives_on(self, n_threads: int) -> None:
        with WorkerPool(n_threads) as pool:
            with pytest.raises(ZeroDivisionError):
                pool.run(divmod, [(1, i % 3) for i in range(30)])
            assert pool.run(divmod, [(6, 3), (7, 3)]) == [(2, 0), (2, 1)]

    @pytest.mark.parametrize("n_threads", [1, 3])
    def test_nothing_is_started_after_a_failure(self, n_threads: int) -> None:
        started: list[int] = []

        def call(i: int) -> None:
            started.append(i)
            raise KeyboardInterrupt

        with WorkerPool(n_threads) as pool, pytest.raises(KeyboardInterrupt):
            pool.run(call, [(i,) for i in range(50)])
        assert len(started) <= n_threads

    def test_workers_end_with_the_pool(self) -> None:
        before = _thread._count()
        for _ in range(10):  # some of other tests may just be ending
            with WorkerPool(5) as pool:
                assert pool.threads == 5
        wait_until(lambda: _thread._count() <= before)

    def test_an_interrupt_is_answered_while_workers_are_busy(self) -> None:
        program = (
            "import time; from lmart.threads import WorkerPool\n"
            "WorkerPool(2).run(lambda: [print('busy', flush=True), time.sleep(0.05)], [()] * 100_000)"
        )
        with subprocess.Popen(
            [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:
            assert process.stdout is not None
            process.stdout.readline()
            process.send_signal(signal.SIGINT)
            assert process.wait(LIMIT) == -signal.SIGINT


@pytest.mark.slow
class TestWithoutThreads:
    """Where the system allows no further thread, work is done by those that there are."""

    @pytest.mark.parametrize("allowed", [0, 2])
    def test_the_pool_is_smaller(self, monkeypatch: pytest.MonkeyPatch, allowed: int) -> None:
        allow_threads(monkeypatch, allowed)
        with WorkerPool(8) as pool:
            assert pool.threads == allowed + 1
            assert pool.run(divmod, [(i, 7) for i in range(20)]) == [divmod(i, 7) for i in range(20)]
            own = [[i] for i in range(pool.threads)]
            assert pool.run(lambda mine, i: i, [(i,) for i in range(20)], own) == list(range(20))
        assert not threads.threads_can_start() or allowed == 0

    def test_a_thread_that_never_begins_is_not_waited_for(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """As where no memory is left for its first frame."""
        late: list[Callable[[], object]] = []

        def lost(function: Callable[..., object], arguments: tuple[Any, ...]) -> int:
            late.append(lambda: function(*arguments))
            return 0

        monkeypatch.setattr(_thread, "start_new_thread", lost)
        monkeypatch.setattr(threads, "LONGEST_BEGINNING", 0.01)
        called: list[int] = []
        assert not threads.start_thread(called.append, 1)
        late[0]()  # it begins after all, when nobody counts on it
        assert called == []
        with WorkerPool(3) as pool:
            assert pool.threads == 1 and pool.run(divmod, [(7, 2), (9, 4)]) == [(3, 1), (2, 1)]

    @pytest.mark.parametrize("kind", ["gz", "zst"])
    @pytest.mark.parametrize("size", [1, 100, 1 << 22])
    def test_compressed_input_is_read(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, size: int
    ) -> None:
        path = tmp_path / f"in.{kind}"
        whole = bytes(range(256)) * 20_000
        path.write_bytes(compressed(whole, kind))
        allow_threads(monkeypatch, 0)
        stream = open_input(str(path))
        view = memoryview(bytearray(size))
        read = bytearray()
        while len(read) < min(len(whole), 2000 * size) and (count := stream.read_block(view)):
            read += view[:count]
        assert read == whole[: len(read)] and len(read) >= min(len(whole), 2000 * size)
        stream.close()
        stream.close()

    def test_damaged_input_is_refused_after_what_is_whole(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "in.gz"
        path.write_bytes(gzip.compress(b"1 qid:1 1:0.5\n") + gzip.compress(b"whole")[:-3])
        allow_threads(monkeypatch, 0)
        stream = open_input(str(path))
        view = memoryview(bytearray(100))
        assert stream.read_block(view) > 0
        with pytest.raises(DataError, match="cut off"):
            while stream.read_block(view):
                pass
        stream.close()

    def test_commands_give_the_same_bytes(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        data = tmp_path / "train.svm.gz"
        data.write_bytes(gzip.compress((SAMPLE / "train.svm").read_bytes()))
        arguments = ("train", "-q", "--data", data, "--trees", "3", "--threads", "2", "--out")
        run(*arguments, tmp_path / "two.json")
        allow_threads(monkeypatch, 0)
        run(*arguments, tmp_path / "one.json")
        assert (tmp_path / "one.json").read_bytes() == (tmp_path / "two.json").read_bytes()

    def test_parquet_is_read(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        pytest.importorskip("pyarrow")
        run("convert", "-q", SAMPLE / "test.svm", tmp_path / "test.parquet")
        run("convert", "-q", tmp_path / "test.parquet", tmp_path / "two.svm")
        allow_threads(monkeypatch, 0)
        run("convert", "-q", tmp_path / "test.parquet", tmp_path / "one.svm")
        assert (tmp_path / "one.svm").read_bytes() == (tmp_path / "two.svm").read_bytes()

    def test_a_bar_is_shown(self, monkeypatch: pytest.MonkeyPatch) -> None:
        allow_threads(monkeypatch, 0)
        with TerminalProgress(3, "trees") as bar:
            for done in range(4):
                bar.update(done, "text")

    @pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None, reason="needs root and setpriv")
    def test_under_a_real_limit(self, tmp_path: Path) -> None:
        """NumPy, Parquet and gzip included. A user without processes, who may read what root may."""
        pytest.importorskip("pyarrow")
        limited = "setpriv --reuid=64321 --regid=64321 --clear-groups --inh-caps=+dac_read_search "
        limited += f"--ambient-caps=+dac_read_search prlimit --nproc=1:1 env HOME=/nonexistent {sys.executable} "
        if shell(f"{limited} -c pass", tmp_path).returncode != 0:
            pytest.skip("this container may not change users")
        (tmp_path / "in.svm.gz").write_bytes(gzip.compress((SAMPLE / "test.svm").read_bytes()))
        run("train", "-q", "--data", SAMPLE / "train.svm", "--trees", "3", "--out", tmp_path / "m.json")
        expected = run("predict", "-m", tmp_path / "m.json", "--data", SAMPLE / "test.svm").stdout
        run("convert", "-q", SAMPLE / "test.svm", tmp_path / "in.parquet")
        for name in ("in.svm.gz", "in.parquet"):
            arguments = f"-m lmart predict -q -m m.json --threads 2 --data {name}"
            done = shell(f"unset OPENBLAS_NUM_THREADS; {limited} {arguments}", tmp_path, {"PYTHONPATH": str(ROOT)})
            assert (done.returncode, done.stdout.decode()) == (0, expected), done.stderr
            assert [line for line in done.stderr.splitlines() if b"jemalloc" not in line] == []  # pyarrow's allocator


def allow_threads(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Let only this many threads start, as `ulimit -u` or a control group does."""
    start, started = _thread.start_new_thread, itertools.count()

    def limited(function: Callable[..., object], arguments: tuple[Any, ...]) -> int:
        if next(started) >= number:
            raise RuntimeError("can't start new thread")
        return start(function, arguments)

    monkeypatch.setattr(_thread, "start_new_thread", limited)


def compressed(content: bytes, kind: str) -> bytes:
    if kind == "gz":
        return gzip.compress(content)
    packed: bytes = pytest.importorskip("zstandard").compress(content)
    return packed


@given(st.integers(0, 1000), st.integers(1, 300))
def test_chunks_cover_everything_once_and_in_order(n: int, size: int) -> None:
    parts = chunks(n, size)
    assert [i for start, stop in parts for i in range(start, stop)] == list(range(n))
    assert all(stop - start == size for start, stop in parts[:-1])
    assert all(0 < stop - start <= size for start, stop in parts)


class TestProcessors:
    def limit(self, folder: Path, membership: str, **files: str) -> int | None:
        """The limit found when /proc/self/cgroup says `membership`; a file's name has `_` for `/`."""
        for name, content in files.items():
            path = folder.joinpath(*name.split("__"))
            path = path.with_name(path.name.replace("cpu_max", "cpu.max").replace("cpu_cfs", "cpu.cfs"))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        (folder / "membership").write_text(membership)
        return threads._cgroup_limit(folder / "membership", folder)

    def test_version_2(self, tmp_path: Path) -> None:
        assert self.limit(tmp_path, "0::/a/b\n", a__b__cpu_max="150000 100000\n") == 2

    def test_version_2_inside_a_container(self, tmp_path: Path) -> None:
        assert self.limit(tmp_path, "0::/\n", cpu_max="100000 100000\n") == 1

    def test_the_tightest_limit_above_us_holds(self, tmp_path: Path) -> None:
        assert self.limit(tmp_path, "0::/a/b\n", a__b__cpu_max="800000 100000", a__cpu_max="300000 100000") == 3

    def test_a_path_of_the_host_falls_back_to_the_root(self, tmp_path: Path) -> None:
        assert self.limit(tmp_path, "0::/docker/0123\n", cpu_max="50000 100000\n") == 1

    def test_no_limit(self, tmp_path: Path) -> None:
        assert self.limit(tmp_path, "0::/a\n", a__cpu_max="max 100000\n") is None
        assert self.limit(tmp_path, "") is None

    def test_version_1(self, tmp_path: Path) -> None:
        membership = "7:memory:/x\n4:cpu,cpuacct:/x\n0::/\n"
        files = {"cpu__x__cpu_cfs_quota_us": "250000\n", "cpu__x__cpu_cfs_period_us": "100000\n"}
        assert self.limit(tmp_path, membership, **files) == 3

    def test_version_1_without_quota(self, tmp_path: Path) -> None:
        files = {"cpu__x__cpu_cfs_quota_us": "-1\n", "cpu__x__cpu_cfs_period_us": "100000\n"}
        assert self.limit(tmp_path, "4:cpu,cpuacct:/x\n", **files) is None

    @pytest.mark.parametrize("content", ["", "max", "100000", "a b", "100000 0", "1 2 3"])
    def test_rubbish_is_no_limit(self, tmp_path: Path, content: str) -> None:
        assert self.limit(tmp_path, "0::/a\n", a__cpu_max=content) is None

    @pytest.mark.parametrize("membership", ["rubbish", "0:", "0:::", "\udcff"])
    def test_rubbish_in_the_membership_is_no_limit(self, tmp_path: Path, membership: str) -> None:
        (tmp_path / "membership").write_bytes(membership.encode("utf-8", "surrogateescape"))
        assert threads._cgroup_limit(tmp_path / "membership", tmp_path) is None

    def test_no_cgroups_at_all(self, tmp_path: Path) -> None:
        assert threads._cgroup_limit(tmp_path / "absent", tmp_path) is None

    @pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity here")
    def test_affinity(self) -> None:
        program = "import os; from lmart.threads import *; os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])"
        program += "; print(available_processors())"
        assert subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout == b"1\n"

    def test_the_smaller_of_both_counts(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(6)), raising=False)
        for limit, expected in ((None, 6), (4, 4), (9, 6)):
            monkeypatch.setattr(threads, "_cgroup_limit", lambda membership, root, limit=limit: limit)
            assert available_processors() == expected


def test_a_worker_that_is_kept_from_running_is_done_without(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its calls end an hour after those of the caller, as the clock has it."""
    hours = ((number + 1) // 3 * 3600.0 for number in itertools.count())  # looked at thrice a run
    monkeypatch.setattr(threads, "time", SimpleNamespace(perf_counter=lambda: next(hours)))
    monkeypatch.setattr(threads, "ALONE", 5)
    caller = threading.get_ident()
    both = threading.Barrier(2)

    def step(wait: bool) -> int:
        if wait:
            both.wait(LIMIT)  # so that each thread has one call
        return threading.get_ident()

    with WorkerPool(2) as pool:
        for _ in range(3):
            assert len(set(pool.run(step, [(True,), (True,)]))) == 2
        for _ in range(5):
            assert set(pool.run(step, [(False,)] * 2)) == {caller}
        assert len(set(pool.run(step, [(True,), (True,)]))) == 2
