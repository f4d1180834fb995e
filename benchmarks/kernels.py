"""Times of fast kernels and their ratios to plain references, and of the search for the best arm.

`python benchmarks/kernels.py tables|best-arm [options]`; each has --help.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable
from time import process_time
from typing import Any

import networkx as nx
import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table
from sklearn.feature_selection._mutual_info import _compute_mi_cc

from causalarms import CSL, LinearSEM, make_policy, random_sem
from causalarms.policies.base import Policy
from causalarms.rng import stream
from causalarms.sem import Constraints
from causalarms.sem.rewards import intervention_of
from causalarms.simulation.simulate import simulate
from causalarms.statistics.mutual_information import mutual_information, mutual_information_plain
from shared import growth_exponent, median_time, readable, run_part

SIZES = (100, 400, 1600, 6400)


def pairs(n: int, how_many: int) -> list[tuple[Any, ...]]:
    rng = np.random.default_rng(n)
    found: list[tuple[Any, ...]] = []
    for _ in range(how_many):
        x = rng.normal(size=n)
        found.append((x, 0.5 * x + rng.normal(size=n)))
    return found


def scikit_learn(x: Any, y: Any) -> Any:
    return _compute_mi_cc(x, y, 5)


def mutual_information_table(quick: bool) -> Table:
    sizes = SIZES[:-1] if quick else SIZES
    table = Table(title="mutual information, k = 5, fresh samples in every call")
    for heading in ("n", "time", "plain", "ratio (aim 100 at 400)"):
        table.add_column(heading, justify="right")
    for heading in ("scikit-learn", "ratio (aim 20 at 400)"):
        table.add_column(heading, justify="right")
    times = {}
    for n in sizes:
        few = 6 if n > 2000 else 15
        fast = median_time(mutual_information, pairs(n, 60 if quick else 200))
        plain = median_time(mutual_information_plain, pairs(n, few if n <= 2000 else 4))
        theirs = median_time(scikit_learn, pairs(n, few))
        times[n] = fast
        table.add_row(
            str(n),
            readable(fast),
            readable(plain),
            f"{plain / fast:.0f}",
            readable(theirs),
            f"{theirs / fast:.0f}",
        )
    ends = (400, sizes[-1])
    exponent = growth_exponent(ends, [times[n] for n in ends])
    table.caption = f"growth exponent from 400 to {ends[1]}: {exponent:.2f} (aim at most 1.25)"
    return table


DEGREE = 4.5  # of the paper's ensemble at N = 10; denser large systems have values without bound
PER_NODE = 22  # rounds per node, 220 at N = 10: every mechanism has more samples than candidates


def rounds(n_nodes: int, n_rounds: int, how_many: int) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    for seed in range(how_many):
        sem = random_sem(n_nodes, seed=seed, expected_degree=DEGREE)
        rng = np.random.default_rng(seed)
        A = rng.integers(0, 2, (n_rounds, n_nodes))
        found.append((sem.sample(A, rng), A, sem.noise_mean))
    return found


def fit(X: Any, A: Any, noise_mean: Any) -> None:
    CSL(joint=True).fit(X, interventions=A, noise_mean=noise_mean)


def csl_in_nodes(quick: bool) -> Table:
    sizes = (10, 20, 30) if quick else (10, 20, 30, 50)
    fixed = PER_NODE * sizes[-1]
    table = Table(
        title="joint CSL fit by number of nodes (aim: 30 ms at N = 10 with 220 rounds)",
        min_width=80,
    )
    for heading in ("N", "rounds", "time", f"time with {fixed} rounds"):
        table.add_column(heading, justify="right")
    times, fixed_times = [], []
    for n in sizes:
        how_many = 2 if n >= 50 else 4 if n >= 30 else 11
        times.append(median_time(fit, rounds(n, PER_NODE * n, how_many)))
        same = n == sizes[-1]
        fixed_times.append(times[-1] if same else median_time(fit, rounds(n, fixed, how_many)))
        row = (n, PER_NODE * n, readable(times[-1]), readable(fixed_times[-1]))
        table.add_row(*map(str, row))
    table.caption = (
        f"growth exponent in N: {growth_exponent(sizes, fixed_times):.2f} at {fixed} rounds, "
        f"{growth_exponent(sizes, times):.2f} with the rounds growing along"
    )
    return table


def csl_in_rounds(quick: bool) -> Table:
    sizes = (220, 440, 880) if quick else (220, 440, 880, 1760, 3520)
    table = Table(title="joint CSL fit by number of rounds, N = 10", min_width=80)
    table.add_column("rounds", justify="right")
    table.add_column("time", justify="right")
    times = []
    for n in sizes:
        times.append(median_time(fit, rounds(10, n, 11)))
        table.add_row(str(n), readable(times[-1]))
    table.caption = f"growth exponent in t: {growth_exponent(sizes, times):.2f}"
    return table


def one_inverse_each(sem: LinearSEM, interventions: Any) -> list[float]:
    unit = np.eye(sem.n_nodes)
    return [
        float((np.linalg.inv(unit - sem.post_intervention_weights(a)).T @ sem.noise_mean)[-1])
        for a in interventions
    ]


def rewards_table(quick: bool) -> Table:
    table = Table(
        title="expected rewards of all interventions (aim: 100 ms at N = 20)", min_width=80
    )
    for heading in ("N", "interventions", "time", "one inverse each", "ratio"):
        table.add_column(heading, justify="right")
    for n in (10, 16) if quick else (10, 20):
        systems = [random_sem(n, seed=seed, expected_degree=4.5) for seed in range(8)]
        fast = median_time(LinearSEM.all_expected_rewards, [(sem,) for sem in systems])
        some = min(2**n, 2000)  # the rest by proportion
        rows = intervention_of(np.linspace(0, 2**n - 1, some).astype(int), n)
        each = median_time(one_inverse_each, [(sem, rows) for sem in systems[:4]]) * 2**n / some
        table.add_row(str(n), str(2**n), readable(fast), readable(each), f"{each / fast:.0f}")
    table.caption = "above 2000 interventions, the inverses are timed on 2000 and extrapolated"
    return table


N_NODES, HORIZON = 10, 1500
AUTHORS = {"refresh": 50, "refresh_weights": 20}  # their program (docs/paper-map.md)
TEXT = {"refresh": 20}
MAX_SAMPLES = 100

FloatArray = npt.NDArray[np.float64]


def build(name: str, sem: LinearSEM, horizon: int, **settings: Any) -> Policy:
    if name == "linsem-ts":
        settings |= {"graph": sem.adjacency}
    return make_policy(
        name,
        n_nodes=sem.n_nodes,
        reward=sem.reward,
        noise_mean=sem.noise_mean,
        horizon=horizon,
        **settings,
    )


def one_run(name: str, settings: dict[str, Any], seed: int) -> None:
    sem = random_sem(N_NODES, seed=seed)
    simulate(build(name, sem, HORIZON, **settings), sem, horizon=HORIZON, seed=seed)


def plain_csl(X: FloatArray, A: Any, noise_mean: FloatArray, max_samples: int) -> FloatArray:
    """Algorithm 1 on each regime with numpy's lstsq and the plain MI; weights (2, N, N).

    As in the paper, only the column that lost an edge is fitted and scored again.
    """
    n = X.shape[1]
    weights = np.zeros((2, n, n))
    for regime in (0, 1):
        samples = [X[A[:, node] == regime][:max_samples] for node in range(n)]
        graph = nx.complete_graph(n, nx.DiGraph)
        scores: dict[tuple[int, int], float] = {}
        changed = set(range(n))
        while True:
            for node in changed:
                parents = sorted(graph.predecessors(node))
                rows = samples[node]
                response = rows[:, node] - noise_mean[node]
                b, *_ = np.linalg.lstsq(rows[:, parents], response, rcond=None)
                residual = response - rows[:, parents] @ b
                weights[regime, :, node] = 0
                weights[regime, parents, node] = b
                for parent, weight in zip(parents, b, strict=True):
                    information = mutual_information_plain(residual, rows[:, parent], k=5)
                    scores[parent, node] = information - np.log(abs(weight))
            if nx.is_directed_acyclic_graph(graph):
                break
            worst = max(scores, key=lambda edge: scores[edge])
            del scores[worst]
            graph.remove_edge(*worst)
            changed = {worst[1]}
    return weights


def plain_refresh() -> float:
    """Seconds of one refresh by the plain program, all mechanisms with 100 samples."""
    sem = random_sem(N_NODES, seed=0)
    rng = stream(0, "rounds")
    A = rng.integers(0, 2, (400, N_NODES))
    X = sem.sample(A, rng)
    mutual_information_plain(X[:50, 0], X[:50, 1], k=5)
    start = process_time()
    plain_csl(X, A, sem.noise_mean, MAX_SAMPLES)
    return process_time() - start


def policy_runs(quick: bool) -> Table:
    """Whole runs. The times of the authors' program are stated, not measured here."""
    table = Table(title=f"one run, N = {N_NODES}, T = {HORIZON}", min_width=80)
    for heading in ("policy", "settings", "time", "aim", "plain", "ratio", "authors"):
        table.add_column(heading, justify="right")
    n_runs = 4 if quick else 12
    refresh = plain_refresh()
    rows: list[tuple[str, str, dict[str, Any], str, str]] = [
        ("csl-ucb", "authors' program", AUTHORS, "0.6 s", "117 s"),
        ("csl-ucb", "paper's text", TEXT, "", ""),
        ("csl-ucb-joint", "", {}, "", ""),
        ("linsem-ts", "", {}, "0.4 s", "53 s"),
        ("ucb", "", {}, "", ""),
    ]
    for name, label, settings, aim, authors in rows:
        time = median_time(one_run, [(name, settings, seed) for seed in range(n_runs)])
        plain, ratio = "", ""
        if name == "csl-ucb":
            n_refreshes = (HORIZON - 60) // settings["refresh"]
            plain = readable(refresh * n_refreshes)
            ratio = f"{refresh * n_refreshes / time:.0f}"
        table.add_row(name, label, readable(time), aim, plain, ratio, authors)
    table.caption = (
        f"plain: the graphs only (lstsq, plain mutual information), {readable(refresh)} a refresh, "
        "timed once and scaled; authors: the time of their program stated for comparison"
    )
    return table


def round_times(name: str, settings: dict[str, Any], marks: list[int], block: int) -> list[float]:
    """Seconds per ask and tell in the `block` rounds up to each mark."""
    sem = random_sem(N_NODES, seed=1)
    policy, noise = build(name, sem, marks[-1], **settings), stream(1, "noise")
    times = np.empty(marks[-1])
    for t in range(marks[-1]):
        rng = stream(1, "policy", t)
        start = process_time()
        a = policy.ask(rng)
        spent = process_time() - start
        x = sem.sample(a[None], noise)[0]
        start = process_time()
        policy.tell(a, x)
        times[t] = spent + process_time() - start
    return [float(times[mark - block : mark].mean()) for mark in marks]


def policy_rounds(quick: bool) -> Table:
    """Cost per round as t grows."""
    marks = [100, 300, 1000, 3000] if quick else [100, 300, 1000, 3000, 10_000]
    policies: dict[str, tuple[str, dict[str, Any], int]] = {
        "csl-ucb": ("csl-ucb", {}, marks[-1]),
        "csl-ucb, all samples": ("csl-ucb", {"max_samples": None}, 3000),  # linear: minutes beyond
        "linsem-ts": ("linsem-ts", {}, marks[-1]),
        "ucb": ("ucb", {}, marks[-1]),
    }
    table = Table(title=f"one round (ask and tell) after t rounds, N = {N_NODES}", min_width=80)
    for heading in ("t", *policies):
        table.add_column(heading, justify="right")
    times: dict[str, list[float]] = {}
    for label, (name, settings, last) in policies.items():
        round_times(name, settings, [300], 20)  # compile
        times[label] = round_times(name, settings, [t for t in marks if t <= last], 80)
    for number, mark in enumerate(marks):
        cells = (readable(t[number]) if number < len(t) else "-" for t in times.values())
        table.add_row(str(mark), *cells)
    exponents = (
        f"{label} {growth_exponent(marks[1 : len(t)], t[1:]):.2f}" for label, t in times.items()
    )
    table.caption = "mean of 80 rounds; growth exponents from t = 300: " + ", ".join(exponents)
    return table


def main_tables() -> None:
    """Kernels next to plain references, one table per topic."""
    parser = argparse.ArgumentParser(description=main_tables.__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes and few repetitions")
    quick = parser.parse_args().quick
    if os.environ.get("OMP_NUM_THREADS") != "1":
        # The kernels use one thread, and the references shall not win by using more. NumPy reads
        # this when it is imported, which has happened already.
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        one = os.environ | dict.fromkeys(names, "1")
        os.execve(sys.executable, [sys.executable, __file__, "tables", *sys.argv[1:]], one)
    console = Console(width=100)
    for topic in (
        mutual_information_table,
        csl_in_nodes,
        csl_in_rounds,
        rewards_table,
        policy_runs,
        policy_rounds,
    ):
        console.print(topic(quick))


SIZES_BEST_ARM = (10, 20, 60, 100)
DENSITIES = {"dense (p = 1/2)": None, "sparse (degree 3)": 3.0}
ASCENTS = (20, 200)
HEADINGS = (
    "N", "edges", "weights", "constraint", "median", "largest", "proven", "gap", "20", "200",
)  # fmt: skip


def best_arm_table(sizes: Iterable[int], systems: int) -> Table:
    """One row per kind of system; processor time of one thread.

    The columns 20 and 200 say by how much the best of so many plain coordinate ascents lies below
    the answer, and the gap by how much another intervention may be better: medians, in units of
    best minus average reward.
    """
    table = Table(title=f"best intervention, {systems} systems per row", min_width=100)
    for heading in HEADINGS:
        table.add_column(heading, justify="right")
    random_sem(5, seed=0).best_arm()  # compiled
    for n in sizes:
        for name, degree in DENSITIES.items():
            worlds = [random_sem(n, seed=seed, expected_degree=degree) for seed in range(systems)]
            table.add_row(str(n), name, "large", "", *measured(worlds, None))
            table.add_row("", "", "", f"at most {n // 4}", *measured(worlds, n // 4))
            small = [shrunk(sem) for sem in worlds]
            table.add_row("", "", "small", "", *measured(small, None))
    return table


def shrunk(sem: LinearSEM) -> LinearSEM:
    """The same system with rewards that stay bounded."""
    n_parents = np.maximum(1, (sem.weights != 0).sum(axis=1, keepdims=True))
    return sem.replace(weights=sem.weights / np.sqrt(n_parents))


def measured(worlds: list[LinearSEM], at_most: int | None) -> list[str]:
    times, gaps, proven = [], [], 0
    below: dict[int, list[float]] = {starts: [] for starts in ASCENTS}
    for sem in worlds:
        start = process_time()
        rules = None if at_most is None else Constraints(max_interventions=at_most)
        best = sem.best_arm(rules)
        times.append(process_time() - start)
        proven += best.exact
        scale = max(best.value - sem.average_reward(), 1e-300)
        gaps.append(best.gap / scale)
        if at_most is None:
            found = plain_ascents(sem, max(ASCENTS), np.random.default_rng(0))
            for starts in ASCENTS:
                below[starts].append((best.value - found[:starts].max()) / scale)
    return [
        readable(float(np.median(times))),
        readable(max(times)),
        f"{proven} of {len(worlds)}",
        f"{np.median(gaps):.2g}",
        *(f"{np.median(b):.1%} ({min(b):.1%})" if b else "" for b in below.values()),
    ]


def plain_ascents(sem: LinearSEM, starts: int, rng: np.random.Generator) -> np.ndarray:
    """Values of coordinate ascents from random interventions, all of them side by side."""
    weights, mean = sem.weights, sem.mechanism_mean
    a = rng.integers(0, 2, (starts, sem.n_nodes)).astype(np.uint8)
    x = sem.mean(a)
    while True:
        value = x[:, sem.reward]
        flow = np.zeros(x.shape)
        flow[:, sem.reward] = 1.0
        for k in sem.order[::-1]:
            gain = mean[1, k] - mean[0, k] + x @ (weights[1, :, k] - weights[0, :, k])
            gain *= flow[:, k]
            a[:, k] = np.where(gain == 0, a[:, k], gain > 0)
            flow += flow[:, k, None] * weights[a[:, k], :, k]
        x = sem.mean(a)
        if not (x[:, sem.reward] > value + 1e-12 * np.abs(value)).any():
            return np.maximum(value, x[:, sem.reward])


def main_best_arm() -> None:
    """The best intervention by branch and bound: time, certificate, and what plain ascents find.

    `python benchmarks/kernels.py best-arm [--systems 20]`; weights are sign * U(0.5, 2), noise
    means 1. In the systems called small, the weights into a node are divided by the root of their
    number: rewards stay bounded, nothing is proven for dense systems of 60 nodes and more, and the
    climbs must be good.
    """
    parser = argparse.ArgumentParser(
        description=main_best_arm.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--systems", type=int, default=20)
    Console(width=130).print(best_arm_table(SIZES_BEST_ARM, parser.parse_args().systems))


def main() -> None:
    run_part(__doc__, {"tables": main_tables, "best-arm": main_best_arm})


if __name__ == "__main__":
    main()
