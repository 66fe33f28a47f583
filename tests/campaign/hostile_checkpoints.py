"""Checkpoints, mutated, most of them with the hash that goes with their content: refused, or gone on from."""

from __future__ import annotations

import hashlib
import json
import random
from functools import partial
from pathlib import Path

from campaign.harness import Tally, answer_wrong, answered, in_batches, mutated
from campaign.hostile_models import PIECES, mutated_document

RUNS: tuple[tuple[str, ...], ...] = (
    ("--rankers", "2", "--trees", "8"),
    ("--rankers", "1", "--trees", "8", "--valid", "small-valid.svm", "--early-stop", "3"),
    ("--folds", "2", "--trees", "6", "--rankers", "1", "--early-stop", "3"),
)
CHECKPOINTS = 20_000  # that are tried
USUAL = ("--leaves", "4", "--min-docs", "2", "--threads", "1", "-q", "--checkpoint", "run", "--out", "run.json")


def attack(chance: random.Random, until: float) -> list[Tally]:
    """Mutate checkpoints until the time is over."""
    lines = Path("d.svm").read_text().splitlines(keepends=True)
    Path("small.svm").write_text("".join(lines[:120]))
    Path("small-valid.svm").write_text("".join(lines[120:200]))
    sound = {words: _interrupted(words, rounds) for words in RUNS for rounds in (2, 5)}
    tally = Tally("mutated checkpoints", CHECKPOINTS)
    in_batches(partial(_case, sound), tally, chance.randrange(1 << 30), until, CHECKPOINTS)
    return [tally]


def _command(words: tuple[str, ...]) -> list[str]:
    return ["train", "--data", "small.svm", *words, *USUAL]


def _interrupted(words: tuple[str, ...], rounds: int) -> bytes:
    """Return the checkpoint of a run that is interrupted after so many rounds."""
    from lmart.training.tree_log import LoggedRound, TreeLog

    add, left = TreeLog.add, [rounds]

    def counted(self: TreeLog, done: LoggedRound) -> None:
        add(self, done)
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt

    TreeLog.add = counted  # type: ignore[method-assign]
    try:
        status, said = answered(_command(words))
    finally:
        TreeLog.add = add  # type: ignore[method-assign]
    assert status == 130, said
    content = Path("run").read_bytes()
    Path("run").unlink()
    return content


def _case(sound: dict[tuple[str, ...], bytes], chance: random.Random) -> str:
    """Mutate a checkpoint, then go on from it or show it."""
    words = chance.choice(list(sound))
    lines = sound[words].splitlines(keepends=True)[:-1]
    for _ in range(chance.choice((1, 1, 2))):
        number = chance.randrange(len(lines))
        lines[number] = mutated_document(lines[number], chance) + b"\n"
        if chance.random() < 0.2:
            lines[number] = mutated(lines[number], chance, PIECES)
        if chance.random() < 0.05:
            lines.insert(chance.randrange(len(lines) + 1), chance.choice(lines))
    content = b"".join(lines)
    digest = hashlib.blake2b(content, digest_size=16).hexdigest()
    Path("run").write_bytes(content + json.dumps({"hash": digest}).encode() + b"\n")
    Path("run.json").unlink(missing_ok=True)
    command = _command(words) if chance.random() < 0.7 else ["show", "run", *chance.choice(([], ["--json"]))]
    status, said = answered(command)
    if status == 0 and command[0] == "train" and not Path("run.json").exists():
        return "status 0 without a model"
    if status and Path("run.json").exists():
        return "a model in spite of an error"
    return answer_wrong(status, said)
