"""`doctor`: what it finds, what it complains of."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import run

from causalarms.cli import doctor
from causalarms.version import __version__


def test_it_says_the_same_to_people_and_machines() -> None:
    record = json.loads(run("doctor", "--json").out)
    assert record["causalarms"] == __version__
    assert record["packages"]["numpy"] is not None
    assert set(record["extras"]) == {"dask", "plot", "parquet", "serve"}
    assert record["cache"]["writable"] is True
    text = run("doctor").out
    assert record["packages"]["numpy"] in text
    assert record["cache"]["folder"] in text


def test_it_names_a_cache_that_cannot_be_written_and_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file" / "cache"))
    monkeypatch.setattr(doctor, "NEEDED", ("numpy", "no-such-package"))
    monkeypatch.setattr("shutil.which", lambda name: None)
    outcome = run("doctor")
    assert outcome.code == 0
    assert "problem: no-such-package is not installed" in outcome.out
    assert "set NUMBA_CACHE_DIR to a folder you may write to" in outcome.out
    record = json.loads(run("doctor", "--json").out)
    assert record["cache"] == {"folder": str(tmp_path / "file" / "cache"), "writable": False}
    assert record["browser"] is None


def test_it_notices_an_installation_of_another_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_version", lambda package: "0.0.1")
    problems = json.loads(run("doctor", "--json").out)["problems"]
    assert [p for p in problems if p.startswith("the installed package says 0.0.1")]
