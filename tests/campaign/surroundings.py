"""Odd locales, environments, names and limits: the same bytes, or one line."""

from __future__ import annotations

import os
import random
import re
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from campaign.commands import COMMANDS, OLD, clear, wanted
from campaign.harness import Ended, Tally, attempt, outputs_wrong

ENVIRONMENTS: dict[str, Sequence[str | None]] = {
    "LC_ALL": ("C", "POSIX", "C.UTF-8", "tr_TR.UTF-8", "de_DE.ISO-8859-1", "no such locale"),
    "PYTHONIOENCODING": ("ascii", "latin-1", "utf-8:strict"),
    "TERM": ("", "dumb", "xterm-256color", "x" * 5000),
    "COLUMNS": ("0", "-1", "1", "100000", "x"),
    "HOME": (None, "", "/nonexistent", "/dev/null"),
    "TMPDIR": ("", "/nonexistent", "/dev/null", "\udcff"),
    "OMP_NUM_THREADS": ("0", "1", "x", "1000"),
    **dict.fromkeys(("PYTHONUNBUFFERED", "PYTHONOPTIMIZE", "PYTHONDEVMODE", "NO_COLOR", "PYTHONUTF8"), ("1",)),
    "PYTHONHASHSEED": ("1", "2"),
    "TZ": ("Pacific/Kiritimati",),
    "MALLOC_PERTURB_": ("165",),
    "PATH": (None,),
}
NAMES = (
    *("a b", "-q", "'", '"', "new\nline", "\x1b[31mred", "\udcff\udcfe", "\u202eevil", "é", "x" * 255, "*", "[a]"),
    *("%s", "$HOME", "~", "#", "a,b", "model.json.gz.json"),
)
LIMITS: tuple[tuple[str, int, int], ...] = (
    *(("descriptors", resource.RLIMIT_NOFILE, n) for n in (4, 5, 6, 7, 8, 10, 16)),
    *(("address space", resource.RLIMIT_AS, n << 20) for n in (200, 400, 600, 800, 1000, 1500, 3000)),
    *(("stack", resource.RLIMIT_STACK, n << 10) for n in (64, 256, 1024)),
    *(("data", resource.RLIMIT_DATA, n << 20) for n in (50, 200, 500, 1000)),
    ("locked memory", resource.RLIMIT_MEMLOCK, 0),
    ("pending signals", resource.RLIMIT_SIGPENDING, 0),
)
FEW_PROCESSES = (0, 1, 3)
NOBODY = 65534
# What Python says of a thread for whose first frame there is no memory; lmart goes on without it.
OF_A_THREAD = re.compile(r"Exception ignored in sys\.unraisablehook: .*\nMemoryError\n")


def attack(chance: random.Random, until: float) -> list[Tally]:
    """Try all of them, in an order of their own, as far as the time allows."""
    limits, names, environments = Tally("limits"), Tally("odd names"), Tally("odd environments")
    undisturbed = {name: wanted(attacked) for name, attacked in COMMANDS.items()}
    tries: list[Callable[[], None]] = []
    for name in COMMANDS:
        for limit in LIMITS:
            tries.append(lambda name=name, limit=limit: _limited(name, limit, undisturbed[name], limits))  # type: ignore[misc]
        for number in FEW_PROCESSES:
            tries.append(lambda name=name, number=number: _few_processes(name, number, undisturbed[name], limits))  # type: ignore[misc]
        for odd in NAMES:
            tries.append(lambda name=name, odd=odd: _named(name, odd, undisturbed[name][0], names))  # type: ignore[misc]
    for variable, values in ENVIRONMENTS.items():
        for value in values:
            name = chance.choice(list(COMMANDS))
            changed = (variable, value)
            tries.append(lambda name=name, changed=changed: _environed(name, changed, undisturbed[name], environments))  # type: ignore[misc]
    chance.shuffle(tries)
    limits.asked = len(COMMANDS) * (len(LIMITS) + len(FEW_PROCESSES))
    names.asked = len(COMMANDS) * len(NAMES)
    environments.asked = len(tries) - limits.asked - names.asked
    while tries and time.monotonic() < until:
        tries.pop()()
    return [limits, names, environments]


def _judge(ended: Ended, name: str, undisturbed: tuple[bytes, dict[str, bytes]]) -> list[str]:
    printed, outputs = undisturbed
    wrong = ended.wrong((0, 1)) + outputs_wrong(ended, outputs, dict.fromkeys(outputs, OLD))
    if ended.status == 0 and ended.out != printed:
        wrong.append("other standard output")
    return wrong


def _limited(name: str, limit: tuple[str, int, int], undisturbed: tuple[bytes, dict[str, bytes]], tally: Tally) -> None:
    what, kind, number = limit
    clear()
    ended = attempt(COMMANDS[name].words, before=lambda: resource.setrlimit(kind, (number, number)))
    ended = ended._replace(said=OF_A_THREAD.sub("", ended.said))
    tally.add(_judge(ended, name, undisturbed), f"{name}, {what} {number}: {ended.said[-400:]!r}")


def _few_processes(name: str, number: int, undisturbed: tuple[bytes, dict[str, bytes]], tally: Tally) -> None:
    """Run with so many processes and threads of a user, as nobody, which only root can become."""
    if os.geteuid():
        return

    def become_nobody() -> None:
        resource.setrlimit(resource.RLIMIT_NPROC, (number, number))
        os.setresuid(NOBODY, NOBODY, NOBODY)

    clear()
    os.chmod(".", 0o777)
    os.chmod("..", 0o755)
    for path in Path().iterdir():
        path.chmod(0o666)
    words = list(COMMANDS[name].words)
    if "--threads" in words:
        words[words.index("--threads") + 1] = "2"
    ended = attempt(words, before=become_nobody)
    os.chmod(".", 0o755)
    tally.add(_judge(ended, name, undisturbed), f"{name}, processes {number}: {ended.said[-400:]!r}")


def _named(name: str, odd: str, printed: bytes, tally: Tally) -> None:
    """Run with inputs and outputs in a folder, and of names, that are odd."""
    attacked = COMMANDS[name]
    folder = Path(f"folder {odd}"[:200])
    folder.mkdir(exist_ok=True)
    words = []
    for word in attacked.words:
        moved = folder / (f"{odd[:200]}{word}")
        is_input = Path(word).is_file() and not attacked.writes(word)
        if is_input:
            shutil.copy(word, moved)
        words.append(str(moved) if is_input or attacked.writes(word) else word)
    outputs = [folder / f"{odd[:200]}{name}" for name in attacked.outputs]
    ended = attempt(words)
    wrong = ended.wrong((0,))
    if any(not path.exists() for path in outputs):
        wrong.append("no output")
    if any(path.name.endswith(".tmp") for path in folder.iterdir()):
        wrong.append("leaves files")
    tally.add(wrong, f"{name} with names {odd!r}: {ended.said[-300:]!r}")
    shutil.rmtree(folder)


def _environed(
    name: str, changed: tuple[str, str | None], undisturbed: tuple[bytes, dict[str, bytes]], tally: Tally
) -> None:
    """Run as a process of its own, with a variable of the environment changed or taken out."""
    environment = {key: value for key, value in {**os.environ, changed[0]: changed[1]}.items() if value is not None}
    clear()
    began = time.monotonic()
    command = [sys.executable, "-m", "lmart", *COMMANDS[name].words]
    done = subprocess.run(command, env=environment, capture_output=True, check=False)
    said = done.stderr.decode("utf-8", "backslashreplace")
    ended = Ended(done.returncode, done.stdout, said, time.monotonic() - began, 0)
    tally.add(_judge(ended, name, undisturbed), f"{name} with {changed}: {said[-400:]!r}")
