"""False alarms at a stated rate, from scores that are standard normal while nothing changes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from causalarms.changes.detector import Alarm, Prediction
from causalarms.changes.evidence import HEAD_START, ChangeEvidence
from causalarms.changes.predictive import normal_score, predictive_scores
from causalarms.errors import ModelError
from causalarms.statistics.dataset import Moments

N_NODES = 3
PREDICTORS = np.tri(N_NODES, k=-1, dtype=bool)


def scores_of(values: np.ndarray, *, first: int, noise_mean: float = np.nan) -> np.ndarray:
    """Predictive scores of rounds in which every node is natural, from round `first` on."""
    moments = Moments(N_NODES)
    regimes = np.zeros(N_NODES, dtype=np.uint8)
    found = []
    for t, x in enumerate(values):
        if t >= first:
            scores, _ = predictive_scores(
                moments.gram,
                PREDICTORS,
                np.ones(N_NODES, dtype=bool),
                regimes,
                x,
                np.full((2, N_NODES), noise_mean),
                np.full((2, N_NODES), np.nan),
            )
            found.append(scores)
        moments.add(x, regimes)
    return np.array(found)


def chain(
    n_rows: int, rng: np.random.Generator, *, weight: float = 1.5, adaptive: bool = False
) -> np.ndarray:
    """x0 -> x1, x0 -> x2, x1 -> x2; where adaptive, the spread of x0 follows the round before."""
    values = np.empty((n_rows, N_NODES))
    for t in range(n_rows):
        spread = 1.0 if t == 0 else min(1.0 + abs(values[t - 1, 1]), 5.0)
        x0 = 2.0 + (spread if adaptive else 1.0) * rng.standard_normal()
        x1 = weight * x0 + 3.0 * rng.standard_normal()
        values[t] = x0, x1, x0 - 0.7 * x1 + rng.standard_normal()
    return values


@pytest.mark.parametrize("degrees", [4.0, 10.0, 100.0])
def test_normal_scores_of_student_values(degrees: float) -> None:
    for value in (-12.0, -3.0, 0.1, 1.0, 4.0, 9.0):
        exact = np.sign(value) * -stats.norm.ppf(stats.t.sf(abs(value), degrees))
        assert normal_score(value, degrees) == pytest.approx(exact, rel=0.02, abs=0.01)


def test_scores_are_standard_normal_and_independent_with_estimated_parameters() -> None:
    rng = np.random.default_rng(0)
    runs = [scores_of(chain(40, rng, adaptive=True), first=8) for _ in range(60)]
    scores = np.concatenate(runs)
    for node in (1, 2):  # x0 itself is not normal: its spread changes
        assert stats.kstest(scores[:, node], "norm").pvalue > 1e-3
    lagged = np.corrcoef(np.hstack([scores[:-1], scores[1:]]).T)
    off = np.delete(np.delete(lagged, [0, N_NODES], 0), [0, N_NODES], 1)[np.triu_indices(4, 1)]
    assert np.abs(off).max() < 4 / np.sqrt(len(scores))


def test_a_changed_weight_shows_in_its_own_mechanism_only() -> None:
    rng = np.random.default_rng(1)
    values = np.vstack([chain(100, rng), chain(20, rng, weight=-1.0)])
    squares = (scores_of(values, first=100) ** 2).mean(axis=0)
    assert squares[1] > 2.0
    assert squares[0] < 2.0
    assert squares[2] < 2.0


def test_errors_of_the_weights_widen_a_prediction_as_in_least_squares() -> None:
    rng = np.random.default_rng(6)
    values, new = rng.standard_normal((20, N_NODES)), np.array([0.3, -2.0, 5.0])
    moments, regimes = Moments(N_NODES), np.zeros(N_NODES, dtype=np.uint8)
    for x in values:
        moments.add(x, regimes)
    unknown, tested = np.full((2, N_NODES), np.nan), np.array([False, True, True])
    of_estimate = predictive_scores(
        moments.gram, PREDICTORS, tested, regimes, new, unknown, unknown
    )
    of_known = predictive_scores(
        moments.gram, PREDICTORS, tested, regimes, new, unknown, np.full((2, N_NODES), 4.0)
    )
    for node in (1, 2):
        design = np.column_stack([values[:, :node], np.ones(20)])
        z = np.append(new[:node], 1.0)
        leverage = z @ np.linalg.inv(design.T @ design) @ z
        _, squares, *_ = np.linalg.lstsq(design, values[:, node], rcond=None)
        std = np.sqrt(squares[0] / (20 - node - 1) * (1.0 + leverage))
        assert of_estimate[1][node] == pytest.approx(std, rel=1e-6)
        assert of_known[1][node] == pytest.approx(2.0 * np.sqrt(1.0 + leverage), rel=1e-6)


def test_false_alarms_are_at_most_those_asked_for() -> None:
    """400 asked for, which is the guarantee: sums overshoot, so there are fewer, but not none."""
    rng = np.random.default_rng(3)
    detector = ChangeEvidence(N_NODES, false_alarms_per_1000_rounds=100.0)
    found = 0
    for t in range(1, 4001):
        values = rng.standard_normal(N_NODES)
        regimes = np.array([t % 2, 0, 0], dtype=np.uint8)
        for alarm in detector.observe(t, regimes, predicted(rng.standard_normal(N_NODES)), values):
            found += 1
            detector.forget(alarm.regime, alarm.node)
    assert 40 < found <= 400 + 3 * 20


def test_after_an_alarm_others_have_a_head_start_that_the_level_pays() -> None:
    detector = ChangeEvidence(N_NODES, n_regimes=4, false_alarms_per_1000_rounds=0.5)
    asked = 1000.0 * N_NODES / 0.5
    assert detector.level == pytest.approx(asked + 4 * N_NODES * detector.head_start)
    assert 4 * N_NODES * detector.head_start == pytest.approx(HEAD_START * asked)
    (alarm,) = observe(detector, 1, np.array([0.0, 50.0, 0.0]))
    detector.forget(alarm.regime, alarm.node)
    sums = detector.state()["sums"]
    assert (sums[1, 1] == 0).all()
    sums[1, 1] = detector.head_start
    assert (sums == detector.head_start).all()
    # this much evidence is now enough, which it is not at other times
    scores = np.array([0.0, 0.0, 4.5])
    assert [a.node for a in observe(detector, 2, scores)] == [2]
    assert observe(ChangeEvidence(N_NODES, false_alarms_per_1000_rounds=0.5), 2, scores) == []


def predicted(scores: np.ndarray) -> Prediction:
    return Prediction(scores, np.ones(N_NODES), PREDICTORS)


def observe(detector: ChangeEvidence, t: int, scores: np.ndarray) -> list[Alarm]:
    regimes = np.array([0, 1, 0], dtype=np.uint8)
    return detector.observe(t, regimes, predicted(scores), np.ones(N_NODES))


def test_an_alarm_names_mechanism_and_change_point() -> None:
    rng = np.random.default_rng(2)
    detector = ChangeEvidence(N_NODES)
    alarms = []
    for t in range(1, 320):
        scores = rng.standard_normal(N_NODES)
        if t > 300:
            scores[1] *= 8.0
        alarms += observe(detector, t, scores)
        if alarms:
            break
    (alarm,) = alarms
    assert (alarm.regime, alarm.node) == (1, 1)
    assert 300 < alarm.round <= 310
    assert abs(alarm.change_point - 300) <= 3
    assert alarm.statistic >= alarm.threshold
    detector.forget(1, 1)
    assert observe(detector, 330, np.zeros(N_NODES)) == []


def test_a_slightly_changed_weight_is_found_through_its_predictor() -> None:
    rng = np.random.default_rng(4)
    detector = ChangeEvidence(N_NODES)
    regimes = np.zeros(N_NODES, dtype=np.uint8)
    for t in range(1, 2000):
        values = rng.standard_normal(N_NODES)
        scores = rng.standard_normal(N_NODES)
        scores[2] += 0.4 * values[0]  # raises the spread of the scores by 8 %
        alarms = detector.observe(t, regimes, predicted(scores), values)
        if alarms:
            break
    assert [(a.regime, a.node) for a in alarms] == [(0, 2)]
    assert t < 400


def test_untested_nodes_add_nothing_and_states_continue() -> None:
    rng = np.random.default_rng(5)
    one, other = ChangeEvidence(N_NODES), ChangeEvidence(N_NODES)
    for t in range(1, 50):
        observe(one, t, rng.standard_normal(N_NODES))
    other.restore(one.state())
    before = one.state()
    observe(one, 50, np.full(N_NODES, np.nan))
    assert all(np.array_equal(before[name], value) for name, value in one.state().items())
    scores = rng.standard_normal(N_NODES) * 20
    assert observe(one, 51, scores) == observe(other, 51, scores)


@pytest.mark.parametrize("rate", [0.0, -1.0, 1e6, float("nan")])
def test_rates_that_cannot_be_kept(rate: float) -> None:
    with pytest.raises(ModelError, match="false_alarms_per_1000_rounds"):
        ChangeEvidence(N_NODES, false_alarms_per_1000_rounds=rate)
