"""Weak scaling of training on a cluster: messages and bytes are counted, and time is worked out from them on paper.

    python tests/bench/cluster_scaling.py [--shards 1,2,8,32,128] [--sizes 32000x10,32000x40,256000x10] [--trees 3]
        [--leaves 64,255] [--workers 2,8,32,128] [--total-rows 1e8,1e9] [--total-features 136] [--row-ns 70]
        [--fan-in 4] [--latency-ms 1.7] [--message-ms 0.5] [--gigabytes 1.2] [--json FILE]

Nothing is timed here, so other work on the machine does not matter. Made-up rows are trained on in as many shards as
asked for, all in this process, and what would be sent is counted: calls, messages, and bytes of pickled arguments and
results, by method (counted_actors.py); headers of the transport are not. What comes out depends on leaves and on the
bins of all features, not on rows, but that leaves near --min-docs need further questions, of which there are fewer the
more rows there are. The tables for --total-rows are worked out from the runs with most rows (cluster_model.py):

bytes of a worker for a tree = bytes of a bin x bins of all features x histograms + rest
driver, results added by it  = workers x these bytes
driver, added by workers     = these bytes: worker w adds the results of workers fan-in x w + 1 ... to its own
seconds of a tree            = rows / workers x levels x --row-ns, levels being log2(leaves)
                               + calls x (--latency-ms, once more for each hop) + messages x --message-ms
                               + bytes / --gigabytes a second

--row-ns is processor time of lmart with one thread, a row and a level: (time of N2 trees - time of N1) / (N2 - N1) /
rows / log2(leaves). What is left out: the driver's search of splits, and workers that wait for the slowest one.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from cluster_model import (
    Costs,
    TreeTraffic,
    driver_bytes,
    driver_limit,
    driver_messages,
    levels_of,
    start_bytes,
    tree_time,
)
from counted_actors import CountedRun, count_run, mean_traffic, traffic_of

from lmart.binning.edge_sample import SAMPLE_LIMIT
from lmart.distributed.training.inputs import GATHERED
from lmart.distributed.training.leaves import AHEAD
from lmart.settings import TrainSettings

QUERY_ROWS = 100  # of made-up queries
SIZES = [(32_000, 10), (32_000, 40), (256_000, 10)]
VALUES = 2_000  # different values of a made-up feature, so that every bin has some


def make_parts(folder: Path, n_parts: int, n_rows: int, n_features: int) -> list[str]:
    """Write made-up judged documents to LETOR files of about as many queries each; return their paths.

    folder     : of the files
    n_parts    : how many
    n_rows     : of all
    n_features : of each row; the label depends on some of them
    """
    rng = np.random.default_rng(n_rows)
    n_queries = max(n_parts, n_rows // QUERY_ROWS)
    paths = []
    names = [f"{index}:" for index in range(1, n_features + 1)]
    for number, queries in enumerate(np.array_split(np.arange(n_queries), n_parts)):
        cells = rng.integers(0, VALUES, (len(queries) * QUERY_ROWS, n_features))
        relevance = cells[:, : min(8, n_features)].mean(axis=1) / VALUES + rng.normal(0, 0.1, len(cells))
        labels = np.clip((relevance * 10 - 3.5).astype(int), 0, 4)
        rows = []
        for place, (label, row) in enumerate(zip(labels.tolist(), cells.tolist(), strict=True)):
            text = " ".join([f"{name}{value}" for name, value in zip(names, row, strict=True)])
            rows.append(f"{label} qid:{queries[place // QUERY_ROWS]} {text}\n")
        paths.append(str(folder / f"{n_rows}x{n_features}-{number:04}.svm"))
        Path(paths[-1]).write_text("".join(rows))
    return paths


def show(title: str, head: str, rows: Sequence[Sequence[object]]) -> None:
    """Print a table.

    title : above it
    head  : names of the columns, two spaces between them
    rows  : cells; numbers get four digits
    """

    def text(cell: object) -> str:
        if not isinstance(cell, float):
            return "-" if cell is None else f"{cell:,}" if isinstance(cell, int) else str(cell)
        return f"{cell:,.0f}" if abs(cell) >= 1000 else f"{cell:.4g}"

    lines = [head.split("  "), *([text(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    print(f"\n{title}")
    for line in lines:
        print("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)), flush=True)


def show_counted(runs: dict[int, list[CountedRun]]) -> None:
    """Print what was counted, and how well the formula holds.

    runs : by leaves
    """
    rows = []
    for leaves, some in runs.items():
        for run in some:
            one = traffic_of(run)
            own = one.sent + one.received(run.n_bins) + one.apart_bytes
            counted = sum(sent + received for _, _, sent, received, _ in run.per_tree.values())
            messages = sum(messages for _, messages, *_ in run.per_tree.values())
            line: list[object] = [leaves, run.n_shards, run.n_rows, run.n_bins, one.calls + one.apart, messages]
            line += [one.histograms, one.bin_bytes, one.received(run.n_bins) / 1e6, (one.sent + one.rest) / 1e3]
            rows.append([*line, own / 1e6, counted / 1e6])
    show(
        "Counted for a tree, on the mean of the trees",
        "leaves  shards  rows  bins  calls  messages  histograms  bytes of a bin  MB from a worker  kB of the rest"
        "  MB of a worker  MB of the driver",
        rows,
    )
    for leaves, some in runs.items():
        found = [traffic_of(run) for run in some]
        parts = (
            f"{name} {min(values):.4g} to {max(values):.4g}"
            for name, values in {
                "calls": [one.calls + one.apart for one in found],
                "histograms": [one.histograms for one in found],
                "bytes of a bin": [one.bin_bytes for one in found],
                "bytes of the rest": [one.sent + one.rest + one.apart_bytes for one in found],
            }.items()
        )
        print(f"{leaves} leaves, over all shards and rows: {', '.join(parts)}")


def show_methods(run: CountedRun, what: str, by_method: dict[str, Any]) -> None:
    """Print what was counted, by method.

    run       : that was counted
    what      : of it, for the title
    by_method : the fields of `Traffic`
    """
    rows = [
        [method, float(calls), sent / run.n_shards, received / run.n_shards, received / 1e6]
        for method, (calls, _, sent, received, _) in by_method.items()
    ]
    title = f"Counted {what}: {run.n_rows:,} rows, {run.n_queries:,} queries, {run.n_shards} shards"
    show(title, "method  calls  bytes to a worker  bytes from it  MB from all", rows)


def show_paper(traffic: TreeTraffic, leaves: int, args: argparse.Namespace, costs: Costs) -> None:
    """Print bytes, messages and times of a tree for many rows.

    traffic : of a worker
    leaves  : of the tree
    args    : of the command line
    costs   : with the fan-in of workers that add
    """
    n_bins, levels = args.total_features * args.max_bins, levels_of(leaves)
    ways = {"driver": costs._replace(fan_in=0), "workers": costs}
    rows = []
    weak: list[list[object]] = []
    for n in args.workers:
        for way, own in ways.items():
            volume = driver_bytes(traffic, n_bins, n, own.fan_in) / 1e6
            line: list[object] = [n, way, driver_messages(traffic, n, own.fan_in), volume]
            for total in args.total_rows:
                time = tree_time(traffic, n_bins, total, levels, n, own)
                line += [*time, time.total, time.efficiency]
            rows.append(line)
            time = tree_time(traffic, n_bins, args.worker_rows * n, levels, n, own)
            weak.append([n, way, float(args.worker_rows * n), *time, time.total, time.efficiency])
    head = "workers  added by  messages  MB of the driver"
    for total in args.total_rows:
        head += f"  {total:.0e}: work, s  messages, s  bytes, s  s a tree  efficiency"
    of = f"{leaves} leaves, {args.total_features} features, {n_bins:,} bins"
    show(f"On paper, a tree of {of}, by rows in all", head, rows)
    head = "workers  added by  rows  work, s  messages, s  bytes, s  s a tree  efficiency"
    show(f"Weak scaling on paper, {args.worker_rows:.0e} rows a worker, {of}", head, weak)
    limits = []
    for total in args.total_rows:
        for way, own in ways.items():
            limits.append([f"{total:.0e}", way, *driver_limit(traffic, n_bins, total, levels, own)])
    head = "rows  added by  workers from which the driver's bytes take longer than the work  messages and bytes do"
    show(f"Where the driver is the limit, {of}; -: not before 16 million workers", head, limits)


def show_start(runs: Sequence[CountedRun], args: argparse.Namespace) -> None:
    """Print what the driver holds before the first tree, and while a tree grows.

    runs : some of as many shards and of different numbers of rows
    args : of the command line
    """
    last = runs[-1]
    alike = [run for run in runs if run.n_shards == last.n_shards and run.n_bins == last.n_bins]
    same = [run for run in alike if run.n_queries != last.n_queries]
    if same:
        more = last.reading["first_pass"].received - same[0].reading["first_pass"].received
        print(
            f"\nfirst_pass: {more / (last.n_queries - same[0].n_queries):.2f} bytes from all workers for a query more"
        )
    histogram = 8.0 * args.total_features * args.max_bins * AHEAD
    rows = []
    for total in args.total_rows:
        for n in args.workers:
            held = start_bytes(total / args.query_rows, args.total_features, n, SAMPLE_LIMIT, GATHERED)
            few = min(n, 1 + args.fan_in)
            rows.append([f"{total:.0e}", n, *(one / 1e6 for one in held), histogram * n / 1e6, histogram * few / 1e6])
    head = "rows  workers  hashes of queries  sample for bin edges  counts by bin  histograms, driver adds  workers add"
    show(f"MB that the driver holds at a time, {args.query_rows} rows a query, on paper", head, rows)


def arguments() -> argparse.Namespace:
    """Return the arguments of the command line."""

    def numbers(text: str) -> list[int]:
        return [int(float(one)) for one in text.split(",")]

    def sizes(text: str) -> list[tuple[int, int]]:
        pairs = [one.split("x") for one in text.split(",")]
        return [(int(float(rows)), int(features)) for rows, features in pairs]

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shards", type=numbers, default=[1, 2, 8, 32, 128], help="that are counted")
    parser.add_argument("--sizes", type=sizes, default=SIZES, metavar="ROWSxFEATURES,...", help="that are counted")
    parser.add_argument("--leaves", type=numbers, default=[64, 255])
    parser.add_argument("--trees", type=int, default=3, help="that are counted")
    parser.add_argument("--min-docs", type=int, default=20)
    parser.add_argument("--max-bins", type=int, default=255)
    parser.add_argument("--sample", type=float, default=1.0, help="share of documents each tree is grown from")
    parser.add_argument("--workers", type=numbers, default=[2, 8, 32, 128], help="of the tables on paper")
    parser.add_argument("--total-features", type=int, default=136, help="of the tables on paper")
    parser.add_argument("--total-rows", type=numbers, default=[10**8, 10**9], help="of the tables on paper")
    parser.add_argument("--worker-rows", type=int, default=10**6, help="of a worker, in the table of weak scaling")
    parser.add_argument("--query-rows", type=int, default=120, help="rows a query, on paper")
    parser.add_argument("--row-ns", type=float, default=70.0, help="nanoseconds of one thread for a row of a level")
    parser.add_argument("--latency-ms", type=float, default=1.7, help="of a call, there and back")
    parser.add_argument("--message-ms", type=float, default=0.5, help="processor time of the sender for a message")
    parser.add_argument("--gigabytes", type=float, default=1.2, help="a second into or out of a machine; 10 GbE: 1.2")
    parser.add_argument("--fan-in", type=int, default=4, help="results that a worker adds to its own")
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


def main() -> None:
    """Count, and print all tables."""
    args = arguments()
    runs: dict[int, list[CountedRun]] = {leaves: [] for leaves in args.leaves}
    with tempfile.TemporaryDirectory() as folder:
        paths = {size: make_parts(Path(folder), max(args.shards), *size) for size in args.sizes}
        for leaves in args.leaves:
            settings = TrainSettings(
                trees=args.trees,
                leaves=leaves,
                sample=args.sample,
                max_bins=args.max_bins,
                min_docs=args.min_docs,
                rankers=1,
                objective="lambdamart",
            )
            for n_shards in args.shards:
                runs[leaves] += [count_run(paths[size], settings, n_shards) for size in args.sizes]
                print(f"counted {leaves} leaves, {n_shards} shards", flush=True)
    show_counted(runs)
    costs = Costs(args.row_ns, args.latency_ms * 1e-3, args.message_ms * 1e-3, args.gigabytes * 1e9, args.fan_in)
    for leaves, some in runs.items():
        show_methods(some[-1], f"for a tree of {leaves} leaves", some[-1].per_tree)
        show_paper(mean_traffic(some), leaves, args, costs)
    first = next(iter(runs.values()))
    show_methods(first[-1], "before the first tree", first[-1].reading)
    show_start(first, args)
    if args.json:
        content = {leaves: [run._asdict() for run in some] for leaves, some in runs.items()}
        args.json.write_text(json.dumps({"counted": content, "costs": costs._asdict()}, indent=1) + "\n")


if __name__ == "__main__":
    main()
