"""Compare two versions of lmart: the bytes of their models, scores, measures and conversions, by about 120 commands.

    python tests/bench/same_bytes.py LMART_A LMART_B [--only TEXT]

Both are programs, such as bin/lmart of two environments. Each runs every command in a folder of its own that has the
files of data/sample. Exit status, standard output and all files but reports, which hold times, must be equal; standard
error may differ.
"""

from __future__ import annotations

import argparse
import collections
import hashlib
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

SAMPLE = Path(__file__).parents[2] / "data" / "sample"
OBJECTIVES = ["lambdamart", "ranknet", "lambdaloss", "map", "mrr", "err", "xendcg", "yetirank", "lambdamart+yetirank"]
PRESETS = ["lightgbm", "xgboost", "ranklib", "trec_eval", "sklearn", "letor4", "mslr", "gdeval"]

TRAINING = {
    "default": "",
    **{name: f"--objective {name}" for name in OBJECTIVES},
    **{f"{name} trees": f"--tree {name} --rankers 1" for name in ("leafwise", "depthwise", "oblivious")},
    **{f"{name} trees, sampled": f"--tree {name} --sample 0.6 --features 0.7" for name in ("leafwise", "oblivious")},
    **{f"{number} threads": f"--threads {number} --sample 0.5" for number in (1, 2, 3)},
    "one ranker": "--rankers 1",
    "three rankers": "--rankers 3",
    "another seed": "--sample 0.5 --seed 3",
    "few bins": "--max-bins 31 --min-docs 3",
    "shallow": "--max-depth 3 --l2 1",
    "monotone": "--monotone 1:+1,2:-1",
    "monotone, oblivious": "--monotone 1:+1 --tree oblivious",
    "weights of queries": "--weights by-query.txt",
    "weights of rows": "--weights by-row.txt",
    "initial scores": "--init-scores initial.txt",
    "positions": "--positions positions.txt --position-bias-reg 1",
    "early stopping": "--valid vali.svm --early-stop 3 --report stopped.report",
    "settings of a report": "--settings stopped.report",
    "early stopping, two sets": "--valid vali.svm test.svm --early-stop 3 --metric map",
    "folds": "--folds 3 --oof oof.txt --early-stop 3",
    "tuning": "--folds 3 --tune-trials 2",
    "linear gain": "--gain linear",
    "table of gains": "--gain 0,1,3,7,15",
    "truncation": "--truncation 5",
    "not normalized": "--no-normalize",
    "steep": "--sigma 2",
    "absent is missing": "--absent missing",
}
TARGETS = {
    "lightgbm": "txt",
    "lightgbm-json": "lightgbm.json",
    "xgboost": "xgboost.json",
    "xgboost-ubj": "ubj",
    "ranklib": "ranklib.xml",
    "quickrank": "quickrank.xml",
    "solr": "solr.json",
    "onnx": "onnx",
    "c": "c",
}
ONE_WAY = ("onnx", "c")


def commands() -> Iterator[tuple[str, str]]:
    """Yield the name and the arguments of each command; later ones read what earlier ones wrote."""
    for name, options in TRAINING.items():
        yield f"train: {name}", f"train -q --data train.svm --trees 15 {options} -o model.json"
    yield "train: continued", "train -q --data train.svm --trees 9 --continue-from model.json -o continued.json"
    for ending in ("csv", "tsv.gz", "parquet"):
        yield f"convert to {ending}", f"convert -q train.svm train.{ending}"
        yield f"train on {ending}", f"train -q --data train.{ending} --trees 5 -o {ending}.json"
    yield "convert csv to LETOR", "convert -q train.csv back.svm"
    yield "convert to qrels", "convert -q test.svm test.qrels"
    yield "train: trees to convert", "train -q --data train.svm --trees 20 -o mean.json"
    yield "train: oblivious trees to convert", "train -q --data train.svm --tree oblivious --trees 9 -o oblivious.json"
    for model in ("mean", "oblivious", "csv"):
        for target, ending in TARGETS.items():
            yield f"convert {model} to {target}", f"convert -q {model}.json {model}.{ending} --to {target}"
            if target not in ONE_WAY:
                yield f"convert {model} back from {target}", f"convert -q {model}.{ending} {model}-{target}-back.json"
                yield f"predict {model}, {target}", f"predict -q -m {model}.{ending} --data test.svm"
    for form in ("scores", "tsv", "jsonl", "trec"):
        yield f"predict: {form}", f"predict -q -m mean.json --data test.svm --format {form}"
    yield "predict: contributions", "predict -q -m mean.json --data test.svm --format jsonl --explain"
    yield "predict: csv", "predict -q -m csv.json --data train.csv"
    yield "predict: scores", "predict -q -m mean.json --data test.svm -o scores.txt"
    yield "predict: run", "predict -q -m mean.json --data test.svm --format trec -o mean.run"
    for preset in PRESETS:
        yield f"eval: {preset}", f"eval -q --data test.svm --scores scores.txt --like {preset} --json"
    measures = "--metric ndcg@5,map,err@10,mrr,p@5 --per-query queries.tsv"
    yield "eval: two models", f"eval -q --data test.svm -m mean.json continued.json {measures} --json"
    yield "eval: run", "eval -q --qrels test.qrels --run mean.run --json"
    for options in ("--json", "--tsv", "--data test.svm --json", "--tree 1 --json"):
        yield f"show: {options}", f"show -q mean.json {options}"


class Made(NamedTuple):
    """What a command made: exit status, and digests of standard output and of each file that is new or has changed."""

    status: int
    output: str
    files: Mapping[str, str]


def main() -> None:
    """Print each command whose results differ; exit with 1 when there is one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs=2, metavar="LMART", type=Path)
    parser.add_argument("--only", default="", help="commands whose names have this text, and no others")
    args = parser.parse_args()
    statuses: collections.Counter[int] = collections.Counter()
    n_different = 0
    with tempfile.TemporaryDirectory() as name:
        folders: dict[Path, dict[str, str]] = {Path(name, "a"): {}, Path(name, "b"): {}}
        for folder, seen in folders.items():
            write_data(folder)
            seen.update(digests_in(folder))
        for title, line in commands():
            if args.only not in title:
                continue
            first, second = (
                run(program.absolute(), line, folder, seen)
                for program, (folder, seen) in zip(args.programs, folders.items(), strict=True)
            )
            statuses[first.status] += 1
            if first.status:
                print(f"{title}: exit status {first.status} of the first: lmart {line}")
            if first != second:
                n_different += 1
                print(f"{title}: {', '.join(differences(first, second))}: lmart {line}", flush=True)
    print(f"{statuses.total()} commands, {n_different} differ; exit statuses of the first: {dict(statuses)}")
    sys.exit(n_different > 0)


def write_data(folder: Path) -> None:
    """Write the sample to a new folder, with weights, initial scores and positions for its training set."""
    shutil.copytree(SAMPLE, folder)
    rows = (folder / "train.svm").read_text().splitlines()
    n_queries = len({row.split()[1] for row in rows})
    columns: dict[str, list[float]] = {
        "by-query": [1 + number % 3 for number in range(n_queries)],
        "by-row": [1 + number % 4 / 4 for number in range(len(rows))],
        "initial": [number % 7 / 10 for number in range(len(rows))],
        "positions": [1 + number % 9 for number in range(len(rows))],
    }
    for name, numbers in columns.items():
        (folder / f"{name}.txt").write_text("".join(f"{number}\n" for number in numbers))


def run(program: Path, line: str, folder: Path, seen: dict[str, str]) -> Made:
    """Run a command in a folder; `seen` has its files by their digests, and is brought up to date."""
    done = subprocess.run(
        [program, *shlex.split(line)], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False
    )
    files = {name: found for name, found in digests_in(folder).items() if seen.get(name) != found}
    seen.update(files)
    return Made(done.returncode, digest(done.stdout), files)


def digests_in(folder: Path) -> dict[str, str]:
    """Return the digests of the files of a folder, by name."""
    return {path.name: digest(path.read_bytes()) for path in folder.iterdir() if path.suffix != ".report"}


def digest(content: bytes) -> str:
    """Return the SHA-256 of bytes."""
    return hashlib.sha256(content).hexdigest()


def differences(first: Made, second: Made) -> Iterator[str]:
    """Yield what two results differ in."""
    if first.status != second.status:
        yield f"exit status {first.status} and {second.status}"
    if first.output != second.output:
        yield "standard output"
    yield from sorted({name for name, _ in first.files.items() ^ second.files.items()})


if __name__ == "__main__":
    main()
