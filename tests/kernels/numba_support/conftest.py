"""What tests of compiled kernels share."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.toy_kernels import TOY, forget

from lmart.kernels import Messages
from lmart.kernels.numba_support import code_cache as compiler
from lmart.kernels.numba_support import code_files


@pytest.fixture
def toy_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A file of kernels in a package folder of its own, where nothing but its __pycache__ serves as cache."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # it knows a version by its second and size
    monkeypatch.setattr(compiler.config, "CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", "not absolute, so not used")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    path = tmp_path / "package" / "toykernels.py"
    path.parent.mkdir()
    path.write_text(TOY)
    forget()
    yield path
    forget()


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is reported, with `warning: ` before each warning."""
    texts: list[str] = []
    own = Messages()
    heard: list[str] = []

    def compiling(seconds: float, expected: float) -> None:
        if not heard:
            heard.append("compiling")
            texts.append("compiling")

    own.listen(texts.append, lambda text: texts.append(f"warning: {text}"), compiling)
    for module in (code_files, compiler):
        monkeypatch.setattr(module, "messages", own)
    return texts
