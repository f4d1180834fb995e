"""What a policy shows to detectors that look at predictions."""

from __future__ import annotations

import numpy as np
import pytest

from causalarms.changes.predictive import PredictiveView
from causalarms.statistics.dataset import Moments
from causalarms.statistics.units import Units


def test_predictions_say_how_well_they_are_known() -> None:
    """Errors of the weights and degrees of freedom as by least squares, in any units."""
    rng = np.random.default_rng(0)
    values, new = rng.normal(size=(12, 2)) * [1.0, 50.0], np.array([3.0, 10.0])
    moments, regimes = Moments(2), np.zeros(2, dtype=np.uint8)
    for x in values:
        moments.add(x, regimes)
    unknown, scale = np.full((2, 2), np.nan), np.array([2.0, 40.0])
    view = PredictiveView(
        Units(np.zeros(2), scale),
        np.zeros(2),
        moments,
        np.array([[False, False], [True, False]]),
        np.ones(2, dtype=bool),
        unknown,
        unknown,
    )
    found = view.prediction(regimes, new)
    design, z = np.column_stack([values[:, 0], np.ones(12)]), np.array([3.0, 1.0])
    leverage = z @ np.linalg.inv(design.T @ design) @ z
    fit, squares, *_ = np.linalg.lstsq(design, values[:, 1], rcond=None)
    std = np.sqrt(squares[0] / 10 * (1 + leverage)) / scale[1]
    assert found.stds[1] == pytest.approx(std, rel=1e-5)
    assert np.sign(found.scores[1]) == np.sign(new[1] - z @ fit)
