"""Calls of `lmart train` for the tests, on small data in the current folder."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from helpers.commands import run
from helpers.evaluation import strict

# One tree of plain Newton steps: what can be worked out by hand.
PLAIN = (
    *("--trees", "1", "--learning-rate", "0.1", "--min-docs", "1", "--min-hessian", "0", "--l2", "0"),
    *("--truncation", "0", "--no-normalize"),
)
SMALL = ("--trees", "10", "--leaves", "8", "--min-docs", "2")


class Run(NamedTuple):
    """What a training run left: the model and its bytes, the report, and what it said."""

    model: dict[str, Any]
    data: bytes
    report: dict[str, Any]
    said: list[str]

    @property
    def warnings(self) -> list[str]:
        return [line for line in self.said if "warning" in line]


def settled(options: Sequence[str | Path]) -> list[str | Path]:
    """Return the options without those that stand again later, with another value: tests change what is usual."""
    several = ("--data", "--valid", "--valid-init-scores")
    found: dict[object, list[str | Path]] = {}
    place: list[str | Path] = []
    for i, word in enumerate(options):
        if str(word).startswith("--") or not place:
            name = str(word).partition("=")[0].replace("--no-", "--")
            key = (name, i) if name in several else name
            found.pop(key, None)
            place = found[key] = []
        place.append(word)
    return [word for words in found.values() for word in words]


def fit(text: str, *options: str | Path) -> Run:
    """Train on the text as d.svm, with a report; both outputs must be strict JSON."""
    Path("d.svm").write_text(text)
    result = run("train", *settled(["--data", "d.svm", "--out", "m.json", "--report", "r.json", *options]))
    assert (result.stdout != "") == ("--folds" in options)
    data = Path("m.json").read_bytes()
    return Run(strict(data.decode()), data, strict(Path("r.json").read_text()), result.stderr.splitlines())


def refused(*options: str | Path, status: int = 1) -> str:
    """Train on d.svm with options that are refused; return the one line that says so. No file appears or changes."""
    before = {path: path.read_bytes() for path in Path().iterdir() if path.is_file()}
    usual = ["--data", "d.svm", "--out", "m.json", "--report", "r.json", "-qq"]
    result = run("train", *settled([*usual, *options]), status=status)
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("lmart: error: ")
    assert {path: path.read_bytes() for path in Path().iterdir() if path.is_file()} == before
    return line


def scores(text: str | None = None, *options: str) -> list[float]:
    """Score the text, or d.svm, with m.json."""
    if text is not None:
        Path("scored.svm").write_text(text)
    name = "d.svm" if text is None else "scored.svm"
    return [float(line) for line in run("predict", "-m", "m.json", "--data", name, *options).stdout.split()]


def evaluated(data: str = "d.svm", *options: str) -> float:
    """Evaluate m.json on a file; return the one measure."""
    content = strict(run("eval", "-m", "m.json", "--data", data, "--json", *options).stdout)
    (value,) = content["metrics"].values()
    assert isinstance(value, float)
    return value


def features_used(model: dict[str, Any]) -> set[int]:
    return {feature for tree in model["trees"] for feature in tree["split_features"]}


def learnable(seed: int = 1, n_queries: int = 20, length: int = 10, labels: Sequence[float] = (0, 1, 2)) -> str:
    """Return queries of which feature 1 says much, 2 little and 3 nothing; feature 7 is constant."""
    rng = random.Random(seed)
    lines = []
    for q in range(n_queries):
        for _ in range(length):
            place = rng.randrange(len(labels))
            first, second = place + rng.gauss(0, 0.7), place + rng.gauss(0, 3)
            label = labels[place]
            lines.append(f"{label} qid:{q} 1:{first:.3f} 2:{second:.3f} 3:{rng.random():.3f} 7:1\n")
    return "".join(lines)
