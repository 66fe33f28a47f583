"""Functions that Python programs give in place of the name of an objective or a measure. Loads no numpy."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from lmart.errors import LmartError, SettingsError, quote, shown

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from lmart.array_types import Float64Array, Int64Array

ObjectiveFunction: TypeAlias = (
    "Callable[[Float64Array, Float64Array, Int64Array, Float64Array], tuple[ArrayLike, ArrayLike]]"
)
"""An objective: of scores, labels, query_offsets and weights of documents, the gradients and hessians."""
MetricFunction: TypeAlias = "Callable[[Float64Array, Float64Array, Int64Array, Float64Array], ArrayLike]"
"""A measure: of scores, labels, query_offsets and weights of queries, a number for each query, or one for all."""
Metric: TypeAlias = "str | MetricFunction | Sequence[str | MetricFunction]"
SEPARATORS = {"objective": "+", "metric": ","}
"""What stands between several values of a setting, which may be functions."""
PREFIX = "python:"
"""What the name of a function begins with, in settings, models and reports."""


class OwnFunction(NamedTuple):
    """A function that stands for the value of a setting, or for a part of it.

    setting : 'objective' or 'metric'
    name    : by which settings, models and reports know it
    call    : the function
    """

    setting: str
    name: str
    call: Callable[..., Any]


class FunctionError(LmartError):
    """A function of a program raised an exception, or returned something of no use."""


def names_of(setting: str, value: Any) -> tuple[Any, list[OwnFunction]]:
    """Return a value of names and functions, or several in a list, as one of names alone, and the functions.

    What is neither a function nor a list or tuple is returned as it is. SettingsError when two functions have one name,
    or an entry is neither a name nor a function.
    """
    if not callable(value) and not isinstance(value, list | tuple):
        return value, []
    functions: dict[str, OwnFunction] = {}
    names = []
    for entry in [value] if callable(value) else value:
        if isinstance(entry, str):
            names.append(str(entry))
            continue
        if not callable(entry):
            raise SettingsError(f"{setting} holds {shown(entry)}, which is neither a name nor a function")
        function = _own_function(setting, entry)
        if functions.setdefault(function.name, function).call is not entry:
            raise SettingsError(f"two functions of {setting} are named {quote(function.name)}; rename one")
        names.append(function.name)
    return SEPARATORS[setting].join(dict.fromkeys(names)), list(functions.values())


def _own_function(setting: str, call: Callable[..., Any]) -> OwnFunction:
    """Return a function with its name: that in Python, or that of its class."""
    inner = getattr(call, "func", call)  # of functools.partial
    name = re.sub(r"\W+", "", getattr(inner, "__name__", type(inner).__name__))
    return OwnFunction(setting, PREFIX + (name or "function"), call)


def described(setting: str, name: str) -> str:
    """Return what messages call a function, such as `objective 'softmax'`."""
    return f"{setting} {quote(name.removeprefix(PREFIX))}"


def refuse_name(setting: str, name: str) -> None:
    """Raise SettingsError for the name of a function that is not there, as that in a model is."""
    if name.startswith(PREFIX):
        what = f"{setting} {quote(name)} is a function of a Python program"
        raise SettingsError(f"{what}; give {setting}=FUNCTION there, or choose another --{setting}")


@contextmanager
def failing_as(what: str) -> Iterator[None]:
    """Raise an exception of a function as a FunctionError that names it; its own refusals and interrupts pass.

    what : the function, as `described`
    """
    try:
        yield
    except LmartError:
        raise
    except Exception as fault:
        said = f": {fault}" if str(fault) else ""
        raise FunctionError(f"{what} raised {type(fault).__name__}{said}") from fault


@contextmanager
def in_round(number: int) -> Iterator[None]:
    """Name the round in the message of a FunctionError."""
    try:
        yield
    except FunctionError as fault:
        raise FunctionError(f"round {number}: {fault.message}") from fault.__cause__


def functions_by_name(functions: tuple[OwnFunction, ...], setting: str) -> Mapping[str, Callable[..., Any]]:
    """Return the functions for a setting, by name."""
    return {function.name: function.call for function in functions if function.setting == setting}
