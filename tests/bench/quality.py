"""Test NDCG@10 of lmart with its defaults beside the other tools, on the folds of real sets, with paired tests.

    python tests/bench/quality.py --data FOLDER [--tools lmart,catboost...] [--sets mq2008,lightgbm,ohsumed2]
        [--options "--l2 1"] [--seeds 0,1,2] [--resplit N] [--peers-cache FILE] [--json FILE]

FOLDER holds mq2008/S1.svm.gz ... S5.svm.gz, ohsumed2/ alike, and lightgbm/train.svm.gz and test.svm.gz. Fold k trains
on parts k, k+1, k+2 in a ring, validates on part k+3 and tests on part k+4; of lightgbm's training queries each fifth
is for validation. All: rate 0.05, up to 500 trees, early stopping after 50 rounds on the validation part's NDCG@10. The
peers: 31 leaves, 15 on lightgbm, which is the smallest; CatBoost depth 6. lmart is run as a command:

    lmart train --learning-rate 0.05 --trees 500 --valid V --early-stop 50 --seed SEED, and what --options says

NDCG@10: gain 2^label - 1, ties in the order of the file, queries without a relevant document left out; mean over folds;
tools that draw by chance: mean over seeds. p: two-sided paired randomization test, 10,000 random sign flips, over the
queries of all folds, each query's value being its mean over seeds.

--resplit deals the queries of each set into as many new parts, in an order drawn by N. lightgbm's are six, and each is
the test set once, as 50 queries alone say little. Each N has a peers' cache of its own.
--peers-cache keeps what the peers reached, and what is there is not run again:
    {"machine": ..., "runs": {PEER: {SET: {FOLD: {SEED: {"round": N, "valid": X, "ndcg": [...]}}}}}}
"valid" is the validation part's NDCG@10 at that round, "ndcg" that of each test query in file order, null where no
document is relevant.
--json writes the same form for lmart, and the table.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from judged import Judged, load, ndcg_by_query
from ranking_peers import PATIENCE, PEERS, RATE, ROUNDS, installed, listed, run
from turns import machine

from lmart.array_types import Float64Array

SETS = ("mq2008", "lightgbm", "ohsumed2")
LEAVES = {"lightgbm": 15}  # the set with the fewest documents
FLIPS = 10_000

Runs = dict[str, dict[str, dict[str, dict[str, Any]]]]  # by tool or peer, set, fold and seed


class Fold(NamedTuple):
    """The files of one fold."""

    train: list[str]
    valid: str
    test: str


def folds(folder: Path, name: str, work: Path, resplit: int | None) -> list[Fold]:
    """Return the folds of a set; `work` takes the files that have to be made."""
    own, n_parts = folder / name, 6 if name == "lightgbm" else 5
    files = [own / f"S{part}.svm.gz" for part in range(1, 6)]
    if name == "lightgbm":
        files = [own / "test.svm.gz", own / "train.svm.gz"]
    if resplit is not None:
        files = _dealt_anew([query for path in files for query in _queries(path)], n_parts, resplit, work / name)
    if name == "lightgbm":
        tests = files[:1] if resplit is None else files
        return [_of_lightgbm([path for path in files if path != test], test, work) for test in tests]
    ring = [[str(files[(k + i) % 5]) for i in range(5)] for k in range(5)]
    return [Fold(one[:3], one[3], one[4]) for one in ring]


def _queries(path: Path) -> list[list[bytes]]:
    """Return the rows of each query of a file."""
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as rows:
        return [list(of_query) for _, of_query in groupby(rows, lambda row: row.split(b" ", 2)[1])]


def _write(queries: Iterable[list[bytes]], path: Path) -> Path:
    path.write_bytes(b"".join(row for query in queries for row in query))
    return path


def _dealt_anew(queries: list[list[bytes]], n_parts: int, seed: int, work: Path) -> list[Path]:
    """Deal queries, with new ids, into parts of nearly the same number."""
    named = [[re.sub(rb" qid:\S+", b" qid:%d" % number, row, count=1) for row in q] for number, q in enumerate(queries)]
    order = np.random.default_rng(seed).permutation(len(named))
    work.mkdir(exist_ok=True)
    return [
        _write((named[q] for q in part), work / f"part-{number}.svm")
        for number, part in enumerate(np.array_split(order, n_parts))
    ]


def _of_lightgbm(others: Iterable[Path], test: Path, work: Path) -> Fold:
    """Return a fold of lightgbm: each fifth of the other queries, in file order, is for validation."""
    queries, name = [query for path in others for query in _queries(path)], test.name.split(".")[0]
    train = _write((query for number, query in enumerate(queries, 1) if number % 5), work / f"train-{name}.svm")
    return Fold([str(train)], str(_write(queries[4::5], work / f"valid-{name}.svm")), str(test))


def run_lmart(fold: Fold, test: Judged, seed: int, options: list[str], work: Path) -> dict[str, Any]:
    """Train and score as a user would; return the same as `ranking_peers.run`."""
    model, scores, report = (str(work / name) for name in ("model.json", "scores.txt", "report.json"))
    lmart = [sys.executable, "-m", "lmart"]
    command = [*lmart, "train", "-q", "--data", *fold.train, "--valid", fold.valid, "--learning-rate", str(RATE)]
    command += ["--trees", str(ROUNDS), "--early-stop", str(PATIENCE), "--seed", str(seed)]
    subprocess.run([*command, "--out", model, "--report", report, *options], check=True)
    subprocess.run([*lmart, "predict", "-q", "-m", model, "--data", fold.test, "--out", scores], check=True)
    told = json.loads(Path(report).read_text())
    values = ndcg_by_query(test, np.loadtxt(scores, ndmin=1))
    return {"round": told["best_round"], "valid": told["validation"][0], "ndcg": listed(values)}


def by_query(runs: Runs, tool: str, name: str) -> list[Float64Array]:
    """Return, for each fold, the mean over seeds of each query's NDCG@10."""
    return [
        np.mean([np.array(one["ndcg"], np.float64) for one in seeds.values()], axis=0)
        for _, seeds in sorted(runs[tool][name].items())
    ]


def mean_of_folds(values: list[Float64Array]) -> float:
    """Return the mean over folds of the means over queries."""
    return float(np.mean([np.nanmean(fold) for fold in values]))


def p_value(differences: Float64Array, weights: Float64Array | None = None) -> float:
    """Return how often random signs give the (weighted) mean difference at least the size that was seen."""
    weighted = differences if weights is None else differences * weights
    rng = np.random.default_rng(0)
    signs = rng.integers(0, 2, (FLIPS, len(weighted)), dtype=np.int8) * 2 - 1
    seen = abs(weighted.sum())
    as_extreme = np.count_nonzero(np.abs(signs @ weighted) >= seen * (1 - 1e-12))
    return (1 + int(as_extreme)) / (FLIPS + 1)


def compare(runs: Runs, own: str, peer: str, sets: list[str]) -> dict[str, dict[str, float]]:
    """Return, for each set and for the mean of all sets, the peer's mean, lmart's lead over it and its p-value."""
    result, pooled, weights = {}, [], []
    for name in sets:
        ours, theirs = by_query(runs, own, name), by_query(runs, peer, name)
        differences = np.concatenate([a - b for a, b in zip(ours, theirs, strict=True)])
        differences = differences[~np.isnan(differences)]
        lead = mean_of_folds(ours) - mean_of_folds(theirs)
        result[name] = {"peer": mean_of_folds(theirs), "lead": lead, "p": p_value(differences)}
        pooled.append(differences)
        weights.append(np.full(len(differences), 1.0 / len(differences)))
    result["mean"] = {key: float(np.mean([one[key] for one in result.values()])) for key in ("peer", "lead")}
    result["mean"]["p"] = p_value(np.concatenate(pooled), np.concatenate(weights))
    return result


def show_table(runs: Runs, sets: list[str]) -> dict[str, Any]:
    """Print and return each tool's means, and the comparison of the first tool with each other."""
    tools = [tool for tool in runs if all(name in runs[tool] for name in sets)]
    means = {tool: {name: mean_of_folds(by_query(runs, tool, name)) for name in sets} for tool in tools}
    print(f"\n{'test NDCG@10':22}" + "".join(f"{name:>12}" for name in (*sets, "mean")))
    for tool in tools:
        row = [*means[tool].values(), float(np.mean(list(means[tool].values())))]
        print(f"{tool:22}" + "".join(f"{value:12.4f}" for value in row))
    if "lmart" not in tools:
        return {"means": means}
    print(f"\n{'lmart less peer (p)':22}" + "".join(f"{name:>18}" for name in (*sets, "mean")))
    pairs = {peer: compare(runs, "lmart", peer, sets) for peer in tools if peer != "lmart"}
    for peer, compared in pairs.items():
        cells = [f"{one['lead']:+.4f} ({one['p']:.3f})" for one in compared.values()]
        print(f"{peer:22}" + "".join(f"{cell:>18}" for cell in cells))
    return {"means": means, "pairs": pairs}


def main() -> None:
    """Run what is not in the cache, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words = lambda text: text.split(",")  # noqa: E731
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", type=words, default=list(SETS))
    parser.add_argument("--tools", type=words, default=["lmart", *installed()], help="lmart and beginnings of peers")
    parser.add_argument("--options", type=shlex.split, default=[], help="further options of lmart train")
    parser.add_argument("--seeds", type=words, default=["0", "1", "2"])
    parser.add_argument("--resplit", type=int, help="deal the queries into new parts, in an order drawn by this number")
    parser.add_argument("--threads", type=int, default=1, help="threads of the peers")
    parser.add_argument("--peers-cache", type=Path)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    peers = [name for name in PEERS if any(name.startswith(tool) for tool in args.tools)]
    cached: dict[str, Any] = {"machine": machine("lightgbm", "xgboost", "catboost"), "runs": {}}
    print(", ".join(f"{key} {value}" for key, value in cached["machine"].items()))
    if args.peers_cache and args.peers_cache.exists():
        cached = json.loads(args.peers_cache.read_text())
    own: Runs = {"lmart": {}} if "lmart" in args.tools else {}
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        for name in args.sets:
            for number, fold in enumerate(folds(args.data, name, work, args.resplit), 1):
                test = load([fold.test])
                train: Judged | None = None
                for peer in peers:
                    kept = cached["runs"].setdefault(peer, {}).setdefault(name, {}).setdefault(str(number), {})
                    seeds = args.seeds if PEERS[peer].random else args.seeds[:1]
                    for seed in [seed for seed in seeds if seed not in kept] if PEERS[peer].random or not kept else []:
                        if train is None:
                            train, valid = load(fold.train), load([fold.valid])
                        kept[seed] = run(peer, train, valid, test, LEAVES.get(name, 31), int(seed), args.threads)
                        _say(peer, name, number, seed, kept[seed])
                        if args.peers_cache:
                            args.peers_cache.write_text(json.dumps(cached) + "\n")
                for seed in args.seeds if own else []:
                    done = run_lmart(fold, test, int(seed), args.options, work)
                    own["lmart"].setdefault(name, {}).setdefault(str(number), {})[seed] = done
                    _say("lmart", name, number, seed, done)
    runs = own | {peer: _of_seeds(cached["runs"][peer], args.seeds) for peer in peers}
    table = show_table(runs, args.sets)
    if args.json:
        args.json.write_text(json.dumps({"machine": machine(), "options": args.options, "runs": own} | table) + "\n")


def _of_seeds(runs: dict[str, Any], seeds: list[str]) -> dict[str, Any]:
    """Return the runs of these seeds, or all where the peer does not draw by chance."""
    return {
        name: {
            fold: {seed: one for seed, one in by_seed.items() if seed in seeds or len(by_seed) == 1}
            for fold, by_seed in by_fold.items()
        }
        for name, by_fold in runs.items()
    }


def _say(tool: str, name: str, fold: int, seed: str, done: dict[str, Any]) -> None:
    value = np.nanmean(np.array(done["ndcg"], np.float64))
    print(f"{name} fold {fold}, {tool}, seed {seed}: {value:.4f} at round {done['round']}", flush=True)


if __name__ == "__main__":
    main()
