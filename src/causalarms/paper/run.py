"""Run the parts, write figures, data and report into one folder.

Finished units are kept in `raw/`, one file per part, so an interrupted run goes on where it was and
more runs can be added later. A folder with results of other settings is refused.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from causalarms.errors import DataError, ModelError
from causalarms.files import read_text, refuse_study, write_atomically
from causalarms.limits import SYSTEM_BYTES
from causalarms.paper.headlines import Headline, abstract_headlines
from causalarms.paper.parts import FIGURES, PARTS, Part
from causalarms.paper.report import write_report
from causalarms.paper.settings import Settings
from causalarms.paper.tidy import MADE_BY
from causalarms.pictures.style import save_figure
from causalarms.simulation.monte_carlo import Engine, run_units
from causalarms.simulation.store import ResultStore

Record = dict[str, Any]
OnProgress = Callable[[Part, int, int], None]

OWN = (  # what is written into the folder
    "report.md", "report.html", "raw/*.jsonl", "figures/*.png", "figures/*.pdf",
    *(f"data/*_{kind}.{ending}" for kind in ("units", "means", "curves")
      for ending in ("csv", "parquet")),
)  # fmt: skip


class Reproduction(NamedTuple):
    """What was measured and written."""

    headlines: list[Headline]
    files: list[Path]
    seconds: dict[str, float]  # wall-clock of this call per part


def reproduce(
    folder: Path,
    *,
    runs: int,
    settings: Settings | None = None,
    figures: Sequence[str] = (),
    engine: Engine | None = None,
    on_progress: OnProgress | None = None,
) -> Reproduction:
    """All figures and headline numbers, or the named figures and the numbers behind them."""
    settings = settings or Settings()
    if runs < 1:
        raise ModelError(f"runs must be at least 1, not {runs}")
    unknown = [name for name in figures if name not in FIGURES]
    if unknown:
        raise ModelError(f"unknown figure {unknown[0]!r}; there are {', '.join(FIGURES)}")
    wanted = list(figures) or list(FIGURES)
    _claim(folder, settings)
    headlines: list[Headline] = []
    files: list[Path] = []
    seconds: dict[str, float] = {}
    images: dict[str, Path] = {}
    for part in PARTS:
        names = [name for name in wanted if FIGURES[name] is part]
        if not names:
            continue
        start = time.perf_counter()
        records = _records(part, folder, settings, runs, engine or Engine(), on_progress)
        headlines += part.headlines(settings, records)
        files += part.tables(settings, records, folder / "data")
        for name in names:
            figure = part.figures[name](settings, records)
            pictures = [
                save_figure(figure, folder / "figures" / f"{name}{ending}", made_by=MADE_BY)
                for ending in (".png", ".pdf")
            ]
            images[name] = pictures[0]
            files += pictures
        seconds[part.name] = time.perf_counter() - start
    headlines += abstract_headlines(headlines)
    files += write_report(folder, settings, runs, headlines, images)
    return Reproduction(headlines, files, seconds)


def start_over(folder: Path, settings: Settings) -> None:
    """Claim the folder of another reproduction: what that wrote is removed, and nothing else."""
    path = folder / "settings.json"
    if not path.exists():
        return
    if _settings(path).keys() != Settings().as_dict().keys():
        raise DataError(f"{path} holds no settings of a reproduction; choose another folder")
    own = [path for pattern in OWN for path in folder.glob(pattern)]
    for found in own:
        refuse_study(found)
    for found in own:
        found.unlink()
    _write_settings(path, settings)


def _records(
    part: Part,
    folder: Path,
    settings: Settings,
    runs: int,
    engine: Engine,
    on_progress: OnProgress | None,
) -> list[Record]:
    units = part.units(settings, runs)
    store = ResultStore(folder / "raw" / f"{part.name}.jsonl", settings.as_dict())

    def on_result(done: int, total: int, record: Record | None) -> None:
        if on_progress is not None:
            on_progress(part, done, total)

    run_units(part.run, units, store=store, engine=engine, on_result=on_result)
    labels = list(dict.fromkeys(key[0] for key, _ in units))
    return [r for r in store.in_order(labels) if r["repetition"] < runs]


def _claim(folder: Path, settings: Settings) -> None:
    """Write the settings into the folder, or refuse one that holds others."""
    path = folder / "settings.json"
    record = settings.as_dict()
    if folder.exists() and not folder.is_dir():
        raise DataError(f"{folder} is no folder; choose another name")
    if path.exists():
        theirs = _settings(path)
        if theirs != record:
            names = sorted(k for k in {*theirs, *record} if theirs.get(k) != record.get(k))
            raise DataError(
                f"{folder} holds results of other settings (they differ in {', '.join(names)}); "
                "choose another folder, or say --overwrite to start over in this one"
            )
    elif folder.exists() and any(folder.iterdir()):
        raise DataError(f"{folder} is not empty and holds no reproduction; choose another folder")
    else:
        _write_settings(path, settings)


def _write_settings(path: Path, settings: Settings) -> None:
    write_atomically(path, json.dumps(settings.as_dict(), indent=1) + "\n")


def _settings(path: Path) -> dict[str, Any]:
    try:
        record = json.loads(read_text(path, SYSTEM_BYTES))
    except (ValueError, RecursionError) as error:
        raise DataError(f"cannot read {path}: {error}") from error
    if not isinstance(record, dict):
        raise DataError(f"{path} holds no settings of a reproduction; choose another folder")
    return record
