"""A report: the page and the answers of the API at one moment, in one HTML file."""

from __future__ import annotations

import base64
import hashlib
import secrets
from html import escape
from pathlib import Path
from typing import Any

import msgspec

from causalarms.files import Mark, printable
from causalarms.service import records
from causalarms.service.live import LogSnapshot
from causalarms.service.views import (
    FarValues,
    Layout,
    Views,
    checks_view,
    compute_views,
    setting_view,
    shown_graph,
    study_summary,
    trial_row,
)
from causalarms.study import Study
from causalarms.study.ledger import PENDING
from causalarms.study.log import decode, now

PAGE = Path(__file__).with_name("page")
MAX_TRIALS = 2000
MIN_PROBABILITY = 0.05  # of the edges that the page can show
READER = records.Caller("read", "", False)
GENERATOR = '<meta name="generator" content="causalarms study report">'
MARK = Mark("`causalarms study report`", b"<!doctype html>", GENERATOR.encode())


def frozen_answers(study: Study, name: str) -> dict[str, Any]:
    """By the address that the page asks for; a live service gives the same answers."""
    views = compute_views(study, Layout(), FarValues().of(study.ledger()))
    snapshot = snapshot_of(study, views.as_of)
    at = now().isoformat(timespec="seconds")
    rows = [trial_row(snapshot, views, record) for record in snapshot.ledger.trials[-MAX_TRIALS:]]
    return {
        "study": study_summary(name, snapshot, views, READER, at),
        "best": views.best,
        "graph": shown_graph(views.graph, MIN_PROBABILITY),
        **_of_best(views),
        "effects": views.effects,
        "alarms": records.Alarms(views.as_of, views.watches, views.alarms),
        "rewards": views.rewards,
        "checks": checks_view(views),
        "pending": records.Trials([row for row in rows if row.state == PENDING], None, views.as_of),
        "trials": records.Trials(rows, None, views.as_of),
        "notes": records.Notes(snapshot.ledger.notes, None, views.as_of),
    }


def _of_best(views: Views) -> dict[str, Any]:
    """The graph of the best setting, if there is one: a report cannot ask for another."""
    if views.best.found is None or views.graph.why:
        return {}
    row = list(views.best.found.intervention.values())
    whole = setting_view(views.graph, views.beliefs, row)
    return {"graph_of_best": shown_graph(whole, MIN_PROBABILITY)}


def snapshot_of(study: Study, number: int) -> LogSnapshot:
    """The log of a study, wherever it is stored."""
    first, last = study.store.entries(0, 1)[0], study.store.head()[1]
    event = decode(first.text, first.number)
    return LogSnapshot(number, last.hex(), study.ledger(), event, first.hash.hex(), number)


def page(study: Study, name: str) -> str:
    """The page of `causalarms serve` with the answers of the API inside, in one file.

    It asks for nothing outside itself, and no text of the study is read as markup.
    """
    style = (PAGE / "style.css").read_text("utf-8")
    # The page finds the answers in this element instead of asking a server.
    data = _in_script(frozen_answers(study, name))
    # Imported modules inherit the nonce of the script that imports them; hashes they would not.
    nonce = secrets.token_urlsafe(16)
    policy = (
        f"default-src 'none'; script-src 'nonce-{nonce}'; style-src '{_hash(style)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'; "
        "require-trusted-types-for 'script'; trusted-types lit-html"
    )
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">{GENERATOR}'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(printable(name))}</title><style>{style}</style>"
        f'<script type="importmap" nonce="{nonce}">{_in_script({"imports": _modules()})}</script>'
        '</head><body><a class="skip" href="#content">Skip to the content</a><div id="app">'
        "<noscript>This report needs JavaScript, and nothing else.</noscript></div>"
        '<p id="said" role="status" aria-live="polite"></p>'
        f'<script type="application/json" id="frozen">{data}</script>'
        f'<script type="module" nonce="{nonce}">import "page/app.js";</script></body></html>\n'
    )


def _modules() -> dict[str, str]:
    """The modules of the page as data URLs: a browser loads no modules from files on the disk.

    A data URL has no folder, so `./x.js` inside one becomes the name `page/x.js`.
    """
    return {
        f"page/{file.relative_to(PAGE).as_posix()}": "data:text/javascript;base64,"
        + base64.b64encode(file.read_bytes().replace(b' from "./', b' from "page/')).decode()
        for file in sorted(PAGE.rglob("*.js"))
    }


def _in_script(value: Any) -> str:
    """JSON that cannot end its script element."""
    return msgspec.json.encode(value).decode().replace("<", "\\u003c")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
