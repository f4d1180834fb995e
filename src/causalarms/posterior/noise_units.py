"""Units in which the prior is said: every node divided by about the spread of its noise.

The posterior depends on units only through the prior. A common wrong scale makes all weights look
small or large beside the noise; wrong scales of single nodes do the same for their edges.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from causalarms.errors import DataError, ScaleWarning, SettingError
from causalarms.graphs.inputs import as_noise_std
from causalarms.graphs.units import Units, safe_sizes
from causalarms.statistics.moments import Moments

FloatArray = npt.NDArray[np.float64]

ESTIMATE = "estimate"
NOISE_FRACTION = 0.3  # of a node's spread under random interventions, for want of a model
FAR_OFF = 10.0  # a node without parents varies like its noise; ten times off is worth a word


def noise_units(
    values: FloatArray, noise_scale: Any, nodes: tuple[str, ...], *, center: bool
) -> Units:
    size = safe_sizes(values)
    values = values / size
    shift = values.mean(axis=0) * size if center else np.zeros(len(nodes))
    scale = given_scale(noise_scale, nodes)
    if scale is None:
        return Units(shift=shift, scale=spread_given_others(values) * size)
    with np.errstate(all="ignore"):
        _warn_of_far_off_scale(values.std(axis=0) * size / scale, nodes)
    return Units(shift=shift, scale=scale)


def given_scale(noise_scale: Any, nodes: tuple[str, ...]) -> FloatArray | None:
    """The setting `noise_scale`, (N,); None where it is to be estimated."""
    if isinstance(noise_scale, str):
        if noise_scale != ESTIMATE:
            raise SettingError(f"noise_scale must be numbers or 'estimate', not {noise_scale!r}")
        return None
    n = len(nodes)
    try:
        scale = as_noise_std(noise_scale, nodes, "noise_scale")
    except SettingError as error:
        raise SettingError(f"{error}; give a number above 0 or {n} of them") from error
    if scale is None or (scale[0] != scale[1]).any():
        raise SettingError(f"noise_scale must be a number or of shape ({n},): {n} of them above 0")
    return scale[0]


def spread_given_others(values: FloatArray) -> FloatArray:
    """Standard deviation of each node once all others have explained what they can, (N,)."""
    n_samples, n_nodes = values.shape
    if n_samples < n_nodes + 2:
        raise DataError(
            f"noise_scale='estimate' needs at least {n_nodes + 2} rows for {n_nodes} nodes, "
            f"there are {n_samples}"
        )
    centred = values - values.mean(axis=0)
    size = centred.std(axis=0)
    # the row of R that belongs to the last column is what the others do not explain of it
    spreads = [
        abs(np.linalg.qr(np.roll(centred / size, -1 - i, axis=1)).R[-1, -1]) for i in range(n_nodes)
    ]
    spread = size * np.array(spreads) / np.sqrt(n_samples - n_nodes)
    return np.maximum(spread, 1e-6 * size)  # a node that the others determine exactly


def _warn_of_far_off_scale(relative: FloatArray, nodes: tuple[str, ...]) -> None:
    least = int(np.argmin(relative))
    if not 1 / FAR_OFF < relative[least] < FAR_OFF:
        warnings.warn(
            f"the least varying node, {nodes[least]!r}, varies {relative[least]:.1g} times as much "
            "as noise_scale says of noise; the prior is said in units of the noise: give "
            "noise_scale, or 'estimate'",
            ScaleWarning,
            stacklevel=5,
        )


def given_units(noise_scale: Any, nodes: tuple[str, ...]) -> Units | None:
    """None if they are to be estimated."""
    scale = given_scale(noise_scale, nodes)
    return None if scale is None else Units(shift=np.zeros(len(nodes)), scale=scale.copy())


def estimated_units(values: FloatArray, *, center: bool) -> Units:
    """A fraction of each node's spread in the first rounds, (n, N); constant nodes keep theirs."""
    spread = NOISE_FRACTION * values.std(axis=0)
    shift = values.mean(axis=0) if center else np.zeros(values.shape[1])
    return Units(shift=shift, scale=np.where(spread > 0, spread, 1.0))


def moments_in(units: Units, moments: Moments) -> Moments:
    """Moments of (x - shift) / scale; the very same object if that changes nothing."""
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
