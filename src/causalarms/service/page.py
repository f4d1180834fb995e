"""The files of the page, as they lie in the package; no build, nothing from another host."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

FOLDER = Path(__file__).parent / "page"
INDEX = "index.html"
KINDS = {  # by ending, because what the operating system says differs
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".json": "application/json",
    ".webmanifest": "application/manifest+json",
    ".txt": "text/plain; charset=utf-8",
}


@cache
def files() -> dict[str, Path]:
    """Address -> file: only what is listed here is ever opened."""
    found = {
        path.relative_to(FOLDER).as_posix(): path
        for path in FOLDER.rglob("*")
        if path.is_file() and path.suffix in KINDS
    }
    if INDEX in found:
        found[""] = found[INDEX]
    return found


def page_file(request: Request, path: str) -> Response | None:
    """None where the page has no such file."""
    file = files().get(path.lstrip("/"))
    if file is None:
        return None
    content = file.read_bytes()
    tag = f'"{hashlib.sha256(content).hexdigest()[:20]}"'
    headers = {"ETag": tag}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(content, headers=headers, media_type=KINDS[file.suffix])
