"""What the measuring programs share: tools run turn by turn, ratios taken within a repeat, and what was promised.

Only the standard library is loaded here: a child's peak memory is never counted below its parent's, so programs that
run others must stay small themselves, and hold data in helpers.
"""

from __future__ import annotations

import json
import os
import platform
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

Turns = dict[str, Callable[[], float]]
# Gigabytes a second of the fastest of some copies of 64 MB; by a process of its own, which takes this memory with it.
COPY = """
import time
source, copy, best = bytearray(1 << 26), bytearray(1 << 26), 1e9
for _ in range(20):
    began = time.perf_counter()
    copy[:] = source
    best = min(best, time.perf_counter() - began)
print(len(copy) / best / 1e9)
"""


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
        "load": round(os.getloadavg()[0], 2),
        "copy GB/s": round(float(subprocess.check_output([sys.executable, "-c", COPY])), 1),
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


class Promise(NamedTuple):
    """One row of the table: its name, the figures of each repeat, the most that was promised, and a remark."""

    name: str
    values: list[float]
    limit: float | None
    remark: str = ""


class Report:
    """Prints what is measured as it comes, and collects the rows of the table at the end."""

    def __init__(self) -> None:
        self.rows: list[Promise] = []
        self.figures: dict[str, dict[str, list[float]]] = {}

    def figure(self, title: str, figures: dict[str, list[float]], unit: str) -> None:
        """Print each tool's median and least."""
        self.figures[f"{title} [{unit}]"] = figures
        shown = (
            f"{name} {statistics.median(values):.4g} ({min(values):.4g}) {unit}" for name, values in figures.items()
        )
        print(f"{title}, median (least): {', '.join(shown)}", flush=True)

    def promise(self, name: str, values: list[float], limit: float | None, remark: str = "") -> None:
        """Add a row to the table."""
        self.rows.append(Promise(name, values, limit, remark))

    def ratios(
        self,
        title: str,
        figures: dict[str, list[float]],
        unit: str,
        limits: dict[str, float | None],
        remarks: dict[str, str] | None = None,
    ) -> None:
        """Print the figures, and add a row for the first tool over each other that `limits` names."""
        self.figure(title, figures, unit)
        first = next(iter(figures))
        for name, limit in limits.items():
            self.ratio(title, figures, (first, name), limit, (remarks or {}).get(name, ""))

    def ratio(
        self, title: str, figures: dict[str, list[float]], names: tuple[str, str], limit: float | None, remark: str = ""
    ) -> None:
        """Add a row for one tool over another, repeat by repeat, with the ratio of their least figures."""
        first, second = (figures[name] for name in names)
        remarks = [f"of the least {min(first) / min(second):.3f}", *([remark] if remark else [])]
        values = [a / b for a, b in zip(first, second, strict=True)]
        self.promise(f"{title}: {' / '.join(names)}", values, limit, "; ".join(remarks))

    def table(self) -> None:
        """Print all rows."""
        print(f"\n{'median (least to most)':28}at most")
        for row in self.rows:
            print(self._line(row))

    def to_json(self) -> dict[str, Any]:
        """Return all that was measured."""
        return {"figures": self.figures, "rows": [row._asdict() for row in self.rows]}

    def _line(self, row: Promise) -> str:
        middle = statistics.median(row.values)
        spread = f"{middle:.3f} ({min(row.values):.3f} to {max(row.values):.3f})"
        promised = "" if row.limit is None else f"{row.limit:g} {'kept' if middle <= row.limit else 'MISSED'}"
        return f"{spread:28}{promised:14}{row.name}{'; ' + row.remark if row.remark else ''}"


class Helper:
    """A process that holds data and answers requests, JSON objects, a line each; it waits without work in between."""

    def __init__(self, script: str, *arguments: str, python: str = sys.executable) -> None:
        self.process = subprocess.Popen(
            [python, str(Path(__file__).with_name(script)), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, **request: Any) -> Any:
        """Return the answer; RuntimeError when the helper has failed (it has said why on standard error)."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.process.args!r} ended with status {self.process.wait()}")
        return json.loads(line)

    def close(self) -> None:
        """End the process."""
        self.process.communicate()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()


def serve(answer: Callable[[dict[str, Any]], Any]) -> None:
    """Answer requests until there are no more: the helper's side. What libraries print goes to standard error."""
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(2, 1)
        for line in sys.stdin:
            answers.write(json.dumps(answer(json.loads(line))) + "\n")
            answers.flush()


class Run(NamedTuple):
    """What a whole process took: wall seconds and peak resident megabytes; and what it printed."""

    seconds: float
    megabytes: float
    output: str


def whole_run(command: list[str], discard: bool = False, env: dict[str, str] | None = None) -> Run:
    """Run a process; `discard` sends what it prints to the null device. RuntimeError when it fails.

    A child's peak memory is never counted below its parent's: call it from a process that has loaded nothing large.
    """
    began = time.perf_counter()
    process = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL if discard else subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=env,
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
