"""How `posterior` decides: at random, by a quantile of the draws, or by the knowledge gradient.

The first rounds are random if units are to be estimated, and so are the probes after an alarm.
Probes come in groups of R (pairs of opposites if there are two regimes): each moves every node to
its next regime, so that a group plays every mechanism. The knowledge gradient starts with one
random intervention and its opposite in every node, so that two mechanisms of each node are seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms.arrays import Intervention
from causalarms.errors import SettingError
from causalarms.limits import MAX_TABLE_NODES
from causalarms.models.draws import most_optimistic
from causalarms.models.knowledge_gradient import (
    AverageRewards,
    Chosen,
    KnowledgeGradientSettings,
    Situation,
    average_rewards,
    early_round,
    late_round,
)
from causalarms.policies.base import EXPLOIT, EXPLORE, Suggestion
from causalarms.policies.posterior.rounds import FIRST_ROUNDS
from causalarms.policies.posterior.system import AUTO, EXACT, LOOKAHEAD, LearnedSystem
from causalarms.policies.simple import nearest_allowed, random_intervention
from causalarms.posterior.base import Posterior
from causalarms.rng import stream
from causalarms.search.constraints import Constraints
from causalarms.sem.regimes import Counts, n_interventions
from causalarms.sem.rewards import allowed_arms

NODES_IN_A_REASON = 4  # named; the others are counted
MAX_PENDING = 8  # results that are sampled before a candidate's own
RECENT_ROUNDS = 20  # whose usual intervention is kept unless another is clearly better

TO_FIND_CHANGES = "a mechanism has changed: random settings look for others that changed with it"
TO_SEE_SCALES = f"the first {FIRST_ROUNDS} rounds are random: they show the scale of every node"
OPTIMISM = "it is the best, or may well be the best, by what is known so far"
STEADY = "it is the best by what is known so far, and no test is worth its price"
FIRST = "the first two rounds show every node in two of its regimes"


class Progress(NamedTuple):
    """How far a policy has come."""

    n_told: int
    last_alarm: int  # its round; 0: there was none
    refreshed: int  # the last round that the posterior has learned


def random_round(
    rng: np.random.Generator,
    allowed: Constraints,
    *,
    probes_left: int,
    last: Intervention,  # told
    pending: Sequence[Intervention],
) -> Suggestion:
    """A probe while some are left, else one of the first rounds."""
    why = TO_FIND_CHANGES if probes_left else TO_SEE_SCALES
    if not probes_left or (probes_left + len(pending)) % max(*allowed.regimes, 2) == 0:
        return Suggestion(random_intervention(rng, allowed), EXPLORE, why=why)
    probe = next_regimes(pending[-1] if len(pending) else last, allowed, rng)
    return Suggestion(probe, EXPLORE, why=why)


def next_regimes(
    played: Intervention, allowed: Constraints, rng: np.random.Generator
) -> Intervention:
    """Every node in its next regime (of two, the other one), or the nearest that is allowed."""
    moved = ((played.astype(np.int64) + 1) % allowed.regimes).astype(np.uint8)
    return nearest_allowed(moved, allowed, rng)


def by_quantile(
    system: LearnedSystem, reward: int, rng: np.random.Generator, allowed: Constraints
) -> Suggestion:
    """The intervention whose reward has the largest quantile over draws of the system."""
    config = system.config
    best = most_optimistic(
        system.draw(rng, config.draws), reward, config.quantile,
        regimes=system.regimes, allowed=None if allowed.free else allowed,
    )  # fmt: skip
    width = max(best.upper - best.mean, 0.0)  # below 0 if a few draws outweigh the rest
    mean = best.mean + float(system.rounds.origin[reward])
    return Suggestion(best.intervention, EXPLOIT, mean, width, OPTIMISM)


def why_not_lookahead(method: str, regimes: Counts) -> str:
    """What keeps a policy from the knowledge gradient; empty if nothing does."""
    if method != EXACT:
        return f"needs the exact posterior, method 'exact', not {method!r}"
    if n_interventions(regimes) > 2**MAX_TABLE_NODES:
        return (
            f"compares all interventions, at most 2^{MAX_TABLE_NODES} = {2**MAX_TABLE_NODES}, "
            f"and these {len(regimes)} nodes have {n_interventions(regimes)}"
        )
    return ""


def knowledge_gradient_of(system: LearnedSystem, reward: int) -> KnowledgeGradient | None:
    """The knowledge gradient of a policy; None if it decides by quantile."""
    decide, obstacle = system.config.decide, why_not_lookahead(system.method, system.regimes)
    if decide == LOOKAHEAD and obstacle:
        raise SettingError(f"decide='lookahead' {obstacle}; take decide='quantile'")
    ahead = decide in (LOOKAHEAD, AUTO) and not obstacle
    return KnowledgeGradient(system, reward) if ahead else None


class KnowledgeGradient:
    """The knowledge gradient of what a policy has learned; it has no state of its own.

    system   what is learned
    reward   the node to maximise
    """

    def __init__(self, system: LearnedSystem, reward: int) -> None:
        self.system = system
        self.reward = reward
        self.settings = KnowledgeGradientSettings()
        self._average: tuple[Posterior, int, AverageRewards] | None = None

    def suggest(
        self,
        rng: np.random.Generator,
        pending: Sequence[Intervention],
        allowed: Constraints,
        progress: Progress,
    ) -> Suggestion:
        system, settings = self.system, self.settings
        if progress.n_told + len(pending) < 2:
            return Suggestion(self._first(rng, pending, allowed), EXPLORE, why=FIRST)
        posterior, scale = system.posterior, system.scale_of(self.reward)
        arms, cost = (None, None) if allowed.free else allowed_arms(allowed)
        asked = Situation(
            reward=self.reward,
            regimes=system.regimes,
            arms=arms,
            cost=None if cost is None else cost / scale,
            pending=_rows(pending, len(system.regimes)),
            recent=system.rounds.recent.regimes(RECENT_ROUNDS),
            age=progress.n_told - progress.last_alarm + len(pending),
        )
        quantile = system.config.quantile
        if asked.age < settings.early_rounds:
            chosen = early_round(posterior, rng, asked, quantile, settings)
        else:
            average = self._average_rewards(progress.refreshed)
            chosen = late_round(posterior, average, rng, asked, quantile, settings)
        return Suggestion(
            chosen.intervention,
            EXPLOIT if chosen.instead_of is None else EXPLORE,
            system.in_data(chosen.mean, self.reward),
            chosen.width * scale,
            in_words(chosen, scale),
        )

    def _average_rewards(self, as_of: int) -> AverageRewards:
        """Computed once for all rounds in which the posterior is the same."""
        posterior = self.system.posterior
        if self._average is None or self._average[0] is not posterior or self._average[1] != as_of:
            # a stream of its own: the result must not depend on which round asks first
            rng = stream(0, "lookahead", as_of)
            found = average_rewards(posterior, rng, self.reward, self.settings)
            self._average = posterior, as_of, found
        return self._average[2]

    def _first(
        self, rng: np.random.Generator, pending: Sequence[Intervention], allowed: Constraints
    ) -> Intervention:
        played = [*self.system.rounds.recent.regimes(1), *pending]
        if not played:
            return random_intervention(rng, allowed)
        return next_regimes(played[-1], allowed, rng)


def in_words(chosen: Chosen, scale: float) -> str:
    """Why it is played; nodes are 'x3', which a study replaces by their names."""
    if chosen.instead_of is None:
        return STEADY
    differs = [f"'x{i}'" for i in np.flatnonzero(chosen.intervention != chosen.instead_of)]
    if len(differs) > NODES_IN_A_REASON:
        differs[NODES_IN_A_REASON - 1 :] = [f"{len(differs) - NODES_IN_A_REASON + 1} other nodes"]
    nodes = " and ".join(filter(None, [", ".join(differs[:-1]), differs[-1]]))
    return (
        f"tests whether {nodes} should change: expected to save {_short(chosen.saved * scale)} "
        f"over the next {chosen.rounds} rounds, costs {_short(max(chosen.paid, 0.0) * scale)}"
    )


def _short(value: float) -> str:
    return f"{value:.0f}" if 100 <= abs(value) < 1e6 else f"{value:.2g}"


def _rows(pending: Sequence[Intervention], n_nodes: int) -> npt.NDArray[np.uint8]:
    rows = np.array(list(pending)[-MAX_PENDING:], dtype=np.uint8)
    return np.ascontiguousarray(rows.reshape(-1, n_nodes))
