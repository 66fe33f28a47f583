"""Processes that start at once without machine code, some of them killed, and caches that are broken."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from campaign.commands import COMMANDS, wanted
from campaign.harness import FOREIGN, Tally

AT_ONCE = 16
KILLED = 5
MOST_INTERRUPTED, OF_ONE_CACHE = 200, 10
LATEST = 3.0  # seconds in which an interrupt comes
KEPT = (".kernel", ".lock")  # endings of what may be in a cache
LONGEST = 600.0  # seconds
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
PREDICT = [sys.executable, "-m", "lmart", "predict", "-q", "-m", "in.json", "--data", "v.svm"]


def attack(chance: random.Random, until: float) -> list[Tally]:
    """Start processes with an empty cache, then break the cache in many ways, until the time is over."""
    _, outputs = wanted(COMMANDS["predict"])
    (right,) = outputs.values()
    interrupted = Tally("a cold cache under SIGINT", MOST_INTERRUPTED)
    starts, caches = Tally("16 cold starts at once", AT_ONCE), Tally("broken caches")
    now = time.monotonic()
    half = now + (until - now) / 2
    with ThreadPoolExecutor() as pool:
        lanes = [Path(f"cache-{number}").resolve() for number in range(len(os.sched_getaffinity(0)))]
        chances = [random.Random(chance.random()) for _ in lanes]
        list(pool.map(lambda each, cache: _interrupt(each, cache, right, half, interrupted), chances, lanes))
    cache = Path("cache").resolve()
    cache.mkdir(mode=0o700)
    _start_all(chance, cache, right, starts)
    kept = {path: path.read_bytes() for path in cache.rglob("*") if path.is_file()}
    while time.monotonic() < until:
        _break_one(chance, cache, kept, right, caches)
    return [interrupted, starts, caches]


def _interrupt(chance: random.Random, cache: Path, right: bytes, until: float, tally: Tally) -> None:
    """Interrupt processes that compile into a cache which fills slowly, then see what they left there."""
    while tally.tried < MOST_INTERRUPTED and time.monotonic() < until:
        shutil.rmtree(cache, ignore_errors=True)
        cache.mkdir(mode=0o700)
        for _ in range(OF_ONE_CACHE):
            process = _process(cache)
            delay = chance.uniform(0, LATEST)
            with suppress(subprocess.TimeoutExpired):
                process.wait(delay)
            process.send_signal(signal.SIGINT)
            wrong, said = _ended(process, signal.SIGINT, right)
            tally.add(wrong, f"after {delay:.2f} s: {process.returncode} {said[-400:]!r}")
        out, said = _process(cache).communicate(timeout=LONGEST)
        wrong = [] if (out, said) == (right, b"") else ["what is left in the cache is not used, or said more"]
        wrong += ["leaves files"] if any(path.suffix not in KEPT for path in cache.rglob("*") if path.is_file()) else []
        tally.add(wrong, f"after {OF_ONE_CACHE} interrupts: {said[-400:]!r}")


def _process(cache: Path) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    return subprocess.Popen(PREDICT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def _ended(process: subprocess.Popen[bytes], number: int, right: bytes) -> tuple[list[str], bytes]:
    """Wait for a process that may have met a signal; return what is wrong, and what it said."""
    out, said = process.communicate(timeout=LONGEST)
    wrong = [] if process.returncode in (0, -number, 128 + number) else [f"status {process.returncode}"]
    wrong += ["other bytes"] if process.returncode == 0 and out != right else []
    wrong += ["a traceback"] if any(word in said.decode() for word in FOREIGN) else []
    if number == signal.SIGINT and said and b"lmart/" not in said.replace(b"-m lmart", b""):
        return [], said  # Python's own, before it runs lmart
    return wrong, said


def _start_all(chance: random.Random, cache: Path, right: bytes, tally: Tally) -> None:
    """Start processes at once, and end some of them while they compile."""
    processes = [_process(cache) for _ in range(AT_ONCE)]
    ended = {}
    for process in chance.sample(processes, KILLED):
        time.sleep(chance.uniform(0, 3))
        ended[process.pid] = chance.choice(SIGNALS)
        process.send_signal(ended[process.pid])
    for process in processes:
        number = ended.get(process.pid, 0)
        wrong, said = _ended(process, number, right)
        tally.add(wrong, f"with signal {number}: {said[-300:]!r}")


def _break_one(chance: random.Random, cache: Path, kept: dict[Path, bytes], right: bytes, tally: Tally) -> None:
    """Break some files of the cache, and score with what is left."""
    for path, sound in kept.items():
        if path.is_dir():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        path.write_bytes(sound)
    how = chance.choice(("cut", "flipped", "empty", "garbage", "another's", "folder", "fifo", "gone"))
    for path in chance.sample(list(kept), min(len(kept), chance.choice((1, 3, 1000)))):
        content = bytearray(kept[path])
        if how in ("folder", "fifo", "gone"):
            path.unlink()
        if how == "folder":
            path.mkdir()
        elif how == "fifo":
            os.mkfifo(path, 0o600)
        elif how == "flipped" and content:
            content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
            path.write_bytes(content)
        elif how != "gone":
            other = kept[chance.choice(list(kept))]
            made = {"cut": bytes(content[: len(content) // 2]), "empty": b"", "garbage": os.urandom(len(content))}
            path.write_bytes(made.get(how, other))
    process = _process(cache)
    try:
        out, said = process.communicate(timeout=LONGEST)
    except subprocess.TimeoutExpired:
        process.kill()
        out, said = process.communicate()
    wrong = [] if process.returncode == 0 and out == right else [f"status {process.returncode}, or other bytes"]
    wrong += ["a traceback"] if any(word in said.decode() for word in FOREIGN) else []
    tally.add(wrong, f"{how}: {process.returncode} {said[-400:]!r}")
