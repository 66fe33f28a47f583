"""One training by the Dask trainer of LightGBM or XGBoost, from LETOR parts to a model file, as a user would write it.

    PYTHON cluster_peers.py JSON

PYTHON has lightgbm, xgboost, distributed, dask[array,dataframe], pandas, pyarrow and scikit-learn, and needs no lmart.
JSON describes a `Job`. Workers read the parts themselves with scikit-learn's reader of LETOR text, each worker as many
adjacent ones, and hold them as float32. Printed is one JSON object: seconds by stage, rows by worker, and versions.
"""

from __future__ import annotations

import json
import sys
import time
from importlib.metadata import version
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple


class Job(NamedTuple):
    """What is to be done.

    tool     : lightgbm or xgboost
    parts    : LETOR files, each of whole queries
    rows     : of each part
    queries  : of each part
    columns  : largest index of a feature + 1
    workers  : processes of one thread
    trees    : how many
    settings : of the tool
    model    : file to be written
    stamps   : file that gets the time at the end of each round, a line each
    """

    tool: str
    parts: list[str]
    rows: list[int]
    queries: list[int]
    columns: int
    workers: int
    trees: int
    settings: dict[str, Any]
    model: str
    stamps: str


def load_part(path: str, columns: int, first_query: int) -> tuple[Any, ...]:
    """Read a part on a worker; return its cells, labels, query sizes, and the number of each row's query.

    path        : of the part
    columns     : of the cells
    first_query : number of its first query in the whole data
    """
    import numpy as np
    from sklearn.datasets import load_svmlight_file

    cells, labels, ids = load_svmlight_file(path, n_features=columns, dtype=np.float32, query_id=True, zero_based=True)
    starts = np.flatnonzero(np.diff(ids, prepend=ids[0] - 1))
    sizes = np.diff(starts, append=len(ids))
    numbers = np.repeat(first_query + np.arange(len(sizes)), sizes)
    return cells.toarray(), labels.astype(np.float32), sizes, numbers


class Stamps:
    """Writes the time at the end of each round to a file, from the first worker that comes to it.

    path : of the file
    """

    def __init__(self, path: str) -> None:
        self._path = path

    def __call__(self, round_: Any) -> None:
        """Write the time."""
        self.write(round_.iteration)

    def write(self, round_number: int) -> None:
        """Write the time at the end of a round.

        round_number : from 0
        """
        try:
            with open(f"{self._path}.{round_number}", "x") as file:
                file.write(repr(time.time()))
        except FileExistsError:  # another worker was faster
            pass


def load_parts(job: Job, client: Any) -> tuple[list[Any], dict[str, int]]:
    """Read the parts on the workers; return Dask arrays of cells, labels, query sizes and queries, and rows by worker.

    job    : what is to be done
    client : of the cluster
    """
    import dask.array as da
    import numpy as np
    from dask import delayed
    from distributed import wait

    addresses = sorted(client.scheduler_info()["workers"])
    loaded, shares = [], dict.fromkeys(addresses, 0)
    for number, path in enumerate(job.parts):
        address = addresses[number * len(addresses) // len(job.parts)]
        first = sum(job.queries[:number])
        loaded.append(client.submit(load_part, path, job.columns, first, workers=[address], pure=False))
        shares[address] += job.rows[number]
    wait(loaded)
    shapes: list[list[tuple[int, ...]]] = [
        [(n, job.columns) for n in job.rows],
        [(n,) for n in job.rows],
        [(n,) for n in job.queries],
        [(n,) for n in job.rows],
    ]
    arrays = []
    for place, (of_parts, kind) in enumerate(zip(shapes, (np.float32, np.float32, np.int64, np.int64), strict=True)):
        pieces = [delayed(itemgetter(place))(one) for one in loaded]
        arrays.append(
            da.concatenate(
                [da.from_delayed(one, shape, dtype=kind) for one, shape in zip(pieces, of_parts, strict=True)]
            )
        )
    return arrays, shares


def train_lightgbm(job: Job, client: Any, arrays: list[Any]) -> None:
    """Train with lightgbm.dask and write the model."""
    from lightgbm.dask import DaskLGBMRanker

    cells, labels, sizes, _ = arrays
    ranker = DaskLGBMRanker(client=client, n_estimators=job.trees, **job.settings)
    ranker.fit(cells, labels, group=sizes, callbacks=[Stamps(job.stamps)])
    ranker.booster_.save_model(job.model)


def train_xgboost(job: Job, client: Any, arrays: list[Any]) -> None:
    """Train with xgboost.dask and write the model."""
    from xgboost import callback
    from xgboost import dask as trainer

    class Stamp(callback.TrainingCallback):  # type: ignore[misc]
        def __init__(self, stamps: Stamps) -> None:
            super().__init__()
            self.stamps = stamps

        def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
            self.stamps.write(epoch)
            return False

    cells, labels, _, queries = arrays
    data = trainer.DaskQuantileDMatrix(client, cells, labels, qid=queries, max_bin=job.settings["max_bin"])
    stamps = Stamp(Stamps(job.stamps))
    trained = trainer.train(client, job.settings, data, num_boost_round=job.trees, callbacks=[stamps])
    trained["booster"].save_model(job.model)


def main(job: Job) -> None:
    """Train, and print what it took."""
    began = time.perf_counter()
    import dask
    from distributed import Client, LocalCluster

    # Parts stay where they were read.
    dask.config.set({"distributed.scheduler.work-stealing": False})
    cluster = LocalCluster(
        n_workers=job.workers,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address=None,
        memory_limit=0,
    )
    with cluster, Client(cluster) as client:
        started = time.perf_counter()
        arrays, shares = load_parts(job, client)
        read = time.perf_counter()
        {"lightgbm": train_lightgbm, "xgboost": train_xgboost}[job.tool](job, client, arrays)
        trained = time.perf_counter()
    stamps = [float(Path(f"{job.stamps}.{number}").read_text()) for number in range(job.trees)]
    answer = {
        "seconds": {"starting": started - began, "reading": read - started, "training": trained - read},
        "rows": list(shares.values()),
        "stamps": stamps,
        "versions": {name: version(name) for name in (job.tool, "distributed", "numpy")},
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main(Job(**json.loads(sys.argv[1])))
