"""A report is the page without a server: from a file, offline, with nothing to write."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from causalarms.service.report import PAGE
from causalarms.service.report import page as report
from causalarms.study import Study

NODES = ["heat", "flow", "yield"]


@pytest.mark.filterwarnings("ignore::causalarms.errors.FarValueWarning")
def test_a_report_is_read_from_the_disk(tmp_path: Path, open_page: Any) -> None:
    rng = np.random.default_rng(3)
    values = rng.normal(size=(3, 60))
    values[2] += 2 * values[0]
    values[2, 30] = 1e3
    with Study.create(None, NODES, "yield", intervenable=NODES, seed=2) as study:
        study.import_rounds(
            dict(zip(NODES, values, strict=True)),
            interventions=dict(zip(NODES, rng.integers(0, 2, size=(3, 60)), strict=True)),
        )
        study.note("</script><script>alert(1)</script>", trial=59)
        (tmp_path / "r.html").write_text(report(study, "<b>line 3</b>"), encoding="utf-8")
    page = open_page((tmp_path / "r.html").as_uri(), offline=True)
    assert page.title() == "<b>line 3</b>"
    page.locator("#best").get_by_text("Sure that it is the best").wait_for()
    assert page.locator("#next, #what-if, #ask").count() == 0
    page.locator("#rewards circle").nth(59).wait_for()
    page.locator("#graph svg").nth(1).wait_for()
    page.get_by_text("causalarms study correct FILE 30 NODE=VALUE ...").wait_for()
    page.get_by_role("button", name="Details of trial 59").click()
    page.get_by_role("dialog").get_by_text("</script><script>alert(1)</script>").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Older").click()
    page.get_by_text("10 to 34 of 60 trials").wait_for()
    page.get_by_role("row", name="10 imported").wait_for()


@pytest.mark.parametrize(
    ("direction", "word"), [("maximize", "given up"), ("minimize", "too much")]
)
def test_a_small_reward_is_not_given_up(
    tmp_path: Path, open_page: Any, direction: str, word: str
) -> None:
    rng = np.random.default_rng(3)
    heat = rng.integers(0, 2, 40)
    with Study.create(
        None, ["x", "waste"], "waste", direction, factors={"heat": {}}, seed=2
    ) as study:
        study.import_rounds({
            "x": rng.normal(size=40).tolist(), "do:heat": heat.tolist(),
            "waste": (rng.normal(size=40) + 5 * heat).tolist(),
        })  # fmt: skip
        (tmp_path / "r.html").write_text(report(study, "line 3"), encoding="utf-8")
    page = open_page((tmp_path / "r.html").as_uri(), offline=True)
    page.locator("#best").get_by_text(f"waste {word} per round").first.wait_for()


def test_the_browser_is_told_at_once_which_modules_it_will_need() -> None:
    listed = re.findall(
        r'<link rel="modulepreload" href="(.*)" />', (PAGE / "index.html").read_text()
    )
    modules = [file.relative_to(PAGE).as_posix() for file in PAGE.rglob("*.js")]
    assert sorted(listed) == sorted(set(modules) - {"app.js"})


def test_what_is_vendored_is_what_is_recorded() -> None:
    recorded = (PAGE / "vendor" / "README.md").read_text()
    code = (PAGE / "vendor" / "lit-html.js").read_bytes()
    assert hashlib.sha256(code).hexdigest() in recorded
    assert "BSD-3-Clause" in code.decode()
    assert "Redistribution" in (PAGE / "vendor" / "lit-html.LICENSE").read_text()


def test_nothing_of_another_host_is_named_in_the_page() -> None:
    for file in PAGE.glob("*.*"):
        text = file.read_text().replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"""(?:https?:)?//\w+\.\w+|@import|url\(""", text), file.name
