"""The kind that every command is: it parses its words once, has -h and --help, and hints at what may be meant."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import click

from lmart.cli.help import full_page, one_screen
from lmart.cli.terminal.console import Console
from lmart.errors import quote
from lmart.foreign_names import meant, perhaps

_LINE = "lmart.line"  # in Context.meta
_WORDS = "lmart.words"  # in Context.meta
_OF_MODELS = (".json", ".ubj", ".xml", ".model", ".onnx")


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
        sentences = []
        for option, times in Counter(self.order).items():
            if times > 1 and _takes_the_last(option):
                names = "/".join([max(option.opts, key=len), *option.secondary_opts])
                often = "twice" if times == 2 else f"{times} times"
                sentences.append(f"{names} is given {often}; the last counts: {self._last(option)}")
        return sentences

    def _last(self, option: click.Parameter) -> str:
        value = self.values[option.name or ""]
        if isinstance(value, bool):
            return (option.opts if value else option.secondary_opts)[0]
        return " ".join(map(quote, value)) if isinstance(value, tuple) else quote(value)


class ParsingCommand(click.Command):
    """A command whose arguments are parsed once; `line_of` its context has all that was found."""

    def make_parser(self, ctx: click.Context) -> Any:
        """Return Click's parser, which also leaves what it found for `line_of`."""
        parser: Any = super().make_parser(ctx)
        parse = parser.parse_args

        def parse_args(args: list[str]) -> ParsedLine:
            """Parse, and note the result: Click forgets the order and what is left."""
            ctx.meta[_WORDS] = tuple(args)  # which Click takes away
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


class Option(click.Option):
    """An option as a record declares it: with a help of two texts, and a rule for a second value.

    more    : what the manual page says besides `help`
    instead : what to do instead of giving the option twice; None: the last value counts
    is_list : whether a value is a list with commas, to which a second one is added; None: no value is a list
    """

    def __init__(
        self,
        *args: Any,
        more: str = "",
        instead: str | None = None,
        is_list: Callable[[str], bool] | None = None,
        **named: Any,
    ) -> None:
        super().__init__(*args, **named)
        self.more = more
        self.instead = instead
        self.is_list = is_list

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        """Let the parser keep all values of a list."""
        if self.is_list is None:
            super().add_to_parser(parser, ctx)
        else:
            parser.add_option(obj=self, opts=self.opts, dest=self.name, action="append", nargs=1)

    def consume_value(self, ctx: click.Context, opts: Mapping[str, Any]) -> Any:
        """Return the value and where it is from; a usage error when it is given twice and may not be."""
        if self.instead is not None and line_of(ctx).order.count(self) > 1:
            name = max(self.opts, key=len)
            raise click.BadOptionUsage(name, f"{name} is given twice; {self.instead}", ctx)
        value, source = super().consume_value(ctx, opts)
        if self.is_list is None:
            return value, source
        values = opts.get(self.name or "", ())
        if len(values) > 1 and (others := [text for text in values if not self.is_list(text)]):
            raise click.BadParameter(f"{quote(others[0])} is no list, and stands alone; give it once", ctx, self)
        return (",".join(value) if source is click.core.ParameterSource.COMMANDLINE else value), source


def words_of(context: click.Context) -> tuple[str, ...]:
    """Return the words of the running command line behind the command, as they were typed."""
    words: tuple[str, ...] = context.meta[_WORDS]
    return words


def line_of(context: click.Context) -> ParsedLine:
    """Return the arguments of the running command, taken apart."""
    line: ParsedLine = context.meta[_LINE]
    return line


def takes_several(option: click.Parameter) -> bool:
    """Return whether the words behind a value of an option are values of it too, as in `--data a b`."""
    return isinstance(option, click.Option) and (option.metavar or "").endswith("...")


def _takes_the_last(option: click.Parameter) -> bool:
    """Return whether one value of several counts: not of lists and counts, nor of flags, which only say one thing."""
    if not isinstance(option, click.Option) or option.multiple or option.count:
        return False
    if isinstance(option, Option) and (option.instead is not None or option.is_list is not None):
        return False
    return not option.is_flag or bool(option.secondary_opts)


def _printing(text_of: Callable[[click.Context], str]) -> Callable[[click.Context, click.Parameter, bool], None]:
    """Return what prints a text and ends the command, where an option asks for it."""

    def print_text(context: click.Context, parameter: click.Parameter, asked: bool) -> None:
        if asked and not context.resilient_parsing:
            click.echo(text_of(context), color=context.color)
            context.exit()

    return print_text


class HelpfulCommand(ParsingCommand):
    """A command with one screen of help for -h, all options for --help, and hints for words in the wrong place.

    Its options that take several files have the words behind a file too: `--data a b` is `--data a --data b`.
    """

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **{"add_help_option": False, **named})
        shared: dict[str, Any] = {"is_flag": True, "is_eager": True, "expose_value": False}
        on_screen = "Show the most important options, on one screen."
        self.params += [
            click.Option(["-h"], callback=_printing(one_screen), help=on_screen, **shared),
            click.Option(["--help"], callback=_printing(full_page), help="Show all options.", **shared),
        ]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse as Click does; a usage error says what to type for words without an option."""
        words = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as fault:
            # Missing options and words too many; other refusals have nothing to do with files.
            is_due = isinstance(fault, click.MissingParameter) or type(fault) is click.UsageError
            if not is_due:
                raise
            if typed := _with_options(self, line_of(ctx)):
                message = re.sub(r"\.$", "", fault.format_message()) + f"; perhaps {typed}"
            elif not (message := _second_value(self, words, line_of(ctx))):
                raise
            raise click.UsageError(message, ctx) from None

    def prepared(self, args: list[str]) -> list[str]:
        """Return the arguments with the option before each further file; a usage error for -long options."""
        _refuse_single_dash(self, args)
        of_several = [name for parameter in self.params if takes_several(parameter) for name in parameter.opts]
        spread: list[str] = []
        current: str | None = None
        n_values = 0
        for arg in args:
            if arg.startswith("-") and arg != "-":
                option, _, value = arg.partition("=")
                current = option if option in of_several else None
                n_values = 1 if value else 0
                spread.append(arg)
                continue
            if current is not None and n_values:
                spread.append(current)
            spread.append(arg)
            n_values += 1
        return spread

    def get_help(self, ctx: click.Context) -> str:
        """Return what --help prints."""
        return full_page(ctx)


def option_names(command: click.Command) -> list[str]:
    """Return all names of the options of a command, long and short."""
    return [
        name
        for parameter in command.params
        for name in (*parameter.opts, *parameter.secondary_opts)
        if name.startswith("-")
    ]


def usage_message(fault: click.ClickException) -> str:
    """Return Click's message as one clause: no line breaks, no capital, no full stop."""
    message = fault.format_message()
    if isinstance(fault, click.NoSuchOption):
        names = [] if fault.ctx is None else option_names(fault.ctx.command)
        message = f"no such option {quote(fault.option_name)}{perhaps('option', fault.option_name, names)}"
    message = re.sub(r"\s*\n\s*", " ", message).rstrip(". ")
    return message[:1].lower() + message[1:]


def _refuse_single_dash(command: click.Command, args: Sequence[str]) -> None:
    """Refuse `-train` and the like, which RankLib has, and of which Click would take `-output` as `-o utput`."""
    names = option_names(command)
    for word in args:
        name = word.partition("=")[0]
        if not re.fullmatch(r"-[A-Za-z][A-Za-z0-9_-]+", name) or name in names:
            continue
        if hint := perhaps("option", name, names, by_spelling=False):
            raise click.BadOptionUsage(name, f"no such option '{name}'{hint}")


def _second_value(command: click.Command, args: Sequence[str], line: ParsedLine) -> str:
    """Return what is wrong with a word behind the value of an option that takes one; '' when it stands elsewhere."""
    word = next(iter(line.rest), "")
    for place in range(1, len(args)):
        option = next((option for option in command.params if args[place - 1] in option.opts), None)
        if not isinstance(option, click.Option) or option.is_flag or option.count:
            continue
        if word in args[place + 1 : place + 2]:
            instead = option.instead if isinstance(option, Option) and option.instead else "give it once"
            return f"{args[place - 1]} takes one value, not {quote(word)} too; {instead}"
    return ""


def _with_options(command: click.Command, line: ParsedLine) -> str:
    """Return the words that stand without an option together with the option that they are meant for; may be empty.

    A word `name=value`, as LightGBM and XGBoost have them, is that option; of the others, one that is called like a
    model is the model, if the command needs one, and the rest is the data.
    """
    names = option_names(command)
    if "--data" not in names:
        return ""
    typed: list[str] = []
    files = []
    for word in line.rest:
        name, sign, value = word.partition("=")
        options = meant("option", name, names, by_spelling=False)
        if sign and options:
            typed += [options[0], value]
        else:
            files.append(word)
    if files and "--model" in names and not line.values.get("model") and not line.values.get("scores"):
        from lmart.streams.common import name_ending  # --help does without

        model = next((file for file in files if name_ending(file) in _OF_MODELS), None)
        if model is not None:
            files.remove(model)
            typed += ["--model", model]
    data = next(parameter for parameter in command.params if parameter.name == "data")
    if files and (not line.values.get("data") or takes_several(data)):
        typed += ["--data", *files]
    return shlex.join(typed)
