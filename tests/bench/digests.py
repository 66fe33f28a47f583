"""What the digests of --report cost: reading a file with and without them, processor seconds, minima of turns.

python tests/bench/digests.py FILE [TURNS]
"""

from __future__ import annotations

import sys
import time
from contextlib import nullcontext
from pathlib import Path

from lmart.formats.documents.feature_table import FeatureTable
from lmart.formats.documents.reading import read_batches
from lmart.formats.read_options import ReadOptions
from lmart.streams import InputDigests, recording_digests
from lmart.threads import WorkerPool, available_processors


def seconds(path: str, pool: WorkerPool, with_digest: bool) -> float:
    """Return the processor seconds of reading a file once."""
    digests = InputDigests()
    began = time.process_time()
    with recording_digests(digests) if with_digest else nullcontext():
        for _ in read_batches([path], ReadOptions(require_labels=False, require_queries=False), pool, FeatureTable()):
            pass
    return time.process_time() - began


def main() -> None:
    """Print the costs."""
    path, turns = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 5
    with WorkerPool(available_processors()) as pool:
        seconds(path, pool, True)  # compiles
        found = [(seconds(path, pool, False), seconds(path, pool, True)) for _ in range(turns)]
    without, with_digest = (min(column) for column in zip(*found, strict=True))
    megabytes = Path(path).stat().st_size / 1e6
    print(f"{path}: {megabytes:,.1f} MB")
    print(f"without digests  {without:.3f} s CPU, {megabytes / without:,.0f} MB/s")
    print(f"with digests     {with_digest:.3f} s CPU, {megabytes / with_digest:,.0f} MB/s")
    print(f"ratio            {with_digest / without:.3f}")


if __name__ == "__main__":
    main()
