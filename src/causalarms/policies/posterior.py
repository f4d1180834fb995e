"""`posterior` and `posterior-cd`: optimism over draws of the exact posterior over graphs.

Nobody tells it the topology: it holds the posterior over orders, parent sets, weights and noise of
all mechanisms (`posterior`). Every round it draws the whole system `draws` times and plays
the intervention whose expected reward is highest by the `quantile` of the draws: high where it is
known to be good, or where enough draws say that it may be. What is merely unlikely costs nothing,
and what is poorly known keeps being tried until it is known.

With a detector (`changes/evidence.py`) each round is first predicted from the posterior; a
mechanism that no longer produces what it should forgets all rounds from before its change, and
a few random interventions, each followed by its opposite (by all other regimes, one after the
other), then look for other mechanisms that changed with it.

Where the noise means are unknown, values are taken relative to each node's median over the first
rounds: the prior of the intercepts lies around it, and adding a constant to a node changes no
choice.

Beyond 16 nodes orders are sampled instead of summed (`posterior/sampled.py`), and beyond 15
the best intervention is searched for instead of enumerated: no certificate.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from causalarms.arrays import FloatArray, Intervention
from causalarms.changes.alarm import Alarm, starts_after
from causalarms.changes.detector import Detector
from causalarms.changes.view import PREDICTION
from causalarms.checks import choice, share, whole
from causalarms.models.belief import Belief
from causalarms.models.over_draws import Recommendation, most_optimistic, recommend
from causalarms.policies.base import EXPLOIT, Policy, Suggestion
from causalarms.policies.beforehand import GIVEN, Beforehand, method_for
from causalarms.policies.incomplete_rounds import DROP, GAPS, LEARN, IncompleteRounds
from causalarms.policies.learned_system import LearnedSystem
from causalarms.policies.looking_ahead import QUANTILE, lookahead_of
from causalarms.policies.noise_units import given_units
from causalarms.policies.posterior_policy_state import parts_entries, parts_state, restore_parts
from causalarms.policies.predictable_nodes import PredictableNodes
from causalarms.policies.random_rounds import random_round
from causalarms.policies.state_check import WHOLE, Entry
from causalarms.policies.told_rounds import ToldRounds
from causalarms.policies.typing_errors import (
    KEPT,
    LEFT_OUT,
    TYPING_ERRORS,
    LeftOut,
    Round,
    Suspects,
)
from causalarms.posterior.exact import Draws
from causalarms.posterior.mixed import MixedPosterior
from causalarms.posterior.prior import MechanismPrior
from causalarms.search.constraints import Constraints
from causalarms.statistics.dataset import RecentRounds
from causalarms.statistics.moments import Moments

MOST_DRAWS = 10_000
EVERY_ROUND = 300  # rounds in which the posterior is refreshed each time; later every `refresh`
OPTIMISM = "it is the best, or may well be the best, by what is known so far"
OF_NOISE, AS_MEASURED = ALARM_UNITS = ("noise", "measured")


class Posterior(Policy):
    """Is told nothing but, where known, the noise means (and standard deviations).

    method            "exact" sums over all orders, "sampled" runs chains over them; "auto": exact
                      up to 16 nodes, where a refresh takes 0.1 s, and four times that with each two
                      nodes more
    draws, quantile   upper value of an intervention: this quantile of its reward over the draws
    decide            "quantile": the intervention of the highest upper value. "lookahead": the one
                      whose reward and whose result together are worth most to the rounds that
                      follow (`models/lookahead`); method "exact" and weights "given" only.
                      "auto": "lookahead" where that can be, else "quantile"
    refresh           after 300 rounds the posterior takes in rounds in groups of this size
    edge_probability, weight_mean, weight_scale, noise_shape   the prior (`MechanismPrior`)
    weights           "given": as weight_mean and weight_scale say. "learned": how strong edges are
                      is learned as well (`MixedPosterior`), 3^N instead of 2^N steps
    noise_scale       about what the noise's standard deviation is, a number or one per node: the
                      units of the prior. "estimate": from 8 random rounds, for measurements in
                      units of their own; costs some regret where the noise is of order one
    gaps              "learn": of rounds with missing values (nan), what the others say; "drop":
                      such rounds are refused
    allowed, required   edges that may be and that must be, (N, N) or (R, N, N) as [.., from, to]
    detector          one that looks at predictions, or its name; None where nothing changes
    alarm_units       units in which rounds are predicted for the detector: those of the "noise";
                      as "measured" in older studies, where very small units raise false alarms
    probes            interventions after an alarm, random ones and their opposites in turn
    typing_errors     "kept", or "left out": nothing is learned from a round with a value that is
                      probably a typing error, until others like it come (`typing_errors.py`)
    regimes           how many each node has (two); 1: a node without a switch, learned once
    """

    offers = (PREDICTION,)

    def __init__(
        self,
        n_nodes: int,
        reward: int = -1,
        *,
        noise_mean: npt.ArrayLike | None = None,
        noise_std: npt.ArrayLike | None = None,
        method: str = "auto",
        draws: int = 20,
        quantile: float = 0.9,
        decide: str = QUANTILE,
        refresh: int = 5,
        edge_probability: float | str = 0.5,
        weight_mean: float = 0.0,
        weight_scale: float = 1.5,
        noise_shape: float = 0.5,
        weights: str = GIVEN,
        noise_scale: npt.ArrayLike | str = 1.0,
        gaps: str = DROP,
        memory_limit: int | None = None,
        allowed: npt.ArrayLike | None = None,
        required: npt.ArrayLike | None = None,
        detector: Detector | str | None = None,
        probes: int = 0,
        alarm_units: str = OF_NOISE,
        typing_errors: str = KEPT,
        regimes: npt.ArrayLike | None = None,
    ) -> None:
        super().__init__(n_nodes, reward, regimes=regimes)
        wary = choice("typing_errors", typing_errors, TYPING_ERRORS) == LEFT_OUT
        prior = MechanismPrior(
            edge_probability=edge_probability,
            weight_mean=weight_mean,
            weight_scale=weight_scale,
            noise_shape=noise_shape,
        )
        self.draws = _n_draws(draws)
        self.quantile = share("quantile", quantile, ends="[]")
        self.refresh = whole("refresh", refresh, least=1)
        self.probes = whole("probes", probes, least=0)
        self.alarm_units = choice("alarm_units", alarm_units, ALARM_UNITS)
        self._use_detector(detector)
        self.method = method_for(method, weights, weight_mean, self.n_nodes)
        self.weights = weights
        self.weight_mean = float(weight_mean)
        self.learns_from_gaps = choice("gaps", gaps, GAPS) == LEARN
        self._lookahead = lookahead_of(self, decide)
        before = Beforehand.checked(
            self.method, weights, prior, self.regimes, self._nodes,
            allowed=allowed, required=required,
            noise_mean=noise_mean, noise_std=noise_std, memory_limit=memory_limit,
        )  # fmt: skip
        units = given_units(noise_scale, self._nodes)
        self._system = LearnedSystem(before, units, ToldRounds(self.regimes, wary=wary))
        in_units = self.alarm_units == OF_NOISE
        self._predictable = PredictableNodes(self.n_nodes, in_units=in_units)
        self._refreshed = 0
        self._probes_left = 0

    @property
    def _moments(self) -> Moments:
        return self._system.rounds.moments

    @property
    def _gaps(self) -> IncompleteRounds:
        return self._system.rounds.gaps

    @property
    def _recent(self) -> RecentRounds:
        return self._system.rounds.recent

    @property
    def _suspects(self) -> Suspects | None:
        return self._system.rounds.suspects

    @property
    def left_out(self) -> list[LeftOut]:
        return [] if self._suspects is None else self._suspects.left_out

    def _draw(self, rng: np.random.Generator, n: int) -> Draws:
        return self._system.draw(rng, n)

    def make_belief(self, rng: np.random.Generator, draws: int) -> Belief | None:
        return self._system.belief(rng, draws, starts_after(self.alarms, self.regimes))

    @property
    def edge_probability(self) -> FloatArray:
        """Probability of every edge as of the last refresh, (R, N, N)."""
        return self._system.posterior.edge_probability

    @property
    def strengths(self) -> dict[float, float]:
        """Probability of each strength of edges, where it is learned; 0: weights of any size."""
        return self._system.strengths

    @property
    def adjacency(self) -> npt.NDArray[np.bool_] | None:
        """The edges that are more likely present than absent."""
        return self.edge_probability > 0.5

    def last_interventions(self, n: int) -> npt.NDArray[np.uint8]:
        """Of the last n rounds, (n, N), the last one last; fewer where fewer were told."""
        return self._recent.regimes(n)

    @property
    def refreshed(self) -> int:
        """The round whose result the posterior took in last."""
        return self._refreshed

    @property
    def reward_scale(self) -> float:
        """One unit of the posterior's reward in those of the data."""
        return self._system.scale_of(self.reward)

    def reward_in_data(self, value: float) -> float:
        """A reward of the posterior in units of the data."""
        return self._system.in_data(value, self.reward)

    def suggest(
        self,
        rng: np.random.Generator,
        *,
        pending: Sequence[Intervention] = (),
        allowed: Constraints | None = None,
    ) -> Suggestion:
        kept = self.kept(allowed)
        if self._probes_left or self._system.units is None:
            return random_round(
                rng, self.regimes, kept,
                probes_left=self._probes_left, last=self._recent.last_regimes(), pending=pending,
            )  # fmt: skip
        posterior = self._system.posterior
        if self._lookahead is not None and not isinstance(posterior, MixedPosterior):
            return self._lookahead.suggest(rng, posterior, pending, kept)
        best = most_optimistic(
            self._draw(rng, self.draws), self.reward, self.quantile,
            regimes=self.regimes, allowed=kept,
        )  # fmt: skip
        width = max(best.upper - best.mean, 0.0)  # below 0 where a few draws outweigh the rest
        return Suggestion(best.intervention, EXPLOIT, self._moved(best.mean), width, OPTIMISM)

    def recommend(
        self, rng: np.random.Generator, *, draws: int = 200, tolerance: float = 0.0
    ) -> Recommendation:
        """The intervention to settle on now, how likely it is the best, and what stopping costs."""
        found = recommend(
            self._draw(rng, _n_draws(draws)), self.reward, tolerance=tolerance, regimes=self.regimes
        )
        return found._replace(mean=self._moved(found.mean))

    def _moved(self, reward: float) -> float:
        """A reward relative to the origin, as draws are, in the data."""
        return reward + float(self._system.rounds.origin[self.reward])

    def learn(self, a: Intervention, x: FloatArray) -> None:
        system = self._system
        stale = system.rounds.stale(a, self.made)  # from before a known change
        view = self._predictable.view(system, x, stale) if self._predicts else None
        alarms = [] if view is None else self._watch(a, x, view)
        tested = self._lookahead is not None and not np.array_equal(a, self._recent.last_regimes())
        n_gaps = system.rounds.take_in(
            Round(self.n_told, a, x), self.made, stale,
            changed=bool(self.alarms), view=view, predictors=self._predictable.predictors,
        )  # fmt: skip
        self._probes_left = max(self._probes_left - 1, 0)
        zero = system.settle(self.n_told, changed=bool(self.alarms))
        if zero is None:
            return
        for alarm in alarms:
            n_gaps += self._forget(alarm)
        system.fill_gaps(self.n_told, n_gaps, zero, starts_after(self.alarms, self.regimes))
        due = self.n_told % self.refresh == 0
        if alarms or self.n_told <= EVERY_ROUND or due or tested:
            system.refresh()
            self._refreshed = self.n_told
            if self._predicts and (alarms or due):
                self._predictable.judge(system.posterior)

    @property
    def _predicts(self) -> bool:
        """Whether rounds are predicted before they are learned from."""
        return self.watches or self._suspects is not None

    def _forget(self, alarm: Alarm) -> int:
        """Only rounds after the change count for the mechanism from now on, but for the order.

        How many rounds with gaps are taken back.
        """
        n_gaps, rounds, after = 0, self._system.rounds, alarm.change_point
        self.alarms.append(alarm)
        for regime, node in alarm.mechanisms(self.regimes):
            n_gaps += rounds.take_back(regime, node, after=after, last=self.n_told, made=self.made)
            self._system.posterior.retire(regime, node)
            rounds.forget(regime, node, after=after)
            self.detector.forget(regime, node)
        self._probes_left = self.probes
        return n_gaps

    def own_state(self) -> dict[str, Any]:
        scalars = {"refreshed": self._refreshed, "probes_left": self._probes_left}
        return parts_state(
            self._system, self._predictable, self.detector,
            gaps=self.learns_from_gaps, scalars=scalars,
        )  # fmt: skip

    def state_entries(self, n_told: int) -> dict[str, Entry]:
        entries = parts_entries(self._system, gaps=self.learns_from_gaps)
        return entries | {"probes_left": Entry(WHOLE, low=0, high=self.probes)}

    def restore_own(self, state: dict[str, Any]) -> None:
        restore_parts(
            self._system, self._predictable, self.detector, state,
            gaps=self.learns_from_gaps, n_told=self.n_told, alarms=self.alarms,
        )  # fmt: skip
        self._refreshed = int(state["refreshed"])
        self._probes_left = int(state["probes_left"])


def _n_draws(value: object) -> int:
    return whole("draws", value, least=1, most=MOST_DRAWS)
