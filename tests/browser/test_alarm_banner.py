"""An alarm stands at the top of the page until an operator has acknowledged it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from causalarms.service.report import page as report
from causalarms.service.tokens import TokenFile
from causalarms.study import Study


def test_an_alarm_is_a_banner_until_it_is_acknowledged(
    alarmed: Path, tmp_path: Path, serve: Any, open_page: Any
) -> None:
    path = Path(shutil.copy(alarmed, tmp_path / "line5.db"))
    address = serve(path).address
    first, second = open_page(address), open_page(address)
    for page in (first, second):
        banner = page.locator(".banner.is-alarm")
        banner.get_by_text("flow seems to have changed after trial").wait_for()
        words = "results are of check trials: they are random on purpose"
        banner.get_by_text(words).wait_for()
    first.locator("#ask").click()
    first.locator("#tell").wait_for()
    first.locator("#next").get_by_text("A mechanism has changed: random settings").wait_for()
    first.locator(".banner.is-alarm").get_by_role("button", name="I have seen it").click()
    first.get_by_role("dialog").get_by_label("Note").fill("a new pump")
    first.get_by_role("button", name="Mark as seen").click()
    for page in (first, second):  # for everybody, and for good
        page.locator(".banner.is-alarm").wait_for(state="detached")
    second.reload()
    second.locator("#rewards").get_by_text("Seen: a new pump.").wait_for()
    assert second.locator(".banner.is-alarm").count() == 0


def test_who_may_not_acknowledge_sees_the_banner_too(
    alarmed: Path, tmp_path: Path, serve: Any, open_page: Any
) -> None:
    path = Path(shutil.copy(alarmed, tmp_path / "line5.db"))
    token = TokenFile(path).make("read", "visitor")
    page = open_page(f"{serve(path).address}#token={token}")
    banner = page.locator(".banner.is-alarm")
    banner.get_by_text("It stays here until an operator acknowledges it.").wait_for()
    assert banner.get_by_role("button").count() == 0
    with Study.open(path, read_only=True) as study:
        (tmp_path / "r.html").write_text(report(study, "line 5"), encoding="utf-8")
    frozen = open_page((tmp_path / "r.html").as_uri(), offline=True)
    frozen.locator(".banner.is-alarm").get_by_text("random on purpose").wait_for()
