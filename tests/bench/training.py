"""Training beside LightGBM and XGBoost, turn by turn in one run, as ratios beside what was promised.

    python tests/bench/training.py --bench FOLDER [--size L] [--parts tree,small,...] [--leaves 31,64,255]
        [--repeats 5] [--rounds 40] [--real FOLDER] [--json FILE]

FOLDER holds generated judged documents: L.txt (or the --size asked for), M.txt, S.txt, small.txt, and test.txt. Each
repeat runs every tool once, in the opposite order of the one before; a ratio is taken within a repeat. Printed are the
median and the range of the ratios, lmart over peer: below 1 lmart is faster. Seconds alone say little: they change with
the machine and with what else runs on it. All get the same settings (fair.py), dense cells and, unless said, all
documents. NDCG@10 is that on test.txt, queries without a relevant document left out; LOWER marks where lmart's is more
than 0.002 below the peer's.

file          whole processes, text file to model file, 100 trees. LightGBM cannot read `qid:`; it gets the text
              without it and a file of query sizes, made beforehand
memory        peak resident memory of these processes
small         whole processes on small.txt, 100 trees, code compiled beforehand; processor time of a tree, one thread
start         whole processes on data/sample, with an empty folder for machine code and with a full one
tree          seconds a tree, data in memory and binned: the median over the rounds of a training. On --size, M.txt and
              S.txt; of 64 leaves also with one thread
neighbour     the same on M.txt while other processes keep all processors but one busy; LightGBM beside it
quality-time  seconds of growing trees until NDCG@10 is what LightGBM has after --target-rounds rounds of 64 leaves at
              rate 0.1, looked at every 5 rounds: the best of lmart's candidates (--candidate) and of GOSS settings
sampling      NDCG@10 with --sample 1, auto, 0.5 and 0.3, five seeds: on the folds of real sets (--real) and on --size
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import training_parts
from turns import Report, machine

PARTS = ("file", "memory", "small", "start", "tree", "neighbour", "quality-time", "sampling")


def main() -> None:
    """Run the parts asked for, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", type=Path, required=True)
    parser.add_argument("--size", default="L")
    parser.add_argument("--parts", type=lambda text: text.split(","), default=list(PARTS), help=",".join(PARTS))
    parser.add_argument("--peers", type=lambda text: text.split(","), default=list(training_parts.TREE_PEERS))
    parser.add_argument("--leaves", type=lambda text: [int(n) for n in text.split(",")], default=[31, 64, 255])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument(
        "--rounds",
        type=int,
        default=40,
        help="trees of one training on L in tree; on smaller data 2 or 8 times as many",
    )
    parser.add_argument("--target-rounds", type=int, default=300)
    parser.add_argument(
        "--candidate",
        type=json.loads,
        action="append",
        metavar="JSON",
        help='settings of lmart in quality-time, such as \'{"sample": 0.3, "learning_rate": 0.15}\'; may be repeated',
    )
    parser.add_argument("--sample-rounds", type=int, default=100, help="trees of one training in sampling on --size")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--real", type=Path, help="folder of the real sets, as quality.py takes it")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    if unknown := [part for part in args.parts if part not in PARTS]:
        parser.error(f"{unknown[0]} is not a part; there are {', '.join(PARTS)}")
    args.candidate = args.candidate or training_parts.CANDIDATES
    facts: dict[str, Any] = machine("lightgbm", "xgboost")
    print(", ".join(f"{key} {value}" for key, value in facts.items()))
    report = Report()
    with tempfile.TemporaryDirectory() as folder:
        bench = training_parts.Bench(args, Path(folder), report)
        if {"file", "memory"} & set(args.parts):
            bench.file()
        for part in PARTS[2:]:
            if part in args.parts:
                getattr(bench, part.replace("-", "_"))()
            if args.json:
                args.json.write_text(json.dumps({"machine": facts} | report.to_json(), indent=1) + "\n")
    report.table()


if __name__ == "__main__":
    main()
