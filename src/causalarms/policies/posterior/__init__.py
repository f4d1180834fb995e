"""`posterior` and `posterior-cd`: optimism over draws of the posterior over graphs.

The graph is unknown: the policy holds the posterior over orders, parent sets, weights and noise of
all mechanisms (`causalarms.posterior`). It decides in one of three ways (`decide`). By quantile, it
draws the whole system `draws` times in every round and plays the intervention with the highest
`quantile` of its expected reward over the draws: arms whose upper quantile is below the best are
never played, and uncertain arms keep being played until their interval shrinks. Or it plays by the
knowledge gradient (`models/knowledge_gradient`), or, next to factors that shift nodes, by the
information ratio (`models/draws`).

With a detector (`changes/evidence.py`) each round is first predicted from the posterior. A
mechanism that no longer follows its prediction forgets all rounds from before its change. A few
random interventions, each followed by its opposite (by all other regimes, one after the other),
then look for other mechanisms that changed with it.

If the noise means are unknown, values are taken relative to each node's median over the first
rounds: the prior of the intercepts lies around it, and adding a constant to a node changes no
choice.

If units are to be estimated, the first rounds have every level as often as possible. The probes
after an alarm are random, and come in groups of R (pairs of opposites if there are two regimes):
each moves every node to its next regime, so that a group plays every mechanism. The knowledge
gradient starts with one random intervention and its opposite in every node, so that two mechanisms
of each node are seen.

Beyond 16 nodes orders are sampled instead of summed (`posterior/chains`), and beyond 15 the best
intervention is searched for instead of enumerated: no certificate.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from causalarms.arrays import FloatArray, Intervention
from causalarms.changes.detector import PREDICTION, Detector, starts_after
from causalarms.errors import SettingError, TooEarlyError
from causalarms.limits import MAX_RATIOS, MAX_TABLE_NODES
from causalarms.models.belief import Belief, Recommendation, recommend
from causalarms.models.draws import least_ratio, most_optimistic
from causalarms.models.knowledge_gradient import (
    EARLY_ROUNDS,
    AverageRewards,
    Chosen,
    Situation,
    average_rewards,
    early_round,
    late_round,
)
from causalarms.policies.base import (
    BELIEF_DRAWS,
    EXPLOIT,
    EXPLORE,
    TEST,
    LeftOut,
    Policy,
    Reason,
    Suggestion,
    suggestion_of,
)
from causalarms.policies.posterior.rounds import DESIGNED_ROUNDS, Round
from causalarms.policies.posterior.system import (
    AUTO,
    DRAWS_OF_RATIO,
    EXACT,
    INFORMATION_RATIO,
    KNOWLEDGE_GRADIENT,
    LEARN,
    MAX_DRAWS,
    LearnedSystem,
    PosteriorConfig,
    n_draws,
)
from causalarms.policies.simple import nearest_allowed, random_intervention
from causalarms.posterior.base import Draws
from causalarms.posterior.dag import likely_edges
from causalarms.posterior.missing import PosteriorMixture
from causalarms.rng import stream
from causalarms.sem.regimes import Counts, n_interventions
from causalarms.sem.rewards import allowed_arms
from causalarms.state import Declared

MAX_PENDING = 8  # results that are sampled before a candidate's own
RECENT_ROUNDS = 20  # whose usual intervention is kept unless another is clearly better
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
    uses_context = True
    learned: ClassVar[Declared] = {
        "_system": LearnedSystem, "detector": Detector, "_refreshed": int, "_probes_left": int
    }  # fmt: skip
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
        self._by_gradient = uses_knowledge_gradient(self.config, self._system.method, self.regimes)
        self._weighs_information = self.config.decide == INFORMATION_RATIO or (
            self.config.decide == AUTO and self.config.columns is not None
        )
        self._average: tuple[PosteriorMixture, int, AverageRewards] | None = None
        # (R, N), the round after which each mechanism began again; 0: it never changed
        self._starts = starts_after((), self.regimes)
        self._refreshed = 0  # the last round that the posterior has learned
        self._probes_left = 0

    @property
    def left_out(self) -> list[LeftOut]:
        outliers = self._system.rounds.outliers
        return [] if outliers is None else outliers.left_out

    @property
    def checks_left(self) -> int:
        return self._probes_left

    def make_belief(self, rng: np.random.Generator, draws: int) -> Belief | None:
        if not self._system.knows(self.reward):
            return None
        return self._system.belief(rng, draws, self._starts.copy())

    @property
    def edge_probability(self) -> FloatArray:
        """Probability of every edge as of the last refresh, (R, N, N)."""
        return self._system.posterior.edge_probability

    @property
    def adjacency(self) -> npt.NDArray[np.bool_] | None:
        """The edges that are more likely present than absent."""
        return likely_edges(self.edge_probability)

    def suggest(
        self,
        rng: np.random.Generator,
        *,
        pending: Sequence[Intervention] = (),
        context: Mapping[int, float] | None = None,
    ) -> Suggestion:
        if self._probes_left or not self._system.knows(self.reward):
            return self._random_round(rng, pending)
        if self._by_gradient and not context:
            return self._by_knowledge_gradient(rng, pending)
        return self._by_draws(rng, pending, context or {})

    def _random_round(
        self, rng: np.random.Generator, pending: Sequence[Intervention]
    ) -> Suggestion:
        """A probe while some are left, else one of the first rounds."""
        left = self._probes_left
        if not left:
            why = Reason("balanced", rounds=max(DESIGNED_ROUNDS, self.n_told + 1))
            return Suggestion(self._least_played(rng, pending), EXPLORE, why=why)
        if (left + len(pending)) % max(*self.constraints.regimes, 2) == 0:
            arm = random_intervention(rng, self.constraints)
        else:
            last = pending[-1] if pending else self._system.rounds.recent.last_regimes()
            arm = self._next_regimes(last, rng)
        return Suggestion(arm, EXPLORE, why=Reason("probe"))

    def _next_regimes(self, played: Intervention, rng: np.random.Generator) -> Intervention:
        """Every node in its next regime (of two, the other one), or the nearest that is allowed."""
        moved = ((played.astype(np.int64) + 1) % self.constraints.regimes).astype(np.uint8)
        return nearest_allowed(moved, self.constraints, rng)

    def _least_played(
        self, rng: np.random.Generator, pending: Sequence[Intervention]
    ) -> Intervention:
        """Every factor at a level that was played least, or the nearest that is allowed."""
        allowed = self.constraints
        # what failed is played, too: else a level that always fails would be asked for every time
        rows = [*self._system.rounds.recent.regimes(self.n_told), *self.failures.failed(), *pending]
        played = allowed.levels(np.array(rows, dtype=np.uint8).reshape(-1, self.n_nodes))
        levels = []
        for factor, n_levels in enumerate(allowed.factors.levels):
            counts = np.bincount(played[:, factor], minlength=n_levels)
            levels.append(int(rng.choice(np.flatnonzero(counts == counts.min()))))
        wanted = allowed.factors.interventions([levels])[0].astype(np.uint8)
        return nearest_allowed(wanted, allowed, rng)

    def _by_draws(
        self,
        rng: np.random.Generator,
        pending: Sequence[Intervention],
        context: Mapping[int, float],
    ) -> Suggestion:
        """By the information ratio, or by a quantile of the reward over draws of the system."""
        zero = float(self._system.rounds.origin[self.reward])  # of the draws, in the data
        config, allowed = self.config, self.constraints.relative_to(zero)
        # The ratio knows nothing of results to come, and would ask the same again.
        if self._weighs_information and not pending and allowed.count(MAX_RATIOS) is not None:
            n = min(DRAWS_OF_RATIO * config.draws, MAX_DRAWS)
            draws = self._draws(rng, n, context)
            best = least_ratio(draws, self.reward, config.quantile, allowed)
        else:
            draws = self._draws(rng, config.draws, context)
            best = most_optimistic(draws, self.reward, config.quantile, allowed)
        return suggestion_of(best, zero)

    def _draws(self, rng: np.random.Generator, n: int, context: Mapping[int, float]) -> Draws:
        """Draws of the system, given what is known of the context today."""
        system = self._system
        draws = system.draw(rng, n)
        if not context:
            return draws
        known = {node: x - float(system.rounds.origin[node]) for node, x in context.items()}
        return draws.given_context(self.config.context, known)

    def _by_knowledge_gradient(
        self, rng: np.random.Generator, pending: Sequence[Intervention]
    ) -> Suggestion:
        system, allowed = self._system, self.constraints
        recent = system.rounds.recent
        if self.n_told + len(pending) < 2:
            played = [*recent.regimes(1), *pending]
            first = (
                self._next_regimes(played[-1], rng) if played else random_intervention(rng, allowed)
            )
            return Suggestion(first, EXPLORE, why=Reason("first two"))
        scale, zero = system.scale_of(self.reward), system.in_data(0.0, self.reward)
        arms = allowed_arms(allowed)
        last_alarm = self.alarms[-1].round if self.alarms else 0
        asked = Situation(
            reward=self.reward,
            regimes=self.regimes,
            arms=arms._replace(worth=arms.worth.in_units(scale, zero)),
            pending=_rows(pending, self.n_nodes),
            recent=recent.regimes(RECENT_ROUNDS),
            age=self.n_told - last_alarm + len(pending),
        )
        posterior, quantile = system.posterior, self.config.quantile
        if asked.age < EARLY_ROUNDS:
            chosen = early_round(posterior.deciding, rng, asked, quantile)
        else:
            average = self._average_rewards()
            chosen = late_round(posterior, average, rng, asked, quantile)
        return Suggestion(
            chosen.intervention,
            EXPLOIT if chosen.instead_of is None else EXPLORE,
            system.in_data(chosen.mean, self.reward),
            chosen.width * scale,
            reason_of(chosen, scale),
        )

    def _average_rewards(self) -> AverageRewards:
        """Computed once for all rounds in which the posterior is the same."""
        posterior, as_of = self._system.posterior, self._refreshed
        if self._average is None or self._average[0] is not posterior or self._average[1] != as_of:
            # A stream of its own: the result must not depend on which round asks first. Its name
            # is part of the random numbers and stays.
            rng = stream(0, "lookahead", as_of)
            found = average_rewards(posterior, rng, self.reward)
            self._average = posterior, as_of, found
        return self._average[2]

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
                f"{DESIGNED_ROUNDS} results are in"
            )
        return recommend(belief, self.reward, self.constraints, tolerance=tolerance)

    def learn(self, a: Intervention, x: FloatArray) -> None:
        system = self._system
        rounds = system.rounds
        stale = rounds.stale(a, self.made)  # from before a known change
        predict = self.watches or rounds.judges_by_prediction(self.n_told)
        view = system.view(x, stale) if predict else None
        # Before the round is learned: a prediction that knows the round would not be surprised by
        # it.
        alarms = [] if view is None else self._watch(a, x, view)
        # a test was played for its result, so the next decision must know it: refresh now
        tested = self._by_gradient and not np.array_equal(a, rounds.recent.last_regimes())
        rounds.take_in(
            Round(self.n_told, a, x), self.made, stale,
            changed=bool(self.alarms), view=view, predictors=system.predictors,
        )  # fmt: skip
        self._probes_left = max(self._probes_left - 1, 0)
        if not system.settle(self.n_told, changed=bool(self.alarms)):
            return
        for alarm in alarms:  # after `settle`: moments are relative to the origin found there
            self.alarms.append(alarm)
            system.forget(alarm, self.n_told, self.made)
            for regime, node in alarm.mechanisms(self.regimes):
                self.detector.forget(regime, node)
                self._starts[regime, node] = alarm.change_point
            # Others may have changed with it, and most mechanisms are not played by the best
            # intervention.
            self._probes_left = self.config.probes
        due = self.n_told % self.config.refresh == 0
        if alarms or self.n_told <= LAST_ROUND_REFRESHED_ALONE or due or tested:
            system.refresh(self.n_told)
            self._refreshed = self.n_told
            predicts = self.watches or rounds.outliers is not None
            if predicts and (alarms or due):
                system.judge_predictors()

    def restore_own(self, state: dict[str, Any]) -> None:
        super().restore_own(state)
        self._starts = starts_after(self.alarms, self.regimes)


def uses_knowledge_gradient(config: PosteriorConfig, method: str, regimes: Counts) -> bool:
    """Whether a policy decides by the knowledge gradient; SettingError if it should and cannot."""
    obstacle, decide = "", config.decide
    if config.columns is not None:
        obstacle = "knows regimes of nodes, and no factors that shift them"
    elif method != EXACT:
        obstacle = f"needs the exact posterior, method 'exact', not {method!r}"
    elif n_interventions(regimes) > 2**MAX_TABLE_NODES:
        obstacle = (
            f"compares all interventions, at most 2^{MAX_TABLE_NODES} = {2**MAX_TABLE_NODES}, "
            f"and these {len(regimes)} nodes have {n_interventions(regimes)}"
        )
    if decide == KNOWLEDGE_GRADIENT and obstacle:
        raise SettingError(f"decide='knowledge-gradient' {obstacle}; take decide='quantile'")
    return decide in (KNOWLEDGE_GRADIENT, AUTO) and not obstacle


def reason_of(chosen: Chosen, scale: float) -> Reason:
    """Why it is played; `scale` is one unit of the posterior's reward in the data."""
    if chosen.instead_of is None:
        return Reason("steady")
    tested = np.flatnonzero(chosen.intervention != chosen.instead_of)
    return Reason(
        TEST,
        tuple(tested.tolist()),
        saved=chosen.saved * scale,
        rounds=chosen.rounds,
        cost=max(chosen.paid, 0.0) * scale,
    )


def _rows(pending: Sequence[Intervention], n_nodes: int) -> npt.NDArray[np.uint8]:
    rows = np.array(list(pending)[-MAX_PENDING:], dtype=np.uint8)
    return np.ascontiguousarray(rows.reshape(-1, n_nodes))
