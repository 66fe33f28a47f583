"""What workers do to score parts, and what the driver makes of what they found, without a cluster."""

from __future__ import annotations

import gzip
import os
import pickle
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.commands import run
from helpers.shards import write_parts
from helpers.training_runs import SMALL, fit, learnable

from lmart.distributed import scoring
from lmart.distributed.actors import give_up
from lmart.distributed.scoring import PartScored, ScoredParts, ScoringJob, find_places, score_part
from lmart.errors import DataError, LmartError
from lmart.formats.documents import text_reader
from lmart.formats.documents.reading import for_models
from lmart.formats.models.model_files import read_model
from lmart.formats.read_options import ReadOptions
from lmart.formats.registry import RESULT_FORMATS
from lmart.scoring.ensemble import Ensemble
from lmart.streams.outputs import put_in_place

OPTIONS = ReadOptions(require_labels=False, require_queries=False, use_labels=False)


@pytest.fixture
def model(in_folder: Path) -> Ensemble:
    """A model, which is m.json in the current folder too."""
    fit(learnable(), *SMALL)
    return read_model("m.json")


def job_of(model: Ensemble, name: str = "run", **changed: Any) -> ScoringJob:
    """Return a job as the command makes it; what is no field of it is an option of reading."""
    own = {key: value for key, value in changed.items() if key in ScoringJob.__dataclass_fields__}
    reading = {key: value for key, value in changed.items() if key not in own}
    named = RESULT_FORMATS[str(own.get("form", "scores"))].is_named
    options = for_models(ReadOptions(**{**vars(OPTIONS), "keep_document_ids": named, **reading}), [model])
    return ScoringJob(name, model, "m.json", options, **own)


VARIANTS: list[tuple[dict[str, Any], list[str]]] = [
    ({}, []),
    ({"form": "tsv", "top": 3}, ["--format", "tsv", "--top", "3"]),
    ({"form": "trec", "tag": "one"}, ["--format", "trec", "--tag", "one"]),
    ({"form": "jsonl", "explain": True}, ["--format", "jsonl", "--explain"]),
    ({"form": "jsonl", "group_by_qid": True}, ["--format", "jsonl", "--group-by-qid"]),
    ({"ignore_columns": ("2",)}, ["--ignore-columns", "2"]),
]


@pytest.mark.parametrize("changed, options", VARIANTS, ids=str)
def test_a_part_gets_the_bytes_of_one_process(changed: dict[str, Any], options: list[str], model: Ensemble) -> None:
    Path("d.svm.gz").write_bytes(gzip.compress(learnable(3).encode()))
    run("predict", "-m", "m.json", "--data", "d.svm.gz", "-o", "one.gz", *options, "-qq")
    job = pickle.loads(pickle.dumps(job_of(model, **changed)))
    found = score_part(job, "d.svm.gz", "own.gz")
    assert not Path("own.gz").exists()
    put_in_place([found.staged])
    assert Path("own.gz").read_bytes() == Path("one.gz").read_bytes()
    assert (found.n_rows, len(found.query_codes)) == (200, 20)


def test_a_job_is_sent_without_what_workers_prepare(model: Ensemble) -> None:
    job = job_of(model, form="jsonl", explain=True)
    before = len(pickle.dumps(job))
    assert job.scorer is job.scorer and job.explainer is job.explainer
    assert len(pickle.dumps(job)) == before


def test_a_run_that_is_given_up_ends_and_leaves_nothing(model: Ensemble) -> None:
    before = sorted(os.listdir())
    give_up("ended")
    with pytest.raises(LmartError, match="given up"):
        score_part(job_of(model, "ended"), "d.svm", "o.txt")

    class EndedLater(ScoringJob):
        """Given up after the first block."""

        checks = 0

        def check(self) -> None:
            EndedLater.checks += 1
            if EndedLater.checks > 3:
                give_up("later")
            super().check()

    with pytest.raises(LmartError, match="given up"):
        score_part(EndedLater("later", model, "m.json", OPTIONS), "d.svm", "o.txt")
    scoring.remove_outputs("later", [str(Path.cwd())])
    assert sorted(os.listdir()) == before


def test_scoring_can_be_given_up_while_its_run_goes_on(model: Ensemble) -> None:
    Path("p.svm").write_text("1 qid:1 1:1\n")
    first, second = job_of(model, "goes on"), job_of(model, "goes on", attempt=1)
    before = sorted(os.listdir())
    scoring.give_up_scoring("goes on", 0)
    with pytest.raises(LmartError, match="given up"):
        score_part(first, "p.svm", "o.txt")
    assert sorted(os.listdir()) == before
    code = score_part(second, "p.svm", "o.txt").query_codes.tolist()
    assert find_places(pickle.loads(pickle.dumps(first)), "p.svm", code) == {"1": ("p.svm", 1)}
    scoring.end_run("goes on", [str(Path.cwd())])
    assert sorted(os.listdir()) == before
    with pytest.raises(LmartError, match="given up"):
        score_part(second, "p.svm", "o.txt")


def test_a_damaged_part_leaves_nothing(model: Ensemble) -> None:
    Path("d.svm").write_text(learnable(3, n_queries=2000) + "1 qid:x 1:y\n")
    before = sorted(os.listdir())
    with pytest.raises(DataError, match=r"^d\.svm:20001: .*'y'"):
        score_part(job_of(model), "d.svm", "o.txt")
    scoring.remove_outputs("run", [str(Path.cwd())])
    assert sorted(os.listdir()) == before


def test_what_waits_is_removed_when_the_worker_ends(model: Ensemble) -> None:
    before = sorted(os.listdir())
    kept, done = score_part(job_of(model, "kept"), "d.svm", "k"), score_part(job_of(model, "done"), "d.svm", "o")
    scoring.forget_outputs("done")
    assert len(os.listdir()) == len(before) + 4
    scoring._remove_waiting()
    assert len(os.listdir()) == len(before) + 1
    assert not Path(kept.staged.temporary).exists() and Path(done.staged.temporary).exists()
    scoring.remove_outputs("done", [str(Path.cwd())])
    assert sorted(os.listdir()) == before


def scored(job: ScoringJob, parts: Sequence[str], can_group: bool = False) -> ScoredParts:
    """Score parts and return what the driver knows then."""

    def places(part: str, codes: Sequence[int]) -> dict[str, tuple[str, int]]:
        return find_places(job, part, codes)

    known = ScoredParts(job.model, f"{parts[0]} and more", places, can_group, set())
    for part in parts:
        found: PartScored = pickle.loads(pickle.dumps(score_part(job, part, part + ".out")))
        known.add(found)
    known.refuse_spanning()
    return known


def test_parts_together_are_as_one_input(model: Ensemble) -> None:
    known = scored(job_of(model), write_parts(learnable(4), 5, Path()))
    assert (known.n_rows, len(known.staged), known.messages()) == (200, 5, [])


@pytest.mark.parametrize(
    "changed, can_group",
    [({}, True), ({"form": "tsv"}, False), ({"form": "tsv", "group_by_qid": True}, False)],
    ids=str,
)
def test_a_query_that_spans_parts_is_refused_with_both_places(
    changed: dict[str, Any], can_group: bool, model: Ensemble
) -> None:
    parts = write_parts(learnable(4), 5, Path())
    with open(parts[3], "a") as file:
        file.write("\n# of part 1\n" + Path(parts[1]).read_text())
    second = Path(parts[3]).read_text().count("\n") - Path(parts[1]).read_text().count("\n") + 1
    query = Path(parts[1]).read_text().split()[1].removeprefix("qid:")
    with pytest.raises(DataError) as caught:
        scored(job_of(model, **changed), parts, can_group)
    what = f"{parts[3]}:{second}: rows of query '{query}' are not adjacent (first seen at {parts[1]}:1)"
    assert str(caught.value) == f"{what}; put them together{', or use --group-by-qid' * can_group}"


def test_queries_may_span_parts_where_one_process_collects_them_and_ranks_nothing(model: Ensemble) -> None:
    parts = write_parts(learnable(4), 2, Path())
    Path(parts[1]).write_text(Path(parts[0]).read_text() * 2)
    assert scored(job_of(model, group_by_qid=True), parts).n_rows == 3 * Path(parts[0]).read_text().count("\n")


def test_ids_of_equal_hashes_are_told_apart(model: Ensemble, monkeypatch: pytest.MonkeyPatch) -> None:
    from lmart.distributed import query_places

    monkeypatch.setattr(query_places, "code_of", lambda query_id: 7)
    parts = [f"p{number}.svm" for number in range(3)]
    for number, part in enumerate(parts):
        Path(part).write_text(f"1 qid:{number} 1:1\n")
    assert scored(job_of(model), parts).n_rows == 3


def test_messages_are_those_of_all_parts_as_one_input(model: Ensemble) -> None:
    Path("a.svm").write_text("1 qid:1 1:1 8:1\n")
    Path("b.svm").write_text("1 qid:2 1:1 9:1 8:2\n")
    assert scored(job_of(model, ignore_columns=("2", "5", "6")), ["a.svm", "b.svm"]).messages() == [
        ("a.svm and 1 more part: --ignore-columns leaves out feature '2' of the model; it counts as in a row without "
         "it", True),
        ("a.svm and more: no row has the features to ignore '2', '5', '6'; check --ignore-columns", True),
        ("a.svm and more: 2 of 3 features are not in the model: '8', '9'; scored without", True),
    ]  # fmt: skip
    Path("b.svm").write_text("1 qid:2 1:1 5:1\n")
    _, unmet, _ = scored(job_of(model, ignore_columns=("2", "5", "6")), ["a.svm", "b.svm"]).messages()
    assert unmet == ("a.svm and more: no row has the features to ignore '2', '6'; check --ignore-columns", True)


def test_a_column_that_a_part_has_is_there(model: Ensemble) -> None:
    Path("a.csv").write_text("qid,1,2\n1,0,0\n")
    Path("b.csv").write_text("qid,3,2\n2,0,0\n")
    one_of_four = "a.csv and more: 1 of 4 features of the model has no column: '7'; counted as 0"
    assert scored(job_of(model), ["a.csv", "b.csv"]).messages() == [(f"{one_of_four}; no tree splits on it", True)]
    with pytest.raises(DataError, match=r"^a\.csv: 2 of 4 features of the model have no column: "):
        scored(job_of(model, strict=True, refuse_unknown=True), ["a.csv", "b.csv"])


def test_parts_with_and_without_names_are_told_of_each(model: Ensemble) -> None:
    Path("a.csv").write_text("qid,p,q,r,s\n1,0,0,0,0\n")
    Path("b.svm").write_text("1 qid:2 1:1 9:1\n")
    assert [text for text, _ in scored(job_of(model), ["a.csv", "b.svm"]).messages()] == [
        "features are matched by number, not by name: only the data has names",
        "a.csv and more: 1 of 4 features is not in the model: 's'; scored without",
        "a.csv and more: 1 of 4 features of the model has no column: '7'; counted as 0; no tree splits on it",
        "a.csv and more: 1 of 2 features is not in the model: '9'; scored without",
    ]


def test_documents_that_queries_name_twice_are_counted_over_all_parts(model: Ensemble) -> None:
    twice = "1 qid:{0} 1:1 # docid = d\n" * 2
    for number in range(3):
        Path(f"p{number}.svm").write_text(twice.format(number) if number else "1 qid:0 1:1 # docid = d\n")
    known = scored(job_of(model, form="tsv"), ["p0.svm", "p1.svm", "p2.svm"])
    (repeated,) = [text for text, _ in known.messages() if "twice" in text]
    twice = "query '1' names document 'd' twice, and 1 more row a document of their query"
    assert repeated == f"p1.svm: {twice}; is the document id right?"


def test_the_driver_holds_no_more_of_a_query_than_a_hash(model: Ensemble) -> None:
    Path("d.svm").write_text("".join(f"1 qid:{q} 1:{q}\n1 qid:{q} 1:2\n" for q in range(5000)))
    found = score_part(job_of(model), "d.svm", "o")
    assert found.query_codes.dtype == np.uint64
    assert len(pickle.dumps(found)) < 5000 * 8 + 2000


@pytest.mark.slow
@pytest.mark.parametrize("changed", [{}, {"form": "tsv"}, {"form": "jsonl", "explain": True, "top": 1}], ids=str)
def test_memory_does_not_grow_with_the_part(
    changed: dict[str, Any], model: Ensemble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_reader, "BLOCK", 1 << 14)
    monkeypatch.setattr(text_reader, "FIRST_BLOCK", 1 << 14)
    job, peaks = job_of(model, **changed), []
    for n_queries in (20, 20, 200):  # what the first one loads stays
        Path("d.svm").write_text(learnable(3, n_queries, length=100))
        tracemalloc.start()
        score_part(job, "d.svm", "o")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[2] < 1.1 * peaks[1]
