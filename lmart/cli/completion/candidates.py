"""What may stand at the cursor of a command line. Loads the file of the command, and nothing heavy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import click

from lmart.cli.command import takes_several
from lmart.cli.completion import SHELLS
from lmart.cli.options.shared import AddressType
from lmart.cli.options.types import GainType, MeasureType, Names, Real, Whole
from lmart.formats.registry import MODEL_FORMATS
from lmart.measures import KINDS
from lmart.streams.common import COMPRESSED_SUFFIXES

CUTOFFS = (1, 3, 5, 10, 20, 100)
MODEL_SUFFIXES = (".txt", ".xml", ".model")  # of tools whose formats are known by content, not by name


@dataclass(frozen=True)
class Candidates:
    """What may stand at the cursor.

    words    : each with its meaning
    partial  : more may follow without a blank, as in lists
    files    : names of files are meant instead of words
    suffixes : of the files that fit; none: all
    """

    words: tuple[tuple[str, str], ...] = ()
    partial: bool = False
    files: bool = False
    suffixes: tuple[str, ...] = ()

    def lines(self) -> str:
        """Return what the scripts of the shells read: the kind of words, then each word with its meaning."""
        if self.files:
            return " ".join(("files", *self.suffixes)) + "\n"
        kind = "parts" if self.partial else "words"
        return "".join(f"{line}\n" for line in (kind, *(f"{word}\t{meaning}" for word, meaning in self.words)))

    def starting_with(self, text: str) -> Candidates:
        """Return those that start with a text."""
        return replace(self, words=tuple((word, meaning) for word, meaning in self.words if word.startswith(text)))


NOTHING = Candidates()


def candidates(program: click.Group, words: Sequence[str], current: str) -> Candidates:
    """Return what may stand at the cursor."""
    context = click.Context(program, info_name="lmart")
    commands = {name: found for name in program.list_commands(context) if (found := program.get_command(context, name))}
    place = next((place for place, word in enumerate(words) if not word.startswith("-")), None)
    previous = words[-1] if words else ""
    if place is None or previous == "--completion":
        return _of_program(program, commands, previous, current).starting_with(current)
    if words[place] == "help":
        return _described(commands).starting_with(current) if place == len(words) - 1 else NOTHING
    command = commands.get(words[place])
    if command is None:
        return NOTHING
    return _of_command(command, words[place + 1 :], current)


def _of_program(program: click.Group, commands: dict[str, click.Command], previous: str, current: str) -> Candidates:
    if previous == "--completion":
        return Candidates(tuple((shell, "") for shell in SHELLS))
    if current.startswith("-"):
        return _options(program)
    further = (("help", "Show the help of a command."), ("version", "Show the version."))
    return Candidates((*_described(commands).words, *further))


def _described(commands: dict[str, click.Command]) -> Candidates:
    return Candidates(tuple((name, command.get_short_help_str(200)) for name, command in commands.items()))


def _of_command(command: click.Command, words: Sequence[str], current: str) -> Candidates:
    """Return what may stand at the cursor after the words of a command."""
    option, n_given = _open_option(command, words)
    name, sign, value = current.partition("=")
    if option is not None and (n_given < option.nargs or not current.startswith("-")):
        return _values(option, current)
    if sign and current.startswith("--"):
        option = _option_named(command, name)
        if option is None:
            return NOTHING
        found = _values(option, value)
        return replace(found, words=tuple((f"{name}={word}", meaning) for word, meaning in found.words))
    arguments = [parameter for parameter in command.params if isinstance(parameter, click.Argument)]
    if current.startswith("-") or not arguments:
        return _options(command).starting_with(current)
    return _files(arguments[0], "")


def _option_named(command: click.Command, name: str) -> click.Option | None:
    for parameter in command.params:
        if (
            isinstance(parameter, click.Option)
            and name in parameter.opts
            and not (parameter.is_flag or parameter.count)
        ):
            return parameter
    return None


def _open_option(command: click.Command, words: Sequence[str]) -> tuple[click.Option | None, int]:
    """Return the option whose values the next word may be, and how many it has so far."""
    option, n_given = None, 0
    for word in words:
        if option is not None and n_given < option.nargs:
            n_given += 1
        elif word.startswith("-") and word != "-":
            name, sign, _ = word.partition("=")
            option, n_given = _option_named(command, name), int(bool(sign))
        else:
            n_given += 1
    if option is None or n_given < option.nargs:
        return option, n_given
    return (option, n_given) if takes_several(option) else (None, 0)


def _options(command: click.Command) -> Candidates:
    """Return the options of a command, long names only, each with its short help."""
    words = []
    for parameter in command.params:
        if isinstance(parameter, click.Option) and not parameter.hidden:
            names = [name for name in (*parameter.opts, *parameter.secondary_opts) if name.startswith("--")]
            words += [(name, parameter.help or "") for name in names]
    return Candidates(tuple(words))


def _values(option: click.Option, current: str) -> Candidates:
    """Return the values of an option that start with the current word."""
    kind = option.type
    if isinstance(kind, MeasureType):
        return _joined(current, ",", _measures, option.multiple)
    if isinstance(kind, Names):
        choices = tuple((name, "") for name in kind.choices)
        automatic = () if "+" in current else ((kind.other, ""),)
        return _joined(current, "+", lambda _: (*automatic, *choices), kind.several)
    if isinstance(kind, click.Choice):
        return Candidates(tuple((str(choice), "") for choice in kind.choices)).starting_with(current)
    if isinstance(kind, GainType):
        return Candidates((("exp2", "2^label - 1"), ("linear", "the label"))).starting_with(current)
    if isinstance(kind, Whole | Real):
        return Candidates(((kind.other, ""),) if kind.other else ()).starting_with(current)
    if isinstance(kind, AddressType):
        return Candidates(kind.begins, partial=True).starting_with(current)
    return _files(option, current)


def _joined(
    current: str, separator: str, choices: Callable[[str], Iterable[tuple[str, str]]], several: bool
) -> Candidates:
    """Return the words that complete the last entry of a list, with the entries before it."""
    earlier, sign, entry = current.rpartition(separator) if several else ("", "", current)
    taken = earlier.split(separator)
    words = [(f"{earlier}{sign}{word}", meaning) for word, meaning in choices(entry) if word not in taken]
    return Candidates(tuple(words), partial=several).starting_with(current)


def _measures(entry: str) -> list[tuple[str, str]]:
    """Return measures with and without cutoffs; all the cutoffs once there is an @."""
    words = []
    for kind in KINDS.values():
        if kind.cutoff != "needed":
            words.append((kind.name, kind.meaning))
        cutoffs = () if kind.cutoff == "none" else CUTOFFS if "@" in entry else (10,)
        words += [(f"{kind.name}@{k}", kind.meaning) for k in cutoffs]
    return words


def _files(parameter: click.Parameter, current: str) -> Candidates:
    """Return files for a parameter that takes some, known by the word that stands for its value in help."""
    metavar = (parameter.metavar or parameter.name or "").upper()
    if "MODEL" in metavar:
        endings = dict.fromkeys(
            ending for model_format in MODEL_FORMATS.values() for ending in model_format.suffixes if model_format.reader
        )
        named = (*endings, *MODEL_SUFFIXES)
        return Candidates(files=True, suffixes=tuple(e + c for e in named for c in ("", *COMPRESSED_SUFFIXES)))
    is_file = any(word in metavar for word in ("FILE", "DATA", "SRC", "DST", "REPORT", "FOLDER", "RUN"))
    return Candidates(files=True) if is_file else NOTHING
