"""The search of the site is a worker, which a page that was opened as a file may not start."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from pages import PATIENCE

SCRIPT = Path(__file__).parents[2] / "docs/assets/iframe-worker.js"
WORKER = "addEventListener('message', ({ data }) => postMessage(`found ${data}`))"
PAGE = """<!doctype html><p id="answer"></p><script src="iframe-worker.js"></script><script>
const worker = new Worker("worker.js")
worker.addEventListener("message", ({ data }) => (answer.textContent = data))
worker.postMessage("regret")
</script>"""


def test_a_page_that_is_opened_as_a_file_has_an_answer(browser: Any, tmp_path: Path) -> None:
    shutil.copy(SCRIPT, tmp_path)
    (tmp_path / "worker.js").write_text(WORKER)
    (tmp_path / "index.html").write_text(PAGE)
    page = browser.new_page()
    page.goto((tmp_path / "index.html").as_uri())
    page.wait_for_function("answer.textContent === 'found regret'", timeout=PATIENCE)
    page.close()
