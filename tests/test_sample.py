"""data/sample: the committed files are what the generator writes, and look as the README promises."""

from __future__ import annotations

import pytest
from helpers.paths import SAMPLE
from make_sample import FEATURES, QUERIES, sample_files


@pytest.fixture(scope="module")
def files() -> dict[str, str]:
    return sample_files()


def test_the_generator_reproduces_the_committed_bytes(files: dict[str, str]) -> None:
    assert {path.name for path in SAMPLE.iterdir()} == set(files)
    for name, text in files.items():
        assert (SAMPLE / name).read_bytes() == text.encode("ascii")


def test_size_and_shape(files: dict[str, str]) -> None:
    assert sum(map(len, files.values())) < 1_000_000
    for name, text in files.items():
        rows = [line.split(" ") for line in text.splitlines()]
        assert len({row[1] for row in rows}) == QUERIES[name]
        assert {row[0] for row in rows} == set("01234")
        assert {len(row) for row in rows} == {2 + FEATURES + 4}  # label, qid, features, `# docid = X`
        assert len({row[-1] for row in rows}) == len(rows)


def test_no_query_is_in_two_files(files: dict[str, str]) -> None:
    queries = [{line.split(" ")[1] for line in text.splitlines()} for text in files.values()]
    assert len(set.union(*queries)) == sum(map(len, queries))
