"""The removal history: replaying it gives the graph, and each step was the largest score."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from random_rounds import random_rounds

from causalarms import CSL
from causalarms.graphs.csl import Removal


@pytest.mark.parametrize("seed", range(4))
def test_replay_gives_the_adjacency(seed: int) -> None:
    sem, X, A = random_rounds(6, 120, seed)
    model = CSL().fit(X, interventions=A, noise_mean=sem.noise_mean)
    left = np.broadcast_to(~np.eye(6, dtype=bool), (2, 6, 6)).copy()
    for removal in model.history_:
        union = nx.DiGraph([(p, c) for _, p, c in np.argwhere(left).tolist()])
        assert not nx.is_directed_acyclic_graph(union)  # nothing is removed without need
        assert left[removal.regime, removal.parent, removal.child]
        left[removal.regime, removal.parent, removal.child] = False
    np.testing.assert_array_equal(left, model.adjacency_)


@pytest.mark.parametrize("seed", range(3))
def test_each_removal_had_the_largest_score(seed: int) -> None:
    """A fit with the earlier removals excluded starts from the scores of that step."""
    sem, X, A = random_rounds(4, 100, seed)
    model = CSL(joint=False).fit(X, interventions=A, noise_mean=sem.noise_mean)
    history = [r for r in model.history_ if r.regime == 0]
    assert history
    for step, removal in enumerate(history):
        gone = [(f"x{r.parent}", f"x{r.child}") for r in history[:step]]
        again = CSL(joint=False, excluded=gone)
        again.fit(X, interventions=A, noise_mean=sem.noise_mean)
        first = next(r for r in again.history_ if r.regime == 0)
        assert (first.parent, first.child) == (removal.parent, removal.child)
        assert first.score == pytest.approx(removal.score, rel=1e-8)


def test_remaining_scores_are_those_of_the_final_columns() -> None:
    sem, X, A = random_rounds(5, 120, 1)
    model = CSL().fit(X, interventions=A, noise_mean=sem.noise_mean)
    np.testing.assert_array_equal(~np.isnan(model.scores_), model.adjacency_)


def test_the_callback_sees_every_removal_as_it_happens() -> None:
    sem, X, A = random_rounds(5, 120, 1)
    seen: list[Removal] = []
    ordered: list[int] = []

    def watch(removal: Removal, nodes_ordered: int) -> None:
        seen.append(removal)
        ordered.append(nodes_ordered)

    model = CSL(joint=True).fit(X, interventions=A, noise_mean=sem.noise_mean, on_removal=watch)
    assert seen == model.history_
    assert ordered == sorted(ordered)
    assert ordered[-1] == 5
    assert all(n < 5 for n in ordered[:-1])
