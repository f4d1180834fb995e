"""The pictures can be drawn for every size and state of knowledge, and are told apart by it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from causalarms import LinearSEM, pictures, random_sem
from causalarms.errors import ModelError
from causalarms.graphs.graph import Graph
from causalarms.pictures.graph import draw_graph, draw_sem
from causalarms.pictures.style import save_figure

PNG = b"\x89PNG\r\n\x1a\n"


def learned(sem: LinearSEM, *, unknown: tuple[tuple[int, int], ...] = ()) -> Graph:
    """The system as a learner might return it: one edge missed, one extra per regime."""
    adjacency = sem.adjacency.copy()
    weights = sem.weights.copy()
    known = np.ones((2, sem.n_nodes), dtype=bool)
    for regime in (0, 1):
        adjacency[regime][tuple(np.argwhere(sem.adjacency[regime])[0])] = False
        extra = np.argwhere(~sem.adjacency[regime] & ~np.eye(sem.n_nodes, dtype=bool))[0]
        adjacency[regime][tuple(extra)] = True
        weights[regime][tuple(extra)] = -0.3
    for regime, node in unknown:
        known[regime, node] = False
        adjacency[regime, :, node] = False
        weights[regime, :, node] = np.nan
    return Graph(
        nodes=sem.nodes, adjacency=adjacency, weights=weights, known=known, order=None, measures={}
    )


def texts(figure: Figure) -> list[str]:
    written = [text.get_text() for axes in figure.axes for text in axes.texts]
    legends = [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    return written + legends


@pytest.mark.parametrize("n_nodes", [1, 2, 5, 12, 30])
def test_systems_of_all_sizes(n_nodes: int, tmp_path: Path) -> None:
    figure = draw_sem(random_sem(n_nodes, seed=1), title="a system")
    content = save_figure(figure, tmp_path / "graph.png").read_bytes()
    assert content.startswith(PNG)
    assert content.endswith(b"IEND\xaeB`\x82")
    assert len(content) > 5000


def test_both_panels_hold_the_same_nodes_at_the_same_places() -> None:
    natural, intervened = draw_sem(random_sem(6, seed=1)).axes
    places = [
        {text.get_text(): text.get_position() for text in axes.texts if text.get_text()[0] == "x"}
        for axes in (natural, intervened)
    ]
    assert places[0] == places[1]
    assert len(places[0]) == 6


def test_every_weight_is_written_with_its_sign() -> None:
    weights = np.zeros((2, 3, 3))
    weights[0, 0, 1], weights[1, 1, 2] = -0.75, 1.5
    written = texts(draw_sem(LinearSEM(weights=weights)))
    assert "\N{MINUS SIGN}0.75" in written
    assert "1.5" in written
    assert "negative weight" in written


def test_a_large_system_has_no_numbers_on_its_arrows() -> None:
    panel = draw_sem(random_sem(14, seed=1, expected_degree=2)).axes[0]
    assert len(panel.texts) == 14 + 1  # the nodes and the name of the regime


@pytest.mark.parametrize("n_nodes", [5, 9])
def test_comparison_with_the_truth(n_nodes: int) -> None:
    sem = random_sem(n_nodes, seed=2)
    written = texts(draw_graph(learned(sem), reward=sem.nodes[-1], truth=sem.adjacency))
    assert sum(text.startswith("\N{BALLOT X}") for text in written) == 2
    assert {"found", "missed", "extra (\N{BALLOT X})", "reward"} <= set(written)


def test_unknown_mechanisms_are_hollow_and_miss_nothing() -> None:
    sem = random_sem(5, seed=2)
    graph = learned(sem, unknown=tuple((1, node) for node in range(5)))
    figure = draw_graph(graph, truth=sem.adjacency)
    assert "mechanism unknown: no data" in texts(figure)
    assert not figure.axes[1].lines
    assert {patch.get_facecolor() for patch in figure.axes[1].patches} == {(1.0, 1.0, 1.0, 1.0)}


def test_regimes_that_mix_into_a_cycle() -> None:
    weights = np.zeros((2, 2, 2))
    weights[0, 0, 1], weights[1, 1, 0] = 1.0, -1.0
    graph = Graph(("a", "b"), weights != 0, weights, np.ones((2, 2), dtype=bool), None, {})
    assert len(draw_graph(graph).axes) == 2


def test_no_edge_at_all(tmp_path: Path) -> None:
    empty = LinearSEM(weights=np.zeros((2, 4, 4)))
    save_figure(draw_sem(empty), tmp_path / "graph.png")


def test_names_are_never_read_as_formulas() -> None:
    sem = random_sem(3, seed=1).replace(nodes=["a$b$", "cost $_1", "a name of many letters"])
    written = texts(draw_sem(sem))
    assert "a$b$" in written
    assert "a name of many \N{HORIZONTAL ELLIPSIS}" in written


def test_wrong_arguments_are_named() -> None:
    graph = learned(random_sem(5, seed=2))
    with pytest.raises(ModelError, match=r"truth must have shape \(2, 5, 5\)"):
        draw_graph(graph, truth=np.zeros((5, 5)))
    with pytest.raises(ModelError, match="there is no node 'x9'"):
        draw_graph(graph, reward="x9")


def test_no_picture_uses_pyplot() -> None:
    for module in Path(pictures.__file__).parent.glob("*.py"):
        assert "matplotlib.pyplot" not in module.read_text(encoding="utf-8"), module.name


def test_factors_and_context_have_shapes_of_their_own() -> None:
    adjacency = np.zeros((1, 4, 4), dtype=bool)
    adjacency[0, 0, 2] = adjacency[0, 1, 2] = True
    graph = Graph(
        nodes=("load", "weather", "yield", "idle"), adjacency=adjacency, weights=adjacency * 1.0,
        known=np.ones((1, 4), dtype=bool), order=None, measures={}, factors=("load", "idle"),
        context=("weather",),
    )  # fmt: skip
    figure = draw_graph(graph, reward="yield")
    kinds = [type(patch).__name__ for patch in figure.axes[0].patches]
    assert kinds[:4] == ["Rectangle", "Polygon", "FancyBboxPatch", "Rectangle"]
    assert {"factor: set by a person", "context: no factor moves it"} <= set(texts(figure))
    plain = draw_sem(random_sem(4, seed=1))
    assert not any("factor" in text for text in texts(plain))
