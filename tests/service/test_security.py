"""One test per line of the list of what the service guards against."""

from __future__ import annotations

import logging
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from served import Served, served, until

from causalarms.errors import RemoteStudyError, StudyError
from causalarms.service import live, server
from causalarms.service import request as operations
from causalarms.service.api import OPERATIONS
from causalarms.service.app import Options, Service
from causalarms.service.remote import RemoteStudy
from causalarms.service.request import POLICY, allowed_hosts
from causalarms.service.server import check_options
from causalarms.service.tokens import TokenFile
from causalarms.study import Study

NODES = ["heat", "yield"]
VALUES = {"heat": 1.0, "yield": 3.0}


def create(folder: Path) -> Path:
    path = folder / "s.db"
    Study.create(path, NODES, "yield", policy="random", seed=1).close()
    return path


@pytest.fixture(scope="module")
def open_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """On loopback, without tokens."""
    with served(create(tmp_path_factory.mktemp("open"))) as site:
        yield site


@pytest.fixture(scope="module")
def proxied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Under another name and on a sub-path."""
    path = create(tmp_path_factory.mktemp("proxied"))
    with served(path, allow_hosts=("lab.example",), root_path="/lab/3/") as site:
        yield site


@pytest.fixture(scope="module")
def tokens() -> dict[str, str]:
    return {}


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory, tokens: dict[str, str]) -> Iterator[Served]:
    """With a token of every role."""
    path = create(tmp_path_factory.mktemp("closed"))
    for role, name in (("read", "r"), ("worker", "w"), ("operator", "o"), ("worker", "w2")):
        tokens[name] = TokenFile(path).make(role, name)
    with served(path) as site:
        yield site


@pytest.mark.parametrize(
    ("host", "fine"),
    [
        ("127.0.0.1", True),
        ("127.0.0.1:{port}", True),
        ("localhost:1", True),
        ("LOCALHOST.", True),
        ("[::1]:{port}", True),
        ("lab.example", True),
        ("lab.example:443", True),
        ("evil.example", False),
        ("evil.example:{port}", False),
        ("127.0.0.1.evil.example", False),
        ("localhost@evil.example", False),
        ("evil.example@localhost", False),
        ("localhost:x", False),
        ("localhost/evil", False),
        ("", False),
    ],
)
@pytest.mark.parametrize("path", ["healthz", "/", "events"])
def test_other_hosts_are_refused(proxied: Served, host: str, fine: bool, path: str) -> None:
    given = host.format(port=proxied.port)
    answer = proxied("GET", path, headers={"Host": given})
    assert (answer.status != 421) is fine
    if not fine:
        assert "--allow-host" in answer.json["detail"]


def test_the_address_of_the_machine_itself_is_allowed() -> None:
    assert allowed_hosts("192.168.0.7") >= {"192.168.0.7", "localhost"}
    assert "0.0.0.0" not in allowed_hosts("0.0.0.0")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 201),
        ({"Sec-Fetch-Site": "same-origin"}, 201),
        ({"Sec-Fetch-Site": "none"}, 201),
        ({"Origin": "http://127.0.0.1:{port}"}, 201),
        ({"Origin": "https://127.0.0.1:{port}"}, 201),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Origin": "http://127.0.0.1:{port}"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://["}, 403),
        ({"Origin": "http://[::1"}, 403),
        ({"Origin": "http://127.0.0.1:{port}/"}, 403),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
        ({"Content-Type": ""}, 415),
        ({"Content-Type": "application/json; charset=utf-8"}, 201),
    ],
)
def test_other_sites_cannot_write(open_site: Served, headers: dict[str, str], status: int) -> None:
    given = {name: text.format(port=open_site.port) for name, text in headers.items()}
    before = open_site("GET", "study").json["head"]
    answer = open_site("POST", "notes", {"text": "x"}, headers=given, key=str(headers))
    assert answer.status == status
    assert open_site("GET", "study").json["head"] == before + (status == 201)


@pytest.mark.parametrize("site", ["cross-site", "same-site", "odd"])
def test_other_sites_cannot_make_it_read_or_compute(proxied: Served, site: str) -> None:
    """An <img> of any web page makes its visitors' browsers send such requests."""
    given = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}
    for operation in OPERATIONS:
        path = operation.path.replace("{number}", "0")
        for root in ("/api/v1", "/lab/3/api/v1"):
            answer = proxied(operation.method, root + path, headers=given)
            assert (answer.status, "another site" in answer.json["detail"]) == (403, True)
    for path in ("openapi.json", "nothing"):
        assert proxied("GET", path, headers=given).status == 403
    link = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert proxied("GET", "/", headers=link).status == 200
    for own in ("same-origin", "none"):
        assert proxied("GET", "healthz", headers={"Sec-Fetch-Site": own}).status == 200


HEADERS = st.sampled_from(
    ["Origin", "Cookie", "Authorization", "Content-Type", "Idempotency-Key", "Accept", "Referer",
     "If-None-Match", "Last-Event-ID", "Host", "Sec-Fetch-Site", "Accept-Encoding", "Range",
     "Content-Length", "X-Forwarded-For", "Forwarded", "Transfer-Encoding", "Expect"]
)  # fmt: skip
ODD = st.text(st.characters(min_codepoint=33, max_codepoint=255), max_size=30) | st.sampled_from(
    ["http://[", "http://[::1", "[", "http://a]", "//", "9" * 5000, "-1", "1_0", "\xb2", "Bearer",
     "bearer \xff", "a=b; a=c;;=", "causalarms-=\"", "*/*;q=x", "gzip;q=", "bytes=--", "W/\"",
     "\xa0"]
)  # fmt: skip


@settings(max_examples=300)
@given(headers=st.dictionaries(HEADERS, ODD, max_size=3), method=st.sampled_from(["GET", "POST"]))
@pytest.mark.parametrize("path", ["study", "notes", "session"])
def test_no_header_is_too_odd(
    open_site: Served, path: str, method: str, headers: dict[str, str]
) -> None:
    """A request may be refused, but never with a traceback."""
    body = b'{"text": "x"}' if method == "POST" else b""
    given = {"Host": "localhost", "Content-Type": "application/json", "Idempotency-Key": "k"}
    given |= {"Content-Length": str(len(body)), **headers, "Connection": "close"}
    lines = [f"{method} /api/v1/{path} HTTP/1.1", *(f"{n}: {v}" for n, v in given.items())]
    with open_site.socket() as line:
        line.sendall("\r\n".join([*lines, "", ""]).encode("latin-1") + body)
        line.shutdown(socket.SHUT_WR)
        answer = line.makefile("rb").readline()
    assert answer == b"" or 200 <= int(answer.split()[1]) < 500, answer


@pytest.mark.parametrize(
    "text",
    [
        '{"text": "a", "text": "b"}',
        '{"text": "a", "te\\u0078t": "a"}',
        '{"text": "a", "trial": 0, "trial": 0}',
    ],
)
def test_a_name_given_twice_is_refused(open_site: Served, text: str) -> None:
    before = open_site("GET", "study").json["head"]
    answer = open_site("POST", "notes", raw=text.encode(), key="twice" + text)
    assert answer.status == 400
    assert re.search("'(text|trial)' is given 2 times", answer.json["detail"])
    assert open_site("GET", "study").json["head"] == before


def test_a_node_measured_twice_is_refused_in_a_large_body_too(open_site: Served) -> None:
    rounds = '{"levels": {}, "values": {"heat": 1.0, "yield": 2.0}},' * 30_000
    last = '{"levels": {}, "values": {"heat": 1.0, "yield": 2.0, "heat": 3.0}}'
    text = f'{{"rounds": [{rounds}{last}]}}'.encode()
    assert len(text) > operations.LARGE_BYTES
    answer = open_site("POST", "rounds", raw=text, key="large")
    assert (answer.status, "'heat'" in answer.json["detail"]) == (400, True)


def test_without_a_token_nobody_gets_in(closed: Served, tokens: dict[str, str]) -> None:
    for operation in OPERATIONS:
        path = operation.path.replace("{number}", "0")
        for token in (None, "wrong", tokens["o"][:-1]):
            answer = closed(operation.method, f"/api/v1{path}", {}, token=token, key="k")
            if operation.role is not None:
                assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer"), path
                assert "serve-token" in answer.json["detail"]
    assert closed("GET", "healthz").status == 200


def test_roles(closed: Served, tokens: dict[str, str]) -> None:
    """A read token writes nothing, a worker acts under its name, an operator does all."""
    for operation in OPERATIONS:
        path = operation.path.replace("{number}", "0")
        for name, rank in (("r", 0), ("w", 1), ("o", 2)):
            answer = closed(
                operation.method, f"/api/v1{path}", {"odd": 1}, token=tokens[name], key="k"
            )
            needed = {"read": 0, "worker": 1, "operator": 2, None: 0}[operation.role]
            assert (answer.status == 403) is (rank < needed), (path, name, answer)
            if operation.unsafe and name == "r" and path not in ("/predictions", "/session"):
                assert answer.status == 403
    assert closed("POST", "trials", {"worker": "w2"}, token=tokens["w"]).status == 403
    (trial,) = closed("POST", "trials", {"worker": "w"}, token=tokens["w"]).json["trials"]
    result = f"trials/{trial['trial']}/result", {"state": "told", "values": VALUES}
    other = closed("PUT", *result, token=tokens["w2"])
    assert (other.status, "'w2'" in other.json["detail"]) == (403, True)
    assert closed("PUT", *result, token=tokens["w"]).status == 201
    assert closed("POST", "trials", {"worker": "any"}, token=tokens["o"]).status == 200


def test_tokens_are_never_logged(
    closed: Served, tokens: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        closed("GET", "study", token=tokens["o"])
        closed("POST", "session", {"token": tokens["o"]})
    assert not any(text in caplog.text for text in tokens.values())


@pytest.mark.parametrize("path", ["study", "nothing", "/", "/../x", "trials/x"])
def test_every_answer_says_how_a_browser_must_treat_it(open_site: Served, path: str) -> None:
    headers = open_site("GET", path).headers
    assert headers["content-security-policy"] == POLICY
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert not any(name.startswith("access-control") for name in headers)
    assert "server" not in headers
    refused = open_site("GET", path, headers={"Host": "evil.example"}).headers
    assert refused["content-security-policy"] == POLICY
    asked = {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}
    preflight = open_site("OPTIONS", "trials", headers=asked)
    assert (preflight.status, "access-control-allow-origin" in preflight.headers) == (405, False)


@pytest.mark.parametrize(("path", "most"), [("notes", 2**20), ("rounds", 20 * 2**20)])
def test_large_bodies_are_refused_unread(open_site: Served, path: str, most: int) -> None:
    with open_site.socket() as line:
        head = f"POST /api/v1/{path} HTTP/1.1\r\nHost: localhost\r\nIdempotency-Key: k\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {most + 1}\r\n\r\n"
        line.sendall(head.encode())
        assert b" 413 " in line.recv(200)
    with open_site.socket() as line:  # without saying how much
        head = "POST /api/v1/notes HTTP/1.1\r\nHost: localhost\r\nIdempotency-Key: k\r\n"
        head += "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        line.sendall(head.encode())
        part = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
        for _ in range(17):
            line.sendall(part)
        assert b" 413 " in line.recv(200)


def test_slow_senders_are_sent_away(open_site: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "HEADER_SECONDS", 0.3)
    monkeypatch.setattr(operations, "PART_SECONDS", 0.3)
    with open_site.socket() as line:
        assert line.recv(10) == b""
    with open_site.socket() as line:
        line.sendall(b"GET /api/v1/healthz HTTP/1.1\r\nHost: local")
        assert line.recv(10) == b""
    with open_site.socket() as line:  # the second request of a connection
        line.sendall(b"GET /api/v1/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        while not (got := line.recv(10_000)).endswith(b"}"):
            assert got
        line.sendall(b"GET /api/v1/healthz HTTP/1.1\r\nHost: local")
        assert line.recv(10) == b""
    with open_site.socket() as line:
        head = "POST /api/v1/trials HTTP/1.1\r\nHost: localhost\r\n"
        head += "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
        line.sendall(head.encode())
        assert b" 408 " in line.recv(200)


def test_there_is_a_limit_of_viewers(tmp_path: Path) -> None:
    with served(create(tmp_path), most_viewers=1) as site:
        with site.socket() as line:
            begin_stream(line)
            answer = site("GET", "events", headers={"Accept": "text/event-stream"})
            assert (answer.status, answer.headers["retry-after"]) == (503, "10")
            assert "--viewers" in answer.json["detail"]
        until(lambda: len(site.service.viewers) == 0)


def begin_stream(line: Any, more: str = "") -> bytes:
    head = "GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n"
    line.sendall((head + more + "\r\n").encode())
    text = b""
    while b"\n\n" not in text.partition(b"\r\n\r\n")[2].replace(b"\r", b""):
        text += line.recv(4096)
    return text


def test_viewers_who_do_not_read_are_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "INTERVAL_SECONDS", 0.0)
    monkeypatch.setattr(live, "SEND_SECONDS", 0.05)
    monkeypatch.setattr(live, "message", lambda *_: b":" + b"x" * 2**22 + b"\n\n")
    with served(create(tmp_path)) as site, site.socket() as line:
        head = "GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n"
        line.sendall(head.encode())
        until(lambda: len(site.service.viewers) == 1)
        site("POST", "notes", {"text": "x"}, key="k")
        until(lambda: len(site.service.viewers) == 0)
        assert site("GET", "study").status == 200


def test_off_this_machine_a_token_is_needed_and_tls_is_missed(tmp_path: Path) -> None:
    path = create(tmp_path)
    away = Options(host="0.0.0.0")
    for options in (away, Options(root_path="/x"), Options(allow_hosts=("lab.example",))):
        service = Service(path, options)
        with pytest.raises(StudyError, match=f"causalarms serve-token {path} operator NAME"):
            check_options(options, service.path)
        service.threads.close()
    with served(path, host="0.0.0.0") as site:
        assert site("GET", "study").status == 401
        TokenFile(path).make("operator", "o")
        assert "unencrypted" in str(check_options(away, site.service.path))
        assert check_options(Options(root_path="/x"), site.service.path) is None
        assert check_options(Options(), site.service.path) is None
        for wrong in (Options(tls_cert=path), Options(tls_cert=path, tls_key=tmp_path / "no")):
            with pytest.raises(StudyError, match=r"go together|no file"):
                check_options(wrong, site.service.path)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
def test_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    subprocess.run(
        [*command.split(), *subject, "-keyout", key, "-out", cert], check=True, capture_output=True
    )
    with served(create(tmp_path), tls_cert=cert, tls_key=key) as site:
        url = f"https://localhost:{site.port}/"
        with pytest.raises(RemoteStudyError, match="cannot be reached safely"):
            RemoteStudy(url)
        monkeypatch.setenv("SSL_CERT_FILE", str(cert))
        with RemoteStudy(url) as study:
            study.tell(study.ask(), VALUES)
            assert list(study.history()["state"]) == ["told"]


def test_a_proxy_may_show_it_on_a_sub_path(proxied: Served) -> None:
    assert proxied("GET", "/lab/3/api/v1/healthz").status == 200
    assert proxied("GET", "/api/v1/healthz").status == 200
    moved = proxied("GET", "/lab/3")
    assert (moved.status, moved.headers["location"]) == (307, "/lab/3/")
    assert proxied("GET", "/lab/3/api/v1/study").status == 401  # never open behind a proxy
    token = TokenFile(proxied.service.path).make("operator", "o")
    with RemoteStudy(f"http://127.0.0.1:{proxied.port}/lab/3/", token) as remote:
        assert remote.nodes == tuple(NODES)


def test_errors_of_the_client_say_what_to_do(closed: Served, tokens: dict[str, str]) -> None:
    url = f"http://127.0.0.1:{closed.port}"
    for address, token, words in (
        ("ftp://x", None, "not the address of a service"),
        ("http://127.0.0.1:99999", None, "no valid port"),
        ("http://127.0.0.1:1", None, "is `causalarms serve` running there"),
        ("http://no.such.host.invalid", None, "cannot be reached"),
        (url, None, "needs a token"),
        (url, "wrong", "not known to this study"),
        (url, "wröng", "characters"),
        (url + "/elsewhere", tokens["r"], "may be older"),
        (url.replace("http", "https"), tokens["r"], "cannot be reached"),
    ):
        with pytest.raises(RemoteStudyError, match=words):
            RemoteStudy(address, token, patience=3600.0)  # at first contact nobody waits
    with (
        RemoteStudy(url, tokens["r"]) as reader,
        pytest.raises(RemoteStudyError, match="needs the role worker"),
    ):
        reader.ask()
