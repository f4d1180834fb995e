"""Units that follow what is learned: every node divided by its noise as it is believed now.

Preliminary units come from the spread of a few rounds, which is not noise alone. They are stated
anew at rounds 8, 16, 32, ...: what the posterior believes of each node's noise then. Moments are
kept in the units of the data, so that nothing but the prior changes. Only medians, roots and
products are taken: in units that are powers of two everything is equal bit for bit.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from causalarms.graphs.units import Units
from causalarms.posterior.exact import Draws
from causalarms.statistics.moments import Moments

FloatArray = npt.NDArray[np.float64]

LEARN = "learn"  # as the setting noise_scale
FIRST_PAIRS = 4  # rounds: settings and their opposites, from which preliminary units are estimated
FIRST_LOOK = 8
DRAWS_OF_NOISE = 65
LEAST = 1e-3  # of a node's spread: one that the others determine exactly


def due(round_: int) -> bool:
    """
    >>> [t for t in range(100) if due(t)]
    [8, 16, 32, 64]
    """
    return round_ >= FIRST_LOOK and round_ & (round_ - 1) == 0


def learned_units(units: Units, draws: Draws, moments: Moments) -> Units:
    """Noise of each node over its mechanisms, by draws in the units of the data."""
    rounds = moments.gram[:, :, -1, -1]  # (R, N)
    total = np.maximum(rounds.sum(axis=0), 1.0)
    noise = np.sqrt((rounds * draws.noise_std**2).sum(axis=1) / total)  # (draws, N)
    nodes = np.arange(len(total))
    squares = moments.gram[:, nodes, nodes, nodes].sum(axis=0) / total
    means = moments.gram[:, nodes, nodes, -1].sum(axis=0) / total
    spread = np.sqrt(np.maximum(squares - means**2, 0.0))
    scale = np.maximum(np.median(noise, axis=0), LEAST * spread)
    usable = np.isfinite(scale) & (scale > 0) & (spread > 0)
    return Units(shift=units.shift, scale=np.where(usable, scale, units.scale))
