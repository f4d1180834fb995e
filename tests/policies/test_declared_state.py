"""States are declared: the base saves, checks and restores what `learned` names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from causalarms.arrays import FloatArray, IntArray
from causalarms.errors import DataError
from causalarms.policies import make_policy
from causalarms.state import Declared, restore_state, state_of


@dataclass(frozen=True)
class Pair:
    left: FloatArray
    right: FloatArray | None = None


class Part:
    learned: ClassVar[Declared] = {
        "_counts": np.ndarray,
        "_later": np.ndarray | None,
        "_pair": Pair | None,
        "share": float,
    }

    def __init__(self) -> None:
        self._counts: IntArray = np.zeros(3, dtype=np.int64)
        self._later: FloatArray | None = None
        self._pair: Pair | None = None
        self.share = 0.5


def test_what_is_not_learned_yet_is_left_out_and_restored_as_none() -> None:
    fresh, full = Part(), Part()
    full._later, full._pair = np.ones(2), Pair(np.ones(1))
    assert set(state_of(fresh, Part.learned)) == {"counts", "share"}
    assert set(state_of(full, Part.learned)) == {"counts", "share", "later", "pair.left"}
    restore_state(fresh, Part.learned, state_of(full, Part.learned))
    assert fresh._pair is not None
    assert fresh._pair.right is None
    restore_state(full, Part.learned, state_of(Part(), Part.learned))
    assert set(state_of(full, Part.learned)) == {"counts", "share"}


def test_states_are_copies_in_both_directions() -> None:
    one, other = Part(), Part()
    one._pair = Pair(np.zeros(1))
    state = state_of(one, Part.learned)
    restore_state(other, Part.learned, state)
    one._counts[:], one._pair.left[:] = 7, 7
    assert state["counts"].tolist() == other._counts.tolist() == [0, 0, 0]
    assert state["pair.left"].tolist() == [0]


@pytest.mark.parametrize(
    ("wrong", "error"),
    [(np.zeros(3), DataError), (np.zeros((3, 1), dtype=np.int64), DataError), (None, KeyError)],
)
def test_entries_of_another_type_or_missing_ones_are_refused(
    wrong: FloatArray | None, error: type[Exception]
) -> None:
    state = state_of(Part(), Part.learned) | {"counts": wrong}
    if wrong is None:
        del state["counts"]
    with pytest.raises(error, match="counts"):
        restore_state(Part(), Part.learned, state)


@pytest.mark.parametrize("name", ["ucb", "additive", "csl-ucb", "golem-mab"])
def test_every_policy_refuses_a_state_of_other_types(name: str) -> None:
    policy = make_policy(name, n_nodes=3, horizon=1000)
    state = policy.state()
    arrays = [name.removeprefix("_") for name, kind in policy.learned.items() if kind is np.ndarray]
    assert arrays
    for array in arrays:
        with pytest.raises(DataError, match=array):
            policy.restore(state | {array: state[array].astype(np.float32)})
