"""What `causalarms` exports says in its docstring what each of its parameters is."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import causalarms
from causalarms.policies.registry import POLICIES

WITH_METHODS = ("CSL", "DAGMA", "GOLEM", "GraphPosterior", "LinearSEM", "Study")
NOT_TOLD = {"self", "X", "y"}  # X and y are scikit-learn's: the data, and nothing
CODE = re.compile(r"`([^`]+)`")
LISTED = re.compile(r"^(\w+(?:, \w+)*)  ", re.MULTILINE)  # name, two spaces, what it is


def exported() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Functions and classes by name, then public methods."""
    for name in sorted(set(causalarms.__all__) - {"__version__"}):
        thing = getattr(causalarms, name)
        yield name, thing
        if name in WITH_METHODS:
            for method, function in inspect.getmembers(thing, inspect.isroutine):
                ours = str(getattr(function, "__module__", "")).startswith("causalarms")
                if ours and not method.startswith("_"):
                    yield f"{name}.{method}", function


def told(text: str) -> set[str]:
    """Names in backquotes, and those that begin the lines of a list."""
    found = CODE.findall(text) + LISTED.findall(text)
    return {word for part in found for word in re.findall(r"\w+", part)}


EXPORTED = dict(exported())


@pytest.mark.parametrize("name", EXPORTED)
def test_every_parameter_is_told(name: str) -> None:
    thing = EXPORTED[name]
    names = set(inspect.signature(thing).parameters) - NOT_TOLD
    missing = names - told(inspect.getdoc(thing) or "")
    assert not missing, f"{name} does not tell {sorted(missing)}"


CLASSES = {name: made for name, made in POLICIES.items() if inspect.isclass(made)}


@pytest.mark.parametrize("name", CLASSES)
def test_every_setting_of_a_policy_is_told(name: str) -> None:
    """In its own docstring or in that of a class it extends."""
    policy = CLASSES[name]
    if name == "posterior":
        pytest.skip("its settings are the fields of a record")
    text = "\n".join(inspect.cleandoc(part.__doc__ or "") for part in policy.__mro__)
    missing = set(inspect.signature(policy).parameters) - told(text)
    assert not missing, f"{name} does not tell {sorted(missing)}"
