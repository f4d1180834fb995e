"""The page and its server: gone and back, behind a proxy, with and without rights, with much."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
from page_server import PageServer

from causalarms.service import threads
from causalarms.service.tokens import TokenFile
from causalarms.study import Study
from causalarms.study.explain import explain
from causalarms.study.records import Explanation

NODES = ["heat", "flow", "yield"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with Study.create(tmp_path / "line3.db", NODES, "yield", policy="random", seed=2) as study:
        study.tell(study.ask(worker="bench"), [1.0, 2.0, 3.0])
        study.ask(worker="bench")
    return tmp_path / "line3.db"


@pytest.fixture
def server(path: Path, serve: Any) -> PageServer:
    found: PageServer = serve(path)
    return found


def test_a_server_that_was_gone_is_found_again_without_a_gap(
    server: PageServer, open_page: Any
) -> None:
    open_page.expected = ("ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE", "ERR_EMPTY", "ERR_NETWORK")
    page = open_page(server.address)
    page.get_by_text("live", exact=True).wait_for()
    page.locator("[name=tell-0]").fill("4")
    page.locator("[name=tell-2]").fill("6")  # without the reward it would ask first
    server.stop()
    page.get_by_text("The server does not answer.").wait_for()
    page.get_by_role("button", name="Tell the result").click()
    page.locator("#tell-problem").get_by_text("What you typed is kept").wait_for()
    with Study.open(server.path) as study:  # what happens meanwhile is not missed
        study.tell(study.ask(worker="night shift"), [1.0, 2.0, 99.0])
    server.start()
    page.get_by_text("live", exact=True).wait_for()
    page.get_by_text("The server does not answer.").wait_for(state="hidden")
    page.get_by_text("The server is back: tell the result again.").wait_for()
    page.get_by_role("row", name="2 told").get_by_text("99").wait_for()
    assert page.locator("[name=tell-0]").input_value() == "4"
    page.get_by_role("button", name="Tell the result").click()
    page.get_by_role("row", name="1 told").wait_for()


def test_a_form_is_kept_while_something_is_wrong_with_the_file(
    server: PageServer, open_page: Any
) -> None:
    open_page.expected = ("503",)
    page = open_page(server.address)
    page.get_by_text("live", exact=True).wait_for()
    fields = page.locator("#tell input[name^=tell-]")
    for number in range(3):
        fields.nth(number).fill(str(number + 4))
    content = server.path.read_bytes()
    server.path.write_bytes(b"")  # as a copy that went wrong does
    page.get_by_role("button", name="Tell the result").click()
    page.locator("#tell-problem").get_by_text("is empty").wait_for()
    assert [fields.nth(number).input_value() for number in range(3)] == ["4", "5", "6"]
    server.path.write_bytes(content)
    while not page.request.get(f"{server.address.rstrip('/')}/api/v1/healthz").ok:
        page.wait_for_timeout(50)
    page.get_by_role("button", name="Tell the result").press("Enter")
    page.get_by_role("row", name="1 told").wait_for()


def test_tokens_open_the_page_and_decide_what_it_offers(
    path: Path, serve: Any, open_page: Any
) -> None:
    tokens = TokenFile(path)
    reader, operator = tokens.make("read", "guest"), tokens.make("operator", "me")
    open_page.expected = ("401", "503")
    server = serve(path)
    page = open_page(f"{server.address}#token={reader}")
    page.get_by_text("read only").wait_for()
    assert page.url == server.address
    assert page.locator("#next, #ask, #tell").count() == 0
    names = ("Correct", "Tell", "Abandon", "Add a note", "Seen")
    for name in names:
        assert page.get_by_role("button", name=name).count() == 0
    page.get_by_role("button", name="Details of trial 0").click()
    page.get_by_role("dialog").get_by_text("yield").first.wait_for()
    page.keyboard.press("Escape")
    page.reload()
    page.get_by_text("read only").wait_for()
    assert page.evaluate("document.cookie") == ""
    stranger = open_page(server.address, wait=False)
    stranger.get_by_label("Token").fill("ca_wrong")
    stranger.keyboard.press("Enter")
    stranger.get_by_role("alert").wait_for()
    stranger.get_by_label("Token").fill(operator)
    stranger.keyboard.press("Enter")
    stranger.locator("#tell").wait_for()
    tokens.revoke("guest")  # an open page ends, too
    page.get_by_text("This study needs a token").wait_for()
    page.get_by_label("Token").fill(operator)
    page.keyboard.press("Enter")
    page.get_by_text("live", exact=True).wait_for()
    tokens.path.write_bytes(b"")
    page.get_by_role("alert").get_by_text("line3.db.tokens").wait_for()


def test_a_worker_asks_and_tells_under_the_name_of_its_token(
    path: Path, serve: Any, open_page: Any
) -> None:
    token = TokenFile(path).make("worker", "rig 2")
    page = open_page(f"{serve(path).address}#token={token}")
    page.get_by_role("button", name="Ask for the next trial").click()  # not the trial of the bench
    page.get_by_text("Trial 2 · rig 2").wait_for()
    assert page.get_by_label("My name").count() == 0
    assert page.get_by_role("button", name="Correct").count() == 0
    page.get_by_label("then ask for the next").uncheck()
    page.locator("[name=tell-2]").fill("4")
    page.get_by_role("button", name="Tell the result").click()
    page.get_by_role("row", name="2 told").wait_for()


def test_the_page_works_below_another_path(path: Path, serve: Any, open_page: Any) -> None:
    token = TokenFile(path).make("operator", "me")
    server = serve(path, root_path="/lab/line3")
    page = open_page(f"{server.address}#token={token}")
    page.get_by_text("live", exact=True).wait_for()
    page.get_by_label("then ask for the next").uncheck()
    page.locator("[name=tell-2]").fill("4")
    page.get_by_role("button", name="Tell the result").click()
    page.get_by_role("row", name="1 told").wait_for()


def test_other_sites_can_neither_read_nor_write(server: PageServer, browser: Any) -> None:
    """A name of theirs that leads here, and a form of theirs that is sent here."""
    context = browser.new_context()
    page = context.new_page()
    port = urlsplit(server.address).port
    answer = page.goto(f"http://elsewhere.test:{port}/api/v1/study")
    assert answer.status == 421
    assert "--allow-host elsewhere.test" in answer.json()["detail"]
    page.goto("about:blank")
    page.evaluate(
        """(address) => fetch(`${address}api/v1/notes`, {
          method: "POST", mode: "no-cors", headers: { "Content-Type": "text/plain" },
          body: JSON.stringify({ text: "from elsewhere" }),
        }).catch(() => null)""",
        server.address,
    )
    context.close()
    with Study.open(server.path, read_only=True) as study:
        assert study.ledger().notes == []


def test_a_page_of_another_site_may_link_to_the_page_but_not_to_the_api(
    server: PageServer, browser: Any
) -> None:
    """Requests to the API would make every visitor's browser ask a local service to compute."""
    body = f"""<a href="{server.address}api/v1/study">api</a> <a href="{server.address}">page</a>"""

    class Elsewhere(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: object) -> None:
            pass

    context = browser.new_context()
    page = context.new_page()
    with ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere) as site:
        threading.Thread(target=site.serve_forever, daemon=True).start()
        with page.expect_response("**/api/v1/study") as answer:
            page.goto(f"http://elsewhere.test:{site.server_port}/")
            page.get_by_text("api").click()
        assert answer.value.status == 403
        page.go_back()
        page.get_by_text("page").click()
        page.locator("#checks").wait_for()
        context.close()
        site.shutdown()


def test_seven_tabs_are_all_alive(server: PageServer, open_page: Any) -> None:
    """A browser keeps six connections to a host: a hidden tab must not hold one."""
    context = open_page.context()
    context.add_init_script(
        """
        let hidden = false;
        Object.defineProperty(document, "hidden", { get: () => hidden });
        window.hide = (now) => {
          hidden = now;
          document.dispatchEvent(new Event("visibilitychange"));
        };
        """
    )
    tabs: list[Any] = []
    for _ in range(7):
        for tab in tabs:
            tab.evaluate("hide(true)")
        tabs.append(open_page(server.address, context=context))
        tabs[-1].get_by_text("live", exact=True).wait_for()
    with Study.open(server.path) as study:
        study.tell(1, [4.0, 5.0, 6.0])
    tabs[-1].get_by_role("row", name="1 told").wait_for()
    tabs[-1].evaluate("hide(true)")
    tabs[0].evaluate("hide(false)")
    tabs[0].get_by_role("row", name="1 told").wait_for()


def test_ten_thousand_trials_are_a_page_like_any_other(
    tmp_path: Path, serve: Any, open_page: Any
) -> None:
    rng = np.random.default_rng(3)
    with Study.create(
        tmp_path / "long.db", NODES, "yield", policy="random", seed=2, intervenable=NODES
    ) as study:
        study.import_rounds(
            dict(zip(NODES, rng.normal(size=(3, 10_000)), strict=True)),
            interventions=dict(zip(NODES, rng.integers(0, 2, size=(3, 10_000)), strict=True)),
        )
    server = serve(tmp_path / "long.db")
    sizes: list[int] = []
    context = open_page.context()
    context.on("requestfinished", lambda r: sizes.append(r.sizes()["responseBodySize"]))
    page = open_page(server.address, context=context)
    page.get_by_text("live", exact=True).wait_for()
    page.get_by_role("row", name="9999 imported").wait_for()
    page.locator("#rewards circle").first.wait_for()
    assert sum(sizes) < 150_000
    assert page.locator("#app *").count() < 5000
    assert page.locator("#rewards circle").count() <= 500
    page.get_by_role("button", name="Older").click()
    page.get_by_role("row", name="9974 imported").wait_for()
    page.get_by_role("button", name="First", exact=True).click()
    page.get_by_text("0 to 24 of 10,000 trials").wait_for()
    page.get_by_role("row", name="24 imported").wait_for()
    assert page.locator("#trials tbody tr").count() == 25


def test_a_dialog_that_is_closed_does_not_make_the_server_work(
    path: Path, serve: Any, open_page: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Study.open(path) as study:
        study.tell(1, [1.0, 2.0, 3.0])
        study.tell(study.ask(worker="bench"), [1.0, 2.0, 3.0])
    begun: list[int] = []
    may = threading.Event()

    def waiting(ledger: Any, number: int, policy: Any) -> Explanation:
        begun.append(number)
        assert may.wait(60)
        return explain(ledger, number, policy)

    monkeypatch.setattr(threads, "explain", waiting)
    server = serve(path)
    page = open_page(server.address)
    try:
        with page.expect_request("**/trials/0/explanation"):
            page.get_by_role("button", name="Details of trial 0").click()
        while not begun:  # a busy machine may be slower than the key that takes it back
            page.wait_for_timeout(10)
        page.keyboard.press("Escape")
        page.wait_for_function("() => document.querySelector('dialog[open]') === null")
        # the first has begun; the second waits for it and is taken back
        with page.expect_event("requestfailed", lambda r: r.url.endswith("/1/explanation")):
            with page.expect_request("**/trials/1/explanation"):
                page.get_by_role("button", name="Details of trial 1").click()
            page.keyboard.press("Escape")
        page.get_by_role("button", name="Details of trial 2").click()
        page.get_by_role("dialog").get_by_text("yield").first.wait_for()
    finally:
        may.set()
    page.get_by_role("dialog").get_by_text("Why").first.wait_for()
    assert 1 not in begun
