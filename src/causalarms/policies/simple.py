"""Policies without a model: `random`, `oracle` and `ucb`, the baselines of every comparison."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from numpy.random import Generator

from causalarms.arrays import FloatArray, Intervention
from causalarms.checks import instance, integer, number, optional
from causalarms.errors import SettingError
from causalarms.limits import MAX_TABLE_NODES
from causalarms.policies.base import EXPLOIT, EXPLORE, Pending, Policy, Reason, Suggestion
from causalarms.search.best import best_intervention
from causalarms.search.constraints import Constraints
from causalarms.sem.linear_sem import LinearSEM
from causalarms.sem.regimes import regimes_of
from causalarms.sem.rewards import allowed_arms, check_enumerable, index_of, intervention_of
from causalarms.state import Declared

MAX_ARMS_IN_LIST = 2**MAX_TABLE_NODES  # more are drawn by their factors
DRAWN_ARMS = 100
MAX_KEPT_REWARDS = 2**27  # rewards, 1 GiB


class RandomPolicy(Policy):
    """`random`: every intervention is equally likely; is told nothing and learns nothing."""

    def suggest(self, rng: Generator, *, pending: Pending = ()) -> Suggestion:
        return Suggestion(random_intervention(rng, self.constraints), EXPLORE, why=Reason("random"))

    def learn(self, a: Intervention, x: FloatArray) -> None:
        pass


def random_intervention(rng: Generator, allowed: Constraints) -> Intervention:
    """One of the allowed interventions, each as likely as the others."""
    known = regimes_of(allowed.regimes, allowed.n_nodes)
    if not allowed.free:
        if known.n_interventions > MAX_ARMS_IN_LIST:
            return allowed.random(rng)
        arm = int(rng.choice(allowed_arms(allowed).indices))
        return intervention_of(arm, len(known), known)
    # numbers from a scalar and from an array of bounds differ; runs of the paper keep theirs
    if known.all_two:
        return rng.integers(0, 2, len(known), dtype=np.uint8)
    return rng.integers(0, known.counts, dtype=np.uint8)


def nearest_allowed(wanted: Intervention, allowed: Constraints, rng: Generator) -> Intervention:
    """An allowed intervention with as many regimes of the wanted one as possible.

    If there are too many to look at all of them, one of some that are drawn at random.
    """
    if allowed.free:
        return wanted
    known = regimes_of(allowed.regimes, allowed.n_nodes)
    few = known.n_interventions <= MAX_ARMS_IN_LIST
    if few and allowed.allows(wanted[None])[0]:  # not listed: the first rounds need no compiler
        return wanted.copy()
    if allowed.count(MAX_ARMS_IN_LIST) is None:
        rows = np.stack([allowed.random(rng) for _ in range(DRAWN_ARMS)])
    else:
        rows = allowed.interventions(MAX_ARMS_IN_LIST)
    unlike = (rows != wanted).sum(axis=1)
    return rows[rng.choice(np.flatnonzero(unlike == unlike.min()))].copy()


class Oracle(Policy):
    """`oracle`: the best intervention of every round, the zero line of regret.

    systems         the true ones, in the order in which they are played
    change_points   rounds after which the next system replaces the one before
    """

    def __init__(
        self,
        n_nodes: int,
        reward: int = -1,
        *,
        systems: Sequence[LinearSEM],
        change_points: Sequence[int] = (),
        regimes: npt.ArrayLike | None = None,
    ) -> None:
        try:
            systems, change_points = list(systems), list(change_points)
        except TypeError as error:
            raise SettingError("systems and change_points must be lists") from error
        for system in systems:
            instance("systems", system, LinearSEM)
        known = systems[0].regimes if systems and regimes is None else regimes
        super().__init__(n_nodes, reward, regimes=known)
        for system in systems:
            if not np.array_equal(system.regimes, self.regimes):
                raise SettingError("regimes are not those of the systems")
        for point in change_points:
            integer("change_points", point, minimum=0)
        if len(systems) != len(change_points) + 1:
            raise SettingError(
                f"{len(systems)} systems do not fit {len(change_points)} change_points"
            )
        self._change_points = change_points
        self._systems = systems
        self._best: dict[int, Suggestion] = {}  # by the number of the system

    def suggest(self, rng: Generator, *, pending: Pending = ()) -> Suggestion:
        # Right: in the round after a change point the next system answers.
        system = int(np.searchsorted(self._change_points, self.n_told, side="right"))
        if system not in self._best:
            self._best[system] = self._best_of(self._systems[system])
        return self._best[system]

    def _best_of(self, sem: LinearSEM) -> Suggestion:
        best = best_intervention(
            sem.weights, sem.mechanism_mean, sem.order, self.reward, constraints=self.constraints
        )
        a = best.intervention
        return Suggestion(a, EXPLOIT, float(sem.expected_reward(a[None])[0]), 0.0)

    def constrain(self, constraints: Constraints) -> Self:
        self._best.clear()  # they were the best of all
        return super().constrain(constraints)

    def fail(self, intervention: npt.ArrayLike) -> None:
        self._best.clear()  # what mostly fails is no more allowed
        super().fail(intervention)

    def restore_own(self, state: dict[str, Any]) -> None:
        self._best.clear()

    def learn(self, a: Intervention, x: FloatArray) -> None:
        pass


class UCB(Policy):
    """`ucb`: vanilla UCB over all interventions, 2^N unrelated arms with K = 2 (Sec. VI-B).

    Every arm once, then the largest mean + alpha sqrt(ln t / n). Is told nothing but which node is
    the reward.

    alpha    weight of the width
    window   plays of an arm whose mean counts, in a world that changes; None: all
    """

    learned: ClassVar[Declared] = dict.fromkeys(("_plays", "_means", "_recent"), np.ndarray)

    def __init__(
        self,
        n_nodes: int,
        reward: int = -1,
        *,
        alpha: float = 1.0,
        window: int | None = None,
        regimes: npt.ArrayLike | None = None,
    ) -> None:
        super().__init__(n_nodes, reward, regimes=regimes)
        check_enumerable(self.n_nodes, self._regimes)
        n_arms = self._regimes.n_interventions
        self.alpha = number("alpha", alpha, minimum=0.0)
        self.window = window = optional(
            integer, "window", window, minimum=1, maximum=MAX_KEPT_REWARDS // n_arms,
            why=f"so many plays of {n_arms} arms are kept",
        )  # fmt: skip
        self._plays = np.zeros(n_arms, dtype=np.int64)
        self._means = np.zeros(n_arms)
        self._recent = np.zeros((n_arms, window or 0))  # a ring per arm

    def suggest(self, rng: Generator, *, pending: Pending = ()) -> Suggestion:
        unplayed = np.flatnonzero(self._plays == 0)
        if not self.constraints.free:
            unplayed = unplayed[np.isin(unplayed, allowed_arms(self.constraints).indices)]
        if len(unplayed):
            arm = int(rng.choice(unplayed))
            untried = intervention_of(arm, self.n_nodes, self._regimes)
            return Suggestion(untried, EXPLORE, why=Reason("untried"))
        # a full argmax without constraints: indexing 2^N arms by an array of all of them is slower
        widths = self._widths()
        if self.constraints.free:
            arm = int(np.argmax(self._means + widths))
        else:
            arms, worth = allowed_arms(self.constraints)
            arm = int(arms[np.argmax(worth.net(self._means[arms] + widths[arms]))])
        best = intervention_of(arm, self.n_nodes, self._regimes)
        return Suggestion(best, EXPLOIT, float(self._means[arm]), float(widths[arm]))

    def _widths(self) -> FloatArray:
        """The widths of all arms; one that was not played is as wide as if it had been once."""
        return self.alpha * np.sqrt(np.log(max(self.n_told, 1)) / np.maximum(self._plays, 1))

    def learn(self, a: Intervention, x: FloatArray) -> None:
        arm, value = int(index_of(a, self._regimes)), float(x[self.reward])
        n = int(self._plays[arm])
        self._plays[arm] += 1
        if self.window is None:
            self._means[arm] += (value - self._means[arm]) / (n + 1)
        else:
            self._recent[arm, n % self.window] = value
            self._means[arm] = self._recent[arm, : min(n + 1, self.window)].mean()
