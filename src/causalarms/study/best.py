"""The best intervention known, and predictions of any, with their uncertainty."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from causalarms.errors import StudyError
from causalarms.graphs.regime_names import mechanism_name
from causalarms.sem.rewards import (
    all_expected_rewards,
    all_interventions,
    expected_values,
    intervention_of,
)
from causalarms.study.beliefs import Beliefs, Bits

CANDIDATES = 50  # interventions compared draw by draw
ENUMERABLE = 20


@dataclass(frozen=True)
class Best:
    """Known so far; `basis` says from what. Probabilities are nan before there is a model."""

    intervention: dict[str, int]
    reward: float
    low: float  # 95 % interval of the expected reward
    high: float
    cost: float
    probability: float  # that none of the candidates is better
    expected_loss: float  # of playing it for ever, against the best candidate
    basis: str

    @property
    def switch(self) -> list[str]:
        return [node for node, regime in self.intervention.items() if regime]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"switch": self.switch}


def predict(beliefs: Beliefs, interventions: list[list[int]]) -> list[dict[str, Any]]:
    nodes = beliefs.settings.nodes
    rows = np.array(interventions, dtype=np.uint8).reshape(-1, len(nodes))
    _refuse_unknown(beliefs, rows)
    assert beliefs.order is not None
    means = expected_values(beliefs.weights, beliefs.intercept, beliefs.order, rows)
    low, high = np.quantile(beliefs.draws(rows), [0.025, 0.975], axis=0)
    return [
        {
            "intervention": dict(zip(nodes, map(int, rows[i]), strict=True)),
            "expected": {
                node: dict(zip(("mean", "low", "high"), map(float, numbers), strict=True))
                for node, *numbers in zip(nodes, means[i], low[i], high[i], strict=True)
            },
        }
        for i in range(len(rows))
    ]


def best(beliefs: Beliefs) -> Best:
    arms = candidates(beliefs)
    if not len(arms):
        return _best_average(beliefs)
    settings = beliefs.settings
    assert beliefs.order is not None
    reward = settings.reward_index
    mean = expected_values(beliefs.weights, beliefs.intercept, beliefs.order, arms[:1])[0, reward]
    cost = beliefs.limits.cost(arms)
    samples = beliefs.draws(arms)[:, :, reward]
    net = settings.sign * samples - cost
    low, high = np.quantile(samples[:, 0], [0.025, 0.975])
    return Best(
        intervention=dict(zip(settings.nodes, map(int, arms[0]), strict=True)),
        reward=float(mean),
        low=float(low),
        high=float(high),
        cost=float(cost[0]),
        probability=float((net[:, 0] >= net.max(axis=1)).mean()),
        expected_loss=float((net.max(axis=1) - net[:, 0]).mean()),
        basis=f"the learned model ({len(beliefs.values)} rounds)",
    )


def candidates(beliefs: Beliefs) -> Bits:
    """Allowed, predictable interventions, best expected net reward first, (at most 50, N)."""
    settings, limits = beliefs.settings, beliefs.limits
    if beliefs.order is None or not len(beliefs.values):
        return np.zeros((0, settings.n_nodes), dtype=np.uint8)
    reward = settings.reward_index
    if settings.n_nodes <= ENUMERABLE:
        arms = all_interventions(settings.n_nodes)
        usable = np.flatnonzero(limits.allows(arms) & beliefs.predictable(arms))
        arms = intervention_of(usable, settings.n_nodes)
        means = all_expected_rewards(beliefs.weights, beliefs.intercept, beliefs.order, reward)
        means = means[usable]
    else:
        arms = np.unique(beliefs.regimes, axis=0)
        arms = np.ascontiguousarray(arms[limits.allows(arms) & beliefs.predictable(arms)])
        means = expected_values(beliefs.weights, beliefs.intercept, beliefs.order, arms)[:, reward]
    net = settings.sign * means - limits.cost(arms)
    return np.ascontiguousarray(arms[np.argsort(-net, kind="stable")[:CANDIDATES]])


def _best_average(beliefs: Beliefs) -> Best:
    """Before there is a model: the played intervention with the best average."""
    settings, limits = beliefs.settings, beliefs.limits
    if not len(beliefs.values):
        raise StudyError("no round has been told yet: there is no best intervention to speak of")
    arms, which = np.unique(beliefs.regimes, axis=0, return_inverse=True)
    reward = beliefs.values[:, settings.reward_index]
    counts = np.bincount(which)
    means = np.bincount(which, reward) / counts
    net = np.where(limits.allows(arms), settings.sign * means - limits.cost(arms), -np.inf)
    top = int(np.argmax(net))
    error = 1.96 * float(reward.std()) / np.sqrt(counts[top])
    return Best(
        intervention=dict(zip(settings.nodes, map(int, arms[top]), strict=True)),
        reward=float(means[top]),
        low=float(means[top] - error),
        high=float(means[top] + error),
        cost=float(limits.cost(arms[top : top + 1])[0]),
        probability=float("nan"),
        expected_loss=float("nan"),
        basis=f"the average of {counts[top]} round(s); there is no model yet",
    )


def _refuse_unknown(beliefs: Beliefs, rows: Bits) -> None:
    if beliefs.problem:
        raise StudyError(f"no graph can be learned from these rounds: {beliefs.problem}")
    for i in np.flatnonzero(~beliefs.predictable(rows)):
        known = beliefs.known
        for node in range(beliefs.settings.n_nodes):
            regime = int(rows[i, node])
            if not known[regime, node]:
                name = mechanism_name(beliefs.settings.nodes, regime, node)
                raise StudyError(f"{name} has too few rounds for a prediction yet")
        raise StudyError("the learned graphs of both regimes mix into a cycle: no prediction")
