"""Trainings that are killed again and again and go on from their checkpoints: are their bytes as if undisturbed?

    python tests/bench/killed_runs.py --data TRAIN --valid VALID [--runs N] [--seed N]

Each run has other objectives, forms, samplings, rankers and ways to stop. It is ended after random times by SIGKILL,
SIGTERM or SIGINT until it comes to its end by itself.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from helpers.commands import CHECKPOINT_AT_ONCE, PROGRAM

SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
MOST_KILLS = 40  # of one run
OBJECTIVES = ("lambdamart", "ranknet", "lambdaloss", "map", "mrr", "err", "xendcg", "yetirank")
FORMS = ("leafwise", "depthwise", "oblivious")
ENDS = {
    "trees": (),
    "early": ("--early-stop", "40"),
    "rankers": ("--rankers", "3", "--features", "0.6"),
    "linear": ("--linear", "0.4", "--early-stop", "30"),
    "folds": ("--folds", "3", "--early-stop", "20"),
    "folds, no stop": ("--folds", "2", "--oof", "oof.txt"),
}


def cases(n: int) -> list[tuple[str, list[str]]]:
    """Return the names and the options of the runs."""
    found = []
    for number, (end, objective) in zip(range(n), product([*ENDS] * n, OBJECTIVES), strict=False):
        form, sample = FORMS[number % len(FORMS)], "0.7" if number % 2 else "1"
        options = ["--tree", form, "--sample", sample, *ENDS[end]]
        if end != "rankers":
            options += ["--rankers", "1"]
        found.append((f"{objective}, {form}, sample {sample}, {end}", [*options, "--objective", objective]))
    return found


def digest(paths: Sequence[Path]) -> str:
    """Return a hash of the contents of files, as far as they are there."""
    return hashlib.blake2b(b"".join(path.read_bytes() for path in paths if path.exists()), digest_size=8).hexdigest()


def run_killed(command: Sequence[str], folder: Path, seconds: float, chance: random.Random) -> list[str]:
    """Run a command again and again, and end it after random times, until it ends by itself; return the signals."""
    met: list[str] = []
    while True:
        process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
        try:
            if len(met) < MOST_KILLS:
                process.wait(seconds * chance.uniform(0.3, 1.1))
            else:
                process.wait()
        except subprocess.TimeoutExpired:
            how = chance.choice(SIGNALS)
            process.send_signal(how)
            process.wait()
            met.append(how.name.removeprefix("SIG").lower())
            continue
        if process.returncode:
            said = b"" if process.stderr is None else process.stderr.read()
            raise SystemExit(f"{' '.join(command)}\nended with {process.returncode} after {met}: {said.decode()}")
        return met


def main() -> None:
    """Run all cases and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--valid", required=True, type=Path)
    parser.add_argument("--trees", default="400")
    parser.add_argument("--runs", default=50, type=int)
    parser.add_argument("--seed", default=1, type=int)
    parser.add_argument("--first", default=0, type=int, help="number of the first run, from 0")
    asked = parser.parse_args()
    chance = random.Random(asked.seed)
    failed = kills = 0
    for number, (name, options) in enumerate(cases(asked.first + asked.runs)[asked.first :], asked.first):
        sets = ["--data", str(asked.data.resolve()), "--valid", str(asked.valid.resolve())]
        words = ["train", *sets, *options, "--trees", asked.trees, "--out", "model.json"]
        command = [*PROGRAM, *words]
        with tempfile.TemporaryDirectory() as held:
            folder = Path(held)
            outputs = [folder / "model.json", folder / "oof.txt"]
            subprocess.run(command, cwd=folder, capture_output=True, check=True)
            began = time.monotonic()
            subprocess.run(command, cwd=folder, capture_output=True, check=True)  # without compiling
            seconds = time.monotonic() - began
            wanted = digest(outputs)
            for path in outputs:
                path.unlink(missing_ok=True)
            met = run_killed([*CHECKPOINT_AT_ONCE, *words, "--checkpoint", "run.checkpoint"], folder, seconds, chance)
            equal = digest(outputs) == wanted
            left = sorted(path.name for path in folder.iterdir() if path not in outputs)
        failed += not equal or bool(left)
        kills += len(met)
        verdict = ("equal" if equal else "OTHER BYTES") + (f", left {' '.join(left)}" if left else "")
        print(f"{number + 1:3} {verdict}  {name}, {seconds:.1f} s: {' '.join(met) or '-'}", flush=True)
    print(f"{asked.runs} runs, {kills} times ended by a signal, {failed} not as undisturbed")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
