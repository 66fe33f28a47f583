"""--settings FILE of `lmart train`: settings from a file, which options of the command line go before."""

from __future__ import annotations

import json
from typing import Any

import click

from lmart.cli.help.command import usage_message
from lmart.cli.options.parsed_line import ParsingCommand
from lmart.errors import DataError, SettingsError, counted, input_name, quote, shown
from lmart.foreign_names import perhaps
from lmart.settings import AUTO, RECORDED, TrainSettings, options, setting

PARAMETER = "settings_file"
_GIVEN = "lmart.given_by_file"  # in Context.meta: the names of settings that the file gives on purpose
_TOLD = "lmart.told_of_file"  # in Context.meta: notices of what of the file does not count
_BEFORE = "lmart.trees_before"  # in Context.meta: the trees of other settings that the model of the file begins with


def settings_file_option(function: Any) -> Any:
    """Add --settings FILE; the command gets its path as `settings_file`, and the settings as if they were defaults."""
    return click.option(
        "--settings",
        PARAMETER,
        metavar="FILE",
        is_eager=True,
        callback=_take,
        help="Take settings from FILE, such as a model or a report.\f FILE may also be a --tune-file, the "
        'output of --tune, another command line `lmart train ...`, or JSON such as {"trees": 300, '
        '"leaves": 15}. From a command line lmart takes only the settings, and a notice names its '
        "other options. Options on the command line override FILE. With the settings of a model or "
        "report, and the same data, the new model has the same bytes.",
    )(function)


def given_by_file(name: str) -> bool:
    """Return whether the file of --settings gives a setting on purpose.

    Any that stands in a plain file; of a model or report, which hold all, one that differs from its default.
    """
    return name in click.get_current_context().meta.get(_GIVEN, ())


def origin(context: click.Context) -> list[str]:
    """Return notices of which settings come from the file; none without a file."""
    path = context.params.get(PARAMETER)
    if path is None:
        return []
    taken, overridden = [], []
    for one in options():
        source = context.get_parameter_source(one.name)
        if one.name in context.meta.get(_GIVEN, ()):
            name = one.name.replace("_", "-")
            if source is click.core.ParameterSource.COMMANDLINE:
                overridden.append(f"--{name}")
            elif source is click.core.ParameterSource.DEFAULT_MAP:
                taken.append(f"{name} {_shown((context.default_map or {})[one.name])}")
    what = ", ".join(taken) or "only defaults"
    instead = f"; of the command line instead: {', '.join(overridden)}" if overridden else ""
    before = context.meta.get(_BEFORE)
    others = f"; the first {counted(before, 'tree')} of that model are of other settings" if before else ""
    return [*context.meta[_TOLD], f"settings from {input_name(path)}: {what}{instead}{others}"]


def _shown(value: object) -> str:
    if value is None:
        return AUTO
    return ("no", "yes")[value] if isinstance(value, bool) else str(value)


def _take(context: click.Context, parameter: click.Parameter, path: str | None) -> str | None:
    """Make the settings of the file the defaults of their options; DataError or SettingsError names file and key."""
    if path is None or context.resilient_parsing:
        return path
    from lmart.formats.settings_files import read_settings

    found = read_settings(path)
    told: list[str] = []
    context.meta[_TOLD] = told
    values = found.values if found.command is None else _of_command(found.command, context, path, told)
    by_name = {one.name: one for one in context.command.params}
    known = [one.name for one in options()]
    converted: dict[str, Any] = {}
    for name, value in values.items():
        if name in RECORDED and found.complete:
            _check_recorded(name, value, path)
        elif name not in known:
            raise SettingsError(f"there is no setting {quote(name)}{perhaps('argument', name, known)}", path)
        else:
            converted[name] = _converted(by_name[name], value, context, path)
    context.default_map = {**(context.default_map or {}), **converted}
    differ = [name for name, value in converted.items() if value != setting(name).default]
    context.meta[_BEFORE] = values.get("continued_from")
    context.meta[_GIVEN] = tuple(differ if found.complete else converted)
    return path


def _check_recorded(name: str, value: object, path: str) -> None:
    """Refuse what a model or report records of its run when it is no whole number."""
    if type(value) is not int or value < 0:
        raise SettingsError(f"{name} is {_spelled(value)}, which is not a whole number", path)


def _converted(option: click.Parameter, value: object, context: click.Context, path: str) -> Any:
    """Return a value of the file as the option takes it; SettingsError names file and setting.

    option  : of the setting
    value   : from JSON, or a word of a command line
    context : of the command
    path    : of the file
    """
    name = option.name or ""
    is_switch = isinstance(setting(name).default, bool)
    if isinstance(value, bool) != is_switch or not isinstance(value, str | int | float):  # a bool is an int
        takes = "true or false" if is_switch else f"what --{name.replace('_', '-')} takes"
        raise SettingsError(f"{name} is {_spelled(value)}; give {takes}", path)
    try:
        converted = option.type_cast_value(context, value)
        settings = TrainSettings(**{name: converted})
        if name == "metric":
            settings.measure  # noqa: B018  # its check
    except (click.BadParameter, SettingsError) as fault:
        said = fault.message.rstrip(".")
        raise SettingsError(said if said.startswith(name) else f"{name}: {said}", path) from None
    return converted


def _of_command(words: list[str], context: click.Context, path: str, told: list[str]) -> dict[str, Any]:
    """Return the settings of a command line, which is parsed as the running one is.

    words   : behind `lmart train`
    context : of the running command
    path    : of the file
    told    : gets notices of what does not count
    """
    command = context.command
    assert isinstance(command, ParsingCommand)
    try:
        own, line = command.parse_line(words)
        found = {one.name: one.consume_value(own, line.values)[0] for one in dict.fromkeys(line.order)}
    except click.UsageError as fault:
        raise SettingsError(usage_message(fault), path) from None
    if line.rest:
        raise SettingsError(f"the command line has {quote(line.rest[0])} where an option should be; drop it", path)
    known = [one.name for one in options()]
    told += [f"{input_name(path)}: {text}" for text in line.repeated()]
    others = [max(one.opts, key=len) for one in dict.fromkeys(line.order) if one.name not in known]
    if others:
        told.append(f"{input_name(path)}: only settings are taken of the command line, not {', '.join(others)}")
    settings = {name: value for name, value in found.items() if name in known}
    if not settings:
        raise DataError("the command line holds no settings; add some, as in 'lmart train --trees 300'", path)
    return settings


def _spelled(value: object) -> str:
    """Return a value as JSON spells it, for a message; a list or object by its kind."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    return quote(value) if isinstance(value, str) else shown(json.dumps(value)).strip("'")
