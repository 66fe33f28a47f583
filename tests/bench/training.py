"""Training time beside LightGBM and XGBoost, turn by turn in one run, as ratios.

    python tests/bench/training.py --data TRAIN.svm [--test TEST.svm] [--parts total,tree,threads]
                                   [--leaves 64,31] [--peers lightgbm,xgboost] [--repeats 3] [--json FILE]

Each repeat runs every tool once, in the opposite order of the one before; a ratio is taken within a repeat. Printed are
the median and the range of the ratios, lmart over peer: below 1 lmart is faster. Seconds alone say little: they change
with the machine and with what else runs on it. All get the same settings, dense cells and all documents.

tree     seconds a tree, data in memory and binned: the median over the rounds of one training
threads  lmart with all processors over lmart with one, seconds a tree
total    whole processes, text file to model file, 100 trees: wall time, peak memory, and NDCG@10 on --test.
         LightGBM cannot read `qid:`; it gets the text without it and a file of query sizes, made beforehand.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

from turns import Turns, machine, show, take_turns, whole_run

LIGHTGBM = {
    "objective": "lambdarank",
    "learning_rate": 0.1,
    "min_data_in_leaf": 20,
    "min_sum_hessian_in_leaf": 1e-3,
    "lambda_l2": 0.0,
    "max_bin": 255,
    "lambdarank_truncation_level": 30,
    "verbose": -1,
}
QUANTIZED = {"use_quantized_grad": True, "num_grad_quant_bins": 4, "quant_train_renew_leaf": True}
XGBOOST = {
    "objective": "rank:ndcg",
    "lambdarank_pair_method": "topk",
    "lambdarank_num_pair_per_sample": 30,
    "grow_policy": "lossguide",
    "tree_method": "hist",
    "max_depth": 0,
    "eta": 0.1,
    "reg_lambda": 0.0,
    "min_child_weight": 1e-3,
    "max_bin": 256,
}
PEERS = ("lightgbm", "lightgbm-quantized", "xgboost")


class Trainers:
    """One data set in memory, ready for each tool; a call trains and returns the seconds a tree."""

    def __init__(self, path: str, rounds: int) -> None:
        from lmart.formats.options import ReadOptions
        from lmart.formats.registry import read_dataset

        self.data = read_dataset([path], ReadOptions())
        self.rounds = rounds
        self._prepared: dict[str, Any] = {}

    def _seconds(self, stamps: list[float]) -> float:
        return statistics.median(b - a for a, b in pairwise(stamps[2:]))

    def lmart(self, leaves: int, threads: int) -> float:
        from lmart.boosting import train
        from lmart.settings import TrainSettings
        from lmart.threads import WorkerPool

        stamps: list[float] = []
        settings = TrainSettings(trees=self.rounds, leaves=leaves, sample=1.0)
        with WorkerPool(threads) as pool:
            train(self.data, [], settings, pool, lambda _: stamps.append(time.perf_counter()))
        return self._seconds(stamps)

    def _sizes(self) -> Any:
        return self.data.query_offsets[1:] - self.data.query_offsets[:-1]

    def lightgbm(self, leaves: int, threads: int, **more: Any) -> float:
        import lightgbm

        if "lightgbm" not in self._prepared:
            cells = self.data.features.dense(self.data.n_features, 0.0)
            made = lightgbm.Dataset(cells, self.data.labels, group=self._sizes(), params=LIGHTGBM)
            self._prepared["lightgbm"] = made.construct()
        stamps: list[float] = []
        lightgbm.train(
            LIGHTGBM | {"num_leaves": leaves, "num_threads": threads} | more,
            self._prepared["lightgbm"],
            self.rounds,
            callbacks=[lambda _: stamps.append(time.perf_counter())],
        )
        return self._seconds(stamps)

    def xgboost(self, leaves: int, threads: int) -> float:
        import numpy as np
        import xgboost

        if "xgboost" not in self._prepared:
            cells = self.data.features.dense(self.data.n_features, 0.0).astype(np.float32)
            qid = np.repeat(np.arange(self.data.n_queries), self._sizes())
            self._prepared["xgboost"] = xgboost.QuantileDMatrix(cells, self.data.labels, qid=qid, max_bin=256)
        stamps: list[float] = []

        class Stamp(xgboost.callback.TrainingCallback):  # type: ignore[misc]
            def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
                stamps.append(time.perf_counter())
                return False

        params = XGBOOST | {"max_leaves": leaves, "nthread": threads}
        xgboost.train(params, self._prepared["xgboost"], self.rounds, callbacks=[Stamp()])
        return self._seconds(stamps)

    def turn(self, peer: str, leaves: int, threads: int) -> Callable[[], float]:
        calls: dict[str, Callable[[], float]] = {
            "lmart": lambda: self.lmart(leaves, threads),
            "lightgbm": lambda: self.lightgbm(leaves, threads),
            "lightgbm-quantized": lambda: self.lightgbm(leaves, threads, **QUANTIZED),
            "xgboost": lambda: self.xgboost(leaves, threads),
        }
        return calls[peer]


def part_tree(args: argparse.Namespace, threads: int) -> dict[str, Any]:
    """Seconds a tree, every tool, every number of leaves."""
    trainers = Trainers(args.data, args.rounds)
    results = {}
    for leaves in args.leaves:
        turns = {name: trainers.turn(name, leaves, threads) for name in ("lmart", *args.peers)}
        figures = take_turns(turns, args.repeats)
        results[str(leaves)] = show(f"tree, {leaves} leaves, {threads} threads", figures, "s")
    return results


def part_threads(args: argparse.Namespace, threads: int) -> dict[str, Any]:
    """All processors against one."""
    trainers = Trainers(args.data, args.rounds)
    turns = {
        f"{threads} threads": trainers.turn("lmart", 64, threads),
        "1 thread": trainers.turn("lmart", 64, 1),
    }
    return show("threads, 64 leaves", take_turns(turns, args.repeats), "s")


# LightGBM's whole run, text to model; written here so that its process imports nothing else.
LIGHTGBM_RUN = """
import json, sys
import lightgbm
text, model, trees, params = sys.argv[1], sys.argv[2], int(sys.argv[3]), json.loads(sys.argv[4])
lightgbm.train(params, lightgbm.Dataset(text, params=params), trees).save_model(model)
"""


def plain_for_lightgbm(path: str, folder: Path) -> str:
    """Write the text without query ids and comments, and the file of query sizes that LightGBM looks for."""
    out = folder / "plain.txt"
    sizes: list[int] = []
    last = b""
    with open(path, "rb") as rows, out.open("wb") as plain:
        for row in rows:
            label, qid, *cells = row.split(b"#", 1)[0].split()
            if qid != last:
                sizes.append(0)
                last = qid
            sizes[-1] += 1
            plain.write(b" ".join([label, *cells]) + b"\n")
    Path(f"{out}.query").write_text("\n".join(map(str, sizes)) + "\n")
    return str(out)


def part_total(args: argparse.Namespace, threads: int) -> dict[str, Any]:
    """Whole processes, text to model."""
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plain = plain_for_lightgbm(args.data, folder)
        leaves, trees = args.leaves[0], 100
        params = LIGHTGBM | {"num_leaves": leaves, "num_threads": threads}
        lmart = [sys.executable, "-m", "lmart", "train", "--data", args.data, "-q", "--trees", str(trees)]
        lmart += ["--leaves", str(leaves), "--threads", str(threads)]
        commands = {
            "lmart": [*lmart, "--sample", "1", "--out", str(folder / "lmart.json")],
            "lmart --sample auto": [*lmart, "--out", str(folder / "sampled.json")],
            "lightgbm": [
                sys.executable,
                "-c",
                LIGHTGBM_RUN,
                plain,
                str(folder / "l.txt"),
                str(trees),
                json.dumps(params),
            ],
        }
        whole_run(commands["lmart"])  # compile
        peaks: dict[str, list[float]] = {key: [] for key in commands}

        def run(key: str) -> float:
            done = whole_run(commands[key])
            peaks[key].append(done.megabytes)
            return done.seconds

        turns: Turns = {key: lambda key=key: run(key) for key in commands}  # type: ignore[misc]
        results["wall"] = show(f"total, {trees} trees of {leaves} leaves", take_turns(turns, args.repeats), "s")
        results["peak"] = show("peak memory", peaks, "MB")
        if args.test:
            results["ndcg@10"] = quality(args.test, folder)
    return results


def quality(test: str, folder: Path) -> dict[str, float | None]:
    """Print and return NDCG@10 on the test set, queries without a relevant document left out."""
    import lightgbm

    from lmart.formats.model_json import read_model
    from lmart.formats.options import ReadOptions
    from lmart.formats.registry import read_dataset
    from lmart.measures import Conventions, Evaluator, parse_measures
    from lmart.scoring import score_dataset

    data = read_dataset([test], ReadOptions())
    evaluator = Evaluator(data.labels, data.query_offsets, parse_measures("ndcg@10", Conventions(empty="skip")))
    model = lightgbm.Booster(model_file=str(folder / "l.txt"))
    cells = data.features.dense(int(data.feature_ids[-1]) + 1, 0.0)
    cells[:, data.feature_ids] = data.features.dense(data.n_features, 0.0)  # LightGBM counts columns from index 0
    scores = {
        "lmart": score_dataset(read_model(str(folder / "lmart.json")), data),
        "lmart --sample auto": score_dataset(read_model(str(folder / "sampled.json")), data),
        "lightgbm": model.predict(cells[:, : model.num_feature()]),
    }
    values = {name: evaluator.evaluate(one).values["ndcg@10"] for name, one in scores.items()}
    print("ndcg@10 on the test set: " + ", ".join(f"{name} {value:.4f}" for name, value in values.items()))
    return values


def main() -> None:
    """Run the parts asked for."""
    # A child's peak memory is never counted below its parent's, so the whole runs come before anything is loaded.
    parts = {"total": part_total, "tree": part_tree, "threads": part_threads}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--test")
    parser.add_argument("--parts", type=lambda text: text.split(","), default=list(parts))
    parser.add_argument("--peers", type=lambda text: text.split(","), default=list(PEERS))
    parser.add_argument("--leaves", type=lambda text: [int(n) for n in text.split(",")], default=[64, 31, 255])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=20, help="trees of one training in part tree")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--json")
    args = parser.parse_args()
    results: dict[str, Any] = {"machine": machine("lightgbm", "xgboost")}
    print(", ".join(f"{key} {value}" for key, value in results["machine"].items()))
    for name in sorted(args.parts, key=list(parts).index):
        results[name] = parts[name](args, args.threads)
    if args.json:
        Path(args.json).write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
