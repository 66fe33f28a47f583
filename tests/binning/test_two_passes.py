"""Data read straight into bins: the same model as from the data set in memory, and what can go wrong between passes."""

from __future__ import annotations

import errno
import gzip
import itertools
import os
import random
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.commands import run
from helpers.datasets import random_dataset
from helpers.score_data import score_dataset

from lmart.binning import two_passes
from lmart.binning.edges import choose_bin_edges
from lmart.data.metadata import Metadata
from lmart.errors import DataError
from lmart.formats.documents.reading import read_dataset
from lmart.formats.models.lmart_json import model_to_json
from lmart.formats.read_options import ReadOptions
from lmart.settings import TrainSettings
from lmart.threads import WorkerPool
from lmart.training.boosting import train, without_trees

SETTINGS = TrainSettings(trees=4, leaves=6, min_docs=2, min_hessian=0.0, max_bins=15)


@pytest.fixture(params=[1, 2])
def pool(request: pytest.FixtureRequest) -> Iterator[WorkerPool]:
    with WorkerPool(request.param) as pool:
        yield pool


@pytest.fixture(params=["one pass", "two passes", "rows one by one"])
def passes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How the training set is read; more than one pass needs a sample that has not every row."""
    if request.param != "one pass":
        monkeypatch.setattr("lmart.binning.edge_sample.SAMPLE_LIMIT", 60)
    if request.param == "rows one by one":
        monkeypatch.setattr("lmart.formats.documents.text_reader.FIRST_BLOCK", 8)
        monkeypatch.setattr("lmart.formats.documents.text_reader.BLOCK", 8)
        monkeypatch.setattr("lmart.formats.documents.text_reader.CHUNK", 8)
        monkeypatch.setattr("lmart.formats.documents.parquet.BLOCK_ROWS", 1)
        monkeypatch.setattr("lmart.binning.validation_set.CHUNK", 3)
    return str(request.param)


pytestmark = pytest.mark.usefixtures("in_folder")


def letor(seed: int, n_queries: int = 30, special: tuple[str, ...] = (), first: int = 0, extra: int = 0) -> str:
    """Return queries with absent cells, ids out of order, and a feature that appears late."""
    rng = random.Random(seed)
    lines: list[str] = []
    for q in range(first, first + n_queries):
        for _ in range(rng.randrange(1, 9)):
            label = rng.randrange(4)
            cells = {9: label + rng.gauss(0, 1), 2: rng.gauss(0, 2), 30: float(rng.randrange(3)), 4: rng.random()}
            if q - first > n_queries // 2:
                cells[1] = label * rng.random()
            if extra:
                cells[extra] = rng.random()
            words = []
            for feature, value in sorted(cells.items()):
                if rng.random() < 0.8:
                    text = rng.choice(special) if special and rng.random() < 0.2 else f"{value:.3f}"
                    words.append(f"{feature}:{text}")
            lines.append(f"{label} qid:{q} {' '.join(words)} # docid = d{len(lines)}\n")
    return "".join(lines)


def both_ways(
    pool: WorkerPool,
    paths: list[str],
    valid: list[str] = [],  # noqa: B006  (never changed)
    options: ReadOptions = ReadOptions(),  # noqa: B008
    **changed: Any,
) -> str:
    """Train from data in memory and from data in bins; both must be the same in all that they return."""
    settings = replace(SETTINGS, **changed)
    whole = read_dataset(paths, options, pool)
    expected = train(whole, [read_dataset([path], options, pool) for path in valid], settings, pool)
    binned = two_passes.read_training_set(paths, options, settings, pool)
    model, edges = without_trees(binned, settings), binned.features.edges
    coded = [two_passes.read_validation_set(path, options, model, edges, pool) for path in valid]
    found = train(binned, coded, settings, pool)
    assert len(found.ensemble.trees) == settings.trees
    assert model_to_json(found.ensemble) == model_to_json(expected.ensemble)
    assert (found.training, found.validation, found.warnings) == (
        expected.training,
        expected.validation,
        expected.warnings,
    )
    assert found.scores.tobytes() == expected.scores.tobytes()
    assert binned.query_offsets.tolist() == whole.query_offsets.tolist() and binned.source == whole.source
    return model_to_json(found.ensemble)


@pytest.mark.parametrize("special", [(), ("nan", "0"), ("inf", "-inf", "nan")])
@pytest.mark.parametrize("absent", ["zero", "missing"])
def test_letor_with_missing_absent_and_infinite_values(
    pool: WorkerPool, passes: str, special: tuple[str, ...], absent: str
) -> None:
    Path("a").write_text(letor(1, special=special))
    Path("v").write_text(letor(2, special=("inf", "-inf", "nan"), first=100, extra=77))
    options = ReadOptions(allow_inf=True)
    both_ways(pool, ["a"], ["v", "a"], options, absent=absent, metric="ndcg@5")


def test_several_files_some_compressed(pool: WorkerPool, passes: str) -> None:
    texts = [letor(seed, 15, first=100 * seed, extra=seed) for seed in (1, 2, 3)]
    Path("a").write_text(texts[0])
    Path("b.gz").write_bytes(gzip.compress(texts[1].encode()))
    Path("c").write_text(texts[2])
    model = both_ways(pool, ["a", "b.gz", "c"])
    Path("all").write_text("".join(texts))
    assert both_ways(pool, ["all"]) == model


@pytest.mark.parametrize("kind", ["csv", "quoted.csv", "tsv", "parquet"])
def test_tables_with_names(pool: WorkerPool, passes: str, kind: str) -> None:
    data = random_dataset(4, n_queries=25)
    dense = data.features.dense(data.n_features, 0.0)
    queries = np.repeat(np.arange(data.n_queries), np.diff(data.query_offsets))
    names = ["width", "age", "clicks", "zeta", "beta", "constant"]
    if kind == "parquet":
        pyarrow = pytest.importorskip("pyarrow")
        columns = {"label": data.labels, "qid": queries} | dict(zip(names, dense.T, strict=True))
        pyarrow.parquet = __import__("pyarrow.parquet").parquet
        pyarrow.parquet.write_table(pyarrow.table({k: np.ascontiguousarray(x) for k, x in columns.items()}), kind)
    else:
        sign = "\t" if kind == "tsv" else ","
        q = '"' if kind.startswith("quoted") else ""
        rows = [sign.join(["label", "qid", *names])]
        for label, query, values in zip(data.labels.tolist(), queries.tolist(), dense.tolist(), strict=True):
            rows.append(sign.join([f"{label:g}", f"{q}q{query}{q}", *("" if x == 0 else repr(x) for x in values)]))
        Path(f"d.{kind}").write_text("\n".join(rows) + "\n")
        kind = f"d.{kind}"
    model = both_ways(pool, [kind], [kind])
    assert '"zeta"' in model


def test_rows_collected_by_query_and_repeated_indices(pool: WorkerPool, passes: str) -> None:
    lines = letor(5).splitlines(keepends=True)
    random.Random(1).shuffle(lines)
    Path("a").write_text("".join(line.replace(" 9:", " 9:7 9:") for line in lines))
    both_ways(pool, ["a"], ["a"], ReadOptions(group_by_qid=True, duplicates="last"))


def test_queries_by_size(pool: WorkerPool, passes: str) -> None:
    lines = letor(6).splitlines(keepends=True)
    sizes: dict[str, int] = {}
    for line in lines:
        query = line.split()[1]
        sizes[query] = sizes.get(query, 0) + 1
    Path("sizes").write_text("".join(f"{size}\n" for size in sizes.values()))
    both = [" ".join(line.split()[:1] + line.split()[2:]) + "\n" for line in lines]
    Path("a").write_text("".join(both[:41]))
    Path("b").write_text("".join(both[41:]))
    options = ReadOptions(query_sizes="sizes")
    both_ways(pool, ["a", "b"], [], options)
    Path("sizes").write_text("3\n")
    with pytest.raises(DataError, match="sum to 3, but a has more than 3 rows"):
        two_passes.read_training_set(["a", "b"], options, SETTINGS, pool)


def test_sizes_that_can_be_read_only_once_are_enough(passes: str, in_folder: Path) -> None:
    lines = letor(6).splitlines()
    sizes = "".join(f"{len(list(rows))}\n" for _, rows in itertools.groupby(line.split()[1] for line in lines))
    Path("a").write_text("".join(" ".join(line.split()[:1] + line.split()[2:]) + "\n" for line in lines))
    Path("sizes").write_text(sizes)
    assert models("a", "--query-sizes", "-", stdin=sizes.encode()) == models("a", "--query-sizes", "sizes")


def models(*arguments: str, stdin: bytes | None = None) -> bytes:
    """Train by the command line, from the arguments; return the model."""
    small = ("--trees", "4", "--leaves", "6", "--min-docs", "2", "--max-bins", "15", "--quiet")
    run("train", "--data", *arguments, "--out", "m.json", *small, stdin=stdin)
    return Path("m.json").read_bytes()


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("kept", [0, 1 << 24])
def test_what_can_be_read_only_once_is_kept(
    passes: str, compress: bool, kept: int, in_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = letor(7).encode()
    content = gzip.compress(text) if compress else text
    Path("a").write_bytes(text)
    expected = models("a")
    spools = in_folder / "spools"
    spools.mkdir()
    monkeypatch.setattr("lmart.streams.inputs.KEPT", kept)
    monkeypatch.setattr("tempfile.tempdir", str(spools))
    assert models("-", stdin=content) == expected
    os.mkfifo("pipe")
    writer = threading.Thread(target=Path("pipe").write_bytes, args=(content,))
    writer.start()
    assert models("pipe") == expected
    writer.join()
    assert not list(spools.iterdir())


def test_a_table_from_a_pipe_is_kept_too(passes: str) -> None:
    pytest.importorskip("pyarrow")
    Path("a").write_text(letor(8))
    run("convert", "a", "a.parquet")
    assert models("-", stdin=Path("a.parquet").read_bytes()) == models("a.parquet")


def test_without_a_folder_for_temporary_files_the_data_is_held_in_memory(
    passes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("a").write_text(letor(9))
    expected = models("a")

    def none_usable() -> str:
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found")

    monkeypatch.setattr("tempfile.gettempdir", none_usable)
    assert models("-", stdin=Path("a").read_bytes()) == expected


@pytest.mark.parametrize("size", [20, 4000])
def test_a_full_disk_is_told_and_where(size: int, in_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lmart.streams.inputs.KEPT", 0)
    monkeypatch.setattr("tempfile.tempdir", str(in_folder))

    class Full:
        def write(self, piece: memoryview) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        def close(self) -> None:
            pass

    monkeypatch.setattr("tempfile.SpooledTemporaryFile", lambda max_size: Full())
    content = gzip.compress(letor(9).encode()[:size])
    said = run("train", "--data", "-", "--out", "m.json", stdin=content, status=1).stderr
    assert said == (
        f"lmart: error: standard input: cannot be kept in {in_folder} to be read twice: No space left on device; "
        "set TMPDIR to a folder with more room, or give a file\n"
    )
    assert not Path("m.json").exists()


def grown(text: str) -> str:
    return text + "0 qid:new 2:1\n"


def cut(text: str) -> str:
    return text[: text.rindex("\n", 0, -1) + 1]


def relabelled(text: str) -> str:
    return ("3" if text[0] == "0" else "0") + text[1:]


def with_a_new_feature(text: str) -> str:
    return text.replace(" 30:", " 31:", 1)


def damaged(text: str) -> str:
    return text.replace(" 30:", " 30;", 1)


@pytest.mark.parametrize("noticed", [True, False], ids=["by its state", "by what it holds"])
@pytest.mark.parametrize("change", [grown, cut, relabelled, with_a_new_feature, damaged])
def test_a_file_that_changes_between_the_passes_is_refused(
    change: Any, noticed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lmart.binning.edge_sample.SAMPLE_LIMIT", 60)
    Path("a").write_text(letor(10))
    Path("b").write_text(letor(11, 5, first=50))
    choose = choose_bin_edges
    if not noticed:
        monkeypatch.setattr(two_passes, "state_of", lambda path: None)
        monkeypatch.setattr("lmart.streams.inputs.state_of", lambda path: None)

    def choose_and_change(*arguments: Any) -> Any:
        Path("a").write_text(change(Path("a").read_text()))
        return choose(*arguments)

    monkeypatch.setattr(two_passes, "choose_bin_edges", choose_and_change)
    said = run("train", "--data", "a", "b", "--out", "m.json", status=1).stderr.splitlines()
    assert len(said) == 1
    if change is damaged and not noticed:
        assert "30;" in said[0]
    else:
        file = "b" if change is cut and not noticed else "a"
        assert said == [f"lmart: error: {file}: the file changed while it was read; start again once it is complete"]
    assert not Path("m.json").exists()


def test_all_faults_of_an_input_are_told_and_a_query_that_comes_back(passes: str) -> None:
    text = letor(12)
    Path("a").write_text(text)
    Path("b").write_text("1 qid:x 2:1\n0 qid:x 2:y\n0 qid:x 3:z\n")
    said = run("train", "--data", "a", "b", "--out", "m.json", status=1).stderr
    assert "b:2: value 'y'" in said
    Path("b").write_text("1 qid:x 2:1\n0 qid:0 2:2\n")
    said = run("train", "--data", "a", "b", "--out", "m.json", status=1).stderr
    assert said.startswith("lmart: error: b:2: rows of query '0' are not adjacent (first seen at a:1)")
    Path("b").write_text("\n")
    said = run("train", "--data", "b", "b", "--out", "m.json", status=1).stderr
    assert said == "lmart: error: b and 1 more: there are no rows in it; check the step that made it\n"


def test_inputs_without_rows_change_nothing(passes: str) -> None:
    Path("a").write_text(letor(12))
    Path("b").write_text("# nothing\n")
    Path("c.csv").write_text("")
    Path("d.parquet").write_text("")
    for data, model in ((("a",), "one.json"), (("b", "a", "c.csv", "d.parquet"), "m.json")):
        said = run("train", "--data", *data, "--out", model, "--trees", "3", "--min-docs", "2").stderr
        told = [line for line in said.splitlines() if "no rows" in line]
        assert told == ["lmart: b and 2 more: there are no rows in them"] * (len(data) > 1)
    assert Path("m.json").read_bytes() == Path("one.json").read_bytes()
    for empty in ("b", "c.csv", "d.parquet"):
        said = run("train", "--data", empty, "--out", "m.json", status=1).stderr
        assert said == f"lmart: error: {empty}: there are no rows in it; check the step that made it\n"
        said = run("train", "--data", "a", "--valid", empty, "--out", "m.json", "-q", status=1).stderr
        assert said == f"lmart: error: {empty}: there are no rows in it; check the step that made it\n"


def test_tables_without_rows_change_nothing() -> None:
    Path("a.csv").write_text("label,qid,f,g\n1,1,2,3\n0,1,3,4\n")
    Path("b.csv").write_text("label,qid,f,g\n")
    said = run("eval", "--data", "a.csv", "b.csv", "--scores", "-", "--metric", "mrr", "--json", stdin="1\n2\n")
    assert said.stderr == "lmart: b.csv: there are no rows in it\n" and '"mrr": 0.5' in said.stdout
    said = run("eval", "--data", "b.csv", "b.csv", "--scores", "-", stdin="", status=1)
    assert said.stderr == "lmart: error: b.csv and 1 more: there are no rows in it; check the step that made it\n"


def test_a_validation_set_without_known_features_is_refused(pool: WorkerPool) -> None:
    Path("a").write_text(letor(13))
    Path("v").write_text("1 qid:1 5:1\n0 qid:1 5:2\n")
    said = run("train", "--data", "a", "--valid", "v", "--out", "m.json", "--quiet", status=1).stderr
    assert said.startswith("lmart: error: v: no feature of the data is in the model: the data has '5'")


def test_no_weight_is_lost_on_the_way(passes: str) -> None:
    Path("a").write_text(letor(14))
    n = Path("a").read_text().count("\n")
    Path("w").write_text("".join(f"{1 + i % 3}\n" for i in range(n)))
    weighted = models("a", "--weights", "w")
    whole = read_dataset(["a"], ReadOptions())
    weights = np.array([1.0 + i % 3 for i in range(n)])
    settings = TrainSettings(trees=4, leaves=6, min_docs=2, max_bins=15)
    with WorkerPool(1) as pool:
        expected = train(whole, [], settings, pool, metadata=Metadata(weights))
    assert weighted.decode() == model_to_json(expected.ensemble)


def test_infinity_goes_with_what_lies_above_where_training_saw_none(pool: WorkerPool) -> None:
    # One split, numbers against missing values; infinity is above every threshold, so it goes with the missing ones.
    Path("a").write_text("".join(f"{q % 3 % 2} qid:{q // 6} 4:{('5', 'nan')[q % 3 % 2]}\n" for q in range(60)))
    Path("v").write_text("0 qid:1 4:5\n1 qid:1 4:inf\n0 qid:2 4:7\n1 qid:2 4:nan\n2 qid:3 4:inf\n1 qid:3 4:3\n")
    options = ReadOptions(allow_inf=True)
    both_ways(pool, ["a"], ["v"], options, absent="missing")
    binned = two_passes.read_training_set(["a"], options, SETTINGS, pool)
    coded = two_passes.read_validation_set("v", options, without_trees(binned, SETTINGS), binned.features.edges, pool)
    found = train(binned, [coded], SETTINGS, pool)
    scored = score_dataset(found.ensemble, read_dataset(["v"], options, pool), pool)
    assert scored[1] == scored[3] == scored[4] > scored[0] == scored[2] == scored[5]
    assert found.validation == (1.0,)


def test_ignoring_features_of_letor_text_is_training_without_them(passes: str, pool: WorkerPool) -> None:
    text = letor(4)
    Path("d").write_text(text)
    Path("without").write_text(" ".join(word for word in text.split(" ") if word[:2] not in ("2:", "1:")))
    models = []
    for path, ignored in (("d", ("2", "1")), ("without", ())):
        data = two_passes.read_training_set([path], ReadOptions(ignore_columns=ignored), SETTINGS, pool)
        assert data.feature_ids.tolist() == [4, 9, 30]
        model, options = without_trees(data, SETTINGS), ReadOptions(ignore_columns=(*ignored, "77"), beside_others=True)
        valid = two_passes.read_validation_set(path, options, model, data.features.edges, pool)
        assert not valid.warnings
        models.append(model_to_json(train(data, [valid], SETTINGS, pool).ensemble))
    assert models[0] == models[1]
    warned: list[str] = []
    options = ReadOptions(ignore_columns=("5",)).telling(lambda text: None, warned.append)
    two_passes.read_training_set(["d"], options, SETTINGS, pool)
    assert warned == ["d: no row has the feature to ignore '5'; check --ignore-columns"]


@pytest.mark.parametrize("options", [[], ["--group-by-qid"], ["--folds", "2"]])
def test_tables_that_lack_a_column_are_told_of_before_training(options: list[str]) -> None:
    Path("ab.csv").write_text("label,qid,a,b\n2,1,5,9\n0,1,5,4\n0,2,5,1\n1,2,5,7\n")
    Path("a.csv").write_text("label,qid,a\n2,3,5\n0,3,4\n")
    small = ["--min-docs", "1", "--trees", "2", "--out", "m.json", *options]
    for order in (["ab.csv", "a.csv"], ["a.csv", "ab.csv"]):
        told = run("train", "--data", *order, *small, "--absent", "missing").stderr
        warning = "lmart: warning: a.csv: 1 of 2 features of the data has no column: 'b'; counted as missing\n"
        assert told.index(warning) < told.index("lmart: read 6 documents")
        refusal = run("train", "--data", *order, *small, "--strict", status=1).stderr
        assert "error: a.csv: 1 of 2 features of the data has no column: 'b'; give the files the same" in refusal
    told = run("train", "--data", "ab.csv", "--valid", "a.csv", *small).stderr
    warning = "lmart: warning: a.csv: 1 of 2 features of the model has no column: 'b'; counted as 0\n"
    assert told.count(warning) == 1 and told.index(warning) < told.index("lmart: read 4 documents")
    told = run("train", "--data", "ab.csv", "--valid", "a.csv", *small, "--strict", status=1).stderr
    assert "error: a.csv: 1 of 2 features of the model has no column: 'b'" in told
    assert "warning" not in run("train", "--data", "ab.csv", "--valid", "ab.csv", *small, "--strict").stderr
