"""What identifies a run of `lmart train` in its report: version, command line, time, what it read and which model."""

from __future__ import annotations

import glob
import hashlib
import os
import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from lmart import __version__
from lmart.streams.digests import InputDigests


@dataclass(frozen=True, eq=False)
class RunTrace:
    """A run that began now.

    words   : of its command line, behind `lmart`
    inputs  : files that it reads, or patterns of those that workers read
    digests : of what it has read so far
    """

    words: Sequence[str]
    inputs: Sequence[str]
    digests: InputDigests
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    start: float = field(default_factory=time.perf_counter)

    @property
    def seconds(self) -> float:
        """How long the run has taken so far."""
        return time.perf_counter() - self.start

    def entry(self, model: str, content: str) -> dict[str, Any]:
        """Return the entry of the report.

        model, content : the name of the model, and its text
        """
        files = [file for path in dict.fromkeys(self.inputs) for file in _matched(path)]
        return {
            "version": __version__,
            "command": shlex.join(["lmart", *self.words]),
            "started": self.started.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "seconds": self.seconds,
            "inputs": [
                {
                    "file": path,
                    "bytes": None if digest is None else digest.size,
                    "sha256": None if digest is None else digest.sha256,
                }
                for path, digest in self.digests.of(files).items()
            ],
            "model": {"file": model, "sha256": hashlib.sha256(content.encode()).hexdigest()},
        }


def _matched(path: str) -> list[str]:
    """Return the files that a name stands for."""
    if path == "-" or os.path.exists(path):
        return [path]
    return sorted(glob.glob(path)) or [path]
