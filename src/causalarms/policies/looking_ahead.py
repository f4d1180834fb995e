"""How `posterior` looks ahead: what it asks `models/lookahead`, and the answer in words.

The first intervention is random and the second its opposite in every node, so that each mechanism
has been seen; from then on results are worth what they save. How many rounds follow is not known:
as many as a multiple of those played.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from causalarms.arrays import Intervention
from causalarms.checks import choice
from causalarms.errors import SettingError
from causalarms.limits import MAX_CORE_NODES, MAX_TABLE_NODES
from causalarms.models.lookahead.average import OnAverage, on_average
from causalarms.models.lookahead.early import early_round
from causalarms.models.lookahead.late import late_round
from causalarms.models.lookahead.model import AnyPosterior
from causalarms.models.lookahead.situation import Chosen, Lookahead, Situation
from causalarms.policies.base import EXPLOIT, EXPLORE, Suggestion
from causalarms.policies.random_rounds import moved_on
from causalarms.policies.simple import random_intervention
from causalarms.rng import stream
from causalarms.search.constraints import Constraints
from causalarms.sem.regimes import Counts, n_interventions
from causalarms.sem.rewards import allowed_arms, within

if TYPE_CHECKING:
    from causalarms.policies.posterior import Posterior

QUANTILE, LOOKAHEAD, AUTO = WAYS = ("quantile", "lookahead", "auto")
MOST_NAMED = 4  # nodes in a reason
MOST_PENDING = 8  # results that are imagined before a candidate's own
RECENT = 20  # rounds whose usual intervention is kept unless another is clearly better
STEADY = "it is the best by what is known so far, and no test is worth its price"
FIRST = "the first two rounds show every node in two of its regimes"


class LookingAhead:
    """Decides for a policy, from its state alone."""

    def __init__(self, policy: Posterior, settings: Lookahead | None = None) -> None:
        obstacle = why_not(policy)
        if obstacle:
            raise SettingError(f"decide='lookahead' {obstacle}")
        self.policy = policy
        self.settings = settings or Lookahead()
        self._average: tuple[AnyPosterior, int, OnAverage] | None = None

    def suggest(
        self,
        rng: np.random.Generator,
        posterior: AnyPosterior,
        pending: Sequence[Intervention],
        kept: Constraints | None,
    ) -> Suggestion:
        policy = self.policy
        if policy.n_told + len(pending) < 2:
            return Suggestion(self._first(rng, pending, kept), EXPLORE, why=FIRST)
        scale = policy.reward_scale
        arms, cost, among = None, None, None
        if too_many(policy.regimes):
            among = in_units(within(policy.regimes, kept), scale)
        elif kept is not None:
            arms, cost = allowed_arms(kept)
        since = policy.alarms[-1].round if policy.alarms else 0
        asked = Situation(
            reward=policy.reward,
            regimes=policy.regimes,
            arms=arms,
            cost=None if cost is None else cost / scale,
            pending=_rows(pending, policy.n_nodes),
            recent=policy.last_interventions(RECENT),
            age=policy.n_told - since + len(pending),
            among=among,
        )
        if asked.age < self.settings.early:
            chosen = early_round(posterior, rng, asked, policy.quantile, self.settings)
        else:
            average = self._on_average(posterior, asked)
            chosen = late_round(posterior, average, rng, asked, policy.quantile, self.settings)
        return Suggestion(
            chosen.intervention,
            EXPLOIT if chosen.instead_of is None else EXPLORE,
            policy.reward_in_data(chosen.mean),
            chosen.width * scale,
            in_words(chosen, scale),
        )

    def _on_average(self, posterior: AnyPosterior, asked: Situation) -> OnAverage:
        """Computed once for all rounds in which the posterior is the same."""
        as_of = self.policy.refreshed
        if self._average is None or self._average[0] is not posterior or self._average[1] != as_of:
            rng = stream(0, "lookahead", as_of)
            found = on_average(posterior, rng, asked, self.settings)
            self._average = posterior, as_of, found
        return self._average[2]

    def _first(
        self,
        rng: np.random.Generator,
        pending: Sequence[Intervention],
        kept: Constraints | None,
    ) -> Intervention:
        played = [*self.policy.last_interventions(1), *pending]
        if not played:
            return random_intervention(rng, self.policy.regimes, kept)
        return moved_on(played[-1], self.policy.regimes, rng, kept)


def lookahead_of(policy: Posterior, decide: str) -> LookingAhead | None:
    """None where a policy is to decide, or has to, by its quantile."""
    choice("decide", decide, WAYS)
    ahead = decide == LOOKAHEAD or (decide == AUTO and _is_better(policy))
    return LookingAhead(policy) if ahead else None


def _is_better(policy: Posterior) -> bool:
    """Where it was measured to be: docs/posterior.md."""
    return not why_not(policy) and policy.method == "exact" and not too_many(policy.regimes)


def why_not(policy: Posterior) -> str:
    """What keeps a policy from looking ahead; empty where nothing does."""
    if policy.weights != "given" or policy.weight_mean > 0:
        return (
            "needs weights of any size: weights='given' and weight_mean=0, not "
            f"{policy.weights!r} and {policy.weight_mean:g}"
        )
    if policy.n_nodes > MAX_CORE_NODES:
        return f"takes at most {MAX_CORE_NODES} nodes, not {policy.n_nodes}"
    return ""


def too_many(regimes: Counts) -> bool:
    """Whether interventions cannot all be compared."""
    return n_interventions(regimes) > 2**MAX_TABLE_NODES


@lru_cache(maxsize=16)
def in_units(kept: Constraints, scale: float) -> Constraints:
    """The same, with costs in units of the posterior."""
    if scale == 1.0 or not kept.rules.cost.any():
        return kept
    return kept.priced(1.0 / scale)


def in_words(chosen: Chosen, scale: float) -> str:
    """Nodes as 'x3', which a study replaces by their names."""
    if chosen.instead_of is None:
        return STEADY
    differs = [f"'x{i}'" for i in np.flatnonzero(chosen.intervention != chosen.instead_of)]
    if len(differs) > MOST_NAMED:
        differs[MOST_NAMED - 1 :] = [f"{len(differs) - MOST_NAMED + 1} other nodes"]
    nodes = " and ".join(filter(None, [", ".join(differs[:-1]), differs[-1]]))
    return (
        f"tests whether {nodes} should change: expected to save {_short(chosen.saved * scale)} "
        f"over the next {chosen.rounds} rounds, costs {_short(max(chosen.paid, 0.0) * scale)}"
    )


def _short(value: float) -> str:
    return f"{value:.0f}" if 100 <= abs(value) < 1e6 else f"{value:.2g}"


def _rows(pending: Sequence[Intervention], n_nodes: int) -> npt.NDArray[np.uint8]:
    rows = np.array(list(pending)[-MOST_PENDING:], dtype=np.uint8)
    return np.ascontiguousarray(rows.reshape(-1, n_nodes))
