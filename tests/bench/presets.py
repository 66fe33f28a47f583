"""Print, for each preset, the tool's own number, ours, and the difference, on the data sets on which tools part.

    python tests/bench/presets.py [--all] [--json FILE]

The last line has the largest difference. A tool that is not installed is left out with a line; gdeval needs perl.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import warnings
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent))

from helpers.other_tools import COMPARED, data_sets, ours, pooled, ranx

SHOWN = ("ndcg@1", "ndcg@10", "dcg@10", "map", "map@3", "map(rel=2)", "p@5", "p@10", "bpref", "err@10(max=4)")
PACKAGES = ("lightgbm", "xgboost", "scikit-learn", "pytrec_eval-terrier", "ir_measures", "ranx", "numpy")


class Line(NamedTuple):
    """One number of a tool, and ours."""

    preset: str
    tool: str
    data: str
    measure: str
    theirs: float
    ours: float

    def __str__(self) -> str:
        start = f"{self.preset:<10} {self.tool:<12} {self.data:<13} {self.measure:<18}"
        return f"{start} {self.theirs:<20.17g} {self.ours:<20.17g} {self.ours - self.theirs:.1e}"


def compared() -> Iterator[Line]:
    """Run every tool that is there on every data set that it takes."""
    for like, _, tool, _, takes_pools in (*COMPARED, ("trec_eval", "ranx", ranx, 0.0, False)):
        for ranking in [*data_sets(), *([pooled()] if takes_pools else [])]:
            if tool is ranx and "tied" in ranking.name:  # it leaves the order of ties open
                continue
            try:
                theirs = tool(ranking)
            except (ImportError, FileNotFoundError) as fault:
                print(f"{tool.__name__} is left out: {fault}", file=sys.stderr)
                break
            found = ours(ranking, ",".join(theirs), like)
            for name, number in theirs.items():
                yield Line(like, tool.__name__, ranking.name, name, number, float(found[name]))


def versions() -> dict[str, str]:
    """Return the versions of what is compared."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def main() -> None:
    """Print the table, and write all numbers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="print all measures, not a few of each tool")
    parser.add_argument("--json", metavar="FILE", help="write all numbers")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    print(", ".join(f"{name} {number}" for name, number in versions().items()))
    print(f"{'preset':<10} {'tool':<12} {'data':<13} {'measure':<18} {'tool says':<20} {'lmart says':<20} difference")
    lines = []
    for line in compared():
        lines.append(line)
        if asked.all or line.measure in SHOWN:
            print(line)
    for what, chosen in (("gdeval's, which have five digits", True), ("all others", False)):
        differences = [abs(one.ours - one.theirs) for one in lines if (one.preset == "gdeval") == chosen]
        print(f"largest difference of {len(differences)} numbers, {what}: {max(differences, default=0.0):.1e}")
    if asked.json:
        content = {"versions": versions(), "numbers": [one._asdict() for one in lines]}
        Path(asked.json).write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
