"""Constraints and costs, kept by policies: the best of what is allowed, by enumeration."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from causalarms import make_policy, random_sem
from causalarms.errors import ModelError, SettingError
from causalarms.models.belief import rewards_of
from causalarms.models.draws import most_optimistic, rank_of, upper_values
from causalarms.policies.simple import nearest_allowed, random_intervention
from causalarms.search.constraints import Constraints, unconstrained

REGIMES = [1, 2, 3, 2, 2]
SEM = random_sem(5, seed=2, regimes=REGIMES)
ALLOWED = Constraints(
    REGIMES,
    at_most=2,
    forbidden=[{1: 1, 2: [1, 2]}],
    cost=[[0], [0, 1], [0, 0.2, 0.4], [0, 0], [0, 3]],
)


def told(name: str, rounds: int = 150, **settings: Any) -> Any:
    policy = make_policy(name, n_nodes=5, regimes=REGIMES, noise_mean=1.0, horizon=400, **settings)
    rng = np.random.default_rng(1)
    for _ in range(rounds):
        a = random_intervention(rng, unconstrained(tuple(REGIMES)))
        policy.tell(a, SEM.sample(a[None], rng)[0])
    return policy


def test_posterior_plays_the_highest_net_quantile() -> None:
    policy = told("posterior", decide="quantile")
    draws = policy._system.draw(np.random.default_rng(4), policy.config.draws)
    rows = ALLOWED.interventions()
    upper = upper_values(rewards_of(draws, rows, 4), rank_of(0.9, policy.config.draws))
    expected = rows[np.argmax(upper - ALLOWED.cost(rows))]
    found = policy.constrain(ALLOWED).suggest(np.random.default_rng(4))
    assert found.intervention.tolist() == expected.tolist()
    origin = policy._system.rounds.origin[4]
    assert found.mean == pytest.approx(rewards_of(draws, expected[None], 4).mean() + origin)


def test_many_rows_and_searches_agree_with_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    draws = told("posterior")._system.draw(np.random.default_rng(4), 20)
    answers = []
    for table, rows in ((15, 2**15), (0, 2**15), (0, 1)):
        monkeypatch.setattr("causalarms.models.draws.MAX_TABLE_NODES", table)
        monkeypatch.setattr("causalarms.models.draws.MAX_ROWS", rows)
        answers.append(most_optimistic(draws, 4, 0.9, allowed=ALLOWED))
    for other in answers[1:]:
        assert other.intervention.tolist() == answers[0].intervention.tolist()
        assert other.upper == pytest.approx(answers[0].upper)
        assert other.mean == pytest.approx(answers[0].mean)


@pytest.mark.parametrize("name", ["csl-ucb", "ucb", "posterior"])
def test_the_highest_bound_net_of_costs(name: str) -> None:
    """Without costs and constraints that matter, it is what the policy plays anyway."""
    policy = told(name, 405)  # and not a test
    free = policy.suggest(np.random.default_rng(0))
    assert free.reason == "exploit"
    loose = Constraints(REGIMES, at_most=4)
    again = policy.constrain(loose).suggest(np.random.default_rng(0))
    assert again.intervention.tolist() == free.intervention.tolist()
    dear = np.flatnonzero(free.intervention)
    costs = [
        [1e6 * (node in dear and r == free.intervention[node]) for r in range(k)]
        for node, k in enumerate(REGIMES)
    ]
    cheap = policy.constrain(Constraints(REGIMES, cost=costs)).suggest(np.random.default_rng(0))
    assert not (cheap.intervention[dear] == free.intervention[dear]).any()


def test_csl_ucb_refuses_what_it_could_never_learn() -> None:
    policy = make_policy("csl-ucb", n_nodes=5, regimes=REGIMES, noise_mean=1.0, horizon=400)
    never = Constraints(REGIMES, allowed={2: [0, 1]})
    with pytest.raises(SettingError, match="node 'x2' can never be in regime 2"):
        policy.constrain(never)


def test_constraints_of_other_nodes_are_refused() -> None:
    two = Constraints([2, 2], at_most=1)
    with pytest.raises(ModelError, match="constraints on 2 nodes, but there are 5"):
        make_policy("random", n_nodes=5, regimes=REGIMES, constraints=two)


def test_the_oracle_knows_the_best_allowed() -> None:
    policy = make_policy("oracle", n_nodes=5, systems=[SEM], constraints=ALLOWED)
    rows = ALLOWED.interventions()
    net = SEM.expected_reward(rows) - ALLOWED.cost(rows)
    found = policy.suggest(np.random.default_rng(0))
    assert found.intervention.tolist() == rows[np.argmax(net)].tolist()
    assert found.mean == pytest.approx(SEM.expected_reward(found.intervention[None])[0])


def test_nearest_of_few_and_of_many(monkeypatch: pytest.MonkeyPatch) -> None:
    rng, wanted = np.random.default_rng(0), np.array([0, 1, 2, 1, 1], dtype=np.uint8)
    rows = ALLOWED.interventions()
    least = (rows != wanted).sum(axis=1).min()
    assert (nearest_allowed(wanted, ALLOWED, rng) != wanted).sum() == least
    monkeypatch.setattr("causalarms.policies.simple.MAX_ARMS_IN_LIST", 1)
    assert (nearest_allowed(wanted, ALLOWED, rng) != wanted).sum() == least
    assert ALLOWED.allows(random_intervention(rng, ALLOWED)[None])[0]
