"""A cluster without workers, and judged documents in parts, for the tests of evaluations on a cluster."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path


def judged_queries(
    seed: int, n_queries: int, labels: Sequence[float] = (0, 0, 1, 2), first: int = 0, named: bool = False
) -> list[list[str]]:
    """Return queries as lines of LETOR text: of one row or several, some without a relevant document, with ties.

    named : some documents have ids
    """
    rng = random.Random(seed)
    queries = []
    for q in range(first, first + n_queries):
        own = [0] if q % 5 == 4 else labels
        rows = []
        for place in range(rng.randint(1, 9)):
            label = rng.choice(own)
            features = f"1:{label + rng.randint(-2, 2)} 2:{rng.randint(0, 3)} 3:{rng.random():.3f}"
            name = f" # docid = d{rng.randint(10, 99)}{place}" if named and rng.random() < 0.7 else ""
            rows.append(f"{label:g} qid:q{q} {features}{name}\n")
        queries.append(rows)
    return queries


def split(queries: Sequence[list[str]], n: int) -> list[list[list[str]]]:
    """Return the queries in n parts of different sizes, of at least one each."""
    bounds = [max(k, round(len(queries) * (k / n) ** 1.5)) for k in range(n + 1)]
    return [list(queries[a:b]) for a, b in pairwise(bounds)]


def as_table(rows: Sequence[str], columns: Sequence[int], names: Sequence[str], separator: str = ",") -> str:
    """Return rows of LETOR text as a table with a header.

    columns : which features, in the order of the table
    names   : of features 1, 2, ...
    """
    lines = [separator.join(["label", "qid", *(names[i - 1] for i in columns)])]
    for row in rows:
        label, query, *cells = row.split("#")[0].split()
        values = dict(cell.split(":") for cell in cells)
        lines.append(separator.join([label, query.removeprefix("qid:"), *(values.get(str(i), "0") for i in columns)]))
    return "\n".join(lines) + "\n"


def write_beside(text: str, part_sizes: Sequence[int], name: str) -> None:
    """Write the lines of a text to a file for each part, NAME-0.txt, NAME-1.txt, ..., so many lines each."""
    lines, start = text.splitlines(keepends=True), 0
    for k, size in enumerate(part_sizes):
        Path(f"{name}-{k}.txt").write_text("".join(lines[start : start + size]))
        start += size
