"""--settings FILE of `lmart train`: settings from a file, which options of the command line go before."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import click

from lmart.cli.command import ParsingCommand, usage_message
from lmart.errors import DataError, SettingsError, counted, input_name, quote, shown
from lmart.foreign_names import perhaps
from lmart.settings import RECORDED, TrainSettings, in_words, options, setting
from lmart.streams.digests import InputDigests, recording_digests

_FILE = "lmart.settings_file"  # in Context.meta: a SettingsFile


class SettingsFile(NamedTuple):
    """What a file of settings gives.

    names        : of the settings it gives on purpose: any of a plain file; of a model or report, which hold all, those
                   that differ from their defaults
    notices      : of what in the file does not count
    trees_before : trees of other settings that the model of the file begins with; None: none
    digests      : of the file; None: there is none
    """

    names: Sequence[str] = ()
    notices: Sequence[str] = ()
    trees_before: int | None = None
    digests: InputDigests | None = None


def settings_file() -> SettingsFile:
    """Return what the file of --settings gives to the running command; nothing without one."""
    found: SettingsFile = click.get_current_context().meta.get(_FILE, SettingsFile())
    return found


def origin(path: str) -> list[str]:
    """Return notices of which settings come from the file."""
    context, file = click.get_current_context(), settings_file()
    taken, overridden = [], []
    for field in options():
        if field.name not in file.names:
            continue
        source, name = context.get_parameter_source(field.name), field.name.replace("_", "-")
        if source is click.core.ParameterSource.COMMANDLINE:
            overridden.append(f"--{name}")
        elif source is click.core.ParameterSource.DEFAULT_MAP:
            taken.append(f"{name} {in_words((context.default_map or {})[field.name])}")
    what = ", ".join(taken) or "only defaults"
    instead = f"; of the command line instead: {', '.join(overridden)}" if overridden else ""
    trees = file.trees_before
    others = f"; the first {counted(trees, 'tree')} of that model are of other settings" if trees else ""
    return [*file.notices, f"settings from {input_name(path)}: {what}{instead}{others}"]


def take_settings(context: click.Context, parameter: click.Parameter, path: str | None) -> str | None:
    """Make the settings of the file the defaults of their options; DataError or SettingsError names file and key."""
    if path is None or context.resilient_parsing:
        return path
    from lmart.formats.settings_files import read_settings

    digests = InputDigests()
    with recording_digests(digests):
        found = read_settings(path)
    notices: list[str] = []
    values = found.values if found.command is None else _of_command(found.command, context, path, notices)
    by_name = {option.name: option for option in context.command.params}
    allowed = [option.name for option in options()]
    converted: dict[str, Any] = {}
    for name, value in values.items():
        if name in RECORDED and found.complete:
            _check_recorded(name, value, path)
        elif name not in allowed:
            raise SettingsError(f"there is no setting {quote(name)}{perhaps('argument', name, allowed)}", path)
        else:
            converted[name] = _converted(by_name[name], value, context, path)
    context.default_map = {**(context.default_map or {}), **converted}
    differ = [name for name, value in converted.items() if value != setting(name).default]
    names = differ if found.complete else list(converted)
    context.meta[_FILE] = SettingsFile(names, notices, values.get("continued_from"), digests)
    return path


def _check_recorded(name: str, value: object, path: str) -> None:
    """Refuse what a model or report records of its run when it is no whole number."""
    if type(value) is not int or value < 0:
        raise SettingsError(f"{name} is {_spelled(value)}, which is not a whole number", path)


def _converted(option: click.Parameter, value: object, context: click.Context, path: str) -> Any:
    """Return a value of the file as the option takes it; SettingsError names file and setting."""
    name = option.name or ""
    is_switch = isinstance(setting(name).default, bool)
    if isinstance(value, bool) != is_switch or not isinstance(value, str | int | float):  # a bool is an int
        takes = "true or false" if is_switch else f"what --{name.replace('_', '-')} takes"
        raise SettingsError(f"{name} is {_spelled(value)}; give {takes}", path)
    try:
        converted = option.type_cast_value(context, value)
        settings = TrainSettings(**{name: converted})
        if name == "metric":
            settings.measures  # noqa: B018  # its check
    except (click.BadParameter, SettingsError) as fault:
        said = fault.message.rstrip(".")
        raise SettingsError(said if said.startswith(name) else f"{name}: {said}", path) from None
    return converted


def _of_command(words: list[str], context: click.Context, path: str, notices: list[str]) -> dict[str, Any]:
    """Return the settings of a command line, which is parsed as the running one is."""
    command = context.command
    assert isinstance(command, ParsingCommand)
    try:
        own, line = command.parse_line(words)
        found = {option.name: option.consume_value(own, line.values)[0] for option in dict.fromkeys(line.order)}
    except click.UsageError as fault:
        raise SettingsError(usage_message(fault), path) from None
    if line.rest:
        raise SettingsError(f"the command line has {quote(line.rest[0])} where an option should be; drop it", path)
    names = [option.name for option in options()]
    notices += [f"{input_name(path)}: {text}" for text in line.repeated()]
    others = [max(option.opts, key=len) for option in dict.fromkeys(line.order) if option.name not in names]
    if others:
        notices.append(f"{input_name(path)}: only settings are taken of the command line, not {', '.join(others)}")
    settings = {name: value for name, value in found.items() if name in names}
    if not settings:
        raise DataError("the command line holds no settings; add some, as in 'lmart train --trees 300'", path)
    return settings


def _spelled(value: object) -> str:
    """Return a value as JSON spells it, for a message; a list or object by its kind."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    return quote(value) if isinstance(value, str) else shown(json.dumps(value)).strip("'")
