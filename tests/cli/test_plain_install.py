"""Without any extra: help answers, the main jobs run, and the rest names the extra to install."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pytest
from plain_install import run_plain

from causalarms import Study
from causalarms.extras import EXTRAS, has_extra

MAIN = "from causalarms.cli.main import main; main()"
HELP = """
import click
from causalarms.cli.main import cli

def commands(group, context, path):
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        yield [*path, name], command
        if isinstance(command, click.Group):
            yield from commands(command, context, [*path, name])

context = click.Context(cli)
found = list(commands(cli, context, []))
for path, command in found:
    with click.Context(command, info_name=path[-1], parent=context) as inner:
        assert "--help" in command.get_help(inner), path
print(len(found))
"""


@pytest.fixture
def rounds(tmp_path: Path) -> Path:
    (tmp_path / "rounds.parquet").touch()  # the extra is looked for before the content
    path = tmp_path / "rounds.csv"
    table = np.random.default_rng(0).normal(size=(60, 2)).round(3)
    path.write_text("a,b\n" + "".join(f"{a},{b}\n" for a, b in table))
    return path


def test_the_table_of_extras_is_that_of_the_package() -> None:
    root = Path(__file__).parents[2]
    declared = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    for extra, packages in EXTRAS.items():
        names = [text.split(">=")[0] for text in declared["optional-dependencies"][extra]]
        assert sorted(names) == sorted(packages)
        assert has_extra(extra)


def test_help_of_every_command_needs_no_extra(tmp_path: Path) -> None:
    done = run_plain(tmp_path, "-c", HELP)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 25


@pytest.mark.parametrize(
    ("extra", "command"),
    [
        ("plot", "learn rounds.csv --out graph.png"),
        ("plot", "simulate --runs 1 --nodes 3 --horizon 50 --out o"),
        ("plot", "learners --runs 1 --nodes 3 --out o.png"),
        ("plot", "plot results.jsonl --out o.png"),
        ("plot", "reproduce --runs 1 --out o"),
        ("serve", "serve study.db --port 0"),
        ("serve", "study report study.db --out report.html"),
        ("parquet", "learn rounds.parquet"),
        ("parquet", "study export study.db --out trials.parquet"),
        ("parquet", "study import study.db rounds.parquet"),
        ("dask", "simulate --runs 1 --nodes 3 --horizon 50 --engine dask"),
    ],
)
def test_what_needs_an_extra_names_it(
    extra: str, command: str, rounds: Path, tmp_path: Path
) -> None:
    Study.create(tmp_path / "study.db", nodes=["a", "b"], reward="b", seed=1).close()
    before = sorted(path.name for path in tmp_path.iterdir())
    done = run_plain(tmp_path, "-c", MAIN, *command.split())
    assert done.returncode == 1, done.stderr
    assert f"pip install 'causalarms[{extra}]'" in done.stderr
    assert done.stderr.startswith("error: ")
    assert len(done.stderr.splitlines()) == 1
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "site") == before


def test_the_demo_does_its_job_without_pictures(tmp_path: Path) -> None:
    done = run_plain(tmp_path, "-c", MAIN, "demo", "--rounds", "200")
    assert done.returncode == 0, done.stderr
    assert "Best intervention found by posterior" in done.stdout
    assert "pip install 'causalarms[plot]'" in done.stderr
    written = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert written == ["graph.json", "system.json"]


def test_clients_and_tokens_need_no_extra(tmp_path: Path) -> None:
    Study.create(tmp_path / "study.db", nodes=["a", "b"], reward="b", seed=1).close()
    done = run_plain(tmp_path, "-c", MAIN, "serve-token", "study.db", "read", "eve")
    assert done.returncode == 0, done.stderr
    script = "from causalarms import RemoteStudy; RemoteStudy('http://127.0.0.1:9/', token='x')"
    done = run_plain(tmp_path, "-c", script)
    assert "RemoteStudyError" in done.stderr, done.stderr
