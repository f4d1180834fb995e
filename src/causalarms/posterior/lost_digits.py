"""Say where moments have too few digits for the noise beneath large values.

Sums of squares of values that are r times the noise keep the noise with a relative error of about
r^2 2^-53, times a little for every parent: 1 % at 5 million times, nothing at a hundred million.
Dense systems of 50 nodes reach that at their last nodes, since values grow along the order.
"""

from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt

from causalarms.errors import ScaleWarning

MOST = 5e6  # times the noise


def warn_of_lost_digits(gram: npt.NDArray[np.float64], nodes: tuple[str, ...]) -> None:
    """`gram` (R, N, N+1, N+1) in units of the noise."""
    samples = np.maximum(gram[:, :, -1, -1], 1)
    own = np.einsum("rnii->rni", gram)[:, np.arange(len(nodes)), np.arange(len(nodes))]
    size = np.sqrt(own / samples).max(axis=0)
    lost = np.flatnonzero(size > MOST)
    if len(lost):
        worst = int(np.argmax(size))
        warnings.warn(
            f"values of {len(lost)} nodes, most of all {nodes[worst]!r}, are up to "
            f"{size[worst]:.1g} times the noise: double precision keeps too little of the noise "
            "beneath them, so that their parents' weights and noise are rough",
            ScaleWarning,
            stacklevel=4,
        )
