"""Time to score one query in a warm process, beside LightGBM, XGBoost and lleaves, turn by turn in one process.

    python tests/bench/latency.py --data ROWS.svm [--trees 300] [--leaves 64] [--rows 1,10,100,1000] [--calls 300]
        [--repeats 5] [--json FILE]

LightGBM trains a model on --data; `lmart.load` reads the same trees, and lleaves compiles them where it is installed.
XGBoost trains trees of the same size. Each repeat makes --calls calls of every tool on the first rows of the data, an
array of float64 in memory, in the opposite order of the repeat before. Printed are the median and the 99th percentile
of all calls in microseconds, with one thread and, of lmart, with as many as it chooses.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from fair import LIGHTGBM, XGBOOST
from judged import Judged, load
from turns import machine

from lmart.array_types import Float64Array

Call = Callable[[Float64Array], Any]


def scorers(data: Judged, trees: int, leaves: int, folder: str) -> dict[str, Call]:
    """Return what scores rows with each tool that is installed."""
    import lightgbm

    import lmart

    made = lightgbm.Dataset(data.cells, data.labels, group=data.sizes, params=LIGHTGBM)
    booster = lightgbm.train(LIGHTGBM | {"num_leaves": leaves}, made, trees)
    text = str(Path(folder) / "model.txt")
    booster.save_model(text)
    model = lmart.load(text)
    found: dict[str, Call] = {
        "lmart": lambda rows: model.predict(rows, threads=1),
        "lmart, threads=None": model.predict,
        "lightgbm": lambda rows: booster.predict(rows, num_threads=1),
    }
    try:
        import xgboost

        query = data.query_of_document
        params = XGBOOST | {"max_leaves": leaves, "nthread": 1}
        other = xgboost.train(params, xgboost.QuantileDMatrix(data.cells, data.labels, qid=query), trees)
        found["xgboost"] = other.inplace_predict
    except ImportError:
        pass
    try:
        import lleaves

        compiled = lleaves.Model(model_file=text)
        compiled.compile()
        found["lleaves"] = lambda rows: compiled.predict(rows, n_jobs=1)
    except ImportError:
        pass
    return found


def microseconds(call: Call, rows: Float64Array, n: int) -> list[float]:
    """Return the time of each of n calls, after one that is not counted."""
    call(rows)
    stamps = [time.perf_counter()]
    for _ in range(n):
        call(rows)
        stamps.append(time.perf_counter())
    return [float(seconds) * 1e6 for seconds in np.diff(stamps)]


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--trees", type=int, default=300)
    parser.add_argument("--leaves", type=int, default=64)
    parser.add_argument("--rows", type=lambda text: [int(n) for n in text.split(",")], default=[1, 10, 100, 1000])
    parser.add_argument("--calls", type=int, default=300, help="calls of each tool in a repeat; with many rows fewer")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    facts = machine("lightgbm", "xgboost", "lleaves")
    print(", ".join(f"{key} {value}" for key, value in facts.items()))
    data = load([args.data])
    varies = data.cells.min(axis=0) < data.cells.max(axis=0)  # other columns are in no model of LightGBM
    data = data._replace(cells=np.ascontiguousarray(data.cells[:, varies]))
    with tempfile.TemporaryDirectory() as folder:
        tools = scorers(data, args.trees, args.leaves, folder)
        figures: dict[str, dict[str, float]] = {}
        for n in args.rows:
            rows = np.ascontiguousarray(data.cells[:n])
            times: dict[str, list[float]] = {name: [] for name in tools}
            for repeat in range(args.repeats):
                for name in list(tools)[:: 1 if repeat % 2 == 0 else -1]:
                    times[name] += microseconds(tools[name], rows, max(10, args.calls // max(1, n // 10)))
            print(f"{n} rows, median (99th percentile) in microseconds")
            for name, of_tool in times.items():
                middle, most = np.percentile(of_tool, [50, 99]).tolist()
                figures[f"{n} rows, {name}"] = {"median": middle, "99th percentile": most}
                print(f"  {name:20} {middle:9.1f} ({most:.1f})")
    if args.json:
        args.json.write_text(json.dumps({"machine": facts, "microseconds": figures}, indent=1) + "\n")


if __name__ == "__main__":
    main()
