"""What the documents name exists: modules and symbols, files, parts and options of benchmarks."""

from __future__ import annotations

import importlib
import re
from functools import cache
from pathlib import Path

import pytest
from examples import ROOT

from causalarms.changes.registry import ENTRY_POINT as DETECTORS
from causalarms.graphs.registry import ENTRY_POINT as LEARNERS

DOCUMENTS = sorted(
    [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        ROOT / "mkdocs.yml",
        ROOT / "benchmarks/README.md",
    ]
)
PLACEHOLDER = "benchmarks/NAME.py"
OTHER_PROGRAMS = {"--doctest-modules", "--no-cache"}
ENTRY_POINTS = {DETECTORS, LEARNERS}  # groups of other packages' parts: no module has this name
DOTTED = re.compile(r"\bcausalarms(?:\.[A-Za-z_]\w*)+")
PATH = re.compile(
    r"(?<![\w/.-])(?:src|tests|benchmarks|tools|docs)/[\w/.-]*\w\.(?:py|md|json|toml)\b"
)
TEST = re.compile(r"`(test_\w+)`")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*\w")
BENCHMARK = re.compile(r"(?<![\w/])(?:benchmarks/)?(\w+\.py)\b((?: [\w=.,-]+)*)")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_a_document_names_exists(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    missing = [name for name in DOTTED.findall(text) if not exists(name)]
    paths = set(PATH.findall(text)) - {PLACEHOLDER}
    missing += [path for path in paths if not (ROOT / path).is_file()]
    missing += [name for name in TEST.findall(text) if f"def {name}(" not in source_of_tests()]
    missing += [option for option in options(text) if option not in known_options()]
    missing += [problem for line in code(text) for problem in problems_of_benchmarks(line)]
    assert not missing


def test_every_benchmark_is_listed() -> None:
    listed = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
    for script in (ROOT / "benchmarks").glob("*.py"):
        for part in parts_of(script) or [""]:
            assert f"`{script.name} {part}".rstrip() + "`" in listed, (script.name, part)


def test_the_map_names_files_that_exist() -> None:
    rows = re.findall(r"^\| `(\w+)` \|(.*)$", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE)
    folders = [(ROOT / "src" / "causalarms" / name, row) for name, row in rows]
    named = [(folder, file) for folder, row in folders for file in re.findall(r"`(\w+\.py)`", row)]
    assert len(named) > 80
    assert not [(folder.name, file) for folder, file in named if not (folder / file).is_file()]


def exists(name: str) -> bool:
    """Whether a dotted name is a module, or something in one.

    >>> exists("causalarms.Study.ask"), exists("causalarms.study.snapshot")
    (True, False)
    """
    if name in ENTRY_POINTS:
        return True
    parts = name.split(".")
    for n_parts in range(len(parts), 0, -1):
        try:
            thing = importlib.import_module(".".join(parts[:n_parts]))
        except ModuleNotFoundError:
            continue
        for part in parts[n_parts:]:
            if not hasattr(thing, part):
                return False
            thing = getattr(thing, part)
        return True
    return False


@cache
def source_of_tests() -> str:
    """The text of all tests."""
    return "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))


def options(text: str) -> set[str]:
    """Options of commands in the code of a document."""
    return {option for line in code(text) for option in OPTION.findall(line)}


@cache
def known_options() -> set[str]:
    """Options of our commands, benchmarks and tools, as their source declares them."""
    sources = [*(ROOT / "src/causalarms/cli").glob("*.py"), *(ROOT / "benchmarks").glob("*.py"),
               *(ROOT / "tools").glob("*.py")]  # fmt: skip
    text = "".join(path.read_text(encoding="utf-8") for path in sources)
    return set(re.findall(r"""["/](--[a-z][a-z-]*\w)["/]""", text)) | OTHER_PROGRAMS | {"--help"}


def code(text: str) -> list[str]:
    """Lines of fenced blocks, and inline code, which may go on in the next line."""
    fenced = re.findall(r"^```.*?^```", text, re.MULTILINE | re.DOTALL)
    inline = re.findall(
        r"`([^`]+)`", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    )
    return [line for block in fenced for line in block.splitlines()] + [
        " ".join(words.split()) for words in inline
    ]


def problems_of_benchmarks(line: str) -> list[str]:
    """Scripts, parts and options in a line of code that do not exist."""
    found = []
    for name, rest in BENCHMARK.findall(line):
        script = ROOT / "benchmarks" / name
        if not script.is_file():
            continue  # `PATH` finds those that are named with their folder
        parts, words = parts_of(script), rest.split()
        if words and parts and words[0] not in parts:
            found.append(f"{name} {words[0]}")
        source = script.read_text(encoding="utf-8")
        if parts and len(words) > 1 and words[1].isalpha() and f'"{words[1]}"' not in source:
            found.append(f"{name} {words[0]} {words[1]}")
        options = [word.partition("=")[0] for word in words if word.startswith("--")]
        found += [f"{name} {option}" for option in options if f'"{option}"' not in source]
    return found


def parts_of(script: Path) -> list[str]:
    """Names that the script hands to `run_part`; none if it has no parts."""
    called = script.read_text(encoding="utf-8").partition("    run_part(")[2]
    return re.findall(r'"([\w-]+)": \w+', called.partition("}")[0])
