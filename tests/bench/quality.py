"""Test NDCG@10 beside LightGBM lambdarank at equal settings, on the folds of real sets.

    python tests/bench/quality.py --data FOLDER [--sets mq2008,ohsumed2,lightgbm] [--trees 300] [--json FILE]

FOLDER holds mq2008/S1.svm.gz ... S5.svm.gz, ohsumed2/ alike, and lightgbm/train.svm.gz and test.svm.gz. Fold k
trains on parts k, k+1, k+2 in a ring and tests on part k+4. Queries without a relevant document are left out, ties
are in input order, gain is 2^label - 1. Both tools: rate 0.05, 31 leaves, at least 20 documents a leaf (LightGBM
estimates them), truncation 30, all documents.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

import numpy as np
from turns import machine

from lmart.boosting import train
from lmart.dataset import RankingDataset
from lmart.ensemble import Ensemble
from lmart.formats.options import ReadOptions
from lmart.formats.registry import read_dataset
from lmart.measures import Conventions, Evaluator, parse_measures
from lmart.scoring import FeatureMatcher, score_dataset
from lmart.settings import TrainSettings
from lmart.threads import WorkerPool, available_processors

LIGHTGBM = {
    "objective": "lambdarank",
    "learning_rate": 0.05,
    "num_leaves": 31,
    "min_data_in_leaf": 20,
    "lambdarank_truncation_level": 30,
    "deterministic": True,
    "verbose": -1,
}


def folds(folder: Path, name: str) -> list[tuple[list[str], str]]:
    """Return (training files, test file) of each fold of a set."""
    own = folder / name
    if name == "lightgbm":
        return [([str(own / "train.svm.gz")], str(own / "test.svm.gz"))]
    parts = [str(own / f"S{part}.svm.gz") for part in range(1, 6)]
    return [([parts[(k + i) % 5] for i in range(3)], parts[(k + 4) % 5]) for k in range(5)]


def ndcg(data: RankingDataset, scores: Any) -> float:
    """Return NDCG@10."""
    measures = parse_measures("ndcg@10", Conventions(empty="skip"))
    value = Evaluator(data.labels, data.query_offsets, measures).evaluate(scores).values["ndcg@10"]
    assert value is not None
    return value


def lightgbm_scores(data: RankingDataset, test: RankingDataset, trees: int) -> Any:
    """Return LightGBM's scores of the test documents."""
    import lightgbm

    cells = data.features.dense(data.n_features, 0.0)
    made = lightgbm.Dataset(cells, data.labels, group=np.diff(data.query_offsets))
    booster = lightgbm.train(LIGHTGBM | {"num_threads": available_processors()}, made, trees)
    columns = FeatureMatcher(Ensemble((), data.feature_ids)).column_map(test.feature_ids)
    known = columns >= 0
    given = np.zeros((test.n_documents, data.n_features))
    given[:, columns[known]] = test.features.dense(test.n_features, 0.0)[:, known]
    return booster.predict(given)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", type=lambda text: text.split(","), default=["mq2008", "ohsumed2", "lightgbm"])
    parser.add_argument("--trees", type=int, default=300)
    parser.add_argument("--json")
    args = parser.parse_args()
    results: dict[str, Any] = {"machine": machine("lightgbm")}
    settings = TrainSettings(trees=args.trees, learning_rate=0.05, sample=1.0)
    with WorkerPool(available_processors()) as pool:
        for name in args.sets:
            rows = []
            for training, testing in folds(args.data, name):
                data, test = read_dataset(training, ReadOptions(), pool), read_dataset([testing], ReadOptions(), pool)
                own = ndcg(test, score_dataset(train(data, [], settings, pool).ensemble, test, pool))
                rows.append((own, ndcg(test, lightgbm_scores(data, test, args.trees))))
                print(f"{name} fold {len(rows)}: lmart {own:.4f}, lightgbm {rows[-1][1]:.4f}", flush=True)
            means = [statistics.mean(row[side] for row in rows) for side in (0, 1)]
            print(f"{name} mean: lmart {means[0]:.4f}, lightgbm {means[1]:.4f}, difference {means[0] - means[1]:+.4f}")
            results[name] = {"folds": rows, "means": means}
    if args.json:
        Path(args.json).write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
