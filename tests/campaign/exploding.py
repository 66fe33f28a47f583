"""Inputs that never end, or are far larger than they look: one line, within a ceiling of memory and time."""

from __future__ import annotations

import gzip
import json
import random
import time
from collections.abc import Callable
from pathlib import Path

from campaign.harness import Tally, attempt

CEILING = 3 << 30  # bytes of memory
SECONDS = 120.0
TRAIN = ("train", "--trees", "1", "--rankers", "1", "-q", "-o", "x.json", "--data")


def _gz(pieces: Callable[[], bytes], n: int) -> bytes:
    """Return a compressed file of n equal pieces."""
    made = gzip.compress(pieces(), 6, mtime=0)
    return made * n


def inputs() -> dict[str, bytes]:
    """Return hostile files by name."""
    zeros = _gz(lambda: bytes(1 << 24), 128)
    deep = b"[" * 50_000_000
    many = b",".join(b"f%d" % number for number in range(100_000))
    return {
        "zeros.gz": zeros,
        "ones.gz": _gz(lambda: b"1\n" * (1 << 22), 128),
        "blanks.gz": _gz(lambda: b" " * (1 << 24), 128),
        "deep.json": deep,
        "opened.json": b'{"format": "lmart", "version": 1, "trees": ' + deep,
        "line.svm": b"1 qid:1 " + b"1:1 " * (1 << 26),
        "comment.svm": b"1 qid:1 1:1 #" + b" " * (1 << 27),
        "wide.csv": b"label,qid," + many + b"\n" + (b"1,1" + b",1" * 100_000 + b"\n") * 2,
        "names.json": json.dumps({"format": "lmart", "version": 1, "feature_names": ["x"] * 3_000_000}).encode(),
        "index.svm": b"1 qid:1 " + b" ".join(b"%d:1" % (number * 7000) for number in range(300_000)) + b"\n",
        "blank.svm": b"\n" * (1 << 25),
        "digits.svm": b"1 qid:1 1:" + b"1" * (1 << 26) + b"\n",
        "xml.xml": b'<ensemble><tree id="1" weight="1">' + b"<split>" * 1_000_000,
        "tree.txt": b"tree\n" + b"\n" * 30_000_000,
        "tree2.txt": b"tree\nversion=v4\nmax_feature_idx=999999998\n" + b"x " * 1_000_000,
        "ubj.ubj": b"{L\0\0\0\0\0\0\0\7learner" + b"{L\0\0\0\0\0\0\0\1a" * 1_000_000,
        "checkpoint": b'{"format": "lmart-checkpoint", ' + b" " * 100_000_000,
        "list.json": b"[" + b"0," * 20_000_000 + b"0]",
    }


def commands(path: str) -> list[tuple[str, ...]]:
    """Return the commands that read a file as what it may be."""
    return [
        ("predict", "-q", "-m", path, "--data", "v.svm", "-o", "x"),
        (*TRAIN, path),
        ("convert", "-q", path, "x", "--to", "lmart"),
        ("show", path),
        (*TRAIN, "d.svm", "--weights", path),
        (*TRAIN, "d.svm", "--settings", path),
        (*TRAIN, "d.svm", "--checkpoint", path),
        ("eval", "-q", "--data", "v.svm", "--scores", path),
        ("eval", "-q", "--qrels", path, "--run", path),
        ("eval", "-q", "--data", "v.svm", "-m", "in.json", "--by", path),
    ]


def attack(chance: random.Random, until: float) -> list[Tally]:
    """Let every command read every file, as far as the time allows."""
    tally = Tally("endless and exploding inputs")
    every = [("/dev/zero", command) for command in commands("/dev/zero")]
    made = inputs()
    every += [(name, command) for name in made for command in commands(name)]
    chance.shuffle(every)
    tally.asked = len(every)
    for name, command in every:
        if time.monotonic() > until:
            break
        if name in made:
            Path(name).write_bytes(made[name])
        ended = attempt(command, limit=SECONDS)
        if name in made:
            Path(name).unlink(missing_ok=True)
        wrong = ended.wrong((0, 1, 2))
        if ended.peak > CEILING:
            wrong.append(f"takes more than {CEILING >> 20} MiB")
        tally.add(wrong, f"{command}: {ended.seconds:.0f} s, {ended.peak >> 20} MiB, {ended.said[-300:]!r}")
    return [tally]
