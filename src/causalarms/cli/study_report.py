"""The report of a study: the page of `causalarms serve`, frozen into one file.

Nothing outside the file is ever asked for, and no text of the study is read as markup.
"""

from __future__ import annotations

from html import escape

from causalarms.extras import require_extra
from causalarms.outputs import Mark
from causalarms.plain_text import printable
from causalarms.study import Study

GENERATOR = '<meta name="generator" content="causalarms study report">'
MARK = Mark("`causalarms study report`", b"<!doctype html>", GENERATOR.encode())


def page(study: Study, name: str) -> str:
    """The whole page."""
    require_extra("serve", "`causalarms study report`")
    from causalarms.service.report import frozen_answers, frozen_page

    return frozen_page(frozen_answers(study, name), escape(printable(name)), GENERATOR)
