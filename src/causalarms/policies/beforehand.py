"""Which posterior the policy `posterior` holds, and what that is told before the first round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from causalarms.checks import choice, optional, whole
from causalarms.errors import SettingError
from causalarms.graphs.inputs import as_noise_mean, as_noise_std
from causalarms.graphs.units import Units
from causalarms.limits import MAX_EXACT_NODES, MAX_LEARNED_NODES
from causalarms.policies.posterior_state import AnyPosterior
from causalarms.posterior.exact import ExactPosterior
from causalarms.posterior.mixed import MixedPosterior, strengths_of_weights
from causalarms.posterior.prior import MechanismPrior
from causalarms.posterior.sampled import SampledPosterior
from causalarms.posterior.settings import edge_masks
from causalarms.sem.regimes import Counts

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

AUTO, EXACT, SAMPLED = METHODS = ("auto", "exact", "sampled")
GIVEN, LEARNED = WEIGHTS = ("given", "learned")
FIRST_SWEEPS = 20  # of chains that have seen nothing yet


def method_for(method: str, weights: str, weight_mean: float, n_nodes: int) -> str:
    """ "exact" or "sampled"; SettingError where the settings do not fit each other."""
    choice("method", method, METHODS)
    choice("weights", weights, WEIGHTS)
    if weights == LEARNED and weight_mean > 0:
        raise SettingError(
            f"weight_mean={weight_mean} is given and weights='learned' asked for: leave one out"
        )
    strong = weight_mean > 0 or weights == LEARNED  # chains have no such prior
    exact = n_nodes <= MAX_EXACT_NODES or strong
    found = (EXACT if exact else SAMPLED) if method == AUTO else method
    if weights == LEARNED and (found == SAMPLED or n_nodes > MAX_LEARNED_NODES):
        raise SettingError(
            f"weights='learned' takes 3^N steps of method='exact': at most {MAX_LEARNED_NODES} "
            f"nodes, not {n_nodes} by method={found!r}"
        )
    return found


@dataclass(frozen=True)
class Beforehand:
    """What is known before the first round, in units of the data, and how to compute with it."""

    method: str
    weights: str
    prior: MechanismPrior
    regimes: Counts
    allowed: BoolArray  # (R, N, N), as below
    required: BoolArray
    noise_mean: FloatArray | None  # (R, N), as below
    noise_std: FloatArray | None
    memory_limit: int | None

    @classmethod
    def checked(
        cls,
        method: str,
        weights: str,
        prior: MechanismPrior,
        regimes: Counts,
        nodes: tuple[str, ...],
        *,
        allowed: npt.ArrayLike | None,
        required: npt.ArrayLike | None,
        noise_mean: npt.ArrayLike | None,
        noise_std: npt.ArrayLike | None,
        memory_limit: int | None,
    ) -> Beforehand:
        """From settings as they are given, but for those that are objects already."""
        n_regimes = int(regimes.max())
        possible, certain = edge_masks(regimes, allowed, required)
        return cls(
            method=method,
            weights=weights,
            prior=prior,
            regimes=regimes,
            allowed=possible,
            required=certain,
            noise_mean=as_noise_mean(noise_mean, nodes, n_regimes),
            noise_std=as_noise_std(noise_std, nodes, n_regimes=n_regimes),
            memory_limit=optional(whole, "memory_limit", memory_limit, least=1),
        )

    def posterior(self, units: Units | None) -> AnyPosterior:
        """One that has seen nothing, of values in these units."""
        n_nodes = len(self.regimes)
        told: dict[str, Any] = {
            "allowed": self.allowed,
            "required": self.required,
            "noise_mean": _in(units, self.noise_mean),
            "noise_std": _in(units, self.noise_std),
            "regimes": self.regimes,
            "memory_limit": self.memory_limit,
        }
        if self.weights == LEARNED:
            return MixedPosterior(n_nodes, strengths_of_weights(self.prior), **told)
        if self.method == EXACT:
            return ExactPosterior(n_nodes, prior=self.prior, **told)
        return SampledPosterior(n_nodes, prior=self.prior, **told, n_sweeps=FIRST_SWEEPS)


def _in(units: Units | None, noise: FloatArray | None) -> FloatArray | None:
    return noise if noise is None or units is None else noise / units.scale
