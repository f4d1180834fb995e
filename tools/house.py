"""Numbers of the source: what one call enters, how many files, lines, parameters and comments.

    python tools/house.py            a table for people
    python tools/house.py --json     the same for machines
    python tools/house.py --enters ask    the modules that one `ask` enters, in order

Every call is made once before it is counted: bodies of classes and decorators that run while a
module is imported for the first time are not what the call enters.

`tests/packaging/test_house.py` holds these numbers as a ratchet: they may only fall.
"""

from __future__ import annotations

import argparse
import ast
import json
import sys
import tempfile
import threading
import tokenize
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np

SOURCE = Path(__file__).parents[1] / "src" / "causalarms"
PAGE = SOURCE / "service" / "page"
PAGE_FILES = (".js", ".css", ".html", ".svg")
MOST_PARAMETERS = 8
MOST_LINES = 500
NODES = ("heat", "feed", "pressure", "purity", "colour", "yield")
BACKGROUND_THREADS = ("reader", "explainer")  # of the service: nobody's reply waits for them
ROUNDS_BEFORE = 20  # past the first rounds, which are random and need no model


# -- what a call enters ----------------------------------------------------------------------------


@contextmanager
def entered() -> Iterator[dict[str, None]]:
    """Modules whose code runs inside, in all threads, in the order of first entry.

    Kernels are machine code and are not seen: they run inside the module that calls them.
    """
    found: dict[str, None] = {}
    known: dict[CodeType, str | None] = {}

    def notice(frame: FrameType, event: str, _: Any) -> None:
        if event != "call" or threading.current_thread().name in BACKGROUND_THREADS:
            return
        code = frame.f_code
        if code not in known:
            known[code] = _module_of(code)
        if (name := known[code]) is not None:
            found[name] = None

    threading.setprofile(notice)  # threads that are started from here on
    sys.setprofile(notice)
    try:
        yield found
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def _module_of(code: CodeType) -> str | None:
    path = Path(code.co_filename)
    if not path.is_relative_to(SOURCE) or code.co_name == "<module>":
        return None
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts)


def _study(path: Path | None) -> Any:
    from causalarms import Study, random_sem
    from causalarms.study import learner

    # Whether a call also keeps what was learned would else depend on the speed of the machine.
    learner.KEEP_AFTER_SECONDS = float("inf")
    sem = random_sem(len(NODES), seed=1)
    study = Study.create(path, NODES, "yield", intervenable=NODES, seed=1)
    rng = np.random.default_rng(1)
    for _ in range(ROUNDS_BEFORE):
        _play(study, sem, rng)
    return study, sem, rng


def _values(trial: Any, sem: Any, rng: np.random.Generator) -> Any:
    return sem.sample([list(trial.intervention.values())], rng)[0]


def _play(study: Any, sem: Any, rng: np.random.Generator) -> None:
    trial = study.ask()
    study.tell(trial, _values(trial, sem, rng))


def _of_a_study(act: str) -> list[str]:
    """An ask, a tell or a best of a study in a file, which has played some rounds."""
    with tempfile.TemporaryDirectory() as folder:
        study, sem, rng = _study(Path(folder) / "study.db")
        if act == "ask":  # the result told last is learned from here
            with entered() as names:
                study.ask()
        elif act == "tell":
            trial = study.ask()
            values = _values(trial, sem, rng)
            with entered() as names:
                study.tell(trial, values)
        else:
            study.best()
            _play(study, sem, rng)
            with entered() as names:
                study.best()
        study.close()
    return list(names)


def _learn() -> list[str]:
    from click.testing import CliRunner

    from causalarms import random_sem
    from causalarms.cli.main import cli

    sem, rng = random_sem(6, seed=1), np.random.default_rng(1)
    settings = rng.integers(0, 2, (200, 6))
    values = sem.sample(settings, rng)
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "rounds.csv"
        heads = [*sem.nodes, *(f"do:{node}" for node in sem.nodes)]
        rows = np.column_stack([values, settings]).tolist()
        table.write_text("\n".join(",".join(map(str, row)) for row in [heads, *rows]))
        CliRunner().invoke(cli, ["learn", str(table), "--json"])  # modules are imported here
        with entered() as names:
            told = CliRunner().invoke(cli, ["learn", str(table), "--json"])
    assert told.exit_code == 0, told.output
    return list(names)


def _simulated_round() -> list[str]:
    from causalarms import make_policy, random_sem

    sem, rng = random_sem(6, seed=1), np.random.default_rng(1)
    policy = make_policy("posterior", n_nodes=6)
    for _ in range(ROUNDS_BEFORE):
        a = policy.suggest(rng).intervention
        policy.tell(a, sem.sample(a[None], rng)[0])
    with entered() as names:
        a = policy.suggest(rng).intervention
        policy.tell(a, sem.sample(a[None], rng)[0])
    return list(names)


def _http_result() -> list[str]:
    """PUT of a result until its answer; what the service computes afterwards is not counted."""
    sys.path.insert(0, str(SOURCE.parents[1] / "tests" / "service"))
    from served import served

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "study.db"
        study, sem, rng = _study(path)
        trial = study.ask()
        values = dict(zip(NODES, _values(trial, sem, rng).tolist(), strict=True))
        study.close()
        with entered() as names, served(path) as call:
            names.clear()  # what starting the service entered
            reply = call(
                "PUT", f"trials/{trial.number}/result", {"state": "told", "values": values}
            )
            found = list(names)
    assert reply.status == 201, reply.text
    return found


CALLS: dict[str, Callable[[], list[str]]] = {
    "ask": lambda: _of_a_study("ask"),
    "tell": lambda: _of_a_study("tell"),
    "best": lambda: _of_a_study("best"),
    "learn": _learn,
    "simulated round": _simulated_round,
    "HTTP result": _http_result,
}


# -- files, lines, parameters, comments ------------------------------------------------------------


def tree_numbers() -> dict[str, float]:
    files = sorted(SOURCE.rglob("*.py"))
    sizes = {file: file.read_text().count("\n") for file in files}
    lines = sum(sizes.values())
    return {
        "Python files": len(files),
        "page files": sum(file.suffix in PAGE_FILES for file in PAGE.rglob("*")),
        "Python lines": lines,
        "lines of study/": sum(n for file, n in sizes.items() if "study" in file.parts),
        f"files over {MOST_LINES} lines": sum(n > MOST_LINES for n in sizes.values()),
        f"functions with more than {MOST_PARAMETERS} parameters": len(long_signatures()),
        "percent of comment lines": round(100 * sum(map(_comments, files)) / lines, 1),
    }


def long_signatures() -> list[str]:
    """Functions with too many parameters; people call constructors and commands by name."""
    return [
        f"{file.relative_to(SOURCE)}:{node.lineno} {node.name} {count}"
        for file in sorted(SOURCE.rglob("*.py"))
        if "cli" not in file.parts
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name not in ("__init__", "create")
        and (count := _parameters(node)) > MOST_PARAMETERS
    ]


def _parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    names = [a.arg for a in node.args.posonlyargs + node.args.args + node.args.kwonlyargs]
    return len(names) - (names[:1] in (["self"], ["cls"]))


def _comments(file: Path) -> int:
    with file.open("rb") as content:
        return sum(
            token.type == tokenize.COMMENT and not token.line[: token.start[1]].strip()
            for token in tokenize.tokenize(content.readline)
        )


def numbers() -> dict[str, float]:
    """All of them, by name."""
    return tree_numbers() | {f"modules entered by {name}": len(f()) for name, f in CALLS.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description="Numbers of the source.")
    parser.add_argument("--json", action="store_true", help="for machines")
    parser.add_argument("--enters", choices=CALLS, help="the modules that one such call enters")
    parser.add_argument("--long-signatures", action="store_true", help="list them")
    given = parser.parse_args()
    if given.enters:
        print("\n".join(CALLS[given.enters]()))
    elif given.long_signatures:
        print("\n".join(long_signatures()))
    elif given.json:
        print(json.dumps(numbers(), indent=1))
    else:
        for name, number in numbers().items():
            print(f"{name:48} {number:>8}")


if __name__ == "__main__":
    main()
