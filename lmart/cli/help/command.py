"""The kind that every command is: its -h and --help, and what it says to files without an option."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Any

import click

from lmart.cli.help.pages import full_page, one_screen
from lmart.cli.options.parsed_line import Once, ParsedLine, ParsingCommand, line_of
from lmart.errors import quote
from lmart.foreign_names import meant, perhaps


def _screen(context: click.Context, parameter: click.Parameter, asked: bool) -> None:
    if asked and not context.resilient_parsing:
        click.echo(one_screen(context), color=context.color)
        context.exit()


def _full(context: click.Context, parameter: click.Parameter, asked: bool) -> None:
    if asked and not context.resilient_parsing:
        click.echo(full_page(context), color=context.color)
        context.exit()


def help_options() -> list[click.Option]:
    """Return the options -h and --help, in place of Click's one."""
    shared: dict[str, Any] = {"is_flag": True, "is_eager": True, "expose_value": False}
    return [
        click.Option(["-h"], callback=_screen, help="Show the most important options, on one screen.", **shared),
        click.Option(["--help"], callback=_full, help="Show all options.", **shared),
    ]


class HelpfulCommand(ParsingCommand):
    """A command with one screen of help for -h, and all options in groups for --help.

    In the help of an option or of the command, what stands after a form feed is for the manual page only; of an option
    without one, --help has the first sentence.
    """

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **{"add_help_option": False, **named})
        self.params += help_options()

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
        """Return the arguments; a usage error for -long options, which Click would take apart."""
        _refuse_single_dash(self, args)
        return args

    def get_help(self, ctx: click.Context) -> str:
        """Return what --help prints."""
        return full_page(ctx)


def option_names(command: click.Command) -> list[str]:
    """Return all names of the options of a command, long and short."""
    return [name for one in command.params for name in (*one.opts, *one.secondary_opts) if name.startswith("-")]


def usage_message(fault: click.ClickException) -> str:
    """Return Click's message as one clause: no line breaks, no capital, no full stop."""
    message = fault.format_message()
    if isinstance(fault, click.NoSuchOption):
        known = [] if fault.ctx is None else option_names(fault.ctx.command)
        message = f"no such option {quote(fault.option_name)}{perhaps('option', fault.option_name, known)}"
    message = re.sub(r"\s*\n\s*", " ", message).rstrip(". ")
    return message[:1].lower() + message[1:]


def _refuse_single_dash(command: click.Command, args: Sequence[str]) -> None:
    """Refuse `-train` and the like, which RankLib has, and of which Click would take `-output` as `-o utput`."""
    known = option_names(command)
    for word in args:
        name = word.partition("=")[0]
        if not re.fullmatch(r"-[A-Za-z][A-Za-z0-9_-]+", name) or name in known:
            continue
        if hint := perhaps("option", name, known, by_spelling=False):
            raise click.BadOptionUsage(name, f"no such option '{name}'{hint}")


def _second_value(command: click.Command, args: Sequence[str], line: ParsedLine) -> str:
    """Return what is wrong with a word behind the value of an option that takes one; '' when it stands elsewhere."""
    word = next(iter(line.rest), "")
    for place in range(1, len(args)):
        one = next((one for one in command.params if args[place - 1] in one.opts), None)
        if isinstance(one, click.Option) and not one.is_flag and not one.count and word in args[place + 1 : place + 2]:
            instead = one.instead if isinstance(one, Once) else "give it once"
            return f"{args[place - 1]} takes one value, not {quote(word)} too; {instead}"
    return ""


def _with_options(command: click.Command, line: ParsedLine) -> str:
    """Return the words that stand without an option together with the option that they are meant for; may be empty.

    A word `name=value`, as LightGBM and XGBoost have them, is that option; of the others, one that is called like a
    model is the model, if the command needs one, and the rest is the data.
    """
    known = option_names(command)
    if "--data" not in known:
        return ""
    typed: list[str] = []
    files = []
    for word in line.rest:
        name, sign, value = word.partition("=")
        options = meant("option", name, known, by_spelling=False)
        if sign and options:
            typed += [options[0], value]
        else:
            files.append(word)
    if files and "--model" in known and not line.values.get("model") and not line.values.get("scores"):
        from lmart.streams.common import name_ending  # --help does without

        model = next((one for one in files if name_ending(one) in _OF_MODELS), None)
        if model is not None:
            files.remove(model)
            typed += ["--model", model]
    if files and (not line.values.get("data") or hasattr(command, "many")):
        typed += ["--data", *files]
    return shlex.join(typed)


_OF_MODELS = (".json", ".ubj", ".xml", ".model", ".onnx")
