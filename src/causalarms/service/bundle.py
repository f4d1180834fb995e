"""The page as one file: its modules one after another, each in a function of its own.

A browser does not load modules from a file on the disk, so a report carries them inside. The files
of the page are the only source; what is understood of JavaScript is what they use.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path, PurePosixPath
from typing import Any

from msgspec import json as plain_json

PAGE = Path(__file__).with_name("page")

_IMPORT = re.compile(r'^import\s+(\{[^}]*\}|\* as \w+)\s+from\s+"([^"]+)";$', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?(?:const|function|class)\s+(\w+))", re.MULTILINE)
_EXPORT_LIST = re.compile(r"export\s*\{([^}]*)\};?")
_SOURCE_MAP = re.compile(r"^//# sourceMappingURL=.*$", re.MULTILINE)


def one_script(first: str = "app.js") -> str:
    """The module and all that it imports, each once and after those it needs."""
    done: dict[str, str] = {}
    _add(first, done, ())
    return "\n".join(done.values())


def frozen_page(answers: dict[str, Any], title: str, generator: str) -> str:
    """The page with the answers of the API inside; nothing else is ever asked for.

    `title` and `generator` are already escaped for HTML.
    """
    script, style = one_script(), (PAGE / "style.css").read_text("utf-8")
    data = plain_json.encode(answers).decode().replace("<", "\\u003c")
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'; "
        "require-trusted-types-for 'script'; trusted-types lit-html"
    )
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">{generator}'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{style}</style></head><body>"
        '<a class="skip" href="#content">Skip to the content</a><div id="app">'
        "<noscript>This report needs JavaScript, and nothing else.</noscript></div>"
        '<p id="said" role="status" aria-live="polite"></p>'
        f'<script type="application/json" id="frozen">{data}</script>'
        f"<script>{script}</script></body></html>\n"
    )


def _add(name: str, done: dict[str, str], above: tuple[str, ...]) -> None:
    if name in done:
        return
    if name in above:
        raise ValueError(f"modules import each other: {' -> '.join((*above, name))}")
    text = (PAGE / name).read_text("utf-8")
    home = PurePosixPath(name).parent
    for _, path in _IMPORT.findall(text):
        _add(_resolved(home, path), done, (*above, name))

    def taken(match: re.Match[str]) -> str:
        what, path = match.groups()
        what = what.removeprefix("* as ").replace(" as ", ": ")
        return f"const {what} = {_variable(_resolved(home, path))};"

    names = [(exported, exported) for _, exported in _EXPORT.findall(text)]
    for listed in _EXPORT_LIST.findall(text):
        for entry in listed.split(","):
            inside, _, outside = entry.strip().partition(" as ")
            names.append((outside or inside, inside))
    text = _IMPORT.sub(taken, text)
    text = _EXPORT.sub(r"\1", text)
    text = _SOURCE_MAP.sub("", _EXPORT_LIST.sub("", text))
    given = ", ".join(f"{json.dumps(outside)}: {inside}" for outside, inside in names)
    done[name] = f"const {_variable(name)} = (() => {{\n{text}\nreturn {{ {given} }};\n}})();"


def _resolved(home: PurePosixPath, path: str) -> str:
    return str(home / path.removeprefix("./"))


def _variable(name: str) -> str:
    return "$" + re.sub(r"\W", "_", name.removesuffix(".js"))


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
