"""Runs of small commands that call every kernel, to find out which signatures commands need.

`python tests/helpers/kernel_runs.py` writes lmart/kernels/signatures.txt anew.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import pkgutil
import shlex
import sys
import tempfile
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lmart.measures import MeasureKind

ROOT = Path(__file__).parent.parent.parent
SAMPLE = ROOT / "data" / "sample"

# What makes the files that the runs need; kernels that these call count too.
SETUP = """
train --data train.svm --trees 12 --out model.json
train --data train.svm --trees 2 --rankers 1 --out few.json
predict --model model.json --data test.svm --out scores.txt
convert test.svm test.csv
convert test.svm test.tsv
convert test.svm test.qrels
predict --model model.json --data test.svm --format trec --out test.run
convert named.csv named.tsv
train --data named.csv --trees 8 --out named.json
"""

# Each command in its plain form: what it compiles when nothing is kept yet is compiled ahead, in this order.
PLAIN = {
    "train": "train --data train.svm --out plain.json",
    "predict": "predict --model model.json --data test.svm",
    "eval": "eval --model model.json --data test.svm",
    "convert": "convert test.svm out.csv",
}

RUNS = """
train --data train.svm --valid vali.svm --early-stop 5 --trees 12 --report r.json --out m.json
train --data train.svm --rankers 4 --trees 8 --sample 0.5 --out m.json
train --data train.svm --rankers 1 --trees 4 --sample 0.3 --features 0.5 --out m.json
train --data train.svm --rankers 1 --trees 4 --tree depthwise --max-depth 3 --out m.json
train --data train.svm --rankers 1 --trees 4 --tree oblivious --features 0.5 --sample 0.5 --out m.json
train --data train.svm --rankers 1 --trees 4 --monotone 1:+1,2:-1 --out m.json
train --data train.svm --rankers 1 --trees 20 --linear 0.4 --out m.json
train --data train.svm --rankers 1 --trees 4 --categorical 5,6 --out m.json
train --data train.svm --rankers 1 --trees 4 --monotone 1:+1 --tree depthwise --features 0.5 --sample 0.5 --out m.json
train --data train.svm --rankers 1 --trees 4 --absent missing --min-docs 3 --leaves 31 --out m.json
train --data missing.svm --rankers 1 --trees 4 --absent missing --out m.json
train --data missing.svm --rankers 1 --trees 4 --tree oblivious --features 0.5 --out m.json
train --data missing.svm --rankers 1 --trees 4 --monotone 1:+1 --out m.json
train --data odd.svm --rankers 1 --trees 2 --max-bins 4 --min-docs 1 --duplicates last --allow-inf --out m.json
train --data scattered.svm --rankers 1 --trees 2 --group-by-qid --out m.json
train --data train.svm --objective {objective} --rankers 1 --trees 3 --sample 0.5 --out m.json
train --data train.svm --objective {objective} --rankers 1 --trees 3 --no-normalize --weights weights.txt --out m.json
train --data train.svm --objective lambdamart --rankers 1 --trees 3 --gain linear --truncation 3 --out m.json
train --data train.svm --objective lambdamart --rankers 1 --trees 3 --positions positions.txt --out m.json
train --data train.svm --init-scores start.txt --trees 4 --out m.json
train --data train.svm --trees 20 --continue-from model.json --rankers 1 --out m.json
train --data train.svm --folds 3 --trees 6 --early-stop 2 --oof oof.txt --out m.json
train --data train.svm --folds 3 --tune-trials 2 --trees 4 --out m.json
train --data train.svm --valid vali.svm --metric {measure} --trees 3 --rankers 1 --weights weights.txt --out m.json
train --data named.csv --valid named.tsv --trees 4 --out m.json
train --data wide.svm --valid wide.svm --early-stop 2 --trees 4 --rankers 1 --out m.json
train --data wide.svm --trees 3 --rankers 1 --absent missing --features 0.5 --sample 0.5 --linear 0.4 --out m.json
train --data rare.svm --valid rare.svm --min-docs 1 --trees 2 --rankers 1 --linear 0.4 --out m.json
train --data large.svm --trees 2 --rankers 1 --out m.json
train --data large.svm --trees 2 --rankers 1 --sample 0.3 --out m.json
predict --model model.json --data test.svm --format {form}
predict --model model.json --data test.svm --format jsonl --explain
predict --model model.json --data test.svm --format trec --top 3
predict --model model.json --data test.svm --why 161 S161-00 S161-01
predict --model model.json --data test.csv
predict --model model.json --data odd.svm --allow-inf --duplicates last
predict --model named.json --data named.tsv --format jsonl --explain
predict --model model.json --data scattered.svm --group-by-qid --format tsv
eval --model model.json --data test.svm --ties average --metric {measure}
eval --model model.json --data test.svm --metric {measure} --per-query q.tsv
eval --model model.json --data odd.svm --allow-inf --duplicates last
eval --model model.json --data test.csv --metric ndcg@5,map --gain linear --empty skip
eval --scores scores.txt --data test.svm --metric ndcg@5,map --json
eval --model few.json model.json --data test.svm --metric ndcg@5,map --ties docid --flips 200
eval --scores scores.txt --data test.svm --like xgboost --metric ndcg@5,map,p@3
eval --qrels test.qrels --run test.run --like trec_eval
show model.json --data test.svm
show test.svm
show test.csv --allow-inf
eval --scores scores.txt --data test.csv
convert train.svm o.csv
convert odd.svm o.csv --allow-inf --duplicates last --absent missing
convert test.csv o.svm
convert test.tsv o.csv
convert quoted.csv o.svm
convert named.csv o.tsv
convert scattered.svm o.svm --group-by-qid
convert odd.svm o.svm --group-by-qid --allow-inf --duplicates last
convert train.svm o.svm --ignore-columns 3,5
convert model.json o.txt --to lightgbm --verify test.svm
"""

SENDING = "sums of a shard for another process"  # in place of a command line: `send_sums`


def write_files(folder: Path) -> None:
    """Write the data of the runs: the sample, and rows of every other kind."""
    for name in ("train.svm", "vali.svm", "test.svm"):
        (folder / name).write_bytes((SAMPLE / name).read_bytes())
    lines = (SAMPLE / "train.svm").read_text().splitlines()
    n_queries = len({line.split()[1] for line in lines})
    sparse = [
        " ".join(word for k, word in enumerate(line.split("#")[0].split()) if k < 2 or (i + k) % 3)
        for i, line in enumerate(lines)
    ]
    (folder / "missing.svm").write_text(
        "".join(f"{line.replace('1:0.', '1:nan 21:0.', 1) if i % 5 == 0 else line}\n" for i, line in enumerate(sparse))
    )
    odd = [
        "2 qid:a 3:1.5 1:0.12345678901234567 99999999:1e-5 7:inf",
        "0 qid:a 5:1e300 5:2 123:12345678901234567890",
        "1 qid:a 1:-0.5 4000000000:7",
    ]
    (folder / "odd.svm").write_text("".join(f"{line}\n" for line in odd * 4))
    (folder / "scattered.svm").write_text("".join(f"{line}\n" for line in lines[::2] + lines[1::2]))
    (folder / "weights.txt").write_text("".join(f"{1 + i % 3}\n" for i in range(n_queries)))
    (folder / "positions.txt").write_text("".join(f"{i % 7}\n" for i in range(len(lines))))
    (folder / "start.txt").write_text("".join(f"{i % 5 / 10}\n" for i in range(len(lines))))
    rows = [
        f"{i % 5 % 3},q{i // 6},{i % 11},{i * 37 % 101 / 7},{'' if i % 4 else 'true'},1e-{i % 9},d{i}"
        for i in range(60)
    ]
    (folder / "named.csv").write_text(
        "label,qid,length,score,is_new,tiny,docid\n" + "".join(f"{row}\n" for row in rows)
    )
    (folder / "quoted.csv").write_text('label,qid,"a,b"\n1,q,"2.5"\n0,q,-3\n')
    wide = [
        f"{i % 5 % 3} qid:{i // 8} 1:{i % 11} "
        + " ".join(f"{2 + k * 50 + (i * (k + 7) + i // 9) % 50}:{1 + k % 2}" for k in range(6))
        for i in range(2400)
    ]
    (folder / "wide.svm").write_text("".join(f"{line}\n" for line in wide))
    rare = [f"{i % 5 % 3} qid:{i // 8} " + " ".join(f"{1 + i * 40 + k}:1" for k in range(40)) for i in range(1000)]
    (folder / "rare.svm").write_text("".join(f"{line}\n" for line in rare))  # more than 65,536 bins
    cells = " ".join(f"{k}:{{{k}}}" for k in range(4))
    large = [
        f"{i % 7 % 3} qid:{i // 700} " + cells.format(i % 3, i % 17, i * 7 % 1009 / 8, i % 400) for i in range(201_000)
    ]
    (folder / "large.svm").write_text("".join(f"{line}\n" for line in large))


def written(kind: MeasureKind) -> str:
    """Return a measure of a kind."""
    if kind.parameter == "recall level":
        return f"{kind.name}@0.5"
    return f"{kind.name}@3" if kind.cutoff == "needed" else kind.name


def command_lines() -> Iterator[str]:
    """Yield the command lines of all runs but the plain ones."""
    from lmart.formats.registry import RESULT_FORMATS
    from lmart.measures import KINDS
    from lmart.settings import OBJECTIVES

    values = {
        "objective": list(OBJECTIVES),
        "measure": [*map(written, KINDS.values()), "ndcg@3"],
        "form": list(RESULT_FORMATS),
    }
    for line in RUNS.strip().splitlines():
        name = next((name for name in values if f"{{{name}}}" in line), None)
        for value in values[name] if name else ("",):
            if value.startswith("iprec") and "--ties average" in line:
                continue
            if line.startswith("train") and value in KINDS and not KINDS[value].is_trained:
                continue
            yield line.replace(f"{{{name}}}", value)
    yield SENDING


def send_sums() -> None:
    """Write sums of a shard for another process, and read them again, as training on a cluster does."""
    import pickle

    import numpy as np

    from lmart.distributed.sums import SplitsDone

    sums = SplitsDone(np.zeros((1, 2), np.int64), np.zeros(1, np.int64), np.zeros((1, 4), np.int64))
    pickle.loads(pickle.dumps(sums))


def requests_of(*lines: str) -> dict[str, list[tuple[str, str]]]:
    """Run command lines in a fork; return the kernels and signatures that each is the first to ask for."""
    reader, writer = os.pipe()
    child = os.fork()
    if child:
        os.close(writer)
        with open(reader, "rb") as file:
            content = file.read()
        os.waitpid(child, 0)
        assert content, "a run failed"
        return {line: [(kernel, text) for kernel, text in found] for line, found in json.loads(content).items()}
    try:
        recorded = _run_and_record(lines)
        with open(writer, "wb") as file:
            file.write(json.dumps(recorded).encode())
        os._exit(0)
    except BaseException:
        traceback.print_exc(limit=-2)
        os._exit(1)


def _run_and_record(lines: Sequence[str]) -> dict[str, list[tuple[str, str]]]:
    from lmart.cli.main import main
    from lmart.kernels.numba_support import code_cache
    from lmart.kernels.numba_support.compile_ahead import describe

    recorded: dict[str, list[tuple[str, str]]] = {}
    errors = os.dup(2)
    for line in lines:
        found = recorded[line] = []
        code_cache.on_request = lambda name, types, found=found: found.append((name, describe(types)))
        with open("run.log", "wb") as log:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
        try:
            send_sums() if line == SENDING else main.main(shlex.split(line))
        except SystemExit as ending:
            if ending.code:
                os.dup2(errors, 2)
                raise AssertionError(f"{line}: {Path('run.log').read_text()[-500:]}") from None
    return recorded


def load_kernels() -> None:
    """Import everything that a run could import, so that forks need not."""
    import lmart.kernels

    for module in pkgutil.walk_packages(lmart.kernels.__path__, "lmart.kernels."):
        importlib.import_module(module.name)


def record(folder: Path) -> tuple[dict[tuple[str, str], set[str]], dict[str, list[tuple[str, str]]]]:
    """Run everything in `folder`; return which commands need each signature in their plain form, and what each asks.

    Where nothing is kept yet, a kernel may be compiled for another that calls it before Python asks for it.
    """
    write_files(folder)
    needed: dict[tuple[str, str], set[str]] = {}
    with contextlib.chdir(folder):
        setup = requests_of(*SETUP.strip().splitlines())
        plain = {name: requests_of(line)[line] for name, line in PLAIN.items()}
        others = requests_of(*command_lines())
    for name, found in plain.items():
        for request in found:
            needed.setdefault(request, set()).add(name)
    for found in (*setup.values(), *others.values()):
        for request in found:
            needed.setdefault(request, set())
    return needed, others


HEADER = """# Signatures of the kernels that commands call: kernel, seconds to compile it, commands that need it in
# their plain form, types. Written by `python tests/helpers/kernel_runs.py`.
"""


def seconds_of(needed: list[tuple[str, str]]) -> dict[tuple[str, str], float]:
    """Compile each signature anew and return the processor time that it took, rounded."""
    import time

    from lmart.kernels.numba_support import code_cache
    from lmart.kernels.numba_support.compile_ahead import parse

    found = {}
    with tempfile.TemporaryDirectory() as folder:
        code_cache.config.CACHE_DIR = folder
        for kernel, text in needed:
            start = time.thread_time()
            code_cache.called_by_python[kernel].compile(parse(text))
            seconds = time.thread_time() - start
            found[kernel, text] = round(max(seconds, 0.05), 1 if seconds > 1 else 2)
    return found


def write() -> None:
    """Write the table anew."""
    from lmart.kernels.numba_support.compile_ahead import TABLE

    load_kernels()
    with tempfile.TemporaryDirectory() as folder:
        record(Path(folder))  # fills the cache
        needed, _ = record(Path(folder))
    seconds = seconds_of(list(needed))
    lines = [
        f"{kernel} {seconds[kernel, text]} {','.join(sorted(commands)) or '-'} {text}"
        for (kernel, text), commands in needed.items()
    ]
    TABLE.write_text(HEADER + "".join(f"{line}\n" for line in lines), "utf-8")


def compare() -> None:
    """Print what the table lacks or has in vain."""
    from lmart.kernels.numba_support.compile_ahead import known_signatures

    load_kernels()
    table = {(signature.kernel, signature.text): signature.commands for signature in known_signatures()}
    with tempfile.TemporaryDirectory() as folder:
        needed, requests = record(Path(folder))
        if needed != table:  # what was compiled only now may have hidden requests
            needed, requests = record(Path(folder))
    for request in needed.keys() - table.keys():
        print("missing:", *request, [line for line, found in requests.items() if request in found][:2])
    for request in table.keys() - needed.keys():
        print("in vain:", *request)
    for request in table.keys() & needed.keys():
        if table[request] != needed[request]:
            print("commands:", *request, sorted(needed[request]))


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    compare() if "--compare" in sys.argv else write()
