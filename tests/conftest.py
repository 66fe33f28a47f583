"""Settings of the whole suite."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# The first call of a kernel compiles it, so time says nothing about a single example.
settings.register_profile("lmart", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("lmart")
