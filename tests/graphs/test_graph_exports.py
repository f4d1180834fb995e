"""Exports of a learned graph parse back to what was learned."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from random_rounds import random_rounds

from causalarms import CSL
from causalarms.errors import CausalArmsError, DataError
from causalarms.graphs import Graph

NAMES = ("Größe, mm", 'the "quoted" one', "a<b>&c", "back\\slash")


@pytest.fixture(scope="module")
def graph() -> Graph:
    """Names that need quoting; node 0 natural is unknown; one edge differs between regimes."""
    adjacency = np.zeros((2, 4, 4), dtype=bool)
    adjacency[0, 0, 1] = adjacency[1, 0, 1] = adjacency[1, 1, 2] = adjacency[0, 2, 3] = True
    weights = np.where(adjacency, np.arange(32).reshape(2, 4, 4) / 7, 0.0)
    known = np.ones((2, 4), dtype=bool)
    known[0, 0] = False
    score = np.where(adjacency, 0.25, np.nan)
    score[0, 2, 3] = np.inf
    return Graph(NAMES, adjacency, weights, known, NAMES, {"score": score})


def expected_edges(graph: Graph) -> set[tuple[str, str, str, float]]:
    return {
        (("natural", "intervened")[r], NAMES[p], NAMES[c], float(graph.weights[r, p, c]))
        for r, p, c in np.argwhere(graph.adjacency)
    }


def test_edges_are_sorted_and_complete(graph: Graph) -> None:
    edges = graph.edges()
    found = [(e["regime"], e["parent"], e["child"], e["weight"]) for e in edges]
    assert set(found) == expected_edges(graph)
    assert [e["regime"] for e in edges] == ["natural"] * 2 + ["intervened"] * 2
    assert [e["score"] for e in edges] == [0.25, None, 0.25, 0.25]


def test_json(graph: Graph) -> None:
    def no_constant(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    record = json.loads(graph.to_json(), parse_constant=no_constant)
    assert record["nodes"] == list(NAMES)
    assert record["order"] == list(NAMES)
    assert record["unknown"] == [{"regime": "natural", "node": NAMES[0]}]
    found = {(e["regime"], e["parent"], e["child"], e["weight"]) for e in record["edges"]}
    assert found == expected_edges(graph)


def test_csv(graph: Graph) -> None:
    rows = list(csv.DictReader(io.StringIO(graph.to_csv())))
    found = {(r["regime"], r["parent"], r["child"], float(r["weight"])) for r in rows}
    assert found == expected_edges(graph)
    assert {r["score"] for r in rows} == {"0.25", ""}


def test_graphml(graph: Graph) -> None:
    parsed = nx.parse_graphml(graph.to_graphml())
    assert list(parsed.nodes) == list(NAMES)
    assert [parsed.nodes[n]["natural_known"] for n in NAMES] == [False, True, True, True]
    found = {
        (regime, p, c, attributes[f"weight_{regime}"])
        for p, c, attributes in parsed.edges(data=True)
        for regime in ("natural", "intervened")
        if attributes[regime]
    }
    assert found == expected_edges(graph)
    assert parsed.edges[NAMES[2], NAMES[3]]["intervened"] is False


def test_dot(graph: Graph) -> None:
    text = graph.to_dot()
    string = r'"((?:[^"\\]|\\.)*)"'
    found = {
        ({"solid": "natural", "dashed": "intervened"}[style], _plain(p), _plain(c), label)
        for p, c, label, style in re.findall(
            rf'{string} -> {string} \[label="([^"]*)", style=(\w+)\];', text
        )
    }
    assert found == {(r, p, c, f"{w:.3g}") for r, p, c, w in expected_edges(graph)}
    assert text.startswith("digraph causalarms {")
    assert text.endswith("}\n")
    assert [_plain(name) for name in re.findall(rf"^  {string};$", text, re.M)] == list(NAMES)


def _plain(quoted: str) -> str:
    return re.sub(r"\\(.)", r"\1", quoted)


def test_save_chooses_the_format_by_the_ending(graph: Graph, tmp_path: Path) -> None:
    for ending, text in {
        ".json": graph.to_json(),
        ".csv": graph.to_csv(),
        ".graphml": graph.to_graphml(),
        ".dot": graph.to_dot(),
    }.items():
        path = graph.save(tmp_path / f"graph{ending}")
        assert path.read_text(encoding="utf-8") == text


def test_save_refuses_other_endings_and_writes_nothing(graph: Graph, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"graph\.png: unknown ending '\.png'.*\.json, \.csv"):
        graph.save(tmp_path / "graph.png")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("")
    with pytest.raises(CausalArmsError, match="cannot write"):
        graph.save(tmp_path / "file" / "graph.json")


def test_a_fitted_model_exports_what_it_learned() -> None:
    sem, X, A = random_rounds(5, 150, 1)
    model = CSL().fit(X, interventions=A, noise_mean=sem.noise_mean)
    weights = np.zeros((2, 5, 5))
    for parent, child, attributes in model.graph_.edges(data=True):
        p, c = model.nodes_.index(parent), model.nodes_.index(child)
        for regime, name in enumerate(("natural", "intervened")):
            weights[regime, p, c] = attributes.get(f"weight_{name}", 0.0)
    np.testing.assert_array_equal(weights, model.weights_)
    scores = [e["score"] for e in json.loads(model.result_.to_json())["edges"]]
    assert sorted(scores) == sorted(model.scores_[model.adjacency_].tolist())
