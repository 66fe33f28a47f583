"""Completion of command lines in bash, zsh and fish.

The scripts beside this file belong to the shells: each asks `lmart`, called with the environment variable ASKED, what
may stand at the cursor, and completes files itself. They are installed where the shells look for them, and
`lmart --completion SHELL` prints them.
"""

from __future__ import annotations

import shlex
from importlib.resources import files

SCRIPTS = {"bash": "lmart.bash", "zsh": "_lmart", "fish": "lmart.fish"}
SHELLS = tuple(SCRIPTS)
ASKED = "_LMART_COMPLETE"


def script_of(shell: str) -> str:
    """Return the script of a shell."""
    return files(__name__).joinpath(SCRIPTS[shell]).read_text("ascii")


def split_line(line: str) -> list[str]:
    """Return the words of a line up to the cursor, without the program; quotes may be open."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=False)
    lexer.whitespace_split, lexer.commenters = True, ""
    words = []
    try:
        for word in lexer:
            words.append(word)
    except ValueError:  # a quote or an escape that is open: the word at the cursor
        return [*words, lexer.token][1:]
    if line[-1:].isspace() and not (words and words[-1].endswith(line[-1])):
        words.append("")
    return words[1:]
