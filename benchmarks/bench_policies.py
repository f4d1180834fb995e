"""Whole runs of policies against a plain reference, and the time of a round as runs grow."""

from __future__ import annotations

from time import process_time
from typing import Any

import networkx as nx
import numpy as np
import numpy.typing as npt
from rich.table import Table

from causalarms import LinearSEM, make_policy, random_sem
from causalarms.policies.base import Policy
from causalarms.rng import stream
from causalarms.simulation.simulate import simulate
from causalarms.statistics.mutual_information import mutual_information_plain
from timing import growth_exponent, median_time, readable

N_NODES, HORIZON = 10, 1500
AUTHORS = {"joint": False, "refresh": 50, "refresh_weights": 20}  # their program (paper-facts)
TEXT = {"joint": False, "refresh": 20}
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
        ("csl-ucb", "joint", {}, "", ""),
        ("linsem-ts", "", {}, "0.4 s", "53 s"),
        ("ucb", "", {}, "", ""),
    ]
    for name, label, settings, aim, authors in rows:
        time = median_time(one_run, [(name, settings, seed) for seed in range(n_runs)])
        plain, ratio = "", ""
        if name == "csl-ucb" and label != "joint":
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
