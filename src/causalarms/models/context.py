"""Draws of a system given what the context is today.

Context are nodes that no factor moves and that nothing but context causes. Of each draw they are
jointly normal, x_K ~ N(m, S). Where some are known before a trial, x_O, the others have the mean
m_U + S_UO S_OO^-1 (x_O - m_O). Expected rewards are linear in them, so that the mean is all that
is needed: it takes the place of their mechanisms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from causalarms.posterior.base import Draws


def given_context(draws: Draws, context: Sequence[int], known: Mapping[int, float]) -> Draws:
    """The draws with the context at its mean given the values that are known, by node.

    `context` are the nodes that are context; they have one regime each.
    """
    every = sorted(context)
    seen = [every.index(node) for node in sorted(known)]
    rest = [k for k in range(len(every)) if k not in seen]
    values = np.array([known[every[k]] for k in seen])
    weights, intercept = draws.weights.copy(), draws.intercept.copy()
    for d in range(len(draws.order)):
        into = draws.weights[d, 0][np.ix_(every, every)].T  # [child, parent]
        carried = np.linalg.inv(np.eye(len(every)) - into)
        mean = carried @ draws.intercept[d, 0, every]
        spread = (carried * draws.noise_std[d, 0, every] ** 2) @ carried.T
        moved = np.linalg.lstsq(spread[np.ix_(seen, seen)], values - mean[seen], rcond=None)[0]
        mean[rest] += spread[np.ix_(rest, seen)] @ moved
        mean[seen] = values
        intercept[d][:, every] = mean
        weights[d][:, :, every] = 0.0
    return draws._replace(weights=weights, intercept=intercept)
