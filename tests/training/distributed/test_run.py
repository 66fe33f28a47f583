"""Training in shards gives the bytes of training in one process; here the shards are all in this process."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.shards import Measured, bytes_of, fit_in_shards, learnable, measured, write_parts

from lmart.binning.streaming import read_training_set, read_validation_set
from lmart.formats.read_options import ReadOptions
from lmart.settings import OBJECTIVES, TrainSettings
from lmart.threads import WorkerPool
from lmart.training.boosting import train, without_trees
from lmart.training.distributed.inputs import ValidationParts
from lmart.training.train_result import TrainResult

SMALL = TrainSettings(trees=6, leaves=8, min_docs=3, rankers=1, objective="lambdamart", tree="leafwise")


def fit_alone(
    parts: list[str], settings: TrainSettings, validation: list[str] | None = None
) -> tuple[TrainResult, list[Measured]]:
    rounds: list[Measured] = []
    with WorkerPool(1) as pool:
        train_set = read_training_set(parts, ReadOptions(), settings, pool)
        model = without_trees(train_set, settings)
        edges = train_set.features.edges
        sets = [read_validation_set(one, ReadOptions(), model, edges, pool) for one in validation or ()]
        return train(train_set, sets, settings, pool, lambda one: rounds.append(measured(one))), rounds


VARIANTS = [
    *({"objective": name} for name in OBJECTIVES),
    {"tree": "oblivious"},
    {"tree": "depthwise", "min_docs": 20},
    {"sample": 0.4},
    {"features": 0.5, "objective": "yetirank", "sample": 0.6},
    {"rankers": 4, "objective": None, "tree": None, "trees": 12},
    {"monotone": "1:+1,2:-1"},
    {"metric": "err", "gain": None},
]


@pytest.mark.parametrize("changed", VARIANTS, ids=str)
def test_any_number_of_shards_gives_the_bytes_of_one_process(changed: dict[str, object], tmp_path: Path) -> None:
    values = {name: value for name, value in changed.items() if not (name == "gain" and value is None)}
    settings = TrainSettings(**{**SMALL.__dict__, **values})
    parts = write_parts(learnable(), 7, tmp_path)
    expected, rounds = fit_alone(parts, settings)
    for n_shards in (1, 2, 3, 7):
        found, own = fit_in_shards(ValidationParts("parts", parts), settings, n_shards)
        assert bytes_of(found) == bytes_of(expected)
        assert found.training == expected.training
        assert own == rounds


def joined(parts: list[str], folder: Path, name: str) -> str:
    path = folder / name
    path.write_text("".join(Path(part).read_text() for part in parts))
    return str(path)


@pytest.mark.parametrize("metric", ["ndcg@5", "map", "err@10", "dcg@3"])
def test_early_stopping_goes_by_the_same_measures(metric: str, tmp_path: Path) -> None:
    settings = TrainSettings(**{**SMALL.__dict__, "trees": 30, "early_stop": 3, "metric": metric, "rankers": 2})
    parts, valid = write_parts(learnable(), 4, tmp_path), write_parts(learnable(2), 2, tmp_path, "valid")
    expected, rounds = fit_alone(parts, settings, [joined(valid, tmp_path, "valid.svm")])
    for n_shards in (1, 3):  # of which one holds no part of the validation set
        found, own = fit_in_shards(ValidationParts("p", parts), settings, n_shards, [ValidationParts("v", valid)])
        assert own == rounds
        assert bytes_of(found) == bytes_of(expected)
        assert (found.validation, found.training) == (expected.validation, expected.training)
