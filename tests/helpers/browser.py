"""A browser without a window, for tests of pages; they are skipped where there is none."""

from __future__ import annotations

import html
import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from helpers.waiting import LIMIT

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--enable-logging=stderr",
    "--virtual-time-budget=5000",
)
MEASURE = """
<script>
addEventListener("load", () => {
  const inner = document.querySelector("iframe").contentDocument;
  const width = inner.documentElement.clientWidth;
  const wide = [...inner.querySelectorAll("body *")].filter(
    one => !one.closest(".scroll") && one.getBoundingClientRect().right > width + 0.5);
  const names = wide.map(one => one.tagName + "#" + one.id).join(" ");
  const text = inner.querySelector("svg text");
  const drawn = text ? text.getBoundingClientRect().height : null;
  const paper = getComputedStyle(inner.body).backgroundColor;
  document.querySelector("#found").textContent = JSON.stringify({
    width, scroll: inner.documentElement.scrollWidth, wide: names, drawn, paper,
  });
});
</script>
"""


class Opened(NamedTuple):
    """A page as the browser has it.

    document : the HTML of its elements, after its scripts ran
    console  : what the browser wrote to its console
    """

    document: str
    console: list[str]


def chromium() -> str:
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip("no Chromium is here")
    return found


def open_page(path: Path, profile: Path, *options: str) -> Opened:
    """Open a file; `profile` is a folder of the browser's own."""
    command = [chromium(), *OPTIONS, f"--user-data-dir={profile}", *options, "--dump-dom", path.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=LIMIT)
    return Opened(done.stdout, [line for line in done.stderr.splitlines() if re.search(r":CONSOLE\b", line)])


def framed(page: str, width: int) -> str:
    """A page that shows another one in so many pixels, and says how wide its content is, as JSON in #found."""
    frame = f'<iframe srcdoc="{html.escape(page)}" style="width: {width}px; height: 900px; border: 0"></iframe>'
    return f'<!DOCTYPE html><link rel="icon" href="data:,"><pre id="found"></pre>{frame}{MEASURE}'
