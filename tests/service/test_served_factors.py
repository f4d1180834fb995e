"""Context, effects and the graph of one setting through the API, and in the client."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from served import Served, served, until

from causalarms.errors import StudyError, TooEarlyError
from causalarms.service.remote import RemoteStudy
from causalarms.study import Study

NODES = ["weather", "flow", "yield"]
FACTORS: dict[str, Any] = {
    "load": {"levels": [1, 2.5, 4]},
    "pump": {"acts_on": ["flow"], "effect": "free"},
}


def test_failures_and_new_levels_are_seen_by_who_follows(tmp_path: Path) -> None:
    with Study.create(tmp_path / "s.db", NODES, "yield", factors=FACTORS, seed=1) as study:
        tell_some(study, 12)
        with (
            served(tmp_path / "s.db") as site,
            RemoteStudy(f"http://127.0.0.1:{site.port}") as remote,
        ):
            assert np.isnan(remote.best().failing)
            trial = remote.ask(worker="v")
            remote.fail(trial)
            best = study.best()
            assert remote.best() == best
            assert 0 < best.failing < 1
            assert remote.predict([{"load": 4}]) == study.predict([{"load": 4}])
            study.correct(3, [950.0, 1.0, 2.0], "typed wrong")
            study.change_settings(new_levels={"load": [5]}, forbidden=[{"load": 1}])
            # Another process wrote this: the service notices by itself, a moment later.
            until(lambda: site.service.snapshot.number == study.seen)
            assert remote.best() == study.best()
            assert site("GET", "trials/3").json["corrections"][0]["levels"].keys() == {
                "load",
                "pump",
            }
            assert remote.ask(worker="v").levels["load"] != 1
            assert next(f["levels"] for f in site("GET", "study").json["factors"]) == [1, 2.5, 4, 5]


def tell_some(study: Study, rounds: int) -> None:
    rng = np.random.default_rng(0)
    for _ in range(rounds):
        trial = study.ask(worker="w")
        weather = 950 + 10 * rng.normal()
        flow = 3 * rng.normal() + (5 if trial.levels["pump"] == "on" else 0)
        load = 2 * float(trial.levels["load"])
        study.tell(trial, [weather, flow, flow + load + 0.2 * (weather - 950) + rng.normal()])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    path: Path = tmp_path_factory.mktemp("factors") / "s.db"
    with Study.create(path, NODES, "yield", factors=FACTORS, context=["weather"], seed=1) as study:
        tell_some(study, 30)
    with served(path) as site:
        yield site


@pytest.fixture
def remote(site: Served, monkeypatch: pytest.MonkeyPatch) -> Iterator[RemoteStudy]:
    """A client that must not learn the log itself."""
    study = RemoteStudy(f"http://127.0.0.1:{site.port}")

    def follow(*_: Any) -> None:
        raise AssertionError("the client learns what the service knows")

    monkeypatch.setattr(study, "_follow", follow)
    with study:
        yield study


def test_what_is_best_today(site: Served, remote: RemoteStudy) -> None:
    with Study.open(site.service.path, read_only=True) as study:
        for context in (None, {}, {"weather": 980.0}):
            assert remote.best(context=context) == study.best(context=context)
        assert remote.best(context={"weather": 980.0}).reward > remote.best().reward + 3
    answer = site("GET", "best?context=" + quote(json.dumps({"weather": 980.0}))).json
    assert answer["reward"] == remote.best(context={"weather": 980.0}).reward
    # not known today, as the library has it
    unknown = site("GET", "best?context=" + quote('{"weather":null}')).json
    assert unknown == site("GET", "best").json
    asked = {"interventions": [{}], "context": {"weather": None}}
    usual = site("POST", "predictions", asked | {"context": None}).json
    assert site("POST", "predictions", asked).json == usual


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ('best?context={"flow":1}', "'flow' is not context of this study; context: weather"),
        ("best?context=weather", "context is 'weather'; it is a JSON object"),
        ('best?context={"weather":"wet"}', "it is a JSON object: today's values"),
        ('best?context={"weather":1,"weather":2}', "'weather' is given 2 times"),
        ('graph?levels={"load":3}', "factor 'load' has no level 3"),
        ('graph?levels={"lode":1}', "did you mean 'load'?"),
        ("graph?levels=[1]", "levels is '[1]'; it is a JSON object: factors with their levels"),
    ],
)
def test_wrong_words_in_the_address(site: Served, path: str, words: str) -> None:
    name, text = path.split("=", 1)
    answer = site("GET", f"{name}={quote(text)}")
    assert answer.status in (400, 422)
    assert words in answer.json["detail"]


@pytest.mark.filterwarnings("ignore::causalarms.errors.FarValueWarning")
def test_context_that_may_be_a_typing_error_is_remarked_on(
    site: Served, remote: RemoteStudy
) -> None:
    far = {"weather": 98000.0}
    with Study.open(site.service.path, read_only=True) as study:
        here = study.best(context=far).remarks
    assert "'weather' is said to be 98000, far outside" in here[-1].text
    answer = site("GET", "best?context=" + quote(json.dumps(far))).json
    assert [remark["text"] for remark in answer["remarks"]] == [remark.text for remark in here]
    assert remote.best(context=far).remarks == here


def test_effects(site: Served, remote: RemoteStudy) -> None:
    with Study.open(site.service.path, read_only=True) as study:
        assert remote.effects() == study.effects()
    answer = site("GET", "effects").json
    assert [effect["factor"] for effect in answer["effects"]] == ["load", "pump"]
    assert answer["effects"][0]["acts_on"]["yield"] > 0.9
    assert set(answer["effects"][0]["reward"]) == {"2.5", "4"}


def test_the_graph_of_one_setting(site: Served, remote: RemoteStudy) -> None:
    with Study.open(site.service.path, read_only=True) as study:
        for levels in (None, {}, {"load": 4, "pump": "on"}):
            here, there = study.graph(levels), remote.graph(levels)
            assert there.edges() == here.edges()
            assert (there.nodes, there.order) == (here.nodes, here.order)
            assert (there.regime_names, there.factors) == (here.regime_names, ("load",))
            assert there.context == ("weather",)
            assert (there.known == here.known).all()
    whole = site("GET", "graph?above=0").json
    one = site("GET", "graph?above=0&levels=" + quote('{"pump":"on"}')).json
    places = [[(node["name"], node["x"], node["y"]) for node in g["nodes"]] for g in (whole, one)]
    assert places[0] == places[1]
    assert [node["kind"] for node in one["nodes"]] == ["context", "measured", "measured", "factor"]


def test_the_study_says_what_is_context(site: Served) -> None:
    assert site("GET", "study").json["context"] == ["weather"]


def test_too_early(tmp_path: Path) -> None:
    Study.create(tmp_path / "s.db", NODES, "yield", factors=FACTORS).close()
    with served(tmp_path / "s.db") as site:
        assert site("GET", "effects").json["why"].startswith("no round has been told yet")
        assert site("GET", "graph?levels={}").json["why"]
        with RemoteStudy(f"http://127.0.0.1:{site.port}") as study:
            for call in (study.effects, study.best, lambda: study.graph({})):
                with pytest.raises(TooEarlyError):
                    call()


def test_a_client_refuses_wrong_context_at_once(remote: RemoteStudy) -> None:
    with pytest.raises(StudyError, match="'flow' is not context"):
        remote.best(context={"flow": 1.0})


def test_a_correction_by_parts_does_not_undo_what_others_corrected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Study.create(tmp_path / "s.db", NODES, "yield", factors=FACTORS, seed=1) as study:
        tell_some(study, 1)
        with (
            served(tmp_path / "s.db") as site,
            RemoteStudy(f"http://127.0.0.1:{site.port}") as remote,
        ):
            stale = remote.ledger()
            study.correct(0, {"flow": 5.0})
            monkeypatch.setattr(remote, "ledger", lambda: stale)
            remote.correct(0, {"yield": 7.0})
            assert (study.ledger().trials[0].values or ())[1:] == (5.0, 7.0)
