"""Data augmentation: missing values drawn given a system, and the mixture of the posteriors."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

from causalarms import LinearSEM, random_sem
from causalarms.arrays import FloatArray
from causalarms.posterior.base import Draws
from causalarms.posterior.exact import ExactPosterior
from causalarms.posterior.missing import PosteriorMixture, add_rounds, complete_rounds
from causalarms.posterior.prior import MechanismPrior
from causalarms.statistics.dataset import Moments

N = 6
WIDE = np.array([[-1e9] * N, [1e9] * N])
Regimes = npt.NDArray[np.uint8]


def one_draw(sem: LinearSEM) -> Draws:
    """The system itself, in arrays as policies have them: kernels are compiled once."""
    weights, mean, std = (
        np.array(array[None], order="C")
        for array in (sem.weights, sem.mechanism_mean, sem.mechanism_std)
    )
    return Draws(np.array(sem.order)[None], weights != 0, weights, mean, std)


def holed(seed: int, n_missing: int) -> tuple[LinearSEM, Regimes, FloatArray]:
    """A system, an intervention, and a round of it in which values are missing."""
    rng = np.random.default_rng(seed)
    sem = random_sem(N, seed=seed, noise_std=rng.uniform(0.5, 2.0, N), edge_probability=0.8)
    a = rng.integers(0, 2, N).astype(np.uint8)
    x = sem.sample(a[None], rng)[0]
    x[rng.choice(N, n_missing, replace=False)] = np.nan
    return sem, a, x


def completed(
    sem: LinearSEM, a: Regimes, x: FloatArray, n: int, bounds: FloatArray = WIDE
) -> FloatArray:
    """The same round, n times."""
    values, regimes = np.tile(x, (n, 1)), np.tile(a, (n, 1))
    taught, rng = np.ones(values.shape, dtype=bool), np.random.default_rng(0)
    return complete_rounds(values, regimes, taught, one_draw(sem), rng, bounds)


@pytest.mark.parametrize("n_missing", [1, 3, 6])
@pytest.mark.parametrize("seed", range(3))
def test_missing_values_are_drawn_given_all_others(seed: int, n_missing: int) -> None:
    """Within four standard errors of the mean and the covariance of the joint Gaussian."""
    sem, a, x = holed(seed, n_missing)
    missing, known = np.flatnonzero(np.isnan(x)), np.flatnonzero(~np.isnan(x))
    drawn = completed(sem, a, x, 20_000)
    mean, cov = sem.mean(a[None])[0], sem.covariance(a)
    gain = cov[np.ix_(missing, known)] @ np.linalg.inv(cov[np.ix_(known, known)])
    expected = mean[missing] + gain @ (x - mean)[known]
    rest = cov[np.ix_(missing, missing)] - gain @ cov[np.ix_(known, missing)]
    error = np.sqrt(np.diag(rest) / len(drawn))
    assert (np.abs(drawn[:, missing].mean(axis=0) - expected) < 4 * error).all()
    spread = np.sqrt(np.outer(np.diag(rest), np.diag(rest)) + rest**2) / np.sqrt(len(drawn))
    found = np.cov(drawn[:, missing].T).reshape(rest.shape)
    assert (np.abs(found - rest) < 4 * spread).all()
    np.testing.assert_array_equal(drawn[:, known], np.tile(x[known], (len(drawn), 1)))


def test_no_value_passes_the_bounds() -> None:
    sem, a, x = holed(1, 3)
    missing = np.flatnonzero(np.isnan(x))
    drawn = completed(sem, a, x, 100, np.array([[-0.5] * N, [0.25] * N]))[:, missing]
    assert drawn.min() == -0.5
    assert drawn.max() == 0.25


def test_what_made_a_value_before_a_change_says_nothing_about_its_causes() -> None:
    weights = np.zeros((2, N, N))
    weights[:, 0, 1] = 3.0
    sem = LinearSEM(weights=weights, order=range(N), noise_mean=0.0)
    x = np.array([np.nan, 6.0, 0.0, 0.0, 0.0, 0.0])
    values, regimes = np.tile(x, (20_000, 1)), np.zeros((20_000, N), dtype=np.uint8)
    taught = np.ones(values.shape, dtype=bool)
    for known, mean, variance in ((True, 1.8, 0.1), (False, 0.0, 1.0)):
        taught[:, 1] = known
        rng = np.random.default_rng(4)
        found = complete_rounds(values, regimes, taught, one_draw(sem), rng, WIDE)
        assert found[:, 0].mean() == pytest.approx(mean, abs=4 * np.sqrt(variance / 20_000))
        assert found[:, 0].var() == pytest.approx(variance, rel=0.04)


def test_a_round_counts_for_those_it_teaches() -> None:
    a, x = np.zeros((1, N), dtype=np.uint8), np.random.default_rng(0).normal(size=(1, N))
    a[0, 1] = 1
    taught = np.ones(a.shape, dtype=bool)
    taught[0, 4] = False
    gram = np.zeros((2, N, N + 1, N + 1))
    for _ in range(2):
        add_rounds(gram, x, a, taught)
    z = np.append(x[0], 1.0)
    for node in (0, 2, 3, 5):
        np.testing.assert_allclose(gram[0, node], 2 * np.outer(z, z))
    np.testing.assert_allclose(gram[1, 1], 2 * np.outer(z, z))
    assert not gram[0, [1, 4]].any()
    assert not gram[1, [0, 2, 3, 4, 5]].any()


# -- the chain next to an enumeration --------------------------------------------------------------


PRIOR = MechanismPrior(intercept_scale=3.0, noise_shape=2.0)
CELLS = 21  # of a grid over each missing value


class Small(NamedTuple):
    """Three nodes in one regime each, of which values of two rounds are missing."""

    values: FloatArray  # (rounds, 3)
    low: FloatArray  # (2,) of the grid
    high: FloatArray  # (2,)


def small() -> Small:
    rng = np.random.default_rng(5)
    x = rng.normal(size=(9, 3))
    x[:, 1] += 1.2 * x[:, 0]
    x[:, 2] += 0.9 * x[:, 1]
    x[3, 1] = x[6, 0] = np.nan
    return Small(x, np.array([-7.0, -7.0]), np.array([7.0, 7.0]))


def posterior_of(rows: FloatArray) -> ExactPosterior:
    moments = Moments(3, regimes=1)
    for row in rows:
        moments.add(row, np.zeros(3, dtype=np.uint8))
    return ExactPosterior(3, moments, prior=PRIOR, regimes=1)


def test_the_chain_has_the_posterior_of_an_enumeration() -> None:
    """Edge probabilities next to a sum over a grid of both values, within four standard errors."""
    case = small()
    grid = [np.linspace(low, high, CELLS) for low, high in zip(case.low, case.high, strict=True)]
    logs, edges = [], []
    for first, second in itertools.product(*grid):
        rows = case.values.copy()
        rows[3, 1], rows[6, 0] = first, second
        found = posterior_of(rows)
        logs.append(found.log_evidence)
        edges.append(found.edge_probability)
    shares = np.exp(np.array(logs) - max(logs))
    expected = np.average(edges, axis=0, weights=shares)
    rng, regimes = np.random.default_rng(6), np.zeros((9, 3), dtype=np.uint8)
    taught, rows = np.ones((9, 3), dtype=bool), np.nan_to_num(case.values)
    bounds, seen = np.array([[-50.0] * 3, [50.0] * 3]), []
    for _ in range(2000):
        posterior = posterior_of(rows)
        seen.append(posterior.edge_probability)
        rows = complete_rounds(case.values, regimes, taught, posterior.draw(rng), rng, bounds)
    chain = np.array(seen[100:])
    batches = chain[: len(chain) // 30 * 30].reshape(30, -1, *chain.shape[1:]).mean(axis=1)
    error = batches.std(axis=0, ddof=1) / np.sqrt(30)
    assert (np.abs(chain.mean(axis=0) - expected) < 4 * error + 1e-3).all()
    # and missing values matter here: without the two rounds the answer is another one
    complete = posterior_of(case.values[~np.isnan(case.values).any(axis=1)])
    assert np.abs(complete.edge_probability - expected).max() > 0.03


# -- the mixture -----------------------------------------------------------------------------------


def mixture(n: int) -> PosteriorMixture:
    """Parts that were told different rounds."""
    found = PosteriorMixture(lambda: ExactPosterior(3, prior=PRIOR, regimes=1))
    found.split(n)
    for m, part in enumerate(found.parts):
        rng, moments = np.random.default_rng(m), Moments(3, regimes=1)
        for row in rng.normal(size=(12, 3)) @ np.array([[1, m, 0], [0, 1, 1], [0, 0, 1]]):
            moments.add(row, np.zeros(3, dtype=np.uint8))
        part.update(moments)
    return found


def test_one_part_is_what_it_is() -> None:
    found = mixture(1)
    alone = found.parts[0]
    one, other = (each.draw(np.random.default_rng(1), 5) for each in (found, alone))
    np.testing.assert_array_equal(one.weights, other.weights)
    assert found.edge_probability is alone.edge_probability


@pytest.mark.parametrize("n", [1, 3, 8, 9])
def test_draws_come_from_the_parts_in_turn(n: int) -> None:
    found = mixture(4)
    rng, again = np.random.default_rng(2), np.random.default_rng(2)
    drawn, first = found.draw(rng, n), int(again.integers(4))
    assert drawn.weights.shape == (n, 1, 3, 3)
    assert drawn.weights.flags.c_contiguous
    counts = [len(range((m - first) % 4, n, 4)) for m in range(4)]
    for m, count in enumerate(counts):
        if count:
            theirs = found.parts[m].draw(again, count)
            np.testing.assert_array_equal(drawn.weights[(m - first) % 4 :: 4], theirs.weights)


def test_probabilities_are_averages_and_states_come_back() -> None:
    found = mixture(4)
    each = [part.edge_probability for part in found.parts]
    np.testing.assert_allclose(found.edge_probability, np.mean(each, axis=0))
    assert np.ptp(each, axis=0).max() > 0.1
    found.turn = 6
    assert found.deciding is found.parts[2]
    again = PosteriorMixture(lambda: ExactPosterior(3, prior=PRIOR, regimes=1))
    again.restore(found.state())
    assert again.turn == 6
    for part, other in zip(found.parts, again.parts, strict=True):
        np.testing.assert_array_equal(part.edge_probability, other.edge_probability)


def test_parts_that_are_added_know_what_the_first_knows() -> None:
    found = mixture(1)
    found.split(3)
    assert len({id(part) for part in found.parts}) == 3
    for part in found.parts:
        np.testing.assert_array_equal(part.edge_probability, found.parts[0].edge_probability)
    found.parts[1].update(Moments(3, regimes=1))  # and are told apart
    assert not np.array_equal(found.parts[1].edge_probability, found.parts[0].edge_probability)
    found.split(1)
    assert len(found.parts) == 1
