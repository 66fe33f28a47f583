"""The same work again and again in one process: the same bytes, and no more memory or descriptors than at first."""

from __future__ import annotations

import gzip
import os
import random
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from campaign.harness import Tally, answered

SETTLED = 30  # turns after which memory and descriptors are what they stay
GROWTH = 20 << 20  # bytes that a process may grow by from then on


def attack(chance: random.Random, until: float) -> list[Tally]:
    """Repeat each kind of work, as often as it is to be or for its share of the time."""
    import lmart

    model = lmart.load("in.json")
    rows = np.random.default_rng(0).normal(size=(500, len(model.feature_ids)))
    wanted = model.predict(rows).tobytes()
    damaged = bytearray(gzip.compress(Path("d.svm").read_bytes()))
    damaged[len(damaged) // 2] ^= 0xFF
    Path("damaged.gz").write_bytes(damaged)
    Path("o.txt").unlink(missing_ok=True)
    command = ["predict", "-q", "-m", "in.json", "--data", "v.svm", "-o", "o.txt", "--threads", "1"]
    assert answered(command)[0] == 0
    printed = Path("o.txt").read_bytes()

    def predicts() -> bool:
        return answered(command)[0] == 0 and Path("o.txt").read_bytes() == printed

    def calls() -> bool:
        n = chance.randrange(1, 500)
        threads = chance.choice((1, 2))
        return bool(model.predict(rows[:n], threads=threads).tobytes() == wanted[: 8 * n])

    def reads() -> bool:
        return answered(["convert", "-q", "damaged.gz", "o.csv"])[0] == 1

    tallies = []
    now = time.monotonic()
    for name, (turn, most, share) in {
        "Model.predict, again and again": (calls, 100_000, 0.3),
        "a damaged .gz, again and again": (reads, 1000, 0.4),
        "predict, again and again": (predicts, 10_000, 1.0),
    }.items():
        tallies.append(_repeat(name, turn, most, now + (until - now) * share))
    return tallies


def _repeat(name: str, turn: Callable[[], bool], most: int, until: float) -> Tally:
    tally = Tally(name, most)
    first: tuple[int, int] | None = None
    while tally.tried < most and time.monotonic() < until:
        wrong = [] if turn() else ["another result"]
        if tally.tried == SETTLED:
            first = _held()
        elif first is not None and tally.tried % SETTLED == 0:
            memory, descriptors = _held()
            if memory > first[0] + GROWTH:
                wrong.append("the process grows")
            if descriptors > first[1]:
                wrong.append("descriptors stay open")
        tally.add(wrong, f"turn {tally.tried}, {_held()} after {first}" if wrong else "")
    if first is not None:
        tally.notes.append(f"{(_held()[0] - first[0]) / 1e6:+.1f} MB from turn {SETTLED} on")
    return tally


def _held() -> tuple[int, int]:
    """Return the bytes of memory and the number of descriptors of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE"), len(os.listdir("/proc/self/fd"))
