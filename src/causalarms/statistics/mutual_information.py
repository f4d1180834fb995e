"""Mutual information of two scalars from k-nearest-neighbour distances (Kraskov et al. 2004).

`rectangles` is Kraskov's second estimator, psi(k) - 1/k - <psi(n_x) + psi(n_y)> + psi(n);
`squares` is the first, psi(k) - <psi(n_x + 1) + psi(n_y + 1)> + psi(n). Values are in nats and not
clipped at 0: CSL (Sec. III-B) ranks them. Neighbours at exactly the k-th distance all belong to the
neighbourhood, so tied samples have one well-defined value whatever the order of the rows.

`mutual_information_plain` is the definition; the kernel is the same number in time near n log n:
points are cut into vertical strips of equal count, each sorted by y. Visiting the points in the
order of y, one pointer per strip stands at the height of the current point, and a search leaves it
upwards and downwards and strip by strip sideways while nearer neighbours are possible.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from causalarms.arrays import FloatArray, IntArray
from causalarms.errors import DataError
from causalarms.kernels import inlined, kernel

ESTIMATORS = ("rectangles", "squares")
_STRIP_WIDTH = 0.8  # in units of sqrt(k n), the expected number of points next to a neighbourhood
_FAR = np.finfo(float).max  # farther than any sample, nearer than a sentinel
_BLOCK = 16


def mutual_information(
    x: npt.ArrayLike, y: npt.ArrayLike, *, k: int = 5, estimator: str = "rectangles"
) -> float:
    """Kraskov's estimate of I(x; y) in nats.

    >>> x = np.arange(50.0)
    >>> round(mutual_information(x, x, k=5), 3) == round(mutual_information_plain(x, x, k=5), 3)
    True
    """
    x, y = _checked(x, y, k, estimator)
    return kraskov(x, y, np.argsort(x), np.argsort(y), k, estimator == "squares", psi_table(len(x)))


def mutual_information_plain(
    x: npt.ArrayLike, y: npt.ArrayLike, *, k: int = 5, estimator: str = "rectangles"
) -> float:
    """The definition, one sample at a time: the reference of the tests and benchmarks."""
    from scipy.special import digamma  # only here: it takes longer to import than a study to open

    x, y = _checked(x, y, k, estimator)
    n = len(x)
    total = 0.0
    for i in range(n):
        dx, dy = np.abs(x - x[i]), np.abs(y - y[i])
        distance = np.maximum(dx, dy)
        distance[i] = np.inf
        radius = np.sort(distance)[k - 1]
        if estimator == "squares":
            total += digamma((dx < radius).sum() - (radius > 0) + 1)
            total += digamma((dy < radius).sum() - (radius > 0) + 1)
        else:
            near = distance <= radius
            total += digamma((dx <= dx[near].max()).sum() - 1)
            total += digamma((dy <= dy[near].max()).sum() - 1)
    correction = 1.0 / k if estimator == "rectangles" else 0.0
    return float(digamma(k) - correction + digamma(n) - total / n)


@lru_cache(maxsize=256)
def psi_table(n: int) -> FloatArray:
    """psi(0..n), with psi(0) never used."""
    table = np.empty(n + 1)
    table[0] = -np.inf
    table[1:] = -np.euler_gamma + np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, n))])
    table.setflags(write=False)
    return table


@kernel
def kraskov(
    x: FloatArray,
    y: FloatArray,
    x_order: IntArray,
    y_order: IntArray,
    k: int,
    squares: bool,
    psi: FloatArray,
) -> float:
    """The estimate from samples and the orders that sort them; nan if one is not finite."""
    n = len(x)
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        return np.nan  # no distance to it ends a search
    width = int(_STRIP_WIDTH * np.sqrt(k * n)) + 1
    n_strips = (n + width - 1) // width
    x_sorted, y_sorted, x_rank = np.empty(n), np.empty(n), np.empty(n, np.int64)
    for rank in range(n):
        x_sorted[rank] = x[x_order[rank]]
        y_sorted[rank] = y[y_order[rank]]
        x_rank[x_order[rank]] = rank
    # strip after strip, by y inside each, between two infinitely distant sentinels
    room = width + 2
    strip_x, strip_y = np.zeros(n_strips * room), np.full(n_strips * room, np.inf)
    end, height = np.empty(n_strips, np.int64), np.empty(n_strips, np.int64)
    for strip in range(n_strips):
        strip_y[strip * room] = -np.inf
        end[strip] = height[strip] = strip * room + 1
    for rank in range(n):
        i = y_order[rank]
        strip = x_rank[i] // width
        strip_x[end[strip]] = x[i]
        strip_y[end[strip]] = y_sorted[rank]
        end[strip] += 1
    near = np.empty(k)  # the k smallest distances so far, ascending
    seen = np.empty((2, n + 2))  # |dx| and |dy| of the candidates
    reach_x, reach_y = np.empty(n), np.empty(n)  # by rank in x, by rank in y
    for rank in range(n):
        i = y_order[rank]
        xi, yi = x[i], y_sorted[rank]
        own = x_rank[i] // width
        slot = height[own]  # of the point itself; in other strips the first one above it
        height[own] += 1
        near[:] = _FAR
        m = _scan(strip_x, strip_y, slot + 1, slot - 1, (xi, yi), near, seen, 0)
        strip = own - 1
        while strip >= 0 and xi - x_sorted[strip * width + width - 1] <= near[k - 1]:
            slot = height[strip]
            m = _scan(strip_x, strip_y, slot, slot - 1, (xi, yi), near, seen, m)
            strip -= 1
        strip = own + 1
        while strip < n_strips and x_sorted[strip * width] - xi <= near[k - 1]:
            slot = height[strip]
            m = _scan(strip_x, strip_y, slot, slot - 1, (xi, yi), near, seen, m)
            strip += 1
        radius = near[k - 1]
        far_x = far_y = 0.0
        for candidate in range(m):
            dx, dy = seen[0, candidate], seen[1, candidate]
            inside = max(dx, dy) <= radius
            far_x = max(far_x, dx if inside else 0.0)
            far_y = max(far_y, dy if inside else 0.0)
        below = np.nextafter(radius, -np.inf)  # squares count strictly inside the radius
        reach_x[x_rank[i]] = below if squares else far_x
        reach_y[rank] = below if squares else far_y
    total = _sum_psi(x_sorted, reach_x, psi, squares) + _sum_psi(y_sorted, reach_y, psi, squares)
    correction = 0.0 if squares else 1.0 / k
    return psi[k] - correction + psi[n] - total / n


@inlined
def _scan(
    strip_x: FloatArray,
    strip_y: FloatArray,
    up: int,
    down: int,
    point: tuple[float, float],
    near: FloatArray,
    seen: FloatArray,
    m: int,
) -> int:
    """Meet the candidates of one strip, upwards and downwards in step; how many seen in all.

    Free of branches but for its end: they would be mispredicted every other time. A direction
    that has left the radius stays where it is, and inserting a candidate from there is no change.
    """
    k, (xi, yi) = len(near), point
    while True:
        radius = near[k - 1]
        dy_up, dy_down = strip_y[up] - yi, yi - strip_y[down]
        if min(dy_up, dy_down) > radius:
            return m
        dx_up, dx_down = abs(strip_x[up] - xi), abs(strip_x[down] - xi)
        larger_up, larger_down = max(dx_up, dy_up), max(dx_down, dy_down)
        seen[0, m], seen[1, m] = dx_up, dy_up
        m += larger_up <= radius
        seen[0, m], seen[1, m] = dx_down, dy_down
        m += larger_down <= radius
        up += dy_up <= radius
        down -= dy_down <= radius
        for place in range(k):  # the larger one moves on
            here = near[place]
            near[place] = min(here, larger_up)
            larger_up = max(here, larger_up)
        for place in range(k):
            here = near[place]
            near[place] = min(here, larger_down)
            larger_down = max(here, larger_down)


@kernel
def _sum_psi(values: FloatArray, reach: FloatArray, psi: FloatArray, squares: bool) -> float:
    """Sum over a sorted array of psi(how many others lie within reach, + 1 for squares).

    Binary searches of a block of neighbours advance in lockstep: each alone would wait for memory.
    """
    n = len(values)
    top = 1
    while 2 * top <= n:
        top *= 2
    padded = np.empty(n + 4 * top)  # so that no step needs to look for the ends
    padded[: 2 * top] = -np.inf
    padded[2 * top : 2 * top + n] = values
    padded[2 * top + n :] = np.inf
    total = 0.0
    above, below = np.empty(_BLOCK, np.int64), np.empty(_BLOCK, np.int64)
    for start in range(0, n, _BLOCK):
        size = min(_BLOCK, n - start)
        for lane in range(size):
            above[lane] = below[lane] = 2 * top + start + lane
        step = top
        while step:
            for lane in range(size):
                center, radius = values[start + lane], reach[start + lane]
                above[lane] += step * (padded[above[lane] + step] - center <= radius)
                below[lane] -= step * (center - padded[below[lane] - step] <= radius)
            step //= 2
        for lane in range(size):
            total += psi[max(above[lane] - below[lane], 0) + squares]
    return total


def _checked(
    x: npt.ArrayLike, y: npt.ArrayLike, k: int, estimator: str
) -> tuple[FloatArray, FloatArray]:
    x = np.ascontiguousarray(x, dtype=float)
    y = np.ascontiguousarray(y, dtype=float)
    if x.ndim != 1 or x.shape != y.shape:
        raise DataError(f"two sample vectors of one length are needed, not {x.shape} and {y.shape}")
    if estimator not in ESTIMATORS:
        raise DataError(f"unknown estimator {estimator!r}; there are {', '.join(ESTIMATORS)}")
    if not 1 <= k < len(x):
        raise DataError(f"k = {k} neighbours need more than {k} samples, not {len(x)}")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise DataError("samples must be finite")
    return x, y
