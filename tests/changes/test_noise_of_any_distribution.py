"""Ranks among earlier scores: the promised rate of false alarms holds for any law of the noise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from causalarms.changes.detector import Prediction
from causalarms.changes.evidence import (
    ALTERNATIVES,
    YOUNGEST_ROUNDS,
    ChangeEvidence,
    PastScores,
    log_ratio,
)
from causalarms.errors import SettingError

N_NODES = 3
NATURAL = np.zeros(N_NODES, dtype=np.uint8)
PREDICTORS = np.tri(N_NODES, k=-1, dtype=bool)
NAN = np.nan


def predicted(scores: np.ndarray) -> Prediction:
    n = len(scores)
    return Prediction.by_known_weights(scores, np.ones(n), PREDICTORS[:n, :n])


def filled(rows: list[list[float]]) -> PastScores:
    past = PastScores(N_NODES)
    for t, row in enumerate(rows, start=1):
        past.add(t, NATURAL, np.array(row))
    return past


def test_a_score_lies_between_the_quantiles_of_its_rank() -> None:
    past = filled([[1.0, 2.0, NAN]])
    low, high = past.cells(1 + YOUNGEST_ROUNDS, NATURAL, predicted(np.array([0.0, 1.5, NAN])))
    assert low[0] == -np.inf
    third = 0.43072729929545744
    assert high[0] == pytest.approx(-third)
    assert (low[1], high[1]) == (pytest.approx(-third, abs=0.01), pytest.approx(third, abs=0.01))
    assert np.isnan(low[2])
    assert np.isnan(high[2])


def test_the_youngest_rounds_are_not_compared_with() -> None:
    past = filled([[1.0, 2.0, 3.0]])
    low, high = past.cells(YOUNGEST_ROUNDS, NATURAL, predicted(np.zeros(N_NODES)))
    assert (low == -np.inf).all()
    assert (high == np.inf).all()


def test_scores_since_a_change_are_dropped_of_that_mechanism_only() -> None:
    past = filled([[1.0, 1.0, 1.0]] * 4)
    past.forget(0, 1, since=3)
    past.forget(1, 2, since=1)  # never played
    kept = past.state()["scores"][1:5]
    assert np.isnan(kept).tolist() == [[False] * 3, [False] * 3] + [[False, True, False]] * 2


def test_only_so_many_scores_are_kept() -> None:
    past = PastScores(N_NODES)
    for t in range(1, 6001):
        past.add(t, NATURAL, np.full(N_NODES, float(t)))
    scores = past.state()["scores"]
    assert scores.size < 6100
    assert scores.min() > 3900


@pytest.mark.parametrize("m", [1, 10, 5000])
def test_ratios_average_to_one_over_the_ranks(m: int) -> None:
    """What makes the sums martingales, exactly, however few scores there are."""
    past = PastScores(1)
    past._scores[:m, 0], past._rounds[:m] = np.arange(m), 1
    scores: np.ndarray = np.arange(m + 1, dtype=np.float64) - 0.5
    rows = [predicted(scores[r : r + 1]) for r in range(m + 1)]
    low, high = np.hstack([past.cells(1 + YOUNGEST_ROUNDS, NATURAL[:1], row) for row in rows])
    for mean, spread in [*ALTERNATIVES, (-5.0, 1.0)]:
        ratios = [np.exp(log_ratio(a, b, mean, spread)) for a, b in zip(low, high, strict=True)]
        assert np.mean(ratios) == pytest.approx(1.0, abs=1e-6)


LAWS: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    "Gaussian": lambda rng: rng.standard_normal(N_NODES),
    "uniform": lambda rng: rng.uniform(-1, 1, N_NODES),
    "exponential": lambda rng: rng.exponential(1, N_NODES) - 1,
    "Student t, 2 degrees": lambda rng: rng.standard_t(2, N_NODES),
}


def n_alarms(noise: str, law: str, rounds: int) -> int:
    rng = np.random.default_rng(0)
    detector = ChangeEvidence(N_NODES, false_alarms_per_1000_rounds=20.0, noise=noise)
    found = 0
    for t in range(1, rounds + 1):
        values = rng.standard_normal(N_NODES)
        for alarm in detector.observe(t, NATURAL, predicted(LAWS[law](rng)), values):
            found += 1
            detector.forget(alarm.regime, alarm.node)
    return found


@pytest.mark.parametrize("law", LAWS)
def test_false_alarms_come_at_the_stated_rate(law: str) -> None:
    """20 per 1000 asked for; the overshoot is known within a third, counts within 4 errors."""
    assert 40 / 1.5 - 4 * 40**0.5 < n_alarms("any", law, 2000) < 40 * 1.5 + 4 * 40**0.5
    if law.startswith("Student"):
        assert n_alarms("gaussian", law, 2000) > 400


def test_no_single_round_raises_an_alarm_and_a_change_is_found() -> None:
    rng = np.random.default_rng(1)
    detector = ChangeEvidence(N_NODES, noise="any")
    alarms = []
    for t in range(1, 1011):
        scores = rng.standard_t(3, N_NODES)
        if t == 900:
            scores[1] = 1e6
        if t > 1000:
            scores[2] += 30.0
        alarms += detector.observe(t, NATURAL, predicted(scores), scores)
        if alarms:
            break
    assert [(a.node, a.change_point) for a in alarms] == [(2, 1000)]
    assert alarms[0].round <= 1003


def test_a_restored_detector_goes_on_with_the_same_bits() -> None:
    rng = np.random.default_rng(2)
    one, other = (ChangeEvidence(N_NODES, noise="any") for _ in range(2))
    rounds = rng.standard_t(3, (200, N_NODES))
    for t, scores in enumerate(rounds, start=1):
        if t == 101:
            other.restore(one.state())
        for detector in (one, other) if t > 100 else (one,):
            detector.observe(t, NATURAL, predicted(scores), scores)
    for name, value in one.state().items():
        assert np.array_equal(value, other.state()[name], equal_nan=True)


def test_no_other_noise() -> None:
    with pytest.raises(SettingError, match="noise must be one of gaussian, any, not 'cauchy'"):
        ChangeEvidence(N_NODES, noise="cauchy")


def test_ratios_that_are_always_above_one_are_no_change() -> None:
    """Residuals that depend on a predictor from the first round on; then they depend more."""
    rng = np.random.default_rng(3)
    detector = ChangeEvidence(N_NODES, noise="any", false_alarms_per_1000_rounds=1.0)
    alarms = []
    for t in range(1, 4001):
        scores, values = rng.standard_normal(N_NODES), rng.standard_normal(N_NODES)
        scores[2] += (0.16 if t <= 3000 else 1.0) * values[0]
        found = detector.observe(t, NATURAL, predicted(scores), values)
        alarms += [a for a in found if a.node == 2]
        if alarms:
            break
    assert 3000 < alarms[0].round < 3100


def cell_ends(past: PastScores, scores: np.ndarray, **more: Any) -> tuple[float, float]:
    """Probabilities between which the first score lies."""
    low, high = past.cells(10**6, NATURAL, predicted(scores)._replace(**more))
    return float(stats.norm.cdf(low[0])), float(stats.norm.cdf(high[0]))


def pool(scores: np.ndarray) -> PastScores:
    """Of nodes 1 and 2, so that node 0 has none of its own."""
    return filled([[NAN, a, b] for a, b in scores.reshape(-1, 2)])


@pytest.mark.parametrize(
    ("leverage", "degrees", "power"),
    [(0.3, np.inf, 1), (5.0, np.inf, 1), (0.3, 8.0, 1), (0.1, 8.0, 3)],  # kurtosis far above 9
)
def test_a_score_is_compared_with_scores_of_errors_like_its_own(
    leverage: float, degrees: float, power: int
) -> None:
    """Monte Carlo: the share of earlier scores, with such errors, below it; 4 standard errors."""
    rng = np.random.default_rng(8)
    past, n_draws = (rng.exponential(1, 1000) - 1) ** power, 400
    raw = (past**4).mean() / (past**2).mean() ** 2 - 3  # about zero, not the mean
    excess = min(max(raw, 0.0), 6.0)
    scale = 1 + rng.standard_normal((n_draws, 1000)) * np.sqrt(0.25 * excess / degrees)
    noisy = past * scale + rng.standard_normal((n_draws, 1000)) * np.sqrt(leverage)
    noisy /= np.sqrt(1 + leverage)
    for score in (-1.6, -0.9, 0.0, 2.5):
        low, high = cell_ends(
            pool(past),
            np.array([score, NAN, NAN]),
            leverages=np.full(N_NODES, leverage),
            degrees=np.full(N_NODES, degrees),
        )
        assert high - low == pytest.approx(1 / 1001)
        share = (noisy < score).mean()
        error = np.sqrt(share * (1 - share) / noisy.size) + 1e-4  # the table ends at 4
        assert low * 1001 / 1000 == pytest.approx(share, abs=4 * error)


def test_gaussian_scores_are_normal_whatever_the_leverage() -> None:
    past = pool(stats.norm.ppf((np.arange(1000) + 0.5) / 1000))
    for leverage in (0.0, 0.1, 1.0, 1e6, np.inf):
        for score in (-2.0, 0.0, 1.0):
            low, high = cell_ends(
                past, np.array([score, NAN, NAN]), leverages=np.full(N_NODES, leverage)
            )
            assert low <= stats.norm.cdf(score) + 1e-3
            assert high >= stats.norm.cdf(score) - 1e-3


@pytest.mark.parametrize("asked", [0, 1])
@pytest.mark.parametrize("was", [0, 1])
def test_600_scores_of_the_mechanism_itself_weigh_as_much_as_the_pool(was: int, asked: int) -> None:
    past = PastScores(N_NODES)
    for t in range(1, 601):
        past.add(t, np.array([was, 0, 0], dtype=np.uint8), np.array([0.0, 1.0, 1.0]))
    regimes = np.array([asked, 0, 0], dtype=np.uint8)
    lows, _ = past.cells(10**6, regimes, predicted(np.array([0.5, NAN, NAN])))
    share = 0.5 + 0.5 / 3 if was == asked else 1 / 3
    assert stats.norm.cdf(lows[0]) == pytest.approx(share * 1800 / 1801)


@pytest.mark.parametrize("extreme", [1e300, -1e300, np.inf, -np.inf])
def test_extreme_scores_are_the_outermost_ones(extreme: float) -> None:
    past = filled([[extreme, 0.0, 1.0], [NAN, -extreme, 0.5]])
    for score in (extreme, -extreme, 1e308):
        low, high = cell_ends(past, np.array([score, NAN, NAN]), degrees=np.full(N_NODES, 4.0))
        assert 0.0 <= low < high <= 1.0
    low, high = cell_ends(filled([[0.0, 0.0, 1.0]]), np.array([extreme, NAN, NAN]))
    assert (low, high) == pytest.approx((0.75, 1.0) if extreme > 0 else (0.0, 0.25))


@pytest.mark.parametrize("law", ["uniform", "exponential"])
def test_a_mechanism_that_is_learned_anew_raises_no_alarm(law: str) -> None:
    """After a thousand scores of noise alone, thirty of noise and errors of the weights."""
    rng = np.random.default_rng(9)
    detector = ChangeEvidence(N_NODES, noise="any")
    unknown = np.full(N_NODES, 0.5)
    for t in range(1, 1001):
        scores = LAWS[law](rng) * (3**0.5 if law == "uniform" else 1.0)
        assert not detector.observe(t, NATURAL, predicted(scores), np.zeros(N_NODES))
    raised = {"said": 0, "not said": 0}
    for t in range(1001, 1031):
        scores = LAWS[law](rng) * (3**0.5 if law == "uniform" else 1.0)
        scores = (scores + rng.standard_normal(N_NODES) * 0.5**0.5) / 1.5**0.5
        for name, leverages in (("said", unknown), ("not said", 0 * unknown)):
            low, high = detector._past.cells(  # type: ignore[union-attr]
                t, NATURAL, predicted(scores)._replace(leverages=leverages)
            )
            raised[name] += sum(
                log_ratio(a, b, 0.0, 3.0) > 2.0 for a, b in zip(low, high, strict=True)
            )
    assert raised["said"] <= 2 < raised["not said"]
