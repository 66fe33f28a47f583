"""Training in shards of this process, with every message counted: how many, and how many bytes to and fro."""

from __future__ import annotations

import pickle
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from cluster_model import TreeTraffic

from lmart.distributed.actors import Actors, LocalActors
from lmart.distributed.training.inputs import DataParts, ValidationParts, read_sets, resolve_sharded
from lmart.distributed.training.run import DistributedRun
from lmart.distributed.training.shard import Shard
from lmart.formats.read_options import ReadOptions
from lmart.settings import TrainSettings
from lmart.threads import WorkerPool

# Methods whose results are added up; other answers are looked at one by one.
ADDED = {"code", "lay_out", "draw", "draw_all", "pack", "split", "count_children", "bin_counts", "finish_tree"}


class Traffic(NamedTuple):
    """What the calls of one method, or of several, come to.

    calls      : of all objects or of one
    messages   : one for each object that was called; the answer is not counted
    sent       : bytes of the arguments, of all messages
    received   : bytes of the results, of all messages
    histograms : that each shard was asked for
    """

    calls: int = 0
    messages: int = 0
    sent: int = 0
    received: int = 0
    histograms: int = 0

    def plus(self, other: Traffic) -> Traffic:
        """Return the sum of both."""
        return Traffic(*(one + two for one, two in zip(self, other, strict=True)))


ByMethod = dict[str, Traffic]


def pickled_size(value: Any) -> int:
    """Return the bytes of a pickled value, those of its arrays counted apart, as they are sent.

    value : to be pickled
    """
    buffers: list[pickle.PickleBuffer] = []
    text = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    return len(text) + sum(one.raw().nbytes for one in buffers)


def n_histograms(method: str, arguments: tuple[Any, ...]) -> int:
    """Return how many histograms a shard answers a call with.

    method    : its name
    arguments : of the call
    """
    if method == "split":
        return sum(one.summed is not None for one in arguments[0])
    return int(method in ("pack", "histogram"))


class CountedActors(Actors):
    """Actors that count what is sent to them and what comes back.

    actors : that do the work

    by_method : what was counted since the last `take`
    """

    def __init__(self, actors: Actors) -> None:
        self._actors = actors
        self.by_method: ByMethod = {}

    def __len__(self) -> int:
        return len(self._actors)

    def each(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Call a method of every object; return what they return.

        method    : its name
        arguments : of each object
        """
        sent = sum(map(pickled_size, arguments))
        histograms = n_histograms(method, arguments[0])
        results = self._actors.each(method, arguments)
        self._note(method, Traffic(1, len(results), sent, sum(map(pickled_size, results)), histograms))
        return results

    def ask(self, number: int, method: str, *arguments: Any) -> Any:
        """Call a method of one object and return what it returns.

        number    : of the object, from 0
        method    : its name
        arguments : of the call
        """
        sent = pickled_size(arguments)
        result = self._actors.ask(number, method, *arguments)
        self._note(method, Traffic(1, 1, sent, pickled_size(result)))
        return result

    def take(self) -> ByMethod:
        """Return what was counted, and count from 0 again."""
        taken, self.by_method = self.by_method, {}
        return taken

    def _note(self, method: str, traffic: Traffic) -> None:
        self.by_method[method] = self.by_method.get(method, Traffic()).plus(traffic)


class CountedRun(NamedTuple):
    """A training run, counted.

    n_shards  : how many
    n_rows    : of the data
    n_queries : of the data
    n_bins    : of all features
    reading   : what was sent until rows were in bins and ready to learn from
    trees     : what was sent for each tree
    """

    n_shards: int
    n_rows: int
    n_queries: int
    n_bins: int
    reading: ByMethod
    trees: list[ByMethod]

    @property
    def per_tree(self) -> dict[str, list[float]]:
        """The mean over the trees, by method: the fields of `Traffic`."""
        methods = {method: None for tree in self.trees for method in tree}
        return {
            method: [
                sum(column) / len(self.trees)
                for column in zip(*(tree.get(method, Traffic()) for tree in self.trees), strict=True)
            ]
            for method in methods
        }


def count_run(paths: Sequence[str], settings: TrainSettings, n_shards: int) -> CountedRun:
    """Train in shards of this process; return what was sent.

    paths    : the parts, at least as many as shards
    settings : of the run
    n_shards : how many
    """
    parts = DataParts(ValidationParts("data", paths), [], {path: Path(path).stat().st_size for path in paths})
    with WorkerPool(1) as pool:
        shards = CountedActors(LocalActors([Shard("counted", 1) for _ in range(n_shards)]))
        sets = read_sets(shards, parts, ReadOptions(), settings)
        run = DistributedRun(sets, resolve_sharded(settings, sets), pool, time.perf_counter())
        reading = shards.take()
        trees = [shards.take() for _ in run.rounds()]
    train_set = sets.train_set
    return CountedRun(n_shards, train_set.n_documents, train_set.n_queries, sets.edges.n_bins, reading, trees)


def traffic_of(run: CountedRun) -> TreeTraffic:
    """Return what a worker and the driver sent each other for a tree, on the mean.

    run : that was counted
    """
    n, sums, of_histograms = run.n_shards, np.zeros(6), 0.0
    for method, (calls, _, sent, received, histograms) in run.per_tree.items():
        if method not in ADDED:
            sums += [0, 0, 0, 0, calls, (sent + received) / n]
        elif histograms:
            sums += [calls, sent / n, histograms, 0, 0, 0]
            of_histograms += received / n
        else:
            sums += [calls, sent / n, 0, received / n, 0, 0]
    calls, sent, histograms, rest, apart, apart_bytes = sums.tolist()
    bin_bytes = of_histograms / (run.n_bins * histograms)
    return TreeTraffic(calls, sent, histograms, bin_bytes, rest, apart, apart_bytes)


def mean_traffic(runs: Sequence[CountedRun]) -> TreeTraffic:
    """Return the mean of what was counted in the runs with most rows, but the largest bytes of a bin.

    Sums of few rows may be sent in fewer bytes than those of many.

    runs : of trees of as many leaves
    """
    most = max(run.n_rows for run in runs)
    found = [traffic_of(run) for run in runs if run.n_rows == most]
    mean = TreeTraffic(*(statistics.mean(column) for column in zip(*found, strict=True)))
    return mean._replace(bin_bytes=max(one.bin_bytes for one in found))
