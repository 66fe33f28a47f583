"""What `import lmart` offers, and what it costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

import lmart


def test_the_listed_names_are_the_visible_ones() -> None:
    assert lmart.__all__ == sorted(lmart.__all__) == dir(lmart)
    for name in lmart.__all__:
        assert getattr(lmart, name) is not None


def test_every_name_is_explained() -> None:
    for name in set(lmart.__all__) - {"__version__"}:
        assert getattr(lmart, name).__doc__


def test_unknown_name() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        lmart.nothing  # type: ignore[attr-defined]  # noqa: B018


def test_import_alone_loads_nothing_heavy() -> None:
    program = "import sys, lmart; print(sorted({'numpy', 'numba', 'click', 'rich'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout == b"[]\n"
