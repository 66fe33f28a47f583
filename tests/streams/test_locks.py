"""Locks on names: held by one process at a time, and gone with it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from lmart.errors import OutputError
from lmart.streams.locks import NameLock


def test_a_name_is_locked_once_and_free_afterwards(in_folder: Path) -> None:
    for _ in range(2):
        with NameLock("c"), pytest.raises(OutputError, match=r"^c: is in use by another run; "), NameLock("c"):
            pass
        assert os.listdir() == []


@pytest.mark.parametrize("is_held", [False, True])
def test_an_interrupt_leaves_no_file_but_that_of_another_process(
    is_held: bool, in_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.open

    def interrupted(*arguments: Any, **named: Any) -> int:
        os.close(real(*arguments, **named))
        monkeypatch.setattr(os, "open", real)
        raise KeyboardInterrupt

    other = NameLock("c")
    if is_held:
        other.__enter__()
    monkeypatch.setattr(os, "open", interrupted)
    with pytest.raises(KeyboardInterrupt), NameLock("c"):
        pass
    assert os.listdir() == [".c.lock"] * is_held
    if is_held:
        with pytest.raises(OutputError, match="is in use by another run"), NameLock("c"):
            pass
        other.__exit__(None, None, None)
        assert os.listdir() == []
