"""One browser for all tests; every page is watched for errors and for requests elsewhere."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = [
    "--no-sandbox", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run", "--host-resolver-rules=MAP elsewhere.test 127.0.0.1",
]  # fmt: skip
WORKER = "bench"  # whose browser it is, unless a test says otherwise
PATIENCE = 30_000  # milliseconds; far more than is needed, for machines that do much else


def launched() -> Iterator[Any]:
    """The browser, for as long as anybody needs it; a reason to skip where there is none."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="no playwright: pip install 'causalarms[test]'"
    )
    with playwright.sync_playwright() as driver:
        found = next(filter(None, map(shutil.which, NAMES)), None)
        if found is None and Path(driver.chromium.executable_path).exists():
            found = driver.chromium.executable_path
        if found is None:
            pytest.skip("no browser: apt-get install chromium, or playwright install chromium")
        browser = driver.chromium.launch(executable_path=found, args=FLAGS)
        yield browser
        browser.close()


class Opener:
    """Opens pages, and in the end says what went wrong in them."""

    def __init__(self, browser: Any) -> None:
        self._browser = browser
        self._contexts: list[Any] = []
        self.errors: list[str] = []
        self.expected: tuple[str, ...] = ()  # parts of messages that a test provokes

    def __call__(self, address: str, *, context: Any = None, wait: bool = True, **how: Any) -> Any:
        context = context or self.context(**how)
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        home = urlsplit(address)._replace(fragment="")

        def hear(message: Any) -> None:
            if message.type in ("error", "warning"):
                self.errors.append(message.text)

        def see(request: Any) -> None:
            parts = urlsplit(request.url)
            outside = parts.netloc != home.netloc or not parts.path.startswith(home.path)
            if parts.scheme not in ("data", "blob") and outside:
                self.errors.append(f"a request to somewhere else: {request.url}")

        page.on("console", hear)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", see)
        page.goto(address)
        if wait:
            page.locator("#checks").wait_for()
        return page

    def wait_for_focus(self, field: Any) -> None:
        from playwright.sync_api import expect

        expect(field).to_be_focused(timeout=PATIENCE)

    def context(self, *, worker: str = WORKER, **how: Any) -> Any:
        """A browser of its own, of this `worker`."""
        self._contexts.append(self._browser.new_context(**how))
        name = f"localStorage.setItem('causalarms:worker', {json.dumps(worker)})"
        self._contexts[-1].add_init_script(f"try {{ {name}; }} catch {{}}")
        return self._contexts[-1]

    def close(self) -> None:
        for context in self._contexts:
            context.close()
        wrong = [e for e in self.errors if not any(part in e for part in self.expected)]
        assert not wrong, wrong
