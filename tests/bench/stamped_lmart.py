"""`lmart` as ever, which also writes the time at the end of each round of a training to a file, a line each.

python stamped_lmart.py FILE train --data ...
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

from lmart.__main__ import run
from lmart.training.boosting import BoostingRun
from lmart.training.rankers import RoundReport
from lmart.training.tree_log import TreeLog


def stamp_rounds(path: str) -> None:
    """Let every training of this process write its times.

    path : of the file
    """
    rounds = BoostingRun.rounds

    def stamped(self: BoostingRun, log: TreeLog | None = None) -> Iterator[RoundReport]:
        with open(path, "w", encoding="ascii") as file:
            for one in rounds(self, log):
                print(repr(time.time()), file=file, flush=True)
                yield one

    BoostingRun.rounds = stamped  # type: ignore[method-assign]


if __name__ == "__main__":
    stamp_rounds(sys.argv.pop(1))
    run()
