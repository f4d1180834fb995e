"""Times of the fast kernels and their ratios to plain references: `python benchmarks/run.py`.

One table per topic; `--quick` measures the small sizes only. One thread: the kernels use one, and
the references shall not win by using more.
"""

from __future__ import annotations

import argparse
import os


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes and few repetitions")
    quick = parser.parse_args().quick
    # read when numpy is first imported, hence before the imports below
    for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[threads] = "1"
    from rich.console import Console

    from bench_csl import csl_in_nodes, csl_in_rounds
    from bench_mutual_information import mutual_information_table
    from bench_policies import policy_rounds, policy_runs
    from bench_rewards import rewards_table

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


if __name__ == "__main__":
    main()
