"""What a fresh state shows of later ones, for policies that declare nothing themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from causalarms.errors import DataError
from causalarms.policies.state_check import WHOLE, Entry, check_state

FRESH: dict[str, Any] = {
    "n_told": 0,
    "alarms": np.zeros((0, 6)),
    "rows": np.zeros((0, 2)),
    "best": float("nan"),
    "arm": np.int64(-1),
    "name": "none",
    "known": False,
    "limits": np.array([-np.inf, np.inf]),
}
GOOD = FRESH | {
    "n_told": 3, "rows": np.ones((3, 2)), "best": 2.0, "arm": 3, "name": "other", "known": True,
}  # fmt: skip


def check(declared: dict[str, Entry] | None = None, **changes: Any) -> None:
    check_state(FRESH, declared or {}, GOOD | changes, n_nodes=2, n_told=3)


def test_what_a_policy_may_have_become_is_accepted() -> None:
    check()
    check(best=float("nan"), arm=-1, limits=np.array([1.0, np.inf]))
    check({"more": Entry(WHOLE, optional=True)})
    check({"more": Entry(WHOLE, optional=True)}, more=10**6)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"n_told": 2}, "it knows 2 rounds, the log 3"),
        ({"n_told": 4}, "n_told holds a number outside 0 to 3"),
        ({"rows": np.ones((3, 3))}, r"rows has shape \(3, 3\), not \(any, 2\)"),
        ({"rows": np.ones(3)}, r"rows has shape \(3,\)"),
        ({"rows": np.ones((3, 2), dtype=int)}, "rows holds int64, not float64"),
        ({"rows": [[1.0, 1.0]]}, "rows holds list, not float64"),
        ({"rows": np.full((3, 2), np.inf)}, "rows holds a number that is not finite"),
        ({"limits": np.array([np.nan, 1.0])}, "limits holds nan"),
        ({"arm": 4}, "arm holds a number outside -1 to 3"),
        ({"arm": -2}, "arm holds a number outside -1 to 3"),
        ({"arm": True}, "arm is True, not a whole number"),
        ({"best": 1}, "best is 1, not a number"),
        ({"name": 1}, "name is 1, not a str"),
        ({"known": 1}, "known is 1, not a bool"),
        ({"more": 1}, "more is not part of it"),
        ({"alarms": np.array([[2.0, 1, 1, 1, 9, 9], [1.0, 1, 0, 0, 9, 9]])}, "order of rounds"),
        ({"alarms": np.array([[2.0, 1, 1, 1, 9, 9]] * 2)}, "order of rounds"),
        ({"alarms": np.array([[4.0, 1, 1, 1, 9, 9]])}, "a round or a mechanism"),
        ({"alarms": np.array([[2.0, 1, 2, 1, 9, 9]])}, "a round or a mechanism"),
        ({"alarms": np.array([[2.0, -1, 1, 1, 9, 9]])}, "a round or a mechanism"),
        ({"alarms": np.array([[2.5, 1, 1, 1, 9, 9]])}, "a round or a mechanism"),
        ({"alarms": np.array([[2.0, 1, 1, -2, 9, 9]])}, "a round or a mechanism"),
    ],
)
def test_what_it_cannot_have_become_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(DataError, match=words):
        check(**changes)


def test_every_name_is_needed() -> None:
    for name in GOOD:
        state = {n: value for n, value in GOOD.items() if n != name}
        with pytest.raises(DataError, match=f"{name} is missing"):
            check_state(FRESH, {}, state, n_nodes=2, n_told=3)
