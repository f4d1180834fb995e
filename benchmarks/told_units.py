"""The posterior of noise of order one: what tables say that were measured with units told."""

from __future__ import annotations

from typing import Any

TOLD: dict[str, Any] = {
    "noise_scale": 1.0, "decide": "quantile", "gaps": "drop", "typing_errors": "kept",
}  # fmt: skip
TOLD_CD = TOLD | {"noise": "gaussian"}
