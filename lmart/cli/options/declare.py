"""Options made from the fields that declare them: the record of the fields is what a command receives."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import Field, fields
from typing import Any, TypeVar

import click

from lmart.cli.command import Option
from lmart.cli.options.types import Choice, GainType, Names, Real, Whole

F = TypeVar("F", bound=Callable[..., Any])

_OF_CLICK = ("callback", "count", "instead", "is_eager", "is_list", "metavar", "multiple", "nargs", "required")


def group(keyword: str, record: type[Any], **changes: Mapping[str, Any]) -> Callable[[F], F]:
    """Return a decorator that adds the options of a record to a command, which receives the record.

    record  : a data class; the fields that are declared with a help are options
    changes : by field, what this command declares otherwise
    """
    declarations = [field for field in fields(record) if "help" in field.metadata]
    names = [field.name for field in declarations]

    def decorate(function: F) -> F:
        """Add the options to a command, in the order of the fields."""

        @functools.wraps(function)
        def with_record(*args: object, **values: object) -> object:
            own = {name: values.pop(name) for name in names if name in values}
            return function(*args, **{keyword: record(**own)}, **values)

        decorated: Any = with_record
        for field in reversed(declarations):
            decorated = click_option(field, changes.get(field.name, {}))(decorated)
        return decorated  # type: ignore[no-any-return]

    return decorate


def click_option(field: Field[Any], changes: Mapping[str, Any]) -> Callable[[F], F]:
    """Return the option that a field declares, as a decorator."""
    declaration = {**field.metadata, **changes}
    flags = [flag for flag in declaration.get("flags", ()) if not flag.startswith("--")] + [flag_of(field)]
    named: dict[str, Any] = {name: declaration[name] for name in _OF_CLICK if name in declaration}
    if str(field.type) == "bool":
        named["is_flag"] = True
        if field.default:  # else there is nothing to take back
            flags = [f"{flag_of(field)}/--no-{flag_of(field)[2:]}"]
            named |= {"default": True, "show_default": True}
    elif not declaration.keys() & {"count", "required"}:
        default = declaration.get("other") if field.default is None else field.default
        if default not in (None, ()):
            named["default"] = default
        named["show_default"] = declaration.get("shown", True)
    if "is_flag" not in named and "count" not in declaration:
        kind = declaration.get("type") or _type_of(str(field.type), declaration)
        if letter := _LETTERS.get(type(kind)):
            other = declaration.get("other")
            named.setdefault("metavar", f"{letter}|{other}" if other else letter)
        named["type"] = kind
    return click.option(*flags, field.name, cls=Option, help=declaration["help"], more=declaration["more"], **named)


def flag_of(field: Field[Any]) -> str:
    """Return the long name of the option that a field declares."""
    usual = "--" + field.name.replace("_", "-")
    return next((flag for flag in field.metadata.get("flags", ()) if flag.startswith("--")), usual)


_LETTERS: dict[type, str] = {Whole: "N", Real: "R", GainType: "GAIN", Names: "NAME"}


def _type_of(declared: str, declaration: Mapping[str, Any]) -> click.ParamType[Any]:
    """Return Click's type of a declared option."""
    low, high, above, other = (declaration.get(name) for name in ("low", "high", "above", "other"))
    if choices := declaration.get("choices"):
        return Names(choices, other, several=declaration.get("joined", False)) if other else Choice(choices)
    if declared.startswith("int"):
        return Whole(low, high, other=other)
    if declared.startswith("float"):
        return Real(low if above is None else above, high, min_open=above is not None, other=other)
    return GainType() if declared.startswith("Gain") else click.STRING


def given_on_command_line(name: str) -> bool:
    """Return whether the option of the running command was given on the command line."""
    return click.get_current_context().get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
