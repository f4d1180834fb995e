"""`csl-ucb` and `csl-ucb-cd`: Algorithm 2, with the change detection of Sec. V as a part.

Random interventions until every mechanism has `min_samples` samples; then every `refresh` rounds
the graph is learned by CSL, all interventions are scored by mean + alpha U (eq. select_a), and the
best is played until the next refresh. An alarm makes one mechanism forget; interventions are random
again until it has samples.

If the noise means are unknown, values are taken relative to each node's median at the last fit,
so that adding a constant to a node changes no choice: |mu_a| in U is the distance from there, and
alpha_0 = 0.5 (max mean - average mean) / max U, both over the interventions that are scored. With
known noise means values are what they are, as in the paper.

Where the authors' text and program differ (docs/paper-map.md), the program uses the first 100
samples of a mechanism, takes alpha_0 = 0.5 max mean / max U at the first fit, lets it fall as
alpha_0 (1 + cos(pi (t - t_c) / (T - t_c))) / 2 after the last change t_c, and holds the chosen
intervention between refreshes (hold=True). So does this policy. Both learn the regimes apart;
`csl-ucb-joint` and `csl-ucb-joint-cd`, which give all regimes one order, are ours.

Beyond 20 nodes the score is evaluated on candidates only: the 20 best by estimated mean, found by
branch and bound, and all that differ from one of them in one node. The best mean is then proven but
the best score is not, and the largest mean and U in alpha_0 are those of the candidates.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from numpy.random import Generator

from causalarms.arrays import BoolArray, FloatArray, Intervention
from causalarms.changes.detector import MODEL, Alarm, DatasetView, Detector
from causalarms.checks import choice, flag, fraction, integer, number, optional
from causalarms.errors import SettingError
from causalarms.graphs.csl import Chain, CSLSettings, csl
from causalarms.graphs.inputs import as_noise_mean, as_noise_std
from causalarms.limits import MAX_HORIZON
from causalarms.models.belief import Belief, belief_given_graph
from causalarms.models.best_of_model import ScoredInterventions
from causalarms.models.linear import FORMS, MechanismWeights, Scores, best_score, fit_weights
from causalarms.policies.base import (
    EXPLOIT,
    EXPLORE,
    Pending,
    Policy,
    Reason,
    Suggestion,
)
from causalarms.policies.simple import random_intervention
from causalarms.posterior.prior import edge_masks
from causalarms.search.constraints import Constraints
from causalarms.sem.regimes import find_cycle
from causalarms.state import Declared
from causalarms.statistics.dataset import Dataset, Moments, gram_matrix
from causalarms.statistics.units import Units, estimated_units

NOT_FITTED = -1


class CSLUCB(Policy):
    """Is told the horizon and, if known, the noise means (and standard deviations).

    horizon             rounds that will be played
    noise_mean          (N,) or (R, N); None: an intercept per mechanism is estimated
    noise_std           (N,) or (R, N); None: estimated
    min_samples         of every mechanism before the first fit; at least N + 2
    max_samples         of a mechanism that are used, the oldest; None: all
    refresh             rounds between two fits of the graph
    refresh_weights     rounds between two fits of the weights; None: as `refresh`
    joint               False learns the regimes apart, as the paper; True, ours: one order for all
    k                   neighbours of the mutual-information estimate
    delta               probability with which a bound may fail
    bound               form of U: "theorem" is that of Theorem 1
    alpha               weight of U in every round; None: alpha_0, falling
    hold                keep the chosen intervention until the next refresh
    allowed, required   edges that may be and that must be, (N, N) or (2, N, N) as [.., from, to]
    detector            one that looks at a model, or its name; None if nothing changes
    """

    offers = (MODEL,)
    learned: ClassVar[Declared] = {
        "_data": Dataset,
        "_moments": Moments,
        "detector": Detector,
        "_adjacency": np.ndarray | None,
        "_model": MechanismWeights | None,
        "_units": Units,
        "_fitted": np.ndarray,
        "_alpha_0": float,
        **dict.fromkeys(("_held", "_graph_round", "_weights_round", "_change_round"), int),
    }

    def __init__(
        self,
        n_nodes: int,
        reward: int = -1,
        *,
        horizon: int,
        noise_mean: npt.ArrayLike | None = None,
        noise_std: npt.ArrayLike | None = None,
        min_samples: int = 20,
        max_samples: int | None = 100,
        refresh: int = 20,
        refresh_weights: int | None = None,
        joint: bool = False,
        k: int = 5,
        delta: float = 0.05,
        bound: str = "theorem",
        alpha: float | None = None,
        hold: bool = True,
        allowed: npt.ArrayLike | None = None,
        required: npt.ArrayLike | None = None,
        detector: Detector | str | None = None,
        regimes: npt.ArrayLike | None = None,
    ) -> None:
        super().__init__(n_nodes, reward, regimes=regimes)
        n_nodes = self.n_nodes
        horizon = integer("horizon", horizon, minimum=1, maximum=MAX_HORIZON)
        min_samples = integer("min_samples", min_samples, minimum=1)
        max_samples = optional(integer, "max_samples", max_samples, minimum=1)
        self.min_samples = max(min_samples, n_nodes + 2)  # one regression on all other nodes
        least = self.n_regimes * self.min_samples
        if horizon <= least:
            raise SettingError(
                f"a horizon of {horizon} rounds is too short: {least} random rounds "
                f"are the least that give every mechanism of {self.n_regimes} regimes "
                f"{self.min_samples} samples (min_samples)"
            )
        if max_samples is not None and max_samples < self.min_samples:
            raise SettingError(
                f"max_samples is {max_samples}: a mechanism would never have the "
                f"{self.min_samples} samples that end the exploration"
            )
        self.horizon = horizon
        self.noise_mean = as_noise_mean(noise_mean, self._nodes, self.n_regimes)
        self.noise_std = as_noise_std(noise_std, self._nodes, n_regimes=self.n_regimes)
        self.refresh = integer("refresh", refresh, minimum=1)
        self.refresh_weights = (
            optional(integer, "refresh_weights", refresh_weights, minimum=1) or self.refresh
        )
        self.joint = flag("joint", joint)
        self.k = integer(
            "k", k, minimum=1, maximum=self.min_samples - 1,
            why="fewer than min_samples, from which a mechanism is first learned",
        )  # fmt: skip
        self.delta = fraction("delta", delta)
        self.bound = choice("bound", bound, FORMS)
        self.alpha = optional(number, "alpha", alpha, minimum=0.0)
        self.hold = flag("hold", hold)
        self.allowed, self.required = edge_masks(self.regimes, allowed, required)
        if find_cycle(self.required.any(axis=0)):
            raise SettingError(
                "no order of the nodes fits the required edges: they contain a cycle"
            )
        self._use_detector(detector)
        self.n_cyclic = 0  # of those scored at the last refresh, how many have no expected reward
        self._exist = self._regimes.existing
        self._data = Dataset(n_nodes, cap=max_samples, regimes=self._regimes)
        self._moments = Moments(n_nodes, cap=max_samples, regimes=self._regimes)
        self._chains: dict[tuple[int, int], Chain] = {}
        self._adjacency: BoolArray | None = None
        self._model: MechanismWeights | None = None
        self._units = Units(np.zeros(n_nodes), np.ones(n_nodes))  # those of model and scores
        self._scored: ScoredInterventions | None = None
        self._fitted = np.full(
            (2, *self._exist.shape), NOT_FITTED
        )  # counts and starts the model was fitted to
        self._held = 0
        self._alpha_0 = 0.0
        self._graph_round = 0
        self._weights_round = 0
        self._change_round = 0

    @property
    def adjacency(self) -> BoolArray | None:
        return self._adjacency

    @property
    def model(self) -> MechanismWeights | None:
        """The weights believed now, in the units of the data; None before the first fit."""
        model, units = self._model, self._units
        if model is None or units.trivial:
            return model
        intercept = self.noise_mean
        if intercept is None:
            intercept = units.intercept(model.intercept, model.weights)
        return replace(model, intercept=intercept, noise_std=model.noise_std * units.scale)

    @property
    def exploring(self) -> bool:
        return self._scored is None or self._samples_missing

    @property
    def _samples_missing(self) -> bool:
        missing = (self._data.counts < self.min_samples) & self._exist
        if self.constraints.risk is not None:  # mechanisms of what mostly fails get no more rounds
            missing &= self.constraints.reached
        return bool(missing.any())

    def suggest(self, rng: Generator, *, pending: Pending = ()) -> Suggestion:
        if self.exploring or self._scored is None:
            tried = random_intervention(rng, self.constraints)
            return Suggestion(tried, EXPLORE, why=Reason("needs rounds"))
        # The arm that is held was chosen without constraints and may not be allowed.
        if not self.constraints.free:
            return self._best_allowed(self._scored)
        arm = self._held if self.hold else self._choose(self._scored.scores)
        predicted = self._predicted(self._scored.scores, arm)
        return Suggestion(self._scored.intervention(arm), EXPLOIT, *predicted, Reason("trade-off"))

    def constrain(self, constraints: Constraints) -> Self:
        super().constrain(constraints)
        for regime, node in np.argwhere(self._exist).tolist():
            if not (self.constraints.free or self.constraints.reaches(node, regime)):
                raise SettingError(
                    f"constraints: csl-ucb needs rounds of every mechanism, but node "
                    f"{self._nodes[node]!r} can never be in regime {regime}"
                )
        return self

    @property
    def _view(self) -> DatasetView:
        return DatasetView(self._model, self._units, self._data)

    def make_belief(self, rng: Generator, draws: int) -> Belief | None:
        """About its own graph, from all rounds since a mechanism began, whatever `max_samples`."""
        if self._adjacency is None:
            return None
        data = self._data
        units = estimated_units(data.values, center=self.noise_mean is None)
        gram = np.zeros((self.n_regimes, self.n_nodes, self.n_nodes + 1, self.n_nodes + 1))
        for regime, node in np.argwhere(self._exist).tolist():
            rows = data.recent_rows_of(regime, node, len(data))
            gram[regime, node] = gram_matrix(np.ascontiguousarray(units.apply(data.values[rows]).T))
        return belief_given_graph(
            self._adjacency, gram, units, data.starts.copy(), rng, draws,
            noise_mean=self.noise_mean, regimes=self.regimes,
        )  # fmt: skip

    def learn(self, a: Intervention, x: FloatArray) -> None:
        self._data.add(x, a)
        self._moments.add(x, a)
        # After the round was added: a mechanism that alarms forgets this round, too.
        for alarm in self._detect(a, x):
            self._forget(alarm)
        if self._samples_missing:
            return
        # a graph from before the last change is learned again at once
        first = self._scored is None or self._graph_round < self._change_round
        if first or self.n_told - self._graph_round >= self.refresh:
            self._learn_graph()
        if self._graph_round == self.n_told or (
            self.n_told - self._weights_round >= self.refresh_weights
        ):
            self._learn_weights()

    def _detect(self, a: Intervention, x: FloatArray) -> list[Alarm]:
        alarms = self._watch(a, x, self._view)
        # weights from before the last change of a mechanism say nothing about it
        stale = self._data.starts > self._weights_round
        return [
            alarm for alarm in alarms if not all(stale[m] for m in alarm.mechanisms(self.regimes))
        ]

    def _forget(self, alarm: Alarm) -> None:
        self.alarms.append(alarm)
        for regime, node in alarm.mechanisms(self.regimes):
            self._data.forget(regime, node)
            self._moments.forget(regime, node)
            self.detector.forget(regime, node)
        self._change_round = self.n_told

    def _learn_graph(self) -> None:
        fit = csl(
            self._data,
            noise_mean=self.noise_mean,
            allowed=self.allowed,
            required=self.required,
            settings=CSLSettings(joint=self.joint, neighbors=self.k),
            chains=self._chains,
        )
        # other parents need other regressions, although the samples are the same
        if self._adjacency is None or not np.array_equal(fit.adjacency, self._adjacency):
            self._fitted[:] = NOT_FITTED
        self._adjacency = fit.adjacency
        self._graph_round = self.n_told

    def _learn_weights(self) -> None:
        assert self._adjacency is not None
        samples = np.stack([self._moments.counts, self._data.starts])
        if not np.array_equal(samples, self._fitted):  # else the same fit would come out again
            self._fit()
            self._score()
            self._fitted = samples
        assert self._scored is not None
        self._weights_round = self.n_told
        self._held = self._choose(self._scored.scores)
        self.detector.model_changed(self._view)

    def _fit(self) -> None:
        assert self._adjacency is not None
        # the median: one wild value must not move the zero of mechanisms that never saw it
        center = np.median if self.noise_mean is None else None
        units = Units.safe(self._data.values, self._nodes, center=center)
        mean, std = self.noise_mean, self.noise_std
        self._model = fit_weights(
            self._moments if units.trivial else Moments.of(self._data, units.apply),
            self._adjacency,
            noise_mean=None if mean is None else mean / units.scale,
            noise_std=None if std is None else std / units.scale,
        )
        self._units = units

    def _score(self) -> None:
        assert self._model is not None
        self._scored = ScoredInterventions(
            self._model, self.reward,
            delta=self.delta, bound=self.bound, known_mean=self.noise_mean is not None,
        )  # fmt: skip
        self.n_cyclic = self._scored.scores.n_cyclic

    def _predicted(self, scores: Scores, arm: int) -> tuple[float, float]:
        """Reward and bound in the units of the data."""
        scale, shift = self._units.scale[self.reward], self._units.shift[self.reward]
        return float(scores.mean[arm] * scale + shift), float(scores.width[arm] * scale)

    def _best_allowed(self, scored: ScoredInterventions) -> Suggestion:
        """The highest upper bound net of costs."""
        unit, zero = self._units.scale[self.reward], float(self._units.shift[self.reward])
        rows, scores, worth = scored.under(self.constraints, unit)
        best = best_score(worth.in_units(1.0, zero).net(self._bounds(scores) * unit))
        predicted = self._predicted(scores, best)
        return Suggestion(rows[best].copy(), EXPLOIT, *predicted, Reason("trade-off"))

    def _choose(self, scores: Scores) -> int:
        # Once, at the first fit, as in the authors' program; the text has a constant alpha. With an
        # unknown offset the size of a mean says nothing, so it is measured from the average arm.
        if self.alpha is None and self._alpha_0 == 0.0:
            widest = float(np.nanmax(scores.width))  # 0 if no mechanism has a parent
            zero = 0.0 if self.noise_mean is not None else float(np.nanmean(scores.mean))
            self._alpha_0 = 0.5 * abs(np.nanmax(scores.mean) - zero) / widest if widest else 0.0
        return best_score(self._bounds(scores))

    def _bounds(self, scores: Scores) -> FloatArray:
        alpha = self.alpha
        if alpha is None:
            # Half a cosine from the last change to the horizon, which only the program has.
            elapsed = (self.n_told - self._change_round) / max(self.horizon - self._change_round, 1)
            alpha = self._alpha_0 * (1 + np.cos(np.pi * min(elapsed, 1.0))) / 2
        return scores.mean + alpha * scores.width  # eq. select_a

    def restore_own(self, state: dict[str, Any]) -> None:
        super().restore_own(state)
        self._scored = None
        self._chains.clear()  # made again of the rounds that were restored
        if self._model is not None:
            self._score()
