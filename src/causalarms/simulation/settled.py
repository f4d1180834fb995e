"""A run that stopped early, played on with what it recommends, to compare it with others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from causalarms.simulation.simulate import Trace
from causalarms.simulation.world import World


def settled(trace: Trace, world: World, horizon: int) -> Trace:
    """The recommended intervention in all rounds that are left; their values are not measured."""
    left = horizon - len(trace.gap)
    if not left or trace.recommendation is None:
        return trace
    a = np.asarray(trace.recommendation.intervention, dtype=np.uint8)
    lost = [
        world.best_reward(number) - float(world.expected_reward(a[None], number)[0])
        for number in range(len(world.systems))
    ]
    rounds = range(len(trace.gap) + 1, horizon + 1)
    return replace(
        trace,
        interventions=np.vstack([trace.interventions, np.tile(a, (left, 1))]),
        observations=np.vstack([trace.observations, np.full((left, len(a)), np.nan)]),
        gap=np.append(trace.gap, [lost[world.number_at(t)] for t in rounds]),
        explored=np.append(trace.explored, np.zeros(left, dtype=bool)),
    )
