"""Pictures of graphs and results. A figure is matplotlib's: change what you like, then save it.

draw_regret, draw_normalised_regret, draw_optimal_share   of an `Experiment` and its records
draw_learners                                             of compared learners
draw_results                                              of a results file, by name of the picture
draw_graph, draw_sem                                      of a learned graph, of a system
save_figure                                               PNG, PDF or SVG, the same bytes every time
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from causalarms.extras import require_extra

if TYPE_CHECKING:
    from causalarms.pictures.curves import (
        draw_learners,
        draw_normalised_regret,
        draw_optimal_share,
        draw_regret,
        draw_results,
    )
    from causalarms.pictures.graph import draw_graph, draw_sem
    from causalarms.pictures.style import save_figure

__all__ = [
    "draw_graph",
    "draw_learners",
    "draw_normalised_regret",
    "draw_optimal_share",
    "draw_regret",
    "draw_results",
    "draw_sem",
    "save_figure",
]

# Loaded on first use: layouts need no matplotlib, and there may be none.
_HOME = dict.fromkeys(__all__, "curves") | {
    "draw_graph": "graph",
    "draw_sem": "graph",
    "save_figure": "style",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'causalarms.pictures' has no attribute {name!r}")
    require_extra("plot", f"causalarms.pictures.{name}")
    return getattr(import_module(f"causalarms.pictures.{_HOME[name]}"), name)
