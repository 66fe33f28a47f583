"""What the measuring programs share: tools run turn by turn, and ratios taken within a repeat."""

from __future__ import annotations

import os
import platform
import re
import statistics
import subprocess
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

Turns = dict[str, Callable[[], float]]


def machine(*peers: str) -> dict[str, Any]:
    """Return what the figures depend on: the machine, how busy it is, and the versions of all that runs."""
    packages = {}
    for name in ("lmart", "numba", "numpy", *peers):
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            packages[name] = "absent"
    model = (
        re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
        if os.path.exists("/proc/cpuinfo")
        else None
    )
    return {
        "processor": model[1] if model else platform.processor(),
        "processors": len(os.sched_getaffinity(0)),
        "load": os.getloadavg()[0],
        "python": platform.python_version(),
        **packages,
    }


def take_turns(turns: Turns, repeats: int) -> dict[str, list[float]]:
    """Run every turn once a repeat, in alternating order; return each one's figures in order of repeats."""
    figures: dict[str, list[float]] = {name: [] for name in turns}
    for repeat in range(repeats):
        names = list(turns) if repeat % 2 == 0 else list(turns)[::-1]
        for name in names:
            figures[name].append(turns[name]())
    return figures


def show(title: str, figures: dict[str, list[float]], unit: str) -> dict[str, Any]:
    """Print each tool's median, and the ratios of the first to each other; return them."""
    first, *others = figures
    result: dict[str, Any] = {"figures": figures}
    print(f"{title}: " + ", ".join(f"{name} {statistics.median(v):.4g} {unit}" for name, v in figures.items()))
    for name in others:
        ratios = [a / b for a, b in zip(figures[first], figures[name], strict=True)]
        result[f"{first}/{name}"] = ratios
        print(
            f"  {first} / {name}: {statistics.median(ratios):.2f}  ({min(ratios):.2f} to {max(ratios):.2f})", flush=True
        )
    return result


class Run(NamedTuple):
    """What a whole process took: wall seconds and peak resident megabytes; and what it printed."""

    seconds: float
    megabytes: float
    output: str


def whole_run(command: list[str], discard: bool = False) -> Run:
    """Run a process; `discard` sends what it prints to the null device. RuntimeError when it fails.

    A child's peak memory is never counted below its parent's: call it from a process that has loaded nothing large.
    """
    began = time.perf_counter()
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL if discard else subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    output = "" if process.stdout is None else process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.stdout is not None:
        process.stdout.close()
    if process.returncode:
        raise RuntimeError(f"{command} ended with status {process.returncode}")
    return Run(seconds, usage.ru_maxrss / 1024, output)
