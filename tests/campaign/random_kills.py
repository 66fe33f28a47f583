"""Signals at random moments over older outputs, and while the program starts."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from campaign.commands import COMMANDS, OLD, clear, wanted
from campaign.harness import FOREIGN, TORN, Tally, attempt, outputs_wrong

SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
STARTING = 0.6  # seconds in which a program starts on a slow machine


def attack(chance: random.Random, until: float) -> list[Tally]:
    """Send signals until the time is over; a third of it goes to starts."""
    kills, starts = Tally("signals at random moments"), Tally("signals while starting")
    undisturbed = {name: wanted(attacked) for name, attacked in COMMANDS.items()}
    seconds = {name: attempt(attacked.words).seconds for name, attacked in COMMANDS.items()}
    now = time.monotonic()
    met = torn = 0
    while time.monotonic() < now + (until - now) * 2 / 3:
        name = chance.choice(list(COMMANDS))
        number = chance.choice(SIGNALS)
        clear()
        before = set(os.listdir())
        delay = seconds[name] * chance.uniform(0, 1.1)

        def send(process: int, delay: float = delay, number: int = number) -> None:
            time.sleep(delay)
            os.kill(process, number)

        ended = attempt(COMMANDS[name].words, after=send)
        met += ended.status != 0
        outputs = undisturbed[name][1]
        wrong = ended.wrong((0, 128 + number, -number))
        wrong += outputs_wrong(ended, outputs, dict.fromkeys(outputs, OLD))
        if number == signal.SIGKILL and TORN in wrong:  # between two renames, which nobody can take back
            wrong.remove(TORN)
            torn += 1
        left = set(os.listdir()) - before - {"c"}
        if left and number != signal.SIGKILL:
            wrong.append("leaves files")
        for path in left:
            Path(path).unlink()
        kills.add(wrong, f"{name}: {signal.Signals(number).name} after {delay:.3f} s, {ended.said[-300:]!r} {left}")
    kills.notes.append(f"{met:,} met a running process, {torn} of them between the renames of two outputs")
    while time.monotonic() < until:
        _start(chance, starts)
    return [kills, starts]


def _start(chance: random.Random, tally: Tally) -> None:
    """Send a signal to a process that has just been started."""
    number = chance.choice((signal.SIGINT, signal.SIGTERM))
    command = [sys.executable, "-m", "lmart", *chance.choice([("--version",), COMMANDS["predict"].words])]
    delay = chance.uniform(0, STARTING)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(delay)
    process.send_signal(number)
    said = process.communicate()[1].decode()
    wrong = []
    if "Traceback" in said and "lmart/" not in said.replace("-m lmart", ""):  # Python's own, before it runs lmart
        tally.notes[:] = ["some met Python before it ran lmart: it ends with a traceback of its own, and 1 or -2"]
    elif process.returncode not in (0, 128 + number, -number):
        wrong.append(f"status {process.returncode}")
    elif any(word in said for word in FOREIGN):
        wrong.append("a traceback")
    tally.add(wrong, f"{signal.Signals(number).name} after {delay:.3f} s: {process.returncode} {said[-400:]!r}")
