"""--settings FILE of `lmart train`: settings from a file, which options of the command line go before."""

from __future__ import annotations

import shlex
from typing import Any

import click

from lmart.errors import DataError, SettingsError, counted, input_name, quote
from lmart.foreign_names import perhaps
from lmart.settings import AUTO, RECORDED, TrainSettings, options, setting

PARAMETER = "settings_file"
_GIVEN = "lmart.given_by_file"  # in Context.meta: the names of settings that the file gives on purpose
_BEFORE = "lmart.trees_before"  # in Context.meta: the trees of other settings that the model of the file begins with


def settings_file_option(function: Any) -> Any:
    """Add --settings FILE; the command gets its path as `settings_file`, and the settings as if they were defaults.

    function : the command
    """
    return click.option(
        "--settings",
        PARAMETER,
        metavar="FILE",
        is_eager=True,
        callback=_take,
        help="Take settings from FILE, such as a model or a report.\f Or a --tune-file, what --tune printed, or JSON "
        'such as {"trees": 300, "leaves": 15}. What is given on the command line goes before. With the settings of a '
        "model or report, and the same data, the new model has the same bytes.",
    )(function)


def given_by_file(name: str) -> bool:
    """Return whether the file of --settings gives a setting on purpose.

    name : of the setting

    Any that stands in a plain file; of a model or report, which hold all, one that differs from its default.
    """
    return name in click.get_current_context().meta.get(_GIVEN, ())


def origin(context: click.Context) -> str | None:
    """Return a notice of which settings come from the file, None without a file.

    context : of the command
    """
    path = context.params.get(PARAMETER)
    if path is None:
        return None
    taken, overridden = [], []
    for one in options():
        source = context.get_parameter_source(one.name)
        if one.name in context.meta.get(_GIVEN, ()):
            name = one.name.replace("_", "-")
            if source is click.core.ParameterSource.COMMANDLINE:
                overridden.append(f"--{name}")
            elif source is click.core.ParameterSource.DEFAULT_MAP:
                taken.append(f"{name} {_shown((context.default_map or {})[one.name])}")
    what = ", ".join(taken) or "none but defaults"
    instead = f"; of the command line instead: {', '.join(overridden)}" if overridden else ""
    before = context.meta.get(_BEFORE)
    others = f"; the first {counted(before, 'tree')} of that model are of other settings" if before else ""
    return f"settings from {input_name(path)}: {what}{instead}{others}"


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
    values = found.values if not found.command else _of_command(found.command, context, path)
    by_name = {one.name: one for one in context.command.params}
    known = [one.name for one in options()]
    converted: dict[str, Any] = {}
    for name, value in values.items():
        if name in RECORDED and found.complete:
            continue
        if name not in known:
            raise SettingsError(f"there is no setting {quote(name)}{perhaps('argument', name, known)}", path)
        if not isinstance(value, str | int | float):  # a bool is an int
            raise SettingsError(f"{name} is {_kind(value)}; give what --{name.replace('_', '-')} takes", path)
        try:
            converted[name] = by_name[name].type_cast_value(context, value)
        except click.BadParameter as fault:
            raise SettingsError(f"{name}: {fault.message.rstrip('.')}", path) from None
    if "metric" in converted:
        try:
            TrainSettings(metric=converted["metric"]).measure  # noqa: B018  # its check
        except SettingsError as fault:
            raise SettingsError(f"metric: {fault}", path) from None
    context.default_map = {**(context.default_map or {}), **converted}
    differ = [name for name, value in converted.items() if value != setting(name).default]
    context.meta[_BEFORE] = values.get("continued_from")
    context.meta[_GIVEN] = tuple(differ if found.complete else converted)
    return path


def _of_command(line: str, context: click.Context, path: str) -> dict[str, Any]:
    """Return the settings in a command line."""
    known = {one.name for one in options()}
    own = click.Context(context.command, info_name=context.info_name, resilient_parsing=True)
    words = shlex.split(line)[2:]
    try:
        parsed, _, _ = context.command.make_parser(own).parse_args(args=words)
    except click.UsageError as fault:
        raise DataError(f"the command line in it cannot be read: {fault.message}", path) from None
    return {name: value for name, value in parsed.items() if name in known}


def _kind(value: object) -> str:
    return "an object" if isinstance(value, dict) else "a list" if isinstance(value, list) else "null"
