"""Disks that are full, nearly full or read-only, and standard output that takes nothing more."""

from __future__ import annotations

import os
import random
import resource
import subprocess
import time
from pathlib import Path

from campaign.commands import COMMANDS, OLD, clear, wanted
from campaign.harness import Ended, Tally, attempt, outputs_wrong

SIZES = (16, 24, 64)  # KiB of a small disk
LARGEST_FILES = (0, 1000, 4096, 20_000)  # bytes, also of what is printed


def attack(chance: random.Random, until: float) -> list[Tally]:
    """Try all commands on all disks."""
    tally = Tally("full and read-only disks")
    undisturbed = {name: wanted(attacked) for name, attacked in COMMANDS.items()}
    for largest in LARGEST_FILES:
        for name, (printed, outputs) in undisturbed.items():
            if time.monotonic() > until:
                return [tally]
            clear()

            def limit(largest: int = largest) -> None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))

            ended = attempt(COMMANDS[name].words, before=limit)
            if not outputs and printed:  # to a stream that is limited as well
                continue
            wrong = ended.wrong((0, 1)) + outputs_wrong(ended, outputs, dict.fromkeys(outputs, OLD))
            tally.add(wrong, f"{name} with files of at most {largest} bytes: {ended.said[-300:]!r}")
    for name, (printed, _) in undisturbed.items():
        if printed:
            ended = attempt(COMMANDS[name].words, before=_fill_standard_output)
            tally.add(ended.wrong((1,)), f"{name} > /dev/full: {ended.said[-300:]!r}")
    disk = Path("disk")
    disk.mkdir(exist_ok=True)
    for kib in SIZES:
        if subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={kib}k", "none", str(disk)], capture_output=True, check=False
        ).returncode:
            tally.notes.append("small and read-only disks are left out: only root can mount them")
            break
        try:
            _on_disk(disk, kib, tally, undisturbed)
        finally:
            subprocess.run(["umount", "-l", str(disk)], check=True)
    disk.rmdir()
    return [tally]


def _fill_standard_output() -> None:
    os.dup2(os.open("/dev/full", os.O_WRONLY), 1)


def _on_disk(disk: Path, kib: int, tally: Tally, undisturbed: dict[str, tuple[bytes, dict[str, bytes]]]) -> None:
    """Let all commands write to a small disk, then to the same disk when it is read-only."""
    for state in ("small", "read-only"):
        if state == "read-only":
            subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        for name, (_, outputs) in undisturbed.items():
            if not outputs:
                continue
            there = {str(disk / path): content for path, content in outputs.items()}
            words = [str(disk / word) if COMMANDS[name].writes(word) else word for word in COMMANDS[name].words]
            if state == "small":
                for path in disk.iterdir():
                    path.unlink()
                for output in there:
                    Path(output).write_bytes(OLD)
            before = set(os.listdir(disk))
            ended = attempt(words)
            old = {path: Path(path).read_bytes() if Path(path).exists() else b"" for path in there}
            wrong = _wrong(ended, there, old if state == "read-only" else dict.fromkeys(there, OLD), state)
            if set(os.listdir(disk)) - before:
                wrong.append("leaves files")
            tally.add(wrong, f"{name} on a {state} disk of {kib} KiB: {ended.said[-300:]!r}")


def _wrong(ended: Ended, wanted_: dict[str, bytes], old: dict[str, bytes], state: str) -> list[str]:
    if state == "read-only":
        return ended.wrong((1,))
    return ended.wrong((0, 1)) + outputs_wrong(ended, wanted_, old)
