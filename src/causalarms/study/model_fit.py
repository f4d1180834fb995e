"""Does the model of a study fit? The tests of every mechanism, in plain words."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from causalarms.graphs.diagnostics import MechanismCheck, check_mechanisms
from causalarms.graphs.graph import Graph
from causalarms.study.beliefs import Beliefs

DOUBT = 0.001  # p-values below are called out; many mechanisms are tested at once


class Verdict(NamedTuple):
    node: str
    regime: str
    rounds: int
    words: str
    doubtful: bool


def verdicts(beliefs: Beliefs, graph: Graph) -> list[Verdict]:
    """One per mechanism with complete rounds since its last change."""
    starts, named = beliefs.known.starts, beliefs.settings.named
    found = []
    for regime, node in np.argwhere(graph.known).tolist():
        only = np.zeros_like(graph.known)
        only[regime, node] = True
        start = int(starts[regime, node])
        rounds = start + np.flatnonzero(~np.isnan(beliefs.values[start:]).any(axis=1))
        if not (beliefs.regimes[rounds, node] == regime).any():
            continue  # a switch that this study never moves, or nothing complete
        (check,) = check_mechanisms(
            beliefs.values[rounds], beliefs.regimes[rounds], graph.nodes, graph.adjacency,
            graph.weights, only,
        )  # fmt: skip
        doubts = doubts_of(check)
        found.append(
            Verdict(
                graph.nodes[node],
                named.regime_name(node, regime),
                check.n_samples,
                in_words(check),
                bool(doubts),
            )
        )
    return found


def in_words(check: MechanismCheck) -> str:
    """What the tests of one mechanism mean."""
    if math.isnan(check.explained):
        return "constant: there is nothing to explain"
    share = 100 * max(check.explained, 0)
    causes = f"its causes explain {share:.0f} % of the variance"
    words = [causes if share >= 0.5 else "no cause known"]
    words += doubts_of(check) or ["nothing speaks against a linear Gaussian mechanism"]
    return "; ".join(words)


def doubts_of(check: MechanismCheck) -> list[str]:
    words = []
    if check.steady_p < DOUBT:
        words.append("it is not the same in all of its rounds: it seems to have changed")
    if check.linear_p < DOUBT:
        words.append("the effect of its causes looks bent, not linear: predictions may be off")
    if check.gaussian_p < DOUBT:
        words.append("residuals are not Gaussian (outliers, skew): intervals may be too narrow")
    return words
