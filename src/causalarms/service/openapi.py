"""The OpenAPI document, made of the operations and their types."""

from __future__ import annotations

from functools import cache
from importlib.metadata import version
from typing import Any

import msgspec

from causalarms.service.api import OPERATIONS
from causalarms.service.operation import Operation, Parameter
from causalarms.service.records import Problem

TEMPLATE = "#/components/schemas/{name}"
PROBLEM = {"application/problem+json": {"schema": {"$ref": TEMPLATE.format(name="Problem")}}}


@cache
def document() -> bytes:
    types: set[type[msgspec.Struct]] = {Problem}
    for operation in OPERATIONS:
        types |= {*operation.answers.values()}
        types |= set() if operation.takes is None else {operation.takes}
    # Sorted, so that the document is the same in every run.
    ordered = sorted(types, key=lambda kind: kind.__name__)
    _, components = msgspec.json.schema_components(ordered, ref_template=TEMPLATE)
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _described(operation)
    paths["/openapi.json"] = {
        "get": {
            "operationId": "get_openapi",
            "summary": "This document.",
            "security": [],
            "responses": {
                "200": {
                    "description": "OpenAPI 3.1",
                    "content": {"application/json": {"schema": {"type": "object"}}},
                },
                **_refusals([403, 405, 421]),
            },
        }
    }
    return msgspec.json.encode(
        {
            "openapi": "3.1.0",
            "info": {
                "title": "causalarms",
                "version": version("causalarms"),
                "description": "A sequential experiment: ask what to try, tell what was measured.",
            },
            "servers": [{"url": "."}],  # relative to this document
            "paths": paths,
            "components": {
                "schemas": components,
                "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            },
            "security": [{}, {"token": []}],
        }
    )


def _described(operation: Operation) -> dict[str, Any]:
    parameters: list[dict[str, Any]] = []
    if "{number}" in operation.path:
        schema = {"type": "integer", "minimum": 0, "maximum": 10**15 - 1}
        parameters.append({"name": "number", "in": "path", "required": True, "schema": schema})
    parameters += [_parameter(parameter) for parameter in operation.query]
    if operation.needs_key:
        schema = {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[!-~]+$"}
        parameters.append(
            {"name": "Idempotency-Key", "in": "header", "required": True, "schema": schema}
        )
    found: dict[str, Any] = {
        "operationId": operation.method.lower() + operation.path.replace("/", "_"),
        "summary": operation.summary,
        "parameters": parameters,
        "responses": {
            **{str(status): _answer(operation, status) for status in sorted(operation.answers)},
            **_refusals(_possible(operation)),
        },
    }
    if operation.takes is not None:
        schema = {"$ref": TEMPLATE.format(name=operation.takes.__name__)}
        found["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": schema}},
        }
    if operation.role is None:
        found["security"] = []
    else:
        found["description"] = f"Needs the role {operation.role}."
    return found


def _answer(operation: Operation, status: int) -> dict[str, Any]:
    name = operation.answers[status].__name__
    content: dict[str, Any] = {"application/json": {"schema": {"$ref": TEMPLATE.format(name=name)}}}
    if operation.streams:
        content["text/event-stream"] = {"schema": {"type": "string"}}
    words = {200: "As asked.", 201: "Written.", 503: "Not possible now."}
    return {"description": words[status], "content": content}


def _possible(operation: Operation) -> list[int]:
    """Refusals that this operation may answer with."""
    # Host, site, method, address and a locked file are refused before any operation runs.
    found = {403, 405, 421, 422, 503, *operation.refusals}
    if operation.unsafe:
        found |= {415}
    if operation.takes is not None:
        found |= {400, 408, 413}
    if operation.role is not None or operation.path == "/session":
        found |= {401}
    if operation.role in ("worker", "operator"):
        found |= {507}
    return sorted(found - set(operation.answers))


def _refusals(statuses: list[int]) -> dict[str, Any]:
    return {
        str(status): {"description": "Refused; the detail says why.", "content": PROBLEM}
        for status in statuses
    }


def _parameter(parameter: Parameter) -> dict[str, Any]:
    schema: dict[str, Any]
    if parameter.kind is str:
        schema = {"type": "string", "enum": list(parameter.words)}
    else:
        schema = {"type": "integer" if parameter.kind is int else "number"}
        for name, limit in (("minimum", parameter.least), ("maximum", parameter.most)):
            if limit is not None:
                schema[name] = limit
    if parameter.default is not None:
        schema["default"] = parameter.default
    return {
        "name": parameter.name, "in": "query", "required": False,
        "description": parameter.about, "schema": schema,
    }  # fmt: skip
