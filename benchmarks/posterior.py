"""The posterior over graphs: speed, calibration, and chains next to exact sums.

`python benchmarks/posterior.py exact|sampled [options]`; each has --help.
"""

from __future__ import annotations

import argparse
import resource
import warnings
from collections.abc import Callable
from time import process_time
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

from causalarms import LinearSEM, random_sem
from causalarms.posterior.chains import SampledPosterior
from causalarms.posterior.chains.convergence import NOTICEABLE, effective_sizes
from causalarms.posterior.exact import ExactPosterior, table_bytes
from causalarms.statistics.dataset import Dataset, Moments
from shared import readable, run_part

Array = npt.NDArray[Any]

BINS = 10


def rounds(n_nodes: int, n_rounds: int, seed: int) -> tuple[LinearSEM, Array, Array, Moments]:
    sem = random_sem(n_nodes, seed=seed)
    rng = np.random.default_rng(seed)
    A = rng.integers(0, 2, (n_rounds, n_nodes)).astype(np.uint8)
    X = sem.sample(A, rng)
    data = Dataset(n_nodes)
    data.append(X, A)
    return sem, X, A, Moments.of(data)


def table(title: str, *headings: str) -> Table:
    made = Table(title=title, min_width=90)
    for heading in headings:
        made.add_column(heading, justify="right")
    return made


def speed(n_systems: int) -> Table:
    """Processor time; `one round` rescores the N mechanisms that one more round touches."""
    found = table(
        "time of a refresh, 400 rounds",
        *("N", "all mechanisms", "one round", "edge probabilities", "draw", "best graph"),
        *("tables, MB", "process at its peak, MB"),
    )
    for n in (10, 13, 15, 17, 18, 20):
        sem, X, A, moments = rounds(n, 400, 1)
        rng = np.random.default_rng(0)
        warm = ExactPosterior(4)
        _ = warm.draw(rng), warm.edge_probability, warm.most_probable()
        posterior = ExactPosterior(n, noise_mean=sem.noise_mean)
        times: list[float] = []

        def clocked(call: Any, repetitions: int = 1, times: list[float] = times) -> None:
            start = process_time()
            for _ in range(repetitions):
                call()
            times.append((process_time() - start) / repetitions)

        clocked(lambda p=posterior, m=moments: p.update(m))
        moments.add(X[0], A[0])
        clocked(lambda p=posterior, m=moments: p.update(m))
        clocked(lambda p=posterior: p.edge_probability)
        clocked(lambda p=posterior, r=rng: p.draw(r), 50)
        clocked(posterior.most_probable)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        megabytes = table_bytes(n) / 1e6
        found.add_row(str(n), *map(readable, times), f"{megabytes:.1f}", f"{peak:.0f}")
    return found


def calibration(n_systems: int) -> Table:
    """Among edges given probability p, the fraction that exists; the reward is known to be last."""
    n = 10
    sink = np.ones((n, n), dtype=bool)
    sink[n - 1] = False
    found = table(
        f"calibration, N = {n}, {n_systems} systems: edges, said, true",
        *("bin", "T = 50", "T = 100", "T = 200"),
    )
    cells = []
    for n_rounds in (50, 100, 200):
        said, true = [], []
        for seed in range(n_systems):
            sem, _, _, moments = rounds(n, n_rounds, seed)
            posterior = ExactPosterior(n, moments, noise_mean=sem.noise_mean, allowed=sink)
            there = np.broadcast_to(sink & ~np.eye(n, dtype=bool), (2, n, n))
            said.append(posterior.edge_probability[there])
            true.append(sem.adjacency[there])
        p, t = np.concatenate(said), np.concatenate(true)
        number = np.minimum((p * BINS).astype(int), BINS - 1)
        cells.append(
            [
                f"{(number == k).sum():6d}  {p[number == k].mean():.3f}  "
                f"{t[number == k].mean():.3f}"
                if (number == k).any()
                else "-"
                for k in range(BINS)
            ]
        )
    for k in range(BINS):
        found.add_row(f"{k / BINS:.1f} - {(k + 1) / BINS:.1f}", *(c[k] for c in cells))
    return found


TOPICS = {"speed": speed, "calibration": calibration}


def main_exact() -> None:
    """The exact posterior over graphs: time and memory, calibration.

    `OMP_NUM_THREADS=1 python benchmarks/posterior.py exact [speed|calibration ...] [--systems 40]`,
    all topics without a name; errors of graphs are in `graphs.py learners`. Systems are of the
    paper's ensemble: edges with probability 1/2, weights sign * U(0.5, 2), noise N(1, 1) with known
    mean and unknown variance, rounds of uniformly random interventions.
    """
    parser = argparse.ArgumentParser(
        description=main_exact.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("topics", nargs="*", help=f"some of {', '.join(TOPICS)}")
    parser.add_argument("--systems", type=int, default=40)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")  # the posterior's remarks on single systems
    console = Console(width=110)
    for topic in arguments.topics or TOPICS:
        console.print(TOPICS[topic](arguments.systems))


ENSEMBLES: dict[str, dict[str, float]] = {"dense": {}, "sparse": {"expected_degree": 4.0}}


def rounds_sampled(
    n_nodes: int, n_rounds: int, seed: int, **ensemble: float
) -> tuple[LinearSEM, Array, Array]:
    sem = random_sem(n_nodes, seed=seed, **ensemble)  # type: ignore[arg-type]
    rng = np.random.default_rng(seed)
    A = rng.integers(0, 2, (n_rounds, n_nodes)).astype(np.uint8)
    return sem, sem.sample(A, rng), A


def moments_of(X: Array, A: Array) -> Moments:
    data = Dataset(X.shape[1])
    data.append(X, A)
    return Moments.of(data)


def clocked(call: Any) -> tuple[float, Any]:
    start = process_time()
    result = call()
    return process_time() - start, result


def errors_of(posterior: SampledPosterior, sem: LinearSEM) -> tuple[float, float]:
    """Recall and precision of the edges that are more likely than not."""
    found, true = posterior.edge_probability > 0.5, sem.adjacency
    hits = (found & true).sum()
    return hits / max(true.sum(), 1), hits / max(found.sum(), 1)


def complete(n_systems: int) -> Table:
    """All nodes are candidates: only the chains' own error is between the two."""
    made = table(
        "N = 5, all candidates, 4 chains of 5,000 sweeps: sampled - exact in standard errors",
        *("T", "edges that vary", "largest", "root mean square", "largest difference"),
    )
    for n_rounds in (5, 20, 80):
        ratios: list[float] = []
        largest = 0.0
        for seed in range(2 * n_systems):
            sem, X, A = rounds_sampled(5, n_rounds, seed)
            moments = moments_of(X, A)
            exact = ExactPosterior(5, moments, noise_mean=sem.noise_mean)
            sampled = SampledPosterior(
                5, moments, noise_mean=sem.noise_mean, n_sweeps=5000, n_orders=5000, seed=seed
            )
            difference = (sampled.edge_probability - exact.edge_probability).ravel()
            edges = sampled.edges_given_orders().reshape(4, 5000, -1)
            spread = edges.std(axis=(0, 1))
            varies = spread > NOTICEABLE
            error = spread[varies] / np.sqrt(effective_sizes(edges[:, :, varies]))
            ratios += list(difference[varies] / error)
            largest = max(largest, np.abs(difference).max())
        scaled = np.array(ratios)
        made.add_row(
            *(str(n_rounds), str(len(scaled)), f"{np.abs(scaled).max():.2f}"),
            *(f"{np.sqrt((scaled**2).mean()):.2f}", f"{largest:.4f}"),
        )
    return made


def agreement(n_systems: int) -> Table:
    made = table(
        f"N = 12, {n_systems} systems, defaults but for candidates: |sampled - exact| of all edges",
        *("T", "candidates", "worst", "mean of worst", "mean", "R-hat", "least ESS", "fit"),
    )
    for n_rounds in (10, 25, 50, 100, 200):
        for n_candidates in (6, 8, 11):
            found = []
            for seed in range(n_systems):
                sem, X, A = rounds_sampled(12, n_rounds, seed)
                moments = moments_of(X, A)
                exact = ExactPosterior(12, moments, noise_mean=sem.noise_mean)
                time, sampled = clocked(
                    lambda m=moments, s=sem, k=n_candidates: SampledPosterior(
                        12, m, noise_mean=s.noise_mean, n_candidates=k
                    )
                )
                difference = np.abs(sampled.edge_probability - exact.edge_probability)
                said = sampled.diagnostics
                errors = difference.max(), difference.mean()
                found.append((*errors, said.worst_r_hat, said.effective_size, time))
            worst, mean, r_hat, size, time = np.array(found).T
            made.add_row(
                *(str(n_rounds), str(n_candidates), f"{worst.max():.3f}", f"{worst.mean():.3f}"),
                *(f"{mean.mean():.5f}", f"{r_hat.max():.2f}", f"{size.min():.0f}"),
                readable(float(np.mean(time))),
            )
    return made


def observational(n_systems: int) -> Table:
    """Hardest for candidates: no interventions, unknown means, so that directions stay open."""
    made = table(
        f"N = 12, {2 * n_systems} systems without interventions: |sampled - exact| in regime 0",
        *("T", "candidates", "next to core", "worst", "mean of worst", "mean", "R-hat"),
    )
    for n_rounds in (50, 300):
        for n_candidates, n_outside_core in ((6, 6), (8, 8), (10, 10), (11, 11)):
            found = []
            for seed in range(2 * n_systems):
                sem = random_sem(12, seed=seed)
                A = np.zeros((n_rounds, 12), dtype=np.uint8)
                moments = moments_of(sem.sample(A, np.random.default_rng(seed)), A)
                sampled = SampledPosterior(
                    12, moments, n_candidates=n_candidates, n_outside_core=n_outside_core
                )
                exact = ExactPosterior(12, moments)
                difference = np.abs(sampled.edge_probability - exact.edge_probability)[0]
                errors = difference.max(), difference.mean()
                found.append((*errors, sampled.diagnostics.worst_r_hat))
            worst, mean, r_hat = np.array(found).T
            made.add_row(
                *(str(n_rounds), str(n_candidates), str(n_outside_core), f"{worst.max():.3f}"),
                *(f"{worst.mean():.3f}", f"{mean.mean():.4f}", f"{r_hat.max():.2f}"),
            )
    return made


def by_rounds(n_systems: int) -> Table:
    """Chains that only ever continue, as under a policy; times of `update` and of one draw."""
    made = table(
        "told round by round from nothing: next to the exact posterior (N = 12), time per round",
        *("N", "system", "sweeps", "T", "worst", "mean", "recall", "precision", "update", "draw"),
        "slowest",
    )
    cases = [(12, "dense", 5), (12, "dense", 20), (50, "dense", 20), (50, "sparse", 20)]
    for n, ensemble, sweeps in cases:
        sem, X, A = rounds_sampled(n, 200, 0, **ENSEMBLES[ensemble])
        moments = Moments(n)
        settings: dict[str, Any] = {"noise_mean": sem.noise_mean}
        if n == 12:
            settings["n_candidates"] = 6
        sampled = SampledPosterior(n, moments, update_sweeps=sweeps, **settings)
        rng = np.random.default_rng(0)
        updates, draws = [], []
        for t in range(200):
            moments.add(X[t], A[t])
            updates.append(clocked(lambda p=sampled, m=moments: p.update(m))[0])
            draws.append(clocked(lambda p=sampled, r=rng: p.draw(r))[0])
            if t + 1 not in (25, 50, 100, 200):
                continue
            aside = ["", ""]
            if n == 12:
                exact = ExactPosterior(n, moments, noise_mean=sem.noise_mean)
                difference = np.abs(sampled.edge_probability - exact.edge_probability)
                aside = [f"{difference.max():.3f}", f"{difference.mean():.4f}"]
            recall, precision = errors_of(sampled, sem)
            made.add_row(
                *(str(n), ensemble, str(sweeps), str(t + 1), *aside),
                *(f"{recall:.3f}", f"{precision:.3f}"),
                *(readable(float(np.median(x[-25:]))) for x in (updates, draws)),
                readable(max(u + d for u, d in zip(updates, draws, strict=True))),
            )
    return made


def sizes(n_systems: int) -> Table:
    made = table(
        f"defaults, mean of {n_systems} systems: edges more likely than not, time, memory",
        *("N", "system", "T", "recall", "precision", "R-hat", "least ESS", "fit", "edges"),
        *("update", "draw", "MB"),
    )
    for n in (30, 50):
        for ensemble, settings in ENSEMBLES.items():
            for n_rounds in (50, 100, 400):
                found, said = [], []
                for seed in range(n_systems):
                    sem, X, A = rounds_sampled(n, n_rounds + 5, seed, **settings)
                    moments = moments_of(X[:-5], A[:-5])
                    fit, posterior = clocked(
                        lambda n=n, m=moments, s=sem: SampledPosterior(
                            n, m, noise_mean=s.noise_mean
                        )
                    )
                    edges, _ = clocked(lambda p=posterior: p.edge_probability)
                    errors = errors_of(posterior, sem)
                    said.append(posterior.diagnostics)
                    updates, draws = [], []
                    rng = np.random.default_rng(0)
                    for row, regimes in zip(X[-5:], A[-5:], strict=True):
                        moments.add(row, regimes)
                        updates.append(clocked(lambda p=posterior, m=moments: p.update(m))[0])
                        draws.append(clocked(lambda p=posterior, r=rng: p.draw(r))[0])
                    found.append((*errors, fit, edges, np.median(updates), np.median(draws)))
                recall, precision, *times = np.mean(found, axis=0)
                made.add_row(
                    *(str(n), ensemble, str(n_rounds), f"{recall:.3f}", f"{precision:.3f}"),
                    f"{max(d.worst_r_hat for d in said):.2f}",
                    f"{min(d.effective_size for d in said):.0f}",
                    *map(readable, times),
                    f"{posterior.n_bytes / 1e6:.0f}",
                )
    return made


def calibration_sampled(n_systems: int) -> Table:
    """Among edges given probability p, the fraction that exists."""
    n, cells = 30, []
    made = table(
        f"calibration, N = {n}, {4 * n_systems} systems: edges, said, true",
        *("bin", "dense, T = 40", "dense, T = 80", "sparse, T = 40", "sparse, T = 80"),
    )
    bins = np.array([0, 0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98, 1])
    for settings in ENSEMBLES.values():
        for n_rounds in (40, 80):
            said, true = [], []
            for seed in range(4 * n_systems):
                sem, X, A = rounds_sampled(n, n_rounds, seed, **settings)
                posterior = SampledPosterior(
                    n, moments_of(X, A), noise_mean=sem.noise_mean, n_sweeps=100, n_orders=50
                )
                other = ~np.eye(n, dtype=bool)
                said.append(posterior.edge_probability[:, other].ravel())
                true.append(sem.adjacency[:, other].ravel())
            p, t = np.concatenate(said), np.concatenate(true)
            number = np.clip(np.searchsorted(bins, p, side="right") - 1, 0, len(bins) - 2)
            cells.append(
                [
                    f"{(number == k).sum():6d}  {p[number == k].mean():.3f}  "
                    f"{t[number == k].mean():.3f}"
                    if (number == k).any()
                    else "-"
                    for k in range(len(bins) - 1)
                ]
            )
    for k in range(len(bins) - 1):
        made.add_row(f"{bins[k]:g} - {bins[k + 1]:g}", *(c[k] for c in cells))
    return made


def digits(n_systems: int) -> Table:
    """Moments hold 16 digits of values squared: what is left of the noise beneath large values."""
    made = table(
        "dense systems, T = 400: sums of squares left by the true parents, from moments and by QR",
        *("N", "largest standard deviation", "worst relative error", "mechanisms off by > 1 %"),
        *("recall", "precision", "noise drawn, times the true one"),
    )
    for n in (30, 50, 60, 80):
        sem, X, A = rounds_sampled(n, 400, 2)
        moments = moments_of(X, A)
        posterior = SampledPosterior(n, moments, noise_mean=sem.noise_mean, n_sweeps=50)
        errors = [
            squares_error(X, A, moments, sem, regime, node)
            for regime, node in np.ndindex(2, n)
            if sem.adjacency[regime, :, node].any()
        ]
        recall, precision = errors_of(posterior, sem)
        noise = posterior.draw(np.random.default_rng(0), 20).noise_std
        made.add_row(
            *(str(n), f"{X.std(axis=0).max():.2g}", f"{max(errors):.1e}"),
            f"{np.mean(np.array(errors) > 0.01):.1%}",
            *(f"{recall:.3f}", f"{precision:.3f}", f"{noise.min():.2f} to {noise.max():.2f}"),
        )
    return made


def squares_error(
    X: Array, A: Array, moments: Moments, sem: LinearSEM, regime: int, node: int
) -> float:
    parents = np.flatnonzero(sem.adjacency[regime, :, node])
    rows, mean = A[:, node] == regime, float(np.ravel(sem.noise_mean)[0])
    Z = np.vstack([X[rows][:, parents], np.eye(len(parents)) / 1.5])
    y = np.concatenate([X[rows, node] - mean, np.zeros(len(parents))])
    Q, _ = np.linalg.qr(Z / np.linalg.norm(Z, axis=0))
    residual = y - Q @ (Q.T @ y)
    residual -= Q @ (Q.T @ residual)  # once more, for the digits that the first pass lost
    true = float((residual**2).sum())
    gram = moments.gram[regime, node]
    matrix = gram[np.ix_(parents, parents)] + np.eye(len(parents)) / 1.5**2
    side = gram[parents, node] - mean * gram[parents, -1]
    z = np.linalg.solve(np.linalg.cholesky(matrix), side)
    total = gram[node, node] - 2 * mean * gram[node, -1] + mean**2 * gram[-1, -1]
    return float(abs(total - z @ z - true) / true)


TOPICS_SAMPLED: dict[str, Callable[[int], Table]] = {
    "complete": complete,
    "agreement": agreement,
    "observational": observational,
    "rounds": by_rounds,
    "sizes": sizes,
    "calibration": calibration_sampled,
    "digits": digits,
}


def main_sampled() -> None:
    """The sampled posterior over graphs: next to the exact one, and past its size.

    `OMP_NUM_THREADS=1 python benchmarks/posterior.py sampled [complete|agreement|
    observational|rounds|sizes|calibration|digits ...] [--systems 3]`, all topics without a name, in
    about three minutes. Systems, rounds and prior as in `exact`; sparse ones have 4
    neighbours per node in the mean.
    """
    parser = argparse.ArgumentParser(
        description=main_sampled.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("topics", nargs="*", help=f"some of {', '.join(TOPICS_SAMPLED)}")
    parser.add_argument("--systems", type=int, default=3)
    arguments = parser.parse_args()
    warm = SampledPosterior(4, n_sweeps=2)
    _ = warm.edge_probability, warm.draw(np.random.default_rng(0))
    console = Console(width=130)
    for topic in arguments.topics or TOPICS_SAMPLED:
        console.print(TOPICS_SAMPLED[topic](arguments.systems))


def main() -> None:
    run_part(__doc__, {"exact": main_exact, "sampled": main_sampled})


if __name__ == "__main__":
    main()
