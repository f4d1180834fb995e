"""What a token may do."""

from __future__ import annotations

from typing import Literal

Role = Literal["read", "worker", "operator"]  # looks; asks and tells under its name; does all
