"""The units of the prior are guessed from balanced rounds, and guessed again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from causalarms import make_policy, random_sem
from causalarms.policies.posterior.rounds import DESIGNED_ROUNDS, UNITS_AGAIN
from causalarms.statistics.units import NOISE_FRACTION

SEM = random_sem(4, seed=2)


def played(rounds: int, *, gaps: bool = False) -> tuple[Any, Any, Any]:
    """The policy, the interventions and the values."""
    policy, rng = make_policy("posterior", n_nodes=4), np.random.default_rng(3)
    rows, values = [], []
    for number in range(rounds):
        rows.append(policy.suggest(rng).intervention)
        values.append(SEM.sample(rows[-1][None], rng)[0])
        if gaps and number % 3 == 1:
            values[-1][number % 4] = np.nan
        policy.tell(rows[-1], values[-1])
    return policy, np.array(rows), np.array(values)


def test_the_first_rounds_are_balanced() -> None:
    _, rows, _ = played(DESIGNED_ROUNDS)
    assert (rows.sum(axis=0) == DESIGNED_ROUNDS // 2).all()
    assert (rows[0] != rows[1]).all()  # whatever was played least


@pytest.mark.parametrize("rounds", [DESIGNED_ROUNDS, *UNITS_AGAIN])
def test_units_are_a_fraction_of_the_spread_so_far(rounds: int) -> None:
    policy, _, values = played(rounds)
    assert policy._system.units.scale == pytest.approx(NOISE_FRACTION * values.std(axis=0))
    later, _, _ = played(rounds + 1)
    assert later._system.units.scale.tolist() == policy._system.units.scale.tolist()


def test_new_units_change_no_number_of_rounds_also_with_gaps() -> None:
    for rounds in UNITS_AGAIN:
        policy, rows, values = played(rounds, gaps=True)
        counts = policy._system.rounds.counts
        for node in range(4):
            told = rows[~np.isnan(values[:, node]), node]
            assert counts[:, node].tolist() == [int((told == r).sum()) for r in (0, 1)]
        assert np.isfinite(policy.belief(np.random.default_rng(0)).draws.weights).all()


def test_known_units_are_kept() -> None:
    policy: Any = make_policy("posterior", n_nodes=4, noise_scale=1.0)
    assert policy.config.prior().noise_scales == (1.0,)
    guessed: Any = make_policy("posterior", n_nodes=4)
    assert len(guessed.config.prior().noise_scales) > 1
