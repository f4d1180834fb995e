"""How regimes and mechanisms are called in messages and tables."""

from __future__ import annotations

from collections.abc import Sequence

REGIME_NAMES = ("natural", "intervened")


def mechanism_name(nodes: Sequence[str], regime: int, node: int) -> str:
    """
    >>> mechanism_name(["a", "b"], 1, 0)
    "node 'a' (intervened)"
    """
    return f"node {nodes[node]!r} ({REGIME_NAMES[regime]})"
