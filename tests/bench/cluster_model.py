"""What a tree costs on a cluster, as a function of workers and rows: sums on paper."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple


class TreeTraffic(NamedTuple):
    """What the driver and one worker send each other for a tree, on the mean.

    calls       : of all workers, one after the other, whose results are added
    sent        : bytes to a worker in these
    histograms  : that a worker answers them with
    bin_bytes   : of a bin of a histogram, with what comes in the same answers
    rest        : bytes of the other answers
    apart       : calls whose results are not added
    apart_bytes : to and from a worker in these
    """

    calls: float
    sent: float
    histograms: float
    bin_bytes: float
    rest: float
    apart: float
    apart_bytes: float

    def received(self, n_bins: int) -> float:
        """Return the bytes from a worker that are added.

        n_bins : of all features
        """
        return self.bin_bytes * n_bins * self.histograms + self.rest


class Costs(NamedTuple):
    """What things take on the machines of a cluster.

    row_ns     : nanoseconds of a worker for a row of a level of a tree
    latency    : seconds of a call, there and back
    message    : seconds of the sender for each message of a call
    bandwidth  : bytes a second into or out of a machine
    fan_in     : results that a worker adds to its own; 0: the driver adds them all
    """

    row_ns: float
    latency: float
    message: float
    bandwidth: float
    fan_in: int


class TreeTime(NamedTuple):
    """Seconds of a tree.

    work     : of the workers
    messages : latency, and the driver's time for messages
    bytes    : of the transfer
    """

    work: float
    messages: float
    bytes: float

    @property
    def total(self) -> float:
        """Of all."""
        return sum(self)

    @property
    def efficiency(self) -> float:
        """Share of the work in it."""
        return self.work / self.total


def hops(n_workers: int, fan_in: int) -> int:
    """Return how many messages lie between the worker that has the sum of all and the farthest one.

    n_workers : how many
    fan_in    : results that a worker adds to its own; worker w adds those of fan_in * w + 1 ... fan_in * (w + 1)
    """
    depth, last = 0, n_workers - 1
    while last > 0:
        last, depth = (last - 1) // fan_in, depth + 1
    return depth


def is_flat(n_workers: int, fan_in: int) -> bool:
    """Return whether the driver adds the results of all workers: there are few, or they never add.

    n_workers : how many
    fan_in    : results that a worker adds to its own; 0: they never add
    """
    return fan_in == 0 or n_workers <= 1 + fan_in


def driver_bytes(traffic: TreeTraffic, n_bins: int, n_workers: int, fan_in: int) -> float:
    """Return the bytes into and out of the driver for a tree.

    traffic   : of a worker
    n_bins    : of all features
    n_workers : how many
    fan_in    : as in `Costs`
    """
    added = traffic.sent + traffic.received(n_bins)
    return added * (n_workers if is_flat(n_workers, fan_in) else 1) + traffic.apart_bytes * n_workers


def driver_messages(traffic: TreeTraffic, n_workers: int, fan_in: int) -> float:
    """Return the messages of the driver for a tree, answers not counted.

    traffic   : of a worker
    n_workers : how many
    fan_in    : as in `Costs`
    """
    return traffic.calls * (n_workers if is_flat(n_workers, fan_in) else 1) + traffic.apart * n_workers


def tree_time(traffic: TreeTraffic, n_bins: int, rows: float, levels: float, n_workers: int, costs: Costs) -> TreeTime:
    """Return the seconds of a tree.

    traffic   : of a worker
    n_bins    : of all features
    rows      : of all workers
    levels    : of a tree
    n_workers : how many
    costs     : of work, messages and bytes

    Work, messages and bytes come one after the other. Where workers add, a hop waits for the one below it, and a
    worker takes in the sums of fan_in others.
    """
    work = rows / n_workers * levels * costs.row_ns * 1e-9
    transfer = driver_bytes(traffic, n_bins, n_workers, costs.fan_in) / costs.bandwidth
    messages = driver_messages(traffic, n_workers, costs.fan_in) * costs.message
    messages += (traffic.calls + traffic.apart) * costs.latency
    if not is_flat(n_workers, costs.fan_in):
        depth = hops(n_workers, costs.fan_in)
        messages += traffic.calls * depth * (costs.latency + costs.fan_in * costs.message)
        sums = traffic.sent + traffic.received(n_bins)
        transfer += sums * depth * costs.fan_in / costs.bandwidth
    return TreeTime(work, messages, transfer)


def first_where(holds: Callable[[int], bool], most: int = 1 << 24) -> int | None:
    """Return the least number from 1 on from which a condition holds; None when it does not hold for `most`.

    holds : true for all numbers above one for which it is true
    most  : the largest number that is tried
    """
    if not holds(most):
        return None
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def driver_limit(
    traffic: TreeTraffic, n_bins: int, rows: float, levels: float, costs: Costs
) -> tuple[int | None, int | None]:
    """Return the workers from which on the driver's bytes take longer than the work, and messages with bytes do.

    traffic, n_bins, rows, levels, costs : as in `tree_time`
    """

    def bytes_above(n: int) -> bool:
        transfer = driver_bytes(traffic, n_bins, n, costs.fan_in) / costs.bandwidth
        return transfer > tree_time(traffic, n_bins, rows, levels, n, costs).work

    def all_above(n: int) -> bool:
        return tree_time(traffic, n_bins, rows, levels, n, costs).efficiency < 0.5

    return first_where(bytes_above), first_where(all_above)


class StartBytes(NamedTuple):
    """Bytes that the driver holds at a time before the first tree.

    hashes  : of query ids, 8 bytes each: of the shards, joined, and sorted, and which of them come again
    sample  : cells that bin edges are chosen from, of one group of features: of the shards, and joined
    counts  : documents by bin, int64[m, 256] of each shard, and all of them as one array
    """

    hashes: float
    sample: float
    counts: float


def start_bytes(n_queries: float, n_features: int, n_workers: int, sampled_rows: int, gathered: int) -> StartBytes:
    """Return the bytes that the driver holds at the start.

    n_queries    : of all workers
    n_features   : of the data
    n_workers    : how many
    sampled_rows : most rows that bin edges are chosen from
    gathered     : most cells of them at a time, but at least one feature
    """
    cells = min(max(gathered, sampled_rows), sampled_rows * n_features)
    return StartBytes(n_queries * (3 * 8 + 1), 2 * 8.0 * cells, 2 * 8.0 * 256 * n_features * n_workers)


def levels_of(leaves: int) -> float:
    """Return the levels of a balanced tree.

    leaves : of it
    """
    return math.log2(leaves)
