"""Attack lmart in many ways for as long as asked, and print a table of what was tried, what held and what broke.

    nice python tests/campaign/run.py [--minutes 60] [--seed 0] [--parts NAME ...]

Each part gets the share of the time that PARTS says; what it leaves goes to those after it. Parts that need what is not
there (a C compiler, root, the package distributed) are left out by name.
"""

from __future__ import annotations

import argparse
import importlib
import os
import random
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "bench")]

from campaign.commands import prepare  # noqa: E402
from campaign.harness import PRELOADED, Tally  # noqa: E402

PARTS = {
    "failing_calls": 8,
    "random_kills": 10,
    "disks": 2,
    "changing_inputs": 9,
    "hostile_models": 4,
    "hostile_checkpoints": 8,
    "hostile_texts": 35,
    "hostile_options": 8,
    "on_workers": 12,
    "cold_starts": 14,
    "repeated": 6,
    "surroundings": 8,
    "exploding": 8,
}


def with_shim(folder: Path) -> None:
    """Start this program anew with the shim in it, where it can be compiled; else go on without."""
    if PRELOADED in os.environ:
        os.environ.pop("LD_PRELOAD", None)
        return
    shim = folder / "shim.so"
    compiler = (sysconfig.get_config_var("CC") or "cc").split()[0]
    for name in (compiler, "cc"):
        command = [name, "-shared", "-fPIC", "-O1", "-o", str(shim), str(HERE / "shim.c"), "-ldl"]
        try:
            compiled = subprocess.run(command, capture_output=True, check=False).returncode == 0
        except OSError:
            continue
        if compiled:
            os.environ.update({PRELOADED: str(shim), "LD_PRELOAD": str(shim)})
            os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


HEAD = f"{'':36}{'asked':>10}{'tried':>10}{'held':>10}{'broke':>7}"


def row(tally: Tally) -> str:
    """Return a tally as a row of the table."""
    broke = sum(tally.broke.values())
    asked = f"{tally.asked:,}" if tally.asked else ""
    return f"{tally.part:36}{asked:>10}{tally.tried:>10,}{tally.tried - broke:>10,}{broke:>7,}"


def table(tallies: Sequence[Tally], seconds: float) -> str:
    """Return a table of all tallies, with notes below it."""
    lines = [HEAD, *map(row, tallies)]
    for tally in tallies:
        lines += [f"{tally.part}: {note}" for note in tally.notes]
        lines += [f"{tally.part}: broke {n} times: {what}" for what, n in tally.broke.items()]
    return "\n".join([*lines, f"{seconds / 60:.1f} minutes"])


def attacked(part: str, seed: int, until: float, inputs: Mapping[str, bytes]) -> list[Tally]:
    """Run a part in a folder that has nothing but sound inputs; one that fails is a tally of its own."""
    print(f"{part} ...", flush=True)
    for path in Path().iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    for name, content in inputs.items():
        Path(name).write_bytes(content)
    try:
        tallies: list[Tally] = importlib.import_module(f"campaign.{part}").attack(random.Random(seed), until)
    except Exception:
        tallies = [Tally(part)]
        tallies[0].add(["the campaign itself failed"], traceback.format_exc())
    for tally in tallies:
        print(f"  {row(tally)}", flush=True)
    return tallies


def main() -> None:
    """Run all parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    asked = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="lmart-campaign-") as held:
        with_shim(Path(held))
        folder = Path(held).resolve() / "attacked"
        folder.mkdir()
        os.chdir(folder)
        os.environ.pop("PYTHONUNBUFFERED", None)
        prepare()
        inputs = {path.name: path.read_bytes() for path in Path().iterdir()}
        tallies: list[Tally] = []
        end = time.monotonic() + asked.minutes * 60
        for place, part in enumerate(asked.parts):
            share = PARTS[part] / sum(PARTS[later] for later in asked.parts[place:])
            now = time.monotonic()
            tallies += attacked(part, asked.seed, now + (end - now) * share, inputs)
        print(table(tallies, time.monotonic() - began))
        os.chdir("/")
    if PRELOADED in os.environ:  # by the program that started this one
        shutil.rmtree(Path(os.environ[PRELOADED]).parent)
    sys.exit(any(tally.broke for tally in tallies))


if __name__ == "__main__":
    main()
