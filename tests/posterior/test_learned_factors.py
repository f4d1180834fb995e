"""`GraphPosterior` with factors: what they act on is learned, and they are roots of the graph."""

from __future__ import annotations

import itertools
import math
import pickle
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_t

from causalarms import GraphPosterior
from causalarms.errors import DataError, SettingError
from causalarms.posterior.estimator import SCALES_WITH_FACTORS
from causalarms.posterior.prior import MechanismPrior
from causalarms.sem.factor import SHIFT, Factor
from causalarms.sem.factors import ACTING_PROBABILITY
from causalarms.tables.cells import factor_levels

NODES = ("weather", "heat", "yield")


def made(n: int = 90, seed: int = 0) -> tuple[Any, dict[str, Any]]:
    """Heat follows the load; the yield follows heat, kind and weather."""
    rng = np.random.default_rng(seed)
    load, kind = rng.choice([1, 2, 4], n), rng.choice(["x", "z"], n)
    weather = 950 + 10 * rng.normal(size=n)
    heat = 300 + 20 * load + 3 * rng.normal(size=n)
    made_of = 0.1 * heat + 4.0 * (kind == "z") + 0.2 * (weather - 950) + rng.normal(size=n)
    return np.column_stack([weather, heat, made_of]), {"load": load, "kind": kind}


def frame(values: Any) -> Any:
    import polars as pl

    return pl.DataFrame(dict(zip(NODES, values.T, strict=True)))


@pytest.fixture(scope="module")
def fitted() -> GraphPosterior:
    values, factors = made()
    return GraphPosterior(context=["weather"]).fit(frame(values), factors=factors)


def test_it_learns_what_factors_act_on(fitted: GraphPosterior) -> None:
    load, kind = fitted.effects_["load"], fitted.effects_["kind"]
    assert load["heat"] > 0.99
    assert kind["yield"] > 0.99
    assert max(load["yield"], kind["heat"]) < 0.2
    assert fitted.factor_levels_ == {"load": (1, 2, 4), "kind": ("x", "z")}


def test_factors_are_roots_of_the_graph(fitted: GraphPosterior) -> None:
    assert fitted.nodes_ == (*NODES, "load", "kind")
    assert fitted.n_features_in_ == 3
    assert set(fitted.graph_.edges) == {
        ("load", "heat"), ("kind", "yield"), ("heat", "yield"), ("weather", "yield")
    }  # fmt: skip
    assert fitted.order_[:2] == ["load", "kind"]
    for shape in (fitted.edge_probability_, fitted.weights_, fitted.adjacency_):
        assert shape.shape == (1, 5, 5)
    assert fitted.intercept_.shape == fitted.noise_std_.shape == fitted.known_.shape == (1, 5)
    assert fitted.most_probable_.order is not None
    edges = {(e["parent"], e["child"]): e["weight"] for e in fitted.result_.edges()}
    assert edges["load", "heat"] == pytest.approx(60, abs=3)  # from 1 to 4
    assert edges["kind", "yield"] == pytest.approx(4, abs=1)


def test_intercepts_are_those_of_the_first_levels(fitted: GraphPosterior) -> None:
    heat = NODES.index("heat")
    assert fitted.intercept_[0, heat] == pytest.approx(320, abs=2)
    assert fitted.noise_std_[0, heat] == pytest.approx(3, rel=0.3)


def test_draws_follow_the_levels(fitted: GraphPosterior) -> None:
    draws = fitted.draw(0, 200)
    named = fitted._roots.named
    assert named is not None
    assert named.system_nodes == fitted.system_nodes_
    heat, size = NODES.index("heat"), len(fitted.system_nodes_)
    for load in (1, 2, 4):
        row = np.array(named.intervention({"load": load}))
        played = draws.under(row)
        means = [
            np.linalg.solve(np.eye(size) - weights[0].T, intercept[0])[heat]
            for weights, intercept in zip(played.weights, played.intercept, strict=True)
        ]
        assert np.mean(means) == pytest.approx(300 + 20 * load, abs=2)


FREE = MechanismPrior().free_probability


def test_it_is_the_sum_over_all_systems() -> None:
    """Two nodes, one of them with a switch, and a factor of three levels, by brute force."""
    rng = np.random.default_rng(3)
    n, scales = 16, [1.5 * k for k in SCALES_WITH_FACTORS]
    load = rng.choice([1.0, 2.0, 5.0], n)
    switched = rng.integers(2, size=n)
    a = 0.4 * load + rng.normal(size=n)
    X = np.column_stack([a, 0.6 * a + switched + rng.normal(size=n)])
    A = np.column_stack([np.zeros(n, int), switched])
    model = GraphPosterior(noise_scale=1.0)
    model.fit(X, interventions=A, factors={"load": load})
    Z, codes = X - X.mean(axis=0), Factor("load", (1.0, 2.0, 5.0), effect=SHIFT).codes
    U = codes[np.searchsorted([1.0, 2.0, 5.0], load)]

    def score(child: int, rows: Any, parents: tuple[int, ...], acts: bool | None) -> float:
        """`acts`: whether the factor shifts the node; None: these are the rounds of one level."""
        z = np.hstack([Z[rows][:, parents], U[rows] if acts else U[rows][:, :0]])
        each = []
        for scale in scales:
            of_intercept = 100.0 if acts is not None else scale
            spread = np.eye(len(z)) + of_intercept**2 + scale**2 * z @ z.T
            density = multivariate_t(np.zeros(len(z)), spread, df=1.0).logpdf(Z[rows, child])
            each.append(float(np.atleast_1d(density)[0]))
        return math.log(0.5) + float(logsumexp(each)) - math.log(3)

    shifts, free = ACTING_PROBABILITY, FREE * ACTING_PROBABILITY
    levels = [load == level for level in (1.0, 2.0, 5.0)]
    mechanisms = [(0, 0, np.arange(n)), (1, 0, switched == 0), (1, 1, switched == 1)]
    found, by_level, total = np.zeros((2, 3, 3)), np.zeros((3, 2, 3, 3)), 0.0
    for order in ((0, 1), (1, 0)):
        options: list[list[tuple[float, Any]]] = []
        for child, regime, rows in mechanisms:
            before = order[: order.index(child)]
            possible = ((), before)[: 1 + len(before)]
            each: list[tuple[float, Any]] = []
            for parents in possible:
                for acts in (False, True):
                    weight = math.log(shifts if acts else 1 - shifts)
                    weight += math.log(1 - free) if child == 0 else 0.0
                    edges = np.zeros((4, 2, 3, 3))  # shifted, or in each level
                    edges[0, regime, list(parents), child] = 1.0
                    edges[0, regime, 2, child] = acts
                    each.append((weight + score(child, rows, parents, acts), edges))
            # x1 has regimes of its own: no factor changes more than its mean
            for of_levels in itertools.product(possible, repeat=3) if child == 0 else ():
                weight = math.log(free) - 2 * math.log(0.5 * len(possible))
                edges = np.zeros((4, 2, 3, 3))
                edges[1:, regime, 2, child] = 1.0
                for place, parents in enumerate(of_levels):
                    weight += score(child, levels[place], parents, None)
                    edges[1 + place, regime, list(parents), child] = 1.0
                each.append((weight, edges))
            options.append(each)
        for system in itertools.product(*options):
            weight = math.exp(sum(part[0] for part in system) + 60)
            total += weight
            found += weight * sum(part[1][0] for part in system)
            by_level += weight * sum(part[1][1:] for part in system)
    found += by_level.max(axis=0)
    assert model.edge_probability_ == pytest.approx(found / total, abs=1e-9)
    assert 0.1 < model.effects_["load"]["x0"] < 0.999


def test_units_and_offsets_do_not_matter() -> None:
    values, factors = made()
    plain = GraphPosterior().fit(values, factors=factors)
    values[:, 1] = 1000 * values[:, 1] + 5e5
    factors["load"] = 7.0 * factors["load"] - 3
    other = GraphPosterior().fit(values, factors=factors)
    assert other.edge_probability_ == pytest.approx(plain.edge_probability_, abs=1e-9)
    assert other.weights_[0, 3, 1] == pytest.approx(1000 * plain.weights_[0, 3, 1], rel=1e-9)


def test_the_order_of_rows_levels_and_factors_does_not_matter() -> None:
    values, factors = made()
    plain = GraphPosterior().fit(values, factors=factors)
    mixed = np.random.default_rng(1).permutation(len(values))
    renamed = np.where(factors["kind"] == "x", "zz", "a")
    other = GraphPosterior().fit(
        values[mixed], factors={"kind": renamed[mixed], "load": factors["load"][mixed]}
    )
    for name in factors:
        assert other.effects_[name] == pytest.approx(plain.effects_[name], abs=1e-9)


def test_a_switch_of_a_node_and_a_factor_are_learned_together() -> None:
    rng = np.random.default_rng(2)
    A = np.column_stack([rng.integers(2, size=200), np.zeros(200, int)])
    kind = rng.choice(["x", "z"], 200)
    a = np.where(A[:, 0] == 1, 3.0, 0.0) + rng.normal(size=200)
    X = np.column_stack([a, a + 2.0 * (kind == "z") + rng.normal(size=200)])
    model = GraphPosterior().fit(X, interventions=A, factors={"kind": kind})
    assert model.regimes_.tolist() == [2, 1, 1]
    assert model.effects_["kind"]["x1"] > 0.99
    assert model.edge_probability_[0, 0, 1] > 0.99
    assert model.known_[:, 0].all()


def test_one_factor_at_a_time_is_enough() -> None:
    """Pairs of factors that were never moved together must not explain what each one does."""
    rng = np.random.default_rng(4)
    which = rng.integers(6, size=900)
    factors = {f"drug{k}": np.where(which == k, "on", "off") for k in range(1, 6)}
    a = np.array([0, 1, -2, 3, -1, 0])[which] + rng.normal(size=900)
    b = a - 2.0 * (which == 5) + rng.normal(size=900)
    effects = GraphPosterior().fit(np.column_stack([a, b]), factors=factors).effects_
    assert min(effects[f"drug{k}"]["x0"] for k in (1, 2, 3, 4)) > 0.99
    assert effects["drug5"]["x1"] > 0.99
    assert effects["drug5"]["x0"] < 0.2
    assert max(effects[f"drug{k}"]["x1"] for k in (1, 2, 3, 4)) < 0.2


def test_what_two_factors_do_together_is_learned_if_they_were_moved_together() -> None:
    rng = np.random.default_rng(4)
    one, two = rng.integers(2, size=(2, 300))
    a = np.where((one == 1) & (two == 1), 5.0, 0.0) + rng.normal(size=300)
    X = np.column_stack([a, rng.normal(size=300)])
    model = GraphPosterior().fit(X, factors={"one": one, "two": two})
    assert model.edge_probability_[0, 2:, 0].min() > 0.99
    assert model.noise_std_[0, 0] == pytest.approx(1.0, abs=0.1)  # not what the sum leaves over


def test_what_factors_explain_is_not_noise() -> None:
    rng = np.random.default_rng(4)
    load = np.repeat([1, 2, 3], 10)
    X = np.column_stack([30.0 * load + rng.normal(size=30), rng.normal(size=30)])
    model = GraphPosterior().fit(X, factors={"load": load})
    assert model.noise_std_[0, 0] == pytest.approx(1.0, rel=0.5)
    assert model.weights_[0, 2, 0] == pytest.approx(60, abs=2)


def test_prior_knowledge_of_factors_is_exact() -> None:
    values, factors = made()
    table = frame(values)

    def effects(**settings: Any) -> dict[str, dict[str, float]]:
        found: dict[str, dict[str, float]] = (
            GraphPosterior(**settings).fit(table, factors=factors).effects_
        )
        return found

    assert effects(excluded=[("load", "yield")])["load"]["yield"] == 0.0
    assert effects(required=[("kind", "heat")])["kind"]["heat"] == 1.0
    tiers = effects(tiers=[["weather", "heat"], ["kind", "yield"]])
    assert tiers["kind"]["weather"] == tiers["kind"]["heat"] == 0.0 < tiers["load"]["heat"]


def test_only_context_causes_context() -> None:
    values, factors = made()
    model = GraphPosterior(context=["weather", "heat"], required=[("weather", "heat")])
    model.fit(frame(values), factors=factors)
    into = model.edge_probability_[0, :, :2]
    assert into[2:].max() == 0.0
    assert into[0, 1] == 1.0


def test_context_without_factors() -> None:
    rng = np.random.default_rng(0)
    a = rng.normal(size=80)
    X = np.column_stack([a + rng.normal(size=80), a])
    with pytest.warns(UserWarning, match="no node's regime varies"):
        model = GraphPosterior(context=["x1"], method="exact").fit(X)
    assert model.edge_probability_[0, 0, 1] == 0.0
    assert model.edge_probability_[0, 1, 0] > 0.9
    assert model.effects_ == {}


def test_it_can_be_stored(fitted: GraphPosterior) -> None:
    again = pickle.loads(pickle.dumps(fitted))
    assert again.effects_ == fitted.effects_
    assert (again.draw(0, 3).weights == fitted.draw(0, 3).weights).all()


def test_the_fit_of_mechanisms_is_checked_with_factors(fitted: GraphPosterior) -> None:
    from causalarms.graphs.inputs import as_rounds

    values, factors = made()
    rounds = as_rounds(frame(values), None)
    checks = fitted.check_mechanisms(rounds, factor_levels(factors))
    assert [check.node for check in checks] == list(NODES)
    assert checks[1].explained > 0.95  # of heat, by the load


N = len(made()[0])
ODD: dict[str, tuple[Any, str]] = {
    "one level": ({"load": [3] * N}, "factor 'load' is 3 in all 90 rows"),
    "missing": ({"load": [1, None] + [2] * (N - 2)}, "row 1 of factor 'load' is missing"),
    "nan": ({"load": [1.0, 2.0, math.nan] * (N // 3)}, "row 2 of factor 'load' is missing"),
    "mixed": (
        {"load": [1, "high"] * (N // 2)},
        "factor 'load' has text and numbers: 'high' in row 1, 1 in row 0",
    ),
    "infinite": ({"load": [1, math.inf] * (N // 2)}, "row 1 of factor 'load' is inf"),
    "object": ({"load": [1, [2]] * (N // 2)}, "row 1 of factor 'load' is .* neither text"),
    "many": ({"load": list(range(40)) * 7}, "280 rows for 90 rows of samples"),
    "node": ({"heat": [1, 2] * (N // 2)}, "factor 'heat' has the name of a node"),
    "nearly": ({"het": [1, 2] * (N // 2)}, "there is no node 'het'; did you mean 'heat'"),
    "letters": ({"Heat": [1, 2] * (N // 2)}, "did you mean 'heat'"),
    "number": (7, "factors are a frame"),
    "name": ({"": [1, 2] * (N // 2)}, "a name that is text"),
    "empty": ({}, "factors have no rows"),
}


@pytest.mark.parametrize("case", ODD)
def test_odd_factors_are_refused(case: str) -> None:
    factors, message = ODD[case]
    with pytest.raises((DataError, SettingError), match=message):
        GraphPosterior().fit(frame(made()[0]), factors=factors)


def test_too_many_levels_are_refused() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(DataError, match="factor 'load' has 300 levels, at most 256: round"):
        GraphPosterior().fit(rng.normal(size=(300, 2)), factors={"load": np.arange(300)})


@pytest.mark.parametrize(
    ("settings", "told", "message"),
    [
        ({"context": ["rain"]}, {}, "context: there is no node 'rain'"),
        ({"context": ["load"]}, {}, "context: 'load' is a factor"),
        ({"context": "heat"}, {}, "context must be a list of nodes"),
        (
            {"context": ["heat"], "required": [("load", "heat")]}, {},
            "edge load -> heat is required, and heat is context",
        ),
        ({"required": [("heat", "load")]}, {}, "load is a factor: nothing that is measured"),
        ({"excluded": [("fan", "heat")]}, {}, "there is no node 'fan'"),
        ({"method": "sampled"}, {}, "'sampled' cannot learn what factors act on"),
        ({"miss_probability_whole_graph": 0.1}, {}, "miss_probability_whole_graph cannot be used"),
        ({}, {"noise_mean": 1.0}, "noise_mean cannot be used with factors"),
        ({"memory_limit": 1000}, {}, "and so does every factor"),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_refused(
    settings: dict[str, Any], told: dict[str, Any], message: str
) -> None:
    values, factors = made()
    with pytest.raises((SettingError, DataError), match=message):
        GraphPosterior(**settings).fit(frame(values), factors=factors, **told)


def test_context_that_was_moved_is_refused() -> None:
    values, _ = made()
    A = np.zeros(values.shape, int)
    A[7, 1] = 1
    with pytest.raises(DataError, match=r"'heat' is context, .* intervention on it in row 7"):
        GraphPosterior(context=["heat"]).fit(frame(values), interventions=A)


def test_booleans_are_off_and_on() -> None:
    found = factor_levels({"fan": [True, False, np.True_]})
    assert found.levels == {"fan": ("off", "on")}
    assert found.numbers.tolist() == [[1], [0], [1]]


def test_draws_of_free_nodes_keep_the_intercepts_of_all_levels() -> None:
    rng = np.random.default_rng(0)
    load = np.repeat([1, 2, 4], 20)
    model = GraphPosterior().fit(rng.normal(50.0, 1.0, (60, 2)), factors={"load": load})
    drawn = model.posterior_.draw(np.random.default_rng(1), 4)
    size = len(model.system_nodes_)
    by = np.tile(np.arange(size), (4, 1))
    by[:2, 1] = 2  # the first column of the load
    free = drawn._replace(by=by, intercept=drawn.intercept + 1.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(model.posterior_, "draw", lambda *_: free)
        found = model.draw(1, 4)
    assert found.by is by
    assert found.intercept[:2, :, 1].all()
    assert found.intercept[2:, 0, 1].all()
    assert not found.intercept[2:, 1:, 1].any()
    assert not found.intercept[:, 1:, 0].any()


def _slopes(of_x: float, of_z: float) -> GraphPosterior:
    rng = np.random.default_rng(5)
    kind = rng.choice(["x", "z"], 240)
    a = 10 * rng.normal(size=240)
    b = np.where(kind == "x", of_x, of_z) * a + 3.0 * (kind == "x") + rng.normal(size=240)
    # without other factors the direction would be open
    model = GraphPosterior(excluded=[("x1", "x0")])
    return model.fit(np.column_stack([a, 100 * b + 5000]), factors={"kind": kind})


def test_a_factor_that_changes_slopes_is_found_and_no_other() -> None:
    free = _slopes(2.0, -1.0)
    assert free.posterior_.free_probability[0, 1] > 0.999
    assert free.posterior_.free_probability[0, 0] < 0.3  # its spread may differ by chance
    assert free.effects_["kind"]["x1"] > 0.99
    draws, named = free.draw(0, 100), free._roots.named
    assert named is not None
    for level, slope in (("x", 200.0), ("z", -100.0)):
        row = np.array(named.intervention({"kind": level}))
        assert draws.under(row).weights[:, 0, 0, 1].mean() == pytest.approx(slope, abs=5)
    assert _slopes(2.0, 2.0).posterior_.free_probability.max() < 0.05


def test_the_graph_has_edges_of_factors_by_the_probability_that_it_shows() -> None:
    """Also of a node to which another factor gives a mechanism per level: one wild value does."""
    rng = np.random.default_rng(3)
    factors = {
        name: rng.choice(levels, 120) for name, levels in (("a", [1, 2, 4]), ("b", ["x", "z"]))
    }
    X = rng.normal(500.0 + 3.0 * factors["a"][:, None], 1.0, (120, 2))
    X[7, 0] *= 1000
    model = GraphPosterior().fit(X, factors=factors)
    assert model.posterior_.free_probability.max() > 0.99
    assert (model.adjacency_ == (model.edge_probability_ > 0.5)).all()


@pytest.mark.filterwarnings("always::causalarms.errors.CausalArmsWarning")
def test_factors_that_act_only_together_are_named(recwarn: pytest.WarningsRecorder) -> None:
    """No edge says it: what each of them does by itself, over the levels of the other, is 0."""
    rng = np.random.default_rng(3)
    factors = {name: rng.integers(2, size=200) for name in ("one", "two", "three")}
    noise = rng.normal(size=(200, 2))
    X = noise + 3.0 * np.outer(factors["one"] == factors["two"], [0, 1])
    GraphPosterior().fit(X, factors=factors)
    (said,) = [str(warning.message) for warning in recwarn]
    assert said.startswith("what 'one' and 'two' do to 'x1' together is more than the sum of both")
    recwarn.clear()
    GraphPosterior().fit(noise + np.outer(factors["one"], [0, 3]), factors=factors)
    assert not recwarn.list
