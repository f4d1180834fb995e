"""Named streams: one seed, independent parts."""

from __future__ import annotations

import numpy as np

from causalarms.rng import generator, stream


def draws(rng: np.random.Generator) -> list[float]:
    return rng.random(4).tolist()


def test_a_stream_is_its_seed_name_and_keys() -> None:
    assert draws(stream(1, "noise", 3)) == draws(stream(1, "noise", 3))
    streams = [
        stream(1, "noise", 3),
        stream(2, "noise", 3),
        stream(1, "policy", 3),
        stream(1, "noise", 4),
        stream(1, "noise", 3, 0),
        stream(1, "noise"),
    ]
    assert len({tuple(draws(rng)) for rng in streams}) == len(streams)


def test_a_generator_is_passed_through() -> None:
    rng = np.random.default_rng(0)
    assert generator(rng) is rng
    assert draws(generator(5)) == draws(np.random.default_rng(5))
    assert draws(generator(None)) != draws(generator(None))
