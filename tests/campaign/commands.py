"""The commands that are attacked, with their inputs and outputs in the current folder."""

from __future__ import annotations

import gc
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from helpers.paths import SAMPLE

from campaign.harness import attempt, warm
from lmart.training import checkpoint

OLD = b"an older output\n"


class Attacked(NamedTuple):
    """A command.

    outputs : the files that it writes; one that ends in .report has other bytes each time
    """

    words: tuple[str, ...]
    outputs: tuple[str, ...] = ()

    def writes(self, word: str) -> bool:
        """Return whether a word is the name of an output, or that of several, which get numbers."""
        return word in self.outputs or any(name.startswith(f"{Path(word).stem}-") for name in self.outputs)


SMALL = ("--trees", "3", "--rankers", "1", "--leaves", "4", "--threads", "1", "-q")
FIRST = ("train", "--data", "d.svm", *SMALL, "--out", "in.json", "--report", "in.report")
COMMANDS = {
    "train": Attacked(("train", "--data", "d.svm", *SMALL, "-o", "1.json"), ("1.json",)),
    "train --report": Attacked(
        ("train", "--data", "d.svm", "--valid", "v.svm", *SMALL, "-o", "2.json", "--report", "2.report"),
        ("2.json", "2.report"),
    ),
    "train --checkpoint": Attacked(
        ("train", "--data", "d.svm", *SMALL, "-o", "3.json", "--checkpoint", "c"), ("3.json",)
    ),
    "train --continue-from": Attacked(
        ("train", "--data", "d.svm", *SMALL, "--continue-from", "in.json", "-o", "4.json"), ("4.json",)
    ),
    "predict": Attacked(("predict", "-q", "-m", "in.json", "--data", "v.svm", "-o", "5.txt"), ("5.txt",)),
    "predict .gz": Attacked(
        ("predict", "-q", "-m", "in.json", "--data", "v.svm.gz", "--format", "jsonl", "-o", "6.gz"), ("6.gz",)
    ),
    "convert a model": Attacked(("convert", "-qq", "in.json", "7.txt", "--to", "lightgbm"), ("7.txt",)),
    "convert data": Attacked(("convert", "-q", "v.svm", "8.csv"), ("8.csv",)),
    "convert --split": Attacked(
        ("convert", "-q", "v.svm", "10.csv", "--split", "0.5,0.3,0.2"), ("10-1.csv", "10-2.csv", "10-3.csv")
    ),
    "train --folds": Attacked(
        ("train", "--data", "d.svm", *SMALL, "--folds", "2", "--oof", "11.oof", "-o", "11.json"), ("11.json", "11.oof")
    ),
    "eval": Attacked(("eval", "-q", "--data", "v.svm", "-m", "in.json", "--json", "--resamples", "10")),
    "eval --html": Attacked(
        (
            *("eval", "-q", "--data", "v.svm", "-m", "in.json", "--html", "9.html", "--per-query", "9.tsv"),
            *("--resamples", "10", "--train-report", "in.report"),
        ),
        ("9.html", "9.tsv"),
    ),
    "show": Attacked(("show", "-q", "in.json")),
    "show --data": Attacked(("show", "-q", "in.json", "--data", "v.svm", "--json")),
}


def prepare() -> None:
    """Write the inputs to the current folder, and load all that the commands need."""
    checkpoint.FIRST_SECONDS = 0.0  # also for runs that are over before
    queries = (SAMPLE / "train.svm").read_text().splitlines(keepends=True)
    Path("d.svm").write_text("".join(queries[:600]))
    shutil.copy(SAMPLE / "vali.svm", "v.svm")
    warm([FIRST, ("convert", "-q", "v.svm", "v.svm.gz", "--to", "letor")])
    warm([attacked.words for attacked in COMMANDS.values()])
    clear()
    gc.collect()
    gc.freeze()  # so that forks share the memory


def clear(attacked: Iterable[Attacked] = COMMANDS.values()) -> None:
    """Put old outputs in place of all outputs of commands."""
    Path("c").unlink(missing_ok=True)
    for each in attacked:
        for name in each.outputs:
            Path(name).write_bytes(OLD)


def wanted(attacked: Attacked) -> tuple[bytes, dict[str, bytes]]:
    """Return what an undisturbed run prints, and the content of its outputs, b'' for reports."""
    clear([attacked])
    ended = attempt(attacked.words)
    assert ended.status == 0, ended.said
    return ended.out, {name: b"" if name.endswith(".report") else Path(name).read_bytes() for name in attacked.outputs}
