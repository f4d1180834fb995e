"""Numbers and words in addresses, checked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request

from causalarms.service.operation import Parameter
from causalarms.service.problems import RefusedError


def path_number(parameters: Mapping[str, Any]) -> int:
    """The number of a trial or alarm; -1 where the path has none."""
    if "number" not in parameters:
        return -1
    text = str(parameters["number"])
    if not (text.isascii() and text.isdecimal() and len(text) < 16):
        raise _wrong(f"{text!r:.80} is no number of a trial or an alarm")
    return int(text)


def read_query(wanted: tuple[Parameter, ...], request: Request) -> dict[str, Any]:
    given = request.query_params
    found: dict[str, Any] = {}
    for parameter in wanted:
        texts = given.getlist(parameter.name)
        if len(texts) > 1:
            raise _wrong(f"{parameter.name} is given {len(texts)} times")
        found[parameter.name] = _value(parameter, texts[0]) if texts else parameter.default
    return found


def _value(parameter: Parameter, text: str) -> Any:
    name, least, most = parameter.name, parameter.least, parameter.most
    if parameter.kind is str:
        if text not in parameter.words:
            raise _wrong(f"{name} is {text!r:.80}; there are {', '.join(parameter.words)}")
        return text
    try:
        number = parameter.kind(text)
        wrong = not text.isascii() or "_" in text or not math.isfinite(number)
    except (ValueError, OverflowError):
        wrong, number = True, 0
    if wrong or (least is not None and number < least) or (most is not None and number > most):
        limits = f"from {least}" if most is None else f"from {least} to {most}"
        kind = "a whole number" if parameter.kind is int else "a number"
        raise _wrong(f"{name} is {text!r:.80}; it is {kind} {limits}")
    return number


def _wrong(words: str) -> RefusedError:
    return RefusedError(422, "wrong-address", "The address is not what is expected", words)
