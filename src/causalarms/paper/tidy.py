"""The data behind the figures as CSV and Parquet, the same bytes for the same settings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from causalarms.extras import has_extra
from causalarms.files import Mark, write_output
from causalarms.tables.write import columns_text, parquet_bytes

MADE_BY = "causalarms reproduce"

Record = dict[str, Any]


def write_table(rows: Sequence[Record], path: Path) -> list[Path]:
    """`path`.csv and, where pyarrow is installed, `path`.parquet."""
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    text = columns_text(columns)
    mark = Mark(f"`{MADE_BY}`", text.partition("\n")[0].encode())
    written = [write_output(path.with_suffix(".csv"), text, mark, force=None)]
    if not has_extra("parquet"):
        return written
    content = parquet_bytes(columns, MADE_BY)
    mark = Mark(f"`{MADE_BY}`", b"PAR1", MADE_BY.encode())
    return [*written, write_output(path.with_suffix(".parquet"), content, mark, force=None)]


def curve_rows(records: Sequence[Record], step: int, block: int) -> list[Record]:
    """One row per policy, repetition and point of a curve."""
    rows = []
    for record in records:
        for number, value in enumerate(record["regret_curve"], start=1):
            rows.append(
                {
                    "policy": record["policy"],
                    "repetition": record["repetition"],
                    "round": number * step,
                    "regret": value,
                    "optimal_share": record["optimal_curve"][
                        min((number * step - 1) // block, len(record["optimal_curve"]) - 1)
                    ],
                }
            )
    return rows


def unit_rows(records: Sequence[Record]) -> list[Record]:
    """One row per run, without its curves."""
    keys = (
        "policy", "repetition", "regret", "simple_regret", "optimal_share", "final_optimal_share",
        "lasting_optimum", "explored", "mean_last_gap", "linear_regret",
    )  # fmt: skip
    return [{key: r[key] for key in keys} | {"alarms": len(r["alarms"])} for r in records]
