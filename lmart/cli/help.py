"""The texts of -h and --help, made from the options of a command and its layout.

The layout says which options the one screen of -h shows, and under which headings all of them stand in --help; what has
no heading stands under "More". A name that no command has is a mistake.
"""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from inspect import cleandoc
from types import MappingProxyType
from typing import NamedTuple

import click

WIDEST = 80  # columns; a terminal that is wider does not make lines longer
NARROWEST = 40
LONGEST_NAME = 24  # of an option with its value; what is longer has a line of its own
EXAMPLES_ON_SCREEN = 3
SCREEN = 24  # lines

# Groups at the end of the help of every command, each with those of its options that the command has.
SHARED = {
    "Reading the data": "absent group_by_qid duplicates max_errors allow_inf query_sizes valid_query_sizes "
    "label_column query_column document_column ignore_columns",
    "Running": "seed threads quiet log_time h help",
}


class HelpLayout(NamedTuple):
    """The layout of the help of a command; options are named as its parameters, with blanks between.

    usual  : options of the one screen, in their order, as far as it holds them; none: all
    groups : options by heading, in their order
    """

    usual: str = ""
    groups: Mapping[str, str] = MappingProxyType({})


LAYOUTS = {
    "train": HelpLayout(
        "data valid out trees leaves learning_rate min_docs objective metric early_stop folds tune",
        {
            "Files": "data valid out report checkpoint on_interrupt continue_from strict",
            "Trees": "trees rankers linear tree leaves learning_rate max_depth min_docs min_hessian l2 max_bins sample "
            "features monotone categorical",
            "Objective": "objective truncation sigma normalize gain weights",
            "Validation and stopping": "metric early_stop refit valid_weights",
            "Choosing settings": "folds fold_by oof tune tune_trials tune_file settings_file",
            "Starting scores and clicks": "init_scores valid_init_scores positions position_bias_reg",
            "On a cluster": "dask retries dask_security",
        },
    ),
    "predict": HelpLayout(
        "model data out form top explain why strict group_by_qid query_sizes threads quiet",
        {
            "Files": "model data out",
            "Result": "form top tag strict",
            "Explaining": "explain why",
            "On a cluster": "dask dask_security",
        },
    ),
    "eval": HelpLayout(
        "data model scores qrels run metric like gain empty ties per_query as_json html threads",
        {
            "Files": "data model scores qrels run weights strict",
            "Measures": "metric like gain discount relevant empty ties missing unjudged short p_divisor map_divisor "
            "precision",
            "Comparing": "compare all_pairs level resamples flips seed",
            "Result": "groups per_query as_json html title train_report",
            "On a cluster": "dask dask_security",
        },
    ),
    "convert": HelpLayout(
        "source_format target_format absent split verify strict feature_map group_by_qid threads quiet",
        {
            "Formats": "source_format target_format",
            "Splitting": "split seed",
            "Models": "verify strict feature_map nonnegative name store",
        },
    ),
    "show": HelpLayout(
        "top tree data as_tsv as_json strict threads quiet",
        {"Result": "top tree as_tsv as_json", "Contributions": "data strict", "Page": "html title train_report"},
    ),
    "compile": HelpLayout("", {"Compiling": "generic"}),
}
"""By the name of the command; others show what they have."""


def one_screen(context: click.Context) -> str:
    """Return the text of -h: usage, what the command does, the options needed most, and examples."""
    command, width = context.command, _width()
    own = [option for option in command.params if isinstance(option, click.Option) and not option.hidden]
    named = {option.name: option for option in own if option.name not in ("h", "help")}
    usual = [named[name] for name in _layout(command).usual.split()] or list(named.values())
    opening = [*_usage(context, width), "", *_wrapped(_paragraphs(command)[0], width, ""), ""]
    closing = ["", f"'{context.command_path} --help' shows all options."]
    if examples := _examples(command)[:EXAMPLES_ON_SCREEN]:
        closing = ["", "Examples:", *(f"  {line}" for line in examples), *closing]
    table = _table(usual, context, width, short=True)
    while usual and len(opening) + len(table) + len(closing) > SCREEN:
        usual.pop()
        table = _table(usual, context, width, short=True)
    return "\n".join([*opening, *table, *closing])


def full_page(context: click.Context) -> str:
    """Return the text of --help: what the command does, all options in their groups, and examples."""
    command, width = context.command, _width()
    lines = [*_usage(context, width), ""]
    for paragraph in _paragraphs(command):
        lines += [*_wrapped(paragraph, width, ""), ""]
    for heading, options in _grouped(command):
        lines += [f"{heading}:", *_table(options, context, width), ""]
    if examples := _examples(command):
        lines += ["Examples:", *(f"  {line}" for line in examples), ""]
    page = context.command_path.replace(" ", "-")
    last = f"Defaults are in brackets. 'man {page}' says more about each option."
    return "\n".join([*lines, *_wrapped(last, width, "")])


def program_page(context: click.Context, statuses: dict[int, str]) -> str:
    """Return the help of the program: its commands, its options, and the exit statuses of all commands."""
    group, width = context.command, _width()
    assert isinstance(group, click.Group)
    lines = [f"Usage: {context.command_path} COMMAND [OPTIONS]", "", *_wrapped(_paragraphs(group)[0], width, ""), ""]
    found = [(name, group.get_command(context, name)) for name in group.list_commands(context)]
    commands = [(name, command.get_short_help_str(200)) for name, command in found if command is not None]
    lines += [*_columns([*commands, ("help COMMAND", "Show the help of a command, as COMMAND --help.")], width), ""]
    own = [option for option in group.params if isinstance(option, click.Option) and not option.hidden]
    lines += _columns([(_name(option), (option.help or "")) for option in own], width)
    outcomes = ", ".join(f"{status} {words}" for status, words in statuses.items())
    last = f"'{context.command_path} COMMAND -h' shows a command on one screen, --help all of it."
    return "\n".join([*lines, "", *_wrapped(f"Exit status: {outcomes}.", width, ""), "", *_wrapped(last, width, "")])


def _columns(entries: Sequence[tuple[str, str]], width: int) -> list[str]:
    column = 4 + max(len(name) for name, _ in entries)
    return [line for name, text in entries for line in _wrapped(text, width, f"  {name}".ljust(column))]


def default_shown(option: click.Option, context: click.Context) -> str:
    """Return the default of an option and its range, in brackets, as Click shows them; empty without both."""
    record = option.get_help_record(context)
    return "" if record is None else record[1][len(option.help or "") :].strip()


def _width() -> int:
    return min(max(shutil.get_terminal_size().columns, NARROWEST), WIDEST) - 1


def _layout(command: click.Command) -> HelpLayout:
    return LAYOUTS.get(command.name or "", HelpLayout())


def _grouped(command: click.Command) -> Iterator[tuple[str, list[click.Option]]]:
    """Yield each heading with its options; what has none comes before the last heading."""
    left = {option.name: option for option in command.params if isinstance(option, click.Option) and not option.hidden}
    groups = {heading: [left.pop(name) for name in names.split()] for heading, names in _layout(command).groups.items()}
    for heading, names in SHARED.items():
        groups[heading] = [left.pop(name) for name in names.split() if name in left]
    *first, last = groups.items()
    only = not any(options for _, options in first)
    for heading, options in (*first, ("Options" if only else "More", list(left.values())), last):
        if options:
            yield heading, options


def _usage(context: click.Context, width: int) -> list[str]:
    pieces = ["[OPTIONS]"]
    for parameter in context.command.params:
        if isinstance(parameter, click.Option) and parameter.required and not parameter.hidden:
            pieces.append(f"{max(parameter.opts, key=len)} {_value(parameter)}")
    pieces += [_value(parameter) for parameter in context.command.params if isinstance(parameter, click.Argument)]
    opening = f"Usage: {context.command_path} "
    return _wrapped(" ".join(pieces), width, opening)


def _paragraphs(command: click.Command) -> list[str]:
    return re.split(r"\n\s*\n", cleandoc(command.help or "").strip())


def _wrapped(text: str, width: int, opening: str) -> list[str]:
    r"""Return a paragraph broken into lines of `width`, unless it begins with a line `\b`; `opening` comes first."""
    first, _, rest = text.partition("\n")
    if first.strip() == "\b":
        return rest.splitlines()
    indent = " " * len(opening)
    words = " ".join(text.split())
    lines = textwrap.wrap(
        words, width, initial_indent=opening, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False
    )
    return lines or [opening.rstrip()]


def _table(options: Sequence[click.Option], context: click.Context, width: int, short: bool = False) -> list[str]:
    """Return the options, each with its help next to its name, or below a long one."""
    names = [_name(option) for option in options]
    fitting = [len(name) for name in names if len(name) <= LONGEST_NAME]
    column = 4 + max(fitting, default=LONGEST_NAME)
    if width < column + 20:
        column = 6
    lines = []
    for option, name in zip(options, names, strict=True):
        opening = f"  {name}"
        if len(opening) + 2 > column:
            lines.append(opening)
            opening = ""
        described = _wrapped(_described(option, context), width, opening.ljust(column))
        plain = _wrapped((option.help or ""), width, opening.ljust(column))
        lines += plain if short and len(plain) < len(described) else described
    return lines


def _value(parameter: click.Parameter) -> str:
    """Return the word that stands for a value of a parameter, or its choices; Click's own has brackets around them."""
    if parameter.metavar is not None:
        return parameter.metavar
    if isinstance(parameter.type, click.Choice):
        return "|".join(map(str, parameter.type.choices))
    return (parameter.name if isinstance(parameter, click.Argument) else parameter.type.name or "").upper()


def _name(option: click.Option) -> str:
    """Return the names of an option with its value, such as `-o, --out MODEL` or `--[no-]normalize`."""
    if option.secondary_opts:
        return f"--[no-]{option.opts[0].removeprefix('--')}"
    names = ", ".join(sorted(option.opts, key=len))
    value = "" if option.is_flag or option.count else f" {_value(option)}"
    return names + value


def _described(option: click.Option, context: click.Context) -> str:
    """Return the help of an option, and in brackets its default or that it is required."""
    text, default = option.help or "", _default(option, context)
    if option.required:
        return f"{text} (required)"
    return f"{text} [{default}]" if default and not option.is_flag else text


def _default(option: click.Option, context: click.Context) -> str:
    """Return the default of an option as it is shown, without its range; empty when none is."""
    extra = default_shown(option, context).removeprefix("[").removesuffix("]")
    shown = extra.partition("default: ")[2].removesuffix("; required")
    if isinstance(option.type, click.IntRange | click.FloatRange):
        shown = shown.removesuffix(f"; {option.type._describe_range()}")
    return shown[1:-1] if shown.startswith("(") and shown.endswith(")") else shown


def _examples(command: click.Command) -> list[str]:
    """Return the lines of the examples of a command, one that is broken by a backslash with its further lines."""
    return [line.strip() for line in (command.epilog or "").splitlines() if line.strip().startswith("lmart ")]


def definitions(entries: Mapping[str, str]) -> str:
    """Return lines of a help text, each name followed by its meaning, broken to the width of help pages."""
    column = 4 + max(map(len, entries))
    lines = []
    for name, meaning in entries.items():
        opening = f"  {name}".ljust(column)
        lines += textwrap.wrap(f"{meaning}.", 72, initial_indent=opening, subsequent_indent=" " * column)
    return "\n".join(lines)
