"""False alarms of the mechanism detector under no change: `python benchmarks/glr_false_alarms.py`.

The whitened values are N(0, 1) and the detector knows it (exact parameters). The paper's threshold
-ln(zeta) is meant to give max over s of Psi(s) a false-alarm probability of zeta. It is derived
for one split point and one test; the maximum over the split points and the repetition over rounds
are not in it. A smaller zeta than intended is needed; see docs/baselines.md.
"""

from __future__ import annotations

import argparse

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

from causalarms.changes.glr import gaussian_gain
from causalarms.kernels import kernel
from causalarms.rng import stream

ZETAS = (0.1, 0.05, 0.01, 0.001)
MIN_WINDOWS = np.array([2, 5, 10])
TIMES = np.array([50, 200, 500])

FloatArray = npt.NDArray[np.float64]


@kernel
def single_tests(
    y: FloatArray,  # (n, t), the newest sample last
    min_windows: npt.NDArray[np.int64],
    times: npt.NDArray[np.int64],
) -> tuple[FloatArray, FloatArray]:
    """max over s in [1, t) of Psi(s) at each time, (n, time, min window), and Psi(1), (n, time)."""
    n, length = y.shape
    largest = np.full((n, len(times), len(min_windows)), -np.inf)
    first_split = np.empty((n, len(times)))
    for run in range(n):
        total = square = 0.0
        for window in range(1, length):
            value = y[run, length - window]
            total += value
            square += value * value
            psi = gaussian_gain(window, total, square, 1.0)
            for k in range(len(times)):
                if window < times[k]:
                    for j in range(len(min_windows)):
                        if window >= min_windows[j]:
                            largest[run, k, j] = max(largest[run, k, j], psi)
                if window == times[k] - 1:
                    first_split[run, k] = psi
    return largest, first_split


@kernel
def largest_so_far(
    y: FloatArray, min_windows: npt.NDArray[np.int64], max_window: int
) -> FloatArray:
    """The largest statistic of all rounds up to each, (n, t, min window)."""
    n, length = y.shape
    largest = np.full((n, length, len(min_windows)), -np.inf)
    for run in range(n):
        for t in range(length):
            if t:
                largest[run, t] = largest[run, t - 1]
            total = square = 0.0
            for window in range(1, min(t, max_window) + 1):  # s >= 1
                value = y[run, t - window + 1]
                total += value
                square += value * value
                psi = gaussian_gain(window, total, square, 1.0)
                for j in range(len(min_windows)):
                    if window >= min_windows[j]:
                        largest[run, t, j] = max(largest[run, t, j], psi)
    return largest


def percent(hits: npt.NDArray[np.bool_]) -> str:
    share = hits.mean()
    return f"{100 * share:.2f} ± {100 * np.sqrt(share * (1 - share) / len(hits)):.2f}"


def single_test_table(n: int) -> Table:
    """One test at time t."""
    table = Table(title="one test at time t: false alarms in %, against the nominal zeta")
    for heading in ("zeta %", "min window", *(f"t = {t}" for t in TIMES)):
        table.add_column(heading, justify="right")
    parts = [
        single_tests(stream(0, "single", part).normal(size=(2000, TIMES[-1])), MIN_WINDOWS, TIMES)
        for part in range(n // 2000)
    ]
    largest = np.concatenate([part[0] for part in parts])
    first_split = np.concatenate([part[1] for part in parts])
    for zeta in ZETAS:
        limit = -np.log(zeta)
        one = [percent(first_split[:, k] >= limit) for k in range(len(TIMES))]
        table.add_row(f"{100 * zeta:g}", "s = 1 only", *one)
        for j, least in enumerate(MIN_WINDOWS):
            cells = [percent(largest[:, k, j] >= limit) for k in range(len(TIMES))]
            table.add_row("", str(least), *cells, end_section=j == len(MIN_WINDOWS) - 1)
    table.caption = f"{len(largest)} runs; ± one standard error"
    return table


def some_alarm_table(n: int) -> Table:
    """Any alarm in a run."""
    table = Table(title="some alarm within 500 rounds: probability in %")
    headings = ("zeta %", "min window", "one mechanism, all splits", "one mechanism, windows <= 60")
    for heading in (*headings, "20 mechanisms, windows <= 60"):
        table.add_column(heading, justify="right")
    y = stream(0, "sequence").normal(size=(n, 500))
    all_splits = largest_so_far(y, MIN_WINDOWS, 500)[:, -1]
    bounded = largest_so_far(y, MIN_WINDOWS, 60)
    for zeta in ZETAS:
        limit = -np.log(zeta)
        for j, least in enumerate(MIN_WINDOWS):
            # N = 10 under random interventions: 20 mechanisms with 250 samples each
            quiet = 1 - np.mean(bounded[:, 249, j] >= limit)
            error = 20 * quiet**19 * np.sqrt(quiet * (1 - quiet) / n)
            table.add_row(
                "" if j else f"{100 * zeta:g}",
                str(least),
                percent(all_splits[:, j] >= limit),
                percent(bounded[:, -1, j] >= limit),
                f"{100 * (1 - quiet**20):.2f} ± {100 * error:.2f}",
                end_section=j == len(MIN_WINDOWS) - 1,
            )
    table.caption = f"{n} runs; ± one standard error"
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few runs")
    quick = parser.parse_args().quick
    console = Console(width=118)
    console.print(single_test_table(10_000 if quick else 100_000))
    console.print(some_alarm_table(500 if quick else 4000))


if __name__ == "__main__":
    main()
