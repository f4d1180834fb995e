"""What a study believes: the belief of its policy, in the user's names and sign, and no other.

`best`, `predict`, `graph`, `explain`, the report and the command line all come from here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from causalarms.errors import TooEarlyError
from causalarms.graphs.graph import Graph
from causalarms.models.belief import Belief, Summary, likely_graph, summary
from causalarms.policies.base import Policy
from causalarms.sem.factors import NamedFactors
from causalarms.study.limits import Limits
from causalarms.study.settings import Settings
from causalarms.study.trials import Ledger

FloatArray = npt.NDArray[np.float64]
Bits = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Beliefs:
    """The belief after some rounds. `belief` maximises; `sign` turns its reward into the user's."""

    settings: Settings
    values: FloatArray  # (n, N), as told
    regimes: Bits  # (n, N), as played
    belief: Belief | None
    has_model: bool  # whether the policy ever has one

    @property
    def known(self) -> Belief:
        """The belief, in the user's sign; TooEarlyError where there is none."""
        found = self._in_users_sign
        if found is None:
            raise TooEarlyError(self.why_nothing)
        return found

    @cached_property
    def _in_users_sign(self) -> Belief | None:
        if self.belief is None or self.settings.sign > 0:
            return self.belief
        factors = np.ones(self.settings.n_nodes)
        factors[self.settings.reward_index] = self.settings.sign
        return self.belief.scaled(factors)

    @property
    def why_nothing(self) -> str:
        n, policy = len(self.values), self.settings.policy
        if not self.has_model:
            return f"policy {policy!r} has no model of the system; 'posterior' has one"
        if not n:
            return "no round has been told yet: nothing is known"
        return f"it is too early: after {n} round(s) policy {policy!r} has no model yet"

    def expected(self, rows: Bits) -> Summary:
        """Expected values of all nodes, (rows, N) each."""
        return summary(self.known.expected(rows))


def believe(ledger: Ledger, policy: Policy, *, first: int | None = None) -> Beliefs:
    """What the policy believes; `first`: it has learned so many rounds of the ledger."""
    settings = ledger.settings
    assert settings is not None
    limits, n = Limits(settings), settings.n_nodes
    records = [r for r in map(ledger.trials.__getitem__, ledger.order) if limits.learnable(r)]
    records = records[:first]
    return Beliefs(
        settings,
        np.array([r.values for r in records], dtype=float).reshape(-1, n),
        np.array([r.intervention for r in records], dtype=np.uint8).reshape(-1, n),
        policy.belief(),
        policy.has_model,
    )


def graph(beliefs: Beliefs) -> Graph:
    """The likely edges."""
    settings = beliefs.settings
    return likely_graph(beliefs.known, settings.nodes, settings.named.regimes)


def edges(graph: Graph, named: NamedFactors) -> list[dict[str, Any]]:
    """The edges of a study's graph; `when` names the levels at which the child has this parent."""
    return [e | {"when": _when(graph, named, e["child"], e["regime"])} for e in graph.edges()]


def unknown(graph: Graph, named: NamedFactors) -> list[tuple[str, str]]:
    """(node, when) of the mechanisms without data."""
    return [(node, _when(graph, named, node, regime)) for regime, node in graph.unknown()]


def _when(graph: Graph, named: NamedFactors, node: str, regime: str) -> str:
    return named.regime_name(graph.nodes.index(node), graph.regime_names.index(regime))
