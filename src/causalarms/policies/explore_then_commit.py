"""`golem-mab`, `dagma-mab`, `explore-then-commit`: learn the whole graph, then commit (Sec. VI-B).

`n_explore` rounds of a = 0 for B, as many of a = 1 for B', one fit, and the best intervention of
the learned model for the rest of the horizon. With a whole-graph detector an alarm starts all over.
If the noise means are unknown, values are taken relative to their median when committing.
Beyond 20 nodes, learned regimes that mix into large cycles leave the best intervention unproven.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, cast

import numpy as np
import numpy.typing as npt
from numpy.random import Generator

from causalarms.arrays import BoolArray, FloatArray, Intervention
from causalarms.changes.detector import MODEL, Alarm, CommittedView, Detector
from causalarms.checks import integer
from causalarms.errors import ModelError, SettingError, shown
from causalarms.graphs.inputs import CanFit, WeightLearner, as_noise_mean
from causalarms.graphs.registry import make_learner
from causalarms.limits import MAX_HORIZON
from causalarms.models.belief import Belief, belief_given_graph
from causalarms.models.best_of_model import NOT_COUNTED, best_of_model
from causalarms.models.linear import MechanismWeights
from causalarms.policies.base import (
    EXPLOIT,
    EXPLORE,
    Pending,
    Policy,
    Reason,
    Suggestion,
)
from causalarms.sem.regimes import topological_order
from causalarms.state import Declared
from causalarms.statistics.dataset import gram_matrix
from causalarms.statistics.units import estimated_units

MAX_EXPLORED_ROUNDS = 1_000_000  # all are kept
LEARNER = "golem"  # as golem-mab


class ExploreThenCommit(Policy):
    """Is told the horizon and, if known, the noise means.

    horizon      rounds that will be played
    learner      one that gives weights, intercepts and noise: its registered name, its class, or
                 an object with scikit-learn's `fit`
    noise_mean   (N,) or (2, N); None: estimated
    n_explore    rounds of a = 0, and as many of a = 1
    detector     one that looks at a model, or its name; None if nothing changes
    settings     of the learner, if it is given by its name or class
    """

    offers = (MODEL,)
    keeps_constraints: ClassVar[bool] = False  # all switches in one position first
    learned: ClassVar[Declared] = {
        **dict.fromkeys(("_samples", "_counts", "_recent", "_origin", "_arm"), np.ndarray),
        **dict.fromkeys(("_n_recent", "_fitted_round", "n_cyclic"), int),
        "_predicted": float,
        "proven": bool,
        "_model": MechanismWeights | None,
        "detector": Detector,
    }

    def __init__(
        self,
        n_nodes: int,
        reward: int = -1,
        *,
        horizon: int,
        learner: WeightLearner | Callable[..., Any] | str = LEARNER,
        noise_mean: npt.ArrayLike | None = None,
        n_explore: int = 300,
        detector: Detector | str | None = None,
        regimes: npt.ArrayLike | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(n_nodes, reward, regimes=regimes)
        self._needs_pairs(
            "golem-mab, dagma-mab or explore-then-commit",
            "one graph of all natural and one of all intervened nodes",
        )
        n_nodes = self.n_nodes
        horizon = integer("horizon", horizon, minimum=1, maximum=MAX_HORIZON)
        n_explore = integer("n_explore", n_explore, minimum=1, maximum=MAX_EXPLORED_ROUNDS)
        if n_explore < n_nodes + 2:
            raise SettingError(
                f"n_explore: {n_explore} rounds are too few to learn {n_nodes} nodes from"
            )
        if horizon <= 2 * n_explore:
            raise SettingError(
                f"a horizon of {horizon} rounds leaves nothing after {2 * n_explore} rounds of "
                "exploration; lower n_explore"
            )
        self.learner = _learner_of(learner, settings)
        self.n_explore = n_explore
        self._use_detector(detector)
        self.noise_mean = as_noise_mean(noise_mean, self._nodes)
        self.n_cyclic = 0  # interventions without an expected reward; -1: not counted
        self.proven = True  # that the committed intervention is the learned model's best
        self._samples = np.zeros((2, n_explore, n_nodes))
        self._counts = np.zeros(2, dtype=np.int64)
        self._model: MechanismWeights | None = None
        self._origin = np.zeros(n_nodes)  # the model is of values relative to it
        self._arm = np.zeros(n_nodes, dtype=np.uint8)
        self._predicted = float("nan")
        self._fitted_round = 0
        self._recent = np.zeros((self.detector.window, n_nodes))  # a ring, under the arm
        self._n_recent = 0

    @property
    def adjacency(self) -> BoolArray | None:
        return None if self._model is None else self._model.weights != 0

    def suggest(self, rng: Generator, *, pending: Pending = ()) -> Suggestion:
        if self._model is None:
            regime = 0 if self._counts[0] < self.n_explore else 1
            arm = np.full(self.n_nodes, regime, dtype=np.uint8)
            return Suggestion(arm, EXPLORE, why=Reason("graph"))
        return Suggestion(
            self._arm.copy(),
            EXPLOIT,
            self._predicted + float(self._origin[self.reward]),
            why=Reason("committed", remarks=self._remarks()),
        )

    def _remarks(self) -> tuple[str, ...]:
        """What may be wrong with the intervention it has committed to."""
        remarks = []
        if self.n_cyclic:
            many = "many" if self.n_cyclic == NOT_COUNTED else f"{self.n_cyclic:,}"
            remarks.append(f"{many} settings were left out, their graph has a cycle")
        if not self.proven:
            remarks.append("a better one may have been overlooked")
        return tuple(remarks)

    @property
    def _view(self) -> CommittedView:
        recent = self._recent[: self._n_recent]
        return CommittedView(self.regimes, self._model, self._origin, self._arm, recent)

    def make_belief(self, rng: Generator, draws: int) -> Belief | None:
        """About the graph it learned, from the rounds it learned it from."""
        if self.adjacency is None:
            return None
        units = estimated_units(
            self._samples.reshape(-1, self.n_nodes), center=self.noise_mean is None
        )
        grams = [gram_matrix(np.ascontiguousarray(units.apply(x).T)) for x in self._samples]
        # All nodes were in one regime at a time, so its mechanisms share their rounds.
        gram = np.repeat(np.stack(grams)[:, None], self.n_nodes, axis=1)
        start = self.alarms[-1].round if self.alarms else 0
        starts = np.full((self.n_regimes, self.n_nodes), start, dtype=np.int64)
        return belief_given_graph(
            self.adjacency, gram, units, starts, rng, draws, noise_mean=self.noise_mean
        )

    def learn(self, a: Intervention, x: FloatArray) -> None:
        # the detector compares rounds of one intervention; others would look like a change
        if self._model is not None and np.array_equal(a, self._arm) and len(self._recent):
            self._recent[self._n_recent % len(self._recent)] = x - self._origin
            self._n_recent += 1
        alarms = self._watch(a, x, self._view)
        if alarms:
            self._start_over(alarms)
        elif self._model is None:
            regime = int(a[0])
            if (a == regime).all() and self._counts[regime] < self.n_explore:
                self._samples[regime, self._counts[regime]] = x
                self._counts[regime] += 1
            if (self._counts == self.n_explore).all():
                self._commit()

    def _commit(self) -> None:
        regimes = np.repeat([0, 1], self.n_explore)[:, None] * np.ones(self.n_nodes, dtype=int)
        values = self._samples.reshape(-1, self.n_nodes)
        # Known noise means are relative to 0, so values are then left as they are.
        if self.noise_mean is None:
            self._origin = np.median(values, axis=0)
        fit = self.learner.fit(
            values - self._origin, interventions=regimes, noise_mean=self.noise_mean
        )
        self._use(*self._learned(fit))
        self._fitted_round = self.n_told
        self.detector.model_changed(self._view)

    def _learned(self, fit: WeightLearner) -> list[FloatArray]:
        """Weights, intercepts and noise, checked: learners of other packages are welcome."""
        n, found = self.n_nodes, []
        for name, shape in (
            ("weights_", (2, n, n)),
            ("intercept_", (2, n)),
            ("noise_std_", (2, n)),
        ):
            values = np.asarray(getattr(fit, name, np.nan), dtype=float)
            if values.shape != shape or not np.isfinite(values).all():
                raise ModelError(
                    f"the learner {self.learner!r:.60} leaves no finite {name} of shape {shape}: "
                    "a policy cannot commit to what it has learned"
                )
            found.append(values)
        return found

    def _start_over(self, alarms: list[Alarm]) -> None:
        """Whatever has changed: the whole graph is learned at once or not at all."""
        self.alarms += alarms
        self._counts[:] = 0
        self._model = None
        for regime, node in np.argwhere(self._regimes.existing).tolist():
            self.detector.forget(regime, node)

    def _use(self, weights: FloatArray, intercept: FloatArray, noise_std: FloatArray) -> None:
        order = topological_order((weights != 0).any(axis=0))
        nothing = np.zeros((2, self.n_nodes))
        self._model = MechanismWeights(
            weights, intercept, noise_std, nothing, nothing.astype(np.int64), order
        )
        best = best_of_model(self._model, self.reward)
        self._arm, self._predicted = best.intervention, best.mean
        self.n_cyclic, self.proven = best.n_cyclic, best.proven
        self._n_recent = 0


def _learner_of(given: Any, settings: dict[str, Any]) -> WeightLearner:
    if isinstance(given, str) or callable(given):
        given = make_learner(given, **settings)
        # A learner that can tell refuses its settings now, not after the exploration.
        if hasattr(given, "check_settings"):
            given.check_settings()
    elif settings:
        raise SettingError(
            f"{next(iter(settings))}: the learner {shown(given)} is made already; give it its "
            "settings, or the policy its class"
        )
    if not isinstance(given, CanFit):
        raise SettingError(f"learner: {given!r:.60} has no fit(X, interventions=, noise_mean=)")
    return cast(WeightLearner, given)
