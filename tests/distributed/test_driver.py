"""Training in shards gives the bytes of training in one process; here the shards are all in this process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers.shards import (
    Measured,
    bytes_of,
    data_parts,
    fit_in_shards,
    learnable,
    measured,
    shards_of,
    write_parts,
)

from lmart.binning import edge_sample
from lmart.binning.two_passes import read_training_set, read_validation_set
from lmart.data.metadata import NO_METADATA, Metadata
from lmart.distributed import driver, sharded_sets
from lmart.distributed.shard import Shard
from lmart.distributed.shard_reading import RowHashes
from lmart.distributed.sharded_sets import SetFiles, read_sets
from lmart.errors import DataError
from lmart.formats import metadata_files
from lmart.formats.documents.reading import read_dataset
from lmart.formats.read_options import ReadOptions, ReadState
from lmart.settings import OBJECTIVES, TrainSettings
from lmart.threads import WorkerPool
from lmart.training import scores, tree_round
from lmart.training.boosting import train, without_trees
from lmart.training.grower import Histograms
from lmart.training.resolving import resolve_for
from lmart.training.train_result import TrainResult

SMALL = TrainSettings(trees=6, leaves=8, min_docs=3, rankers=1, objective="lambdamart", tree="leafwise")


def fit_alone(
    parts: list[str],
    settings: TrainSettings,
    validation: list[str] | None = None,
    metadata: Sequence[Metadata] = (NO_METADATA,),
) -> tuple[TrainResult, list[Measured]]:
    rounds: list[Measured] = []
    with WorkerPool(1) as pool:
        train_set = read_training_set(parts, ReadOptions(), settings, pool)
        model = without_trees(train_set, settings)
        edges = train_set.features.edges
        sets = [read_validation_set(one, ReadOptions(), model, edges, pool) for one in validation or ()]
        result = train(
            train_set, sets, settings, pool, lambda one: rounds.append(measured(one)), metadata[0], metadata[1:] or None
        )
        return result, rounds


VARIANTS = [
    *({"objective": name} for name in OBJECTIVES),
    {"tree": "oblivious"},
    {"tree": "depthwise", "min_docs": 20},
    {"sample": 0.4},
    {"features": 0.5, "objective": "yetirank", "sample": 0.6},
    {"rankers": 4, "objective": None, "tree": None, "trees": 12},
    {"linear": 0.4, "monotone": "1:+1,2:-1"},
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
        found, own = fit_in_shards(SetFiles("parts", parts), settings, n_shards)
        assert bytes_of(found) == bytes_of(expected)
        assert found.training == expected.training
        assert own == rounds


@pytest.mark.parametrize("form", ["leafwise", "depthwise"])
def test_fewer_histograms_than_leaves_grow_the_same_trees(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = replace(SMALL, tree=form, leaves=60)
    parts = write_parts(learnable(), 3, tmp_path)
    expected, _ = fit_alone(parts, settings)
    monkeypatch.setattr(driver, "Histograms", lambda n_bins: Histograms(n_bins, 0))
    found, _ = fit_in_shards(SetFiles("parts", parts), settings, 2)
    assert max(len(grown.leaf_values) for grown in found.ensemble.trees) > 16
    assert bytes_of(found) == bytes_of(expected)


def joined(parts: list[str], folder: Path, name: str) -> str:
    path = folder / name
    path.write_text("".join(Path(part).read_text() for part in parts))
    return str(path)


def test_what_watches_the_reading_stays_in_this_process(tmp_path: Path) -> None:
    """A line on the terminal cannot be sent to a worker."""
    parts, valid = write_parts(learnable(), 2, tmp_path), write_parts(learnable(2), 2, tmp_path, "valid")
    seen: list[ReadState] = []
    options = ReadOptions().telling(lambda text: None, lambda text: None, seen.append)
    fit_in_shards(SetFiles("p", parts), SMALL, 2, [SetFiles("v", valid)], options)
    assert seen == []


@pytest.mark.parametrize("metric", ["ndcg@5", "map,dcg@3", "err@10", "dcg@3"])
def test_early_stopping_goes_by_the_same_measures(metric: str, tmp_path: Path) -> None:
    settings = TrainSettings(**{**SMALL.__dict__, "trees": 30, "early_stop": 3, "metric": metric, "rankers": 2})
    parts, valid = write_parts(learnable(), 4, tmp_path), write_parts(learnable(2), 2, tmp_path, "valid")
    expected, rounds = fit_alone(parts, settings, [joined(valid, tmp_path, "valid.svm")])
    for n_shards in (1, 3):  # of which one holds no part of the validation set
        found, own = fit_in_shards(SetFiles("p", parts), settings, n_shards, [SetFiles("v", valid)])
        assert own == rounds
        assert bytes_of(found) == bytes_of(expected)
        assert found.validation_measures == expected.validation_measures
        assert found.training_measures == expected.training_measures


@pytest.mark.parametrize("per", ["query", "row"])
def test_weights_and_initial_scores_stand_beside_parts(per: str, tmp_path: Path) -> None:
    settings = TrainSettings(**{**SMALL.__dict__, "trees": 8, "early_stop": 3})
    parts, valid = write_parts(learnable(), 5, tmp_path), write_parts(learnable(2), 3, tmp_path, "valid")
    rng = np.random.default_rng(1)

    def beside(paths: list[str], kind: str) -> list[str]:
        """Write a file of numbers for each part."""
        written = []
        for path in paths:
            rows = [line.split()[1] for line in Path(path).read_text().splitlines()]
            n = len(set(rows)) if kind == "weights" and per == "query" else len(rows)
            written.append(f"{path}.{kind}")
            numbers = rng.random(n) * 1000
            Path(written[-1]).write_text("".join(f"{number}\n" for number in numbers))
        return written

    sets = [SetFiles("p", one, beside(one, "weights"), beside(one, "scores")) for one in (parts, valid)]
    expected, rounds = fit_alone(
        parts, settings, [joined(valid, tmp_path, "valid.svm")], joined_metadata(sets, tmp_path)
    )
    for n_shards in (1, 2, 4):
        found, own = fit_in_shards(sets[0], settings, n_shards, sets[1:])
        assert own == rounds
        assert (bytes_of(found), found.start) == (bytes_of(expected), expected.start)


def test_hashes_of_data_are_the_same_for_any_number_of_shards_and_others_for_other_data(tmp_path: Path) -> None:
    parts, valid = write_parts(learnable(), 5, tmp_path), write_parts(learnable(2), 3, tmp_path, "valid")
    weights = []
    for path in parts:
        weights.append(f"{path}.weights")
        Path(weights[-1]).write_text("2\n" * len(Path(path).read_text().splitlines()))

    def hashes(n_shards: int = 2) -> list[RowHashes]:
        sets = [SetFiles("p", parts, weights), SetFiles("v", valid)]
        read = read_sets(shards_of(n_shards), data_parts(sets), ReadOptions(), SMALL)
        return sharded_sets.hash_sets(read)

    (train, validation) = usual = hashes()
    assert hashes(1) == hashes(5) == usual and train.rows != validation.rows
    kept = Path(parts[3]).read_text()
    first, _, rest = kept.partition("1:")
    Path(parts[3]).write_text(f"{first}1:9{rest}")
    changed = hashes()
    assert changed[0].rows != train.rows and changed[0].weights == train.weights
    lines = kept.splitlines(keepends=True)  # the same bins, in other rows
    Path(parts[3]).write_text("".join([lines[1], lines[0], *lines[2:]]))
    assert hashes()[0].rows != train.rows
    Path(parts[3]).write_text(kept)
    Path(weights[1]).write_text(Path(weights[1]).read_text().replace("2", "3", 1))
    changed = hashes()
    assert changed[0].rows == train.rows and changed[0].weights != train.weights
    Path(valid[0]).write_text(Path(valid[0]).read_text().replace(" 1:", " 1:9", 1))
    assert hashes()[1].rows != validation.rows


def joined_metadata(sets: list[SetFiles], folder: Path) -> list[Metadata]:
    found: list[Metadata] = []
    for one in sets:
        with WorkerPool(1) as pool:
            data = read_dataset(one.parts, ReadOptions(), pool)
        weights = metadata_files.read_weights(joined(list(one.weights or ()), folder, "w"), data.query_offsets)
        scores = metadata_files.read_init_scores(
            joined(list(one.init_scores or ()), folder, "s"), data.n_documents, "s"
        )
        of_training = weights.per_query if weights.given_per == "query" else weights.per_document
        found.append(Metadata(of_training if not found else weights.per_query, scores))
    return found


def test_units_next_to_a_step_are_those_of_one_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums by piece in place of quick ones: taken everywhere, and with pieces that end within shards."""
    monkeypatch.setattr(driver, "ROUNDING", 0.9)
    monkeypatch.setattr(tree_round, "CHUNK", 7)
    monkeypatch.setattr(scores, "CHUNK", 7)
    exact: list[float] = []
    monkeypatch.setattr(driver, "join_magnitudes", lambda pieces: recorded(exact, tree_round.join_magnitudes(pieces)))
    parts = write_parts(learnable(), 6, tmp_path)
    expected, _ = fit_alone(parts, SMALL)
    own: list[float] = []
    one_process = tree_round.join_magnitudes
    monkeypatch.setattr(tree_round, "join_magnitudes", lambda pieces: recorded(own, one_process(pieces)))
    again, _ = fit_alone(parts, SMALL)
    monkeypatch.setattr(tree_round, "join_magnitudes", one_process)
    assert bytes_of(again) == bytes_of(expected)
    for n_shards in (1, 3, 6):
        exact.clear()
        found, _ = fit_in_shards(SetFiles("parts", parts), SMALL, n_shards)
        assert bytes_of(found) == bytes_of(expected)
        assert exact == own  # to the last digit


def recorded(into: list[float], sums: tuple[float, float]) -> tuple[float, float]:
    into.append(sums[0])
    return sums


@pytest.mark.parametrize("limit", [50, 200])
def test_bin_edges_come_from_the_sample_of_one_process(
    limit: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether shards could keep all of their rows in the sample, none of them, or some."""
    monkeypatch.setattr(edge_sample, "SAMPLE_LIMIT", limit)
    parts = write_parts(learnable(), 5, tmp_path)
    expected, _ = fit_alone(parts, SMALL)
    for n_shards in (1, 2, 5):
        found, _ = fit_in_shards(SetFiles("parts", parts), SMALL, n_shards)
        assert bytes_of(found) == bytes_of(expected)


@pytest.mark.parametrize("header", [True, False])
def test_features_of_all_parts_are_joined(header: bool, tmp_path: Path) -> None:
    """By name where they have names, by number else; each part has some that others lack."""
    rng = np.random.default_rng(3)
    parts = []
    for k in range(4):
        columns = [["b", "x"], ["x", "a"], ["b", "a", "c"], ["c", "x"]][k]
        lines = []
        for q in range(20):
            for _ in range(8):
                values = rng.random(len(columns)).round(2)
                label = int(values[0] * 2 + values[-1] * 2)
                if header:
                    lines.append(",".join([str(label), f"{k}.{q}", *map(str, values)]))
                else:
                    cells = zip(sorted("cbxa".index(one) * 3 + 1 for one in columns), values, strict=True)
                    lines.append(
                        " ".join([str(label), f"qid:{k}.{q}", *(f"{index}:{value}" for index, value in cells)])
                    )
        path = tmp_path / f"part{k}.{'csv' if header else 'svm'}"
        path.write_text("\n".join([",".join(["label", "qid", *columns])] * header + lines) + "\n")
        parts.append(str(path))
    expected, _ = fit_alone(parts, SMALL)
    for n_shards in (2, 4):
        found, _ = fit_in_shards(SetFiles("parts", parts), SMALL, n_shards)
        assert bytes_of(found) == bytes_of(expected)
        assert len(found.ensemble.trees) == len(expected.ensemble.trees) > 1


def test_a_query_that_spans_parts_is_refused_with_both_places(tmp_path: Path) -> None:
    parts = write_parts(learnable(), 3, tmp_path)
    last = Path(parts[1]).read_text().splitlines(keepends=True)[-1]
    Path(parts[2]).write_text(last + Path(parts[2]).read_text())
    for n_shards in (1, 2, 3):
        with pytest.raises(DataError, match=r"are not adjacent \(first seen at .*part-1\.svm:") as fault:
            fit_in_shards(SetFiles("parts", parts), SMALL, n_shards)
        assert (fault.value.path, fault.value.line) == (parts[2], 1)


@pytest.mark.parametrize("in_validation", [False, True])
def test_a_label_above_the_largest_is_refused_as_by_one_process(
    in_validation: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = write_parts(learnable(), 4, tmp_path)
    rows = [line for part in parts for line in Path(part).read_text().splitlines()]
    first = len(rows) - len(Path(parts[3]).read_text().splitlines())
    last = Path(parts[3]).read_text().splitlines(keepends=True)
    last[4], last[6] = "7" + last[4][1:], "9" + last[6][1:]
    Path(parts[3]).write_text("".join(last))
    settings = replace(SMALL, metric="err@10(max=4)")
    said = f"row {first + 5} has the label 7, above the largest label 4 of err; give a larger max, as in err(max=9)"
    with pytest.raises(DataError) as alone, WorkerPool(1) as pool:
        resolve_for(settings, read_dataset(parts, ReadOptions(), pool))
    assert alone.value.message == said
    sets = [SetFiles("parts", parts)]
    if in_validation:
        sets = [SetFiles("train", write_parts(learnable(2), 2, tmp_path, "train")), *sets]
    else:
        monkeypatch.setattr(Shard, "sample", None)  # refused after the first pass
    for n_shards in (1, 3):
        with pytest.raises(DataError) as fault:
            fit_in_shards(sets[0], settings, n_shards, sets[1:])
        assert (fault.value.path, fault.value.message) == ("parts", said)


def test_parts_without_rows_change_nothing(tmp_path: Path) -> None:
    parts = write_parts(learnable(), 3, tmp_path)
    valid = write_parts(learnable(2), 2, tmp_path, "valid")
    empty = [tmp_path / name for name in ("e1", "e2", "e3")]
    for path, text in zip(empty, ("", "# nothing\n\n", " \n"), strict=True):
        path.write_text(text)
    first, second, third = map(str, empty)
    told: list[tuple[str, bool]] = []
    options = replace(ReadOptions(), tell=lambda text, is_warning: told.append((text, is_warning)))
    for n_shards in (1, 2, 5):
        found = [
            fit_in_shards(SetFiles("p", one), SMALL, n_shards, [SetFiles("v", other)], options)
            for one, other in (
                (parts, valid),
                ([first, parts[0], second, *parts[1:], third], [valid[0], first, valid[1]]),
            )
        ]
        assert bytes_of(found[0][0]) == bytes_of(found[1][0]) and found[0][1] == found[1][1]
    assert [text for text, _ in told if "no rows" in text] == [
        f"{first} and 2 more: there are no rows in them",
        f"{first}: there are no rows in it",
    ] * 3
    for sets in ([[first, second], valid], [parts, [first, second]]):
        with pytest.raises(DataError, match="there are no rows in it; check the step that made it") as fault:
            fit_in_shards(SetFiles("p", sets[0]), SMALL, 2, [SetFiles("v", sets[1])])
        assert fault.value.path == f"{first} and 1 more"


def test_weights_of_one_kind_only(tmp_path: Path) -> None:
    parts = write_parts(learnable(), 2, tmp_path)
    files = []
    for k, path in enumerate(parts):
        rows = [line.split()[1] for line in Path(path).read_text().splitlines()]
        files.append(f"{path}.w")
        Path(files[-1]).write_text("1\n" * (len(rows) if k else len(set(rows))))
    with pytest.raises(DataError, match=r"one weight per row, but .*part-0\.svm\.w has one per query") as fault:
        fit_in_shards(SetFiles("parts", parts, files), SMALL, 2)
    assert fault.value.path == files[1]
    Path(files[1]).write_text("0\n" * len(Path(parts[1]).read_text().splitlines()))
    Path(files[0]).write_text("0\n" * len(Path(parts[0]).read_text().splitlines()))
    with pytest.raises(DataError, match="all weights are zero"):
        fit_in_shards(SetFiles("parts", parts, files), SMALL, 2)


@pytest.mark.parametrize(
    "sizes, n_shards, expected",
    [
        ([1, 1, 1, 1], 2, [(0, 2), (2, 4)]),
        ([9, 1, 1, 1], 2, [(0, 1), (1, 4)]),
        ([1, 1, 1, 9], 3, [(0, 2), (2, 3), (3, 4)]),
        ([5], 3, [(0, 1), (1, 1), (1, 1)]),
        ([0, 0, 0], 2, [(0, 1), (1, 3)]),
    ],
)
def test_shards_have_adjacent_parts_of_about_the_same_bytes(
    sizes: list[int], n_shards: int, expected: list[tuple[int, int]]
) -> None:
    assert sharded_sets.adjacent_parts(sizes, n_shards) == expected
