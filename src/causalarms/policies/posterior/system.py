"""The settings of `posterior` (`PosteriorConfig`), and what it has learned (`LearnedSystem`).

Values reach the posterior relative to the origin of the rounds and in units of their own.
Everything that is read from it here is in the units of the data again. Detectors see each round as
it was predicted from the rounds before it (`PredictiveView`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from causalarms.arrays import BoolArray, FloatArray, IntArray
from causalarms.changes.detector import Alarm, Detector
from causalarms.changes.predictive import PredictiveView
from causalarms.checks import as_sequence, choice, fraction, integer, optional
from causalarms.errors import SettingError, shown
from causalarms.graphs.inputs import ESTIMATE, as_noise_mean, as_noise_scale, as_noise_std
from causalarms.limits import MAX_EXACT_NODES
from causalarms.models.belief import Belief
from causalarms.policies.posterior.rounds import (
    DESIGNED_ROUNDS,
    UNITS_AGAIN,
    ToldRounds,
    show_units,
    units_shown_by,
)
from causalarms.posterior.base import METHODS, Draws, Posterior
from causalarms.posterior.chains import SampledPosterior
from causalarms.posterior.exact import ExactPosterior
from causalarms.posterior.missing import PosteriorMixture
from causalarms.posterior.prior import (
    FactorColumns,
    MechanismPrior,
    bytes_allowed,
    edge_masks,
    per_mechanism,
)
from causalarms.rng import stream
from causalarms.sem.regimes import Counts
from causalarms.state import Declared, HasState, arrays, restore_state
from causalarms.statistics.dataset import Moments
from causalarms.statistics.units import Units

AUTO, EXACT, SAMPLED = METHODS
QUANTILE, KNOWLEDGE_GRADIENT = "quantile", "knowledge-gradient"
INFORMATION_RATIO = "information-ratio"
DECIDE = (QUANTILE, INFORMATION_RATIO, KNOWLEDGE_GRADIENT, AUTO)
LEARN, DROP = GAPS = ("learn", "drop")
KEPT, LEFT_OUT = TYPING_ERRORS = ("kept", "left out")
MAX_DRAWS = 10_000
DRAWS_OF_RATIO = 5  # times as many as of a quantile: means of groups of draws are compared
TINY = 1e-24  # of a mean squared: what is left of the variance of a constant
FIRST_SWEEPS = 20  # of chains that have seen nothing yet
# Of rounds with missing values. Few make intervals too narrow: with half of the cells missing, 4 of
# 3 sweeps hold the truth in 84 %, 8 of 2 sweeps in 90 %, and 12 of one sweep are no better.
COMPLETIONS, FEW_COMPLETIONS = 8, 4
SWEEPS = 2  # of each completion in every round, as long as tables are small
BYTES_FOR_SWEEPS = 2**19  # of tables: up to 10 nodes
BYTES_FOR_ALL = 2**23  # more, from 15 nodes on: there are few, and one of them changes in a round
# of effects of factors and weights, with every node in units of its spread: from "explains half of
# the variance" to "explains nearly all of it"
SCALES_OF_SPREADS = (1.0, 4.0, 16.0)
UNITS_MOVED = 0.2  # by this fraction before they are taken again, and all scores with them
NOISE_SHAPE_OF_SPREADS = 0.01  # next to nothing: the size of the noise is for the data to say
# of the noise next to the guess from a few rounds, which is right to a factor of a few
NOISE_SCALES = (0.5, 1.0, 2.0, 4.0)
NO_EDGE_PROBABILITY = 0.05  # an edge below it is taken as absent when rounds are predicted
# a node is not tested if both directions of one of its edges are likelier than this
OPEN_DIRECTION_PROBABILITY = 0.3


@dataclass(frozen=True, kw_only=True)
class PosteriorConfig:
    """The settings of `posterior`; those that do not depend on the nodes are checked here."""

    noise_mean: npt.ArrayLike | None = None
    """Means of the noise if they are known, a number, (N,) or (R, N)."""
    noise_std: npt.ArrayLike | None = None
    """Standard deviations of the noise if they are known, likewise."""
    method: str = AUTO
    """ "exact" sums over all orders, "sampled" runs chains over them; "auto": exact up to 16 nodes,
    with which a refresh takes 0.1 s; two nodes more take four times that."""
    draws: int = 20
    """Draws of the whole system in every round; `quantile` of 20 draws is the third best. The
    information ratio takes five times as many."""
    quantile: float = 0.9
    """The upper value of an intervention is this quantile of its reward over the draws."""
    decide: str = AUTO
    """ "quantile": the intervention of the highest upper value. "knowledge-gradient": the one whose
    reward and whose result together are worth most to the rounds that follow
    (`models/knowledge_gradient`), with the exact posterior and at most 2^15 interventions.
    "information-ratio": the one that costs least for what it tells about which is best
    (`models/draws`), of at most 2^12. "auto": "information-ratio" with factors that
    shift nodes, else "knowledge-gradient" if it can."""
    refresh: int = 5
    """After 300 rounds the posterior learns rounds in groups of this size."""
    edge_probability: float | str = 0.5
    """Prior probability of an edge, or "adaptive" (`MechanismPrior`)."""
    weight_scale: float = 1.5
    """Prior spread of weights, in units of the noise."""
    noise_shape: float = 0.5
    """Half of how many samples the prior of the noise's variance counts as."""
    noise_scale: npt.ArrayLike | str = ESTIMATE
    """About what the noise's standard deviation is, a number or one per node: the units of the
    prior. "estimate": from the spread of the first rounds, for measurements in units of their own;
    half, twice and four times that are as likely."""
    gaps: str = LEARN
    """ "learn" from the other values of rounds with missing values (nan); "drop": refuse them."""
    memory_limit: int | None = None
    """Bytes for the tables; None: 1 GiB."""
    allowed: npt.ArrayLike | None = None
    """Edges that may be, (N, N) or (R, N, N) as [.., from, to]."""
    required: npt.ArrayLike | None = None
    """Edges that must be, likewise."""
    columns: FactorColumns | None = None
    """What stands for factors that shift nodes: the last so many of the nodes."""
    context: Sequence[int] = ()
    """Nodes whose values may be known before a round (`suggest`): nothing else causes them."""
    detector: Detector | str | None = None
    """A detector that uses predictions, or its name; None if nothing changes."""
    probes: int = 0
    """Interventions after an alarm, random ones and their opposites in turn."""
    typing_errors: str = LEFT_OUT
    """ "kept", or "left out": nothing is learned from a round with a value that is probably a
    typing error, until others like it come."""

    def __post_init__(self) -> None:
        choice("typing_errors", self.typing_errors, TYPING_ERRORS)
        if self.columns is not None and not isinstance(self.columns, FactorColumns):
            raise SettingError(f"columns must be FactorColumns, not {shown(self.columns)}")
        for node in as_sequence("context", self.context, "numbers of nodes"):
            integer("context", node, minimum=0)
        self.prior()
        n_draws(self.draws)
        fraction("quantile", self.quantile, ends="[]")
        integer("refresh", self.refresh, minimum=1)
        integer("probes", self.probes, minimum=0)
        choice("method", self.method, METHODS)
        choice("gaps", self.gaps, GAPS)
        choice("decide", self.decide, DECIDE)
        optional(integer, "memory_limit", self.memory_limit, minimum=1)

    def prior(self) -> MechanismPrior:
        if self.columns is not None:
            return MechanismPrior(
                edge_probability=self.edge_probability,
                weight_scale=SCALES_OF_SPREADS,
                noise_shape=NOISE_SHAPE_OF_SPREADS,
            )
        return MechanismPrior(
            edge_probability=self.edge_probability,
            weight_scale=self.weight_scale,
            noise_shape=self.noise_shape,
            noise_scales=NOISE_SCALES if self.guesses_units else (1.0,),
        )

    @property
    def guesses_units(self) -> bool:
        """Whether the size of the noise is guessed from the spread of the first rounds."""
        return isinstance(self.noise_scale, str) and self.columns is None

    def method_for(self, n_nodes: int) -> str:
        """ "exact" or "sampled"."""
        if self.method != AUTO:
            return self.method
        return EXACT if n_nodes <= MAX_EXACT_NODES else SAMPLED


def n_draws(value: object) -> int:
    return integer("draws", value, minimum=1, maximum=MAX_DRAWS)


# what a posterior is made with
MADE_WITH: Declared = {"units": Units | None, **arrays("known")}


class LearnedSystem(HasState):
    """Rounds, the units estimated from them (None until then), and the posterior.

    config    the settings
    regimes   how many regimes each node has, (N,)
    nodes     names of the nodes
    """

    learned: ClassVar[Declared] = {
        **arrays("predictors", "tested"),
        **MADE_WITH,
        "rounds": ToldRounds,
        "posterior": PosteriorMixture,
    }

    def __init__(self, config: PosteriorConfig, regimes: Counts, nodes: tuple[str, ...]) -> None:
        n, most = len(nodes), int(regimes.max())
        self.config = config
        self.n_measured = n - (0 if config.columns is None else len(config.columns.factors))
        self.regimes = regimes
        self.method = config.method_for(self.n_measured)
        if config.columns is not None and self.method != EXACT:
            why = (
                f"with at most {MAX_EXACT_NODES} nodes; here are {self.n_measured}. Leave out nodes"
                if config.method == AUTO
                else f"not method={config.method!r}. Leave that out"
            )
            raise SettingError(
                f"factors that shift nodes need the exact posterior, {why}, or say of every factor "
                "which nodes it acts on and that its effect is free"
            )
        self._edges = edge_masks(regimes, config.allowed, config.required)
        self._noise_mean = as_noise_mean(config.noise_mean, nodes, most)  # (R, N) or None
        self._noise_std = as_noise_std(config.noise_std, nodes, n_regimes=most)
        self._known_noise = (
            per_mechanism(self._noise_mean, regimes),
            per_mechanism(self._noise_std, regimes),
        )
        scale = as_noise_scale(config.noise_scale, nodes)
        units = None if scale is None else Units(shift=np.zeros(n), scale=scale)
        self.rounds = ToldRounds(
            regimes, self.n_measured, set_aside_errors=config.typing_errors == LEFT_OUT
        )
        # which nodes predict which, as [node, predictor], and whose predictions are tested:
        # none before the posterior is judged for the first time
        self.predictors: BoolArray = np.zeros((n, n), dtype=bool)
        self.tested: BoolArray = np.zeros(n, dtype=bool)
        self.known: BoolArray = np.ones(n, dtype=bool)  # nodes with values to learn from
        self._use(units)

    def _use(self, units: Units | None) -> None:
        """Use these units from now on, with a posterior that has seen nothing yet."""
        self.units = units
        self.posterior = PosteriorMixture(lambda: self._fresh_posterior(units))

    def _fresh_posterior(self, units: Units | None) -> Posterior:
        n_nodes, scale = len(self.regimes), 1.0 if units is None else units.scale
        # What nobody measured causes nothing and has no causes: its values would be inventions.
        both = self.known[:, None] & self.known
        told: dict[str, Any] = {
            "allowed": self._edges.allowed & both,
            "required": self._edges.required & both,
            "noise_mean": None if self._noise_mean is None else self._noise_mean / scale,
            "noise_std": None if self._noise_std is None else self._noise_std / scale,
            "regimes": self.regimes,
            "memory_limit": self.config.memory_limit,
            "prior": self.config.prior(),
        }
        if self.method == EXACT:
            return ExactPosterior(n_nodes, **told, columns=self.config.columns)
        return SampledPosterior(n_nodes, **told, n_sweeps=FIRST_SWEEPS)

    def settle(self, n_told: int, *, changed: bool) -> bool:
        """Find origin and units, if the rounds so far show them; whether the units are known.

        Rounds before and after a change (`changed`) have no common origin.
        """
        rounds = self.rounds
        centers = self._noise_mean is None
        if centers and (n_told <= DESIGNED_ROUNDS or self.units is None) and not changed:
            rounds.center(n_told)
        again = self.config.guesses_units and n_told in UNITS_AGAIN and not changed
        if self.units is not None and not again:
            return True
        if self.config.columns is not None:
            if n_told >= DESIGNED_ROUNDS:
                self._use(self._spreads())
            return self.units is not None
        values = rounds.recent.values(n_told) - rounds.origin
        # Until then rounds are only stored.
        if self.units is not None or show_units(values):
            self._use(units_shown_by(values, center=centers))
        return self.units is not None

    def _spreads(self) -> Units:
        """Every node in units of its spread over all rounds, from their mean; columns as they are.

        Nothing that was told is in units of the noise.
        """
        gram = self.rounds.evidence.gram.sum(axis=0)  # (N, N+1, N+1), all rounds of every node
        node = np.arange(len(gram))
        count = np.maximum(gram[:, -1, -1], 1.0)
        mean = gram[node, node, -1] / count
        variance = gram[node, node, node] / count - mean**2
        spread = np.sqrt(np.where(variance > TINY * mean**2, variance, 1.0))
        mean[self.n_measured :], spread[self.n_measured :] = 0.0, 1.0
        return Units(shift=mean, scale=spread)

    def _follow_spreads(self) -> None:
        """New units of nodes with factors, if they have moved: all mechanisms are scored again."""
        if self.config.columns is None or self.units is None:
            return
        now = self._spreads()
        moved = np.abs(now.shift - self.units.shift) / self.units.scale
        grown = np.abs(np.log(now.scale / self.units.scale))
        if max(moved.max(), grown.max()) > UNITS_MOVED:
            self.units = now

    def refresh(self, n_told: int) -> None:
        """The posterior learns all rounds."""
        known = self.rounds.known
        appeared = not np.array_equal(known, self.known)
        if appeared:
            self.known = known
            self._use(self.units)
        if len(self.rounds.gaps):
            self._complete_rounds(n_told, begins=appeared)
            return
        self._follow_spreads()
        self.posterior.split(1)
        self._see(self.posterior.deciding, self.rounds.moments)

    def _complete_rounds(self, n_told: int, *, begins: bool = False) -> None:
        """Draw missing values and systems in turns, in every completion or in one of them."""
        rounds, mixture = self.rounds, self.posterior
        n_parts, n_sweeps, in_turn = self._augmentation()
        mixture.turn = n_told
        # in the first rounds the origin moves, which all sums are relative to
        begins |= len(rounds.gaps.gram) != n_parts or n_told <= DESIGNED_ROUNDS
        if begins:
            rounds.guess_gaps(n_parts, n_told)
        self._follow_spreads()
        mixture.split(n_parts)
        for m, part in enumerate(mixture.parts):
            # a posterior that has seen nothing would fill what is missing with anything
            if begins or not part.gram[:, :, -1, -1].any():
                self._see(part, rounds.completed(m))
            elif in_turn and part is not mixture.deciding:
                continue
            for sweep in range(n_sweeps):
                rng = stream(0, "gaps", n_told, m, sweep)
                rounds.complete_gaps(m, self._of_data(part.draw(rng)), rng)
                self._see(part, rounds.completed(m))

    def _augmentation(self) -> tuple[int, int, bool]:
        """How many completions, how many sweeps of each, and whether only one of them a round."""
        size = self.posterior.parts[0].n_bytes
        fit = bytes_allowed(self.config.memory_limit) // size
        n_parts = COMPLETIONS if size <= BYTES_FOR_ALL else FEW_COMPLETIONS
        n_sweeps = SWEEPS if size <= BYTES_FOR_SWEEPS else 1
        return max(min(n_parts, fit), 1), n_sweeps, size > BYTES_FOR_ALL

    def _see(self, part: Posterior, moments: Moments) -> None:
        assert self.units is not None
        part.update(moments.in_units(self.units))

    def draw(self, rng: np.random.Generator, n: int) -> Draws:
        """Draws of the system whose values are relative to the origin."""
        return self._of_data(self.posterior.draw(rng, n))

    def _of_data(self, drawn: Draws) -> Draws:
        if self.units is None:
            return drawn
        return drawn.in_units_of_data(self.units, self.regimes)

    def knows(self, node: int) -> bool:
        """Whether there are units, and values of the node to learn from."""
        return self.units is not None and bool(self.known[node])

    def belief(self, rng: np.random.Generator, draws: int, starts: IntArray) -> Belief | None:
        if self.units is None:
            return None
        moved = Units(shift=self.units.shift + self.rounds.origin, scale=self.units.scale)
        return Belief(
            self.posterior.draw(rng, draws).in_units_of_data(moved, self.regimes),
            self.posterior.edge_probability,
            self.rounds.counts,
            starts,
            weighs_graphs=True,
        )

    def scale_of(self, node: int) -> float:
        """One unit of the posterior in those of the data."""
        return 1.0 if self.units is None else float(self.units.scale[node])

    def in_data(self, value: float, node: int) -> float:
        """A value of the posterior in units of the data."""
        shift = 0.0 if self.units is None else float(self.units.shift[node])
        return value * self.scale_of(node) + shift + float(self.rounds.origin[node])

    def judge_predictors(self) -> None:
        """Decide which nodes predict which, and which predictions are tested.

        A node is predicted from the nodes before it in the most probable order, except those that
        may be its children: if an edge between two nodes may have either direction, neither of them
        predicts the other. What the other would say is then part of the node's noise. That noise
        has one distribution if none of the mechanisms behind it has several regimes. Else the
        prediction is not tested.
        """
        edge = self.posterior.edge_probability.max(axis=0)  # (from, to)
        position = np.argsort(self.posterior.most_probable().order)
        before = position[None, :] < position[:, None]  # (node, earlier node)
        either = np.minimum(edge, edge.T) > OPEN_DIRECTION_PROBABILITY
        # A child as a predictor would explain its cause's noise away, and a change of the child
        # would look like one of the cause.
        no_child = (edge <= NO_EDGE_PROBABILITY) | (edge.T > NO_EDGE_PROBABILITY)
        self.predictors = before & no_child & ~either
        # (node, other) whose noise is part of the node's: nodes left out, and their causes
        parent = edge.T > NO_EDGE_PROBABILITY  # (node, possible parent)
        behind = either
        for _ in range(self.n_measured):
            behind = behind | (behind @ parent & ~self.predictors)
        several = self.regimes > 1
        several[self.n_measured :] = False  # columns of factors are set, and predict all nodes
        others = ~np.eye(len(edge), dtype=bool)  # a node is predicted in each regime by itself
        self.tested = ~(behind & others & several).any(axis=1)
        self.tested[self.n_measured :] = False

    def view(self, x: FloatArray, stale: BoolArray) -> PredictiveView | None:
        """What predicts a round before it is learned from; None while units are unknown."""
        if self.units is None:
            return None
        missing = np.isnan(x)
        return PredictiveView(
            self.units,
            self.rounds.origin,
            self.rounds.evidence,
            self.predictors,
            self.tested & ~stale & ~missing & ~(self.predictors & missing).any(axis=1),
            *self._known_noise,
        )

    def restore(self, state: Mapping[str, Any]) -> None:
        """Into a system made with the same settings that knows nothing yet."""
        # First what the posterior is made with, before it is restored.
        restore_state(self, MADE_WITH, state)
        self._use(self.units)
        super().restore(state)

    def forget(self, alarm: Alarm, last: int, made: int) -> None:
        """Forget the rounds before a change, except what they say about the order of the nodes.

        `last` is the round told last, and `made` when that was made.
        """
        after = alarm.change_point
        for regime, node in alarm.mechanisms(self.regimes):
            self.rounds.take_back(regime, node, after=after, last=last, made=made)
            self.posterior.retire(regime, node)
            self.rounds.forget(regime, node, after=after)
