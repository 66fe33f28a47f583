"""Calls of the system that fail, or meet a signal: for each command the n-th call of each kind, one after the other."""

from __future__ import annotations

import errno
import os
import random
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from campaign.commands import COMMANDS, OLD, Attacked, clear, wanted
from campaign.harness import TORN, Ended, Planned, Tally, attempt, outputs_wrong, shim

SHORT, ENDED = -1, -2  # as in shim.c
ERRORS = {
    "read": (errno.EIO, errno.EINTR, SHORT, ENDED),
    "write": (errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EINTR, SHORT),
    "open": (errno.EIO, errno.EMFILE, errno.ENOSPC, errno.EINTR),
    "fsync": (errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EINTR),
    "rename": (errno.EIO, errno.ENOSPC, errno.EXDEV, errno.EDQUOT),
    "mmap": (errno.ENOMEM, errno.EIO, errno.EAGAIN),
    "link": (errno.EIO, errno.ENOSPC, errno.EXDEV),
    "close": (errno.EIO, errno.ENOSPC),
    "stat": (errno.EIO,),
    "unlink": (errno.EIO,),
    "fchmod": (errno.EIO,),
    "ftruncate": (errno.EIO, errno.ENOSPC),
    "flock": (errno.EIO, errno.ENOLCK),
    "lseek": (errno.EIO,),
}
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
MOST = 500  # calls of a kind that are tried


def plans(attacked: Attacked, chance: random.Random, tally: Tally) -> Iterator[Planned]:
    """Yield all that can happen to a command: each error, and each signal, at each call."""
    attempt(attacked.words, Planned())
    for kind, n in shim.counts().items():
        places: Sequence[int] = range(1, n + 1)
        if n > MOST:
            tally.notes.append(f"{attacked.words[0]}: {MOST} of {n} calls of {kind}")
            places = chance.sample(places, MOST)
        for nth in places:
            yield from (Planned(kind, nth, error) for error in ERRORS[kind])
            yield from (Planned(kind, nth, 0, number) for number in SIGNALS)


def attack(chance: random.Random, until: float) -> list[Tally]:
    """Try all commands in the current folder, until the time is over; a sample of what is left is tried then."""
    fails, meets = Tally("calls that fail"), Tally("signals at calls")
    if not shim.there:
        fails.notes.append("left out: there is no C compiler")
        return [fails, meets]
    every: list[tuple[str, Planned]] = []
    undisturbed = {}
    for name, attacked in COMMANDS.items():
        undisturbed[name] = wanted(attacked)
        every += [(name, planned) for planned in plans(attacked, chance, fails)]
    meets.asked = sum(bool(planned.signal) for _, planned in every)
    fails.asked = len(every) - meets.asked
    chance.shuffle(every)
    torn = 0
    for name, planned in every:
        if time.monotonic() > until:
            break
        torn += _try(name, planned, undisturbed[name], meets if planned.signal else fails)
    meets.notes.append(f"{torn}, with calls that fail, left outputs of two runs: they ended between two renames")
    return [fails, meets]


def _try(name: str, planned: Planned, undisturbed: tuple[bytes, dict[str, bytes]], tally: Tally) -> bool:
    """Let one thing happen to a command, and see what it leaves; return whether that are outputs of two runs."""
    clear([COMMANDS[name]])
    before = set(os.listdir())
    ended = attempt(COMMANDS[name].words, planned)
    left = set(os.listdir()) - before
    outputs = undisturbed[1]
    is_torn = TORN in outputs_wrong(ended, outputs, dict.fromkeys(outputs, OLD))
    tally.add(*judged(name, ended, planned, undisturbed, left))
    return is_torn


def judged(
    name: str, ended: Ended, planned: Planned, undisturbed: tuple[bytes, dict[str, bytes]], left: set[str]
) -> tuple[list[str], str]:
    """Return what is wrong with a try, and how to see it again; delete the files that are left."""
    printed, outputs = undisturbed
    statuses = (0, 128 + planned.signal, -planned.signal) if planned.signal else (0, 1)
    wrong = ended.wrong(statuses)
    killed = planned.signal == signal.SIGKILL
    found = outputs_wrong(ended, outputs, dict.fromkeys(outputs, OLD))
    if killed or planned.kind == "rename" or (planned.signal and planned.kind in ("link", "fsync", "close", "open")):
        # Between the renames of two outputs nothing can be taken back; the message names what was kept.
        found = [what for what in found if what not in (TORN, "status 1, but a new output")]
    wrong += found
    if ended.status == 0 and ended.out != printed:
        wrong.append("status 0, but other standard output")
    for path in left:
        Path(path).unlink()
    if "c" in left and ended.status:  # what a run that failed is to leave
        left -= {"c"}
    kept = {path for path in left if path.endswith((".kept", ".tmp"))}
    told = {path for path in kept if path in ended.said}
    if told and (told == kept or "likewise" in ended.said):  # of several of a cluster one is named
        left -= kept
    if left and not killed and planned.kind != "unlink":
        wrong.append("leaves files")
    return wrong, f"{name}: {planned} {ended.said[-300:]!r} {sorted(left)}"
