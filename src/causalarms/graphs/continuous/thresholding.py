"""From fitted weights to an acyclic graph: Sec. VI-A of Peng, Zhang, Mitra; Ng et al. 2020."""

import numpy as np
from numpy.typing import ArrayLike

from causalarms.checks import number
from causalarms.errors import DataError
from causalarms.graphs.continuous.small_matrices import Matrix
from causalarms.sem.regimes import topological_order

# The threshold of Ng et al. 2020, kept in Sec. VI-A of Peng, Zhang, Mitra.
WEIGHT_THRESHOLD = 0.3


def check_threshold(threshold: object) -> None:
    number("threshold", threshold, least=0.0)


def threshold_to_dag(weights: ArrayLike, threshold: float = WEIGHT_THRESHOLD) -> Matrix:
    """Zero the weights below ``threshold``, then the smallest left until no cycle is left.

    Of weights equal in size, the one earlier in reading order (parent, then child) goes first.
    """
    check_threshold(threshold)
    kept = np.array(weights, dtype=np.float64)
    if kept.ndim != 2 or kept.shape[0] != kept.shape[1]:
        raise DataError(f"weights must be a square matrix, got shape {kept.shape}")
    if not np.isfinite(kept).all():
        raise DataError("weights must be finite, got NaN or infinity")
    kept[np.abs(kept) < threshold] = 0.0
    rising = [int(flat) for flat in np.argsort(np.abs(kept), axis=None, kind="stable")]
    for flat in rising[kept.size - np.count_nonzero(kept) :]:
        if topological_order(kept != 0) is not None:
            break
        kept.flat[flat] = 0.0
    return kept
