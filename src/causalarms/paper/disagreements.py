"""One honest sentence per number that may disagree, shown in the report where it does."""

from __future__ import annotations

REASONS: dict[str, str] = {}

SMALL_SAMPLE = (
    "no reading of the undetermined settings explains it; with few systems the interval is wide, "
    "try --runs 100."
)


def reason(key: str) -> str:
    return REASONS.get(key, SMALL_SAMPLE)
