"""WrittenModel: what the writers of other tools' model formats return."""

from __future__ import annotations

from typing import NamedTuple


class WrittenModel(NamedTuple):
    """A model in the format of another tool.

    content : the bytes of the file
    notes   : one line for each thing that the format does not hold or that could differ, with counts
    needs   : one line for each thing that the tool needs beside the file to score as the model does
    """

    content: bytes
    notes: tuple[str, ...]
    needs: tuple[str, ...] = ()
