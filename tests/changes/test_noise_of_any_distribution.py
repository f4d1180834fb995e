"""Ranks among earlier scores: the rate of false alarms is kept whatever each mechanism's noise."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from scipy import stats

from causalarms.changes import evidence
from causalarms.changes.detector import Alarm, Prediction
from causalarms.changes.evidence import (
    ALTERNATIVES,
    MAX_REFERENCE,
    RECENT_SCORES,
    Cells,
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
    return Prediction(scores, np.ones(n), PREDICTORS[:n, :n])


def taken_in(past: PastScores, t: int, score: float, since: list[int]) -> Cells:
    """By a system of one node."""
    regimes = np.zeros(1, dtype=np.uint8)
    return past.take_in(t, regimes, np.array([score]), np.array([since], dtype=np.int64))


def of_scores(scores: np.ndarray) -> PastScores:
    past = PastScores(1, 1)
    for t, score in enumerate(scores, start=1):
        taken_in(past, t, score, [t])
    return past


def cells_of_all_ranks(scores: np.ndarray, since: list[int]) -> Iterator[Cells]:
    """Of one more score, in each of the gaps between the earlier ones in turn."""
    edges = np.sort(scores)
    gaps = np.concatenate([[edges[0] - 1], (edges[1:] + edges[:-1]) / 2, [edges[-1] + 1]])
    state = of_scores(scores).state()
    for value in gaps:
        past = PastScores(1, 1)
        past.restore(state)
        yield taken_in(past, len(scores) + 1, value, since)


def test_a_score_lies_between_the_quantiles_of_its_rank() -> None:
    past = of_scores(np.array([2.0, 1.0]))
    cells = taken_in(past, 3, 1.5, [3])
    third = stats.norm.ppf(2 / 3)
    assert (cells.low[0, 0], cells.high[0, 0]) == pytest.approx((-third, third))
    assert cells.chances[0, 0] == pytest.approx(1 / 3)
    cells = taken_in(past, 4, 9.0, [4])
    assert (cells.low[0, 0], cells.high[0, 0]) == (pytest.approx(stats.norm.ppf(3 / 4)), np.inf)
    assert np.isnan(taken_in(past, 5, NAN, [5])).all()


@pytest.mark.parametrize("n", [1, 10, 200])
def test_ratios_average_to_one_over_the_ranks(n: int) -> None:
    """What makes the sums martingales, exactly: every next rank is equally likely."""
    scores = np.random.default_rng(n).standard_normal(n)
    # no change yet, one some rounds ago, and one longer ago than can be supposed
    since = [n + 1, max(n - 4, 1), 1]
    found = list(cells_of_all_ranks(scores, since))
    assert len(found) == n + 1
    for k in range(len(since)):
        own = [Cells(c.low[0], c.high[0], c.chances[0]) for c in found]
        for mean, spread in [*ALTERNATIVES, (-5.0, 1.0)]:
            ratios = [np.exp(log_ratio(cells, k, mean, spread)) for cells in own]
            assert np.mean(ratios) == pytest.approx(1.0, abs=1e-9)


def test_ratios_average_to_one_when_the_reference_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    """Later scores are only counted: a gap of c of them has c + 1 of the ranks."""
    monkeypatch.setattr(evidence, "MAX_REFERENCE", evidence.FIRST_CAPACITY)
    scores = np.random.default_rng(0).standard_normal(3 * evidence.FIRST_CAPACITY)
    n = len(scores)
    for since in ([n + 1], [n - 20]):
        found = list(cells_of_all_ranks(scores, since))
        own = [Cells(c.low[0], c.high[0], c.chances[0]) for c in found]
        assert len({float(c.low[0]) for c in own}) <= evidence.FIRST_CAPACITY + 1
        for mean, spread in ALTERNATIVES:
            ratios = [np.exp(log_ratio(cells, 0, mean, spread)) for cells in own]
            assert np.mean(ratios) == pytest.approx(1.0, abs=1e-9)


def test_scores_of_a_supposed_change_do_not_hide_it() -> None:
    """The fifth extreme score is still beyond everything from before the change."""
    past = of_scores(np.concatenate([np.linspace(-1, 1, 40), [9.0, 8.0, 7.0, 6.0]]))
    cells = taken_in(past, 45, 5.0, [45, 41])
    assert cells.high[0, 0] < stats.norm.ppf(42 / 45)  # read by all: an ordinary score
    assert (cells.low[0, 1], cells.high[0, 1]) == (pytest.approx(stats.norm.ppf(40 / 41)), np.inf)
    assert cells.chances[0].tolist() == pytest.approx([1 / 45, 5 / 45])


def test_memory_is_bounded() -> None:
    past = of_scores(np.random.default_rng(1).standard_normal(MAX_REFERENCE + 500))
    assert sum(held.nbytes for held in past.state().values()) < 30_000
    assert past.state()["later"].sum() == 500
    assert len(of_scores(np.zeros(10)).state()["reference"][0, 0]) == evidence.FIRST_CAPACITY


def test_equal_scores_have_random_ranks() -> None:
    """Rounded measurements: a mechanism that always has one value is not changed by it."""
    past, lows = PastScores(1, 1), []
    for t in range(1, 401):
        lows.append(float(taken_in(past, t, 0.0, [t]).low[0, 0]))
    assert stats.kstest(stats.norm.cdf(lows[100:]), "uniform").pvalue > 1e-3


@pytest.mark.parametrize("extreme", [1e300, -1e300, np.inf, -np.inf])
def test_extreme_scores_are_the_outermost_ones(extreme: float) -> None:
    cells = taken_in(of_scores(np.array([0.0, 0.5, 1.0])), 4, extreme, [4])
    ends = stats.norm.cdf([cells.low[0, 0], cells.high[0, 0]])
    assert tuple(ends) == pytest.approx((0.75, 1.0) if extreme > 0 else (0.0, 0.25))


LAWS: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    "Gaussian": lambda rng: rng.standard_normal(N_NODES),
    "exponential": lambda rng: rng.exponential(1, N_NODES) - 1,
    "two Gaussian and one Cauchy": lambda rng: np.append(
        rng.standard_normal(2), rng.standard_cauchy()
    ),
    "two uniform and one of rare outliers": lambda rng: np.append(
        rng.uniform(-1, 1, 2), rng.standard_normal() * (20.0 if rng.random() < 0.05 else 1.0)
    ),
}


def alarms_of(noise: str, law: str, rounds: int, rate: float) -> list[Alarm]:
    rng = np.random.default_rng(0)
    detector = ChangeEvidence(N_NODES, false_alarms_per_1000_rounds=rate, noise=noise)
    found = []
    for t in range(1, rounds + 1):
        values = rng.standard_normal(N_NODES)
        for alarm in detector.observe(t, NATURAL, predicted(LAWS[law](rng)), values):
            found.append(alarm)
            detector.forget(alarm.regime, alarm.node)
    return found


@pytest.mark.parametrize("law", LAWS)
def test_false_alarms_are_at_most_those_asked_for(law: str) -> None:
    """At most 100 are expected, plus 3 standard errors; but one that never alarms is useless."""
    found = len(alarms_of("any", law, 5000, rate=20.0))
    assert 5 < found <= 100 + 3 * 10
    if "Cauchy" in law:
        assert len(alarms_of("gaussian", law, 5000, rate=20.0)) > 400


def test_monotone_transformations_of_a_mechanism_change_nothing() -> None:
    rng = np.random.default_rng(4)
    transformations: list[Callable[[np.ndarray], np.ndarray]] = [
        np.sinh, np.arctan, lambda x: 3 * x - 7,
    ]  # fmt: skip
    one, other = (
        ChangeEvidence(N_NODES, noise="any", false_alarms_per_1000_rounds=5) for _ in range(2)
    )
    found = 0
    for t in range(1, 301):
        scores, values = rng.standard_normal(N_NODES), rng.standard_normal(N_NODES)
        scores[1] += 3.0 * (t > 200)
        moved = np.array([f(x) for f, x in zip(transformations, scores, strict=True)])
        alarms = one.observe(t, NATURAL, predicted(scores), values)
        assert alarms == other.observe(t, NATURAL, predicted(moved), values)
        for alarm in alarms:
            found += 1
            one.forget(alarm.regime, alarm.node)
            other.forget(alarm.regime, alarm.node)
    assert found


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
    assert alarms[0].round <= 1004


def test_what_was_seen_of_a_mechanism_is_dropped_after_its_alarm() -> None:
    past = PastScores(N_NODES, 2)
    since = np.full((N_NODES, 1), 99)
    for t in range(1, 5):
        past.take_in(t, NATURAL, np.arange(3.0) + t, since)
    past.forget(0, 1)
    past.forget(1, 2)  # never played
    assert past.state()["seen"].tolist() == [[4, 0, 4], [0, 0, 0]]
    low, high, _ = past.take_in(5, NATURAL, np.array([9.0, 9.0, NAN]), since)
    assert (low[:, 0].tolist()[:2], high[1, 0]) == (
        [pytest.approx(stats.norm.ppf(0.8)), -np.inf],
        np.inf,
    )


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


def test_a_mechanism_is_compared_with_the_scores_of_its_own_regime() -> None:
    past, since = PastScores(N_NODES, 2), np.full((N_NODES, 1), 10**6)
    for t in range(1, RECENT_SCORES):
        past.take_in(t, NATURAL, np.full(N_NODES, 5.0), since)
    other = np.array([1, 0, 0], dtype=np.uint8)
    cells = past.take_in(RECENT_SCORES, other, np.zeros(N_NODES), since)
    assert cells.chances[:, 0].tolist() == pytest.approx(
        [1.0, 1 / RECENT_SCORES, 1 / RECENT_SCORES]
    )
