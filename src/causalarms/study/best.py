"""The best intervention known, and predictions of any, with their uncertainty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from scipy import stats

from causalarms.errors import TooEarlyError
from causalarms.models.belief import recommend
from causalarms.sem.factors import Level
from causalarms.study.beliefs import Beliefs

NAN = float("nan")


@dataclass(frozen=True)
class Best:
    """Known so far; `basis` says from what. What nobody can know is nan."""

    intervention: dict[str, int]  # node -> regime
    reward: float
    low: float  # 95 % interval of the expected reward
    high: float
    cost: float
    probability: float  # that no allowed intervention is better, net of costs
    expected_loss: float  # net reward per round forgone by playing it for ever, on average
    basis: str
    levels: dict[str, Level] = field(default_factory=dict)  # factor -> level
    switch: list[str] = field(default_factory=list)  # factors that are not at their first level

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def predict(beliefs: Beliefs, interventions: Sequence[Sequence[int]]) -> list[dict[str, Any]]:
    nodes, named = beliefs.settings.nodes, beliefs.settings.named
    rows = np.array(interventions, dtype=np.uint8).reshape(-1, len(nodes))
    mean, low, high = beliefs.expected(rows)
    return [
        {
            "intervention": dict(zip(nodes, map(int, rows[i]), strict=True)),
            "levels": named.levels(rows[i]),
            "expected": {
                node: dict(zip(("mean", "low", "high"), map(float, numbers), strict=True))
                for node, *numbers in zip(nodes, mean[i], low[i], high[i], strict=True)
            },
        }
        for i in range(len(rows))
    ]


def best(beliefs: Beliefs, *, tolerance: float = 0.0) -> Best:
    if beliefs.belief is None:
        return _best_average(beliefs)
    settings = beliefs.settings
    found = recommend(
        beliefs.belief, settings.reward_index, settings.constraints, tolerance=tolerance
    )
    mean, low, high = (settings.sign * float(number) for number in found.reward)
    graphs = "all graphs" if beliefs.belief.weighs_graphs else "its one learned graph"
    return Best(
        intervention=dict(zip(settings.nodes, map(int, found.intervention), strict=True)),
        levels=settings.named.levels(found.intervention.tolist()),
        switch=settings.named.switched(found.intervention.tolist()),
        reward=mean,
        low=min(low, high),
        high=max(low, high),
        cost=found.cost,
        probability=found.probability,
        expected_loss=found.expected_loss,
        basis=f"{len(beliefs.values)} rounds, averaged over {graphs}"
        if beliefs.belief.weighs_graphs
        else f"{len(beliefs.values)} rounds, given {graphs}: doubts about it are not included",
    )


def _best_average(beliefs: Beliefs) -> Best:
    """Without a model: the played intervention with the best average."""
    settings = beliefs.settings
    if beliefs.has_model or not len(beliefs.values):
        raise TooEarlyError(beliefs.why_nothing)
    arms, which = np.unique(beliefs.regimes, axis=0, return_inverse=True)
    reward = beliefs.values[:, settings.reward_index]
    counts = np.bincount(which)
    means = np.bincount(which, reward) / counts
    allowed = settings.constraints
    net = np.where(allowed.allows(arms), settings.sign * means - allowed.cost(arms), -np.inf)
    top = int(np.argmax(net))
    error = NAN
    if counts[top] > 1:
        spread = float(reward[which == top].std(ddof=1))
        error = float(stats.t.ppf(0.975, counts[top] - 1)) * spread / np.sqrt(counts[top])
    return Best(
        intervention=dict(zip(settings.nodes, map(int, arms[top]), strict=True)),
        levels=settings.named.levels(arms[top]),
        switch=settings.named.switched(arms[top]),
        reward=float(means[top]),
        low=float(means[top] - error),
        high=float(means[top] + error),
        cost=float(allowed.cost(arms[top : top + 1])[0]),
        probability=NAN,
        expected_loss=NAN,
        basis=f"the average of {counts[top]} round(s): {beliefs.why_nothing}",
    )
