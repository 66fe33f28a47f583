"""Inputs that change while they are read: a command is stopped at a read, a file is changed, and it goes on."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from campaign.commands import COMMANDS, OLD, Attacked, clear, wanted
from campaign.harness import Ended, Planned, Tally, attempt, outputs_wrong, shim

INPUTS = ("d.svm", "v.svm", "v.svm.gz", "in.json", "in.report")


def _overwrite(path: Path) -> None:
    """Change a byte in the middle, in place."""
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        byte = file.read(1)
        file.seek(-1, 1)
        file.write(b"3" if byte != b"3" else b"4")


def _replace(path: Path) -> None:
    """Put another file in its place."""
    content = path.read_bytes()
    path.with_suffix(".new").write_bytes(content[: len(content) // 2])
    path.with_suffix(".new").replace(path)


def _grow(path: Path) -> None:
    """Append a row."""
    with path.open("ab") as file:
        file.write(b"1 qid:999999 1:1\n")


CHANGES: dict[str, Callable[[Path], None]] = {
    "cut": lambda path: os.truncate(path, path.stat().st_size // 2),
    "emptied": lambda path: os.truncate(path, 0),
    "grown": _grow,
    "overwritten": _overwrite,
    "replaced": _replace,
    "deleted": lambda path: path.unlink(),
}


def attack(chance: random.Random, until: float) -> list[Tally]:
    """Try each change at each read of each command, as far as the time allows."""
    tally = Tally("inputs that change")
    if not shim.there:
        tally.notes.append("left out: there is no C compiler")
        return [tally]
    kept = {name: Path(name).read_bytes() for name in INPUTS}
    every = []
    undisturbed = {}
    for name, attacked in COMMANDS.items():
        undisturbed[name] = wanted(attacked)
        attempt(attacked.words, Planned())
        reads = [("read", nth) for nth in range(1, shim.counts()["read"] + 1)]
        reads += [("open", nth) for nth in range(1, shim.counts()["open"] + 1)]
        files = [word for word in attacked.words if word in INPUTS]
        every += [(name, *read, file, change) for read in reads for file in files for change in CHANGES]
    chance.shuffle(every)
    tally.asked = len(every)
    for name, kind, nth, file, change in every:
        if time.monotonic() > until:
            break
        clear([COMMANDS[name]])
        for path, content in kept.items():
            Path(path).write_bytes(content)

        def at_stop(process: int, file: str = file, change: str = change) -> None:
            found = os.waitid(os.P_PID, process, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
            if found is not None and found.si_code == os.CLD_STOPPED:
                with suppress(FileNotFoundError):
                    CHANGES[change](Path(file))
                os.kill(process, signal.SIGCONT)

        ended = attempt(COMMANDS[name].words, Planned(kind, nth, 0, signal.SIGSTOP), after=at_stop)
        wrong = wrong_of_changed(ended, COMMANDS[name], undisturbed[name])
        tally.add(wrong, f"{name}: {file} {change} at {kind} {nth}: {ended.said[-300:]!r}")
    for path, content in kept.items():
        Path(path).write_bytes(content)
    return [tally]


def wrong_of_changed(ended: Ended, attacked: Attacked, undisturbed: tuple[bytes, dict[str, bytes]]) -> list[str]:
    """Return what is wrong with a try whose input changed."""
    printed, outputs = undisturbed
    wrong = ended.wrong((0, 1))
    if ended.status == 0 and not _is_of_one_version(ended.out, printed, outputs, attacked):
        wrong.append("status 0, but a result of neither version")
    elif ended.status:
        wrong += outputs_wrong(ended, outputs, dict.fromkeys(outputs, OLD))
    return wrong


def _is_of_one_version(printed: bytes, wanted_out: bytes, outputs: dict[str, bytes], attacked: Attacked) -> bool:
    """Return whether the result is that of the files as they were, or of the files as they are now."""
    found = {path: Path(path).read_bytes() for path in outputs}
    reports = {path for path in outputs if path.endswith(".report")}
    if printed == wanted_out and all(found[path] == outputs[path] for path in outputs if path not in reports):
        return True
    clear([attacked])
    again = attempt(attacked.words)
    same = all(found[path] == Path(path).read_bytes() for path in outputs if path not in reports)
    return again.status == 0 and printed == again.out and same
