"""Where the project and its sample data are."""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).parent.parent
ROOT = TESTS.parent
SAMPLE = ROOT / "data" / "sample"
