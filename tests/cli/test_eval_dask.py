"""lmart eval --dask: the bytes of one process, with tasks run in this one and on clusters of this machine."""

from __future__ import annotations

import gzip
import os
import random
import re
import signal
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from helpers.cluster_here import connected_here
from helpers.clusters import cluster
from helpers.commands import PROGRAM, run, start
from helpers.parts import as_table, judged_queries, split, write_beside
from helpers.planted import HOLD, Moment
from helpers.waiting import LIMIT, wait_until

ALL = "ndcg@3,ndcg,dcg@5,map,map@3,mrr,p@3,recall@3,err@3,err,err(max=9)@2,rbp(0.9),bpref,kendall,judged@3,p@2(rel=2)"
MEASURING = "lmart.distributed.evaluation:measure_part"
ON_CLUSTER = ("--dask", "local:2")
Seen = tuple[int, str, str, dict[str, bytes]]


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tasks of a cluster are run in this process."""
    monkeypatch.setattr("lmart.distributed.cluster.connected", connected_here)


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, Path]]:
    """Two folders: for one process and for a cluster, which find the same data there."""
    found = tmp_path / "one", tmp_path / "many"
    for folder in found:
        folder.mkdir()
    monkeypatch.chdir(found[0])
    yield found


def write_parts(folders: Sequence[Path], texts: Sequence[str | bytes], suffix: str = "svm") -> list[str]:
    """Write the parts of the data to both folders; return their names."""
    names = [f"part-{k}.{suffix}" for k in range(len(texts))]
    for folder in folders:
        for name, text in zip(names, texts, strict=True):
            (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return names


def texts_of(parts: Sequence[Sequence[list[str]]]) -> list[str]:
    return ["".join(row for query in part for row in query) for part in parts]


def standard_data(folders: Sequence[Path], n_parts: int = 5) -> list[str]:
    """Write parts, models, and files of scores, weights and groups.

    In the folder for one process a file has the name that is a pattern in that for the cluster, so that both are called
    the same.
    """
    parts = split(judged_queries(1, 36, named=True), n_parts)
    names = write_parts(folders, texts_of(parts))
    rows, queries = [sum(map(len, part)) for part in parts], [len(part) for part in parts]
    rng = random.Random(3)
    beside = {
        "scores": ("".join(f"{rng.randint(0, 4)}\n" for _ in range(sum(rows))), rows),
        "worse": ("".join(f"{rng.random()}\n" for _ in range(sum(rows))), rows),
        "by_row": ("".join(f"{rng.random()}\n" for _ in range(sum(rows))), rows),
        "by_query": ("".join(f"{rng.random() * 100}\n" for _ in range(sum(queries))), queries),
    }
    os.chdir(folders[0])
    train(names, "m.json")
    train(names, "linear.json", "--gain", "linear")
    for folder in folders:
        (folder / "groups.tsv").write_text("".join(f"q{q}\t{'abc'[q % 3]}\n" for q in range(33)))
        for name in ("m.json", "linear.json"):
            (folder / name).write_bytes((folders[0] / name).read_bytes())
    for name, (text, sizes) in beside.items():
        (folders[0] / f"{name}-?.txt").write_text(text)
        os.chdir(folders[1])
        write_beside(text, sizes, name)
    return names


def train(data: Sequence[str], model: str, *options: str) -> None:
    small = ("--trees", "6", "--min-docs", "2", "--rankers", "1", "-q", "--out", model)
    run("train", "--data", *data, *small, *options)


def measured(folder: Path, *options: str, status: int | None = None) -> Seen:
    """Run eval in a folder; return its status, what it printed, and the files that it wrote."""
    os.chdir(folder)
    written = [Path(name) for name in ("q.tsv", "q.jsonl", "page.html")]
    for path in written:
        path.unlink(missing_ok=True)
    done = run("eval", *options, status=0 if status is None else status)
    return status or 0, done.stdout, done.stderr, {path.name: path.read_bytes() for path in written if path.exists()}


def both(folders: Sequence[Path], names: Sequence[str], *options: str, status: int = 0) -> Seen:
    """Measure in one process and on a cluster; return what both of them gave."""
    one = measured(folders[0], "--data", *names, *options, status=status)
    pattern = "part-*." + names[0].split(".", 1)[1]
    many = measured(folders[1], "--data", pattern, *options, *ON_CLUSTER, status=status)
    assert many == one
    return one


LIKE = ["lightgbm", "xgboost", "ranklib", "trec_eval", "sklearn", "letor4", "mslr", "gdeval"]
SYSTEMS = ("-m", "m.json", "--scores", "scores-?.txt", "worse-?.txt", "-m", "linear.json", "--gain", "exp2")


@pytest.mark.slow
@pytest.mark.usefixtures("here")
def test_the_bytes_of_one_process(folders: tuple[Path, Path]) -> None:
    names = standard_data(folders)
    for like in LIKE:
        both(folders, names, "-m", "m.json", "--like", like, "--json", "--per-query", "q.tsv")
    conventions: list[tuple[str, ...]] = [("--empty", "skip"), ("--empty", "one"), ("--relevant", "2")]
    conventions += [("--ties", how) for how in ("average", "reverse", "docid")]
    for how in conventions:
        both(folders, names, "-m", "m.json", *how, "--json", "--per-query", "q.jsonl")
    for more in [
        ("--metric", ALL),
        ("--weights", "by_query-?.txt"),
        ("--weights", "by_row-?.txt", "--by", "groups.tsv", "--metric", ALL),
        ("--weights", "by_row-?.txt", "--by", "groups.tsv", "--like", "lightgbm"),
        ("--all-pairs", "--ties", "docid"),
    ]:
        both(folders, names, *SYSTEMS, *more, "--per-query", "q.tsv")
        both(folders, names, *SYSTEMS, *more, "--json")
    _, said, _, _ = both(folders, names, *SYSTEMS, "--weights", "by_row-?.txt", "--per-query", "-")
    assert said.count("\n") == 1 + 4 * 36
    _, _, warned, _ = both(folders, names, "-m", "m.json", "--by", "groups.tsv")
    assert "3 queries of part-0.svm and 4 more without a group" in warned


@pytest.mark.usefixtures("here")
@pytest.mark.slow
def test_a_page_of_one_process(folders: tuple[Path, Path]) -> None:
    pytest.importorskip("matplotlib")
    names = standard_data(folders)
    *_, written = both(folders, names, *SYSTEMS, "--by", "groups.tsv", "--html", "page.html")
    assert list(written) == ["page.html"]


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("n_parts", [1, 2, 7])
def test_the_number_of_parts_does_not_matter(n_parts: int, folders: tuple[Path, Path]) -> None:
    both(folders, standard_data(folders, n_parts), *SYSTEMS, "--metric", ALL, "--json", "--per-query", "q.tsv")


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("high", [0, 2])
def test_the_largest_label_of_err_is_that_of_all_parts(high: int, folders: tuple[Path, Path]) -> None:
    """Also in parts that lack it, whether their models name one or not."""
    parts = split(judged_queries(2, 20), 4)
    parts[1] = judged_queries(4, 4, labels=(0, 1, 5), first=70)
    parts[high] = judged_queries(3, 5, labels=(0, 3, 7), first=50)
    names = write_parts(folders, texts_of(parts))
    os.chdir(folders[0])
    train([names[1]], "low.json", "--objective", "err")
    train(names, "high.json", "--objective", "err")
    for name in ("low.json", "high.json"):
        (folders[1] / name).write_bytes(Path(name).read_bytes())
    _, said, _, _ = both(folders, names, "-m", "high.json", "--metric", "err@3,ndcg,err", "--per-query", "q.tsv")
    assert "2^7" in said
    _, _, warned, _ = both(folders, names, "-m", "low.json", "--metric", "err@3,ndcg")
    assert "the data has labels above 5" in warned
    low = [name for k, name in enumerate(names) if k != high]
    for folder in folders:
        (folder / names[high]).unlink()
    _, said, _, _ = both(folders, low, "-m", "high.json", "--metric", "err@3,ndcg", "--per-query", "q.tsv")
    assert "2^7" in said  # of training


@pytest.mark.usefixtures("here")
def test_a_label_above_the_largest_that_is_named(folders: tuple[Path, Path]) -> None:
    parts = split(judged_queries(2, 12, labels=(0, 1)), 3)
    parts[1][-1][-1] = parts[1][-1][-1].replace("0 ", "5 ", 1).replace("1 ", "5 ", 1)
    parts[2][0][0] = "6" + parts[2][0][0][1:]
    names = write_parts(folders, texts_of(parts))
    os.chdir(folders[0])
    Path("scores-?.txt").write_text("1\n" * sum(len(query) for part in parts for query in part))
    os.chdir(folders[1])
    write_beside((folders[0] / "scores-?.txt").read_text(), [sum(map(len, part)) for part in parts], "scores")
    _, _, said, _ = both(folders, names, "--scores", "scores-?.txt", "--metric", "ndcg,err(max=4)", status=1)
    row = sum(len(query) for part in parts[:2] for query in part)
    assert f"part-0.svm and 2 more: row {row} has the label 5, above the largest label 4 of err; give" in said
    assert "err(max=6)" in said


@pytest.mark.usefixtures("here")
def test_parts_without_rows(folders: tuple[Path, Path]) -> None:
    texts = texts_of(split(judged_queries(2, 12), 3))
    names = write_parts(folders, ["", texts[0], "# nothing\n", *texts[1:], " \n"])
    n_rows = [len(text.splitlines()) for text in texts]
    (folders[0] / "scores-?.txt").write_text("".join(f"{k % 7}\n" for k in range(sum(n_rows))))
    os.chdir(folders[1])
    write_beside((folders[0] / "scores-?.txt").read_text(), [0, n_rows[0], 0, *n_rows[1:], 0], "scores")
    _, _, said, _ = both(folders, names, "--scores", "scores-?.txt", "--metric", ALL, "--json", "--ties", "docid")
    assert said == "lmart: part-0.svm and 2 more: there are no rows in them\n"
    for folder in folders:
        for name in (names[1], *names[3:]):
            (folder / name).write_text("")
    for path in folders[1].glob("scores-*"):
        path.write_text("")
    _, _, said, _ = both(folders, names, "--scores", "scores-?.txt", status=1)
    assert said == "lmart: error: part-0.svm and 5 more: there are no rows in it; check the step that made it\n"


@pytest.mark.usefixtures("here")
def test_a_dcg_that_is_too_large(folders: tuple[Path, Path]) -> None:
    """The one that one process would meet first: by measure, then by query."""
    parts = [["1 qid:1 1:1\n"], ["0 qid:2 1:1\n", "1500 qid:2 1:2\n"], ["1600 qid:3 1:2\n"]]
    names = write_parts(folders, ["".join(part) for part in parts])
    (folders[0] / "scores-?.txt").write_text("1\n2\n1\n3\n")
    os.chdir(folders[1])
    write_beside("1\n2\n1\n3\n", [1, 2, 1], "scores")
    for metric, label in (("ndcg,dcg@2", 1500), ("dcg@1,dcg@2", 1600)):
        _, _, said, _ = both(folders, names, "--scores", "scores-?.txt", "--metric", metric, status=1)
        assert f"label {label} is too large" in said


@pytest.mark.usefixtures("here")
def test_tables_whose_columns_stand_in_another_order(folders: tuple[Path, Path]) -> None:
    """By name for a model with names; by their places in the first table for one without."""
    parts = split(judged_queries(4, 20), 3)
    orders = [(2, 1, 3), (3, 1, 2), (1, 2)]
    tables = [as_table(text.splitlines(), order, "abc") for text, order in zip(texts_of(parts), orders, strict=True)]
    names = write_parts(folders, tables, "csv")
    os.chdir(folders[0])
    Path("train.svm").write_text("".join(texts_of(parts)))
    Path("train.csv").write_text(as_table("".join(texts_of(parts)).splitlines(), (1, 2, 3), "abc"))
    train(["train.svm"], "unnamed.json")
    train(["train.csv"], "named.json")
    for name in ("unnamed.json", "named.json"):
        (folders[1] / name).write_bytes(Path(name).read_bytes())
    for models in (["unnamed.json"], ["named.json"], ["named.json", "unnamed.json"]):
        _, _, warned, _ = both(folders, names, "-m", *models, "--per-query", "q.tsv", "--json")
        assert ("matched by number" in warned) == ("unnamed.json" in models)
        assert "part-2.csv: 1 of 3 features of the model" in warned
    both(folders, names, "-m", "named.json", "--strict", status=1)


@pytest.mark.slow
@pytest.mark.usefixtures("here")
def test_formats_and_compression(folders: tuple[Path, Path]) -> None:
    names = standard_data(folders, 3)
    for suffix in ("svm.gz", "tsv", "parquet"):
        if suffix == "parquet":
            pytest.importorskip("pyarrow")
        for folder in folders:
            os.chdir(folder)
            for name in names:
                other = name.removesuffix("svm") + suffix
                if suffix == "svm.gz":
                    Path(other).write_bytes(gzip.compress(Path(name).read_bytes()))
                else:
                    run("convert", name, other)
        others = [name.removesuffix("svm") + suffix for name in names]
        both(folders, others, *SYSTEMS, "--weights", "by_row-?.txt", "--ties", "docid", "--per-query", "q.tsv")


@pytest.mark.usefixtures("here")
def test_data_of_other_features_is_refused_or_warned_of(folders: tuple[Path, Path]) -> None:
    names = standard_data(folders, 3)
    for folder in folders:
        for k, name in enumerate(names):
            text = (folder / name).read_text()
            (folder / name).write_text(re.sub(r" 3:", f" {7 + k}:", text))
    _, _, warned, _ = both(folders, names, "-m", "m.json", "linear.json", "--gain", "exp2")
    assert warned.count("3 of 5 features are not in the model: '7', '8', '9'; scored without (model ") == 2
    both(folders, names, "-m", "m.json", "--strict", status=1)
    for folder in folders:
        for name in names:
            text = (folder / name).read_text()
            (folder / name).write_text(re.sub(r" (\d):", r" 7\1:", text))
    _, _, said, _ = both(folders, names, "-m", "m.json", status=1)
    assert "part-0.svm and 2 more: no feature of the data is in the model" in said


@pytest.mark.usefixtures("here")
def test_messages_of_readers_are_told_once(folders: tuple[Path, Path]) -> None:
    names = standard_data(folders, 3)
    _, _, warned, _ = both(folders, names, "-m", "m.json", "--ignore-columns", "3,9")
    assert warned.count("leaves out feature '3'") == 3  # one names each part
    assert warned.count("part-0.svm and 2 more: no row has the feature to ignore '9'") == 1
    for folder in folders:
        for k, name in enumerate(names):
            (folder / name).write_text(f"1 qid:{k} 1:1\n")
    _, _, warned, _ = both(folders, names, "-m", "m.json")
    assert warned.count("every query has one document") == 1


def refused(folder: Path, *options: str, status: int = 1) -> str:
    """The one line of a refusal, which writes nothing."""
    os.chdir(folder)
    Path("q.tsv").write_text("old")
    done = run("eval", *options, "--per-query", "q.tsv", *ON_CLUSTER, status=status)
    assert Path("q.tsv").read_text() == "old" and done.stdout == ""
    (line,) = done.stderr.splitlines()
    return line


@pytest.mark.usefixtures("here")
def test_a_query_that_spans_parts_is_refused(folders: tuple[Path, Path]) -> None:
    names = standard_data(folders, 4)
    last = (folders[1] / names[0]).read_text().splitlines()
    with (folders[1] / names[2]).open("a") as file:
        file.write(last[-1] + "\n")
    again = len((folders[1] / names[2]).read_text().splitlines())
    first = next(i for i, line in enumerate(last, 1) if line.split()[1] == last[-1].split()[1])
    said = refused(folders[1], "--data", "part-*.svm", "-m", "m.json")
    query = last[-1].split()[1].removeprefix("qid:")
    assert said == (
        f"lmart: error: part-2.svm:{again}: rows of query '{query}' are not adjacent (first seen at part-0.svm:"
        f"{first}); put them together"
    )
    (folders[1] / names[3]).write_text("1 qid:9 1:x\n")  # a fault behind it, which one process would not come to
    assert refused(folders[1], "--data", "part-*.svm", "-m", "m.json") == said
    assert "first seen at line 1)" in refused(folders[1], "--data", names[0], names[0], "-m", "m.json")


@pytest.mark.usefixtures("here")
def test_faults_in_parts_are_those_of_one_process(folders: tuple[Path, Path]) -> None:
    names = standard_data(folders, 3)
    for folder in folders:
        with (folder / names[1]).open("a") as file:
            file.write("1 qid:new 1:x\n1 qid:q9\n1 qid:new 2:y\n")
        (folder / names[2]).write_text("nothing\n")
    said = measured(folders[0], "--data", *names, "-m", "m.json", status=1)[2]
    assert said.startswith("lmart: error: part-1.svm:") and len(said.splitlines()) > 1
    many = measured(folders[1], "--data", "part-*.svm", "-m", "m.json", *ON_CLUSTER, status=1)
    grouping = ", or use --group-by-qid"  # which does not go with --dask
    assert grouping in said and many[1:] == ("", said.replace(grouping, ""), {})
    text = (folders[1] / names[1]).read_text().splitlines()
    (folders[1] / names[1]).write_text("\n".join(text[:-3]) + "\n")
    (folders[1] / names[2]).write_text("1 qid:a 1:1\n1 qid:b 1:1\n1 qid:a 1:1\n")
    assert refused(folders[1], "--data", "part-*.svm", "-m", "m.json").endswith("put them together")


@pytest.mark.usefixtures("here")
def test_files_beside_the_parts(folders: tuple[Path, Path]) -> None:
    standard_data(folders, 3)
    data = ("--data", "part-*.svm", "-m", "m.json")
    os.chdir(folders[1])
    Path("few-0.txt").write_text("1\n")
    wanted = "but --data 3 files; give one for each, in the same order"
    assert (
        refused(folders[1], *data, "--scores", "few-*.txt") == f"lmart: error: few-*.txt: --scores is 1 file, {wanted}"
    )
    assert refused(folders[1], *data, "--weights", "few-*.txt") == (
        f"lmart: error: few-*.txt: --weights is 1 file, {wanted}"
    )
    assert refused(folders[1], *data, "--weights", "no-*.txt").startswith("lmart: error: no-*.txt: no file that")
    short = Path("scores-1.txt").read_text().splitlines()
    Path("scores-1.txt").write_text("\n".join(short[:-1]) + "\n")
    assert f"scores-1.txt: holds {len(short) - 1} scores, but part-1.svm has {len(short)} rows" in refused(
        folders[1], *data, "--scores", "scores-?.txt"
    )
    Path("by_row-2.txt").write_text(Path("by_query-2.txt").read_text())
    assert "by_row-0.txt: has one weight per row, but by_row-2.txt has one per query" in refused(
        folders[1], *data, "--weights", "by_row-?.txt"
    )
    for path in Path().glob("by_query-*.txt"):
        path.write_text("0\n" * len(path.read_text().splitlines()))
    assert "by_query-0.txt: all weights are zero" in refused(folders[1], *data, "--weights", "by_query-?.txt")
    before = Path("part-1.svm").read_bytes()
    said = run("eval", *data, "--per-query", "part-1.svm", *ON_CLUSTER, status=1).stderr
    assert "part-1.svm" in said and Path("part-1.svm").read_bytes() == before


@pytest.mark.parametrize(
    "options, said",
    [
        (("--data", "d", "-m", "m", "--group-by-qid"), "--group-by-qid does not go with --dask; put the rows"),
        (("--data", "d", "-m", "m", "--query-sizes", "s"), "--query-sizes does not go with --dask; put queries"),
        (("--data", "d", "--run", "r"), "--run does not go with --dask; measure runs in one process"),
        (("--qrels", "d", "--run", "r"), "--qrels does not go with --dask; measure runs in one process"),
        (("--data", "-", "-m", "m"), "standard input does not go with --dask"),
        (("--data", "d", "--scores", "-"), "standard input does not go with --dask"),
        (("--data", "d", "-m", "m", "--weights", "-"), "standard input does not go with --dask"),
        (("--data", "d", "-m", "m", "--dask-security", "s"), "--dask-security needs a scheduler at tls://"),
    ],
)
def test_wrong_usage_is_refused_before_anything_is_started(options: tuple[str, ...], said: str) -> None:
    assert said in run("eval", *options, *ON_CLUSTER, status=2).stderr


@pytest.mark.slow
@pytest.mark.cluster
def test_workers_of_this_machine_give_the_bytes_of_one_process(folders: tuple[Path, Path]) -> None:
    names = standard_data(folders, 5)
    options = (*SYSTEMS, "--metric", ALL, "--weights", "by_row-?.txt", "--by", "groups.tsv", "--per-query", "q.tsv")
    for more in ((), ("--json", "--ties", "docid")):
        one = measured(folders[0], "--data", *names, *options, *more)
        os.chdir(folders[1])
        command = [*PROGRAM, "eval", "--data", "part-*.svm", *options, *more, "--dask", "local:2"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT)
        assert done.stderr == one[2]  # first, as it says why a command failed
        assert (done.returncode, done.stdout) == one[:2]
        assert Path("q.tsv").read_bytes() == one[3]["q.tsv"]


@pytest.mark.usefixtures("here")
def test_workers_with_another_current_folder(folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """They get full names, and the report has those of the command line."""
    names = standard_data(folders, 3)
    monkeypatch.setattr("helpers.cluster_here.ClusterHere.on_this_machine", False)
    for folder in ("", "./", "../many/", f"{folders[1]}/", "../m?ny/"):
        one = measured(folders[1], "--data", *(folder.replace("?", "a") + name for name in names), "-m", "m.json")
        many = measured(folders[1], "--data", f"{folder}part-*.svm", "-m", "m.json", *ON_CLUSTER)
        data = many[1].replace(os.path.realpath(folders[1]) + "/", "../many/") if "?" in folder else many[1]
        assert data == one[1]


@pytest.mark.slow
@pytest.mark.cluster
@pytest.mark.parametrize("lost", [True, False], ids=["a lost worker", "an interrupt"])
def test_what_ends_early_writes_nothing(lost: bool, folders: tuple[Path, Path]) -> None:
    standard_data(folders, 3)
    os.chdir(folders[1])
    Path("q.tsv").write_text("old")
    with cluster(1, moments=True) as running:  # two might give all parts to the other
        Moment(MEASURING, 1, running.workers[0].address, target=HOLD).write(running.folder)
        data = ("--data", "part-[0-2].svm", "-m", "m.json", "--per-query", "q.tsv")
        command = start("eval", *data, "--dask", running.address)
        wait_until((running.folder / "reached").exists)
        os.kill(running.workers[0].process.pid if lost else command.pid, signal.SIGKILL if lost else signal.SIGINT)
        out, told = command.communicate(timeout=LIMIT)
    assert out == b"" and b"Traceback" not in told
    status, said = command.returncode, told.decode().splitlines()[-1]
    assert status == (1 if lost else 130)
    assert re.match("lmart: error: the worker tcp://.* is lost" if lost else "lmart: interrupted", said)
    assert Path("q.tsv").read_text() == "old"
    assert sorted(Path().glob("*q.tsv*")) == [Path("q.tsv")]
