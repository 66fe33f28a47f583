"""Helpers of messages: names that are there a second time, packages that are not there."""

from __future__ import annotations

import json
import re
import time
import warnings
from pathlib import Path

import pytest
from helpers.paths import ROOT

from lmart import errors
from lmart.errors import DataError, first_repeated, load_package, warn


def test_the_value_whose_second_place_is_first_is_repeated() -> None:
    assert first_repeated(["a", "b", "c", "b", "a"]) == "b"
    assert first_repeated(iter(range(5))) is None


def test_many_values_are_looked_up_not_compared_with_each_other() -> None:
    began = time.process_time()
    assert first_repeated([*range(200_000), 199_999]) == 199_999
    assert time.process_time() - began < 1.0


def test_a_package_that_is_missing_is_named_with_how_to_install_it() -> None:
    assert load_package("json", "reading", DataError) is json
    with pytest.raises(DataError, match=r"^a\.zst: zstd needs the package no_such: pip install no_such$"):
        load_package("no_such", "zstd", DataError, "a.zst")


def test_nobody_is_told_to_ask_an_index_for_lmart() -> None:
    """The package of that name there may be anybody's."""
    pages = [*(ROOT / "lmart").rglob("*.py"), *(ROOT / "man").iterdir(), ROOT / "README.md"]
    for page in pages:
        assert not re.search(r"pip install (-\S+ )*('|\\\(aq)?lmart\b", page.read_text()), page


def test_warnings_name_the_line_that_called_lmart_however_deep_it_is() -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        warn("shallow")
        inside = Path(errors.__file__).with_name("any.py")
        exec(compile("warn('deep')", inside, "exec"), {"warn": warn})
    assert [(str(one.message), one.filename) for one in told] == [("shallow", __file__), ("deep", __file__)]
