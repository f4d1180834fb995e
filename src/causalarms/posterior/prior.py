"""What is believed of a mechanism before any data: its parents, weights, noise and intercept.

x_i = c + w . x_P + e with e ~ N(0, s^2), and
    P        each possible edge with probability `edge_probability`, or its number of parents first
    s^2      inverse gamma: `noise_shape` and an average precision of 1
    w | s    N(0, (weight_scale s)^2), independently
    c | s    N(0, (intercept_scale s)^2) where the mean of the noise is unknown
All are in units in which noise has a standard deviation of about one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import betaln

from causalarms.checks import number, share
from causalarms.errors import SettingError

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]

ADAPTIVE = "adaptive"


@dataclass(frozen=True)
class MechanismPrior:
    """Defaults look at no data.

    edge_probability   0.5 favours neither presence nor absence, so that an edge is not missed
                       because of the prior. "adaptive" draws each mechanism's own density
                       uniformly: sparser where data say little, at the price of more misses.
    weight_scale       1.5: weights of order one, in units of the noise. It is no threshold: too
                       large a scale costs an edge log(scale) nats, too small a one shrinks weights
    noise_shape        0.5: as informative as one sample
    intercept_scale    100: hardly informative; it is part of every parent set, so that its width
                       favours none
    """

    edge_probability: float | str = 0.5
    weight_scale: float = 1.5
    noise_shape: float = 0.5
    intercept_scale: float = 100.0

    def __post_init__(self) -> None:
        for name in ("weight_scale", "noise_shape", "intercept_scale"):
            number(name, getattr(self, name), above=0.0)
        chance = self.edge_probability
        if not isinstance(chance, str):
            share("edge_probability", chance)
        elif chance != ADAPTIVE:
            raise SettingError(f"edge_probability must be a number or 'adaptive', not {chance!r}")

    def log_sizes(self, n_nodes: int) -> FloatArray:
        """Log prior of one parent set by its size, (N,), before the order restricts it.

        Its sum over the subsets of a node's predecessors depends on their number only, and every
        order has one node with each number of them: all orders are equally likely.

        >>> MechanismPrior(edge_probability=0.5).log_sizes(3).round(3).tolist()
        [-1.386, -1.386, -1.386]
        """
        size = np.arange(n_nodes)
        rest = n_nodes - 1 - size
        if isinstance(self.edge_probability, str):
            return np.asarray(betaln(1 + size, 1 + rest))
        return size * np.log(self.edge_probability) + rest * np.log1p(-self.edge_probability)


class KernelPrior(NamedTuple):
    """The prior as kernels take it; nan stands for unknown."""

    noise_mean: FloatArray  # (R, N), nan: an intercept is part of every regression
    known_variance: FloatArray  # (R, N), nan: inverse gamma
    log_sizes: FloatArray  # (N,)
    weight_precision: float
    intercept_precision: float
    noise_shape: float
    regimes: IntArray  # (N,) how many each node has


class EdgeMask(NamedTuple):
    """What is known of edges, (R, N, N) each as [regime, parent, child]."""

    allowed: BoolArray
    required: BoolArray
