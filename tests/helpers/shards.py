"""Training in shards, in this process and without a cluster, for the tests."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from helpers.training_runs import learnable
from lmart.distributed.actors import Actors
from lmart.distributed.driver import DistributedRun
from lmart.distributed.shard import Shard
from lmart.distributed.sharded_sets import DataParts, SetFiles, read_sets, resolve_sharded
from lmart.formats.models.lmart_json import model_to_json
from lmart.formats.read_options import ReadOptions
from lmart.settings import TrainSettings
from lmart.threads import WorkerPool
from lmart.training.rankers import RoundReport
from lmart.training.train_result import TrainResult

OPTIONS = ReadOptions()
Measured = tuple[int, int, float | None, tuple[float | None, ...]]


class LocalActors(Actors):
    """Objects in this process, one called after the other."""

    def __init__(self, objects: Sequence[Any]) -> None:
        self._objects = objects

    def __len__(self) -> int:
        return len(self._objects)

    def each(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Call a method of every object; return what they return."""
        return [getattr(held, method)(*own) for held, own in zip(self._objects, arguments, strict=True)]

    def ask(self, number: int, method: str, *arguments: Any) -> Any:
        """Call a method of one object and return what it returns."""
        return getattr(self._objects[number], method)(*arguments)


def measured(one: RoundReport) -> Measured:
    """Return ranker, round and measures: of the training set, which must be taken at once, and of the others."""
    return one.ranker, one.round, one.measure_training(), one.validation


def write_parts(text: str, n: int, folder: Path, name: str = "part") -> list[str]:
    """Write the queries of a LETOR text to n files, the first ones much smaller than the last, and return these."""
    queries: dict[str, list[str]] = {}
    for line in text.splitlines(keepends=True):
        queries.setdefault(line.split()[1], []).append(line)
    texts = ["".join(lines) for lines in queries.values()]
    bounds = [round(len(texts) * (k / n) ** 1.5) for k in range(n + 1)]
    paths = []
    for k in range(n):
        path = folder / f"{name}-{k}.svm"
        path.write_text("".join(texts[max(k, bounds[k]) : max(k + 1, bounds[k + 1])]))
        paths.append(str(path))
    return paths


def sizes_of(*lists: Sequence[str]) -> dict[str, int]:
    """Return the bytes of each file."""
    return {path: Path(path).stat().st_size for paths in lists for path in paths}


def shards_of(n: int, threads: int = 1) -> Actors:
    """Return so many shards of this process."""
    return LocalActors([Shard("test", threads) for _ in range(n)])


def data_parts(sets: Sequence[SetFiles]) -> DataParts:
    """Return all that a run reads: the training set, then validation sets."""
    return DataParts(sets[0], sets[1:], sizes_of(*(one.parts for one in sets)))


def fit_in_shards(
    train: SetFiles,
    settings: TrainSettings,
    n_shards: int,
    validation: Sequence[SetFiles] = (),
    options: ReadOptions = OPTIONS,
    threads: int = 1,
) -> tuple[TrainResult, list[Measured]]:
    """Train on parts in so many shards of this process; return the result and the rounds."""
    with WorkerPool(threads) as pool:
        sets = read_sets(shards_of(n_shards, threads), data_parts([train, *validation]), options, settings)
        run = DistributedRun(sets, resolve_sharded(settings, sets), pool, time.perf_counter())
        rounds = [measured(one) for one in run.rounds()]
        return run.finish(), rounds


def bytes_of(result: TrainResult) -> str:
    """Return the model as it is written."""
    return "".join(model_to_json(result.ensemble))


__all__ = ["bytes_of", "data_parts", "fit_in_shards", "learnable", "shards_of", "sizes_of", "write_parts"]
