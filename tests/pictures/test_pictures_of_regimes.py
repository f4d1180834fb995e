"""A panel per regime that exists, pale nodes where it does not; a table of more than four."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from causalarms import LinearSEM, random_sem
from causalarms.errors import ModelError
from causalarms.graphs.graph import Graph
from causalarms.pictures import edge_table, style
from causalarms.pictures.graph import draw_graph, draw_sem
from causalarms.pictures.style import save_figure

WITHOUT = "node without this regime"


def graph_of(sem: LinearSEM) -> Graph:
    known = np.ones(sem.weights.shape[:2], dtype=bool)
    return Graph(sem.nodes, sem.adjacency, sem.weights, known, None, {}, sem.regimes)


def texts(figure: Figure) -> list[str]:
    written = [text.get_text() for axes in figure.axes for text in axes.texts]
    legends = [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    return written + legends


def pale(figure: Figure) -> list[int]:
    """How many nodes of each panel are pale."""
    return [
        sum(
            patch.get_edgecolor() == to_rgba(style.ABSENT)
            for patch in axes.patches
            if isinstance(patch, FancyBboxPatch)
        )
        for axes in figure.axes
    ]


@pytest.mark.parametrize(
    ("regimes", "n_pale"),
    [([1] * 6, [0]), ([1, 2, 3] * 2, [0, 2, 4]), ([4, 4, 2] * 2, [0, 0, 2, 2])],
)
def test_a_panel_per_regime(regimes: list[int], n_pale: list[int], tmp_path: Path) -> None:
    sem = random_sem(6, seed=1, regimes=regimes)
    figure = draw_sem(sem)
    assert pale(figure) == n_pale
    assert (WITHOUT in texts(figure)) == any(n_pale)
    titles = [axes.texts[0].get_text() for axes in figure.axes]
    assert titles == ["natural", *(f"regime {r}" for r in range(1, len(n_pale)))]
    boxes = [(axes.get_position().x0, axes.get_position().y0) for axes in figure.axes]
    assert len(set(boxes)) == len(n_pale)
    assert min(y for _, y in boxes) > 0.02  # the legend has its room below
    save_figure(figure, tmp_path / "graph.png")


def test_small_systems_stand_side_by_side() -> None:
    figure = draw_sem(random_sem(3, seed=1, regimes=3))
    places = [axes.get_position() for axes in figure.axes]
    assert [round(p.x0, 2) for p in places] == [0, 0.5, 0]
    assert places[0].y0 == places[1].y0 > places[2].y1


def test_two_regimes_and_a_node_without_a_switch() -> None:
    figure = draw_sem(random_sem(4, seed=1, regimes=[1, 2, 2, 2]))
    assert [axes.texts[0].get_text() for axes in figure.axes] == ["natural", "intervened"]
    assert pale(figure) == [0, 1]


def test_what_arrays_hold_of_other_mechanisms_is_not_drawn() -> None:
    sem = random_sem(4, seed=1, regimes=[1, 2, 2, 2])
    graph = graph_of(sem)
    adjacency = graph.adjacency.copy()
    adjacency[1, 1, 0] = True
    full = dataclasses.replace(graph, adjacency=adjacency)
    assert texts(draw_graph(full)) == texts(draw_graph(graph))
    assert texts(draw_graph(full, truth=adjacency)) == texts(draw_graph(graph, truth=sem.adjacency))


def test_names_of_regimes_head_the_panels() -> None:
    sem = random_sem(4, seed=1, regimes=3)
    named = dataclasses.replace(graph_of(sem), regime_names=("old", "$new$", "none"))
    assert [axes.texts[0].get_text() for axes in draw_graph(named).axes] == ["old", "$new$", "none"]


def test_more_than_four_regimes_are_a_table(tmp_path: Path) -> None:
    sem = random_sem(5, seed=3, regimes=[5, 1, 2, 5, 5])
    figure = draw_graph(graph_of(sem), reward="x4", title="a system")
    written = texts(figure)
    assert {"parent", "child", *(f"regime {r}" for r in range(1, 5))} <= set(written)
    n_edges = int(sem.adjacency.any(axis=0).sum())
    orphans = int((~sem.adjacency.any(axis=(0, 1))).sum())
    assert written.count("none") == orphans
    assert sum(text in sem.nodes for text in written) == 2 * n_edges + orphans
    numbers = [
        text for text in written if text.replace("\N{MINUS SIGN}", "").replace(".", "").isdigit()
    ]
    assert len(numbers) == sem.adjacency.sum()
    existing = np.arange(5)[:, None] < sem.regimes
    rows = np.any(sem.adjacency, axis=0).sum(axis=0).clip(1)  # per child
    assert written.count(edge_table.NO_EDGE) == (existing * rows).sum() - sem.adjacency.sum()
    assert "empty: the child does not have that regime" in written[-1]
    assert "unknown" not in written[-1]
    save_figure(figure, tmp_path / "graph.png")


def test_the_table_compares_and_shows_what_is_unknown() -> None:
    sem = random_sem(4, seed=2, regimes=5)
    graph = graph_of(sem)
    adjacency, known = graph.adjacency.copy(), graph.known.copy()
    known[4, 3] = False
    adjacency[4, :, 3] = False
    missed = np.argwhere(sem.adjacency[0])[0]
    extra = np.argwhere(~sem.adjacency[0] & sem.adjacency.any(axis=0))[0]
    adjacency[0][tuple(missed)] = False
    adjacency[0][tuple(extra)] = True
    learned = dataclasses.replace(
        graph,
        adjacency=adjacency,
        known=known,
        measures={"probability": np.full(adjacency.shape, 0.5)},
    )
    written = texts(draw_graph(learned, truth=sem.adjacency))
    assert written.count("missed") == 1
    assert written.count("\N{BALLOT X} 0 (50 %)") == 1
    assert written.count("?") == max(1, np.any(sem.adjacency, axis=0)[:, 3].sum())
    assert "? mechanism unknown: no data" in written[-1]


def test_a_long_table_says_what_it_leaves_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(edge_table, "MOST_ROWS", 3)
    figure = draw_sem(random_sem(5, seed=3, regimes=24, edge_probability=1.0))
    written = texts(figure)
    assert "8 more rows: save the graph as .csv" in written
    assert "4 more regimes: save the graph as .csv" in written
    save_figure(figure, tmp_path / "graph.png")


def test_the_truth_has_as_many_regimes() -> None:
    graph = graph_of(random_sem(4, seed=1, regimes=3))
    with pytest.raises(ModelError, match=r"truth must have shape \(3, 4, 4\)"):
        draw_graph(graph, truth=np.zeros((2, 4, 4)))
