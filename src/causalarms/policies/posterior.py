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

from causalarms.changes.alarm import Alarm
from causalarms.changes.detector import Detector
from causalarms.changes.view import PREDICTION
from causalarms.checks import choice, optional, share, whole
from causalarms.errors import DataError, SettingError
from causalarms.graphs.inputs import as_noise_mean, as_noise_std
from causalarms.graphs.units import Units
from causalarms.limits import MAX_EXACT_NODES, MAX_LEARNED_NODES
from causalarms.models.belief import Belief, in_units_of_data
from causalarms.models.over_draws import (
    Optimistic,
    Recommendation,
    most_optimistic,
    recommend,
)
from causalarms.policies.base import (
    EXPLOIT,
    EXPLORE,
    FloatArray,
    Intervention,
    Policy,
    Suggestion,
)
from causalarms.policies.detector_views import PredictiveView
from causalarms.policies.first_rounds import (
    FIRST_ROUNDS,
    LATEST,
    middle_of,
    show_units,
    units_shown_by,
)
from causalarms.policies.incomplete_rounds import (
    DRAWS_TO_FILL,
    DROP,
    GAPS,
    LEARN,
    IncompleteRounds,
    with_gaps,
)
from causalarms.policies.looking_ahead import (
    AUTO,
    LOOKAHEAD,
    QUANTILE,
    WAYS,
    LookingAhead,
    why_not,
)
from causalarms.policies.noise_units import given_units, moments_in
from causalarms.policies.posterior_state import (
    AnyPosterior,
    check_retired,
    posterior_entries,
    posterior_state,
    restore_posterior,
)
from causalarms.policies.state_check import FLOATS, WHOLE, Entry
from causalarms.policies.states import nested, unnested
from causalarms.policies.typing_errors import (
    FIRST,
    KEPT,
    LEFT_OUT,
    TYPING_ERRORS,
    LeftOut,
    Round,
    Suspects,
)
from causalarms.policies.uniform import nearest_allowed, random_intervention
from causalarms.posterior.exact import Draws, ExactPosterior
from causalarms.posterior.mixed import MixedPosterior, strengths_of_weights
from causalarms.posterior.prior import MechanismPrior
from causalarms.posterior.sampled import SampledPosterior
from causalarms.posterior.settings import edge_masks, per_mechanism
from causalarms.rng import stream
from causalarms.search.constraints import Constraints
from causalarms.statistics.moments import Moments, gram_matrix
from causalarms.statistics.recent_rounds import RecentRounds

METHODS = ("auto", "exact", "sampled")
GIVEN, LEARNED = WEIGHTS = ("given", "learned")
MOST_DRAWS = 10_000
FIRST_SWEEPS = 20  # of chains that have seen nothing yet
EVERY_ROUND = 300  # rounds in which the posterior is refreshed each time; later every `refresh`
OPTIMISM = "it is the best, or may well be the best, by what is known so far"
HARDLY = 0.05  # probability of an edge that is taken not to be there when rounds are predicted
OF_NOISE, AS_MEASURED = ALARM_UNITS = ("noise", "measured")
EITHER = 0.3  # a node is not tested if both directions of one of its edges are likelier than this


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
        n_nodes = self.n_nodes
        wary = choice("typing_errors", typing_errors, TYPING_ERRORS) == LEFT_OUT
        self._suspects = Suspects(self.regimes) if wary else None
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
        choice("method", method, METHODS)
        choice("weights", weights, WEIGHTS)
        if weights == LEARNED and weight_mean > 0:
            raise SettingError(
                f"weight_mean={weight_mean} is given and weights='learned' asked for: leave one out"
            )
        self.weights = weights
        self.learns_from_gaps = choice("gaps", gaps, GAPS) == LEARN
        self.weight_mean = float(weight_mean)
        strong = weight_mean > 0 or weights == LEARNED  # chains have no such prior
        exact = n_nodes <= MAX_EXACT_NODES or strong
        self.method = ("exact" if exact else "sampled") if method == "auto" else method
        if weights == LEARNED and (self.method == "sampled" or n_nodes > MAX_LEARNED_NODES):
            raise SettingError(
                f"weights='learned' takes 3^N steps of method='exact': at most {MAX_LEARNED_NODES} "
                f"nodes, not {n_nodes} by method={self.method!r}"
            )
        choice("decide", decide, WAYS)
        ahead = decide == LOOKAHEAD or (decide == AUTO and not why_not(self))
        self._lookahead = LookingAhead(self) if ahead else None
        self._moments = Moments(n_nodes, regimes=self.regimes)
        possible, certain = edge_masks(self.regimes, allowed, required)
        self._known: dict[str, Any] = {
            "allowed": possible,
            "required": certain,
            "noise_mean": as_noise_mean(noise_mean, self._nodes, self.n_regimes),
            "noise_std": as_noise_std(noise_std, self._nodes, n_regimes=self.n_regimes),
            "regimes": self.regimes,
            "prior": prior,
            "memory_limit": optional(whole, "memory_limit", memory_limit, least=1),
        }
        self._units = given_units(noise_scale, self._nodes)  # None: not known yet
        self._origin = np.zeros(n_nodes)  # all but the recent rounds is relative to it
        self._posterior = self._make_posterior()
        self._recent = RecentRounds(n_nodes)
        self._began = np.zeros_like(self._moments.counts)  # when the first round since was made
        self._gaps = IncompleteRounds(self.n_regimes, n_nodes)
        self._refreshed = 0
        self._probes_left = 0
        self._predictors = np.zeros((n_nodes, n_nodes), dtype=bool)  # (node, predictor)
        self._settled = np.zeros(n_nodes, dtype=bool)

    def _make_posterior(self) -> AnyPosterior:
        known = dict(self._known)
        if self._units is not None:
            for name in ("noise_mean", "noise_std"):
                known[name] = None if known[name] is None else known[name] / self._units.scale
        if self.weights == LEARNED:
            return MixedPosterior(self.n_nodes, strengths_of_weights(known.pop("prior")), **known)
        if self.method == "exact":
            return ExactPosterior(self.n_nodes, **known)
        return SampledPosterior(self.n_nodes, **known, n_sweeps=FIRST_SWEEPS)

    def _draw(self, rng: np.random.Generator, n: int) -> Draws:
        """Of values relative to the origin."""
        drawn = self._posterior.draw(rng, n)
        return drawn if self._units is None else in_units_of_data(self._units, drawn, self.regimes)

    def make_belief(self, rng: np.random.Generator, draws: int) -> Belief | None:
        if self._units is None:
            return None
        moved = Units(shift=self._units.shift + self._origin, scale=self._units.scale)
        return Belief(
            in_units_of_data(moved, self._posterior.draw(rng, draws), self.regimes),
            self.edge_probability,
            self._moments.counts + self._gaps.counts,
            self._starts(),
            weighs_graphs=True,
        )

    def _starts(self) -> npt.NDArray[np.int64]:
        """The round after which each mechanism began anew, (R, N)."""
        starts = np.zeros_like(self._moments.counts)
        for alarm in self.alarms:
            for mechanism in alarm.mechanisms(self.regimes):
                starts[mechanism] = alarm.change_point
        return starts

    @property
    def _why_random(self) -> str:
        if self._probes_left:
            return "a mechanism has changed: random settings look for others that changed with it"
        return f"the first {FIRST_ROUNDS} rounds are random: they show the scale of every node"

    @property
    def edge_probability(self) -> FloatArray:
        """Probability of every edge as of the last refresh, (R, N, N)."""
        return self._posterior.edge_probability

    @property
    def strengths(self) -> dict[float, float]:
        """Probability of each strength of edges, where it is learned; 0: weights of any size."""
        posterior = self._posterior
        if not isinstance(posterior, MixedPosterior):
            return {}
        return {
            posterior.parts[k].prior.weight_mean: float(p)
            for k, p in zip(posterior.held, posterior.probability, strict=True)
        }

    @property
    def adjacency(self) -> npt.NDArray[np.bool_] | None:
        """The edges that are more likely present than absent."""
        return self.edge_probability > 0.5

    def suggest(
        self,
        rng: np.random.Generator,
        *,
        pending: Sequence[Intervention] = (),
        allowed: Constraints | None = None,
    ) -> Suggestion:
        kept = self.kept(allowed)
        if self._probes_left or self._units is None:
            arm = self._opposite(pending)
            if arm is None:
                arm = random_intervention(rng, self.regimes, kept)
            elif kept is not None:
                arm = nearest_allowed(arm, kept, rng)  # as opposite as may be
            return Suggestion(arm, EXPLORE, why=self._why_random)
        if self._lookahead is not None and not isinstance(self._posterior, MixedPosterior):
            return self._lookahead.suggest(rng, self._posterior, pending, kept)
        best = most_optimistic(
            self._draw(rng, self.draws), self.reward, self.quantile,
            regimes=self.regimes, allowed=kept,
        )  # fmt: skip
        return self._suggestion(best)

    def _opposite(self, pending: Sequence[Intervention]) -> Intervention | None:
        """Probes come in groups of R, with two regimes in pairs of opposites.

        Each moves every node on to its next regime, so that a group plays every mechanism. None
        where the next probe starts a group.
        """
        if not self._probes_left:
            return None
        if (self._probes_left + len(pending)) % max(self.n_regimes, 2) == 0:
            return None
        last = pending[-1] if len(pending) else self._recent.last_regimes()
        return ((last.astype(np.int64) + 1) % self.regimes).astype(np.uint8)

    def _suggestion(self, best: Optimistic) -> Suggestion:
        width = max(best.upper - best.mean, 0.0)  # below 0 where a few draws outweigh the rest
        mean = best.mean + float(self._origin[self.reward])
        return Suggestion(best.intervention, EXPLOIT, mean, width, OPTIMISM)

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
        return 1.0 if self._units is None else float(self._units.scale[self.reward])

    def reward_in_data(self, value: float) -> float:
        """A reward of the posterior in units of the data."""
        shift = 0.0 if self._units is None else float(self._units.shift[self.reward])
        return value * self.reward_scale + shift + float(self._origin[self.reward])

    def recommend(
        self, rng: np.random.Generator, *, draws: int = 200, tolerance: float = 0.0
    ) -> Recommendation:
        """The intervention to settle on now, how likely it is the best, and what stopping costs."""
        found = recommend(
            self._draw(rng, _n_draws(draws)), self.reward, tolerance=tolerance, regimes=self.regimes
        )
        return found._replace(mean=found.mean + float(self._origin[self.reward]))

    def learn(self, a: Intervention, x: FloatArray) -> None:
        stale = self._began[a, np.arange(self.n_nodes)] > self.made  # from before a known change
        view = self._view(x, stale)
        alarms = self._detect(a, x, view)
        tested = self._lookahead is not None and not np.array_equal(a, self._recent.last_regimes())
        n_gaps = self._take_in(Round(self.n_told, a, x), view, stale)
        early = self.n_told <= FIRST_ROUNDS or self._units is None
        zero = self._origin
        if self._known["noise_mean"] is None and early and not self.alarms:
            self._center()
        self._probes_left = max(self._probes_left - 1, 0)
        if self._units is None:
            first = self._recent.values(self.n_told) - self._origin
            if not show_units(first):
                return
            self._units = units_shown_by(first, center=self._known["noise_mean"] is None)
            self._posterior = self._make_posterior()
            if len(self._gaps):
                self._posterior.update(moments_in(self._units, self._moments))
                zero = self._origin
        for alarm in alarms:
            n_gaps += self._forget(alarm)
        self._fill_gaps(n_gaps, zero)
        if alarms or self.n_told <= EVERY_ROUND or self.n_told % self.refresh == 0 or tested:
            self._posterior.update(moments_in(self._units, self._evidence))
            self._refreshed = self.n_told
            if alarms or self.n_told % self.refresh == 0:
                self._judge()

    @property
    def _evidence(self) -> Moments:
        """Moments of all rounds, of incomplete ones as far as they go."""
        if not self._gaps.counts.any():
            return self._moments
        both = Moments(self.n_nodes, regimes=self.regimes)
        both.gram[:] = self._moments.gram + self._gaps.gram
        both.counts[:] = self._moments.counts + self._gaps.counts
        return both

    def _fill_gaps(self, n_new: int, zero: FloatArray) -> None:
        """By draws of the posterior before this round, which are relative to `zero`."""
        due = self._gaps.due(self.n_told) or n_new > 1
        if due or n_new:
            draws = self._draw(stream(0, "gaps", self.n_told), DRAWS_TO_FILL)
            if due:
                self._gaps.fill(self.n_told, draws, self._starts(), zero, self._origin)
            else:
                self._gaps.fill_last(draws, self._starts(), self._origin)

    def _take_in(
        self, told: Round, view: PredictiveView | None, stale: npt.NDArray[np.bool_]
    ) -> int:
        """A round, unless it is set aside, and those that no longer are; how many have gaps."""
        rounds = [told]
        if self._suspects is not None and told.number <= FIRST:
            anew = None if self.alarms else self._suspects.early(told)
            if anew is not None:
                self._recent = RecentRounds(self.n_nodes)
                self._moments = Moments(self.n_nodes, regimes=self.regimes)
                self._gaps = IncompleteRounds(self.n_regimes, self.n_nodes)
                rounds = anew
            elif any(out.round == told.number for out in self._suspects.left_out):
                rounds = []
        elif self._suspects is not None:
            scores = np.full(self.n_nodes, np.nan)
            if view is not None:
                scores = view.prediction(told.regimes, told.values).scores
            rounds = self._suspects.later(told, scores, self._predictors)
        return self._learn_rounds(rounds, stale)

    def _learn_rounds(
        self, rounds: Sequence[Round], stale: npt.NDArray[np.bool_] | None = None
    ) -> int:
        """`stale` mechanisms learn nothing from the round told last; how many have gaps."""
        n_gaps = 0
        for number, regimes, values in rounds:
            last = number == self.n_told
            old = stale if last and stale is not None else np.zeros(self.n_nodes, dtype=bool)
            if np.isnan(values).any():
                values = np.where(old, np.nan, values)
                self._gaps.add(number, regimes, values)
                n_gaps += 1
            else:
                self._add(regimes, values - self._origin, old)
            self._recent.add(number, regimes, values, self.made if last else None)
        return n_gaps

    @property
    def left_out(self) -> list[LeftOut]:
        return [] if self._suspects is None else self._suspects.left_out

    def _center(self) -> None:
        """The first rounds, all of which are recent, relative to their median."""
        values, regimes = self._recent.values(self.n_told), self._recent.regimes(self.n_told)
        self._origin = middle_of(values)
        self._moments = Moments(self.n_nodes, regimes=self.regimes)
        for row, regime in zip(values - self._origin, regimes, strict=True):
            if not np.isnan(row).any():
                self._moments.add(row, regime)

    def _add(self, a: Intervention, x: FloatArray, stale: npt.NDArray[np.bool_]) -> None:
        """The round for all mechanisms it was played with but the stale ones."""
        if not stale.any():
            self._moments.add(x, a)
            return
        nodes = np.flatnonzero(stale)
        grams, counts = self._moments.gram[a[nodes], nodes], self._moments.counts[a[nodes], nodes]
        self._moments.add(x, a)
        self._moments.gram[a[nodes], nodes] = grams
        self._moments.counts[a[nodes], nodes] = counts

    def _detect(self, a: Intervention, x: FloatArray, view: PredictiveView | None) -> list[Alarm]:
        return [] if view is None else self._watch(a, x, view)

    def _view(self, x: FloatArray, stale: npt.NDArray[np.bool_]) -> PredictiveView | None:
        if self._units is None or not (self.watches or self._suspects is not None):
            return None
        missing = np.isnan(x)
        return PredictiveView(
            self._units,
            self._origin,
            self._evidence,
            self._predictors,
            self._settled & ~stale & ~missing & ~(self._predictors & missing).any(axis=1),
            per_mechanism(self._known["noise_mean"], self.regimes),
            per_mechanism(self._known["noise_std"], self.regimes),
            in_units=self.alarm_units == OF_NOISE,
        )

    def _forget(self, alarm: Alarm) -> int:
        """Only rounds after the change count for the mechanism from now on, but for the order.

        How many rounds with gaps are taken back.
        """
        n_gaps = 0
        self.alarms.append(alarm)
        for regime, node in alarm.mechanisms(self.regimes):
            if self._suspects is not None:
                n_gaps += self._learn_rounds(
                    self._suspects.take_back(regime, node, after=alarm.change_point, company=1)
                )
            self._posterior.retire(regime, node)
            kept = self._recent.samples(regime, node, after=alarm.change_point) - self._origin
            kept = kept[~np.isnan(kept).any(axis=1)]
            self._began[regime, node] = self._recent.began(regime, node, after=alarm.change_point)
            self._moments.gram[regime, node] = gram_matrix(np.ascontiguousarray(kept.T))
            self._moments.counts[regime, node] = len(kept)
            self._gaps.forget(regime, node, alarm.change_point)
            self.detector.forget(regime, node)
        self._probes_left = self.probes
        return n_gaps

    def _judge(self) -> None:
        """Which nodes predict which, and whose predictions are certain enough to be tested.

        A node is predicted from the nodes before it in the most probable order, but for those that
        may be its children and are hardly its parents. Where a node may well be either, nothing
        can be said.
        """
        if not self.watches and self._suspects is None:
            return
        edge = self.edge_probability.max(axis=0)  # (from, to)
        position = np.argsort(self._posterior.most_probable().order)
        before = position[None, :] < position[:, None]  # (node, earlier node)
        self._predictors = before & ((edge <= HARDLY) | (edge.T > HARDLY))
        self._settled = (np.minimum(edge, edge.T) <= EITHER).all(axis=1)

    def own_state(self) -> dict[str, Any]:
        return {
            **self._moments.state(),
            **nested("posterior", posterior_state(self._posterior)),
            **nested("recent", self._recent.state()),
            **nested("detector", self.detector.state()),
            **({} if self._suspects is None else nested("suspects", self._suspects.state())),
            "scale": np.zeros(0) if self._units is None else self._units.scale,
            "shift": np.zeros(0) if self._units is None else self._units.shift,
            "origin": self._origin.copy(),
            "began": self._began.copy(),
            "refreshed": self._refreshed,
            "probes_left": self._probes_left,
            "predictors": self._predictors.copy(),
            "settled": self._settled.copy(),
            **(nested("gaps", self._gaps.state()) if self.learns_from_gaps else {}),
        }

    def state_entries(self, n_told: int) -> dict[str, Entry]:
        n_units = None if self._units is None else self.n_nodes
        own: dict[str, Entry] = {}
        if self.learns_from_gaps:
            own = nested("gaps", self._gaps.entries())
            own["recent.values"] = with_gaps((None, self.n_nodes))
        return own | {
            **nested("posterior", posterior_entries(self._posterior)),
            **(
                {}
                if self._suspects is None
                else nested("suspects", self._suspects.entries(gaps=self.learns_from_gaps))
            ),
            "scale": Entry(FLOATS, (n_units,), np.finfo(float).tiny),
            "shift": Entry(FLOATS, (n_units,)),
            "probes_left": Entry(WHOLE, low=0, high=self.probes),
        }

    def restore_own(self, state: dict[str, Any]) -> None:
        self._moments.restore(state)
        self._origin = np.array(state.get("origin", np.zeros(self.n_nodes)))
        scale, shift = np.array(state["scale"]), np.array(state["shift"])
        lengths = {len(scale), len(shift)}
        latest = LATEST if self.learns_from_gaps else FIRST_ROUNDS
        if lengths != {self.n_nodes} and (lengths != {0} or self.n_told >= latest):
            raise DataError(f"the units of {self.n_nodes} nodes are missing or too many")
        self._units = Units(shift=shift, scale=scale) if len(scale) else None
        self._posterior = self._make_posterior()
        check_retired(unnested("posterior", state), self.alarms, self.regimes)
        restore_posterior(self._posterior, unnested("posterior", state))
        self._recent.restore(unnested("recent", state))
        if self.learns_from_gaps:
            self._gaps.restore(unnested("gaps", state))
            self._gaps.check_recent(state["recent.rounds"], state["recent.values"])
        self.detector.restore(unnested("detector", state))
        self._began = np.array(state.get("began", np.zeros_like(self._began)), dtype=np.int64)
        if self._suspects is not None:
            self._suspects.restore(unnested("suspects", state))
            self._suspects.check_recent(
                self.n_told, np.asarray(state["recent.rounds"]), np.asarray(state["recent.values"])
            )
        self._refreshed = int(state["refreshed"])
        self._probes_left = int(state["probes_left"])
        self._predictors = np.array(state["predictors"], dtype=bool)
        self._settled = np.array(state["settled"], dtype=bool)


def _n_draws(value: object) -> int:
    return whole("draws", value, least=1, most=MOST_DRAWS)
