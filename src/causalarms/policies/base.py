"""What every policy is: ask for the next intervention, tell what was measured.

A policy knows only what its constructor was given. Asking does not change what is known; telling
does. Its state is plain arrays and scalars, and replaying its history gives the same state.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias

import numpy as np
import numpy.typing as npt
from numpy.random import Generator

from causalarms.arrays import BoolArray, FloatArray, Intervention
from causalarms.changes.detector import Alarm, Detector, NoChange, View, checked_alarms
from causalarms.changes.registry import as_detector
from causalarms.checks import integer
from causalarms.errors import DataError, SettingError
from causalarms.models.belief import Belief
from causalarms.models.draws import Optimistic
from causalarms.models.failures import FailureBelief
from causalarms.rng import stream
from causalarms.search.constraints import Constraints, unconstrained
from causalarms.sem.regimes import Counts, as_interventions, node_names, regimes_of
from causalarms.sem.rewards import within
from causalarms.state import Declared, nested, restore_state, state_of, unnested

EXPLORE, EXPLOIT = "explore", "exploit"
Pending: TypeAlias = Sequence[Intervention]  # being played, their results not yet told
BELIEF_DRAWS = 400  # a probability of 0.95 has a standard error of 0.011
MAX_VALUE = 1e150  # sums of squares of larger numbers overflow
ALL_SWITCHES = "in a study without factors, name every node in intervenable"  # to give it a switch


NODES_IN_A_REASON = 4  # named; the others are counted

# The words of every kind of reason. A kind that is not listed is a sentence of its own.
REASONS = {
    "all nodes best": "every node at the best of its levels",
    "balanced": "the first {rounds} rounds play all levels as evenly as they can",
    "committed": "the best setting of the graph that was learned",
    "credible": "its reward is the highest for the most favourable weights that are still credible",
    "does not fail": "the nearest to what was planned of the settings that do not mostly fail",
    "draw": "the best setting of one draw of the weights from what is known of them",
    "first rounds": "the first {rounds} rounds are random: they show the scale of every node",
    "first two": "the first two rounds show every node in two of its regimes",
    "graph": "rounds with all switches in one position, from which the graph is learned",
    "least known": "its reward is known least",
    "levels": "levels that are left, equally often",
    "needs rounds": "some mechanism still needs rounds, or had to forget those it had",
    "probe": "a mechanism has changed: random settings look for others that changed with it",
    "quantile": "it is the best, or may well be the best, by what is known so far",
    "random": "a random setting",
    "single switches": "single switches, to learn the graph",
    "steady": "nothing known is better on average, and no test is worth its price",
    "trade-off": "the best trade-off between a high reward and learning more",
    "untried": "not tried yet",
    "upper bound": "its upper bound is the highest",
}
TEST = "test"  # whose words have numbers in them


class Reason(NamedTuple):
    """Why an intervention is suggested; amounts are in the units of the reward."""

    kind: str  # a key of `REASONS`, or `TEST`
    nodes: tuple[int, ...] = ()  # that a test has at other levels than the best so far
    saved: float = 0.0  # by what it teaches, expected over `rounds` rounds
    rounds: int = 0  # to come; of "first rounds": how many these are; 0: `saved` is not known
    cost: float = 0.0  # of not playing what is best on average
    better: float = 0.0  # how likely a test has a higher reward than what is best on average
    remarks: tuple[str, ...] = ()  # more to say, in words

    def in_words(self, names: Sequence[str]) -> str:
        """As people read it; `names` are what each node is called, (N,).

        A node without a name is not named.

        >>> Reason(TEST, (0, 2), saved=3.14, rounds=40, cost=0.4).in_words(["heat", "feed", "load"])
        "tests 'heat' and 'load' at other levels than the best so far: expected to save 3.1 over \
the next 40 rounds, costs 0.4"
        >>> Reason(TEST, (2,), cost=0.4, better=0.25).in_words(["heat", "feed", "load"])
        "tests 'load' at another level than the best so far: better with probability 0.25, costs \
0.4 on average"
        """
        if self.kind != TEST:
            words = REASONS.get(self.kind, self.kind).replace("{rounds}", str(self.rounds))
            return "; ".join([words, *self.remarks])
        tested = list(dict.fromkeys(repr(names[node]) for node in self.nodes if names[node]))
        if len(tested) > NODES_IN_A_REASON:
            tested[NODES_IN_A_REASON - 1 :] = [f"{len(tested) - NODES_IN_A_REASON + 1} other nodes"]
        what = " and ".join(filter(None, [", ".join(tested[:-1]), tested[-1]]))
        saved, cost = _short(self.saved), _short(self.cost)
        worth = f"better with probability {_short(self.better)}, costs {cost} on average"
        if self.rounds:
            worth = f"expected to save {saved} over the next {self.rounds} rounds, costs {cost}"
        levels = "another level" if len(tested) == 1 else "other levels"
        return f"tests {what} at {levels} than the best so far: {worth}"


def _short(value: float) -> str:
    return f"{value:.0f}" if 100 <= abs(value) < 1e6 else f"{value:.2g}"


class Suggestion(NamedTuple):
    """The next intervention and why."""

    intervention: Intervention  # (N,)
    reason: str  # "explore" or "exploit"
    mean: float = float("nan")  # predicted reward
    width: float = float("nan")  # its confidence bound
    why: Reason | None = None


def suggestion_of(best: Optimistic, origin: float = 0.0) -> Suggestion:
    """What was chosen from draws whose rewards are relative to an origin."""
    reason, why = EXPLOIT, Reason("quantile")
    if best.average is not None:
        why = Reason("steady")
        tested = np.flatnonzero(best.intervention != best.average).tolist()
        if tested:
            reason, why = EXPLORE, Reason(TEST, tuple(tested), cost=best.cost, better=best.better)
    width = max(best.upper - best.mean, 0.0)  # below 0 if a few draws outweigh the rest
    return Suggestion(best.intervention, reason, best.mean + origin, width, why)


class LeftOut(NamedTuple):
    """A value that is probably a typing error. Nothing is learned from its round."""

    round: int
    node: int
    value: float


class Policy(ABC):
    """Base of all policies; subclasses say what to play and what to learn from a round.

    n_nodes   number of nodes
    reward    the node to be maximised; negative numbers count from the last node
    regimes   how many regimes each node has; None: two
    """

    uses_context: ClassVar[bool] = False  # True: `suggest` takes `context`, values by node
    keeps_constraints: ClassVar[bool] = True  # False: `constrain` refuses any
    learns_from_gaps: bool = False  # whether `tell` takes rounds with missing values, nan
    # kinds of knowledge that a detector may look at (`changes/detector.py`)
    offers: tuple[str, ...] = ()
    learned: ClassVar[Declared] = {}  # attributes that change with rounds, and their types

    def __init__(
        self, n_nodes: int, reward: int = -1, *, regimes: npt.ArrayLike | None = None
    ) -> None:
        n_nodes = integer("n_nodes", n_nodes, minimum=1)
        reward = integer("reward", reward, minimum=-n_nodes)
        if not -n_nodes <= reward < n_nodes:
            raise SettingError(
                f"there is no node {reward} to be the reward of {n_nodes} nodes (n_nodes)"
            )
        self.n_nodes = n_nodes
        self.reward = reward % n_nodes
        self._regimes = regimes_of(regimes, n_nodes)
        self._allowed = unconstrained(self._regimes.key)
        self.failures = FailureBelief(n_nodes)
        self.n_told = 0
        self.made = 0  # when the round told last was carried out
        self.alarms: list[Alarm] = []
        self.detector: Detector = NoChange()
        self._nodes = node_names(None, n_nodes)

    @property
    def constraints(self) -> Constraints:
        """What may be played, what it costs, and, once a round has failed, what probably fails."""
        return self.failures.over(self._allowed)

    @property
    def regimes(self) -> Counts:
        """How many each node has, (N,)."""
        return self._regimes.counts

    @property
    def n_regimes(self) -> int:
        """The most that a node has, R."""
        return self._regimes.n_regimes

    def ask(self, rng: Generator) -> Intervention:
        """The next intervention, the regime of every node, (N,)."""
        return self.suggest(rng).intervention

    @abstractmethod
    def suggest(self, rng: Generator, *, pending: Pending = ()) -> Suggestion:
        """The next intervention with its diagnostics; draws from `rng` only.

        `pending` are being played, and their results not yet told. `constraints` of the policy
        say what may be played and what it costs.
        """

    def suggest_batch(self, rng: Generator, size: int) -> list[Suggestion]:
        """Interventions to be played side by side, before any of their results is told.

        Policies that draw at random suggest different ones; the others the same one repeatedly.
        """
        size = integer("size", size, minimum=1)
        batch: list[Suggestion] = []
        # a stream each: the first suggestions do not depend on how many follow
        for child in rng.spawn(size):
            pending = [s.intervention for s in batch]
            batch.append(self.suggest(child, pending=pending))
        return batch

    def constrain(self, constraints: Constraints) -> Self:
        """Play only what these allow, net of its cost; SettingError if that cannot be kept.

        A new policy may play everything, for nothing. `make_policy` calls this before any round.
        """
        if not (constraints.free or self.keeps_constraints):
            raise SettingError(
                f"constraints: {type(self).__name__} plays a plan of its own at first, and cannot "
                f"keep constraints or costs, nor do without the switch of a node; {ALL_SWITCHES}"
            )
        self._allowed = within(self._regimes, constraints)
        return self

    def fail(self, intervention: npt.ArrayLike) -> None:
        """A round of this `intervention` was carried out and gave no result."""
        self.failures.learn(self._checked(intervention), None)

    def _checked(self, intervention: npt.ArrayLike) -> Intervention:
        return as_interventions(np.asarray(intervention)[None], self._nodes, self._regimes)[0]

    def tell(
        self, intervention: npt.ArrayLike, observation: npt.ArrayLike, *, made: int | None = None
    ) -> None:
        """Learn from one round; any intervention is welcome, also one that was not asked.

        `made` grows with the time at which rounds were carried out, if that is not the order in
        which they are told: a late result may be from before a change that is already known.
        """
        a = self._checked(intervention)
        # a copy: the caller may fill its array again while this round is still being used
        try:
            x = np.array(observation, dtype=float)
        except (TypeError, ValueError) as error:
            raise DataError(f"an observation is a number per node, not {observation!r}") from error
        if x.shape != (self.n_nodes,):
            raise DataError(f"an observation has shape ({self.n_nodes},), not {x.shape}")
        if not np.abs(x).max() <= MAX_VALUE:  # nor if it is nan
            self._check_values(x)
        if made is None:
            made = self.n_told + 1
        elif type(made) is not int or made < 0:
            made = integer("made", made, minimum=0)  # refuses it, or makes an int of it
        self.made = made
        # all that can be refused was refused: from here on the round counts
        self.n_told += 1
        self.failures.learn(a, float(x[self.reward]))
        self.learn(a, x)

    def _check_values(self, x: FloatArray) -> None:
        """Missing values are fine for policies that learn from gaps."""
        wrong = np.isinf(x) if self.learns_from_gaps else ~np.isfinite(x)
        if wrong.any():
            node = int(np.flatnonzero(wrong)[0])
            raise DataError(f"the observation of node {node} is {x[node]}")
        if (np.abs(x) > MAX_VALUE).any():
            node = int(np.nanargmax(np.abs(x)))
            raise DataError(
                f"the observation of node {node} is {x[node]:g}: too large to compute with, "
                "use other units"
            )

    @abstractmethod
    def learn(self, a: Intervention, x: FloatArray) -> None:
        """Take in round number `n_told`."""

    @property
    def left_out(self) -> list[LeftOut]:
        """Probable typing errors, from whose rounds nothing is learned."""
        return []

    @property
    def checks_left(self) -> int:
        """Random rounds still to be told that look for more changes after an alarm."""
        return 0

    @property
    def has_model(self) -> bool:
        """Whether there ever is a belief about the whole system."""
        return type(self).make_belief is not Policy.make_belief

    @property
    def watches(self) -> bool:
        """Whether changes of mechanisms are looked for."""
        return self.detector.watches

    def belief(self, rng: Generator | None = None, *, draws: int = BELIEF_DRAWS) -> Belief | None:
        """What is believed of the whole system now; None if there is no model (yet).

        Without `rng` the same draws every time it is asked after the same rounds.
        """
        return self.make_belief(
            rng or stream(0, "belief", self.n_told), integer("draws", draws, minimum=1)
        )

    def make_belief(self, rng: Generator, draws: int) -> Belief | None:
        """n draws, for those who have a model."""
        return None

    @property
    def adjacency(self) -> BoolArray | None:
        """The graph believed now, (R, N, N), if the policy learns one."""
        return None

    def state(self) -> dict[str, Any]:
        """Everything learned, as arrays and scalars."""
        # Alarms as one array: states hold arrays and numbers only. Floats hold integers exactly.
        return (
            {
                "n_told": self.n_told,
                "alarms": np.array(self.alarms, dtype=float).reshape(-1, len(Alarm._fields)),
            }
            | nested("failures", self.failures.state())
            | self.own_state()
        )

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from an exported `state`, in a policy built with the same arguments."""
        self.n_told = int(state["n_told"])
        self.alarms = [
            Alarm(int(t), int(regime), int(node), int(point), float(value), float(limit))
            for t, regime, node, point, value, limit in np.asarray(state["alarms"])
        ]
        self.failures.restore(unnested("failures", state))
        self.restore_own(state)

    def _needs_pairs(self, name: str, why: str) -> None:
        """Refuse nodes that do not have exactly two regimes."""
        for node in np.flatnonzero(self.regimes != 2)[:1]:
            hint = f"; {ALL_SWITCHES}" if self.regimes[node] == 1 else ""
            raise SettingError(
                f"regimes: {name} needs two of every node, {why}; "
                f"node {self._nodes[node]!r} has {self.regimes[node]}{hint}"
            )

    def _use_detector(self, given: Detector | str | None) -> None:
        """One that fits, the name of one, or None if nothing changes."""
        self.detector = as_detector(
            given, n_nodes=self.n_nodes, n_regimes=self.n_regimes, offers=self.offers
        )

    def _watch(self, a: Intervention, x: FloatArray, view: View) -> list[Alarm]:
        """Alarms of round number `n_told`; none if the view lacks what the detector needs."""
        if not (self.watches and set(self.detector.needs) <= set(view.offers)):
            return []
        alarms = self.detector.watch(self.n_told, a, x, view)
        # Detectors of other packages are welcome, and an alarm decides what is forgotten.
        return checked_alarms(self.detector, alarms, self.n_told, self.regimes)

    def own_state(self) -> dict[str, Any]:
        """What `learned` declares."""
        return state_of(self, self.learned)

    def restore_own(self, state: dict[str, Any]) -> None:
        """The inverse of `own_state`; override it to compute again what follows from the state."""
        restore_state(self, self.learned, state)
