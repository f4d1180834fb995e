"""One run of a policy in a world: the round loop, and what is known afterwards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from causalarms.arrays import BoolArray, FloatArray, Interventions
from causalarms.changes.detector import Alarm
from causalarms.checks import integer
from causalarms.errors import ModelError
from causalarms.graphs.graph import graph_errors
from causalarms.models.belief import Recommendation
from causalarms.policies.base import Policy, Suggestion
from causalarms.policies.stopping import StopRule
from causalarms.rng import stream
from causalarms.sem.linear_sem import LinearSEM
from causalarms.simulation.world import World

OPTIMAL_WITHIN = 1e-2  # "optimal" = expected reward within this of the best (docs/paper-map.md)


@dataclass(frozen=True)
class Trace:
    """A run round by round. Regret is of expected rewards, as Sec. II-B defines it."""

    interventions: Interventions  # (T, N)
    observations: FloatArray  # (T, N)
    gap: FloatArray  # (T,), best expected reward minus that of the round
    explored: BoolArray  # (T,), rounds the policy called exploration
    alarms: list[Alarm] = field(default_factory=list)
    graphs: list[tuple[Any, ...]] = field(default_factory=list)  # round, errors per regime
    recommendation: Recommendation | None = None  # at the last look of a stop rule

    @property
    def regret(self) -> FloatArray:
        """Cumulative expected regret, (T,)."""
        return np.cumsum(self.gap)

    @property
    def optimal(self) -> BoolArray:
        """Rounds whose expected reward was the best within 1e-2, (T,)."""
        return self.gap <= OPTIMAL_WITHIN

    @property
    def simple_regret(self) -> FloatArray:
        """The smallest gap so far, (T,)."""
        return np.minimum.accumulate(self.gap)

    @property
    def rounds_to_lasting_optimum(self) -> int | None:
        """The first round from which all are optimal; None if the last one is not."""
        wrong = np.flatnonzero(~self.optimal)
        if len(wrong) and wrong[-1] == len(self.gap) - 1:
            return None
        return int(wrong[-1]) + 2 if len(wrong) else 1

    def optimal_share(self, block: int = 100) -> FloatArray:
        """Fraction of optimal rounds per block of rounds.

        block   rounds; those of an incomplete last block are left out
        """
        complete = len(self.gap) // block * block
        return self.optimal[:complete].reshape(-1, block).mean(axis=1)


def simulate(
    policy: Policy,
    world: World | LinearSEM,
    *,
    horizon: int,
    seed: int = 0,
    graph_every: int | None = None,
    on_round: Callable[[int, Suggestion, float], None] | None = None,
    batch: int = 1,
    stop: StopRule | None = None,
) -> Trace:
    """Play a policy round by round.

    policy        asked and told, once per round
    world         what it is played in; a system is a world that never changes
    horizon       number of rounds
    seed          the same seed gives every policy the same noise
    graph_every   record the errors of the policy's graph, regime by regime, every so many rounds
    on_round      `on_round(round, suggestion, gap)` is called after each round
    batch         how many interventions are asked for and played before any result is told
    stop          ends the run early; the trace then holds what was recommended
    """
    world = World(world) if isinstance(world, LinearSEM) else world
    _check(policy, world, horizon, batch)
    n_nodes = world.n_nodes
    # once per system: the best intervention takes a search
    best = np.array([world.best_reward(number) for number in range(len(world.systems))])
    numbers = np.array([world.number_at(t + 1) for t in range(horizon)])
    # apart from the policy, so that what a policy draws does not change the noise it meets
    noise = stream(seed, "noise")
    interventions = np.empty((horizon, n_nodes), dtype=np.uint8)
    observations = np.empty((horizon, n_nodes))
    explored = np.empty(horizon, dtype=bool)
    graphs: list[tuple[Any, ...]] = []
    recommendation, n_played = None, horizon
    asked: list[Suggestion] = []
    for t in range(horizon):
        # a stream per round: what earlier rounds drew does not change this one
        if batch > 1 and t % batch == 0:
            asked = policy.suggest_batch(stream(seed, "policy", t), batch)
        suggestion = policy.suggest(stream(seed, "policy", t)) if batch == 1 else asked[t % batch]
        a = suggestion.intervention
        interventions[t] = a
        observations[t] = world.play(t + 1, a, noise)
        # results of a batch arrive together, and in the order in which they were asked for
        if (t + 1) % batch == 0 or t + 1 == horizon:
            for row in range(t - t % batch, t + 1):
                policy.tell(interventions[row], observations[row])
        explored[t] = suggestion.reason == "explore"
        if graph_every and (t + 1) % graph_every == 0 and policy.adjacency is not None:
            pairs = zip(world.adjacency(numbers[t]), policy.adjacency, strict=True)
            graphs.append((t + 1, *(graph_errors(true, found) for true, found in pairs)))
        # only for those who watch: rewards of all rounds are computed at once below
        if on_round is not None:
            reward = float(world.expected_reward(a[None], numbers[t])[0])
            on_round(t + 1, suggestion, float(best[numbers[t]]) - reward)
        if stop is not None and (t + 1) % stop.every == 0:
            recommendation = stop.look(policy)
            if stop.met(recommendation):
                n_played = t + 1
                break
    # all rounds of a system at once: one call costs about as much as one round of it
    rewards, played = np.empty(n_played), numbers[:n_played]
    for number in np.unique(played):
        rewards[played == number] = world.expected_reward(
            interventions[:n_played][played == number], number
        )
    return Trace(
        interventions[:n_played],
        observations[:n_played],
        best[played] - rewards,
        explored[:n_played],
        list(policy.alarms),
        graphs,
        recommendation,
    )


def _check(policy: Policy, world: World, horizon: int, batch: int) -> None:
    """ModelError if the run makes no sense, or the policy is for another world."""
    integer("horizon", horizon, minimum=1)
    integer("batch", batch, minimum=1)
    if policy.n_nodes != world.n_nodes or policy.reward != world.reward:
        raise ModelError(
            f"the policy is for {policy.n_nodes} nodes with reward {policy.reward}, the world has "
            f"{world.n_nodes} with reward {world.reward}"
        )
    if not np.array_equal(policy.regimes, world.regimes):
        raise ModelError(
            f"the policy takes the nodes to have {policy.regimes.tolist()} regimes, the world has "
            f"{world.regimes.tolist()}: tell the policy (regimes=)"
        )
    allowed = world.constraints
    if allowed is not None and policy.constraints.factors != allowed.factors:
        raise ModelError(
            "the policy does not know the factors of the world, whose columns are set together: "
            "tell the policy (make_policy(..., constraints=world.constraints))"
        )
