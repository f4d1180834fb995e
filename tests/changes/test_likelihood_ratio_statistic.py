"""The statistic of the mechanism detector against eq. psi, split point by split point."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from causalarms.changes import Alarm, MechanismGLR
from causalarms.changes.glr import gaussian_gain

NU, SIGMA = 1.5, 0.7


def psi(y: np.ndarray, s: int) -> float:
    """Eq. psi: all three sums of log likelihoods, the supremum at the sample moments."""
    after = y[s:]
    known = stats.norm(NU, SIGMA)
    fitted = stats.norm(after.mean(), after.std())
    return float(known.logpdf(y[:s]).sum() + fitted.logpdf(after).sum() - known.logpdf(y).sum())


def observe(detector: MechanismGLR, y: np.ndarray) -> list[list[Alarm]]:
    """Tell one node's whitened values; alarms by round."""
    mean, std = np.full((2, 1), NU), np.full((2, 1), SIGMA)
    regimes = np.zeros(1, dtype=np.uint8)
    return [
        detector.observe(1 + t, regimes, np.array([value]), mean, std) for t, value in enumerate(y)
    ]


def shifted(seed: int, n_before: int, n_after: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.append(rng.normal(NU, SIGMA, n_before), rng.normal(NU + 2, 2 * SIGMA, n_after))


@pytest.mark.parametrize("windows", [(2, 40), (5, 12), (7, 7)])
def test_every_round_has_the_largest_psi_over_the_split_points(windows: tuple[int, int]) -> None:
    least, most = windows
    y = shifted(3, 20, 20)
    alarms = observe(MechanismGLR(1, threshold=-1.0, min_window=least, max_window=most), y)
    for t in range(1, len(y) + 1):
        splits = [s for s in range(t) if least <= t - s <= most]
        if not splits:
            assert alarms[t - 1] == []
            continue
        values = [psi(y[:t], s) for s in splits]
        (alarm,) = alarms[t - 1]
        assert alarm.statistic == pytest.approx(max(values), rel=1e-9, abs=1e-9)
        assert alarm.change_point == splits[int(np.argmax(values))]


def test_the_last_line_of_the_derivation_is_the_first() -> None:
    """Eq. psi_s_2 against eq. psi."""
    y = shifted(0, 0, 30)
    deviations = y - NU
    gain = gaussian_gain(30, deviations.sum(), (deviations**2).sum(), SIGMA**2)
    assert gain == pytest.approx(psi(y, 0))
    assert gain > 0


def test_the_gain_is_never_negative_and_zero_for_a_perfect_fit() -> None:
    rng = np.random.default_rng(1)
    for n in (2, 5, 50):
        deviations = rng.normal(0, SIGMA, n)
        deviations *= SIGMA / deviations.std()
        deviations -= deviations.mean()
        assert gaussian_gain(n, 0.0, (deviations**2).sum(), SIGMA**2) == pytest.approx(0, abs=1e-9)
        other = rng.normal(0, 1, n)
        assert gaussian_gain(n, other.sum(), (other**2).sum(), SIGMA**2) >= -1e-9


def test_a_sample_variance_of_zero_has_no_likelihood() -> None:
    assert gaussian_gain(3, 0.0, 0.0, 1.0) == -np.inf
    assert gaussian_gain(3, 1.0, 2.0, 0.0) == -np.inf
    assert gaussian_gain(3, 1.0, 2.0, float("nan")) == -np.inf


def test_alarms_are_the_rounds_whose_maximum_reaches_the_threshold() -> None:
    y = shifted(5, 40, 10)
    threshold = 10.0
    alarms = observe(MechanismGLR(1, threshold=threshold, min_window=5, max_window=30), y)
    for t in range(1, len(y) + 1):
        values = [psi(y[:t], s) for s in range(t) if 5 <= t - s <= 30]
        assert bool(alarms[t - 1]) == (max(values, default=-np.inf) >= threshold)
    assert not any(alarms[:40])
    assert any(alarms[40:])


def test_per_sample_thresholds_compare_nats_per_sample() -> None:
    y = shifted(5, 40, 20)
    detector = MechanismGLR(1, threshold=0.0, per_sample=0.5, min_window=10, max_window=10)
    alarms = observe(detector, y)
    for t in range(10, len(y) + 1):
        assert bool(alarms[t - 1]) == (psi(y[:t], t - 10) >= 5.0)
    (alarm,) = next(found for found in alarms if found)
    assert alarm.threshold == pytest.approx(5.0)
    assert alarm.statistic >= 5.0
