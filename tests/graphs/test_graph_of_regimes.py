"""A graph of any number of regimes says nothing of regimes that a node does not have."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import re
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from causalarms.errors import DataError
from causalarms.graphs import Graph

NODES = ("fixed", "two", "three")
COUNTS = np.array([1, 2, 3])


@pytest.fixture
def graph() -> Graph:
    """Nodes of one, two and three regimes; arrays hold what is not there, and is never shown."""
    adjacency = np.zeros((3, 3, 3), dtype=bool)
    adjacency[0, 0, 1] = adjacency[2, 1, 2] = adjacency[0, 0, 2] = True
    adjacency[1, 1, 0] = adjacency[2, 0, 1] = True  # of mechanisms that do not exist
    weights = np.where(adjacency, np.arange(27).reshape(3, 3, 3) / 4, 0.0)
    known = np.ones((3, 3), dtype=bool)
    known[1, 2] = False
    known[1:, 0] = False
    return Graph(NODES, adjacency, weights, known, NODES, {}, COUNTS)


def edges(graph: Graph) -> list[tuple[str, str, str]]:
    return [(e["regime"], e["parent"], e["child"]) for e in graph.edges()]


def test_only_mechanisms_that_exist_are_shown(graph: Graph) -> None:
    assert edges(graph) == [
        ("natural", "fixed", "two"),
        ("natural", "fixed", "three"),
        ("regime 2", "two", "three"),
    ]
    assert graph.unknown() == [("regime 1", "three")]


def test_names_of_its_own(graph: Graph) -> None:
    named = dataclasses.replace(graph, regime_names=("old", "new", "none"))
    assert [regime for regime, _, _ in edges(named)] == ["old", "old", "none"]
    assert named.unknown() == [("new", "three")]
    assert 'label="5.75 (none)", style=dashed' in named.to_dot()
    assert 'label="0.25 (old)", style=solid' in named.to_dot()
    for wrong in (("a", "b"), ("a", "b", "b"), ("a", "b", "c", "d")):
        with pytest.raises(DataError, match="regime_names must be 3 different names"):
            dataclasses.replace(graph, regime_names=wrong)


def test_names_of_regimes_are_quoted_and_checked(graph: Graph, tmp_path: Path) -> None:
    odd = dataclasses.replace(graph, regime_names=('a "quoted" one', "u_of_edge", "a,b"))
    label = re.search(r"fixed\" -> \"two\" \[label=\"(.*)\", style", odd.to_dot())
    assert label is not None
    assert label[1] == r"0.25 (a \"quoted\" one)"
    rows = list(csv.DictReader(io.StringIO(odd.to_csv())))
    assert {row["regime"] for row in rows} == {'a "quoted" one', "a,b"}
    parsed = nx.parse_graphml(odd.to_graphml())
    assert parsed.edges["two", "three"]["u_of_edge"] is False
    path = odd.save(tmp_path / "graph.graphml")
    odd.save(path)  # recognised as its own, whatever the regimes are called
    with pytest.raises(DataError, match=r"regime 'a\\x00': GraphML cannot hold"):
        dataclasses.replace(graph, regime_names=("a\0", "b", "c")).to_graphml()


def test_networkx_and_json_say_which_regimes_a_node_has(graph: Graph) -> None:
    found = graph.to_networkx()
    assert found.nodes["fixed"] == {"natural_known": True}
    assert found.nodes["three"] == {
        "natural_known": True,
        "regime 1_known": False,
        "regime 2_known": True,
    }
    assert set(found.edges) == {("fixed", "two"), ("fixed", "three"), ("two", "three")}
    assert found.edges["fixed", "two"] == {
        "natural": True,
        "weight_natural": 0.25,
        "regime 1": False,
    }
    assert json.loads(graph.to_json())["regimes"] == {
        "fixed": ["natural"],
        "two": ["natural", "regime 1"],
        "three": ["natural", "regime 1", "regime 2"],
    }


def test_one_regime(graph: Graph) -> None:
    one = Graph(NODES, graph.adjacency[:1], graph.weights[:1], graph.known[:1], NODES, {})
    assert {regime for regime, _, _ in edges(one)} == {"natural"}
    for text in (one.to_json(), one.to_csv(), one.to_dot(), one.to_graphml()):
        assert "intervened" not in text
        assert "regime 1" not in text
    assert "(natural)" not in one.to_dot()


def test_a_node_without_a_switch_is_never_intervened_on() -> None:
    adjacency = np.zeros((2, 2, 2), dtype=bool)
    adjacency[:, 0, 1] = True
    weights = adjacency * 1.0
    graph = Graph(
        ("a", "b"), adjacency, weights, np.array([[True, True], [False, True]]), None, {},
        np.array([1, 2]),
    )  # fmt: skip
    assert graph.unknown() == []
    assert "intervened_known" not in graph.to_networkx().nodes["a"]
