"""The sums of the measuring programs for clusters; what they measure is not tested."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest
from helpers.paths import TESTS

from lmart.distributed.actors import LocalActors
from lmart.settings import TrainSettings


class Programs(NamedTuple):
    counted_actors: ModuleType
    cluster_model: ModuleType
    cluster_peers: ModuleType
    cluster_scaling: ModuleType
    plain_text: ModuleType
    process_peaks: ModuleType


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> Programs:
    """Import them as they import each other."""
    monkeypatch.syspath_prepend(TESTS / "bench")
    import cluster_model
    import cluster_peers
    import cluster_scaling
    import counted_actors
    import plain_text
    import process_peaks

    return Programs(counted_actors, cluster_model, cluster_peers, cluster_scaling, plain_text, process_peaks)


def letor(sizes: list[int]) -> str:
    """Return rows of queries of these sizes."""
    return "".join(
        f"{row % 3} qid:{100 - q} 1:{row} 7:0.5 # d\n" for q, size in enumerate(sizes) for row in range(size)
    )


def test_parts_have_whole_queries_and_all_rows(programs: Programs, tmp_path: Path) -> None:
    sizes = [5, 1, 9, 4, 4, 7, 2]
    (tmp_path / "all.txt").write_text(letor(sizes))
    parts = programs.plain_text.split(tmp_path / "all.txt", 3, tmp_path)
    texts = [Path(path).read_text() for path in parts.paths]
    assert "".join(texts) == letor(sizes)
    assert (len(texts), sum(parts.queries), parts.columns) == (3, 7, 8)
    assert parts.rows == [len(text.splitlines()) for text in texts]
    queries = [{line.split()[1] for line in text.splitlines()} for text in texts]
    assert [len(one) for one in queries] == parts.queries
    assert not queries[0] & queries[1] and not queries[1] & queries[2]


def test_one_query_is_one_part(programs: Programs, tmp_path: Path) -> None:
    (tmp_path / "all.txt").write_text(letor([6]))
    assert programs.plain_text.split(tmp_path / "all.txt", 4, tmp_path)[1:] == ([6], [1], 8)


def test_peers_number_queries_through_all_parts(programs: Programs, tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    (tmp_path / "part.svm").write_text(letor([2, 1, 3]))
    cells, labels, sizes, queries = programs.cluster_peers.load_part(str(tmp_path / "part.svm"), 8, 40)
    assert (cells.shape, cells.dtype, cells[5].tolist()) == ((6, 8), np.float32, [0, 2, 0, 0, 0, 0, 0, 0.5])
    assert labels.tolist() == [0, 1, 0, 0, 1, 2]
    assert (sizes.tolist(), queries.tolist()) == ([2, 1, 3], [40, 40, 41, 42, 42, 42])


STARTER = """
import subprocess, sys
hold = "held = b'x' * 80_000_000; import time; time.sleep(0.6)"
subprocess.run([sys.executable, "-c", hold, "distributed.cli." + "dask_worker"])
subprocess.run([sys.executable, "-c", "pass"])
print("done")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_peaks_of_driver_and_workers_are_told_apart(programs: Programs) -> None:
    done = programs.process_peaks.watched_run([sys.executable, "-c", STARTER], 60)
    assert done.output == "done\n"
    assert len(done.workers) == 1 and done.workers[0] > 80
    assert 1 < done.driver < 70
    assert done.seconds > 0.5


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    ("code", "said"),
    [("import sys; sys.exit('not so')", "status 1: \n    not so"), ("import time; time.sleep(60)", "more than 0.3 s")],
)
def test_failed_runs_say_why(programs: Programs, code: str, said: str) -> None:
    with pytest.raises(programs.process_peaks.Failed, match=said):
        programs.process_peaks.watched_run([sys.executable, "-c", code], 0.3 if "sleep" in code else 60)


class Doubler:
    """What the actors are."""

    def double(self, numbers: Any) -> Any:
        """Return twice as many."""
        return np.concatenate([numbers, numbers])


def test_messages_and_bytes_are_counted_by_method(programs: Programs) -> None:
    actors = programs.counted_actors.CountedActors(LocalActors([Doubler(), Doubler(), Doubler()]))
    results = actors.call("double", np.arange(1000))
    actors.ask(1, "double", np.arange(10_000))
    assert [len(one) for one in results] == [2000] * 3
    counted = actors.take()["double"]
    assert (counted.calls, counted.messages, counted.histograms) == (2, 4, 0)
    assert 0 <= counted.sent - 8 * (3 * 1000 + 10_000) < 4 * 300
    assert 0 <= counted.received - 8 * (3 * 2000 + 20_000) < 4 * 300
    assert actors.take() == {}


@pytest.mark.parametrize("n_shards", [1, 3])
def test_bytes_of_a_tree_are_those_of_its_histograms(programs: Programs, tmp_path: Path, n_shards: int) -> None:
    settings = TrainSettings(trees=2, leaves=6, sample=1.0, rankers=1, objective="lambdamart", min_docs=5)
    paths = programs.cluster_scaling.make_parts(tmp_path, 3, 1500, 4)
    run = programs.counted_actors.count_run(paths, settings, n_shards)
    assert (run.n_rows, run.n_queries, run.n_shards, len(run.trees)) == (1500, 15, n_shards, 2)
    assert run.n_bins == 4 * 255
    traffic = programs.counted_actors.traffic_of(run)
    assert 5 <= traffic.histograms <= 12  # the root and one child of each split, of some splits in vain
    assert 4 < traffic.bin_bytes < 9
    assert 0 < traffic.rest < 0.2 * traffic.received(run.n_bins)
    assert run.trees[1]["pack"].messages == n_shards
    assert 0 < run.trees[1]["pack"].received - n_shards * 8 * run.n_bins < n_shards * 400
    assert run.reading["first_pass"].received > 8 * run.n_queries


def test_hops_are_those_of_a_tree_of_workers(programs: Programs) -> None:
    hops = programs.cluster_model.hops
    assert [hops(n, 4) for n in (1, 2, 5, 6, 21, 22)] == [0, 1, 1, 2, 2, 3]
    assert [hops(n, 1) for n in (1, 2, 9)] == [0, 1, 8]


def test_seconds_of_a_tree_by_hand(programs: Programs) -> None:
    model = programs.cluster_model
    traffic = model.TreeTraffic(10, sent=1e3, histograms=2, bin_bytes=8, rest=600, apart=1, apart_bytes=50)
    assert traffic.received(1000) == 16_600
    costs = model.Costs(row_ns=100, latency=2e-3, message=1e-3, bandwidth=1e6, fan_in=0)
    flat = model.tree_time(traffic, 1000, 1e6, 5, 10, costs)
    assert flat == pytest.approx((0.05, 11 * 2e-3 + 110 * 1e-3, (17_600 + 50) * 10 / 1e6))
    assert flat.efficiency == pytest.approx(0.05 / sum(flat))
    added = model.tree_time(traffic, 1000, 1e6, 5, 10, costs._replace(fan_in=3))  # two hops
    assert added.work == flat.work
    assert added.messages == pytest.approx(11 * 2e-3 + (10 + 10) * 1e-3 + 10 * 2 * (2e-3 + 3e-3))
    assert added.bytes == pytest.approx((17_600 + 500 + 17_600 * 2 * 3) / 1e6)
    few = model.tree_time(traffic, 1000, 1e6, 5, 4, costs._replace(fan_in=3))
    assert few == model.tree_time(traffic, 1000, 1e6, 5, 4, costs)


def test_the_driver_is_the_limit_from_so_many_workers_on(programs: Programs) -> None:
    model = programs.cluster_model
    assert model.first_where(lambda n: n >= 37) == 37
    assert model.first_where(lambda n: True) == 1
    assert model.first_where(lambda n: False) is None
    traffic = model.TreeTraffic(10, 0, 1, 8, 0, 0, 0)
    costs = model.Costs(row_ns=1000, latency=0, message=0, bandwidth=8e3, fan_in=0)
    # a second of bytes for each worker, and 100 seconds of work for all: 10 workers need 10 for both
    assert model.driver_limit(traffic, 1000, 1e5, 1000, costs) == (11, 11)
    assert model.driver_limit(traffic, 1000, 1e5, 1000, costs._replace(fan_in=4))[0] == 101
