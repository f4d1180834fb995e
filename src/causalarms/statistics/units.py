"""Scales of nodes: CSL is not invariant to the units of a single node.

Rescaling one node changes -log|b| of its edges and so the graph; a common scale of all nodes
changes nothing. If the noise means are unknown, nodes are centred, which an intercept makes
irrelevant for the result and which keeps Gram moments of nodes with large offsets accurate.

Inverses of Gram matrices are multiplied with each other, which are fourth powers of the data: far
from one they leave the range of double precision. There all nodes are multiplied by one power of
two, which changes no bit of a result but its exponent.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from causalarms.arrays import FloatArray, Interventions
from causalarms.errors import DataError, ScaleWarning

WIDE_SCALES = 1e3  # the paper's ensembles stay below 200 at N = 14
SAFE = 2.0**240  # 1e72; its fourth power and that of 1 / SAFE are in range


@dataclass(frozen=True)
class Units:
    """z = (x - shift) / scale."""

    shift: FloatArray  # (N,)
    scale: FloatArray  # (N,)

    @classmethod
    def safe(
        cls,
        values: FloatArray,
        nodes: tuple[str, ...],
        *,
        center: Callable[..., FloatArray] | None = None,  # np.mean, np.median
    ) -> Units:
        """Units whose fourth powers are in range, one power of two for all nodes."""
        scale = np.full(values.shape[1], common_scale(values, nodes))
        if center is None:
            return cls(shift=np.zeros(len(scale)), scale=scale)
        return cls(shift=center(values / scale, axis=0) * scale, scale=scale)

    @cached_property  # asked in every round
    def trivial(self) -> bool:
        """Whether applying them changes nothing."""
        return bool((self.scale == 1).all() and (self.shift == 0).all())

    def apply(self, values: FloatArray) -> FloatArray:
        return (values - self.shift) / self.scale

    def weights(self, weights: FloatArray) -> FloatArray:
        """Weights (..., N, N) in the original units."""
        return weights * (self.scale[None, :] / self.scale[:, None])

    def intercept(self, intercept: FloatArray, weights: FloatArray) -> FloatArray:
        """Noise means (..., N) in the original units, given the original weights."""
        carried = np.einsum("p,...pc->...c", self.shift, weights)
        return intercept * self.scale + self.shift - carried


def safe_sizes(values: FloatArray) -> FloatArray:
    """A power of two per node to divide it by, (N,); 1 where its size is safe."""
    size = np.abs(values).max(axis=0)
    safe = ((size >= 1 / SAFE) & (size <= SAFE)) | (size == 0)
    return np.where(safe, 1.0, 2.0 ** np.maximum(np.frexp(size)[1] - 1.0, -1022.0))


def common_scale(values: FloatArray, nodes: tuple[str, ...]) -> float:
    """The power of two to divide all nodes (n, N) by; 1 where their sizes are safe.

    >>> common_scale(np.array([[1e-5, 3e7]]), ("a", "b"))
    1.0
    >>> common_scale(np.array([[1e-155, 3e-150]]), ("a", "b")) == 2.0**-497
    True
    """
    size = np.abs(values).max(axis=0, initial=0.0)
    largest = float(size.max())
    small = np.where(size > 0, size, largest)  # a node that is always 0 has no size
    if largest == 0 or (small.min() >= 1 / SAFE and largest <= SAFE):
        return 1.0
    scale = 2.0 ** max(int(np.frexp(largest)[1]) - 1, -1022)
    if small.min() / scale < 1 / SAFE:
        tiny, huge = nodes[int(np.argmin(small))], nodes[int(np.argmax(size))]
        raise DataError(
            f"the values of node {tiny!r} (at most {small.min():.0e}) and of {huge!r} (up to "
            f"{largest:.0e}) are too far apart to compute with: use other units"
        )
    return scale


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


# Units in which the prior is said: every node divided by about the spread of its noise.
#
# The posterior depends on units only through the prior. A common wrong scale makes all weights
# look small or large next to the noise; wrong scales of single nodes do the same for their edges.

NOISE_FRACTION = 0.3  # of a node's spread under random interventions, for want of a model
FAR_OFF = 10.0  # a node without parents varies like its noise; ten times off is worth a word


def spread_given_others(values: FloatArray, regimes: Interventions) -> FloatArray:
    """Standard deviation of each node once all others have explained what they can, (N,).

    Rounds (n, N) are taken apart by the regime of the node itself: in another regime it answers
    others differently, and one line through both would leave far more than noise.
    """
    n_samples, n_nodes = values.shape
    size = values.std(axis=0)
    relative = (values - values.mean(axis=0)) / size
    spread = np.full(n_nodes, NOISE_FRACTION)  # if there are too few rounds to explain anything
    for node in range(n_nodes):
        own = regimes[:, node]
        parts = [relative[own == regime] for regime in np.unique(own)]
        # N regressors with the mean, and at least two rounds to see a spread in
        enough = [part for part in parts if len(part) >= n_nodes + 2]
        if not enough and n_samples >= n_nodes + 2:
            enough = [relative]
        if enough:
            squares, degrees = np.sum([_left_over(part, node) for part in enough], axis=0)
            spread[node] = np.sqrt(squares / degrees)
    return size * np.maximum(spread, 1e-6)  # a node that the others determine exactly


def _left_over(values: FloatArray, node: int) -> tuple[float, int]:
    """Sum of squares of a node that the others do not explain, and its degrees of freedom."""
    n_samples, n_nodes = values.shape
    centred = values - values.mean(axis=0)
    # QR and not the normal equations: a node that the others determine to ten digits would square
    # to nothing.
    # the row of R that belongs to the last column is what the others do not explain of it
    last = np.linalg.qr(np.roll(centred, -1 - node, axis=1)).R[-1, -1]
    return float(last) ** 2, n_samples - n_nodes


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


def estimated_units(values: FloatArray, *, center: bool) -> Units:
    """A fraction of each node's spread in the first rounds, (n, N); constant nodes keep theirs."""
    # 0.3: of 100 systems, 0.03, 0.1 and 1 cost 19.5, 18.5 and 19.8 of regret for 17.6
    # (docs/research/what-was-tried.md#looking-ahead).
    spread = NOISE_FRACTION * values.std(axis=0)
    shift = values.mean(axis=0) if center else np.zeros(values.shape[1])
    return Units(shift=shift, scale=np.where(spread > 0, spread, 1.0))


def noise_units(
    values: FloatArray,  # (n, N)
    regimes: Interventions,  # (n, N)
    scale: FloatArray | None,  # (N,), None: estimated
    nodes: tuple[str, ...],
    *,
    center: bool,
) -> Units:
    """Units in which the noise of every node has a standard deviation of about one."""
    size = safe_sizes(values)
    values = values / size
    shift = values.mean(axis=0) * size if center else np.zeros(len(nodes))
    if scale is None:
        return Units(shift=shift, scale=spread_given_others(values, regimes) * size)
    with np.errstate(all="ignore"):
        _warn_of_far_off_scale(values.std(axis=0) * size / scale, nodes)
    return Units(shift=shift, scale=scale)
