"""The best intervention of estimated models, with and without a common order."""

from __future__ import annotations

import numpy as np
import pytest

from causalarms import random_sem
from causalarms.errors import ModelError
from causalarms.models import best_of_model as module
from causalarms.models.best_of_model import best_and_neighbours, best_of_model
from causalarms.models.linear import MechanismWeights, best_score, score_interventions
from causalarms.sem import all_interventions
from causalarms.sem.regimes import topological_order


def model_of(n_nodes: int, seed: int, n_backwards: int) -> MechanismWeights:
    """A random system with some intervened edges against the order: the regimes mix into cycles."""
    sem = random_sem(n_nodes, seed=seed, expected_degree=2)
    weights = sem.weights.copy()
    rng = np.random.default_rng(seed)
    for position in rng.choice(n_nodes - 2, n_backwards, replace=False):
        parent, child = sem.order[position + 1], sem.order[position]
        weights[0, child, parent], weights[1, :, child] = 1.0, 0.0
        weights[1, parent, child], weights[1, child, :] = 1.5, 0.0
    union = (weights != 0).any(axis=0)
    nothing = np.zeros((2, n_nodes))
    return MechanismWeights(
        weights, np.ones((2, n_nodes)), nothing + 1, nothing, nothing.astype(np.int64),
        topological_order(union),
    )  # fmt: skip


@pytest.mark.parametrize("n_backwards", [0, 1, 3])
def test_patterns_on_cycles_are_full_enumeration(
    monkeypatch: pytest.MonkeyPatch, n_backwards: int
) -> None:
    for seed in range(5):
        model = model_of(10, seed, n_backwards)
        assert (model.order is None) == (n_backwards > 0)
        arms = all_interventions(10)
        scores = score_interventions(model, arms, 9)
        expected = float(np.nanmax(scores.mean))
        enumerated = best_of_model(model, 9)
        assert enumerated.mean == pytest.approx(expected, rel=1e-9)
        monkeypatch.setattr(module, "MAX_SCORED_NODES", 0)
        searched = best_of_model(model, 9)
        monkeypatch.setattr(module, "MAX_PATTERN_NODES", 0)
        improved = best_of_model(model, 9)
        monkeypatch.undo()
        assert searched.proven
        assert searched.mean == pytest.approx(expected, rel=1e-9)
        assert searched.n_cyclic == scores.n_cyclic == enumerated.n_cyclic
        assert improved.proven == (n_backwards == 0)
        assert improved.mean <= expected * (1 + 1e-9)
        for found in (searched, improved):
            own = score_interventions(model, found.intervention[None], 9).mean[0]
            assert own == pytest.approx(found.mean, rel=1e-9)


def test_a_model_that_is_cyclic_under_every_intervention_is_refused() -> None:
    weights = np.zeros((2, 22, 22))
    weights[:, 0, 1] = weights[:, 1, 0] = 1.0
    nothing = np.zeros((2, 22))
    model = MechanismWeights(weights, nothing, nothing, nothing, nothing.astype(np.int64), None)
    with pytest.raises(ModelError, match="cyclic under every intervention"):
        best_of_model(model, 21)


def test_candidates_hold_the_best_by_mean_and_its_neighbours() -> None:
    model = model_of(12, 1, 0)
    found = best_and_neighbours(model, 11, m=5)
    arms = all_interventions(12)
    means = score_interventions(model, arms, 11).mean
    best = arms[best_score(means)]
    rows = {tuple(row) for row in found.tolist()}
    assert len(rows) == len(found)
    assert {tuple(row) for row in (best ^ np.eye(12, dtype=np.uint8)).tolist()} < rows
    assert tuple(best.tolist()) in rows
