"""Settings of all tests: the same examples in every run, no clock on compiled first calls."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile(
    "causalarms", deadline=None, derandomize=True, database=None, max_examples=40
)
settings.load_profile("causalarms")
