"""Interventions a study may play: nodes never switched, combinations refused, costs.

A node that is never switched is, for the policy, a node whose switch does nothing: it may ask for
either position, the study plays natural, and the policy is told what it asked for. Its two
mechanisms are then the same one, learned twice. This holds for every policy. Past rounds in which
such a node was switched nevertheless are left out of learning.

Combinations and costs need a policy that scores all interventions: the study then plays the best
one allowed by score minus cost, and explores among the allowed ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from causalarms.errors import StudyError
from causalarms.limits import MAX_SCORED_NODES, MAX_TABLE_NODES
from causalarms.models.scores import best_score
from causalarms.policies.base import EXPLORE, Policy, Suggestion
from causalarms.policies.csl_ucb import CSLUCB
from causalarms.policies.posterior import Posterior
from causalarms.rng import stream
from causalarms.search.constraints import Constraints as SearchConstraints
from causalarms.sem.constraints import Constraints
from causalarms.sem.rewards import all_interventions, intervention_of
from causalarms.study.settings import CSL_POLICIES, Settings
from causalarms.study.trials import Record

Bits = npt.NDArray[np.uint8]


class Choice(NamedTuple):
    """What to play, what the policy wanted, and why."""

    intervention: Bits  # (N,)
    wanted: Bits  # (N,), differs in the nodes that are never switched
    suggestion: Suggestion
    constrained: bool  # another intervention than the policy's own first choice


class Limits:
    """The limits of a study's settings."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.fixed = settings.fixed
        self._allowed: npt.NDArray[np.int64] | None = None
        if settings.constrained:
            most = MAX_SCORED_NODES if settings.policy in CSL_POLICIES else MAX_TABLE_NODES
            if settings.n_nodes > most:
                raise StudyError(
                    f"constraints and costs are for at most {most} nodes, not "
                    f"{settings.n_nodes}, which are all scored; intervenable= has no limit"
                )
            self._check_reachable()

    def choose(
        self, policy: Policy, rng: np.random.Generator, pending: Sequence[Bits] = ()
    ) -> Choice:
        """The policy's suggestion, or the best allowed one where limits forbid it.

        `pending` interventions were asked before and have not been told yet.
        """
        suggestion = policy.suggest_beside(rng, pending)
        wanted = suggestion.intervention
        changed = False
        if self.settings.constrained:
            wanted, suggestion = self._constrained(policy, suggestion, rng, pending)
            changed = True
        played = np.where(self.fixed, 0, wanted).astype(np.uint8)
        return Choice(played, wanted, suggestion, changed)

    def learnable(self, record: Record) -> bool:
        """All values measured, and no switch moved that the policy believes to be idle."""
        return record.complete and not (np.array(record.intervention)[self.fixed] == 1).any()

    def as_told(self, record: Record) -> Bits:
        """What the policy is told was played: idle switches as it wanted them, else by a coin."""
        played = np.array(record.intervention, dtype=np.uint8)
        if not self.fixed.any():
            return played
        wanted = np.array(record.wanted or (), dtype=np.uint8)
        if not len(wanted):
            coins = stream(self.settings.seed, "idle switch", record.number)
            wanted = coins.integers(0, 2, len(played), dtype=np.uint8)
        return np.where(self.fixed, wanted, played).astype(np.uint8)

    def allows(self, interventions: Bits) -> npt.NDArray[np.bool_]:
        """Which rows (n, N) may be played."""
        limits = self.settings
        allowed = ~(interventions[:, self.fixed] == 1).any(axis=1)
        if limits.max_interventions is not None:
            allowed &= interventions.sum(axis=1) <= limits.max_interventions
        for group in limits.forbidden:
            columns = [limits.nodes.index(node) for node in group]
            allowed &= ~(interventions[:, columns] == 1).all(axis=1)
        return allowed

    def allowed_rows(self, most: int) -> Bits | None:
        """All interventions that may be played; None where there may be more than `most`."""
        free = np.flatnonzero(~self.fixed)
        if 2 ** len(free) > most:
            return None
        rows = np.zeros((2 ** len(free), self.settings.n_nodes), dtype=np.uint8)
        rows[:, free] = all_interventions(len(free))
        return np.ascontiguousarray(rows[self.allows(rows)])

    def for_search(self) -> SearchConstraints:
        """The same limits for a search that does not enumerate."""
        nodes, limits = self.settings.nodes, self.settings
        return Constraints(
            never_on=[node for node, fixed in zip(nodes, self.fixed, strict=True) if fixed],
            at_most=limits.max_interventions,
            cost=[limits.costs.get(node, 0.0) for node in nodes],
            forbidden=[dict.fromkeys(group, 1) for group in limits.forbidden],
        ).over(nodes)

    def cost(self, interventions: Bits) -> npt.NDArray[np.float64]:
        """What playing each row (n, N) costs."""
        price = np.array([self.settings.costs.get(node, 0.0) for node in self.settings.nodes])
        return interventions @ price

    def _constrained(
        self,
        policy: Policy,
        suggestion: Suggestion,
        rng: np.random.Generator,
        pending: Sequence[Bits],
    ) -> tuple[Bits, Suggestion]:
        allowed = self._allowed_arms()
        if isinstance(policy, Posterior):
            arms = intervention_of(allowed, policy.n_nodes)
            arms[:, self.fixed] = 0
            suggestion = policy.suggest_among(rng, allowed, self.cost(arms), pending)
            return suggestion.intervention, suggestion
        assert isinstance(policy, CSLUCB)  # the settings see to it
        bounds = policy.upper_bounds()
        if bounds is None:
            arm = int(rng.choice(allowed))
            bits = intervention_of(arm, policy.n_nodes)
            return bits, Suggestion(bits, EXPLORE, why=suggestion.why)
        arms = intervention_of(allowed, policy.n_nodes)
        arms[:, self.fixed] = 0
        arm = int(allowed[best_score(bounds[allowed] - self.cost(arms))])
        bits = intervention_of(arm, policy.n_nodes)
        mean, width = policy.score_of(arm)
        return bits, Suggestion(bits, suggestion.reason, mean, width, suggestion.why)

    def _allowed_arms(self) -> npt.NDArray[np.int64]:
        """Indices of what the policy may want; idle switches count as natural."""
        if self._allowed is None:
            arms = all_interventions(self.settings.n_nodes)
            arms[:, self.fixed] = 0
            self._allowed = np.flatnonzero(self.allows(arms))
        return self._allowed

    def _check_reachable(self) -> None:
        """One node alone must be allowed, or it is never switched and should say so."""
        for position, node in enumerate(self.settings.nodes):
            alone = np.zeros((1, self.settings.n_nodes), dtype=np.uint8)
            alone[0, position] = 1
            if not self.fixed[position] and not self.allows(alone)[0]:
                raise StudyError(f"the constraints never allow {node!r} to be switched")
