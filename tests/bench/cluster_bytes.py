"""Train on 1, 2, 3 and 7 worker processes and in one process, and tell whether the models are the same bytes.

    nice python tests/bench/cluster_bytes.py [--only TEXT] [--json FILE]

Each training is made from two parts and from twenty of the same data. The table has the first digits of the SHA-256 of
each model; workers have one thread and two by turns, and more workers than parts stay idle.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from helpers.cluster_bytes import N_PARTS, VARIANTS, sha_of, write_sets
from helpers.clusters import cluster
from turns import machine

WORKERS = (1, 2, 3, 7)
WIDTH = 10


def main() -> None:
    """Print a row for each training; exit with 1 when two models of it differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="trainings that have this text")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    chosen = {name: options for name, options in VARIANTS.items() if args.only in name}
    found: dict[str, dict[str, str]] = {name: {} for name in chosen}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        write_sets()
        for name, options in chosen.items():
            for n_parts in N_PARTS:
                found[name][f"alone/{n_parts}"] = sha_of(options, n_parts)
        for n_workers in WORKERS:
            with cluster(n_workers, threads=(1, 2)) as running:
                for name, options in chosen.items():
                    for n_parts in N_PARTS:
                        found[name][f"{n_workers}/{n_parts}"] = sha_of(options, n_parts, running.address)
            print(f"{n_workers} workers: done", file=sys.stderr, flush=True)
    columns = list(next(iter(found.values())))
    print(f"{'workers/parts':34} {' '.join(f'{one:{WIDTH}}' for one in columns)}")
    for name, row in found.items():
        equal = "equal" if len(set(row.values())) == 1 else "DIFFER"
        print(f"{name:34} {' '.join(f'{one[: WIDTH - 2]:{WIDTH}}' for one in row.values())} {equal}")
    n_equal = sum(len(set(row.values())) == 1 for row in found.values())
    n_models = len({sha for row in found.values() for sha in row.values()})
    print(f"{n_equal} of {len(found)} trainings have equal bytes everywhere; {n_models} different models")
    if args.json:
        args.json.write_text(json.dumps({"machine": machine("distributed"), "sha256": found}, indent=1) + "\n")
    sys.exit(n_equal < len(found))


if __name__ == "__main__":
    main()
