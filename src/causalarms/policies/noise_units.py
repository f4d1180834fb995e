"""The units a policy's prior is said in: every node divided by about the spread of its noise."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from causalarms.errors import DataError
from causalarms.graphs.units import Units
from causalarms.posterior.noise_units import given_scale
from causalarms.statistics.moments import Moments

FloatArray = npt.NDArray[np.float64]

NOISE_SHARE = 0.3  # of a node's spread under random interventions, for want of a model


def given_units(noise_scale: Any, nodes: tuple[str, ...]) -> Units | None:
    """None where they are to be estimated."""
    scale = given_scale(noise_scale, nodes)
    return None if scale is None else Units(shift=np.zeros(len(nodes)), scale=scale.copy())


def estimated_units(values: FloatArray, *, center: bool) -> Units:
    """A share of each node's spread in the first rounds, (n, N); constant nodes keep theirs."""
    spread = NOISE_SHARE * values.std(axis=0)
    shift = values.mean(axis=0) if center else np.zeros(values.shape[1])
    return Units(shift=shift, scale=np.where(spread > 0, spread, 1.0))


def moments_in(units: Units, moments: Moments) -> Moments:
    """Moments of (x - shift) / scale; the very same object where that changes nothing."""
    if units.trivial:
        return moments
    n_nodes = len(units.scale)
    change = np.zeros((n_nodes + 1, n_nodes + 1))
    change[:-1, :-1] = np.diag(1 / units.scale)
    change[:-1, -1] = -units.shift / units.scale
    change[-1, -1] = 1.0
    scaled = Moments(n_nodes, regimes=moments.n_regimes)
    with np.errstate(all="ignore"):
        scaled.gram[:] = change @ moments.gram @ change.T
    if not np.isfinite(scaled.gram).all():
        raise DataError("the values told are too large to compute with in units of noise_scale")
    scaled.counts[:] = moments.counts
    return scaled
