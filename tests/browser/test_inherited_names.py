"""Nodes called like what every object of JavaScript inherits go through the whole page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from page_server import PageServer

from causalarms.sem.ensembles import random_sem
from causalarms.study import Study

NODES = ["constructor", "__proto__", "toString", "hasOwnProperty", "valueOf"]
FACTORS: dict[str, dict[str, Any]] = {
    "isPrototypeOf": {"levels": ["constructor", "__proto__", "valueOf"], "acts_on": NODES[:2]},
    "__proto__": {},
    "toString": {},
    "constructor": {},
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageServer]:
    path = tmp_path_factory.mktemp("inherited") / "line3.db"
    sem = random_sem(len(NODES), seed=5)
    settings: dict[str, Any] = {"factors": FACTORS, "policy": "csl-ucb-joint", "seed": 2}
    with Study.create(path, NODES, "valueOf", **settings) as study:
        rng = np.random.default_rng(1)
        chosen = {
            name: rng.choice(f.get("levels", ["off", "on"]), 600) for name, f in FACTORS.items()
        }
        regimes = [
            study.settings.named.intervention(dict(zip(chosen, row, strict=True)))
            for row in zip(*chosen.values(), strict=True)
        ]
        values = sem.sample(np.minimum(regimes, 1).astype(np.uint8), rng)
        study.import_rounds(dict(zip(NODES, values.T, strict=True)), interventions=chosen)
    with PageServer(path) as running:
        yield running


def test_names_that_objects_inherit_are_only_names(server: PageServer, open_page: Any) -> None:
    page = open_page(server.address, viewport={"width": 1280, "height": 900})
    page.get_by_text("live", exact=True).wait_for()
    page.locator("#ask").click()
    fields = page.locator("#tell [name^=tell-]")
    fields.first.wait_for()
    page.get_by_label("then ask for the next").uncheck()
    assert [field.input_value() for field in fields.all()] == [""] * len(NODES)
    page.get_by_text("Something else was set than asked").click()
    played = page.locator("#tell select")
    with Study.open(server.path, read_only=True) as study:
        (number,) = study.ledger().pending
        asked = study.settings.named.levels(study.ledger().trials[number].intervention)
    assert [select.input_value() for select in played.all()] == [str(asked[f]) for f in FACTORS]
    for i, field in enumerate(fields.all()):
        field.fill(str(i + 0.5))
    page.locator("#tell").get_by_label("isPrototypeOf").select_option("__proto__")
    page.reload()  # what was typed is kept by the browser
    fields.first.wait_for()
    assert [field.input_value() for field in fields.all()] == ["0.5", "1.5", "2.5", "3.5", "4.5"]
    page.get_by_role("button", name="Tell the result").click()
    page.get_by_role("button", name="Ask for the next trial").wait_for()
    with Study.open(server.path, read_only=True) as study:
        record = study.ledger().trials[number]
        levels = study.settings.named.levels(record.intervention)
    assert record.values == (0.5, 1.5, 2.5, 3.5, 4.5)
    assert levels == asked | {"isPrototypeOf": "__proto__"}

    picture = page.locator("#graph svg.graph").first
    picture.wait_for()
    titles = [text.partition(":")[0] for text in picture.locator("title").all_text_contents()]
    assert {*NODES} <= {*titles}
    what_if = page.locator("#what-if")
    what_if.get_by_role("button", name="Every factor at its first level").click()
    what_if.get_by_text("every factor at its first level:").wait_for()
    assert [s.input_value() for s in what_if.locator("select").all()] == [
        "constructor", "off", "off", "off"
    ]  # fmt: skip
    what_if.locator("[name=what-if-3]").select_option("on")
    what_if.get_by_text("constructor on").wait_for()
    names = what_if.locator("tbody th").all_text_contents()
    assert [name.strip() for name in names] == NODES
    assert not any("NaN" in text for text in what_if.locator("tbody td").all_text_contents())

    row = page.locator("#trials tbody tr").first
    assert "4.5" in row.inner_text()
    row.get_by_role("button", name="Details of").click()
    page.locator("dl.values").wait_for()
    assert page.locator("dl.values dt").all_text_contents() == NODES
    page.keyboard.press("Escape")
    row.get_by_role("button", name="Correct").click()
    dialog = page.locator("dialog[open] input[name^=correct-]")
    dialog.first.wait_for()
    assert [field.input_value() for field in dialog.all()] == ["0.5", "1.5", "2.5", "3.5", "4.5"]
    assert "native code" not in page.locator("body").inner_text()
