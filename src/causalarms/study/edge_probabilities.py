"""How likely each edge is, from the exact posterior over graphs.

It does not take the learned graph as given. Nodes are measured in units of about their noise, which
is where the default prior is at home; it leans towards too many edges when rounds are few.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from causalarms.graphs.posterior.exact import ExactPosterior
from causalarms.graphs.posterior.noise_units import spread_given_others
from causalarms.statistics.dataset import Dataset
from causalarms.statistics.moments import Moments

FloatArray = npt.NDArray[np.float64]

MAX_NODES = 15  # a tenth of a second; 20 nodes would take seconds and half a gigabyte


def edge_probabilities(
    data: Dataset,
    noise_mean: FloatArray | None,
    known: npt.NDArray[np.bool_],
    *,
    allowed: npt.NDArray[np.bool_] | None = None,
    required: npt.NDArray[np.bool_] | None = None,
) -> FloatArray | None:
    """(2, N, N), nan where a mechanism is not known; None for more than 15 nodes."""
    if data.n_nodes > MAX_NODES or not known.any():
        return None
    scale = spread_given_others(data.values)
    shift = np.zeros(data.n_nodes) if noise_mean is not None else data.values.mean(axis=0)
    scaled = Dataset(data.n_nodes)
    scaled.append((data.values - shift) / scale, data.regimes)
    for regime, node in np.argwhere(data.starts > 0).tolist():
        scaled.forget(regime, node, start=int(data.starts[regime, node]))
    posterior = ExactPosterior(
        data.n_nodes,
        Moments.of(scaled),
        noise_mean=None if noise_mean is None else noise_mean / scale,
        allowed=allowed,
        required=required,
    )
    return np.where(known[:, None, :], posterior.edge_probability, np.nan)
