"""Models of one process and of the same training on worker processes, compared by the SHA-256 of their bytes."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

from helpers.commands import run
from helpers.shards import write_parts
from helpers.training_runs import learnable
from lmart.settings import OBJECTIVES
from lmart.settings.kinds import TREE_FORMS

N_PARTS = (2, 20)
PLAIN = ("--trees", "6", "--leaves", "6", "--min-docs", "3", "--rankers", "1", "--sample", "1", "-qq")
VALID, WEIGHTS, SCORES = "VALID", "WEIGHTS", "SCORES"  # stand for files: joined for one process, else a pattern
EARLY = ("--trees", "30", "--early-stop", "3", "--valid", VALID)

VARIANTS: dict[str, tuple[str, ...]] = {
    **{name: ("--objective", name) for name in OBJECTIVES},
    **{f"{name}, 0.6 of the rows": ("--objective", name, "--sample", "0.6") for name in OBJECTIVES},
    **{f"{name} trees": ("--tree", name, "--objective", "lambdamart") for name in TREE_FORMS},
    **{f"{name} trees, 0.4 of the rows": ("--tree", name, "--sample", "0.4") for name in TREE_FORMS},
    "half of the features": ("--features", "0.5"),
    "monotone": ("--monotone", "1:+1,2:-1"),
    "automatic rankers": ("--trees", "24", "--rankers", "4", "--sample", "auto"),
    "early stopping": EARLY,
    "early stopping, 2 rankers, map": (*EARLY, "--rankers", "2", "--metric", "map"),
    "weights of queries": ("--weights", f"{WEIGHTS}-query"),
    "weights of rows, sampled": ("--weights", f"{WEIGHTS}-row", "--sample", "0.5"),
    "weights, early stopping": (*EARLY, "--weights", f"{WEIGHTS}-query"),
    "initial scores": ("--init-scores", SCORES),
}
USUAL = (
    *("yetirank, 0.6 of the rows", "oblivious trees, 0.4 of the rows", "automatic rankers"),
    *("early stopping, 2 rankers, map", "weights of rows, sampled", "initial scores"),
)  # those that tests have


def write_sets() -> None:
    """Write a training set in 2 and in 20 parts, with what stands beside them, and a validation set."""
    text, chance = learnable(n_queries=40), random.Random(5)
    write_parts(learnable(2), 3, Path(), "valid")
    numbers = {kind: [f"{chance.uniform(0.1, 9)}\n" for _ in range(400)] for kind in ("row", "scores")}
    numbers["query"] = numbers["row"][:40]
    for n in N_PARTS:
        rows = queries = 0
        for path in write_parts(text, n, Path(), f"in{n}"):
            lines = Path(path).read_text().splitlines()
            sizes = {"row": len(lines), "query": len({line.split()[1] for line in lines})}
            firsts = {"row": rows, "query": queries, "scores": rows}
            for kind, first in firsts.items():
                own = numbers[kind][first : first + sizes.get(kind, len(lines))]
                number = int(Path(path).stem.rpartition("-")[2])
                Path(f"{kind}-in{n}-{number:02}").write_text("".join(own))
            rows, queries = rows + sizes["row"], queries + sizes["query"]
            Path(path).rename(f"in{n}-{number:02}.svm")
    for kind, lines in numbers.items():
        Path(f"{kind}-joined").write_text("".join(lines))
    Path("valid-joined").write_text("".join(Path(f"valid-{k}.svm").read_text() for k in range(3)))


def sha_of(options: Sequence[str], n_parts: int, address: str = "") -> str:
    """Train in this process, or on a cluster, in the current folder; return the SHA-256 of the model.

    options : of the variant
    n_parts : files of data, of `N_PARTS`
    address : of a scheduler; '': this process alone
    """
    cluster = bool(address)
    files = {
        VALID: "valid-?.svm" if cluster else "valid-joined",
        f"{WEIGHTS}-query": f"query-in{n_parts}-*" if cluster else "query-joined",
        f"{WEIGHTS}-row": f"row-in{n_parts}-*" if cluster else "row-joined",
        SCORES: f"scores-in{n_parts}-*" if cluster else "scores-joined",
    }
    data = [f"in{n_parts}-*.svm"] if cluster else sorted(map(str, Path().glob(f"in{n_parts}-*.svm")))
    command = ["train", "--data", *data, "--out", "m.json", *settled(options, files)]
    run(*command, *(("--dask", address) if cluster else ()))
    return hashlib.sha256(Path("m.json").read_bytes()).hexdigest()


def settled(options: Sequence[str], files: dict[str, str]) -> Iterator[str]:
    """Yield the options of a variant on top of the plain ones, each once, with the names of files."""
    given = dict(zip(PLAIN[:-1:2], PLAIN[1:-1:2], strict=True))
    given |= dict(zip(options[::2], options[1::2], strict=True))
    for name, value in given.items():
        yield from (name, files.get(value, value))
    yield PLAIN[-1]
