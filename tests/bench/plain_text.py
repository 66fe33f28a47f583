"""Judged documents as text; only the standard library, see turns.py."""

from __future__ import annotations

from pathlib import Path


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
