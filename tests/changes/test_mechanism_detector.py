"""What an alarm says, what is forgotten, and how much is kept."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from causalarms.changes import Alarm, MechanismGLR, NoChange, View
from causalarms.errors import ModelError

N_NODES = 3
MEAN, STD = np.zeros((2, N_NODES)), np.ones((2, N_NODES))


def play(detector: MechanismGLR, n_rounds: int, *, change_after: int, seed: int = 0) -> list[Alarm]:
    """Random regimes; after a round the intervened mechanism of node 1 is another."""
    rng = np.random.default_rng(seed)
    found = []
    for t in range(1, n_rounds + 1):
        regimes = rng.integers(0, 2, N_NODES).astype(np.uint8)
        y = rng.normal(size=N_NODES)
        if t > change_after and regimes[1] == 1:
            y[1] = 3 + 2 * y[1]
        found += detector.observe(t, regimes, y, MEAN, STD)
    return found


@pytest.mark.parametrize("zeta", [0.1, 0.01, 1e-6])
def test_the_papers_threshold_is_minus_ln_zeta(zeta: float) -> None:
    detector = MechanismGLR.paper(2, zeta=zeta)
    assert detector.threshold == pytest.approx(-np.log(zeta))
    assert detector.threshold == pytest.approx(stats.chi2.ppf(1 - zeta, 2) / 2)
    assert detector.per_sample == 0


def test_the_authors_variant_is_a_fixed_window_of_20_at_2_nats_per_sample_after_200() -> None:
    detector = MechanismGLR.authors(N_NODES)
    assert (detector.min_window, detector.window) == (20, 20)
    assert (detector.threshold, detector.per_sample, detector.start_after) == (0.0, 2.0, 200)
    assert play(MechanismGLR.authors(N_NODES), 200, change_after=50) == []
    alarm = play(MechanismGLR.authors(N_NODES), 260, change_after=50)[0]
    assert (alarm.round > 200, alarm.regime, alarm.node) == (True, 1, 1)
    assert alarm.threshold == 40.0


def test_an_alarm_names_mechanism_round_and_change_point() -> None:
    detector = MechanismGLR(N_NODES, threshold=15.0)
    alarms = play(detector, 120, change_after=80)
    first = alarms[0]
    assert 80 < first.round <= 110
    assert {(alarm.regime, alarm.node) for alarm in alarms} == {(1, 1)}
    assert abs(first.change_point - 80) <= 8  # in rounds; about every second one is a sample
    assert first.statistic >= first.threshold == 15.0


def test_the_estimated_change_point_is_close_on_average() -> None:
    """In rounds. An alarm before `min_window` changed samples has to point before the change."""
    errors = []
    for seed in range(30):
        detector = MechanismGLR(N_NODES, threshold=15.0)
        errors.append(play(detector, 120, change_after=80, seed=seed)[0].change_point - 80)
    assert abs(np.median(errors)) <= 4
    assert np.mean(np.abs(errors)) <= 5


def test_memory_and_work_are_bounded_by_the_window() -> None:
    short, long = MechanismGLR(N_NODES, threshold=1e9), MechanismGLR(N_NODES, threshold=1e9)
    play(short, 50, change_after=10**9)
    play(long, 5000, change_after=10**9)
    sizes = [{k: v.shape for k, v in d.state().items()} for d in (short, long)]
    assert sizes[0] == sizes[1]
    assert sizes[0]["residuals"] == (2, N_NODES, 60)


def test_only_the_last_window_matters() -> None:
    rng = np.random.default_rng(4)
    regimes, mean, std = np.zeros(1, np.uint8), np.zeros((2, 1)), np.ones((2, 1))
    old, young = (MechanismGLR(1, threshold=-1.0, max_window=10) for _ in range(2))
    for t in range(1, 30):
        old.observe(t, regimes, rng.normal(5, 3, 1), mean, std)
    for t in range(30, 45):
        y = rng.normal(size=1)
        seen = [d.observe(t, regimes, y, mean, std) for d in (old, young)]
    assert seen[0] == seen[1]


def test_forgetting_one_mechanism_leaves_the_others() -> None:
    detector = MechanismGLR(N_NODES, threshold=1e9)
    play(detector, 100, change_after=10**9)
    before = detector.state()["counts"]
    detector.forget(1, 2)
    after = detector.state()["counts"]
    assert after[1, 2] == 0
    before[1, 2] = 0
    np.testing.assert_array_equal(after, before)


@pytest.mark.parametrize("n_kept", [3, 60, 150], ids=["few", "window", "more than a window"])
def test_rebuilding_is_having_observed_the_values(n_kept: int) -> None:
    rng = np.random.default_rng(0)
    y, rounds = rng.normal(size=n_kept), np.arange(7, 7 + 2 * n_kept, 2)
    regimes, mean, std = np.zeros(1, np.uint8), np.zeros((2, 1)), np.ones((2, 1))
    told, rebuilt = (MechanismGLR(1, threshold=-1.0) for _ in range(2))
    for number, value in zip(rounds, y, strict=True):
        told.observe(int(number), regimes, np.array([value]), mean, std)
    rebuilt.rebuild(0, 0, np.arange(5), rng.normal(size=5))  # replaced by the next line
    rebuilt.rebuild(0, 0, rounds, y)
    for t in range(1000, 1100):
        value = rng.normal(size=1)
        mine, theirs = (d.observe(t, regimes, value, mean, std) for d in (told, rebuilt))
        assert mine == theirs


def test_a_restored_detector_goes_on_as_the_old_one() -> None:
    old, new = (MechanismGLR(N_NODES, threshold=3.0) for _ in range(2))
    play(old, 90, change_after=10**9)
    new.restore(old.state())
    old.state()["residuals"][:] = 0  # a state is a copy
    assert play(old, 90, change_after=20, seed=5) == play(new, 90, change_after=20, seed=5) != []


def test_no_change_never_alarms_and_keeps_nothing() -> None:
    detector = NoChange()
    view = View(np.full(N_NODES, 2))
    for t in range(1, 100):
        assert detector.watch(t, np.zeros(N_NODES, dtype=np.uint8), np.full(N_NODES, t), view) == []
    detector.model_changed(view)
    detector.forget(0, 0)
    assert not detector.watches
    detector.restore(detector.state())
    assert (detector.state(), detector.window) == ({}, 0)


@pytest.mark.parametrize("windows", [(1, 20), (10, 9), (0, 0)])
def test_windows_that_make_no_sense_are_refused(windows: tuple[int, int]) -> None:
    with pytest.raises(ModelError, match=r"2 <= min_window <= max_window"):
        MechanismGLR(2, threshold=1.0, min_window=windows[0], max_window=windows[1])


@pytest.mark.parametrize("zeta", [0.0, 1.0, -1.0])
def test_zeta_is_a_probability(zeta: float) -> None:
    with pytest.raises(ModelError, match="zeta must lie between 0 and 1"):
        MechanismGLR.paper(2, zeta=zeta)
