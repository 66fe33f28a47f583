"""Digests of inputs are those of the bytes that were read, however these come."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

import pytest

from lmart.streams import Digest, InputDigests, Spool, open_input, read_all, recording_digests

CONTENT = b"1 qid:1 1:0.5\n" * 40_000


def digest(content: bytes) -> Digest:
    return Digest(len(content), hashlib.sha256(content).hexdigest())


@pytest.mark.parametrize("content", [CONTENT, gzip.compress(CONTENT), b"", b"x"])
def test_the_digest_is_of_the_bytes_of_the_file(content: bytes, in_folder: Path) -> None:
    Path("d").write_bytes(content)
    digests = InputDigests()
    with recording_digests(digests):
        assert read_all("d") == (content if len(content) < 2 else CONTENT)
    assert digests.found == {"d": digest(content)} == digests.of(["d"])


def test_what_is_not_read_to_its_end_is_read_for_its_digest(in_folder: Path) -> None:
    Path("d").write_bytes(CONTENT)
    digests = InputDigests()
    with recording_digests(digests):
        stream = open_input("d")
        stream.read_block(memoryview(bytearray(10)))
        stream.close()
    assert digests.found == {}
    assert digests.of(["d", "-", "none", "."]) == {"d": digest(CONTENT), "-": None, "none": None, ".": None}


def test_a_spool_counts_once_and_the_first_reading_too(in_folder: Path) -> None:
    Path("d").write_bytes(CONTENT)
    digests = InputDigests()
    with recording_digests(digests):
        spool = Spool("d")
        for _ in range(2):
            stream = open_input("d", spool)
            while stream.read_block(memoryview(bytearray(1 << 16))):
                pass
            stream.close()
            spool.rewind()
        Path("d").write_bytes(b"other")
        read_all("d")
        spool.close()
    assert digests.found == {"d": digest(CONTENT)}


def test_nothing_is_recorded_outside(in_folder: Path) -> None:
    Path("d").write_bytes(CONTENT)
    digests = InputDigests()
    with pytest.raises(ValueError, match="stop"), recording_digests(digests):
        raise ValueError("stop")
    read_all("d")
    assert digests.found == {}
