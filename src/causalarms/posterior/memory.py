"""How much memory the tables of the exact posterior take, checked before they are made."""

from __future__ import annotations

from causalarms.errors import SettingError
from causalarms.limits import EXACT_BYTES


def table_bytes(n_nodes: int, n_regimes: int = 2) -> int:
    """Bytes at the peak: scores, their sums, sums by node, the past, one more table for a moment.

    >>> f"{table_bytes(20):,}"
    '622,854,144'
    """
    n_sets = 1 << max(n_nodes - 1, 0)
    tables = 8 * n_nodes * n_sets * (n_regimes + n_regimes + 1 + 1 + 1)
    orders = 8 * 2 * n_sets * 3
    room = (8 + 4 + 8) * n_sets
    return tables + orders + room


def check_memory(n_nodes: int, limit: int | None = None, n_regimes: int = 2) -> int:
    """The bytes needed, or a refusal that names them."""
    needed = table_bytes(n_nodes, n_regimes)
    limit = EXACT_BYTES if limit is None else limit
    if needed > limit:
        raise SettingError(
            f"the exact posterior of {n_nodes} nodes needs {needed:,} bytes, above the limit of "
            f"{limit:,} (memory_limit); every further node doubles it"
        )
    return needed
