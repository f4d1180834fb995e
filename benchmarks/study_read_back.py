"""What reading back every event through the path costs a `tell`: with and without, in turns.

python benchmarks/study_read_back.py --tells 1000
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path

from causalarms.study import Study
from causalarms.study.sqlite import FileLocks, SqliteStore

READ_BACK = "_read_back"


def without(store: SqliteStore, locks: FileLocks) -> None:
    """Instead of reading back."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tells", type=int, default=1000)
    options = parser.parse_args()
    read_back = getattr(SqliteStore, READ_BACK)
    seconds: dict[bool, list[float]] = {True: [], False: []}
    with tempfile.TemporaryDirectory(dir=".") as folder:
        study = Study.create(
            Path(folder) / "s.db", nodes=["a", "b", "c"], reward="c", policy="random"
        )
        for number in range(options.tells):
            trial, checked = study.ask(), number % 2 == 0
            setattr(SqliteStore, READ_BACK, read_back if checked else without)
            began = time.perf_counter()
            study.tell(trial, [0.0, 1.0, float(number)])
            seconds[checked].append(time.perf_counter() - began)
            setattr(SqliteStore, READ_BACK, read_back)
    medians = {checked: statistics.median(s) for checked, s in seconds.items()}
    record = {
        "tells": options.tells,
        "with_ms": round(1e3 * medians[True], 3),
        "without_ms": round(1e3 * medians[False], 3),
        "ratio_of_medians": round(medians[True] / medians[False], 3),
        "ratio_of_means": round(sum(seconds[True]) / sum(seconds[False]), 3),
    }
    print(json.dumps(record))


if __name__ == "__main__":
    main()
