"""Judged documents as text; only the standard library, see turns.py."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import NamedTuple


def plain_for_lightgbm(path: str, folder: Path) -> str:
    """Write the text without query ids and comments, and the file of query sizes that LightGBM looks for."""
    out = folder / "plain.txt"
    sizes: list[int] = []
    last = b""
    with open(path, "rb") as rows, out.open("wb") as plain:
        for row in rows:
            label, qid, cells = row.split(b"#", 1)[0].rstrip().split(b" ", 2)
            if qid != last:
                sizes.append(0)
                last = qid
            sizes[-1] += 1
            plain.write(b"%b %b\n" % (label, cells))
    Path(f"{out}.query").write_text("\n".join(map(str, sizes)) + "\n")
    return str(out)


class Parts(NamedTuple):
    """Part files, each of whole queries.

    paths   : of the files
    rows    : of each
    queries : of each
    columns : largest index of a feature + 1
    """

    paths: list[str]
    rows: list[int]
    queries: list[int]
    columns: int


def split(path: Path, n_parts: int, folder: Path) -> Parts:
    """Write LETOR text to part files of whole queries and about as many bytes each.

    path    : of the text; the rows of a query are adjacent
    n_parts : most files
    folder  : that they are written to
    """
    goal = path.stat().st_size / n_parts
    paths: list[str] = []
    n_rows: list[int] = []
    n_queries: list[int] = []
    columns, written, last = 0, 0, b""
    with path.open("rb") as rows, contextlib.ExitStack() as files:
        for row in rows:
            cells = row.split(b"#", 1)[0].split()
            if len(cells) < 2:
                continue
            if cells[1] != last:
                last = cells[1]
                if written >= goal * len(paths):
                    files.close()
                    paths.append(str(folder / f"part-{len(paths):03}.svm"))
                    n_rows.append(0)
                    n_queries.append(0)
                    out = files.enter_context(open(paths[-1], "wb"))
                n_queries[-1] += 1
            out.write(row)
            written += len(row)
            n_rows[-1] += 1
            if len(cells) > 2:
                columns = max(columns, int(cells[-1].partition(b":")[0]) + 1)
    return Parts(paths, n_rows, n_queries, columns)
