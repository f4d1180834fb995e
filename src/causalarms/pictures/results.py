"""A results file draws itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from causalarms.errors import DataError
from causalarms.pictures.curves import draw_normalised_regret, draw_optimal_share, draw_regret
from causalarms.pictures.learners import draw_learners
from causalarms.simulation.learners import KIND as LEARNERS
from causalarms.simulation.store import Results, read_results

CURVES: dict[str, Callable[..., Figure]] = {
    "regret": draw_regret,
    "normalised-regret": draw_normalised_regret,
    "optimal-share": draw_optimal_share,
}


def draw_results(
    results: str | Path | Results, what: str | None = None, *, names: Sequence[str] | None = None
) -> Figure:
    """A picture of a results file, or of what `read_results` found in one.

    what    `regret` (default), `normalised-regret` or `optimal-share` of policies; learners have
            one picture
    names   labels to draw, in this order; None: all
    """
    found = results if isinstance(results, Results) else read_results(results)
    chosen = found if names is None else _chosen(found, names)
    if found.settings.get("kind") == LEARNERS:
        if what is not None:
            raise DataError(f"these are results of learners: there is no picture {what!r} of them")
        return draw_learners(chosen.names, chosen.records)
    if not {"horizon", "step", "block"} <= set(found.settings):
        raise DataError("these results are not of policies or learners: nothing can be drawn")
    what = "regret" if what is None else what
    if what not in CURVES:
        raise DataError(f"there is no picture {what!r}; there are {', '.join(CURVES)}")
    return CURVES[what](chosen, chosen.records)


def _chosen(found: Results, names: Sequence[str]) -> Results:
    unknown = [name for name in names if name not in found.names]
    if unknown:
        raise DataError(
            f"there are no results of {unknown[0]!r}; there are {', '.join(found.names)}"
        )
    place = {name: number for number, name in enumerate(names)}
    records = [record for record in found.records if record["policy"] in place]
    return Results(found.settings, sorted(records, key=lambda r: place[r["policy"]]))
