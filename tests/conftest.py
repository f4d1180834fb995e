"""Settings of all tests: the same examples in every run, no clock on compiled first calls.

And what the tests in a browser share; it is loaded by those only.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

settings.register_profile(
    "causalarms", deadline=None, derandomize=True, database=None, max_examples=40
)
settings.load_profile("causalarms")

# No test may read or fill the cache of whoever runs it; other processes inherit this.
os.environ["CAUSALARMS_CACHE"] = tempfile.mkdtemp(prefix="causalarms-cache-")
atexit.register(shutil.rmtree, os.environ["CAUSALARMS_CACHE"], ignore_errors=True)


@pytest.fixture(autouse=True)
def no_unexpected_warning(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Warnings are errors in tests, also those that a study does not let fail its callers."""
    inputs, found = sys.modules.get("causalarms.study.inputs"), list[str]()

    class Seen(suppress):
        def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
            swallowed = super().__exit__(kind, error, trace)
            if swallowed:
                found.append(str(error))
            return swallowed

    if inputs is not None:
        monkeypatch.setattr(inputs, "suppress", Seen)
    yield
    assert not found or "warnings_as_errors" in request.fixturenames, found


@pytest.fixture
def warnings_as_errors() -> Iterator[None]:
    """As with `-W error`; a study that warns is what the test is about."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.fixture(scope="session")
def alarmed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study that has just raised an alarm; tests copy it."""
    import numpy as np

    from causalarms import Study

    path = tmp_path_factory.mktemp("alarmed") / "line5.db"
    often = {"noise": "gaussian", "false_alarms_per_1000_rounds": 10.0}
    pump = {"pump": {"levels": ["normal", "high"]}}
    rng = np.random.default_rng(0)
    with Study.create(
        path, ["flow", "yield"], "yield", factors=pump, changes=True, policy_settings=often, seed=1
    ) as study:
        for number in range(150):
            trial = study.ask(worker="bench")
            flow = 3.0 * (trial.levels["pump"] == "high") + 3.0 * (number >= 60)
            flow += 0.3 * rng.normal()
            study.tell(trial, [flow, flow + 0.3 * rng.normal()])
            if number >= 60 and study.alarms():
                return path
    raise AssertionError("no alarm")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    from pages import launched

    yield from launched()


@pytest.fixture
def serve() -> Iterator[Any]:
    """Servers of one test; they outlive its pages."""
    from page_server import PageServer

    with ExitStack() as stack:
        yield lambda path, **options: stack.enter_context(PageServer(path, **options))


@pytest.fixture
def open_page(browser: Any, serve: Any) -> Iterator[Any]:
    from pages import Opener

    opener = Opener(browser)
    yield opener
    opener.close()
