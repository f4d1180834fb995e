"""`posterior` and `posterior-cd`: optimism over draws of the posterior over graphs.

The graph is unknown: the policy holds the posterior over orders, parent sets, weights and noise of
all mechanisms (`causalarms.posterior`). It decides in one of two ways (`decide`). By quantile, it
draws the whole system `draws` times in every round and plays the intervention with the highest
`quantile` of its expected reward over the draws: arms whose upper quantile is below the best are
never played, and uncertain arms keep being played until their interval shrinks. Or it plays by the
knowledge gradient (`models/knowledge_gradient`).

With a detector (`changes/evidence.py`) each round is first predicted from the posterior. A
mechanism that no longer follows its prediction forgets all rounds from before its change. A few
random interventions, each followed by its opposite (by all other regimes, one after the other),
then look for other mechanisms that changed with it.

If the noise means are unknown, values are taken relative to each node's median over the first
rounds: the prior of the intercepts lies around it, and adding a constant to a node changes no
choice.

Beyond 16 nodes orders are sampled instead of summed (`posterior/chains`), and beyond 15 the best
intervention is searched for instead of enumerated: no certificate.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from causalarms.arrays import FloatArray, Intervention
from causalarms.changes.detector import starts_after
from causalarms.changes.view import PREDICTION
from causalarms.errors import TooEarlyError
from causalarms.models.belief import Belief, Recommendation, recommend
from causalarms.policies.base import BELIEF_DRAWS, LeftOut, Policy, Suggestion
from causalarms.policies.posterior.decide import (
    Progress,
    by_quantile,
    knowledge_gradient_of,
    random_round,
)
from causalarms.policies.posterior.rounds import FIRST_ROUNDS, Round
from causalarms.policies.posterior.system import LEARN, LearnedSystem, PosteriorConfig, n_draws
from causalarms.policies.state import nested, unnested
from causalarms.posterior.dag import likely_edges

# Up to this round the posterior is refreshed in every round, later in every `refresh`-th. By then a
# round changes little, and a run of 1500 rounds is refreshed 540 times.
LAST_ROUND_REFRESHED_ALONE = 300


def _signature() -> inspect.Signature:
    """The constructor's signature with every setting by name, which registries read."""
    named, keyword = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    return inspect.Signature(
        [
            inspect.Parameter("n_nodes", named, annotation=int),
            inspect.Parameter("reward", named, default=-1, annotation=int),
            *(
                inspect.Parameter(f.name, keyword, default=f.default, annotation=f.type)
                for f in fields(PosteriorConfig)
            ),
            inspect.Parameter("regimes", keyword, default=None),
        ]
    )


class PosteriorPolicy(Policy):
    """A policy that learns the graph while it plays.

    n_nodes    number of nodes
    reward     the node to maximise; -1 is the last one
    regimes    how many regimes each node has (two); 1 is a node without a switch, learned once
    settings   the fields of `PosteriorConfig`
    """

    offers = (PREDICTION,)
    __signature__: ClassVar[inspect.Signature] = _signature()

    def __init__(
        self,
        n_nodes: int,
        reward: int = -1,
        *,
        regimes: npt.ArrayLike | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(n_nodes, reward, regimes=regimes)
        self.config = PosteriorConfig(**settings)
        self._use_detector(self.config.detector)
        self.learns_from_gaps = self.config.gaps == LEARN
        self._system = LearnedSystem(self.config, self.regimes, self._nodes)
        self._knowledge_gradient = knowledge_gradient_of(self._system, self.reward)
        self._refreshed = 0
        self._probes_left = 0

    @property
    def left_out(self) -> list[LeftOut]:
        outliers = self._system.rounds.outliers
        return [] if outliers is None else outliers.left_out

    def make_belief(self, rng: np.random.Generator, draws: int) -> Belief | None:
        return self._system.belief(rng, draws, starts_after(self.alarms, self.regimes))

    @property
    def edge_probability(self) -> FloatArray:
        """Probability of every edge as of the last refresh, (R, N, N)."""
        return self._system.posterior.edge_probability

    @property
    def adjacency(self) -> npt.NDArray[np.bool_] | None:
        """The edges that are more likely present than absent."""
        return likely_edges(self.edge_probability)

    def suggest(
        self, rng: np.random.Generator, *, pending: Sequence[Intervention] = ()
    ) -> Suggestion:
        system = self._system
        if self._probes_left or system.units is None:
            return random_round(
                rng, self.constraints, probes_left=self._probes_left,
                last=system.rounds.recent.last_regimes(), pending=pending,
            )  # fmt: skip
        if self._knowledge_gradient is not None:
            last_alarm = self.alarms[-1].round if self.alarms else 0
            progress = Progress(self.n_told, last_alarm, self._refreshed)
            return self._knowledge_gradient.suggest(rng, pending, self.constraints, progress)
        return by_quantile(system, self.reward, rng, self.constraints)

    def recommend(
        self,
        rng: np.random.Generator | None = None,
        *,
        draws: int = BELIEF_DRAWS,
        tolerance: float = 0.0,
    ) -> Recommendation:
        """The intervention to settle on now, how likely it is the best, and what stopping costs.

        Without `rng` it is computed from the same draws as `belief()`, so that both agree.
        """
        belief = self.belief(rng, draws=n_draws(draws))
        if belief is None:
            raise TooEarlyError(
                f"it is too early to recommend anything: {self.n_told} of the first "
                f"{FIRST_ROUNDS} results are in"
            )
        return recommend(belief, self.reward, self.constraints, tolerance=tolerance)

    def learn(self, a: Intervention, x: FloatArray) -> None:
        system = self._system
        rounds = system.rounds
        stale = rounds.stale(a, self.made)  # from before a known change
        view = system.view(x, stale) if self._predicts else None
        alarms = [] if view is None else self._watch(a, x, view)
        # a test was played for its result, so the next decision must know it: refresh now
        tested = self._knowledge_gradient is not None and not np.array_equal(
            a, rounds.recent.last_regimes()
        )
        n_gaps = rounds.take_in(
            Round(self.n_told, a, x), self.made, stale,
            changed=bool(self.alarms), view=view, predictors=system.predictors,
        )  # fmt: skip
        self._probes_left = max(self._probes_left - 1, 0)
        zero = system.settle(self.n_told, changed=bool(self.alarms))
        if zero is None:
            return
        for alarm in alarms:  # after `settle`: moments are relative to the origin found there
            self.alarms.append(alarm)
            n_gaps += system.forget(alarm, self.n_told, self.made)
            for regime, node in alarm.mechanisms(self.regimes):
                self.detector.forget(regime, node)
            self._probes_left = self.config.probes
        # before `refresh`: gaps are filled by the posterior that has not seen this round
        system.fill_gaps(self.n_told, n_gaps, zero, starts_after(self.alarms, self.regimes))
        due = self.n_told % self.config.refresh == 0
        if alarms or self.n_told <= LAST_ROUND_REFRESHED_ALONE or due or tested:
            system.refresh()
            self._refreshed = self.n_told
            if self._predicts and (alarms or due):
                system.judge_predictors()

    @property
    def _predicts(self) -> bool:
        """Whether rounds are predicted before they are learned from."""
        return self.watches or self._system.rounds.outliers is not None

    def own_state(self) -> dict[str, Any]:
        return {
            **self._system.state(),
            **nested("detector", self.detector.state()),
            "refreshed": self._refreshed,
            "probes_left": self._probes_left,
        }

    def restore_own(self, state: dict[str, Any]) -> None:
        self._system.restore(state)
        self.detector.restore(unnested("detector", state))
        self._refreshed = int(state["refreshed"])
        self._probes_left = int(state["probes_left"])
