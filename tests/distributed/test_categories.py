"""Categories of data in shards are those of one process: the same bytes and measures, in this process."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers.shards import Measured, bytes_of, fit_in_shards, measured

from lmart.binning.two_passes import read_training_set, read_validation_set
from lmart.cli.train_inputs import with_categories
from lmart.distributed.sharded_sets import SetFiles
from lmart.errors import DataError
from lmart.formats.read_options import ReadOptions
from lmart.settings import TrainSettings
from lmart.threads import WorkerPool
from lmart.training.boosting import train, without_trees
from lmart.training.train_result import TrainResult

SMALL = TrainSettings(trees=5, leaves=6, min_docs=3, rankers=1, objective="lambdamart", tree="leafwise")
SHOPS = ["b", "with, comma", "ünï", "12", "a", "", "x y"]


def write(name: str, first: int, n_queries: int = 14, shops: list[str] = SHOPS, header: str = "shop,") -> str:
    """Write queries of a shop, a kind that is a whole number, and a number: as a table, or as LETOR text without it."""
    rng, worth = np.random.default_rng(first), np.random.default_rng(9).normal(size=40)
    lines = [] if name.endswith("svm") else [f"rel,qid,{header}kind,x,title"]
    for q in range(first, first + n_queries):
        shop, kind, x = rng.integers(0, len(shops), 6), rng.integers(0, 12, 6), rng.normal(size=6)
        rank = (worth[shop] + worth[20 + kind] + 0.3 * x).argsort().argsort()
        for k in range(6):
            label, text = int(rank[k] // 2), shops[shop[k]]
            if name.endswith("svm"):
                lines.append(f"{label} qid:{q} 1:{kind[k]} 2:{x[k]:.3f}".replace(" 1:0", ""))
            else:
                own = f'"{text}",' if header else ""
                lines.append(f"{label},q{q},{own}{kind[k]},{x[k]:.3f},t{q}-{k}")
    Path(name).write_text("\n".join(lines) + "\n")
    return name


def fit_alone(parts: list[str], valid: str, settings: TrainSettings, options: ReadOptions) -> tuple[TrainResult, str]:
    rounds: list[Measured] = []
    with WorkerPool(1) as pool:
        train_set = read_training_set(parts, options, settings, pool)
        model = without_trees(train_set, settings, train_set.categories)
        coded = read_validation_set(valid, options, model, train_set.features.edges, pool)
        result = train(train_set, [coded], settings, pool, lambda one: rounds.append(measured(one)))
        return result, str([rounds, *coded.warnings])


CASES = [
    (["a.svm", "b.svm", "c.svm"], "1", {}),
    (["a.svm", "b.svm", "c.svm"], "1", {"absent": "missing", "sample": 0.5, "linear": 0.3}),
    (["a.csv", "b.csv", "c.csv"], "shop,kind", {"tree": "oblivious"}),
    (["a.csv", "none.csv", "empty.csv"], "shop", {}),
    (["a.csv", "b.csv", "numbers.csv"], "auto", {}),
]


@pytest.mark.parametrize(("parts", "categorical", "changed"), CASES, ids=lambda case: str(case)[:20])
def test_any_number_of_shards_gives_the_bytes_of_one_process(
    parts: list[str], categorical: str, changed: dict[str, object], in_folder: Path
) -> None:
    for number, name in enumerate(["a", "b", "c"]):
        write(f"{name}.csv", 100 * number)
        write(f"{name}.svm", 100 * number)
    write("none.csv", 300, header="")
    Path("empty.csv").write_text("rel,qid,shop,kind,x,title\n")
    numbers = write("numbers.csv", 400, shops=["12", "7", "5"])
    valid = write(f"valid.{parts[0][-3:]}", 500, shops=[*SHOPS, "new"])
    settings = replace(SMALL, categorical=categorical, **changed)  # type: ignore[arg-type]
    options = with_categories(ReadOptions(ignore_columns=() if parts[0].endswith("svm") else ("title",)), settings)
    expected, said = fit_alone(parts, valid, settings, options)
    assert expected.ensemble.categories[0].values
    for n_shards in (1, 2, 3):
        found, rounds = fit_in_shards(SetFiles("parts", parts), settings, n_shards, [SetFiles(valid, [valid])], options)
        assert bytes_of(found) == bytes_of(expected)
        assert found.training == expected.training
        assert said == str([rounds, *found.warnings])
    if categorical == "auto":
        for n_shards in (1, 2):
            with pytest.raises(DataError, match=r"a\.csv.*'shop' holds texts, but numbers in a table before"):
                fit_in_shards(SetFiles("parts", [numbers, "a.csv"]), settings, n_shards, options=options)


@pytest.mark.parametrize(
    ("categorical", "ending", "said"),
    [
        ("2", "svm", "feature '2' is a category, but has the value"),
        ("9", "svm", "there is no feature '9', which --categorical names"),
        ("kind", "csv", "holds text"),
    ],
)
def test_what_one_process_refuses_is_refused(categorical: str, ending: str, said: str, in_folder: Path) -> None:
    parts = SetFiles("parts", [write(f"a.{ending}", 1), write(f"b.{ending}", 100)])
    settings = replace(SMALL, categorical=categorical)
    with pytest.raises(DataError, match=said):
        fit_in_shards(parts, settings, 2, options=with_categories(ReadOptions(), settings))
