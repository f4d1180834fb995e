"""What may not change the learned graph: labels, a common unit, and units after standardising."""

from __future__ import annotations

import numpy as np
import pytest
from random_rounds import random_rounds

from causalarms import CSL
from causalarms.errors import ScaleWarning

SEEDS = range(5)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("joint", [True, False])
def test_relabelling_the_nodes_relabels_the_graph(seed: int, joint: bool) -> None:
    sem, X, A = random_rounds(7, 150, seed)
    p = np.random.default_rng(seed).permutation(7)
    here = CSL(joint=joint).fit(X, interventions=A, noise_mean=sem.noise_mean)
    there = CSL(joint=joint).fit(X[:, p], interventions=A[:, p], noise_mean=sem.noise_mean[p])
    np.testing.assert_array_equal(there.adjacency_, here.adjacency_[:, p][:, :, p])
    np.testing.assert_allclose(there.weights_, here.weights_[:, p][:, :, p], atol=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_order_of_rounds_does_not_matter(seed: int) -> None:
    sem, X, A = random_rounds(6, 150, seed)
    rows = np.random.default_rng(seed).permutation(150)
    here = CSL().fit(X, interventions=A, noise_mean=sem.noise_mean)
    there = CSL().fit(X[rows], interventions=A[rows], noise_mean=sem.noise_mean)
    np.testing.assert_array_equal(there.adjacency_, here.adjacency_)
    np.testing.assert_allclose(there.weights_, here.weights_, atol=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("scale", [1e-6, 37.0])
def test_a_common_unit_leaves_graph_and_weights(seed: int, scale: float) -> None:
    sem, X, A = random_rounds(6, 150, seed)
    here = CSL().fit(X, interventions=A, noise_mean=sem.noise_mean)
    there = CSL().fit(scale * X, interventions=A, noise_mean=scale * sem.noise_mean)
    np.testing.assert_array_equal(there.adjacency_, here.adjacency_)
    np.testing.assert_allclose(there.weights_, here.weights_, atol=1e-8)
    np.testing.assert_allclose(there.noise_std_, scale * here.noise_std_, rtol=1e-8)


@pytest.mark.filterwarnings("ignore::causalarms.errors.ScaleWarning")
def test_units_of_single_nodes_matter() -> None:
    sem, X, A = random_rounds(6, 150, 1)
    unit = np.array([1e4, 1e-4, 1, 1, 1, 1.0])
    here = CSL().fit(X, interventions=A, noise_mean=sem.noise_mean)
    there = CSL().fit(X * unit, interventions=A, noise_mean=sem.noise_mean * unit)
    assert (here.adjacency_ != there.adjacency_).any()


def test_wide_scales_are_named() -> None:
    _, X, A = random_rounds(4, 150, 1)
    X = X / X.std(axis=0) * [1.0, 5000.0, 0.5, 2.0]
    with pytest.warns(
        ScaleWarning, match=r"node 'x1' varies 1e\+04 times as much as 'x2'"
    ) as caught:
        CSL().fit(X, interventions=A)
    assert "posterior with noise_scale='estimate'" in str(caught[0].message)
    CSL().fit(X / [1.0, 100.0, 1.0, 1.0], interventions=A)


def test_offsets_do_not_matter_when_means_are_estimated() -> None:
    _, X, A = random_rounds(6, 150, 2)
    here = CSL().fit(X, interventions=A)
    there = CSL().fit(X + 1e6, interventions=A)
    np.testing.assert_array_equal(there.adjacency_, here.adjacency_)
    np.testing.assert_allclose(there.weights_, here.weights_, atol=1e-6)
