"""The public surface: what people and programs rely on changes only on purpose.

`data/surface.json` holds names and signatures, settings of policies, keys of what `--json` prints
and the OpenAPI document; `data/study.json` is an exported study. After a change that is meant, and
that the changelog tells:

    python tests/contracts/test_surface.py
"""

from __future__ import annotations

import contextlib
import inspect
import io
import json
import re
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

import causalarms
from causalarms import Study
from causalarms.cli.main import main
from causalarms.policies.registry import REGISTRY
from causalarms.service.api import document

SURFACE = Path(__file__).parent / "data" / "surface.json"
EXPORTED = Path(__file__).parent / "data" / "study.json"
NODES = "heat,feed,yield"


def signatures() -> dict[str, str]:
    """Of the public functions and of every public method of the public classes."""
    found = {}
    for name in sorted(set(causalarms.__all__) - {"__version__"}):
        thing = getattr(causalarms, name)
        found[name] = _signature(thing)
        for method, function in inspect.getmembers(thing, inspect.isroutine):
            if inspect.isclass(thing) and not method.startswith("_") and _ours(function):
                found[f"{name}.{method}"] = _signature(function)
    return found


def _signature(thing: Any) -> str:
    """Without the addresses of functions that are defaults."""
    return re.sub(r" at 0x[0-9a-f]+", "", str(inspect.signature(thing)))


def _ours(function: Any) -> bool:
    return str(getattr(function, "__module__", "")).startswith("causalarms")


def settings_of_policies() -> dict[str, list[str]]:
    return {
        name: sorted(REGISTRY.settings_of(REGISTRY.factory(name)))
        for name in sorted(REGISTRY.built_in)
    }


def shape(value: Any) -> Any:
    """The keys of a JSON value; of a list those of its first item."""
    if isinstance(value, dict):
        return {name: shape(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return "value"


def run(*arguments: object) -> Any:
    out, err = io.StringIO(), io.StringIO()
    with (
        patch.object(sys, "argv", ["causalarms", *map(str, arguments)]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        main()
    return json.loads(out.getvalue())


def printed() -> Iterator[tuple[str, Any]]:
    """What every command prints with --json, on a small study."""
    study = ("study",)
    yield (
        "study create",
        run(
            *study,
            "create",
            "s.db",
            "--nodes",
            NODES,
            "--intervenable",
            NODES,
            "--reward",
            "yield",
            "--json",
        ),
    )
    rng = np.random.default_rng(0)
    for number in range(24):
        asked = run(*study, "ask", "s.db", "--json")
        if number == 23:
            yield "study ask", asked
        heat, feed, reward = rng.normal(size=3)
        feed += 3 * heat  # an edge, so that its keys are seen
        measured = zip(NODES.split(","), (heat, feed, reward + 3 * feed), strict=True)
        values = [f"{n}={v:.4f}" for n, v in measured]
        told = run(*study, "tell", "s.db", number, *values, "--json")
    yield "study tell", told
    for number, act in ((24, "fail"), (25, "abandon")):
        run(*study, "ask", "s.db", "--json")
        yield f"study {act}", run(*study, act, "s.db", number, "--json")
    yield "study correct", run(*study, "correct", "s.db", 3, *values, "--json")
    yield "study note", run(*study, "note", "s.db", "a remark", "--json")
    for act in ("show", "best", "effects", "graph", "alarms", "history", "verify"):
        yield f"study {act}", run(*study, act, "s.db", "--json")
    yield "study predict", run(*study, "predict", "s.db", "--switch", "heat", "--json")
    yield "study explain", run(*study, "explain", "s.db", 20, "--json")
    yield "study export", run(*study, "export", "s.db", "--out", "log.json", "--json")
    yield "study backup", run(*study, "backup", "s.db", "copy.db", "--json")
    yield "study recover", run(*study, "recover", "s.db", "saved.db", "--json")
    yield "serve-token", run("serve-token", "s.db", "read", "somebody", "--json")
    yield "serve-token --list", run("serve-token", "s.db", "--list", "--json")
    yield "serve-token --revoke", run("serve-token", "s.db", "--revoke", "somebody", "--json")
    yield "doctor", run("doctor", "--json")
    rows = ["a,b,c,do:a,do:b,do:c"]
    for _ in range(60):
        heat, noise_b, noise_c = rng.normal(size=3)
        values = [heat, 2 * heat + noise_b, 2 * heat + noise_b + noise_c]
        rows.append(",".join(map(str, [*values, *rng.integers(0, 2, 3)])))
    Path("rounds.csv").write_text("\n".join(rows))
    yield "learn", run("learn", "rounds.csv", "--json")
    run(
        *study,
        "create",
        "i.db",
        "--nodes",
        "a,b,c",
        "--intervenable",
        "a,b,c",
        "--reward",
        "c",
        "--json",
    )
    yield "study import", run(*study, "import", "i.db", "rounds.csv", "--json")
    small = ("--nodes", 3, "--runs", 1, "--json")
    yield "simulate", run("simulate", "--horizon", 20, "--policy", "ucb", *small)
    yield "learners", run("learners", "--learner", "csl", *small)


def surface() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        return {
            "signatures": signatures(),
            "policies": settings_of_policies(),
            "json": {name: shape(value) for name, value in printed()},
            "openapi": json.loads(document()),
        }


def export(path: Path) -> None:
    """A study whose times are those of no day in particular."""
    with tempfile.TemporaryDirectory() as folder:
        study = Study.create(
            Path(folder) / "s.db",
            nodes=NODES.split(","),
            reward="yield",
            seed=1,
            factors={"heat": {"levels": ["low", "high"]}, "feed": {}},
            costs={"feed": 0.25},
            clock=lambda: datetime(2026, 1, 1, tzinfo=UTC),
        )
        rng = np.random.default_rng(0)
        for _ in range(6):
            study.tell(study.ask(), rng.normal(size=3).round(3))
        study.fail(study.ask(), "no power")
        study.correct(2, [0.5, 0.25, 1.0], "a slip")
        study.note("a remark", 3)
        study.export(path, force=True)
        study.close()


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return surface()


@pytest.mark.parametrize("part", ["signatures", "policies", "json", "openapi"])
def test_the_surface_is_what_it_was(found: dict[str, Any], part: str) -> None:
    assert found[part] == json.loads(SURFACE.read_text())[part]


def test_an_exported_study_is_what_it_was(tmp_path: Path) -> None:
    export(tmp_path / "now.json")
    assert (tmp_path / "now.json").read_text() == EXPORTED.read_text()


def test_an_exported_study_can_be_restored(tmp_path: Path) -> None:
    study = Study.import_from(EXPORTED, tmp_path / "restored.db")
    study.export(tmp_path / "again.json")
    study.close()
    assert (tmp_path / "again.json").read_text() == EXPORTED.read_text()


if __name__ == "__main__":
    SURFACE.write_text(json.dumps(surface(), indent=1, sort_keys=True) + "\n")
    export(EXPORTED)
