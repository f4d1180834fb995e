"""The posterior by listing all pairs of DAGs, with scores from the densities of the samples.

Shares no code with the package: a DAG is a matrix, its orders are tested one by one, and the
marginal likelihood is SciPy's multivariate t (or normal) density of a mechanism's samples.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations, permutations, product
from math import comb
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats
from scipy.special import beta

from causalarms.arrays import BoolArray, FloatArray

WEIGHT_SCALE, NOISE_SHAPE, INTERCEPT_SCALE = 1.5, 0.5, 100.0


def log_density(
    target: FloatArray,
    parents: FloatArray,
    *,
    intercept: bool,
    known_std: float | None = None,
) -> float:
    """Of all samples of a mechanism at once; weights and noise integrated out."""
    n = len(target)
    shape = np.eye(n) + WEIGHT_SCALE**2 * parents @ parents.T + intercept * INTERCEPT_SCALE**2
    if known_std is not None:
        law = stats.multivariate_normal(np.zeros(n), known_std**2 * shape)
    else:
        # s^2 inverse gamma (shape, shape) and normal given s: t with 2 shape degrees of freedom
        law = stats.multivariate_t(np.zeros(n), shape, df=2 * NOISE_SHAPE)
    return float(law.logpdf(target))


class Enumeration(NamedTuple):
    """Every pair of DAGs with acyclic union and its probability."""

    dags: BoolArray  # (D, N, N)
    orders: BoolArray  # (D, O) does the DAG fit the order
    joint: FloatArray  # (D, D) posterior of the pair, summed over its orders
    log_evidence: float
    scores: list[list[dict[tuple[int, ...], float]]]  # [regime][node][parents]

    def edge_probability(self) -> FloatArray:
        first = np.einsum("d,dpc->pc", self.joint.sum(axis=1), self.dags)
        second = np.einsum("d,dpc->pc", self.joint.sum(axis=0), self.dags)
        return np.array([first, second])

    def probability_within(self, kept: BoolArray) -> float:
        inside = [(self.dags <= kept[r]).all(axis=(1, 2)) for r in (0, 1)]
        return float(self.joint[np.ix_(*inside)].sum())


@cache
def all_dags(n: int) -> tuple[BoolArray, BoolArray]:
    """All DAGs (D, N, N), and which of the N! orders they fit (D, N!)."""
    places = np.argsort(list(permutations(range(n))), axis=1)
    pairs = list(permutations(range(n), 2))
    dags, fits = [], []
    for chosen in product([False, True], repeat=len(pairs)):
        dag = np.zeros((n, n), dtype=bool)
        fit = np.ones(len(places), dtype=bool)
        for (parent, child), there in zip(pairs, chosen, strict=True):
            dag[parent, child] = there
            if there:
                fit &= places[:, parent] < places[:, child]
        if fit.any():
            dags.append(dag)
            fits.append(fit)
    return np.array(dags), np.array(fits)


def enumerate_pairs(
    X: FloatArray,
    A: npt.NDArray[np.int64],
    *,
    noise_mean: FloatArray | None,
    edge_probability: float | None = 0.5,  # None: the density itself is uniform, per mechanism
    noise_std: float | None = None,
    excluded: BoolArray | None = None,
    required: BoolArray | None = None,
) -> Enumeration:
    n = X.shape[1]
    dags, fits = all_dags(n)
    scores: list[list[dict[tuple[int, ...], float]]] = [[], []]
    prior_scores = []
    for size in range(n):
        if edge_probability is None:
            prior_scores.append(np.log(beta(1 + size, n - size)))
        else:
            chance = edge_probability**size * (1 - edge_probability) ** (n - 1 - size)
            prior_scores.append(np.log(chance))
    for regime, node in product((0, 1), range(n)):
        rows = X[A[:, node] == regime]
        target = rows[:, node] - (0 if noise_mean is None else noise_mean[node])
        table = {}
        for size in range(n):
            for parents in combinations([j for j in range(n) if j != node], size):
                density = 0.0
                if len(rows):
                    density = log_density(
                        target,
                        rows[:, parents],
                        intercept=noise_mean is None,
                        known_std=noise_std,
                    )
                table[parents] = density + prior_scores[size]
        scores[regime].append(table)

    def log_weights(regime: int, with_data: bool) -> FloatArray:
        totals = []
        for dag in dags:
            total = 0.0
            for node in range(n):
                parents = tuple(np.flatnonzero(dag[:, node]).tolist())
                total += scores[regime][node][parents] if with_data else prior_scores[len(parents)]
            possible = excluded is None or not (dag & excluded).any()
            possible &= required is None or bool((dag >= required).all())
            totals.append(total if possible else -np.inf)
        return np.array(totals)

    extensions = fits.astype(float) @ fits.T.astype(float)  # 0 where the union cycles
    with np.errstate(divide="ignore"):
        log_joint = np.log(extensions)
    prior = log_joint + log_weights(0, False)[:, None] + log_weights(1, False)
    log_joint = log_joint + log_weights(0, True)[:, None] + log_weights(1, True)
    total, prior_total = np.logaddexp.reduce(log_joint.ravel()), np.logaddexp.reduce(prior.ravel())
    return Enumeration(
        dags,
        fits,
        np.exp(log_joint - total),
        float(total - prior_total),
        scores,
    )


def n_labelled_dags(n: int) -> int:
    """Robinson's recursion, to check the list itself."""
    counts = [1]
    for size in range(1, n + 1):
        counts.append(
            sum(
                (-1) ** (k + 1) * comb(size, k) * 2 ** (k * (size - k)) * counts[size - k]
                for k in range(1, size + 1)
            )
        )
    return counts[n]
