"""What a policy shows to detectors that look at predictions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from causalarms.changes.predictive import PredictiveView
from causalarms.policies.posterior.system import LearnedSystem, PosteriorConfig
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


def judged(edges: dict[tuple[int, int], float], order: list[int], regimes: list[int]) -> Any:
    """A system whose posterior believes in these edges (from, to) and this order."""
    n = len(order)
    system = LearnedSystem(PosteriorConfig(), np.array(regimes), tuple(f"x{i}" for i in range(n)))
    edge = np.zeros((1, n, n))
    for pair, probability in edges.items():
        edge[(0, *pair)] = probability
    best = SimpleNamespace(order=np.array(order))
    believed: Any = SimpleNamespace(edge_probability=edge, most_probable=lambda: best)
    system.posterior = believed
    system.judge_predictors()
    return system


OPEN = {(0, 1): 0.5, (1, 0): 0.5, (1, 2): 1.0}


def test_nodes_with_an_open_direction_do_not_predict_each_other() -> None:
    system = judged(OPEN, [0, 1, 2], [1, 1, 1])
    assert not system.predictors[0, 1]
    assert not system.predictors[1, 0]
    assert system.predictors[2, :2].all()
    assert system.tested.all()  # what the other says is noise of one distribution


@pytest.mark.parametrize(
    ("regimes", "tested"),
    [
        ([1, 2, 1], [False, True, True]),  # the mechanism of x1 is part of the noise of x0
        ([2, 2, 1], [False, False, True]),
        ([2, 1, 1], [True, False, True]),  # x0 is judged by the rounds of each regime alone
        ([1, 1, 2], [True, True, True]),
    ],
)
def test_noise_of_several_regimes_is_not_tested(regimes: list[int], tested: list[bool]) -> None:
    assert judged(OPEN, [0, 1, 2], regimes).tested.tolist() == tested


def test_causes_of_what_is_left_out_count_unless_they_predict() -> None:
    # x2 causes x1, which may cause x0: behind x0 stands x2, unless it predicts x0
    edges = {(0, 1): 0.5, (1, 0): 0.5, (2, 1): 1.0}
    assert judged(edges, [2, 1, 0], [1, 1, 2]).tested.tolist() == [True, True, True]
    assert judged(edges, [1, 0, 2], [1, 1, 2]).tested.tolist() == [False, False, True]
