"""A policy whose learned graphs mix into a cycle believes nothing for now; the study goes on."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from study_rounds import result

from causalarms import Study, random_sem
from causalarms.errors import TooEarlyError
from causalarms.service.remote import RemoteStudy

sys.path.append(str(Path(__file__).parents[1] / "service"))
from served import served

SEM = random_sem(5, seed=2)
MIXED = "the learned graphs of the regimes mix into a cycle"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "s.db"
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2, (300, 5))
    x = SEM.sample(a.astype(np.uint8), rng)
    columns = {node: x[:, i].tolist() for i, node in enumerate(SEM.nodes)}
    columns |= {f"do:{node}": a[:, i].tolist() for i, node in enumerate(SEM.nodes)}
    with Study.create(
        found, SEM.nodes, SEM.nodes[-1], policy="csl-ucb", intervenable=SEM.nodes, seed=1
    ) as study:
        study.import_rounds(columns)
    return found


def test_what_is_not_believed_is_said(path: Path) -> None:
    with Study.open(path) as study:
        for ask in (study.best, study.graph, study.predict, study.effects):
            with pytest.raises(TooEarlyError, match=MIXED):
                ask()
        trial = study.ask()
        assert MIXED in study.explain(trial)["text"]
        study.tell(trial, result(trial, SEM))


def test_such_a_study_is_served(path: Path) -> None:
    with served(path) as site, RemoteStudy(f"http://127.0.0.1:{site.port}") as remote:
        for name in ("best", "graph", "effects"):
            assert MIXED in site("GET", name).json["why"]
        with pytest.raises(TooEarlyError, match=MIXED):
            remote.best()
        trial = remote.ask()
        remote.tell(trial, result(trial, SEM))
        assert len(remote.ledger().trials) == 301
