"""What all attacks share: tries in forks of one warm process, batches in forks that may crash, and tallies of both."""

from __future__ import annotations

import ctypes
import io
import json
import mmap
import os
import random
import re
import resource
import select
import shutil
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, NoReturn

LIMIT = 60.0  # seconds of a try
PRELOADED = "LMART_CAMPAIGN_SHIM"  # the variable of the environment that names the library of the shim
TORN = "outputs of two runs"
STATUSES = (0, 1, 2, 130, 141, 143)
MEMORY = 4 << 30  # bytes of address space of a batch
BATCH = 200  # cases
LONGEST_LINE = 11_000  # characters of a message, with two names of 5000
MOST_EXAMPLES = 3  # that are shown of one thing that broke
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ ")  # before a line, with --log-time
FOREIGN = ("Traceback", "Exception ignored", "Fatal Python", "RuntimeWarning", "Segmentation")


@dataclass
class Tally:
    """How often something was tried, and what broke.

    part     : of the campaign
    asked    : how often it is to be tried at least; 0: as often as there is time
    examples : by what broke, how to see it again
    notes    : of what was sampled or left out
    """

    part: str
    asked: int = 0
    tried: int = 0
    broke: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add(self, wrong: Sequence[str], again: str) -> None:
        """Count a try; `wrong` says what is not as it should be, `again` how to see it."""
        self.tried += 1
        if wrong:
            what = "; ".join(wrong)
            self.broke[what] += 1
            if len(known := self.examples.setdefault(what, [])) < MOST_EXAMPLES:
                known.append(again)
                print(f"  {self.part}: {what}\n    {again}", flush=True)


class Ended(NamedTuple):
    """How a try ended.

    status : the exit status, -signal when a signal ended it, None when it hung
    out    : standard output
    said   : standard error
    peak   : bytes of memory at most
    """

    status: int | None
    out: bytes
    said: str
    seconds: float
    peak: int

    def wrong(self, statuses: Sequence[int] = STATUSES) -> list[str]:
        """Return what is never right, whatever the try was."""
        found = []
        if self.status is None:
            found.append("hangs")
        elif self.status not in statuses:
            found.append(f"status {self.status}")
        found += [f"says {word}" for word in FOREIGN if word in self.said][:1]
        lines = self.said.splitlines()
        if self.status in (1, 2) and [line for line in lines if line.startswith("lmart: error: ")] != lines[-1:]:
            found.append("not one line of an error")
        if any(not (character.isprintable() or character == "\n") for character in self.said):
            found.append("unprintable characters")
        return found


KINDS = (
    *("read", "write", "open", "fsync", "rename", "mmap", "link", "close", "stat", "unlink", "fchmod", "ftruncate"),
    *("flock", "lseek"),
)
"""Calls of the system, in the order of shim.c."""


class Planned(NamedTuple):
    """The nth call of a kind, from 1, gets an errno, or meets a signal: see shim.c. Without a kind, nothing happens."""

    kind: str = ""
    nth: int = 0
    error: int = 0
    signal: int = 0


class Shim:
    """The preloaded library; `there` is False where none is loaded."""

    def __init__(self) -> None:
        library = ctypes.CDLL(None)
        self.there = hasattr(library, "campaign_plan")
        if self.there:
            self._plan = library.campaign_plan
            self._counts = (ctypes.c_int * len(KINDS)).from_buffer(mmap.mmap(-1, mmap.PAGESIZE))  # shared with forks
            library.campaign_share(self._counts)

    def plan(self, planned: Planned, folder: str) -> None:
        """Plan what happens in this process to files of a folder."""
        kind = KINDS.index(planned.kind) if planned.kind else len(KINDS)
        self._plan(os.fsencode(folder), kind, planned.nth, planned.error, planned.signal)

    def counts(self) -> dict[str, int]:
        """Return how many calls the newest fork made, by kind."""
        return dict(zip(KINDS, self._counts, strict=True))


shim = Shim()


class SharedPlan:
    """A plan of the shim in a file, for processes that are started with `variables`; the nth call is of all of them."""

    class _Content(ctypes.Structure):
        _fields_ = (
            ("folder", ctypes.c_char * 4100),
            *((name, ctypes.c_int) for name in ("kind", "nth", "error", "signal")),
            ("counts", ctypes.c_int * len(KINDS)),
        )

    def __init__(self, path: Path) -> None:
        path.write_bytes(bytes(ctypes.sizeof(self._Content)))
        with path.open("r+b") as file:
            self._content = self._Content.from_buffer(mmap.mmap(file.fileno(), 0))
        self.variables = {"LD_PRELOAD": os.environ[PRELOADED], "CAMPAIGN_PLAN": str(path)}

    def plan(self, planned: Planned) -> None:
        """Plan what happens to files of the current folder."""
        content = self._content
        content.kind, content.folder = len(KINDS), os.fsencode(os.getcwd())
        content.nth, content.error, content.signal = planned.nth, planned.error, planned.signal
        ctypes.memset(content.counts, 0, ctypes.sizeof(content.counts))
        content.kind = KINDS.index(planned.kind) if planned.kind else len(KINDS)

    def counts(self) -> dict[str, int]:
        """Return how many calls were made since it was planned, by kind."""
        return dict(zip(KINDS, self._content.counts, strict=True))


def warm(commands: Sequence[Sequence[str]]) -> None:
    """Run commands in this process, so that forks of it need to load nothing."""
    from lmart.cli.main import main

    out, err = sys.stdout, sys.stderr
    for command in commands:
        with open(os.devnull, "w") as nowhere:
            sys.stdout = sys.stderr = nowhere
            try:
                main.main(list(command))
            except SystemExit as ending:
                assert not ending.code, f"{command} ended with {ending.code}"
            finally:
                sys.stdout, sys.stderr = out, err


def attempt(
    command: Sequence[str],
    planned: Planned | None = None,
    before: Callable[[], None] = lambda: None,
    after: Callable[[int], None] = lambda process: None,
    limit: float = LIMIT,
) -> Ended:
    """Run a command in a fork of this process, in the current folder; return how it ended.

    planned : what happens to it
    before  : called in the fork
    after   : called with its number in this process while it runs
    """
    streams = [os.memfd_create(name) for name in ("out", "said")]
    began = time.monotonic()
    sys.stdout.flush()
    handler = signal.signal(signal.SIGINT, signal.SIG_DFL)  # as Python's start has it
    process = os.fork()
    if process:
        signal.signal(signal.SIGINT, handler)
    else:
        _run(command, streams, before, planned)
    after(process)
    status, peak = _wait(process, began + limit)
    seconds = time.monotonic() - began
    out, said = (_content(stream) for stream in streams)
    return Ended(status, out, said.decode("utf-8", "surrogateescape"), seconds, peak)


def _run(
    command: Sequence[str], streams: Sequence[int], before: Callable[[], None], planned: Planned | None
) -> NoReturn:
    """Run a command in this fork, and end it."""
    try:
        for number, stream in enumerate([os.open(os.devnull, os.O_RDONLY), *streams]):
            os.dup2(stream, number)
        sys.stdout, sys.stderr = (open(number, "w", closefd=False) for number in (1, 2))  # noqa: SIM115
        from lmart.__main__ import run

        before()
        sys.argv = ["lmart", *command]
        if planned is not None:
            shim.plan(planned, os.getcwd())
        signal.signal(signal.SIGINT, signal.default_int_handler)
        run()
    except BaseException:
        os.write(2, traceback.format_exc().encode())
    os._exit(99)


def _wait(process: int, until: float) -> tuple[int | None, int]:
    """Return the exit status of a process, -signal when a signal ended it, None when it hung; and its peak memory."""
    while time.monotonic() < until:
        found, status, used = os.wait4(process, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status), used.ru_maxrss << 10
        time.sleep(0.001)
    os.kill(process, signal.SIGKILL)
    return None, os.wait4(process, 0)[2].ru_maxrss << 10


def answered(command: Sequence[str]) -> tuple[int, str]:
    """Run a command in this very process; return its exit status, and what it wrote to standard error."""
    from lmart.cli.main import main

    out, err = sys.stdout, sys.stderr
    said = io.StringIO()
    sys.stdout, sys.stderr = io.TextIOWrapper(io.BytesIO()), said
    try:
        main.main(list(command))
    except SystemExit as ending:
        return int(ending.code or 0), said.getvalue()
    finally:
        sys.stdout, sys.stderr = out, err
    return -1, ""


def answer_wrong(status: int, said: str) -> str:
    """Return what is wrong with an answer of `answered`; '' when nothing is."""
    if status not in (0, 1, 2):
        return f"status {status}\n{said}"
    lines = [TIME.sub("", line) for line in said.splitlines()]
    if status and not [line for line in lines if line.startswith("lmart: error: ")]:
        return f"status {status} without an error\n{said}"
    odd = [line for line in lines if not line.startswith("lmart: ")]
    if odd:
        return f"says more\n{said}"
    return next(filter(None, map(refusal_wrong, lines)), "")


def _content(stream: int) -> bytes:
    size = os.fstat(stream).st_size
    content = os.pread(stream, size, 0)
    os.close(stream)
    return content


def outputs_wrong(ended: Ended, wanted: Mapping[str, bytes], old: Mapping[str, bytes]) -> list[str]:
    """Return what is wrong with the outputs of a try, which may be the whole old ones or the whole new ones.

    wanted, old : content by name; a new output whose content is b"" may have any, as long as it ends in a newline
    """
    found, states = [], set()
    for name, new in wanted.items():
        try:
            content = Path(name).read_bytes()
        except FileNotFoundError:
            found.append("an output is gone")
            continue
        is_new = content == new if new else content != old[name] and content.endswith(b"\n")
        if not is_new and content != old[name]:
            found.append("an output is torn, or another")
        states.add("new" if is_new else "old")
    if ended.status == 0 and "old" in states:
        found.append("status 0, but an old output")
    if ended.status in (1, 2) and "new" in states:
        found.append(f"status {ended.status}, but a new output")
    if len(states) > 1:
        found.append(TORN)
    return found


Case = Callable[[random.Random], str]
"""Tries one thing and returns what broke; '' when it held. What it raises broke too."""


def in_batches(case: Case, tally: Tally, seed: int, until: float, most: int = 1 << 40) -> None:
    """Try a case again and again, each time with random numbers of its own, in forks that may crash.

    There is a fork for each processor, in a folder of its own with the files of the current one.
    """
    folders = [f"of-processor-{number}" for number in range(len(os.sched_getaffinity(0)))]
    inputs = [path for path in Path().iterdir() if path.is_file()]
    for folder in folders:
        os.mkdir(folder)
        for path in inputs:
            shutil.copy(path, folder)
    free, running = list(folders), {}
    first = seed
    while True:
        while free and time.monotonic() < until and first < seed + most:
            seeds = range(first, min(first + BATCH, seed + most))
            batch = _Batch(case, seeds, free.pop(), until)
            running[batch.reader] = batch
            first = seeds.stop
        if not running:
            break
        for reader in select.select(list(running), [], [])[0]:
            if not running[reader].is_read():
                free.append(running.pop(reader).end(tally))
    for folder in folders:
        shutil.rmtree(folder)


class _Batch:
    """A fork that tries a case with some seeds in a folder."""

    def __init__(self, case: Case, seeds: range, folder: str, until: float) -> None:
        self._seeds, self._folder = seeds, folder
        self._answers = b""
        self.reader, writer = os.pipe()
        sys.stdout.flush()
        self._process = os.fork()
        if not self._process:
            os.close(self.reader)
            os.chdir(folder)
            _batch(case, seeds, writer, until)
        os.close(writer)

    def is_read(self) -> bool:
        """Take what the fork has answered; False when it has ended."""
        piece = os.read(self.reader, 1 << 16)
        self._answers += piece
        return bool(piece)

    def end(self, tally: Tally) -> str:
        """Count what was tried; return the folder, which is free again."""
        os.close(self.reader)
        answers = self._answers.splitlines()
        for number, line in zip(self._seeds, answers, strict=False):
            if what := json.loads(line):
                tally.add([what.partition("\n")[0]], f"seed {number}: {what[-600:]!r}")
            else:
                tally.tried += 1
        if status := os.waitstatus_to_exitcode(os.waitpid(self._process, 0)[1]):
            tally.add([f"the process ended with {status}"], f"seed {self._seeds[0] + len(answers)}")
        return self._folder


def _batch(case: Case, seeds: range, writer: int, until: float) -> None:
    """Try some cases in this fork, write a line for each, and end it."""
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # a case that hangs ends the fork by signal 14
    for seed in seeds:
        signal.alarm(int(LIMIT))
        try:
            found = case(random.Random(seed))
        except BaseException as fault:
            found = f"raises {type(fault).__name__}\n{traceback.format_exc()}"
        signal.alarm(0)
        os.write(writer, (json.dumps(found) + "\n").encode())
        if time.monotonic() > until:
            break
    os._exit(0)


def refusal_wrong(text: str) -> str:
    """Return what is wrong with the text of a refusal."""
    if not text.isprintable():
        return f"a message that is not one printable line\n{text!r}"
    return f"a message of {len(text)} characters\n{text}" if len(text) > LONGEST_LINE else ""


def mutated(content: bytes, chance: random.Random, pieces: Sequence[bytes]) -> bytes:
    """Return content with a few bytes changed, taken out, doubled or put in, or cut off."""
    made = bytearray(content)
    for _ in range(chance.choice((1, 1, 1, 2, 3, 8))):
        at = chance.randrange(len(made) + 1)
        kind = chance.random()
        if kind < 0.25 and at < len(made):
            made[at] = chance.randrange(256)
        elif kind < 0.4:
            del made[at : at + chance.choice((1, 1, 2, 10, 100, 1000))]
        elif kind < 0.55:
            start = chance.randrange(len(made) + 1)
            made[at:at] = made[start : start + chance.choice((1, 5, 50, 500))]
        elif kind < 0.6:
            del made[at:]
        else:
            made[at : at + chance.choice((0, 0, 1, 3))] = chance.choice(pieces)
    return bytes(made)
