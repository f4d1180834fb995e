"""`learners` and `plot`; own parts on the command line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from command import run

from causalarms import random_sem

STORED = Path(__file__).parents[1] / "simulation" / "data" / "results-1.jsonl"
SMALL = ("--rounds", 60, "--runs", 2, "--jobs", 1)
MODULE = """
import numpy as np
from causalarms import random_sem
from causalarms.graphs import CSL
from causalarms.policies.simple import RandomPolicy
from causalarms.simulation import World

class Patient(CSL):
    def __init__(self, k=5):
        super().__init__(k=k)

class Broken(CSL):
    def __init__(self):
        super().__init__()

    def fit(self, X, y=None, *, interventions=None, noise_mean=None):
        raise ValueError("gave up")

class Lazy(RandomPolicy):
    pass

def chain(rng):
    return World(random_sem(3, seed=rng, edge_probability=1.0), noise="uniform")

def narrow(rng, shape):
    return rng.uniform(-1, 1, shape)

NUMBER = 3
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module of a user, in the folder in which the command is given."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    name = f"own_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    return name


def test_learners_are_compared_kept_and_drawn(tmp_path: Path) -> None:
    path, picture = tmp_path / "l.jsonl", tmp_path / "l.svg"
    told = ("learners", "--nodes", 3, *SMALL, "--learner", "csl", "--learner", "golem,l1=0.1")
    record = json.loads(run(*told, "--results", path, "--out", picture, "--json").out)
    assert [row["learner"] for row in record["learners"]] == ["csl", "golem"]
    for row in record["learners"]:
        assert (row["runs"], row["failed"]) == (2, 0)
        for metric in ("false_negative", "precision", "recall", "nshd"):
            interval = row[metric]
            assert 0 <= interval["low"] <= interval["value"] <= interval["high"] <= 1
        assert row["seconds"]["value"] > 0
    assert [c["shown"] for c in record["settings"]["learners"]] == ["random", "none"]
    before = path.read_bytes()
    again = run(*told, "--results", path)
    assert "graph-FN rate" in again.out
    assert path.read_bytes() == before
    other = run("learners", "--nodes", 3, *SMALL, "--learner", "golem", "--results", path)
    assert (other.code, path.read_bytes()) == (1, before)
    assert "other settings for 'golem'" in other.err
    assert run("plot", path, "--out", tmp_path / "again.png").code == 0
    wrong = run("plot", path, "--out", tmp_path / "again.png", "--what", "regret")
    assert "no picture 'regret'" in wrong.err


def test_own_parts_by_module_and_name(own: str) -> None:
    learners = ("--learner", f"{own}:Patient,k=4", "--learner", f"{own}:Broken")
    systems = ("--systems", f"{own}:chain")
    outcome = run("learners", *SMALL, *learners, *systems)
    assert outcome.code == 0
    assert "2 of 2" in outcome.out
    assert "Broken failed first with: ValueError: gave up" in outcome.err
    policies = (
        "--policy",
        f"{own}:Lazy",
        "--policy",
        f"explore-then-commit,n_explore=20,learner={own}:Patient,k=4",
    )
    told = ("simulate", "--horizon", 60, "--runs", 1, "--jobs", 1, *policies)
    record = json.loads(run(*told, *systems, "--json").out)
    assert [p["policy"] for p in record["policies"]] == ["Lazy", "explore-then-commit"]
    assert record["settings"]["world"]["made by"] == f"{own}:chain"
    record = json.loads(run(*told, "--nodes", 3, "--noise", f"laplace,{own}:narrow", "--json").out)
    assert record["settings"]["noise"] == ["laplace", f"{own}:narrow"]


def test_learn_takes_learners_of_others(own: str, tmp_path: Path) -> None:
    sem, rng = random_sem(3, seed=1), np.random.default_rng(0)
    A = rng.integers(0, 2, (80, 3))
    table = np.hstack([sem.sample(A, rng), A])
    names = "a,b,c,do:a,do:b,do:c"
    np.savetxt(tmp_path / "rounds.csv", table, delimiter=",", header=names, comments="")
    told = ("learn", "rounds.csv", "--json", "--out", "graph.csv", "--method")
    theirs, ours = (json.loads(run(*told, m).out) for m in (f"{own}:Patient", "csl"))
    strip = [{k: e[k] for k in ("regime", "parent", "child", "weight")} for e in ours["edges"]]
    assert theirs["edges"] == strip
    assert theirs["method"] == f"{own}:Patient"
    for method, message in (
        (f"{own}:Broken", "cannot learn from this: ValueError: gave up"),
        (f"{own}:NUMBER", "which makes nothing"),
        (
            "cls",
            "there is no method 'cls'; there are posterior, csl, csl-nw, csl-joint, golem, dagma",
        ),
    ):
        outcome = run(*told, method)
        assert outcome.code == 1
        assert message in outcome.err
    assert "--tier is for CSL" in run(*told, f"{own}:Patient", "--tier", "a").err


def test_systems_from_files_batches_and_stops(tmp_path: Path) -> None:
    files = [random_sem(3, seed=s).save(tmp_path / f"{s}.json") for s in (1, 2)]
    told = ("simulate", "--horizon", 60, "--runs", 2, "--jobs", 1, "--policy", "posterior")
    systems = [part for path in files for part in ("--system", path)]
    batch = ("--batch", 3, "--stop-probability", 0.6, "--policy", "random")
    record = json.loads(run(*told, *systems, *batch, "--json").out)
    stops = {row["policy"]: row["stopped"] for row in record["policies"]}
    assert stops == {"posterior": 1.0, "random": 0.0}
    assert record["policies"][0]["rounds_to_stop"] < 60
    assert record["settings"]["batch"] == 3
    assert "after rounds" in run(*told, *systems, *batch).out


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (("--systems", "nothing"), 2, "not of the form MODULE:FUNCTION"),
        (("--systems", "no_such:thing"), 1, "systems 'no_such:thing' cannot be loaded"),
        (("--systems", "math:pi"), 1, "which makes nothing"),
        (("--systems", "math:sqrt"), 1, "gives no system for repetition 0"),
        (("--systems", "math:sqrt", "--nodes", 3), 2, "--nodes is not for --systems"),
        (("--system", "missing.json"), 1, "missing.json"),
        (("--system", "a.json", "--systems", "a:b"), 2, "leave one out"),
        (("--noise", "pink"), 1, "unknown noise 'pink'"),
        (("--bend", "wavy"), 1, "unknown bend 'wavy'"),
        (("--weights", "heavy"), 1, "weights must be one of separated, uniform, not 'heavy'"),
        (("--learner", "csl,shown=much"), 1, "shown must be one of random, none, all-or-none"),
        (("--learner", "clever"), 1, "unknown learner 'clever'"),
        (("--learner", "csl,k=0"), 1, "k must be"),
        (("--out", "picture.bmp"), 1, "unknown ending '.bmp'"),
    ],
)
def test_what_makes_no_sense_is_refused(
    options: tuple[object, ...], code: int, message: str
) -> None:
    outcome = run("learners", *SMALL, *options)
    assert outcome.code == code
    assert message in " ".join(outcome.err.split())
    assert "Traceback" not in outcome.err


def test_a_results_file_draws_itself(tmp_path: Path) -> None:
    path = Path(shutil.copy(STORED, tmp_path))
    for name, what in (("a.png", "regret"), ("a.pdf", "normalised-regret"), ("a.svg", "regret")):
        outcome = run("plot", path, "--out", tmp_path / name, "--what", what, "--only", "windowed")
        assert (outcome.code, outcome.err) == (0, "")
    assert path.read_bytes() == STORED.read_bytes()
    svg = (tmp_path / "a.svg").read_text()
    assert run("plot", path, "--out", tmp_path / "a.svg", "--only", "windowed").code == 0
    assert (tmp_path / "a.svg").read_text() == svg
    for options, message in (
        (("--out", path), "unknown ending"),
        (("--out", tmp_path / "b.png", "--only", "nobody"), "no results of 'nobody'; there are"),
    ):
        refused = run("plot", path, *options)
        assert refused.code == 1
        assert message in refused.err
    assert not (tmp_path / "b.png").exists()
    assert "holds no results" in run("plot", __file__, "--out", tmp_path / "b.png").err
    assert "cannot read" in run("plot", tmp_path / "no", "--out", tmp_path / "b.png").err
