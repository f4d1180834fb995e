"""A service in this process on a free port, and a plain client for it."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from causalarms.service.app import Options, Service
from causalarms.service.server import Server, listen, make_server

JSON = {"Content-Type": "application/json"}


class Reply(NamedTuple):
    status: int
    headers: dict[str, str]  # names in lower case
    text: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.text)


class Served(NamedTuple):
    service: Service
    server: Server
    port: int

    def __call__(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: dict[str, str] | None = None,
        token: str | None = None,
        key: str | None = None,
        raw: bytes | None = None,
    ) -> Reply:
        given: dict[str, str] = dict(headers or {})
        if token is not None:
            given["Authorization"] = f"Bearer {token}"
        if key is not None:
            given["Idempotency-Key"] = key
        if body is not None or raw is not None:
            given = JSON | given
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            text = raw if body is None else json.dumps(body).encode()
            if not path.startswith("/"):
                path = "/api/v1/" + path
            connection.request(method, path, text, given)
            answer = connection.getresponse()
            names = {name.lower(): value for name, value in answer.getheaders()}
            return Reply(answer.status, names, answer.read())
        finally:
            connection.close()

    def socket(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=30)


@contextmanager
def served(path: Path, connections: int | None = None, **options: Any) -> Iterator[Served]:
    chosen = Options(port=0, **options)
    service = Service(path, chosen)  # first: what it refuses leaves no open socket behind
    taken = listen(Options(port=0))
    server = make_server(service, chosen, connections)
    thread = threading.Thread(target=server.run, args=([taken],), daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.005)
    try:
        yield Served(service, server, taken.getsockname()[1])
    finally:
        server.should_exit = True
        thread.join(10)
        taken.close()
        assert not thread.is_alive()


def until(condition: Any) -> None:
    """Wait for what comes soon; the test's own time limit is the runner's."""
    for _ in range(3000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it never came")
