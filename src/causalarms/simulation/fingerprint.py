"""What tells worlds apart whose making nobody can compare: their first systems, and some rounds."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

import numpy as np
import numpy.typing as npt

from causalarms.rng import stream
from causalarms.simulation.world import World

DIGITS = 9  # other machines may round the last ones of a double otherwise
ROUNDS = 3  # that are sampled from every system
KEPT = 16  # hexadecimal digits


def fingerprint(worlds: Iterable[World]) -> str:
    """Of the weights, the noise and a few rounds of every system."""
    found = sha256()
    for world in worlds:
        found.update(f"{world.n_nodes} {world.reward} {world.change_points}".encode())
        for sem in world.systems:
            for part in (sem.regimes, sem.weights, sem.mechanism_mean, sem.mechanism_std):
                found.update(_text(part))
        rng = stream(0, "fingerprint")
        for start in (0, *world.change_points):
            for round_ in range(start + 1, start + 1 + ROUNDS):
                a = rng.integers(0, world.regimes, dtype=np.uint8)
                found.update(_text(world.play(round_, a, rng)))
    return found.hexdigest()[:KEPT]


def _text(values: npt.NDArray[np.float64] | npt.NDArray[np.int64]) -> bytes:
    numbers = " ".join(f"{float(value) + 0.0:.{DIGITS}g}" for value in np.ravel(values))
    return f"{np.shape(values)} {numbers}\n".encode()
