"""`GraphPosterior`: the contract of learners, units, warnings and calibration."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator
from small_systems import rounds

from causalarms import GraphPosterior, LinearSEM
from causalarms.errors import (
    ConvergenceWarning,
    IdentifiabilityWarning,
    ModelError,
    ScaleWarning,
)

SETTINGS: dict[str, Any] = {
    "miss_probability_per_edge": 0.1,
    "miss_probability_whole_graph": 0.2,
    "edge_probability": "adaptive",
    "weight_scale": 2.0,
    "noise_shape": 1.0,
    "intercept_scale": 10.0,
    "noise_scale": "estimate",
    "noise_std": 1.0,
    "excluded": [("x0", "x1")],
    "required": [("x1", "x0")],
    "tiers": [["x1"], ["x0"]],
    "context": ["x1"],
    "memory_limit": 10**6,
    "method": "exact",
    "n_sweeps": 100,
    "random_state": 7,
}


@pytest.mark.filterwarnings("ignore::causalarms.errors.CausalArmsWarning")
def test_all_of_scikit_learns_checks_pass() -> None:
    results = check_estimator(GraphPosterior(), on_skip=None, on_fail=None)
    failed = [(r["check_name"], r["exception"]) for r in results if r["status"] == "failed"]
    assert failed == []
    assert sum(r["status"] == "passed" for r in results) >= 35


def test_settings_are_stored_as_given_and_cloned() -> None:
    model = GraphPosterior(**SETTINGS)
    assert model.get_params() == SETTINGS
    assert clone(model).get_params() == SETTINGS
    assert set(GraphPosterior().get_params()) == set(SETTINGS)


def test_what_is_fitted() -> None:
    sem, X, A = rounds(6, 300, 1)
    model = GraphPosterior()
    assert model.fit(X, interventions=A, noise_mean=sem.noise_mean) is model
    assert (model.adjacency_ >= sem.adjacency).all()
    assert (model.most_probable_.adjacency == sem.adjacency).mean() > 0.95
    there = sem.adjacency
    assert np.abs(model.weights_[there] - sem.weights[there]).max() < 0.5
    assert np.abs(model.noise_std_ - 1).max() < 0.3
    np.testing.assert_allclose(model.intercept_, np.broadcast_to(sem.noise_mean, (2, 6)))
    edges = model.result_.edges()
    assert all(edge["probability"] > 0.5 for edge in edges)
    assert set(model.graph_.nodes) == set(model.nodes_)
    assert model.largest_dropped_probability_ <= 0.5
    assert 0 <= model.whole_graph_miss_probability_ <= 1
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.draw(1, 4).weights, model.draw(1, 4).weights)


def test_unknown_means_become_intercepts_that_interventions_shift() -> None:
    sem, _, A = rounds(5, 600, 1)
    mean = np.array([np.arange(5.0), np.arange(5.0) + 3])
    shifted = LinearSEM(weights=sem.weights, noise_mean=mean, noise_std=sem.noise_std)
    X = shifted.sample(A, np.random.default_rng(0))
    model = GraphPosterior().fit(X, interventions=A)
    assert (model.adjacency_ >= sem.adjacency).all()
    draws = model.draw(0, 2000)
    assert np.abs(draws.intercept.mean(axis=0) - mean).max() < 0.7
    assert np.abs(model.intercept_ - mean).max() < 0.7


def test_units_of_the_noise_change_nothing_but_units() -> None:
    sem, X, A = rounds(5, 60, 0)
    units = np.array([1e-3, 5.0, 1e4, 1.0, 20.0])
    plain = GraphPosterior(noise_scale=1.0).fit(X, interventions=A, noise_mean=sem.noise_mean)
    scaled = GraphPosterior(noise_scale=units).fit(
        X * units, interventions=A, noise_mean=sem.noise_mean * units
    )
    np.testing.assert_allclose(scaled.edge_probability_, plain.edge_probability_, atol=1e-8)
    expected = plain.weights_ * units[None, :] / units[:, None]
    np.testing.assert_allclose(scaled.weights_, expected, rtol=1e-6)
    np.testing.assert_allclose(scaled.noise_std_, plain.noise_std_ * units, rtol=1e-6)
    draws, scaled_draws = plain.draw(3, 5), scaled.draw(3, 5)
    np.testing.assert_allclose(scaled_draws.intercept, draws.intercept * units, rtol=1e-6)
    # a density has the inverse unit of what it is a density of
    assert scaled.log_evidence_ == pytest.approx(plain.log_evidence_ - 60 * np.log(units).sum())


def test_offsets_change_nothing_where_means_are_unknown() -> None:
    _, X, A = rounds(5, 60, 0)
    plain = GraphPosterior().fit(X, interventions=A)
    moved = GraphPosterior().fit(X + 1e4, interventions=A)
    np.testing.assert_allclose(moved.edge_probability_, plain.edge_probability_, atol=1e-6)


def test_estimated_units_find_the_graph_in_any_units() -> None:
    sem, X, A = rounds(6, 300, 2)
    units = 10.0 ** np.array([-3, 4, 0, 2, -1, 3])
    model = GraphPosterior(noise_scale="estimate").fit(X * units, interventions=A)
    assert (model.adjacency_ >= sem.adjacency).all()
    assert model.adjacency_.sum() < 2.2 * sem.adjacency.sum()


@pytest.mark.parametrize("factor", [1e-3, 1e3])
def test_units_far_from_the_noise_are_mentioned(factor: float) -> None:
    _, X, A = rounds(4, 100, 0)
    with pytest.warns(ScaleWarning, match="noise_scale"):
        GraphPosterior(noise_scale=1.0).fit(X * factor, interventions=A)


def test_a_known_mean_tells_directions_apart_without_interventions() -> None:
    sem, _, A = rounds(5, 400, 3)
    X = sem.sample(0 * A, np.random.default_rng(0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = GraphPosterior().fit(X, noise_mean=sem.noise_mean)
    assert (model.adjacency_[0] >= sem.adjacency[0]).all()
    assert not model.adjacency_[1].any()
    assert np.isnan(model.weights_[1]).all()
    assert model.known_.tolist() == [[True] * 5, [False] * 5]


def test_open_directions_are_said() -> None:
    """Two nodes, one edge, no intervention, unknown means: nothing tells cause from effect."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 2))
    X[:, 1] += X[:, 0]
    with pytest.warns(IdentifiabilityWarning) as said:
        model = GraphPosterior(miss_probability_per_edge=0.05).fit(X)
    assert any("the data leave directions open" in str(w.message) for w in said)
    assert any("no node's regime varies" in str(w.message) for w in said)
    assert not model.promise_kept_
    assert len(model.left_out_) == 1
    assert model.adjacency_[0].sum() == 1
    assert model.whole_graph_miss_probability_ > 0.1


def test_prior_knowledge_by_name() -> None:
    sem, X, A = rounds(5, 100, 0)
    model = GraphPosterior(
        miss_probability_per_edge=0.5,
        excluded=[("x0", "x4")],
        required=[("x3", "x1")],
        tiers=[["x2", "x3"], ["x4"]],
    ).fit(X, interventions=A, noise_mean=sem.noise_mean)
    assert (model.edge_probability_[:, 3, 1] == 1).all()
    assert model.adjacency_[:, 3, 1].all()
    assert not model.edge_probability_[:, 0, 4].any()
    assert not model.edge_probability_[:, 4, [2, 3]].any()
    with pytest.raises(ModelError, match="required edges contain the cycle"):
        GraphPosterior(required=[("x0", "x1"), ("x1", "x0")]).fit(X, interventions=A)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"miss_probability_per_edge": 1.0}, "miss_probability_per_edge must be at least 0"),
        ({"miss_probability_whole_graph": -0.1}, "miss_probability_whole_graph must be at least"),
        ({"edge_probability": 1.0}, "edge_probability must lie between 0 and 1, not 1.0"),
        ({"edge_probability": "dense"}, "edge_probability must be a number or 'adaptive'"),
        ({"weight_scale": 0.0}, "weight_scale must be a number above 0, not 0.0"),
        ({"noise_shape": float("nan")}, "noise_shape must be a number above 0"),
        ({"noise_scale": [1.0, 2.0]}, r"noise_scale must be a number or of shape \(4,\)"),
        ({"noise_scale": np.arange(1.0, 9.0).reshape(2, 4)}, r"number or of shape \(4,\)"),
        ({"noise_scale": "guess"}, "noise_scale must be numbers or 'estimate', not 'guess'"),
        ({"noise_std": -1.0}, "noise_std must be finite and above 0"),
        ({"noise_std": "one"}, "noise_std must be numbers, not 'one'"),
        ({"memory_limit": 100}, "4 nodes needs [0-9,]+ bytes, above the limit of 100"),
    ],
)
def test_settings_are_checked_by_fit(settings: dict[str, Any], message: str) -> None:
    _, X, A = rounds(4, 50, 1)
    with pytest.raises(ValueError, match=message):
        GraphPosterior(**settings).fit(X, interventions=A)


def test_probabilities_mean_what_they_say() -> None:
    """Systems drawn from the prior itself: per fifth of the scale, the share of edges that exist.

    Edges of one system go together, so the error is taken over systems: 4 standard errors.
    """
    said, true = [], []
    for seed in range(150):
        rng = np.random.default_rng(seed)
        order = rng.permutation(5)
        weights = np.zeros((2, 5, 5))
        for regime in (0, 1):
            present = np.triu(rng.random((5, 5)) < 0.5, 1)
            weights[regime][np.ix_(order, order)] = present * rng.normal(0, 1.5, (5, 5))
        sem = LinearSEM(weights=weights, noise_mean=np.ones(5), noise_std=np.ones(5))
        A = rng.integers(0, 2, (25, 5))
        model = GraphPosterior(noise_std=1.0, miss_probability_per_edge=0.9)
        model.fit(sem.sample(A, rng), interventions=A, noise_mean=1.0)
        said.append(model.edge_probability_.ravel())
        true.append(weights.ravel() != 0)
    p, t = np.array(said), np.array(true)
    for low in (0.0, 0.2, 0.4, 0.6, 0.8):
        inside = (p > low) & (p <= low + 0.2)
        assert inside.sum() > 100
        excess = np.where(inside, t - p, 0).sum(axis=1)  # per system
        assert abs(excess.sum()) < 4 * np.sqrt((excess**2).sum())


def test_past_twenty_nodes_it_is_sampled_and_says_so() -> None:
    sem, X, A = rounds(24, 200, 1)
    model = GraphPosterior(n_sweeps=100, random_state=3)
    model.fit(X, interventions=A, noise_mean=sem.noise_mean)
    assert model.diagnostics_ is not None
    assert model.diagnostics_.converged
    assert (model.adjacency_ & sem.adjacency).sum() >= 0.99 * sem.adjacency.sum()
    assert np.isnan(model.log_evidence_)
    assert 0 <= model.whole_graph_miss_probability_ <= 1
    again = clone(model).fit(X, interventions=A, noise_mean=sem.noise_mean)
    np.testing.assert_array_equal(again.edge_probability_, model.edge_probability_)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.draw(1, 2).weights, model.draw(1, 2).weights)


def test_small_systems_are_sampled_on_request_with_the_same_result() -> None:
    sem, X, A = rounds(7, 100, 2)
    fits = [
        GraphPosterior(method=method).fit(X, interventions=A, noise_mean=sem.noise_mean)
        for method in ("auto", "exact", "sampled")
    ]
    assert [fit.diagnostics_ is None for fit in fits] == [True, True, False]
    np.testing.assert_array_equal(fits[0].edge_probability_, fits[1].edge_probability_)
    np.testing.assert_allclose(fits[2].edge_probability_, fits[1].edge_probability_, atol=0.03)
    np.testing.assert_array_equal(fits[2].adjacency_, fits[1].adjacency_)


def test_chains_that_disagree_are_warned_of() -> None:
    sem, X, A = rounds(24, 15, 1)
    with pytest.warns(ConvergenceWarning, match=r"do not agree yet: R-hat .* worst for x\d+ -> x"):
        GraphPosterior(n_sweeps=6, miss_probability_per_edge=0.9).fit(
            X, interventions=A, noise_mean=sem.noise_mean
        )


def test_an_unknown_method_is_refused() -> None:
    _, X, A = rounds(4, 20, 1)
    with pytest.raises(ValueError, match="method must be one of auto, exact, sampled, not 'mcmc'"):
        GraphPosterior(method="mcmc").fit(X, interventions=A)
