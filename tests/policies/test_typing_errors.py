"""One value of 1000 among values of ten is set aside, and taken back when others like it come."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from causalarms import random_sem
from causalarms.changes.detector import Alarm
from causalarms.changes.evidence import ChangeEvidence
from causalarms.errors import SettingError
from causalarms.policies.base import LeftOut
from causalarms.policies.posterior import PosteriorPolicy
from causalarms.policies.posterior.rounds import (
    CLEARED_ROUNDS,
    EARLY_ROUNDS,
    OutlierFilter,
    Round,
)
from causalarms.rng import stream

N_NODES = 4
SEM = random_sem(N_NODES, seed=5)
NATURAL = np.zeros(N_NODES, dtype=np.uint8)
TWO = np.full(N_NODES, 2)
NO_SCORES = np.full(N_NODES, np.nan)
NO_PREDICTORS = np.zeros((N_NODES, N_NODES), dtype=bool)


def policy(**settings: Any) -> PosteriorPolicy:
    told = {"noise_scale": "estimate", "typing_errors": "left out"} | settings
    return PosteriorPolicy(N_NODES, SEM.reward, **told)


def play(
    chosen: PosteriorPolicy, rounds: int, errors: dict[int, tuple[int, float]] | None = None
) -> np.ndarray:
    """Errors are (node, value) by round; what was played."""
    played = []
    for t in range(chosen.n_told + 1, rounds + 1):
        a = chosen.ask(stream(0, "policy", t))
        x = SEM.sample(a[None], stream(0, "noise", t))[0]
        if errors and t in errors:
            node, value = errors[t]
            x[node] = value
        chosen.tell(a, x)
        played.append(a)
    return np.array(played)


@pytest.mark.parametrize("round_", [5, 20, 70])
@pytest.mark.parametrize("value", [1e3, -1e15])
@pytest.mark.parametrize("node", [0, SEM.reward])
def test_a_round_with_an_error_teaches_nothing(round_: int, value: float, node: int) -> None:
    chosen = policy()
    play(chosen, 80, {round_: (node, value)})
    assert chosen.left_out == [LeftOut(round_, node, value)]
    assert np.abs(chosen._system.rounds.moments.gram).max() < 1e6
    assert (chosen._system.rounds.moments.counts.sum(axis=0) == 79).all()
    assert chosen.edge_probability.max() > 0.9


def test_without_errors_nothing_changes() -> None:
    wary, plain = policy(), policy(typing_errors="kept")
    assert np.array_equal(play(wary, 100), play(plain, 100))
    assert wary.left_out == []


def test_errors_are_kept_if_asked_for() -> None:
    chosen = policy(typing_errors="kept")
    play(chosen, 20, {15: (0, 1e3)})
    assert chosen.left_out == []
    assert not any(name.startswith("suspects") for name in chosen.state())
    with pytest.raises(SettingError, match="typing_errors must be one of kept, left out"):
        policy(typing_errors="removed")


@pytest.mark.parametrize("cut", [6, 25, 60])
def test_a_restored_policy_goes_on_with_the_same_bits(cut: int) -> None:
    errors = {5: (1, 1e3), 22: (2, -1e4), 50: (0, 500.0), 70: (0, 700.0)}
    whole, first, second = policy(), policy(), policy()
    play(whole, 90, errors)
    play(first, cut, errors)
    second.restore(first.state())
    play(second, 90, errors)
    assert len(whole.left_out) == 4
    for name, value in whole.state().items():
        assert np.array_equal(value, second.state()[name]), name


def test_three_far_values_of_a_node_are_how_things_are() -> None:
    rng, suspects = np.random.default_rng(0), OutlierFilter(TWO, len(TWO))
    learned: set[int] = set()
    for t in range(1, EARLY_ROUNDS + 1):
        x = rng.standard_normal(N_NODES)
        if t in (10, 14, 18):
            x[2] += 1e3
        anew = suspects.early(Round(t, NATURAL, x))
        if anew is not None:
            learned = {told.number for told in anew}
        elif t not in [out.round for out in suspects.left_out]:
            learned.add(t)
        left = [out.round for out in suspects.left_out]
        assert left == [late for late in (10, 14) if late <= t < 18]
        assert learned == set(range(1, t + 1)) - set(left)


def test_a_change_is_taken_back_and_left_alone() -> None:
    rng, suspects = np.random.default_rng(0), OutlierFilter(TWO, len(TWO))
    for t in range(1, EARLY_ROUNDS + 1):
        suspects.early(Round(t, NATURAL, rng.standard_normal(N_NODES)))
    surprised = np.array([np.nan, 9.0, 0.0, 0.0])
    learned = []
    for t in range(EARLY_ROUNDS + 1, EARLY_ROUNDS + CLEARED_ROUNDS + 10):
        told = Round(t, NATURAL, rng.standard_normal(N_NODES))
        learned.append([r.number for r in suspects.later(told, surprised, NO_PREDICTORS)])
    third = EARLY_ROUNDS + 3
    assert learned[:4] == [[], [], [third - 2, third - 1, third], [third + 1]]
    assert learned[CLEARED_ROUNDS + 2 :][:2] == [[third + CLEARED_ROUNDS], []]


def test_company_must_come_soon() -> None:
    rng, suspects = np.random.default_rng(0), OutlierFilter(TWO, len(TWO))
    for t in range(1, EARLY_ROUNDS + 1):
        suspects.early(Round(t, NATURAL, rng.standard_normal(N_NODES)))
    for t in range(EARLY_ROUNDS + 1, EARLY_ROUNDS + 200):
        scores = NO_SCORES.copy()
        if t % 25 == 0:
            scores[1] = -9.0
        suspects.later(Round(t, NATURAL, rng.standard_normal(N_NODES)), scores, NO_PREDICTORS)
    assert [out.node for out in suspects.left_out] == [1] * 8


def test_the_cause_is_blamed_not_what_it_does() -> None:
    rng, suspects = np.random.default_rng(0), OutlierFilter(TWO, len(TWO))
    for t in range(1, EARLY_ROUNDS + 1):
        suspects.early(Round(t, NATURAL, rng.standard_normal(N_NODES)))
    predictors = NO_PREDICTORS.copy()
    predictors[3, 1] = True
    x = np.array([0.0, 100.0, 0.0, 1e4])
    assert suspects.later(Round(EARLY_ROUNDS + 1, NATURAL, x), NO_SCORES, predictors) == []
    assert suspects.left_out == [LeftOut(EARLY_ROUNDS + 1, 1, 100.0)]


def test_a_node_that_never_varied_may_do_anything() -> None:
    suspects = OutlierFilter(TWO, len(TWO))
    for t in range(1, EARLY_ROUNDS + 1):
        assert suspects.early(Round(t, NATURAL, np.full(N_NODES, 5.0))) is None
    told = Round(EARLY_ROUNDS + 1, NATURAL, np.array([5.0, 6.0, 5.0, 5.0]))
    assert suspects.later(told, NO_SCORES, NO_PREDICTORS) == [told]


def test_a_detected_change_takes_its_rounds_back() -> None:
    chosen = policy(detector=ChangeEvidence(N_NODES, noise="any"))
    play(chosen, 60, {50: (0, 1e3), 58: (2, 1e3)})
    assert [out.round for out in chosen.left_out] == [50, 58]
    last = chosen._system.rounds.outliers._regimes[0, 0]  # type: ignore[union-attr]
    before = chosen._system.rounds.moments.counts.sum()
    chosen._system.forget(Alarm(60, int(last), 0, 49, 1.0, 1.0), 60, 60)
    assert [out.round for out in chosen.left_out] == [58]
    samples = chosen._system.rounds.recent.samples(int(last), 0, after=49)
    assert samples[0, 0] == 1e3
    assert 1e3 not in samples[:, 2]
    assert chosen._system.rounds.moments.counts.sum() < before + N_NODES
