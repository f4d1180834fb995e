"""Settings of all tests: the same examples in every run, no clock on compiled first calls.

And what the tests in a browser share; it is loaded by those only.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
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
