r"""Manual pages: `python -m lmart.manpages man/` puts what the program knows into the pages of man/.

A page is a text. Its title gets the version, and the lines between `.\" BEGIN NAME` and `.\" END` are written anew by
the part of this name: options, examples, exit statuses, measures, presets. Edit everything else by hand.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from inspect import cleandoc
from pathlib import Path

import click

from lmart import __version__
from lmart.cli.help import default_shown, definitions
from lmart.cli.main import main as program
from lmart.errors import ExitStatus
from lmart.measures.conventions import CHOICES, Conventions
from lmart.measures.kinds import KINDS, MeasureKind
from lmart.measures.presets import PRESETS, Preset
from lmart.settings import OBJECTIVES
from lmart.settings.recipe import VARIATIONS

_PART = re.compile(r'^(\.\\" BEGIN ([^\n]+)\n).*?^(\.\\" END\n)', re.MULTILINE | re.DOTALL)
_TITLE = re.compile(r'^(\.TH \S+ \d "" )"[^"]*"', re.MULTILINE)


def pages(folder: Path) -> dict[str, str]:
    """Return file name -> text of every page in a folder, its generated parts made anew."""
    context = click.Context(program, info_name=program.name, **program.context_settings)
    shared = _files_and_environment((folder / "lmart.1").read_text("ascii"))
    made = {}
    for path in sorted(folder.glob("*.[157]")):
        command = program.get_command(context, path.stem.removeprefix("lmart-"))
        own = context if command is None else click.Context(command, context, command.name)
        made[path.name] = _filled(path.read_text("ascii"), own, shared)
    return made


def _filled(text: str, context: click.Context, shared: str) -> str:
    parts: dict[str, Callable[[], Iterable[str]]] = {
        "summary": lambda: _summary(context),
        "commands": lambda: _commands(context),
        "options": lambda: _options(context),
        "examples": lambda: _examples(context.command.epilog or ""),
        "exit statuses": _exit_statuses,
        "files and environment": shared.splitlines,
        "objectives": lambda: _lines(definitions({kind.name: kind.help for kind in OBJECTIVES.values()})),
        "rankers": lambda: _lines(
            definitions({str(number): variation.help for number, variation in enumerate(VARIATIONS, 1)})
        ),
        "measures": lambda: (line for kind in KINDS.values() for line in _measure(kind)),
        "table of presets": lambda: _lines(_table()),
        "presets": lambda: (line for preset in PRESETS.values() for line in _preset(preset)),
    }
    for name, choices in CHOICES.items():
        parts[f"choices of {name}"] = lambda choices=choices: _smaller(  # type: ignore[misc]
            (word, _sentence(meaning)) for word, meaning in choices.items()
        )

    def made(match: re.Match[str]) -> str:
        return "\n".join([match[1].rstrip(), *parts[match[2]](), match[3]])

    return _PART.sub(made, _TITLE.sub(rf'\1"lmart {__version__}"', text))


def _files_and_environment(text: str) -> str:
    """Return two sections of the page of the program, which pages of commands repeat."""
    return text[text.index(".SH FILES") : text.index(".SH SEE ALSO")]


def _summary(context: click.Context) -> Iterator[str]:
    command = context.command
    short = command.get_short_help_str(200).rstrip(".")
    yield from (".SH NAME", rf"{_literal(f'lmart-{context.info_name}')} \- {_text(short)}")
    yield from (".SH SYNOPSIS", _synopsis(context), ".SH DESCRIPTION", *_paragraphs(command.help or ""))


def _synopsis(context: click.Context) -> str:
    pieces = [rf"\fB{_literal(context.command_path)}\fR"]
    for parameter in context.command.get_params(context):
        if isinstance(parameter, click.Option) and parameter.required:
            pieces.append(rf"{_bold(parameter.opts[0])} \fI{_text(parameter.make_metavar(context))}\fR")
    pieces.append(r"[\fIOPTION\fR...]")
    for parameter in context.command.get_params(context):
        if isinstance(parameter, click.Argument):
            pieces.append(rf"\fI{_text(parameter.make_metavar(context))}\fR")
    return " ".join(pieces)


def _commands(context: click.Context) -> Iterator[str]:
    for name in program.list_commands(context):
        command = program.get_command(context, name)
        assert command is not None
        text = f"{command.get_short_help_str(200)} See lmart-{name}(1)."
        yield from (".TP", rf"\fBlmart {name}\fR", _text(text))


def _options(context: click.Context) -> Iterator[str]:
    for parameter in context.command.get_params(context):
        record = parameter.get_help_record(context) if isinstance(parameter, click.Option) else None
        if isinstance(parameter, click.Option) and record is not None:  # None: hidden
            texts = (parameter.help or "", getattr(parameter, "more", ""), default_shown(parameter, context))
            yield from (".TP", _option_names(record[0]), _text(" ".join(texts)))


def _option_names(names: str) -> str:
    """Return `-o, --out MODEL` with names in bold and values in italics."""
    words = re.split(r"([\s,/]+)(?=-)|(\s+)", names)
    return "".join(_bold(w) if w.startswith("-") else _italic(w) if w.strip(" ,/") else w for w in words if w)


def _examples(epilog: str) -> list[str]:
    return _lines("\n".join(example_lines(epilog)))


def example_lines(text: str) -> list[str]:
    """Return the lines of a text that are commands."""
    return [line.strip() for line in text.splitlines() if line.strip().startswith("lmart ")]


def _exit_statuses() -> Iterator[str]:
    for status in ExitStatus:
        yield from (".TP", rf"\fB{int(status)}\fR", _text(status.description))


def _measure(kind: MeasureKind) -> Iterator[str]:
    also = f" Also read as {', '.join(kind.aliases)}." if kind.aliases else ""
    yield from (".TP", _bold(", ".join(kind.syntax)), _text(_sentence(kind.meaning) + also))
    parts = {"Equation": f"{kind.equation}.", "Notes": kind.notes, "Source": f"{kind.source}."}
    yield from _smaller((name, text) for name, text in parts.items() if text)


def _table() -> str:
    """Return the conventions in which presets differ most, one line for each preset."""
    names = ("gain", "discount", "ties", "empty", "short", "p_divisor", "map_divisor", "relevant")
    rows = [["", *(name.replace("_", " ") for name in names)]]
    for preset in PRESETS.values():
        words = (getattr(preset.conventions, name) for name in names[:-1])
        rows.append([preset.name, *map(str, words), preset.conventions.relevance.removeprefix("label ")])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def _preset(preset: Preset) -> Iterator[str]:
    default, own = Conventions(), preset.conventions
    differs = []
    for name in (field.name for field in fields(Conventions) if field.name != "like"):
        if (value := getattr(own, name)) != getattr(default, name):
            differs.append(own.relevance if name == "relevant" else f"{name.replace('_', ' ')} {value}")
    parts = {"Measures": f"{preset.measures}.", "Differs": f"{', '.join(differs)}.", "Notes": preset.notes}
    yield from (".TP", _bold(preset.name), _text(f"{preset.tool}."))
    yield from _smaller((name, text) for name, text in parts.items() if text)


def _smaller(entries: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield terms and their texts, to stand below a larger term."""
    yield ".RS"
    for term, text in entries:
        yield from (".TP 11", _italic(term), _text(text))
    yield ".RE"


def _sentence(text: str) -> str:
    first = text.split(maxsplit=1)[0]
    return f"{text if '@' in first else text[0].upper() + text[1:]}."


def _paragraphs(text: str) -> Iterator[str]:
    r"""Yield a help text as roff; a paragraph that begins with a line `\b` keeps its lines."""
    for number, paragraph in enumerate(re.split(r"\n\s*\n", cleandoc(text))):
        if number:
            yield ".PP"
        opening, _, rest = paragraph.partition("\n")
        yield from _lines(rest) if opening.strip() == "\b" else [_text(paragraph)]


def _lines(text: str) -> list[str]:
    return [".nf", *map(_literal, text.splitlines()), ".fi"]


def _bold(text: str) -> str:
    return rf"\fB{_literal(text)}\fR"


def _italic(text: str) -> str:
    return rf"\fI{_literal(text)}\fR"


def _literal(text: str) -> str:
    """Escape a text so that roff prints every character as it is."""
    escaped = text.replace("\\", r"\e").replace("-", r"\-").replace("'", r"\(aq").replace("`", r"\(ga")
    escaped = "".join(c if c.isascii() else f"\\[u{ord(c):04X}]" for c in escaped)
    return r"\&" + escaped if escaped.startswith(".") else escaped


def _text(text: str) -> str:
    """Escape running text and put it on one line; options and minus signs keep their hyphens."""
    return _literal(" ".join(text.split()))


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    for name, text in pages(folder).items():
        (folder / name).write_text(text, encoding="ascii")
