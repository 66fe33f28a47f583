"""Lists of options with hostile values: one line and the right status, or the work is done."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path

import click

from campaign.harness import Tally, answer_wrong, answered, in_batches
from campaign.hostile_texts import prepare

VALUES = (
    *("0", "-1", "1", "2", "3.5", "1e400", "nan", "inf", "-inf", "1" + "0" * 30, "1" + "0" * 400, "", " ", "x", "-"),
    *("--", "\x1b[31m", "\udcff", "é", "a,b,,c", ",", "1:+1,2:-1", "1:+1", "in.json", "small.svm", "no such file", "."),
    *("/", "/dev/null", "ndcg@5", "ndcg@5,map", "err@10(max=5)", "ndcg@0", "0,1,3,7", "exp2", "linear", "auto", "@x"),
    *("a" * 5000, "1_0", "0x10", "+1", "1 2", "'", '"', "*.svm", "in.report", "1e-320", "2147483648", "tcp://x"),
)
BASES = {
    "train": ["--data", "small.svm", "--trees", "1", "--rankers", "1", "--out", "o.json"],
    "predict": ["-m", "in.json", "--data", "small.svm", "-o", "o.txt"],
    "eval": ["-m", "in.json", "--data", "small.svm", "--resamples", "3"],
    "convert": ["in.json", "o.txt"],
    "show": ["in.json"],
}
LISTS = 200_000  # that are tried
LEFT_OUT = ("dask", "dask_security", "completion", "help", "tune")  # which start processes, or take their time
FEW = {"trees": "2", "rankers": "2", "folds": "2", "tune_trials": "1", "resamples": "5", "flips": "5", "threads": "1"}
INPUTS = ("small.svm", "in.json", "in.report", "d.svm")


def attack(chance: random.Random, until: float) -> list[Tally]:
    """Try lists of options until the time is over."""
    prepare()
    tally = Tally("lists of options", LISTS)
    kept = {name: Path(name).read_bytes() for name in INPUTS}
    in_batches(partial(_case, kept), tally, chance.randrange(1 << 30), until, LISTS)
    return [tally]


def _case(kept: dict[str, bytes], chance: random.Random) -> str:
    """Run a command with some options more."""
    from lmart.cli.main import main

    command = chance.choice(list(BASES))
    context = click.Context(main, info_name="lmart")
    found = main.get_command(context, command)
    assert found is not None
    options = [each for each in found.params if isinstance(each, click.Option) and each.name not in LEFT_OUT]
    words = [command, *BASES[command]]
    for option in chance.sample(options, chance.choice((1, 1, 2, 3, 5))):
        words.append(chance.choice([*option.opts, *option.secondary_opts]))
        if not option.is_flag and not option.count:
            few = FEW.get(option.name or "")
            words.append(few if few is not None and chance.random() < 0.7 else chance.choice(VALUES))
    if chance.random() < 0.1:
        words.insert(chance.randrange(1, len(words) + 1), chance.choice(VALUES))
    words.append("-q")
    status, said = answered(words)
    changed = [name for name, content in kept.items() if Path(name).read_bytes() != content]
    for name in changed:
        Path(name).write_bytes(kept[name])
    if any(name in BASES[command] for name in changed):  # others may be outputs by what was drawn
        return f"changes inputs\n{words}"
    wrong = answer_wrong(status, said)
    return f"{wrong}\n{words}" if wrong else ""
