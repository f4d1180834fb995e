"""How often a value is called far: of honest ones, and of typing errors.

python benchmarks/far_values.py
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from causalarms import LinearSEM, random_sem
from causalarms.policies.registry import make_policy
from causalarms.rng import stream
from causalarms.study import suspects
from causalarms.study.suspects import WINDOW, far_from

ROUNDS = 400
FloatArray = npt.NDArray[np.float64]


def doubled(text: str) -> str:
    """The first digit twice."""
    place = next(i for i, sign in enumerate(text) if sign.isdigit())
    return text[: place + 1] + text[place:]


ERRORS: dict[str, Callable[[float], float]] = {
    "x 10": lambda value: value * 10,
    "x 100": lambda value: value * 100,
    "/ 10": lambda value: value / 10,
    "/ 100": lambda value: value / 100,
    "digit doubled": lambda value: float(doubled(f"{value:.3f}")),
    "sign lost": lambda value: -value,
}


def values_of(kind: str, n_nodes: int, seed: int) -> FloatArray:
    """(ROUNDS, N) of one system."""
    sem = random_sem(n_nodes, seed=seed)
    if kind == "csl-ucb plays":
        return played(sem, seed)
    rng = stream(seed, "far values")
    arms = rng.integers(0, 2, (ROUNDS, n_nodes), dtype=np.uint8)
    noise = rng.standard_normal((ROUNDS, n_nodes))
    if kind == "Student t, 3 degrees":
        noise = rng.standard_t(3, (ROUNDS, n_nodes))
    mean = np.broadcast_to(sem.noise_mean, (ROUNDS, n_nodes)).copy()
    if kind == "mean changes":
        mean[ROUNDS // 2 :] += 10.0
    values = np.zeros((ROUNDS, n_nodes))
    for t in range(ROUNDS):
        chosen = np.where(arms[t] == 1, sem.weights[1], sem.weights[0])
        values[t] = (mean[t] + noise[t]) @ np.linalg.inv(np.eye(n_nodes) - chosen)
    return values


def played(sem: LinearSEM, seed: int) -> FloatArray:
    policy = make_policy(
        "csl-ucb", n_nodes=sem.n_nodes, reward=sem.reward, horizon=ROUNDS, noise_mean=sem.noise_mean
    )
    rows = []
    for t in range(ROUNDS):
        a = policy.ask(stream(seed, "policy", t))
        rows.append(sem.sample(a[None], stream(seed, "noise", t))[0])
        policy.tell(a, rows[-1])
    return np.array(rows)


def earlier(values: FloatArray) -> FloatArray:
    """What a study looks at when a value is told."""
    last = max(len(values) - WINDOW, 0)
    return np.concatenate([values[: min(WINDOW, last)], values[last:]])


def warned(values: FloatArray) -> int:
    """Honest values called far."""
    return sum(
        far_from(values[t, i], earlier(values[:t, i])) is not None
        for i in range(values.shape[1])
        for t in range(suspects.MIN_OTHERS, len(values))
    )


def found(values: FloatArray, error: Callable[[float], float]) -> tuple[int, int]:
    """Typing errors called far, and how many were made: one in ten of the values."""
    hits = tries = 0
    for i in range(values.shape[1]):
        for t in range(20 + i % 10, len(values), 10):
            wrong = error(float(values[t, i]))
            tries += 1
            hits += far_from(wrong, earlier(values[:t, i])) is not None
    return hits, tries


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--systems", type=int, default=10)
    parser.add_argument("--factor", type=float, default=suspects.FAR_SPREADS)
    options = parser.parse_args()
    suspects.FAR_SPREADS = options.factor
    print(f"factor {suspects.FAR_SPREADS:g}: warnings per 1000 values, % of errors found", *ERRORS)
    for kind in ("Gaussian", "Student t, 3 degrees", "mean changes", "csl-ucb plays"):
        for n_nodes in (5, 10):
            systems = [values_of(kind, n_nodes, seed) for seed in range(options.systems)]
            false = 1000 * sum(map(warned, systems)) / sum(s.size for s in systems)
            shares = []
            for error in ERRORS.values():
                pairs = [found(s, error) for s in systems]
                shares.append(100 * sum(h for h, _ in pairs) / sum(n for _, n in pairs))
            print(
                f"{kind:22s} N={n_nodes:2d} {false:6.2f}  ",
                "  ".join(f"{share:5.1f}" for share in shares),
                flush=True,
            )


if __name__ == "__main__":
    main()
