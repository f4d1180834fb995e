"""How regimes and mechanisms are called in messages and tables."""

from __future__ import annotations

from collections.abc import Sequence

from causalarms.sem.regimes import REGIME_NAMES, regime_names

__all__ = ["REGIME_NAMES", "mechanism_name", "regime_names"]


def mechanism_name(nodes: Sequence[str], regime: int, node: int, n_regimes: int = 2) -> str:
    """
    >>> mechanism_name(["a", "b"], 1, 0)
    "node 'a' (intervened)"
    >>> mechanism_name(["a", "b"], 2, 1, 3)
    "node 'b' (regime 2)"
    """
    return f"node {nodes[node]!r} ({regime_names(max(n_regimes, regime + 1))[regime]})"
