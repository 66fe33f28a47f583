"""One scoring tool in a process of its own, with rows in memory; its Python needs no more than NumPy and the tool.

    python scorers.py TOOL ROWS.npy         TOOL: lmart, lightgbm, tl2cgen, lleaves

ROWS holds float64[n, m], each feature in the column of its index. Requests and answers are JSON, a line each; see
turns.Helper.
{"do": "compile", "model": LightGBM's text, "out": FILE, "threads": N} -> {"seconds": ...}
{"do": "score", "model": FILE, "threads": N} -> {"seconds": ..., "mean": of the scores}
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from turns import serve

from lmart.array_types import Float64Array

Score = Callable[[], Any]


def lmart(model: str, rows: Float64Array, threads: int) -> Score:
    from lmart import load

    loaded = load(model)
    ids = range(rows.shape[1])
    loaded.predict(rows[:10], ids)
    return lambda: loaded.predict(rows, ids, threads=threads)


def lightgbm(model: str, rows: Float64Array, threads: int) -> Score:
    import lightgbm

    loaded = lightgbm.Booster(model_file=model)
    fitting = _fitting(rows, loaded.num_feature())
    return lambda: loaded.predict(fitting, num_threads=threads)


def tl2cgen(model: str, rows: Float64Array, threads: int) -> Score:
    import tl2cgen

    loaded = tl2cgen.Predictor(model, nthread=threads)
    made = tl2cgen.DMatrix(_fitting(rows, loaded.num_feature), dtype="float64")
    return lambda: loaded.predict(made)


def lleaves(model: str, rows: Float64Array, threads: int) -> Score:
    import lleaves

    text, compiled = model.split("|")
    loaded = lleaves.Model(model_file=text)
    loaded.compile(cache=compiled)
    fitting = _fitting(rows, loaded.num_feature())
    return lambda: loaded.predict(fitting, n_jobs=threads)


def _fitting(rows: Float64Array, n_columns: int) -> Float64Array:
    """Return the rows with exactly so many columns."""
    if rows.shape[1] == n_columns:
        return rows
    fitting = np.zeros((len(rows), n_columns))
    shared = min(n_columns, rows.shape[1])
    fitting[:, :shared] = rows[:, :shared]
    return fitting


SCORERS = {"lmart": lmart, "lightgbm": lightgbm, "tl2cgen": tl2cgen, "lleaves": lleaves}


def compile_model(tool: str, model: str, out: str, threads: int) -> None:
    """Make what the tool scores with from LightGBM's model."""
    if tool == "tl2cgen":
        import tl2cgen
        import treelite

        loaded = treelite.frontend.load_lightgbm_model(model)
        tl2cgen.export_lib(loaded, "gcc", out, params={"parallel_comp": 64}, nthread=threads)
    else:
        import lleaves

        lleaves.Model(model_file=model).compile(cache=out)


def main(tool: str, path: str) -> None:
    """Answer requests."""
    rows = np.load(path)

    @cache
    def ready(model: str, threads: int) -> Score:
        return SCORERS[tool](model, rows, threads)

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        what = request.pop("do")
        if what == "score":
            score = ready(**request)
        began = time.perf_counter()
        if what == "compile":
            compile_model(tool, **request)
            return {"seconds": time.perf_counter() - began}
        scores = score()
        return {"seconds": time.perf_counter() - began, "mean": float(np.mean(scores))}

    serve(answer)


if __name__ == "__main__":
    main(*sys.argv[1:])
