"""Randomness is passed in: the only module that makes a generator from a seed.

One seed becomes named streams, so that what one part draws never shifts what another part sees,
and the same repetition gives the same bits on every engine and in every order of execution.
"""

from __future__ import annotations

import zlib
from typing import TypeAlias

import numpy as np
from numpy.random import PCG64, Generator, SeedSequence

Seed: TypeAlias = "int | SeedSequence | Generator | None"


def stream(seed: int, name: str, *keys: int) -> Generator:
    """The generator called `name` of `seed`; `keys` number repetitions or rounds.

    >>> [int(stream(1, "noise", 0).integers(1000)) for _ in range(2)]
    [750, 750]
    >>> int(stream(1, "policy", 0).integers(1000))
    225
    """
    word = zlib.crc32(name.encode())
    # what default_rng does with a seed sequence, without finding out that it is one
    return Generator(PCG64(SeedSequence(seed, spawn_key=(word, *keys))))


def generator(seed: Seed) -> Generator:
    """A generator from whatever a user calls a seed (None is fresh entropy)."""
    return np.random.default_rng(seed)
