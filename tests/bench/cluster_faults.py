"""Kill a worker or the scheduler at many moments of a training on a cluster, and tell how each run ended.

    nice python tests/bench/cluster_faults.py [--only TEXT] [--json FILE]

Each run has a cluster of its own, of processes of this machine. It must end within a minute, with one line that begins
with `lmart: error:` and exit status 1, the older model as it was and nothing left; then the workers that are left must
serve another run, to the bytes of one process.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from helpers.cluster_faults import SCHEDULER, WORKERS, outcome_of, write_data
from turns import machine


def main() -> None:
    """Print a row for each fault; exit with 1 when something is not as it should be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="moments that have this text")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    chosen = [fault for fault in (*WORKERS, *SCHEDULER) if args.only in fault.moment]
    rows = []
    print(f"{'moment':28} {'killed':16} seconds  {'ok':4} line", flush=True)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        one = write_data()
        for fault in chosen:
            found = outcome_of(fault, one)
            if found.seconds > 60:
                found.wrong.append("took too long")
            ok = "ok" if not found.wrong else f"WRONG: {'; '.join(found.wrong)}\n    "
            print(f"{fault.moment:28} {fault.killed:16} {found.seconds:7.1f}  {ok:4} {found.line}", flush=True)
            rows.append({**fault._asdict(), **found._asdict()})
    if args.json:
        args.json.write_text(json.dumps({"machine": machine("distributed"), "rows": rows}, indent=1) + "\n")
    n_wrong = sum(bool(row["wrong"]) for row in rows)
    print(f"{len(rows)} runs, {n_wrong} not as they should be")
    sys.exit(n_wrong > 0)


if __name__ == "__main__":
    main()
