"""Pictures of graphs and results. A figure is matplotlib's: change what you like, then save it.

draw_regret, draw_normalised_regret, draw_optimal_share   of an `Experiment` and its records
draw_learners                                             of compared learners
draw_results                                              of a results file, by name of the picture
draw_graph, draw_sem                                      of a learned graph, of a system
save_figure                                               PNG, PDF or SVG, the same bytes every time
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from causalarms.extras import imported_on_use

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

# Layouts need no matplotlib, and there may be none.
__getattr__ = imported_on_use(
    __name__,
    dict.fromkeys(__all__, "causalarms.pictures.curves")
    | dict.fromkeys(("draw_graph", "draw_sem"), "causalarms.pictures.graph")
    | {"save_figure": "causalarms.pictures.style"},
    extra="plot",
)
