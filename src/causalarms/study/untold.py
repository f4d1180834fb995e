"""Results that could not be told because the file of the study was changed under it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from causalarms.study.store import Store


def keep(
    store: Store, trial: int, values: dict[str, float | None], played: dict[str, Any] | None = None
) -> str:
    """Append the result to FILE-untold.jsonl; a sentence that says where it is."""
    record: dict[str, Any] = {"trial": trial, "values": values}
    if played is not None:
        record["played"] = played
    result = json.dumps(record, ensure_ascii=False)
    path: Path | None = getattr(store, "path", None)
    if path is not None:
        kept = path.with_name(f"{path.name}-untold.jsonl")
        try:
            with kept.open("a", encoding="utf-8") as file:
                file.write(result + "\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            return f"The result was not kept: {result}"
        return f"The result of trial {trial} is kept in {kept}"
    return f"The result was not kept: {result}"
