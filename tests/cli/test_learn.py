"""`causalarms learn`: three ways to say what was intervened on, outputs, and refusals."""

from __future__ import annotations

import csv
import json
from itertools import product
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import numpy.typing as npt
import pytest
from command import run

from causalarms import CSL, GraphPosterior, random_sem

Values = npt.NDArray[Any]
Rounds = tuple[Values, Values]

NODES = ["a", "b", "c", "y"]
SACHS = Path(__file__).parents[3] / "shared" / "data" / "sachs.csv"


def write(path: Path, columns: dict[str, list[object]]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


@pytest.fixture
def rounds() -> Rounds:
    sem = random_sem(4, seed=3)
    rng = np.random.default_rng(0)
    regimes = rng.integers(0, 2, (160, 4))
    return sem.sample(regimes, rng), regimes


def samples(values: Values) -> dict[str, list[object]]:
    return {name: list(values[:, i]) for i, name in enumerate(NODES)}


def test_three_ways_give_one_graph(tmp_path: Path, rounds: Rounds) -> None:
    values, regimes = rounds
    flags = {f"do:{n}": list(regimes[:, i]) for i, n in enumerate(NODES)}
    names: list[object] = [
        ";".join(n for n, on in zip(NODES, row, strict=True) if on) for row in regimes
    ]
    one = write(tmp_path / "one.csv", samples(values) | flags)
    two = write(tmp_path / "two.csv", samples(values) | {"intervened": names})
    three = write(tmp_path / "three.csv", samples(values))
    second = write(tmp_path / "second.csv", dict(zip(NODES, regimes.T.tolist(), strict=True)))
    learners: dict[str, Any] = {
        "csl": CSL(), "posterior": GraphPosterior(noise_scale="estimate")
    }  # fmt: skip
    for method, learner in learners.items():
        by_name = ("--method", method, "--json")
        outcomes = [
            run("learn", one, "--noise-mean", 1, *by_name),
            run("learn", two, "--noise-mean", "a=1,b=1,c=1,y=1", *by_name),
            run("learn", three, "--interventions", second, "--noise-mean", 1, *by_name),
        ]
        edges = [json.loads(outcome.out)["edges"] for outcome in outcomes]
        expected = learner.fit(values, interventions=regimes, noise_mean=1.0)
        assert edges[0] == edges[1] == edges[2]
        assert len(edges[0]) == expected.adjacency_.sum()


def test_the_default_is_the_posterior_in_units_it_estimates(tmp_path: Path, rounds: Rounds) -> None:
    values, regimes = rounds
    factors = np.array([1e-3, 8.0, 1e4, 0.5])
    flags = {f"do:{n}": list(regimes[:, i]) for i, n in enumerate(NODES)}
    plain = write(tmp_path / "plain.csv", samples(values) | flags)
    other = write(tmp_path / "other.csv", samples(values * factors + [0, 100, -5, 3]) | flags)
    found, again = (json.loads(run("learn", path, "--json").out) for path in (plain, other))
    assert found["method"] == again["method"] == "posterior"
    expected = GraphPosterior(noise_scale="estimate").fit(values, interventions=regimes)
    for regime, name in enumerate(("natural", "intervened")):
        for record in (found, again):
            np.testing.assert_allclose(
                record["edge_probability"][name], expected.edge_probability_[regime], atol=1e-6
            )
    assert found["warnings"] == again["warnings"] == []


def test_likely_edges_come_first_and_doubtful_ones_apart(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    regimes = rng.integers(0, 2, (60, 3))
    a, c, noise = rng.normal(size=(3, 60))
    values = np.column_stack([a, c, 3 * a + 0.32 * c + noise])
    flags = {f"do:{n}": list(regimes[:, i]) for i, n in enumerate("acy")}
    columns = {name: list(values[:, i]) for i, name in enumerate("acy")}
    data = write(tmp_path / "data.csv", columns | flags)
    probability = json.loads(run("learn", data, "--json").out)["edge_probability"]
    lines = run("learn", data).out.splitlines()
    apart = next(i for i, line in enumerate(lines) if "doubtful edge" in line)
    for regime in ("natural", "intervened"):
        for (i, parent), (j, child) in product(enumerate("acy"), repeat=2):
            p, edge = probability[regime][i][j], f" {parent} -> {child} "
            here = [k for k, line in enumerate(lines) if line.startswith(regime) and edge in line]
            assert len(here) == (p >= 0.1), (regime, edge, p)
            assert all((k < apart) == (p >= 0.9) for k in here)
            assert all(("not in the graph" in lines[k]) == (p <= 0.5) for k in here)


def test_outputs_are_written_and_told(tmp_path: Path, rounds: Rounds) -> None:
    values, regimes = rounds
    flags = {f"do:{n}": list(regimes[:, i]) for i, n in enumerate(NODES)}
    data = write(tmp_path / "data.csv", samples(values) | flags)
    targets = [tmp_path / f"g{end}" for end in (".json", ".csv", ".graphml", ".dot", ".png")]
    outcome = run("learn", data, *[part for t in targets for part in ("--out", t)])
    assert outcome.code == 0
    assert all(f"wrote {t}" in outcome.out.replace("\n", "") for t in targets)
    assert set(nx.read_graphml(targets[2]).nodes) == set(NODES)
    assert json.loads(targets[0].read_text())["nodes"] == NODES


@pytest.mark.parametrize("method", ["csl", "csl-nw", "csl-joint", "golem", "dagma", "posterior"])
def test_every_method_runs(tmp_path: Path, method: str) -> None:
    rng = np.random.default_rng(1)
    regimes = np.repeat([[0], [1]], 60, axis=0) * np.ones((1, 4), dtype=int)
    if method not in ("golem", "dagma"):
        regimes = rng.integers(0, 2, (120, 4))
    values = random_sem(4, seed=1).sample(regimes, rng)
    flags = {f"do:{n}": list(regimes[:, i]) for i, n in enumerate(NODES)}
    data = write(tmp_path / "data.csv", samples(values) | flags)
    outcome = run("learn", data, "--method", method, "--json")
    assert outcome.code == 0
    assert json.loads(outcome.out)["method"] == method


def refusals(tmp_path: Path, values: Values, regimes: Values) -> dict[str, tuple[Path, str]]:
    good = samples(values)
    flags = {f"do:{n}": list(regimes[:, i]) for i, n in enumerate(NODES)}

    def case(name: str, columns: dict[str, list[object]]) -> Path:
        return write(tmp_path / f"{name}.csv", columns)

    def changed(column: str, row: int, value: object) -> dict[str, list[object]]:
        copy = {key: list(entries) for key, entries in (good | flags).items()}
        copy[column][row] = value
        return copy

    empty, header, ragged = (tmp_path / f"{n}.csv" for n in ("empty", "header", "ragged"))
    empty.write_text("")
    header.write_text("a,b\n")
    ragged.write_text("a,b\n1,2\n3\n")
    return {
        "nan": (case("nan", changed("b", 4, "nan")), "row 5 of column 'b' is NaN"),
        "inf": (case("inf", changed("b", 4, "inf")), "row 5 of column 'b' is infinite"),
        "text": (case("text", changed("c", 2, "low")), "row 3 of column 'c' is 'low'"),
        "hole": (case("hole", changed("c", 2, "")), "row 3 of column 'c' is empty"),
        "regime": (case("regime", changed("do:c", 7, 2.5)), "row 8 of column 'do:c' is '2.5'"),
        "word": (case("word", changed("do:c", 7, "on")), "row 8 of column 'do:c' is 'on'"),
        "large": (case("large", changed("do:c", 7, 256)), "row 8 of column 'do:c' is '256'"),
        "minus": (case("minus", changed("do:c", 7, -1)), "row 8 of column 'do:c' is '-1'"),
        "gone": (case("gone", changed("do:c", 7, "")), "row 8 of column 'do:c' is empty"),
        "constant": (case("constant", good | {"b": [3.0] * 160}), "node 'b' is constant"),
        "twins": (case("twins", good | {"b": good["a"]}), "'a' and 'b' are identical"),
        "unknown": (case("unknown", good | {"do:q": [0] * 160}), "factor 'q' is 0 in all 160 rows"),
        "who": (case("who", good | {"intervened": ["z"] * 160}), "names 'z', which is not a node"),
        "few": (case("few", {k: v[:1] for k, v in (good | flags).items()}), "a minimum of 2"),
        "empty": (empty, "is empty"),
        "header": (header, "a header and no rows"),
        "ragged": (ragged, "line 3: 1 cells for 2 columns"),
        "absent": (tmp_path / "absent.csv", "cannot read"),
    }


def test_refusals_name_the_place_and_write_nothing(tmp_path: Path, rounds: Rounds) -> None:
    for name, (path, message) in refusals(tmp_path, *rounds).items():
        target = tmp_path / "graph.json"
        outcome = run("learn", path, "--out", target)
        assert outcome.code == 1, name
        assert message in outcome.err, (name, outcome.err)
        assert "Traceback" not in outcome.err
        assert not target.exists()


def test_csl_refuses_too_few_samples(tmp_path: Path, rounds: Rounds) -> None:
    few = {name: list(rounds[0][:4, i]) for i, name in enumerate(NODES)}
    flags = {f"do:{n}": list(rounds[1][:4, i]) for i, n in enumerate(NODES)}
    outcome = run("learn", write(tmp_path / "few.csv", few | flags), "--method", "csl")
    assert outcome.code == 1
    assert "samples for 3" in outcome.err


def test_a_cyclic_prior_is_refused(tmp_path: Path, rounds: Rounds) -> None:
    data = write(tmp_path / "data.csv", samples(rounds[0]))
    outcome = run("learn", data, "--require-edge", "a->b", "--require-edge", "b->a")
    assert outcome.code == 1
    assert "cycle a -> b -> a" in outcome.err


def test_options_of_csl_are_not_for_golem(tmp_path: Path, rounds: Rounds) -> None:
    data = write(tmp_path / "data.csv", samples(rounds[0]))
    outcome = run("learn", data, "--method", "golem", "--exclude-edge", "a->b")
    assert outcome.code == 2
    assert "--exclude-edge is for CSL" in outcome.err


def test_an_unwritable_target_is_refused(tmp_path: Path, rounds: Rounds) -> None:
    values, regimes = rounds
    flags = {f"do:{n}": list(regimes[:, i]) for i, n in enumerate(NODES)}
    data = write(tmp_path / "data.csv", samples(values) | flags)
    outcome = run("learn", data, "--out", tmp_path / "data.csv" / "graph.json")
    assert outcome.code == 1
    assert "cannot write" in outcome.err


@pytest.mark.skipif(not SACHS.exists(), reason="the real data are not here")
def test_real_data_get_an_honest_report() -> None:
    outcome = run("learn", SACHS, "--method", "csl", "--json")
    found = {(e["parent"], e["child"]) for e in json.loads(outcome.out)["edges"]}
    assert ("Raf", "Mek") in found
    for method in ("csl", "posterior"):
        report = json.loads(run("learn", SACHS, "--method", method, "--json").out)
        without = {node for node, count in report["regimes"].items() if count == 1}
        assert without == {"Raf", "PLCg", "Erk", "PKA", "p38", "JNK"}
        assert report["unknown"] == []
        assert any("never varies" in text for text in report["warnings"])
        assert all(check["gaussian_p"] < 1e-3 for check in report["checks"])
    text = run("learn", SACHS).out
    assert "residuals are not Gaussian" in text
    assert "read edges as hypotheses" in text


def test_the_posterior_prints_probabilities(tmp_path: Path, rounds: Rounds) -> None:
    values, regimes = rounds
    flags = {f"do:{n}": list(regimes[:, i]) for i, n in enumerate(NODES)}
    data = write(tmp_path / "data.csv", samples(values) | flags)
    learn = ("learn", data, "--method", "posterior", "--noise-mean", 1)
    shown = run(*learn, "--miss-per-edge", 0.2)
    assert shown.code == 0
    assert "probability that the graph lacks an edge" in shown.out
    found = json.loads(
        run(*learn, "--exclude-edge", "a->b", "--miss-whole-graph", 0.1, "--json").out
    )
    assert all(0 < edge["probability"] <= 1 for edge in found["edges"])
    assert set(found["edge_probability"]) == {"natural", "intervened"}
    assert found["edge_probability"]["natural"][0][1] == 0
    assert 0 <= found["whole_graph_miss_probability"] <= 1


@pytest.mark.parametrize(
    ("method", "option", "owner"),
    [
        ("csl", ["--miss-per-edge", "0.1"], "is for posterior, not for csl"),
        ("posterior", ["--bootstrap", "3"], "is for CSL, not for posterior: add --method csl"),
        ("golem", ["--exclude-edge", "a->b"], "is for CSL and posterior, not for golem"),
    ],
)
def test_options_of_other_methods(
    tmp_path: Path, rounds: Rounds, method: str, option: list[str], owner: str
) -> None:
    data = write(tmp_path / "data.csv", samples(rounds[0]))
    outcome = run("learn", data, "--method", method, *option)
    assert outcome.code == 2
    assert owner in outcome.err


def test_the_posterior_of_many_nodes_says_how_well_its_chains_agree(tmp_path: Path) -> None:
    sem = random_sem(22, seed=1, expected_degree=3)
    rng = np.random.default_rng(0)
    regimes = rng.integers(0, 2, (200, 22))
    values = sem.sample(regimes, rng)
    columns: dict[str, list[object]] = {f"x{i}": list(values[:, i]) for i in range(22)}
    columns |= {f"do:x{i}": list(regimes[:, i]) for i in range(22)}
    data = write(tmp_path / "data.csv", columns)
    learn = ("learn", data, "--method", "posterior", "--noise-mean", 1, "--seed", 2)
    shown = run(*learn)
    assert shown.code == 0
    assert "sampled: 400 orders of 4 chains, worst R-hat 1.0" in shown.out
    assert "log evidence" not in shown.out
    found = json.loads(run(*learn, "--json").out)
    assert found["log_evidence"] is None
    assert found["chains"]["converged"]


def wild(n_rare: int, **wrong: float) -> dict[str, list[object]]:
    """Forty rounds of two nodes, the last `n_rare` with an intervention; wrong values by row."""
    values = np.random.default_rng(0).normal(10, 1, (40, 2))
    for row, value in wrong.items():
        values[int(row.removeprefix("row")) - 1, 1] = value
    flags: list[object] = [int(row >= 40 - n_rare) for row in range(40)]
    return {"heat": list(values[:, 0]), "yield": list(values[:, 1]), "do:yield": flags}


def test_a_row_with_a_probable_typing_error_is_left_out(tmp_path: Path) -> None:
    data = write(tmp_path / "data.csv", {**wild(20, row17=9000.0), "note": ["x"] * 40})
    with_hole = data.read_text().replace("\n", "\n,1,0,x\n", 1)  # the row before is not counted
    data.write_text(with_hole)
    learn = ("learn", data, "--ignore", "note", "--skip-incomplete", "--json")
    told = json.loads(run(*learn).out)
    said = [words for words in told["warnings"] if "far outside" in words]
    assert len(said) == 1
    assert said[0].startswith("row 18: 'yield' is 9000, far outside the ")
    assert "left out" in said[0]
    assert told["n_rounds"] == 39
    assert "1 of 40 rows left out for a probable typing error" in told["left_out"]
    kept = json.loads(run(*learn, "--typing-errors", "kept").out)
    assert kept["n_rounds"] == 40
    assert any("edges may be wrong because of it" in words for words in kept["warnings"])


@pytest.mark.parametrize(
    "columns",
    [
        wild(2, row39=50.0, row40=90.0),  # of an intervention that was hardly played
        wild(20, row3=50.0, row9=90.0, row14=-80.0, row30=-150.0),  # a long tail
    ],
)
def test_far_values_that_may_be_right_are_kept(tmp_path: Path, columns: Any) -> None:
    told = json.loads(run("learn", write(tmp_path / "data.csv", columns), "--json").out)
    assert told["n_rounds"] == 40
    assert any("far outside" in words for words in told["warnings"])
