"""`MixedPosterior`: how large weights are is learned too, from the evidence of several priors.

Each prior has an exact posterior of its own, and they are weighted by how well they predicted all
data. The first is the one that was given; the others say that an edge is not weak, and about how
strong it is. A prior that data speak against is given up, so that a round soon costs what one
posterior costs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from causalarms.posterior.exact import Draws, ExactPosterior, OrderedGraph
from causalarms.posterior.prior import MechanismPrior
from causalarms.statistics.moments import Moments

FloatArray = npt.NDArray[np.float64]

STRENGTHS = (0.6, 1.2, 2.4)  # of weights, in units of the noise
SPREAD = 0.35  # of weights about ±strength, as a share of it
NEGLIGIBLE = 1e-4  # probability of a prior that is given up


def strengths_of_weights(given: MechanismPrior) -> list[MechanismPrior]:
    """The given prior, and those that know about how strong edges are.

    >>> [prior.weight_mean for prior in strengths_of_weights(MechanismPrior())]
    [0.0, 0.6, 1.2, 2.4]
    """
    return [given] + [
        replace(given, weight_mean=strength, weight_scale=SPREAD * strength)
        for strength in STRENGTHS
    ]


class MixedPosterior:
    """Exact posteriors under several priors, equally likely before any data.

    `held` are the priors not given up yet, by their position, and `probability` is theirs.
    Further settings go to `ExactPosterior`.
    """

    def __init__(self, n_nodes: int, priors: list[MechanismPrior], **settings: Any) -> None:
        self.n_nodes = n_nodes
        self.parts = [ExactPosterior(n_nodes, prior=prior, **settings) for prior in priors]
        self.held = list(range(len(priors)))
        self._weigh()

    def _weigh(self) -> None:
        evidence = np.array([self.parts[k].log_evidence for k in self.held])
        evidence[~np.isfinite(evidence)] = -np.inf  # lost among values of any size
        if not np.isfinite(evidence).any():
            evidence[:] = 0.0  # nothing speaks for any of them
        odds = np.exp(evidence - evidence.max())
        likely = odds / odds.sum() >= NEGLIGIBLE
        self.held = [k for k, kept in zip(self.held, likely, strict=True) if kept]
        self.probability: FloatArray = odds[likely] / odds[likely].sum()

    def update(self, moments: Moments) -> None:
        """Take over these moments and judge the priors by them."""
        for k in self.held:
            self.parts[k].update(moments)
        self._weigh()

    def retire(self, regime: int, node: int) -> None:
        """The mechanism was replaced: as `ExactPosterior.retire`."""
        for k in self.held:
            self.parts[k].retire(regime, node)

    def hold_only(self, held: list[int]) -> None:
        """Take over which priors are not given up."""
        self.held = held
        self._weigh()

    @property
    def regimes(self) -> npt.NDArray[np.int64]:
        """How many each node has, (N,)."""
        return self.parts[0].regimes

    @property
    def likeliest(self) -> ExactPosterior:
        return self.parts[self.held[int(np.argmax(self.probability))]]

    @property
    def edge_probability(self) -> FloatArray:
        """Of every edge, (R, N, N), averaged over the priors."""
        each = [self.parts[k].edge_probability for k in self.held]
        return np.asarray(np.tensordot(self.probability, np.array(each), axes=1))

    def most_probable(self) -> OrderedGraph:
        """Under the most probable prior."""
        return self.likeliest.most_probable()

    def draw(self, rng: np.random.Generator, n: int = 1) -> Draws:
        """Draws of the prior too, those of one prior after those of another."""
        counts = rng.multinomial(n, self.probability)
        drawn = [
            self.parts[k].draw(rng, int(count))
            for k, count in zip(self.held, counts, strict=True)
            if count
        ]
        return Draws(*(np.concatenate(arrays) for arrays in zip(*drawn, strict=True)))
