"""Fuzzed data and side files of all formats, plain and compressed, through the commands that read them."""

from __future__ import annotations

import gzip
import random
import shutil
import time
from functools import partial
from pathlib import Path

import fuzzing

from campaign.harness import Tally, answer_wrong, answered, in_batches, mutated

PIECES = [
    *fuzzing.PIECES,
    *(b'"', b'""', b'",', b"1e308,", b"-1", b"0.5\n", b"1\n", b"inf\n", b"\f", b"Q0 ", b"\xef\xbb\xbf", b"\x1f\x8b"),
]
ROWS = 60
DAMAGED, FUZZED = 8000, 800_000  # files that are tried
QUIET = ("--threads", "1", "-q")
TRAIN = ("train", "--data", "t.svm", "--trees", "1", "--rankers", "1", *QUIET, "-o", "t.json")
EVAL = ("eval", *QUIET, "--resamples", "5")
READERS = {
    "t.svm": (TRAIN, ("predict", "-m", "in.json", "--data", "t.svm", *QUIET, "-o", "t.out")),
    "t.csv": (("convert", "t.csv", "t.out", "--to", "letor", *QUIET), ("show", "t.csv", "-q")),
    "t.tsv": (("convert", "t.tsv", "t.csv2", "--to", "csv", *QUIET),),
    "t.parquet": (("convert", "t.parquet", "t.out", "--to", "letor", *QUIET),),
    "t.svm.gz": (
        ("convert", "t.svm.gz", "t.out", "--to", "csv", *QUIET),
        (*EVAL, "-m", "in.json", "--data", "t.svm.gz"),
    ),
    "t.weights": ((*TRAIN[:2], "small.svm", *TRAIN[3:], "--weights", "t.weights"),),
    "t.scores": ((*EVAL, "--data", "small.svm", "--scores", "t.scores"),),
    "t.init": ((*TRAIN[:2], "small.svm", *TRAIN[3:], "--init-scores", "t.init"),),
    "t.positions": ((*TRAIN[:2], "small.svm", *TRAIN[3:], "--positions", "t.positions"),),
    "t.sizes": ((*TRAIN[:2], "sized.svm", *TRAIN[3:], "--query-sizes", "t.sizes"),),
    "t.monotone": ((*TRAIN[:2], "small.svm", *TRAIN[3:], "--monotone", "t.monotone"),),
    "t.qrels": ((*EVAL, "--qrels", "t.qrels", "--run", "sound.run"),),
    "t.run": ((*EVAL, "--qrels", "sound.qrels", "--run", "t.run"),),
    "t.settings": ((*TRAIN[:2], "small.svm", "--settings", "t.settings", *QUIET, "-o", "t.json"),),
    "t.report": (("show", "t.report"),),
    "t.by": ((*EVAL, "--data", "small.svm", "-m", "in.json", "--by", "t.by"),),
}
"""The commands that read a file of each kind; it is mutated, all others are sound."""


def prepare() -> dict[str, bytes]:
    """Write sound files; return the sound content of each file that is to be mutated."""
    lines = Path("d.svm").read_text().splitlines(keepends=True)[:ROWS]
    Path("small.svm").write_text("".join(lines))
    words = [line.split() for line in lines]
    Path("sized.svm").write_text("".join(" ".join([label, *cells]) + "\n" for label, _, *cells in words))
    queries = list(dict.fromkeys(query for _, query, *_ in words))
    counts = [sum(query == other for _, other, *_ in words) for query in queries]
    convert = ("convert", "-q", "small.svm")
    sound = {
        "t.svm": Path("small.svm").read_bytes(),
        "t.svm.gz": gzip.compress(Path("small.svm").read_bytes(), mtime=0),
    }
    for name, options in {"t.csv": (), "t.tsv": (), "t.parquet": (), "sound.qrels": ("--to", "qrels")}.items():
        if answered([*convert, name, *options])[0] == 0:
            sound[name] = Path(name).read_bytes()
    trec = ("predict", "-q", "-m", "in.json", "--data", "small.svm", "--format", "trec", "-o", "sound.run")
    assert answered(trec)[0] == 0
    sound["t.run"], sound["t.qrels"] = Path("sound.run").read_bytes(), sound.pop("sound.qrels")
    numbers = "".join(f"{number / 7}\n" for number in range(len(lines))).encode()
    sound |= {"t.weights": numbers, "t.scores": numbers, "t.init": numbers}
    sound["t.positions"] = b"".join(b"%d\n" % (number % 5) for number in range(len(lines)))
    sound["t.sizes"] = "".join(f"{count}\n" for count in counts).encode()
    sound["t.monotone"] = b"1 +1\n2 -1\n"
    sound["t.settings"] = b'{"trees": 2, "leaves": 5, "learning_rate": 0.1, "metric": "ndcg@5", "seed": 3}'
    sound["t.report"] = Path("in.report").read_bytes()
    sound["t.by"] = "".join(f"{query[4:]}\tg{number % 3}\n" for number, query in enumerate(queries)).encode()
    return sound


def attack(chance: random.Random, until: float) -> list[Tally]:
    """Mutate files until the time is over."""
    sound = prepare()
    tally, damaged = Tally("fuzzed data and side files", FUZZED), Tally("damaged .gz", DAMAGED)
    now = time.monotonic()
    first = now + (until - now) / 3
    in_batches(partial(_damaged, sound["t.svm.gz"]), damaged, chance.randrange(1 << 30), first, DAMAGED)
    in_batches(partial(_case, sound), tally, chance.randrange(1 << 30), until, FUZZED)
    tally.notes.append(f"of {len(sound)} kinds")
    return [damaged, tally]


def _damaged(sound: bytes, chance: random.Random) -> str:
    """Flip a bit of compressed data, cut it, or leave a piece out, and read it: refused, or the same rows."""
    at = chance.randrange(len(sound))
    how = chance.random()
    flipped = sound[:at] + bytes([sound[at] ^ 1 << chance.randrange(8)]) + sound[at + 1 :]
    content = flipped if how < 0.5 else sound[:at] if how < 0.8 else sound[:at] + sound[at + chance.randrange(1, 99) :]
    Path("t.svm.gz").write_bytes(content)
    Path("t.out").unlink(missing_ok=True)
    status, said = answered(READERS["t.svm.gz"][0])
    if status == 0 and Path("t.out").read_bytes() != Path("t.csv").read_bytes():
        return f"other rows, and no word of it\n{how} at {at}"
    if status and Path("t.out").exists():
        return "an output in spite of an error"
    return answer_wrong(status, said)


def _case(sound: dict[str, bytes], chance: random.Random) -> str:
    """Mutate a file, and let a command read it."""
    name = chance.choice(list(sound))
    content = sound[name]
    if name.endswith(".gz") and chance.random() < 0.5:
        content = gzip.compress(mutated(gzip.decompress(content), chance, PIECES), mtime=0)
    else:
        content = mutated(content, chance, PIECES)
    Path(name).write_bytes(content)
    shutil.rmtree("t.out", ignore_errors=True)
    status, said = answered(chance.choice(READERS[name]))
    found = answer_wrong(status, said)
    left = [path.name for path in Path().iterdir() if path.name.endswith(".tmp")]
    return found or (f"leaves files\n{left}" if left else "")
