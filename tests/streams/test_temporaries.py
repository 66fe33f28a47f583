"""Temporary folders: gone at the end, or when the next one is made."""

from __future__ import annotations

import fcntl
import os
import tempfile
from pathlib import Path

import pytest

from lmart.streams.temporaries import temporary_folder


def test_folders_that_were_left_behind_are_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for name in ("a-left", "a-in-use", "b-other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").touch()
    (tmp_path / "a-link").symlink_to("b-other")
    in_use = os.open(tmp_path / "a-in-use", os.O_RDONLY)
    fcntl.flock(in_use, fcntl.LOCK_EX)
    with temporary_folder("a-") as first, temporary_folder("a-") as second:
        assert {Path(first).parent, Path(second).parent} == {tmp_path} and first != second
        Path(first, "file").touch()
        names = {path.name for path in tmp_path.iterdir()}
        assert names == {"a-in-use", "b-other", "a-link", Path(first).name, Path(second).name}
    assert {path.name for path in tmp_path.iterdir()} == {"a-in-use", "b-other", "a-link"}
    assert (tmp_path / "b-other" / "file").exists()
    os.close(in_use)
