"""Inputs: compression by content, pipes, files that change, limits."""

from __future__ import annotations

import errno
import gc
import gzip
import io
import os
import random
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.commands import run, shell
from helpers.paths import SAMPLE
from helpers.reading_runs import GOOD, trained

from lmart.errors import DataError, OutputError
from lmart.formats.documents.reading import read_dataset
from lmart.formats.read_options import ReadOptions
from lmart.streams import (
    check_output,
    compressed,
    inputs,
    open_input,
    read_all,
    read_pieces,
)

TEXT = b"".join(b"%d qid:%d 1:0.5\n" % (i % 3, i // 9) for i in range(5000))
AS_ROOT = os.geteuid() == 0


def zstd(data: bytes) -> bytes:
    packed: bytes = pytest.importorskip("zstandard").ZstdCompressor().compress(data)
    return packed


def test_gzip_and_zstd_are_recognised_by_content(tmp_path: Path) -> None:
    path = tmp_path / "any.name"
    halves = TEXT[:7777], TEXT[7777:]
    for content in (
        TEXT,
        gzip.compress(TEXT),
        gzip.compress(halves[0]) + gzip.compress(halves[1]),
        gzip.compress(halves[0]) + gzip.compress(b"") + gzip.compress(halves[1]) + b"\0" * 512,
        zstd(TEXT),
        zstd(halves[0]) + zstd(halves[1]),
    ):
        path.write_bytes(content)
        assert read_all(str(path)) == TEXT
    for short in (b"", b"B", b"(", b"7z", b"a"):
        path.write_bytes(short)
        assert read_all(str(path)) == short


@pytest.mark.parametrize("pack", [gzip.compress, zstd])
def test_damaged_compression_is_an_error_not_less_data(pack: object, tmp_path: Path) -> None:
    path = tmp_path / "x"
    whole = pack(TEXT)  # type: ignore[operator]
    for cut in (4, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:cut])
        with pytest.raises(DataError, match="cut off before its end"):
            read_all(str(path))
    broken = bytearray(whole)
    broken[len(whole) // 2] ^= 255
    for content in (bytes(broken), whole + b"rubbish"):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"damaged|cut off"):
            read_all(str(path))


def test_what_came_before_the_damage_is_handed_out_first(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(gzip.compress(TEXT)[:-3])
    stream = open_input(str(tmp_path / "x"))
    buffer = memoryview(bytearray(1 << 20))
    got = b""
    with pytest.raises(DataError):
        while count := stream.read_block(buffer):
            got += bytes(buffer[:count])
    assert got == TEXT


@pytest.mark.parametrize(
    ("magic", "name"),
    [
        (b"BZh91AY", "bzip2"),
        (b"\xfd7zXZ\0\0", "xz"),
        (b"PK\x03\x04..", "zip"),
        (b"7z\xbc\xaf\x27\x1c", "7z"),
        (b"\x1f\x9d\x90", "compress"),
        (b"\x04\x22\x4d\x18.", "lz4"),
    ],
)
def test_other_compression_is_named(magic: bytes, name: str, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(magic)
    with pytest.raises(DataError, match=rf"compressed with {name}( \(as [^)]*\))?; decompress it first"):
        read_all(str(tmp_path / "x"))


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"\x1f", "holds only the first bytes of gzip data; copy the file again"),
        (b"\x28\xb5", "holds only the first bytes of zstd data"),
        (b"\xfd7z", "holds only the first bytes of xz data"),
        (gzip.compress(TEXT)[:1] + gzip.compress(TEXT)[2:], "looks like gzip data whose beginning is damaged"),
    ],
)
def test_half_a_beginning_of_compressed_data_is_no_text(content: bytes, what: str, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(DataError, match=what):
        open_input(str(tmp_path / "x"))


def test_zstd_needs_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x").write_bytes(b"\x28\xb5\x2f\xfd....")
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(DataError, match="needs the package zstandard: pip install zstandard"):
        read_all(str(tmp_path / "x"))
    with pytest.raises(OutputError, match="needs the package zstandard"):
        check_output(str(tmp_path / "y.zst"))


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no such file"):
        open_input(str(tmp_path / "none"))
    with pytest.raises(DataError, match="the name of an input is empty"):
        open_input("")
    with pytest.raises(DataError, match="is a folder"):
        open_input(str(tmp_path))
    with pytest.raises(DataError, match="NUL"):
        open_input("a\0b")
    with pytest.raises(DataError, match="larger than 10 bytes"):
        (tmp_path / "big").write_bytes(TEXT)
        read_all(str(tmp_path / "big"), limit=10)


@pytest.mark.skipif(AS_ROOT, reason="root may read everything")
def test_a_file_without_permission_is_said(tmp_path: Path) -> None:
    (tmp_path / "x").touch(0)
    with pytest.raises(DataError, match="Permission denied"):
        open_input(str(tmp_path / "x"))


@pytest.mark.parametrize("packed", [False, True])
def test_a_pipe_gives_what_is_there_without_waiting(packed: bool, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    go_on = threading.Event()
    packer = zlib.compressobj(wbits=31)

    def write() -> None:
        with fifo.open("wb", buffering=0) as out:
            for piece in (b"a", b"bc\n", b"de\n"):
                out.write(packer.compress(piece) + packer.flush(zlib.Z_SYNC_FLUSH) if packed else piece)
                go_on.wait(10)
                go_on.clear()
            if packed:
                out.write(packer.flush())

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    stream = open_input(str(fifo))
    buffer = memoryview(bytearray(100))
    got = b""
    for expected in (b"a", b"abc\n", b"abc\nde\n"):
        while len(got) < len(expected):
            count = stream.read_block(buffer)
            assert count
            got += bytes(buffer[:count])
        assert got == expected
        go_on.set()
    assert stream.read_block(buffer) == 0
    thread.join(10)
    stream.close()


def test_a_closed_decompressor_ends_its_thread(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(gzip.compress(b"abcdefgh" * 4_000_000))
    before = threading.active_count()
    stream = open_input(str(tmp_path / "x"))
    stream.read_block(memoryview(bytearray(10)))
    stream.close()
    for thread in threading.enumerate():
        if thread.name == "lmart-decompress":
            thread.join(10)
            assert not thread.is_alive()
    assert threading.active_count() <= before


def append(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"1 qid:1000000 1:1\n")


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def overwrite(path: Path) -> None:
    before = path.stat().st_mtime_ns
    with path.open("r+b") as file:
        file.write(b"P" if path.suffix == ".parquet" else b"2")  # which reads as before, the other not
    os.utime(path, ns=(0, before + 1_000_000))  # a clock of files may stand still for a few milliseconds


CHANGED = "the file changed while it was read; start again once it is complete"


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstd])
@pytest.mark.parametrize("change", [append, cut, overwrite])
def test_a_file_that_changes_while_it_is_read_is_refused(
    pack: object, change: Callable[[Path], None], tmp_path: Path
) -> None:
    path = tmp_path / "x"
    path.write_bytes(pack(random.Random(1).randbytes(3_000_000)))  # type: ignore[operator]
    stream = open_input(str(path))
    buffer = memoryview(bytearray(1 << 10))
    stream.read_block(buffer)
    change(path)
    with pytest.raises(DataError, match=CHANGED):
        while stream.read_block(buffer):
            pass
    stream.close()
    stream = open_input(str(path))
    path.unlink()
    stream.refuse_changed()
    stream.close()


def test_a_file_that_is_replaced_by_another_is_read_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(TEXT)
    pieces = read_pieces(str(path))
    content = next(pieces)[:10]
    (tmp_path / "y").write_bytes(b"other")
    os.replace(tmp_path / "y", path)
    assert b"".join([content, *pieces]) == TEXT[:10]
    assert read_all(str(path)) == b"other"


def test_an_end_before_the_end_is_not_taken_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x"
    path.write_bytes(TEXT)
    monkeypatch.setattr("os.readv", lambda *_: 0)
    with pytest.raises(DataError, match=CHANGED):
        read_all(str(path))


def test_standard_input_may_begin_anywhere_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(TEXT)
    code = "from lmart.streams import read_all; print(len(read_all('-')))"
    with (tmp_path / "x").open("rb", buffering=0) as file:
        file.seek(100)
        done = subprocess.run([sys.executable, "-c", code], stdin=file, capture_output=True, check=False)
    assert int(done.stdout) == len(TEXT) - 100


def model_of(folder: Path) -> Path:
    run("train", "--data", SAMPLE / "train.svm", "--trees", "2", "--out", folder / "m.json", "-q")
    return folder / "m.json"


@pytest.mark.slow
@pytest.mark.parametrize(
    "changing", ["d.svm", "d.csv", "d.parquet", "d.svm.gz", "m.json", "s", "w", "i", "p", "c", "v.svm"]
)
def test_no_result_is_made_of_a_file_that_changed(
    changing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if changing == "d.parquet":
        pytest.importorskip("pyarrow")
    data = tmp_path / (changing if changing.startswith("d.") else "d.svm")
    run("convert", SAMPLE / "train.svm", data, "--to", "letor" if ".svm" in data.name else data.suffix[1:])
    n = read_dataset([str(data)], ReadOptions()).n_documents
    for name, line in (("s", "0"), ("w", "1"), ("i", "0"), ("p", "x")):
        (tmp_path / name).write_text(f"{line}\n" * n)
    (tmp_path / "c").write_text("1:+1\n")
    (tmp_path / "v.svm").write_bytes((SAMPLE / "test.svm").read_bytes())
    model, out = model_of(tmp_path), tmp_path / "out"
    out.write_text("old")
    read_some = inputs.RawInput.read_some

    def read_and_change(raw: inputs.RawInput, view: memoryview) -> int:
        count = read_some(raw, view)
        if raw.path == str(tmp_path / changing):
            overwrite(tmp_path / changing)
        return count

    monkeypatch.setattr(inputs.RawInput, "read_some", read_and_change)
    training = ("train", "--data", data, "--trees", "1", "--out", out)
    by_file: dict[str, list[tuple[str | Path, ...]]] = {
        "m.json": [("predict", "-m", model, "--data", data, "--out", out), ("eval", "-m", model, "--data", data)],
        "s": [("eval", "--scores", tmp_path / "s", "--data", data, "--per-query", out)],
        "w": [(*training, "--weights", tmp_path / "w")],
        "i": [(*training, "--init-scores", tmp_path / "i")],
        "p": [(*training, "--positions", tmp_path / "p")],
        "c": [(*training, "--monotone", tmp_path / "c")],
        "v.svm": [(*training, "--valid", tmp_path / "v.svm")],
    }
    of_data: list[tuple[str | Path, ...]] = [
        training,
        ("predict", "-m", model, "--data", data, "--out", out),
        ("eval", "-m", model, "--data", data, "--per-query", out),
        ("convert", data, out, "--to", "letor"),
    ]
    whole = (tmp_path / changing).read_bytes()
    for command in by_file.get(changing, of_data):
        (tmp_path / changing).write_bytes(whole)
        said = run(*command, status=1).stderr
        assert said == f"lmart: error: {tmp_path / changing}: {CHANGED}\n"
        assert out.read_text() == "old"


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("call", ["close", "fstat"])
def test_what_fails_at_the_end_of_an_input_names_it(
    call: str, pack: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x"
    path.write_bytes(pack(TEXT))  # type: ignore[operator]
    os_call = getattr(os, call)
    sound = 1 if call == "fstat" else 0  # calls that succeed first: the one at the opening

    def fails(descriptor: int) -> object:
        nonlocal sound
        if os.readlink(f"/proc/self/fd/{descriptor}") == str(path):
            sound -= 1
            if sound < 0:
                os_call(descriptor)
                raise OSError(errno.EIO, os.strerror(errno.EIO))
        return os_call(descriptor)

    monkeypatch.setattr(os, call, fails)
    stream = open_input(str(path))
    buffer = memoryview(bytearray(1 << 20))
    with pytest.raises(DataError, match="x: cannot be read: Input/output error"):
        while stream.read_block(buffer):
            pass
    stream.close()
    if call == "fstat":
        with pytest.raises(DataError, match="x: cannot be read: Input/output error"):
            open_input(str(path))


@pytest.mark.slow
def test_a_refusal_is_forgotten_with_all_that_was_read(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(gzip.compress(b"1 qid:1 1:x\n" * 2)[:-3])
    gc.collect()
    before = {id(one) for one in gc.get_objects() if type(one) is DataError}  # parameters of other tests
    gc.disable()
    try:
        for _ in range(3):
            with pytest.raises(DataError):
                read_all(str(tmp_path / "x"))
            with pytest.raises(DataError):
                read_dataset([str(tmp_path / "x")], ReadOptions())
        for thread in threading.enumerate():
            if thread.name == "lmart-decompress":
                thread.join(10)
        assert not [one for one in gc.get_objects() if type(one) is DataError and id(one) not in before]
    finally:
        gc.enable()


def test_little_data_that_stands_for_very_much_is_unpacked_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compressed, "_LONG_SLICE", 64)
    (tmp_path / "x").write_bytes(zstd(bytes(1 << 26)))
    raw = inputs.RawInput(str(tmp_path / "x"))
    sizes = [len(piece) for piece in compressed.unzstd(raw)]
    assert sum(sizes) == 1 << 26
    assert max(sizes) <= 1 << 22


def test_what_is_held_whole_has_a_limit_also_for_what_it_was_packed_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inputs, "HARMLESS", 1000)
    (tmp_path / "x").write_bytes(gzip.compress(b"0," * 100_000))
    with pytest.raises(DataError, match="is more than 200 times as large as its compressed data; is it the right file"):
        read_all(str(tmp_path / "x"))
    assert sum(map(len, read_pieces(str(tmp_path / "x")))) == 200_000


@pytest.mark.slow
def test_a_pipe_that_does_not_block_is_waited_for() -> None:
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    code = "from lmart.streams import read_all; print(read_all('-'))"
    process = subprocess.Popen([sys.executable, "-c", code], stdin=read_end, stdout=subprocess.PIPE)
    os.close(read_end)
    for piece in (b"ab", b"cd"):
        time.sleep(0.3)
        os.write(write_end, piece)
    os.close(write_end)
    assert process.communicate()[0] == b"b'abcd'\n"


def test_standard_input_may_be_any_stream_or_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(TEXT))))
    assert read_all("-") == TEXT
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(DataError, match="standard input is closed"):
        open_input("-")


def test_compressed_data_trains_the_same_model_and_is_refused_when_cut_off(tmp_path: Path) -> None:
    packed = gzip.compress(GOOD.encode())
    expected = trained(tmp_path, GOOD)
    assert trained(tmp_path, packed, name="good.svm.gz") == expected
    assert trained(tmp_path, packed, name="good.svm") == expected
    (tmp_path / "cut.gz").write_bytes(packed[:-9])
    result = run("train", "--data", tmp_path / "cut.gz", "--out", tmp_path / "m", status=1)
    assert result.stderr.endswith("cut.gz: the gzip data is cut off before its end; copy the file again\n")
    assert not (tmp_path / "m").exists()


@pytest.mark.slow
def test_process_substitution_and_pipes_work(tmp_path: Path) -> None:
    model = tmp_path / "m.json"
    line = f"lmart train -q --trees 2 --data <(cat {SAMPLE}/train.svm) --out m.json"
    done = shell(line, tmp_path)
    assert done.returncode == 0, done.stderr
    done = shell(f"cat {SAMPLE}/test.svm | lmart predict -m {model} --data - | wc -l", tmp_path)
    assert done.stdout.strip() == str(len((SAMPLE / "test.svm").read_text().splitlines())).encode()
