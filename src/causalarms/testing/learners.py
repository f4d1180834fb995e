"""What every learner promises."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from causalarms.errors import CausalArmsError, CausalArmsWarning
from causalarms.sem.ensembles import random_sem
from causalarms.testing.promises import global_random_state, keep

FloatArray = npt.NDArray[np.float64]

N_NODES, N_ROUNDS = 4, 160
FITTED = ("adjacency_", "weights_", "intercept_", "noise_std_")


@dataclass(frozen=True)
class LearnerCase:
    """A learner, and rounds to learn from: half of them with all nodes natural, half with none."""

    make: Callable[[], Any]
    values: FloatArray  # (n, N)
    regimes: npt.NDArray[np.int64]  # (n, N)

    def fit(self, values: Any = None, regimes: Any = None, **known: Any) -> Any:
        """A fresh learner that has learned; what is not given is the case's."""
        return self.again(self.make(), values, regimes, **known)

    def again(self, learner: Any, values: Any = None, regimes: Any = None, **known: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CausalArmsWarning)
            return learner.fit(
                self.values.copy() if values is None else values,
                interventions=self.regimes.copy() if regimes is None else regimes,
                **known,
            )


def check_learner(factory: Callable[[], Any]) -> None:
    """AssertionError where a learner breaks a promise that every learner gives.

    factory   makes a fresh learner, always with the same settings
    """
    keep(LEARNER_PROMISES, learner_case(factory), type(factory()).__name__)


def learner_case(factory: Callable[[], Any]) -> LearnerCase:
    """Rounds of a random linear system."""
    sem, rng = random_sem(N_NODES, seed=2), np.random.default_rng(0)
    regimes = np.repeat(np.arange(N_ROUNDS) % 2, N_NODES).reshape(N_ROUNDS, N_NODES)
    return LearnerCase(factory, sem.sample(regimes, rng), regimes)


def same_fit(one: Any, other: Any) -> None:
    """All that was learned, nan equal to itself."""
    for name in FITTED:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


def _fits(case: LearnerCase) -> None:
    learner = case.make()
    assert case.again(learner) is learner, "fit does not return the learner"
    shape = (2, N_NODES, N_NODES)
    edges, weights = learner.adjacency_, learner.weights_
    assert edges.shape == shape, f"adjacency_ has shape {edges.shape}, not {shape}"
    assert edges.dtype == bool, f"adjacency_ holds {edges.dtype}, not bool"
    assert not edges.diagonal(axis1=1, axis2=2).any(), "adjacency_ has a node that causes itself"
    assert weights.shape == shape, f"weights_ has shape {weights.shape}, not {shape}"
    assert np.isfinite(weights).all(), "weights_ of mechanisms with samples are not finite"
    assert (weights[~edges] == 0).all(), "weights_ has weights where adjacency_ has no edge"
    for name in ("intercept_", "noise_std_"):
        found = getattr(learner, name)
        assert found.shape == shape[:2], f"{name} has shape {found.shape}, not {shape[:2]}"
        assert np.isfinite(found).all(), f"{name} of mechanisms with samples is not finite"
    assert (learner.noise_std_ >= 0).all(), "noise_std_ is below 0"
    assert learner.n_features_in_ == N_NODES, f"n_features_in_ is {learner.n_features_in_}"


def _each_regime_is_acyclic(case: LearnerCase) -> None:
    for regime, edges in enumerate(case.fit().adjacency_):
        graph = nx.DiGraph(np.asarray(edges).astype(int))
        assert nx.is_directed_acyclic_graph(graph), f"regime {regime} has a cycle"


def _graph_has_the_edges(case: LearnerCase) -> None:
    learner = case.fit()
    graph = learner.graph_
    assert isinstance(graph, nx.DiGraph), f"graph_ is a {type(graph).__name__}, not a DiGraph"
    names = list(graph)
    found = {(names.index(a), names.index(b)) for a, b in graph.edges()}
    wanted = {(int(a), int(b)) for a, b in np.argwhere(learner.adjacency_.any(axis=0))}
    assert found == wanted, f"graph_ has {sorted(found)}, adjacency_ {sorted(wanted)}"


def _deterministic(case: LearnerCase) -> None:
    fits = []
    for seed in (1, 2):
        with global_random_state(seed):
            fits.append(case.fit())
    same_fit(*fits)


def _second_fit_forgets_the_first(case: LearnerCase) -> None:
    learner = case.fit()
    half = case.values[: N_ROUNDS // 2] * 2.0, case.regimes[: N_ROUNDS // 2]
    case.again(learner, *half)
    same_fit(learner, case.fit(*half))


def _input_is_not_changed(case: LearnerCase) -> None:
    values, regimes = case.values.copy(), case.regimes.copy()
    case.fit(values, regimes)
    np.testing.assert_array_equal(values, case.values, err_msg="fit changed the samples")
    np.testing.assert_array_equal(regimes, case.regimes, err_msg="fit changed the interventions")


def _noise_mean_is_kept(case: LearnerCase) -> None:
    known = np.linspace(0.5, 1.5, N_NODES)
    intercept = case.fit(noise_mean=known).intercept_
    np.testing.assert_allclose(
        intercept, np.stack([known, known]), err_msg="intercept_ is not the noise_mean given"
    )


def _settings_are_kept_and_cloned(case: LearnerCase) -> None:
    learner = case.make()
    before = dict(learner.get_params())
    case.again(learner)
    assert _same(learner.get_params(), before), "fit changed the settings"
    copy = clone(learner)
    assert _same(copy.get_params(), before), "a clone has other settings"
    assert not hasattr(copy, "weights_"), "a clone carries results"
    same_fit(case.again(copy), learner)


def _same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return one.keys() == other.keys() and all(
        np.array_equal(np.asarray(one[name], dtype=object), np.asarray(other[name], dtype=object))
        for name in one
    )


def bad_samples(values: FloatArray, regimes: npt.NDArray[np.int64]) -> dict[str, tuple[Any, Any]]:
    """What nobody can learn from."""

    def put(array: npt.NDArray[Any], value: object) -> npt.NDArray[Any]:
        changed = array.astype(object if isinstance(value, str) else float)
        changed[7, 1] = value
        return changed

    constant = values.copy()
    constant[:, 1] = 2.5
    return {
        "NaN": (put(values, np.nan), regimes),
        "an infinite value": (put(values, np.inf), regimes),
        "text": (put(values, "high"), regimes),
        "a constant node": (constant, regimes),
        "one column": (values[:, :1], regimes[:, :1]),
        "one dimension": (values[:, 0], regimes),
        "no rows": (values[:0], regimes[:0]),
        "fewer interventions than samples": (values, regimes[:-1]),
        "interventions of fewer nodes": (values, regimes[:, :-1]),
        "a regime below 0": (values, put(regimes, -1)),
        "half a regime": (values, put(regimes, 0.5)),
        "no regime": (values, put(regimes, np.nan)),
    }


def _bad_input_is_refused(case: LearnerCase) -> None:
    for what, (values, regimes) in bad_samples(case.values, case.regimes).items():
        learner = case.make()
        try:
            case.again(learner, values, regimes)
        except CausalArmsError:
            assert not hasattr(learner, "weights_"), f"{what} is refused, but leaves weights_"
        except Exception as error:
            raise AssertionError(
                f"{what} is refused by {type(error).__name__}, not by a CausalArmsError"
            ) from error
        else:
            raise AssertionError(f"{what} is not refused")


LEARNER_PROMISES: dict[str, Callable[[LearnerCase], None]] = {
    "fit gives adjacency_, weights_, intercept_ and noise_std_ per regime": _fits,
    "the graph of every regime is acyclic": _each_regime_is_acyclic,
    "graph_ is a networkx graph of the same edges": _graph_has_the_edges,
    "the same rounds give the same graph, whatever the global random state": _deterministic,
    "samples and interventions stay what they are": _input_is_not_changed,
    "a second fit forgets the first": _second_fit_forgets_the_first,
    "a known noise mean is kept": _noise_mean_is_kept,
    "settings are stored as given, and cloned": _settings_are_kept_and_cloned,
    "what cannot be learned from is refused and leaves no result": _bad_input_is_refused,
}
