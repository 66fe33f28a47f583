"""Digests of source are the same in a folder and in an archive, and follow its content."""

from __future__ import annotations

import errno
from pathlib import Path
from zipfile import ZipFile

import pytest

from lmart.kernels.numba_support.source_files import source_digest, sources_digest

FILES = {"kernels/a.py": b"a = 1\n", "kernels/deep/b.py": b"b = 1\n", "kernels/note.txt": b"x", "other/c.py": b"c"}


def archive(path: Path, files: dict[str, bytes]) -> Path:
    with ZipFile(path, "w") as opened:
        for name, content in files.items():
            opened.writestr(name, content)
    return path


def test_an_archive_has_the_digests_of_its_folder(tmp_path: Path) -> None:
    for name, content in FILES.items():
        (tmp_path / "folder" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "folder" / name).write_bytes(content)
    zipped = archive(tmp_path / "app.pyz", FILES)
    for name in ("kernels/a.py", "kernels/deep/b.py"):
        assert source_digest(zipped / name) == source_digest(tmp_path / "folder" / name)
    assert sources_digest(zipped / "kernels") == sources_digest(tmp_path / "folder" / "kernels")


@pytest.mark.parametrize("changed", ["kernels/a.py", "kernels/deep/b.py", "kernels/new.py"])
def test_what_changes_in_an_archive_changes_its_digest(tmp_path: Path, changed: str) -> None:
    one = archive(tmp_path / "one.pyz", FILES)
    other = archive(tmp_path / "other.pyz", {**FILES, changed: b"2"})
    assert sources_digest(one / "kernels") != sources_digest(other / "kernels")


def test_what_others_change_does_not_matter(tmp_path: Path) -> None:
    one = archive(tmp_path / "one.pyz", FILES)
    other = archive(tmp_path / "other.pyz", {**FILES, "other/c.py": b"2", "kernels/note.txt": b"2"})
    assert sources_digest(one / "kernels") == sources_digest(other / "kernels")


def test_what_is_no_archive_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"text")
    for place in ("file/kernels/a.py", "missing/a.py"):
        with pytest.raises(OSError) as caught:
            source_digest(tmp_path / place)
        assert caught.value.errno in (errno.ENOTDIR, errno.ENOENT)
    with pytest.raises(OSError):
        source_digest(archive(tmp_path / "app.pyz", FILES) / "kernels" / "z.py")
