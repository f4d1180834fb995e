"""The checks of `causalarms.testing` find what is wrong, and say which promise it breaks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Self

import networkx as nx
import numpy as np
import pytest
from sklearn.base import BaseEstimator

from causalarms.changes import MODEL, Alarm, Detector, MechanismGLR, View
from causalarms.errors import DataError
from causalarms.graphs.inputs import as_noise_mean, as_rounds
from causalarms.policies.base import Policy, Suggestion
from causalarms.search.constraints import Constraints
from causalarms.testing import check_detector, check_learner, check_policy
from causalarms.testing.parts import DETECTOR_PROMISES, LEARNER_PROMISES
from causalarms.testing.policies import POLICY_PROMISES


class Greedy(Policy):
    """Keeps all promises."""

    def __init__(self, n_nodes: int = 3, reward: int = -1, **more: Any) -> None:
        super().__init__(n_nodes, reward, **more)
        self.means = np.zeros((self.n_regimes, n_nodes))
        self.plays = np.zeros((self.n_regimes, n_nodes), dtype=np.int64)

    def suggest(self, rng: np.random.Generator, *, pending: Sequence[Any] = ()) -> Suggestion:
        if not self.constraints.free:
            return Suggestion(self.constraints.random(rng), "explore")
        if rng.random() < 0.5:
            return Suggestion(rng.integers(0, self.regimes).astype(np.uint8), "explore")
        best = np.minimum(self.means.argmax(axis=0), self.regimes - 1).astype(np.uint8)
        return Suggestion(best, "exploit", float(self.means.max()), 1.0)

    def learn(self, a: np.ndarray, x: np.ndarray) -> None:
        nodes = np.arange(self.n_nodes)
        self.plays[a, nodes] += 1
        self.means[a, nodes] += (x[self.reward] - self.means[a, nodes]) / self.plays[a, nodes]

    def own_state(self) -> dict[str, Any]:
        return {"means": self.means.copy(), "plays": self.plays.copy()}

    def restore_own(self, state: dict[str, Any]) -> None:
        self.means[:] = state["means"]
        self.plays[:] = state["plays"]


class AsksAndCounts(Greedy):
    def suggest(self, rng: np.random.Generator, *, pending: Sequence[Any] = ()) -> Suggestion:
        self.plays[0, 0] += 1
        return super().suggest(rng)


class BelievesAndCounts(Greedy):
    def make_belief(self, rng: np.random.Generator, draws: int) -> None:
        self.plays[0, 0] += 1


class CountsPending(Greedy):
    def suggest(self, rng: np.random.Generator, *, pending: Sequence[Any] = ()) -> Suggestion:
        self.plays[0, 0] += len(pending)
        return super().suggest(rng)


class IgnoresConstraints(Greedy):
    def constrain(self, constraints: Constraints) -> Self:
        return self


class TooManyRegimes(Greedy):
    def suggest(self, rng: np.random.Generator, *, pending: Sequence[Any] = ()) -> Suggestion:
        return Suggestion(np.full(self.n_nodes, 2, dtype=np.uint8), "explore")


class TooWide(Greedy):
    def suggest(self, rng: np.random.Generator, *, pending: Sequence[Any] = ()) -> Suggestion:
        return Suggestion(np.zeros(self.n_nodes, dtype=np.int64), "explore")


class ExpectsNothing(Greedy):
    def suggest(self, rng: np.random.Generator, *, pending: Sequence[Any] = ()) -> Suggestion:
        return super().suggest(rng)._replace(reason="exploit", mean=float("nan"))


class LearnsFromAnything(Greedy):
    def tell(self, intervention: Any, observation: Any, *, made: int | None = None) -> None:
        if not np.isnan(np.sum(np.asarray(observation, dtype=float))):
            super().tell(intervention, observation, made=made)


class HalfLearned(Greedy):
    def tell(self, intervention: Any, observation: Any, *, made: int | None = None) -> None:
        self.plays += 1
        super().tell(intervention, observation, made=made)


class KeepsTheArray(Greedy):
    last = np.zeros(3)

    def tell(self, intervention: Any, observation: Any, *, made: int | None = None) -> None:
        super().tell(intervention, observation, made=made)
        self.last = observation

    def own_state(self) -> dict[str, Any]:
        return super().own_state() | {"last": np.array(self.last, dtype=float)}

    def restore_own(self, state: dict[str, Any]) -> None:
        super().restore_own(state)
        self.last = state["last"]


class ForgetsToRestore(Greedy):
    def restore_own(self, state: dict[str, Any]) -> None:
        self.means[:] = state["means"]


class AddsWhenRestored(Greedy):
    def restore_own(self, state: dict[str, Any]) -> None:
        self.means[:] = state["means"]
        self.plays += state["plays"]


class NoCopies(Greedy):
    def own_state(self) -> dict[str, Any]:
        return {"means": self.means, "plays": self.plays}


class SaysText(Greedy):
    def own_state(self) -> dict[str, Any]:
        return super().own_state() | {"name": "greedy"}


class GlobalDice(Greedy):
    def suggest(self, rng: np.random.Generator, *, pending: Sequence[Any] = ()) -> Suggestion:
        return Suggestion(np.random.randint(0, 2, 3).astype(np.uint8), "explore")  # noqa: NPY002


class Unrepeatable(Greedy):
    made = 0

    def __init__(self, n_nodes: int = 3, **more: Any) -> None:
        super().__init__(n_nodes, **more)
        Unrepeatable.made += 1
        self.number = Unrepeatable.made

    def own_state(self) -> dict[str, Any]:
        return super().own_state() | {"number": self.number}

    def restore_own(self, state: dict[str, Any]) -> None:
        super().restore_own(state)
        self.number = state["number"]


@pytest.mark.parametrize("regimes", [None, 3, [1, 2, 3]])
def test_a_policy_that_keeps_its_promises(regimes: Any) -> None:
    check_policy(lambda: Greedy(regimes=regimes), n_rounds=60)


@pytest.mark.parametrize(
    ("policy", "promise"),
    [
        (AsksAndCounts, "asking twice gives the same and changes nothing"),
        (BelievesAndCounts, "asking twice gives the same and changes nothing"),
        (GlobalDice, "asking twice gives the same and changes nothing"),
        (CountsPending, "asking while interventions are pending"),
        (IgnoresConstraints, "what is not allowed is never suggested"),
        (TooManyRegimes, "it can be asked and told"),
        (TooWide, "a suggestion keeps to the regimes"),
        (ExpectsNothing, "says why and what to expect"),
        (LearnsFromAnything, "refused and leaves no trace"),
        (HalfLearned, "refused and leaves no trace"),
        (KeepsTheArray, "what was told stays the caller's"),
        (Unrepeatable, "stays the caller's"),
        (ForgetsToRestore, "a restored policy goes on"),
        (AddsWhenRestored, "restoring replaces all"),
        (SaysText, "plain arrays"),
        (NoCopies, "plain arrays and scalars and a copy"),
    ],
)
def test_a_policy_that_breaks_one(policy: type[Greedy], promise: str) -> None:
    with pytest.raises(AssertionError, match=f"{policy.__name__} breaks a promise: .*{promise}"):
        check_policy(policy, n_rounds=60)


def test_a_history_may_be_given() -> None:
    history = [(np.zeros(3, dtype=np.uint8), np.ones(3))] * 60
    with pytest.raises(AssertionError, match="breaks a promise: a suggestion keeps to the regimes"):
        check_policy(TooManyRegimes, history=history)
    check_policy(Greedy, history=history)


class Jump(Detector):
    """Keeps all promises: two values in a row far from what the model expects."""

    needs: tuple[str, ...] = (MODEL,)

    def __init__(self, n_nodes: int = 3, *, n_regimes: int = 2) -> None:
        super().__init__(n_nodes, n_regimes=n_regimes)
        self.far = np.zeros((self.n_regimes, n_nodes), dtype=np.int64)

    def watch(
        self, round_: int, intervention: np.ndarray, values: np.ndarray, view: View
    ) -> list[Alarm]:
        nodes, model = np.arange(self.n_nodes), view.model()
        errors = view.whitened(intervention, values) - model.intercept[intervention, nodes]
        size = np.abs(errors / model.noise_std[intervention, nodes])
        self.far[intervention, nodes] = np.where(size > 10, self.far[intervention, nodes] + 1, 0)
        return [
            Alarm(round_, int(intervention[i]), int(i), round_ - 2, float(size[i]), 10.0)
            for i in np.flatnonzero(self.far[intervention, nodes] >= 2)
        ]

    def forget(self, regime: int, node: int) -> None:
        self.far[regime, node] = 0

    def state(self) -> dict[str, Any]:
        return {"far": self.far.copy()}

    def restore(self, state: dict[str, Any]) -> None:
        self.far[:] = state["far"]


class Undeclared(Jump):
    needs = ()


class Misspelt(Jump):
    needs = ("modell",)


class OtherRound(Jump):
    def watch(self, round_: int, *seen: Any) -> list[Alarm]:
        return [alarm._replace(round=round_ - 1) for alarm in super().watch(round_, *seen)]


class OtherNode(Jump):
    def watch(self, round_: int, *seen: Any) -> list[Alarm]:
        return [alarm._replace(node=alarm.node + 1) for alarm in super().watch(round_, *seen)]


class Tuples(Jump):
    def watch(self, round_: int, *seen: Any) -> list[Alarm]:
        return [tuple(alarm) for alarm in super().watch(round_, *seen)]  # type: ignore[misc]


class Blind(Jump):
    def watch(self, round_: int, *seen: Any) -> list[Alarm]:
        super().watch(round_, *seen)
        return []


class Idle(Jump):
    watches = False


class Moody(Jump):
    made = 0

    def __init__(self) -> None:
        super().__init__()
        Moody.made += 1
        self.patience = Moody.made % 2

    def watch(self, round_: int, *seen: Any) -> list[Alarm]:
        return super().watch(round_, *seen)[self.patience :]


class Amnesiac(Jump):
    def restore(self, state: dict[str, Any]) -> None:
        pass


class Shared(Jump):
    def state(self) -> dict[str, Any]:
        return {"far": self.far}


class Grudge(Jump):
    def forget(self, regime: int, node: int) -> None:
        self.far[regime, node] = 9

    def watch(self, round_: int, *seen: Any) -> list[Alarm]:
        alarms = super().watch(round_, *seen)
        return alarms or ([Alarm(round_, 0, 0, 0, 1.0, 1.0)] if self.far.max() > 8 else [])


class Vandal(Jump):
    def watch(
        self, round_: int, intervention: np.ndarray, values: np.ndarray, view: View
    ) -> list[Alarm]:
        values += 1.0
        return super().watch(round_, intervention, values, view)


class Gambler(Jump):
    def watch(self, round_: int, *seen: Any) -> list[Alarm]:
        np.random.random()  # noqa: NPY002
        return super().watch(round_, *seen)


@pytest.mark.parametrize("n_regimes", [1, 2, 4])
def test_a_detector_that_keeps_its_promises(n_regimes: int) -> None:
    check_detector(lambda: Jump(n_regimes=n_regimes))


@pytest.mark.parametrize(
    ("detector", "promise"),
    [
        (Undeclared, "a detector that looks at the model must say so in `needs`"),
        (Misspelt, "`needs`"),
        (OtherRound, "alarms name this round"),
        (OtherNode, "alarms name this round and a mechanism that exists"),
        (Tuples, "are not alarms"),
        (Vandal, "the values were changed"),
        (Blind, "nobody can overlook"),
        (Idle, "nobody can overlook"),
        (Moody, "the same rounds give the same alarms"),
        (Amnesiac, "a restored detector goes on"),
        (Shared, "is not a copy"),
        (Grudge, "what is forgotten is no longer evidence"),
        (Gambler, "nothing is drawn at random"),
    ],
)
def test_a_detector_that_breaks_one(detector: type[Jump], promise: str) -> None:
    with pytest.raises(AssertionError, match=f"(?s){detector.__name__} breaks .*{promise}"):
        check_detector(detector)


def test_what_is_no_detector() -> None:
    with pytest.raises(AssertionError, match=r"is not a causalarms\.changes\.Detector"):
        check_detector(lambda: "authors")  # type: ignore[arg-type, return-value]
    check_detector(lambda: MechanismGLR(1, threshold=20.0))


class Empty(BaseEstimator):  # type: ignore[misc]
    """Keeps all promises and finds nothing."""

    def __init__(self, strength: float = 1.0) -> None:
        self.strength = strength

    def fit(
        self, X: Any, y: Any = None, *, interventions: Any = None, noise_mean: Any = None
    ) -> Any:
        values, regimes, nodes = as_rounds(X, interventions)
        mean = as_noise_mean(noise_mean, nodes)
        rows = [values[(regimes == regime).all(axis=1)] for regime in (0, 1)]
        if not all(len(row) for row in rows):
            rows = [values, values]
        n = len(nodes)
        self.n_features_in_, self.nodes_ = n, nodes
        self.adjacency_ = np.zeros((2, n, n), dtype=bool)
        self.weights_ = np.zeros((2, n, n))
        self.intercept_ = np.array([row.mean(axis=0) for row in rows]) if mean is None else mean
        self.noise_std_ = np.array([row.std(axis=0) for row in rows])
        return self

    @property
    def graph_(self) -> Any:
        graph = nx.DiGraph()
        graph.add_nodes_from(self.nodes_)
        return graph


class Silent(Empty):
    def fit(self, *given: Any, **known: Any) -> Any:
        super().fit(*given, **known)


class Circular(Empty):
    def fit(self, *given: Any, **known: Any) -> Any:
        super().fit(*given, **known)
        self.adjacency_[:, 0, 1] = self.adjacency_[:, 1, 0] = True
        return self


class LooseWeights(Empty):
    def fit(self, *given: Any, **known: Any) -> Any:
        super().fit(*given, **known)
        self.weights_[0, 0, 1] = 0.5
        return self


class MoreEdges(Empty):
    @property
    def graph_(self) -> Any:
        graph = super().graph_
        graph.add_edge(*self.nodes_[:2])
        return graph


class Random(Empty):
    def fit(self, *given: Any, **known: Any) -> Any:
        super().fit(*given, **known)
        self.noise_std_ *= np.random.default_rng().random()
        return self


class Incremental(Empty):
    def fit(self, *given: Any, **known: Any) -> Any:
        before = getattr(self, "noise_std_", 0.0)
        super().fit(*given, **known)
        self.noise_std_ += before
        return self


class InPlace(Empty):
    def fit(self, X: Any, y: Any = None, **known: Any) -> Any:
        super().fit(X, **known)
        X -= X.mean(axis=0)
        return self


class OwnMeans(Empty):
    def fit(
        self, X: Any, y: Any = None, *, interventions: Any = None, noise_mean: Any = None
    ) -> Any:
        return super().fit(X, interventions=interventions)


class Adjusts(Empty):
    def fit(self, *given: Any, **known: Any) -> Any:
        self.strength = 2.0
        return super().fit(*given, **known)


class TakesNan(Empty):
    def fit(self, X: Any, y: Any = None, **known: Any) -> Any:
        if np.asarray(X).dtype.kind == "f":
            X = np.nan_to_num(X)
        return super().fit(X, **known)


class Plain(Empty):
    def fit(self, *given: Any, **known: Any) -> Any:
        try:
            return super().fit(*given, **known)
        except DataError as error:
            raise KeyError(str(error)) from error


class Half(Empty):
    def fit(self, *given: Any, **known: Any) -> Any:
        self.weights_ = np.zeros((2, 4, 4))
        return super().fit(*given, **known)


def test_a_learner_that_keeps_its_promises() -> None:
    check_learner(Empty)


@pytest.mark.parametrize(
    ("learner", "promise"),
    [
        (Silent, "fit does not return the learner"),
        (LooseWeights, "weights_ has a weight without an edge in adjacency_"),
        (Circular, "acyclic"),
        (MoreEdges, "graph_"),
        (Random, "the same rounds give the same graph"),
        (Incremental, "a second fit forgets the first"),
        (InPlace, "fit changed the samples"),
        (OwnMeans, "a known noise mean is kept"),
        (Adjusts, "fit changed the settings"),
        (TakesNan, "NaN is not refused"),
        (Plain, "refused by KeyError"),
        (Half, "leaves weights_"),
    ],
)
def test_a_learner_that_breaks_one(learner: type[Empty], promise: str) -> None:
    with pytest.raises(AssertionError, match=f"(?s){learner.__name__} breaks .*{promise}"):
        check_learner(learner)


def test_promises_are_said_in_words() -> None:
    for promises in (POLICY_PROMISES, LEARNER_PROMISES, DETECTOR_PROMISES):
        assert all(re.search("[a-z] [a-z]", words) for words in promises)
