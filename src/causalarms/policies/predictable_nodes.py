"""Which nodes predict which, and whose predictions are certain enough to be tested.

A node is predicted from the nodes before it in the most probable order, but for those that may be
its children and are hardly its parents. Where a node may well be either, nothing can be said.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from causalarms.policies.detector_views import PredictiveView
from causalarms.policies.learned_system import LearnedSystem
from causalarms.policies.posterior_state import AnyPosterior
from causalarms.posterior.settings import per_mechanism

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

HARDLY = 0.05  # probability of an edge that is taken not to be there when rounds are predicted
EITHER = 0.3  # a node is not tested if both directions of one of its edges are likelier than this


class PredictableNodes:
    """None before the posterior is judged for the first time.

    `in_units`: rounds are predicted in units of the noise, not as measured.
    """

    def __init__(self, n_nodes: int, *, in_units: bool) -> None:
        self._in_units = in_units
        self.predictors: BoolArray = np.zeros((n_nodes, n_nodes), dtype=bool)  # (node, predictor)
        self.settled: BoolArray = np.zeros(n_nodes, dtype=bool)

    def judge(self, posterior: AnyPosterior) -> None:
        """By what a posterior knows now."""
        edge = posterior.edge_probability.max(axis=0)  # (from, to)
        position = np.argsort(posterior.most_probable().order)
        before = position[None, :] < position[:, None]  # (node, earlier node)
        self.predictors = before & ((edge <= HARDLY) | (edge.T > HARDLY))
        self.settled = (np.minimum(edge, edge.T) <= EITHER).all(axis=1)

    def view(self, system: LearnedSystem, x: FloatArray, stale: BoolArray) -> PredictiveView | None:
        """What predicts a round before it is learned from; None while units are unknown."""
        if system.units is None:
            return None
        before, missing = system.before, np.isnan(x)
        return PredictiveView(
            system.units,
            system.rounds.origin,
            system.rounds.evidence,
            self.predictors,
            self.settled & ~stale & ~missing & ~(self.predictors & missing).any(axis=1),
            per_mechanism(before.noise_mean, before.regimes),
            per_mechanism(before.noise_std, before.regimes),
            in_units=self._in_units,
        )
