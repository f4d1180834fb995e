"""Rounds of nodes with any number of regimes are stored once, whoever learns from them."""

from __future__ import annotations

import numpy as np
import pytest

from causalarms import CSL, random_sem
from causalarms.errors import DataError
from causalarms.graphs.csl import Chain, csl
from causalarms.statistics import Dataset, Moments

REGIMES = [1, 2, 3]


def rounds(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    interventions = rng.integers(0, REGIMES, (n, 3), dtype=np.uint8)
    return random_sem(3, seed=seed, regimes=REGIMES).sample(interventions, rng), interventions


def held(record: object) -> int:
    """Bytes of the arrays an object holds itself."""
    return sum(v.nbytes for v in vars(record).values() if isinstance(v, np.ndarray))


def test_samples_of_every_mechanism() -> None:
    values, interventions = rounds(200)
    data = Dataset(3, regimes=REGIMES)
    data.append(values, interventions)
    data.forget(1, 2, start=120)
    moments = Moments.of(data)
    running = Moments(3, regimes=REGIMES)
    for row, a in zip(values, interventions, strict=True):
        running.add(row, a)
    for regime, node in np.ndindex(3, 3):
        mine = interventions[:, node] == regime
        mine[: 120 if (regime, node) == (1, 2) else 0] = False
        assert data.counts[regime, node] == mine.sum()
        assert np.array_equal(data.rows_of(regime, node), np.flatnonzero(mine))
        assert np.array_equal(data.recent_rows_of(regime, node, 7), np.flatnonzero(mine)[-7:])
        z = np.column_stack([values[mine], np.ones(mine.sum())])
        assert np.allclose(moments.gram[regime, node], z.T @ z)
        if (regime, node) != (1, 2):
            assert np.allclose(running.gram[regime, node], z.T @ z)
    again = Dataset(3, regimes=REGIMES)
    again.restore(data.state())
    assert np.array_equal(again.counts, data.counts)
    with pytest.raises(DataError, match=r"node .x0.*1 regime"):
        data.append(values[:1], [[1, 0, 0]])


def test_a_round_costs_nine_bytes_per_node() -> None:
    data = Dataset(3, regimes=REGIMES)
    data.append(*rounds(1024))
    assert held(data) <= 9 * 3 * 1024 + 1000


def test_a_chain_holds_no_samples() -> None:
    sizes = []
    for n in (300, 3000):
        data = Dataset(3, regimes=REGIMES)
        data.append(*rounds(n))
        chains: dict[tuple[int, int], Chain] = {}
        csl(data, noise_mean=None, chains=chains)
        sizes.append([held(chain) for chain in chains.values()])
    assert len(sizes[0]) == 6
    assert sizes[0] == sizes[1]


def test_csl_learns_every_regime() -> None:
    sem = random_sem(4, seed=3, regimes=[1, 2, 3, 2])
    rng = np.random.default_rng(1)
    interventions = rng.integers(0, sem.regimes, (900, 4), dtype=np.uint8)
    data = Dataset(4, regimes=sem.regimes)
    data.append(sem.sample(interventions, rng), interventions)
    fit = csl(data, noise_mean=sem.mechanism_mean)
    assert fit.known.sum() == 8
    assert (fit.adjacency >= sem.adjacency).all()
    assert not fit.weights[2, :, [0, 1, 3]].any()
    assert np.abs(fit.weights - sem.weights)[sem.adjacency].max() < 0.3
    estimator = CSL(n_bootstrap=3, random_state=0)
    estimator.fit(data.values, interventions=interventions, noise_mean=1.0, regimes=sem.regimes)
    assert np.array_equal(estimator.adjacency_, fit.adjacency)
    assert not estimator.result_.unknown()
    with pytest.raises(DataError, match="regime 2"):
        CSL().fit(data.values, interventions=interventions)
