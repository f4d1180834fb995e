"""Requests of every shape, made from the OpenAPI document, in every role: no answer is odd."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest import SkipTest

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error

# imported early: Python 3.11 may fail to compile it next to the threads of the service
from schemathesis.specs.openapi import schemas as _schemas  # noqa: F401
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from served import Served, served

from causalarms.service.tokens import TokenFile
from causalarms.study import Study

CASES = int(os.environ.get("SCHEMA_CASES", "2"))  # per operation and role
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
VALUES = {"<b>heat</b>": 1.0, "yield": 3.0}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, dict[str, str]]]:
    path: Path = tmp_path_factory.mktemp("schema") / "s.db"
    Study.create(path, list(VALUES), "yield", policy="posterior", changes=True, seed=1).close()
    tokens = {role: TokenFile(path).make(role, role) for role in ("read", "worker", "operator")}
    with served(path) as site:
        for number in range(12):
            site("POST", "trials", {"worker": "w", "n": 1}, token=tokens["operator"])
            values = {name: x + number % 5 for name, x in VALUES.items()}
            body = {"state": "told", "values": values}
            site("PUT", f"trials/{number}/result", body, token=tokens["operator"])
        site("POST", "trials", {"worker": "w", "n": 3}, token=tokens["operator"])
        yield site, tokens


@pytest.mark.parametrize("role", ["none", "read", "worker", "operator"])
def test_no_request_gets_an_odd_answer(site: tuple[Served, dict[str, str]], role: str) -> None:
    here, tokens = site
    url = f"http://127.0.0.1:{here.port}/api/v1"
    schema = schemathesis.openapi.from_url(f"{url}/openapi.json")
    schema.config.base_url = url
    headers = {} if role == "none" else {"Authorization": f"Bearer {tokens[role]}"}
    for found in schema.get_all_operations():
        operation: Any = found.ok()  # type: ignore[union-attr]
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            with suppress(Unsatisfiable, SkipTest):  # what takes nothing cannot be given wrongly
                send(operation.as_strategy(generation_mode=mode), headers)
    assert here("GET", "healthz").status == 200


def send(cases: Any, headers: dict[str, str]) -> None:
    @settings(
        max_examples=CASES, deadline=None, suppress_health_check=list(HealthCheck),
        derandomize=True, database=None, phases=[Phase.generate],
    )  # fmt: skip
    @given(case=cases)
    def one(case: Any) -> None:
        case.call_and_validate(headers=headers, checks=CHECKS)

    one()
