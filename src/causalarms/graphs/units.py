"""Scales of nodes: CSL is not invariant to the units of a single node.

Rescaling one node changes -log|b| of its edges and so the graph; a common scale of all nodes
changes nothing. Standardising divides every node by its standard deviation over all rounds.
Where the noise means are unknown, nodes are centred too, which an intercept makes irrelevant for
the result and which keeps Gram moments of nodes with large offsets accurate.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from causalarms.errors import ScaleWarning

FloatArray = npt.NDArray[np.float64]

WIDE_SCALES = 1e3  # the paper's ensembles stay below 200 at N = 14


@dataclass(frozen=True)
class Units:
    """z = (x - shift) / scale."""

    shift: FloatArray  # (N,)
    scale: FloatArray  # (N,)

    @classmethod
    def of(cls, values: FloatArray, *, standardize: bool, center: bool) -> Units:
        n_nodes = values.shape[1]
        return cls(
            shift=values.mean(axis=0) if center else np.zeros(n_nodes),
            scale=values.std(axis=0) if standardize else np.ones(n_nodes),
        )

    def apply(self, values: FloatArray) -> FloatArray:
        return (values - self.shift) / self.scale

    def weights(self, weights: FloatArray) -> FloatArray:
        """Weights (..., N, N) in the original units."""
        return weights * (self.scale[None, :] / self.scale[:, None])

    def intercept(self, intercept: FloatArray, weights: FloatArray) -> FloatArray:
        """Noise means (..., N) in the original units, given the original weights."""
        carried = np.einsum("p,...pc->...c", self.shift, weights)
        return intercept * self.scale + self.shift - carried


def warn_of_wide_scales(values: FloatArray, nodes: tuple[str, ...]) -> None:
    std = values.std(axis=0)
    small, large = int(np.argmin(std)), int(np.argmax(std))
    if std[large] > WIDE_SCALES * std[small]:
        warnings.warn(
            f"node {nodes[large]!r} varies {std[large] / std[small]:.1g} times as much as "
            f"{nodes[small]!r}; CSL depends on units: use common ones, or "
            "the posterior with noise_scale='estimate', which does not depend on them",
            ScaleWarning,
            stacklevel=4,
        )
