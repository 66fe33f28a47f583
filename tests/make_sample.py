"""Write data/sample: three small LETOR files that a model can learn from, the same bytes on any machine.

Run as `python tests/make_sample.py data/sample`. Everything is integer arithmetic on bits of `random.Random`, so no
library's rounding can change a byte. A document is relevant when several features agree; no single one tells.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

SEED = 20_10  # the year of Burges' overview of LambdaMART
QUERIES = {"train.svm": 120, "vali.svm": 40, "test.svm": 40}
UNJUDGED = 25  # one query in so many has no relevant document, as in real sets
FEATURES = 20


def main(folder: Path) -> None:
    """Write the three files into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in sample_files().items():
        (folder / name).write_bytes(text.encode("ascii"))


def sample_files() -> dict[str, str]:
    """Return file name -> LETOR text."""
    rng = random.Random(SEED)
    files = {}
    first_query = 1
    for name, n_queries in QUERIES.items():
        lines: list[str] = []
        for query in range(first_query, first_query + n_queries):
            lines += _query(rng, query)
        first_query += n_queries
        files[name] = "".join(line + "\n" for line in lines)
    return files


def _query(rng: random.Random, query: int) -> list[str]:
    n_documents = _between(rng, 5, 25)
    ease = _between(rng, -120, 120)  # some queries have many good documents, some few
    terms = _between(rng, 1, 8)
    hopeless = query % UNJUDGED == 0
    lines = []
    for document in range(n_documents):
        features, quality = _document(rng, terms)
        label = 0 if hopeless else _grade(quality + ease)
        pairs = " ".join(f"{index}:{value}" for index, value in enumerate(features, start=1))
        lines.append(f"{label} qid:{query} {pairs} # docid = S{query:03d}-{document:02d}")
    return lines


def _document(rng: random.Random, terms: int) -> tuple[list[str], int]:
    """Return the features as written, and how good the document is; everything inside is in thousandths."""
    title, body, anchor = _bell(rng), _bell(rng), _bell(rng)
    authority, age, spam = _bell(rng), _between(rng, 0, 1000), _between(rng, 0, 1000)
    clicks = 0 if _between(rng, 0, 9) < 6 else _between(rng, 1, 40)  # most documents were never clicked
    length = 50 + _between(rng, 0, 40) * _between(rng, 0, 60)
    quality = (title * body // 500 + anchor * authority // 700) // 2 + 8 * clicks
    quality += 150 if age < 250 else 60 if age < 500 else 0
    quality -= 350 if spam > 800 else 0
    quality -= 120 if length > 1500 else 0
    quality += _bell(rng) // 2  # what no feature tells
    features = [
        _thousandths(_near(rng, title, 60)),
        _thousandths(_near(rng, body, 60)),
        _thousandths(_near(rng, anchor, 60)),
        _thousandths(_near(rng, (title + body) // 2, 150)),
        str(terms * title // 1000),  # query terms in the title
        str(terms * body // 1000),
        str(terms),
        str(length),
        _thousandths(_near(rng, authority, 60)),
        _thousandths(authority * authority // 1000),
        str(clicks),
        _thousandths(age),
        str(int(age < 250)),
        _thousandths(spam),
        str(_between(rng, 0, 30)),  # slashes in the address: noise
        _thousandths(_between(rng, 0, 1000)),  # noise
        _thousandths(_bell(rng) - 500),  # noise, with negative values
        "0" if _between(rng, 0, 9) < 9 else _thousandths(_between(rng, 1, 1000)),  # nearly always 0
        _thousandths(_near(rng, length * 2 // 5, 100)),
        "1",  # the same everywhere
    ]
    assert len(features) == FEATURES
    return features, quality


def _grade(quality: int) -> int:
    return sum(quality > limit for limit in (560, 700, 840, 1000))


def _between(rng: random.Random, low: int, high: int) -> int:
    """Return an integer of low..high, from bits alone, whose use does not change between Python versions."""
    return low + rng.getrandbits(32) * (high - low + 1) // 2**32


def _bell(rng: random.Random) -> int:
    return sum(_between(rng, 0, 250) for _ in range(4))


def _near(rng: random.Random, value: int, spread: int) -> int:
    return max(0, value + _between(rng, -spread, spread))


def _thousandths(value: int) -> str:
    sign, value = ("-", -value) if value < 0 else ("", value)
    return f"{sign}{value // 1000}.{value % 1000:03d}".rstrip("0").rstrip(".")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
