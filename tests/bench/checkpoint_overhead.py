"""What --checkpoint costs: the same training with and without it, by turns, and how often the checkpoint was written.

    python tests/bench/checkpoint_overhead.py --data M.txt [L.txt ...] [--trees 300] [--repeats 5]

The promise is at most 2 % of the time. A first run of each, which may compile, does not count.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from turns import Report, machine, take_turns

MOST = 1.02
LOOK = 0.02  # seconds between looks at the checkpoint


def seconds_of(command: Sequence[str], folder: Path, written: list[int]) -> tuple[float, float]:
    """Run a command; return its wall and processor seconds, and append how often its checkpoint was written."""
    seen: set[int] = set()
    over = threading.Event()

    def watch() -> None:
        while not over.wait(LOOK):
            try:
                seen.add((folder / "c").stat().st_ino)
            except OSError:
                continue

    watcher = threading.Thread(target=watch)
    watcher.start()
    began = time.perf_counter()
    process = subprocess.Popen(command, cwd=folder, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    over.set()
    watcher.join()
    if process.returncode:
        sys.exit(f"{' '.join(command)} ended with {process.returncode}")
    written.append(len(seen))
    return seconds, used.ru_utime + used.ru_stime


def measure(data: Path, trees: int, repeats: int, report: Report) -> None:
    """Measure on one file."""
    with tempfile.TemporaryDirectory() as held:
        folder = Path(held)
        words = ["train", "--data", str(data.resolve()), "--trees", str(trees), "--rankers", "1", "-q", "-o", "m.json"]
        plain = [sys.executable, "-m", "lmart", *words]
        kept = [*plain, "--checkpoint", "c"]
        models: set[str] = set()
        written: list[int] = []
        of_processor: dict[str, list[float]] = {"with": [], "without": []}

        def turn(name: str, command: Sequence[str]) -> float:
            wall, processor = seconds_of(command, folder, written)
            of_processor[name].append(processor)
            models.add(hashlib.sha256((folder / "m.json").read_bytes()).hexdigest())
            return wall

        for command in (plain, kept):
            seconds_of(command, folder, [])
        turns = {"with": lambda: turn("with", kept), "without": lambda: turn("without", plain)}
        walls = take_turns(turns, repeats)
        times = f"written at least {max(written)} times, {len(models)} model"
        report.ratios(f"{data.name}, {trees} trees, wall", walls, "s", {"without": MOST}, {"without": times})
        report.ratios(f"{data.name}, {trees} trees, processor", of_processor, "s", {"without": MOST})
        least = min(walls["with"]) / min(walls["without"])
        print(f"{data.name}: fastest with / fastest without {least:.4f}, {times}", flush=True)


def main() -> None:
    """Measure on each file, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, type=Path, nargs="+")
    parser.add_argument("--trees", default=300, type=int)
    parser.add_argument("--repeats", default=5, type=int)
    asked = parser.parse_args()
    report = Report()
    print(machine())
    for data in asked.data:
        measure(data, asked.trees, asked.repeats, report)
    report.table()


if __name__ == "__main__":
    main()
