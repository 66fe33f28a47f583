"""All fields of TrainSettings as options of one command."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from lmart.cli.options import setting_option
from lmart.settings import TrainSettings, options

METAVARS = {
    "gain": "exp2|linear|G0,G1,...",
    "metric": "MEASURE",
    "leaves": "N|auto",
    "sample": "R|auto",
    "monotone": "LIST|FILE",
    "objective": "NAME[+NAME...]|auto",
}


def setting_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add one option a setting that is one; the command gets them as the keyword `settings: TrainSettings`."""

    @functools.wraps(function)
    def packed(*args: Any, **others: Any) -> Any:
        values = {one.name: others.pop(one.name) for one in options()}
        return function(*args, settings=TrainSettings(**values), **others)

    wrapped: Callable[..., Any] = packed
    for one in reversed(options()):
        wrapped = setting_option(one.name, METAVARS.get(one.name))(wrapped)
    return wrapped
