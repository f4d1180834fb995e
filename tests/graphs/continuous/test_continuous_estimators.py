"""GOLEM and DAGMA under the contract of CSL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from causalarms import DAGMA, GOLEM, LinearSEM, random_sem
from causalarms.errors import CausalArmsWarning, DataError, IdentifiabilityWarning, ModelError

Learner = type[GOLEM] | type[DAGMA]
learners = pytest.mark.parametrize("learner", [GOLEM, DAGMA])
NAMES = ["temperature", "pressure", "flow", "yield"]


def rounds(n_each: int = 200, seed: int = 3) -> tuple[LinearSEM, np.ndarray, np.ndarray]:
    """As many rounds of a = 0 as of a = 1, in turns."""
    sem = random_sem(4, seed=seed)
    A = np.repeat(np.arange(2 * n_each) % 2, 4).reshape(-1, 4)
    return sem, sem.sample(A, np.random.default_rng(seed)), A


@learners
def test_b_comes_from_the_rounds_of_none_and_b_prime_from_those_of_all(learner: Learner) -> None:
    _, X, A = rounds()
    both = learner().fit(X, interventions=A)
    with pytest.warns(IdentifiabilityWarning, match="no round with all nodes intervened"):
        natural = learner().fit(X[A[:, 0] == 0])
    with pytest.warns(IdentifiabilityWarning, match="no round with all nodes natural"):
        intervened = learner().fit(X[A[:, 0] == 1], interventions=np.ones((200, 4)))
    np.testing.assert_array_equal(both.weights_[0], natural.weights_[0])
    np.testing.assert_array_equal(both.weights_[1], intervened.weights_[1])
    assert both.known_.all()
    assert natural.known_.tolist() == [[True] * 4, [False] * 4]
    assert np.isnan(natural.weights_[1]).all()
    assert not natural.adjacency_[1].any()
    assert natural.result_.unknown() == [("intervened", f"x{i}") for i in range(4)]


@learners
def test_both_regimes_of_an_easy_system_are_found(learner: Learner) -> None:
    """1000 rounds each; weights are shrunk by the penalty, by a tenth at most here."""
    sem, X, A = rounds(1000)
    model = learner().fit(X, interventions=A, noise_mean=sem.noise_mean)
    np.testing.assert_array_equal(model.adjacency_, sem.adjacency)
    np.testing.assert_allclose(model.weights_, sem.weights, atol=0.2)
    np.testing.assert_allclose(model.noise_std_, sem.mechanism_std, atol=0.2)


@learners
def test_what_is_learned_is_consistent(learner: Learner) -> None:
    sem, X, A = rounds()
    model = learner().fit(X, interventions=A, noise_mean=sem.noise_mean)
    assert model.weights_.shape == model.adjacency_.shape == (2, 4, 4)
    np.testing.assert_array_equal(model.adjacency_, model.weights_ != 0)
    np.testing.assert_array_equal(model.intercept_, np.broadcast_to(sem.noise_mean, (2, 4)))
    assert model.n_features_in_ == 4
    for regime in (0, 1):
        graph = nx.DiGraph(model.adjacency_[regime].astype(int))
        assert nx.is_directed_acyclic_graph(graph)
        weights = np.abs(model.weights_[regime])
        assert weights[weights > 0].min() >= 0.3  # the threshold
    union = nx.DiGraph(model.adjacency_.any(axis=0).astype(int))
    assert (model.order_ is None) == (not nx.is_directed_acyclic_graph(union))
    assert model.graph_.number_of_nodes() == 4
    assert set(model.graph_.edges) == {
        (f"x{p}", f"x{c}") for p, c in np.argwhere(model.adjacency_.any(axis=0))
    }


@learners
def test_intercepts_are_estimated_where_the_means_are_unknown(learner: Learner) -> None:
    _, X, A = rounds(400)
    model = learner().fit(X, interventions=A)
    for regime in (0, 1):
        samples = X[A[:, 0] == regime]
        expected = (samples - samples @ model.weights_[regime]).mean(axis=0)
        np.testing.assert_allclose(model.intercept_[regime], expected)


@learners
@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_names_of_frames_are_kept(learner: Learner, make: Callable[[Any], Any]) -> None:
    sem, X, A = rounds()
    plain = learner().fit(X, interventions=A)
    shuffled = [2, 0, 3, 1]
    model = learner().fit(
        make(dict(zip(NAMES, X.T, strict=True))),
        interventions=make({NAMES[i]: A[:, i] for i in shuffled}),
        noise_mean=dict.fromkeys(NAMES, 1.0),
    )
    assert model.nodes_ == tuple(NAMES)
    assert sorted(model.graph_.nodes) == sorted(NAMES)
    np.testing.assert_array_equal(model.weights_, plain.weights_)
    with pytest.raises(ModelError, match="no node 'presure'; did you mean 'pressure'"):
        learner().fit(
            make(dict(zip(NAMES, X.T, strict=True))), interventions=make({"presure": A[:, 0]})
        )
    assert sem.n_nodes == 4


@learners
def test_rounds_of_other_interventions_are_left_out_with_a_warning(learner: Learner) -> None:
    sem, X, A = rounds()
    rng = np.random.default_rng(0)
    mixed = rng.integers(0, 2, (50, 4))
    mixed[:, 0], mixed[:, 1] = 0, 1
    more, regimes = np.vstack([sem.sample(mixed, rng), X]), np.vstack([mixed, A])
    with pytest.warns(CausalArmsWarning, match="50 of 450 rounds have some nodes intervened on"):
        model = learner().fit(more, interventions=regimes)
    np.testing.assert_array_equal(model.weights_, learner().fit(X, interventions=A).weights_)


@learners
def test_data_without_a_whole_regime_are_refused(learner: Learner) -> None:
    sem, _, _ = rounds()
    A = np.tile([0, 1, 0, 1], (100, 1))
    X = sem.sample(A, np.random.default_rng(0))
    with pytest.raises(DataError, match="GOLEM and DAGMA learn from those only, CSL from any"):
        learner().fit(X, interventions=A)


@learners
def test_too_few_rounds_of_a_regime_are_refused(learner: Learner) -> None:
    _, X, A = rounds(5)
    with pytest.raises(DataError, match="5 rounds with all nodes natural are too few for 4 nodes"):
        learner().fit(X, interventions=A)


@learners
def test_bad_samples_are_refused_by_name(learner: Learner) -> None:
    _, X, A = rounds()
    X[7, 2] = np.nan
    frame = pd.DataFrame(X, columns=NAMES)
    with pytest.raises(DataError, match="flow"):
        learner().fit(frame, interventions=A)
    X[:, 2] = 4.0
    with pytest.raises(DataError, match="'flow' is constant"):
        learner().fit(pd.DataFrame(X, columns=NAMES), interventions=A)


@learners
def test_the_callers_data_are_not_touched(learner: Learner) -> None:
    sem, X, A = rounds()
    mean = np.asarray(sem.noise_mean).copy()
    kept = X.copy(), A.copy(), mean.copy()
    frame = pd.DataFrame(X, columns=NAMES)
    first = learner().fit(X, interventions=A, noise_mean=mean)
    learner().fit(frame, interventions=A)
    for given, copy in zip((X, A, mean), kept, strict=True):
        np.testing.assert_array_equal(given, copy)
    pd.testing.assert_frame_equal(frame, pd.DataFrame(kept[0], columns=NAMES))
    X.setflags(write=False)
    np.testing.assert_array_equal(learner().fit(X, interventions=A).weights_, first.weights_)


@learners
@pytest.mark.filterwarnings("ignore::causalarms.errors.CausalArmsWarning")
def test_all_of_scikit_learns_checks_pass(learner: Learner) -> None:
    results = check_estimator(learner(), on_skip=None, on_fail=None)
    failed = [(r["check_name"], r["exception"]) for r in results if r["status"] == "failed"]
    assert failed == []
    assert {r["check_name"] for r in results if r["status"] == "skipped"} <= {
        "check_array_api_input"
    }
    assert sum(r["status"] == "passed" for r in results) >= 35


@pytest.mark.parametrize(
    "model",
    [
        GOLEM(equal_variances=False, l1=0.1, acyclicity=3.0, steps=500, tolerance=0.0),
        DAGMA(loss="least-squares", l1=0.1, steps=300, last_steps=400, threshold=0.2),
    ],
    ids=["golem", "dagma"],
)
def test_a_clone_has_the_settings_and_learns_the_same(model: GOLEM | DAGMA) -> None:
    _, X, A = rounds()
    model.fit(X, interventions=A)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "weights_")
    np.testing.assert_array_equal(copy.fit(X, interventions=A).weights_, model.weights_)


@learners
def test_a_second_fit_forgets_the_first(learner: Learner) -> None:
    _, X, A = rounds()
    _, Y, C = rounds(seed=5)
    model = learner().fit(X, interventions=A)
    assert model.fit(Y, interventions=C) is model
    np.testing.assert_array_equal(model.weights_, learner().fit(Y, interventions=C).weights_)


def test_unequal_variances_start_from_the_equal_ones_and_end_elsewhere() -> None:
    _, X, A = rounds()
    equal = GOLEM().fit(X, interventions=A)
    unequal = GOLEM(equal_variances=False).fit(X, interventions=A)
    assert np.isfinite(unequal.weights_).all()
    assert not np.array_equal(equal.weights_, unequal.weights_)


def test_regimes_learned_apart_may_have_no_common_order() -> None:
    """x0 -> x1 when natural, x1 -> x0 when intervened on."""
    natural, intervened = np.zeros((2, 2, 2)), np.zeros((2, 2, 2))
    natural[:, 0, 1] = intervened[:, 1, 0] = 1.5
    rng = np.random.default_rng(0)
    A = np.repeat([0, 1], 500)
    X = np.vstack(
        [LinearSEM(weights=w).sample(np.zeros((500, 2)), rng) for w in (natural, intervened)]
    )
    model = GOLEM().fit(X, interventions=np.column_stack([A, A]))
    assert np.argwhere(model.adjacency_).tolist() == [[0, 0, 1], [1, 1, 0]]
    assert model.order_ is None
