"""Settings of the whole suite."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from helpers.commands import HAS_DASK
from hypothesis import HealthCheck, settings

# The first call of a kernel compiles it, so time says nothing about a single example.
settings.register_profile(
    "all", max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("inner loop", settings.get_profile("all"), max_examples=20)

# Started with nohup or in the background, we ignore signals; what we start and stop must not inherit that.
for number, default in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, default)


def pytest_configure(config: pytest.Config) -> None:
    """Try fewer random examples where slow tests are left out too, or kernels run as plain Python."""
    quick = "not slow" in config.getoption("markexpr") or os.environ.get("NUMBA_DISABLE_JIT") == "1"
    settings.load_profile("inner loop" if quick else "all")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Leave out a test with the marker `cluster` where the package for clusters is not installed."""
    if item.get_closest_marker("cluster") is not None and not HAS_DASK:
        pytest.skip("the package distributed is not installed")


@pytest.fixture
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, new and empty."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
