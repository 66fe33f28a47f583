"""A command line taken apart, once: its values, the order of its options, and what is left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import click

from lmart.cli.terminal.console import Console
from lmart.errors import quote

_LINE = "lmart.line"  # in Context.meta


class ParsedLine(NamedTuple):
    """What the words of a command line are, before values are converted.

    values : by name of the parameter, as they were written; of an option of one value the last
    rest   : words that are no option and no value
    order  : a parameter for each time that it is given
    """

    values: dict[str, Any]
    rest: list[str]
    order: list[click.Parameter]

    def repeated(self) -> list[str]:
        """Return a sentence for each option of one value that is given several times."""
        told = []
        for one, times in Counter(self.order).items():
            if times > 1 and _takes_the_last(one):
                names = "/".join([max(one.opts, key=len), *one.secondary_opts])
                often = "twice" if times == 2 else f"{times} times"
                told.append(f"{names} is given {often}; the last counts: {self._last(one)}")
        return told

    def _last(self, one: click.Parameter) -> str:
        value = self.values[one.name or ""]
        if isinstance(value, bool):
            return (one.opts if value else one.secondary_opts)[0]
        return " ".join(map(quote, value)) if isinstance(value, tuple) else quote(value)


class ParsingCommand(click.Command):
    """A command whose arguments are parsed once; `line_of` its context has all that was found."""

    def make_parser(self, ctx: click.Context) -> Any:
        """Return Click's parser, which also leaves what it found for `line_of`."""
        parser: Any = super().make_parser(ctx)
        parse = parser.parse_args

        def parse_args(args: list[str]) -> ParsedLine:
            """Parse, and note the result: Click forgets the order and what is left."""
            ctx.meta[_LINE] = line = ParsedLine(*parse(self.prepared(args)))
            return line

        parser.parse_args = parse_args
        return parser

    def invoke(self, ctx: click.Context) -> Any:
        """Say which of several values of an option counts, then run the command."""
        for text in line_of(ctx).repeated():
            Console(ctx.params.get("quiet", 0)).notice(text)
        return super().invoke(ctx)

    def prepared(self, args: list[str]) -> list[str]:
        """Return arguments as Click's parser takes them."""
        return args

    def parse_line(self, words: list[str]) -> tuple[click.Context, ParsedLine]:
        """Parse words that are not those of the running command, without converting their values.

        Returns their context too. A usage error as for the command line.
        """
        context = click.Context(self, info_name=self.name)
        return context, ParsedLine(*self.make_parser(context).parse_args(words))


class Once(click.Option):
    """An option of one value of which a second one cannot be meant too.

    instead : what to do about a second one
    """

    def __init__(self, *args: Any, instead: str = "give it once", **named: Any) -> None:
        super().__init__(*args, **named)
        self.instead = instead

    def consume_value(self, ctx: click.Context, opts: Mapping[str, Any]) -> Any:
        """Return the value and where it is from; a usage error when it is given twice."""
        if line_of(ctx).order.count(self) > 1:
            name = max(self.opts, key=len)
            raise click.BadOptionUsage(name, f"{name} is given twice; {self.instead}", ctx)
        return super().consume_value(ctx, opts)


class ListOption(click.Option):
    """An option whose value is a list with commas, or something else: several lists are one.

    is_list : whether a text is a list
    """

    def __init__(self, *args: Any, is_list: Callable[[str], bool], **named: Any) -> None:
        super().__init__(*args, **named)
        self.is_list = is_list

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        """Let the parser keep all values."""
        parser.add_option(obj=self, opts=self.opts, dest=self.name, action="append", nargs=1)

    def consume_value(self, ctx: click.Context, opts: Mapping[str, Any]) -> Any:
        """Return the value and where it is from."""
        value, source = super().consume_value(ctx, opts)
        given = opts.get(self.name or "", ())
        if len(given) > 1 and (others := [one for one in given if not self.is_list(one)]):
            raise click.BadParameter(f"{quote(others[0])} is no list, and stands alone; give it once", ctx, self)
        return (",".join(value) if source is click.core.ParameterSource.COMMANDLINE else value), source


def line_of(context: click.Context) -> ParsedLine:
    """Return the arguments of the running command, taken apart."""
    line: ParsedLine = context.meta[_LINE]
    return line


def _takes_the_last(one: click.Parameter) -> bool:
    """Return whether one value of several counts: not of lists and counts, nor of flags, which only say one thing."""
    if not isinstance(one, click.Option) or one.multiple or one.count or isinstance(one, Once | ListOption):
        return False
    return not one.is_flag or bool(one.secondary_opts)
