"""What several scripts use: their parts by name, settings, progress, tables and intervals."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from time import process_time
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.table import Table

from causalarms import LinearSEM
from causalarms.errors import CausalArmsError
from causalarms.simulation.results import Record

FloatArray = npt.NDArray[np.float64]


def median_time(function: Callable[..., Any], inputs: Sequence[tuple[Any, ...]]) -> float:
    """Processor seconds per call over different inputs; the first one warms up, uncounted.

    Of one thread, so that other programs on the machine disturb little.
    A call repeated on the same data is up to several times faster: the branch predictor has
    learned them by heart.
    """
    times = []
    for arguments in inputs:
        start = process_time()
        function(*arguments)
        times.append(process_time() - start)
    return median(times[1:])


def growth_exponent(sizes: Sequence[int], times: Sequence[float]) -> float:
    """Slope of log time over log size by least squares."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def readable(seconds: float) -> str:
    for factor, unit in ((1e-3, "µs"), (1.0, "ms")):
        if seconds < factor:
            return f"{seconds * 1e3 / factor:.3g} {unit}"
    return f"{seconds:.3g} s"


def table(title: str, *headings: str) -> Table:
    """Without rows."""
    made = Table(title=title)
    for heading in headings:
        made.add_column(heading, justify="right")
    return made


def mean_and_error(values: Any, digits: int = 1) -> str:
    """Its standard error after ±."""
    mean = f"{np.mean(values):.{digits}f}"
    if len(values) < 2:
        return mean
    return f"{mean} ± {np.std(values, ddof=1) / np.sqrt(len(values)):.{digits}f}"


def proportion_error(hits: Any) -> float:
    """Standard error of a fraction; not 0 where all agree (Laplace's rule)."""
    n = len(hits)
    fraction = (np.sum(hits) + 1) / (n + 2)
    return float(np.sqrt(fraction * (1 - fraction) / n))


def ratio_interval(mine: FloatArray, reference: FloatArray) -> tuple[float, float]:
    """95 % of the ratio of means over resampled systems, the same systems for both."""
    rng = np.random.default_rng(0)
    rows = rng.integers(len(mine), size=(10_000, len(mine)))
    ratios = mine[rows].mean(axis=1) / reference[rows].mean(axis=1)
    low, high = np.quantile(ratios, [0.025, 0.975])
    return float(low), float(high)


def rescaled(
    sem: LinearSEM, offset: FloatArray, scale: FloatArray, nodes: tuple[str, ...]
) -> LinearSEM:
    """The same system in other units, and with other names: offset + scale * value."""
    weights = sem.weights * scale / scale[:, None]
    mean = sem.mechanism_mean * scale + offset - np.einsum("rpc,p->rc", weights, offset)
    return LinearSEM(
        weights=weights,
        noise_mean=mean,
        noise_std=sem.mechanism_std * scale,
        nodes=nodes,
        reward=sem.reward,
        order=sem.order,
        regimes=sem.regimes,
    )


def switches_of(sem: LinearSEM) -> dict[str, Any]:
    """For `Study.create`: a switch for every node, the reward too, as in the system."""
    return {"nodes": sem.nodes, "reward": sem.nodes[sem.reward], "intervenable": sem.nodes}


def study_settings(policy: str | None, changes: bool, horizon: int | None) -> dict[str, Any]:
    """For `Study.create`: nothing but what was asked for."""
    settings: dict[str, Any] = {} if horizon is None else {"horizon": horizon}
    name, *pairs = policy.split(",") if policy else [""]
    if changes:
        settings["changes"] = True
    if name:
        settings["policy"] = name
    if pairs:
        settings["policy_settings"] = dict(map(setting, pairs))
    return settings


def setting(pair: str) -> tuple[str, Any]:
    name, equals, value = pair.partition("=")
    if not equals:
        raise CausalArmsError(f"--policy: {pair!r} is not setting=value")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def show_progress(done: int, total: int, record: Record | None) -> None:
    if sys.stderr.isatty():
        end = "\n" if done == total else ""
        print(f"\r{done} of {total} runs", end=end, file=sys.stderr, flush=True)


def run_part(words: str | None, parts: Mapping[str, Callable[[], None]]) -> None:
    """The part that the command line names first; the rest of the line is the part's own."""
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name in parts:
        sys.argv = [f"{sys.argv[0]} {name}", *sys.argv[2:]]
        parts[name]()
        return
    print(words)
    for each, part in parts.items():
        first = (part.__doc__ or "").strip().partition("\n")[0]
        print(f"  {each:15s} {first}")
    if name not in ("-h", "--help"):
        sys.exit(2)
