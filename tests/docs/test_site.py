"""The site: every page has one place in it, and `make docs` is what the README says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]


def pages_in(part: Any) -> list[str]:
    if isinstance(part, str):
        return [part]
    values = part if isinstance(part, list) else part.values()
    return [page for value in values for page in pages_in(value)]


def test_every_page_has_one_place() -> None:
    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]
    there = sorted(str(page.relative_to(ROOT / "docs")) for page in ROOT.glob("docs/**/*.md"))
    assert sorted(pages_in(nav)) == there


def test_nothing_is_loaded_from_another_host() -> None:
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    assert settings["theme"]["font"] is False
    assert "offline" in settings["plugins"]
    (script,) = settings["extra"]["polyfills"]  # `offline` adds its own unless it finds this name
    assert "iframe-worker" in script
    assert (ROOT / "docs" / script).is_file()
