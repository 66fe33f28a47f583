"""man/lmart-data.5 says what the code does."""

from __future__ import annotations

import re

from helpers.commands import run
from helpers.manual import plain

from lmart.data.feature_names import DOCUMENT_NAMES, LABEL_NAMES, LARGEST_INDEX, QUERY_NAMES
from lmart.formats.registry import FORMATS

PLAIN = plain("lmart-data.5")


def test_the_two_examples_are_the_same_data() -> None:
    letor, table = re.findall(r"\.nf\n(.*?)\.fi", PLAIN, re.DOTALL)[1:]
    assert run("convert", "-", "-", "--to", "csv", stdin=letor).stdout == table
    assert run("convert", "-", "-", stdin=table).stdout == letor.replace("1e-3", "0.001")


def test_names_suffixes_and_limits_are_those_of_the_code() -> None:
    for names in (LABEL_NAMES, QUERY_NAMES, DOCUMENT_NAMES):
        assert f"{', '.join(names[:-1])} or {names[-1]}" in PLAIN
    for one in FORMATS.values():
        if one.kind == "data":
            assert all(suffix in PLAIN for suffix in one.suffixes)
    assert str(LARGEST_INDEX) in PLAIN


def test_every_option_named_is_one_of_the_commands() -> None:
    options = {name for command in ("train", "eval", "convert") for name in run(command, "--help").stdout.split()}
    for option in set(re.findall(r"--[a-z-]+", PLAIN)):
        assert any(word.strip("[],") == option for word in options), option
