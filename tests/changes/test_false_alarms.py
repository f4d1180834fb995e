"""The paper's threshold keeps its promise for one split point and one test, and not beyond.

The rates over zeta, window and time are measured by benchmarks/paper_bounds.py glr.
"""

from __future__ import annotations

import numpy as np

from causalarms.changes import MechanismGLR
from causalarms.rng import stream

N_RUNS, N_ROUNDS = 4000, 100
MEAN, STD = np.zeros((2, N_RUNS)), np.ones((2, N_RUNS))


def alarm_rates(zeta: float, min_window: int, max_window: int) -> tuple[float, float]:
    """Of the last round alone, and of any round; every node is a run of its own."""
    detector = MechanismGLR.paper(N_RUNS, zeta=zeta, min_window=min_window, max_window=max_window)
    regimes, rng = np.zeros(N_RUNS, dtype=np.uint8), stream(0, "noise")
    any_alarm = np.zeros(N_RUNS, dtype=bool)
    for t in range(1, N_ROUNDS + 1):
        last = [
            alarm.node for alarm in detector.observe(t, regimes, rng.normal(size=N_RUNS), MEAN, STD)
        ]
        any_alarm[last] = True
    return len(last) / N_RUNS, float(any_alarm.mean())


def test_one_split_point_and_one_test_alarm_with_probability_zeta() -> None:
    """Within 4 standard errors and the 4 % that the chi-squared approximation is off at t = 100."""
    for zeta in (0.1, 0.01):
        single, _ = alarm_rates(zeta, N_ROUNDS - 1, N_ROUNDS - 1)
        tolerance = 4 * np.sqrt(zeta * (1 - zeta) / N_RUNS) + 0.04 * zeta
        assert abs(single - zeta) < tolerance


def test_the_maximum_over_split_points_alarms_far_more_often() -> None:
    single, ever = alarm_rates(0.01, 10, N_ROUNDS - 1)
    assert 0.05 < single < 0.15
    assert ever > 0.5


def test_the_authors_threshold_is_silent_when_nothing_changes() -> None:
    detector = MechanismGLR.authors(N_RUNS)
    regimes, rng = np.zeros(N_RUNS, dtype=np.uint8), stream(1, "noise")
    for t in range(190, 240):
        assert detector.observe(t, regimes, rng.normal(size=N_RUNS), MEAN, STD) == []
