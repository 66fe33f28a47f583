"""The fields of TrainSettings as options of a command: flags, defaults, ranges and help come from there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from lmart.cli.options.choice import Choice
from lmart.cli.options.packed import packed
from lmart.cli.options.parsed_line import ListOption
from lmart.cli.options.types import F, GainType, MeasureType, Names, Real, Whole
from lmart.constraints import is_list
from lmart.gains import Gain
from lmart.settings import AUTO, TrainSettings, options, setting


def setting_option(name: str, metavar: str | None = None) -> Callable[[F], F]:
    """Return the option of one setting; flag, default, range and help are those of its declaration in TrainSettings.

    name    : of the setting
    metavar : what stands for its value in help; None: by its type
    """
    one = setting(name)
    flag = "--" + name.replace("_", "-")
    low, high, above = (one.metadata[key] for key in ("low", "high", "above"))
    shown: dict[str, Any] = {"default": one.default, "show_default": True}
    shown["help"] = "\f ".join(filter(None, (one.metadata["meaning"], one.metadata["more"])))
    if isinstance(one.default, bool):
        return click.option(f"{flag}/--no-{flag[2:]}", **shown)
    if isinstance(one.default, Gain):
        return click.option(flag, type=GainType(), metavar=metavar or "GAIN", **shown)
    other = AUTO if one.default is None else None
    if other:
        shown |= {"default": other}
    declared = str(one.type)
    if one.metadata["choices"] and other:
        names = Names(one.metadata["choices"], AUTO, several=one.metadata["joined"])
        return click.option(flag, type=names, metavar=metavar or "NAME", **shown)
    if declared.startswith("int"):
        return click.option(flag, type=Whole(low, high, other=other), metavar=metavar or "N", **shown)
    if declared.startswith("float"):
        bound = {"min": low if above is None else above, "max": high, "min_open": above is not None}
        return click.option(flag, type=Real(**bound, other=other), metavar=metavar or "R", **shown)
    if one.default == "":
        shown |= {"show_default": "none"}
    if one.metadata["choices"]:
        return click.option(flag, type=Choice(one.metadata["choices"]), **shown)
    if name == "monotone":
        return click.option(flag, cls=ListOption, is_list=is_list, metavar=metavar or "LIST", **shown)
    if name == "metric":
        return click.option(flag, type=MeasureType(), metavar=metavar or "MEASURE", **shown)
    return click.option(flag, metavar=metavar or "TEXT", **shown)


METAVARS = {
    "gain": "GAIN",
    "metric": "MEASURE",
    "leaves": "N|auto",
    "sample": "R|auto",
    "features": "R|auto",
    "rankers": "N|auto",
    "tree": "FORM|auto",
    "monotone": "LIST|FILE",
    "objective": "NAME|auto",
}


setting_options = packed(
    "settings",
    TrainSettings,
    [one.name for one in options()],
    [setting_option(one.name, METAVARS.get(one.name)) for one in options()],
)
"""Add one option for each setting; the command gets them packed as the keyword `settings: TrainSettings`."""
