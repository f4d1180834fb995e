"""The file of tokens: who gets in, who is shown out, and what happens to a file that is damaged."""

from __future__ import annotations

import shutil
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import BinaryIO

import pytest
from served import Served, served

from causalarms.errors import StudyError, TokenFileError
from causalarms.service import live
from causalarms.service import tokens as tokens_module
from causalarms.service.app import Options, Service
from causalarms.service.tokens import TokenFile
from causalarms.study import Study


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "s.db"
    Study.create(path, ["heat", "yield"], "yield", policy="random", seed=1).close()
    return path


def file_of(path: Path) -> Path:
    return path.with_name(path.name + ".tokens")


def change(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(file_of(path))) as connection, connection:
        connection.execute(statement)


def test_tokens_are_kept_as_hashes_that_only_the_owner_reads(path: Path) -> None:
    text = TokenFile(path).make("worker", "bench")
    session = TokenFile(path).begin_session(TokenFile(path).all()[0], "here")
    file = file_of(path)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert text.encode() not in file.read_bytes()
    assert session.encode() not in file.read_bytes()
    found = TokenFile(path).find(text)
    assert found is not None
    assert (found.role, found.name) == ("worker", "bench")
    assert TokenFile(path).find(text + "x") is None
    with pytest.raises(StudyError, match="a token 'bench' already"):
        TokenFile(path).make("read", "bench")
    for role, name in (("admin", "x"), ("read", " "), ("read", "a\n")):
        with pytest.raises(StudyError):
            TokenFile(path).make(role, name)
    file.chmod(0o644)
    for use in (TokenFile(path).all, TokenFile(path).check, lambda: TokenFile(path).find(text)):
        with pytest.raises(TokenFileError, match="chmod 600"):
            use()


def test_a_refused_command_leaves_no_file(path: Path) -> None:
    with pytest.raises(StudyError, match="there are: none"):
        TokenFile(path).revoke("nobody")
    with pytest.raises(StudyError, match="there is no role"):
        TokenFile(path).make("admin", "x")
    assert not file_of(path).exists()


def test_tokens_come_and_go_while_it_runs(path: Path) -> None:
    with served(path) as site:
        assert site("GET", "study").json["caller"]["role"] == "operator"
        for header in ("X-Forwarded-For", "Forwarded", "X-Real-IP", "Via"):
            assert site("GET", "study", headers={header: "10.0.0.7"}).status == 401
        token = TokenFile(path).make("read", "r")
        assert site("GET", "study").status == 401
        answer = site("GET", "study", token=token, headers={"X-Forwarded-For": "10.0.0.7"})
        assert answer.json["caller"] == {"role": "read", "name": "r", "token_needed": True}
        TokenFile(path).make("read", "r2")
        TokenFile(path).revoke("r")
        assert site("GET", "study", token=token).status == 401


def test_the_last_token_leaves_the_door_closed(path: Path) -> None:
    with served(path) as site:
        token = TokenFile(path).make("read", "r")
        assert TokenFile(path).revoke("r") == 0
        assert site("GET", "study").status == 401
        assert site("GET", "study", token=token).status == 401
    with served(path) as site:  # also the next time
        assert site("GET", "study").status == 401
        TokenFile(path).make("read", "r")
        assert TokenFile(path).open_to_all() == 1
        assert site("GET", "study").json["caller"]["role"] == "operator"
        TokenFile(path).make("read", "r")
        assert site("GET", "study").status == 401


@pytest.mark.parametrize("there", ["token", "study", "chain"])
def test_a_link_to_a_study_is_the_study(path: Path, tmp_path: Path, there: str) -> None:
    """Its tokens are the same, whichever of the two they were made for."""
    folder = tmp_path / "links"
    folder.mkdir()
    link = folder / "link.db"
    link.symlink_to(path)
    if there == "chain":
        (folder / "again.db").symlink_to(link)
        link = folder / "again.db"
    made_for, served_as = (link, path) if there == "token" else (path, link)
    token = TokenFile(made_for).make("read", "r")
    assert file_of(path).exists()
    with served(served_as) as site:
        assert site("GET", "study").status == 401
        assert site("GET", "study", token=token).json["caller"]["role"] == "read"


def test_a_link_that_leads_nowhere_is_not_a_study(tmp_path: Path) -> None:
    for target in ("loop.db", "gone.db"):
        link = tmp_path / "loop.db"
        link.unlink(missing_ok=True)
        link.symlink_to(tmp_path / target)
        with pytest.raises(StudyError, match="there is no study"):
            Service(link, Options())


def empty(file: Path) -> None:
    file.write_bytes(b"")


def json_of_old(file: Path) -> None:
    file.write_text('[{"role": "read", "name": "r", "sha256": "00", "made": "2024"}]')


def noise(file: Path) -> None:
    size = file.stat().st_size
    file.write_bytes(file.read_bytes()[:100] + b"\x5a" * (size - 100))


def another_program(file: Path) -> None:
    file.unlink()
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("CREATE TABLE tokens (x)")
    file.chmod(0o600)


def without_tables(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("DELETE FROM access")


def unknown_role(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE tokens SET role = 'admin'")


def index_of_names(file: Path) -> None:
    """A page that no request reads."""
    with closing(sqlite3.connect(file)) as connection:
        name = "sqlite_autoindex_tokens_2"
        find = "SELECT rootpage FROM sqlite_schema WHERE name = ?"
        (page,) = connection.execute(find, (name,)).fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    content = bytearray(file.read_bytes())
    content[(page - 1) * size : page * size] = bytes(size)
    file.write_bytes(content)


def readable(file: Path) -> None:
    file.chmod(0o640)


def folder(file: Path) -> None:
    file.unlink()
    file.mkdir(0o700)


DAMAGES = [empty, json_of_old, noise, another_program, without_tables, readable, folder]


@pytest.mark.parametrize("damage", [*DAMAGES, unknown_role, index_of_names])
def test_a_damaged_file_keeps_the_service_from_starting(
    path: Path, damage: Callable[[Path], None]
) -> None:
    TokenFile(path).make("read", "r")
    damage(file_of(path))
    with pytest.raises(TokenFileError, match=r"s\.db\.tokens"):
        Service(path, Options())


@pytest.mark.parametrize("damage", [*DAMAGES, Path.unlink])
def test_a_damaged_file_lets_nobody_in(path: Path, damage: Callable[[Path], None]) -> None:
    token = TokenFile(path).make("operator", "o")
    with served(path) as site:
        cookie = login(site, token)
        damage(file_of(path))
        for given in ({}, {"Authorization": f"Bearer {token}"}, cookie):
            for place in ("study", "healthz", "events", "best"):
                answer = site("GET", place, headers=given)
                assert answer.status == 503, (place, given)
                assert "s.db.tokens" in answer.json["detail"]
        assert site("POST", "session", {"token": token}).status == 503
        assert site("GET", "/").status == 200  # the page, which says what is wrong


def test_a_role_that_does_not_exist_is_refused_in_words(path: Path) -> None:
    token = TokenFile(path).make("read", "r")
    with served(path) as site:
        change(path, "UPDATE tokens SET role = 'admin'")
        answer = site("GET", "study", token=token)
        assert answer.status == 503
        assert "token 'r' has the role 'admin'" in answer.json["detail"]


MANY = """
import sys
from pathlib import Path
from causalarms.service.tokens import TokenFile
file, me = TokenFile(Path(sys.argv[1])), sys.argv[2]
sys.stdin.readline()
for number in range(15):
    kept = file.make("read", f"{me} {number}")
    file.make("read", f"{me} {number} leaked")
    file.revoke(f"{me} {number} leaked")
    print(kept)
"""


def test_commands_at_once_do_not_undo_each_other(path: Path) -> None:
    programs = [
        subprocess.Popen(
            [sys.executable, "-c", MANY, str(path), str(number)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for number in range(4)
    ]  # fmt: skip
    for program in programs:
        assert program.stdin is not None
        program.stdin.write("go\n")
        program.stdin.flush()
    answers = [program.communicate(timeout=120) for program in programs]
    assert [error for _, error in answers] == [""] * 4
    shown = [token for out, _ in answers for token in out.split()]
    assert len(shown) == 60
    assert all(TokenFile(path).find(token) is not None for token in shown)
    assert {t.name for t in TokenFile(path).all()} == {
        f"{m} {n}" for m in range(4) for n in range(15)
    }


def login(site: Served, token: str) -> dict[str, str]:
    answer = site("POST", "session", {"token": token})
    assert answer.status == 200
    return {"Cookie": answer.headers["set-cookie"].partition(";")[0]}


def test_login_of_the_page(path: Path) -> None:
    token = TokenFile(path).make("worker", "w")
    with served(path) as site:
        assert site("POST", "session", {"token": "wrong"}).status == 401
        answer = site("POST", "session", {"token": token})
        assert answer.json == {"role": "worker", "name": "w", "token_needed": True}
        cookie = answer.headers["set-cookie"]
        name, _, rest = cookie.partition("=")
        assert name == "causalarms-" + site("GET", "study", token=token).json["first_hash"][:12]
        parts = {part.strip() for part in rest.split(";")}
        assert {"HttpOnly", "SameSite=strict", "Path=/", "Max-Age=2592000"} <= parts
        assert "Secure" not in cookie  # plain http
        origin = {"Host": "localhost", "Origin": "https://localhost"}  # a proxy with TLS before it
        proxied = site("POST", "session", {"token": token}, headers=origin)
        assert "Secure" in proxied.headers["set-cookie"]
        given = {"Cookie": cookie.partition(";")[0]}
        assert site("GET", "study", headers=given).json["caller"]["name"] == "w"
        assert site("GET", "study", headers={"Cookie": f"{name}=wrong"}).status == 401
        cross = given | {"Sec-Fetch-Site": "cross-site"}
        assert site("POST", "trials", {"worker": "w"}, headers=cross).status == 403


def test_the_cookie_is_not_the_token(path: Path) -> None:
    token = TokenFile(path).make("worker", "w")
    with served(path) as site:
        cookie = login(site, token)
        name, _, session = cookie["Cookie"].partition("=")
        assert token not in session
        assert site("GET", "study", headers={"Cookie": f"{name}={token}"}).status == 401
        assert site("GET", "study", token=session).status == 401


def test_a_session_ends_with_its_token_its_time_or_when_asked(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = TokenFile(path)
    token = tokens.make("worker", "w")
    tokens.make("operator", "o")
    with served(path) as site:
        first, second = login(site, token), login(site, token)
        gone = site("DELETE", "session", headers=first)
        assert "Max-Age=0" in gone.headers["set-cookie"]
        assert site("GET", "study", headers=first).status == 401
        assert site("GET", "study", headers=second).status == 200
        monkeypatch.setattr(tokens_module, "SESSION_SECONDS", -1)
        assert site("GET", "study", headers=login(site, token)).status == 401
        monkeypatch.undo()
        tokens.revoke("w")
        assert site("GET", "study", headers=second).status == 401
        tokens.make("worker", "w")  # the name alone brings no session back
        assert site("GET", "study", headers=second).status == 401
    with served(path) as site:  # a session survives a restart
        third = login(site, tokens.make("read", "r"))
    with served(path) as site:
        assert site("GET", "study", headers=third).json["caller"]["name"] == "r"


def test_a_session_of_one_study_is_none_of_another(path: Path, tmp_path: Path) -> None:
    """Even if the tokens were copied."""
    token = TokenFile(path).make("read", "r")
    other = tmp_path / "other.db"
    Study.create(other, ["heat", "yield"], "yield", policy="random", seed=2).close()
    with served(path) as site:
        session = login(site, token)["Cookie"].partition("=")[2]
    shutil.copy(file_of(path), file_of(other))
    with served(other) as site:
        assert site("GET", "study", token=token).status == 200
        given = {"Cookie": f"{site.service.cookie}={session}"}
        assert site("GET", "study", headers=given).status == 401


def test_only_so_many_sessions_of_a_token_are_kept(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = TokenFile(path)
    tokens.make("read", "r")
    (token,) = tokens.all()
    monkeypatch.setattr(tokens_module, "SESSIONS_PER_TOKEN", 2)
    made = [tokens.begin_session(token, "s") for _ in range(3)]
    found = [tokens.look(session=text, study="s").token for text in made]
    assert found == [None, token, token]


def stream(site: Served, *more: str) -> BinaryIO:
    """What a viewer reads after the first message; its end is the end of the stream."""
    lines = ["GET /api/v1/events HTTP/1.1", "Host: localhost", "Accept: text/event-stream", *more]
    with site.socket() as line:  # the file keeps it open
        line.sendall("\r\n".join([*lines, "Connection: close", "", ""]).encode())
        file = line.makefile("rb")
    assert b" 200 " in file.readline()
    while b"event: hello" not in file.readline():
        pass
    return file


@pytest.mark.parametrize("end", ["revoke", "logout", "expiry", "first token", "open", "damage"])
def test_a_stream_ends_with_what_let_it_in(
    path: Path, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "PING_SECONDS", 3600.0)  # a stream that does not end is silent
    tokens = TokenFile(path)
    with served(path) as site:
        if end == "first token":
            file = stream(site)
        else:
            token = tokens.make("read", "r")
            cookie = login(site, token)
            by_session = end in ("logout", "expiry")
            given = cookie if by_session else {"Authorization": f"Bearer {token}"}
            file = stream(site, *(f"{name}: {text}" for name, text in given.items()))
        other = stream(site, f"Authorization: Bearer {tokens.make('read', 'other')}")
        if end == "revoke":
            tokens.revoke("r")
        elif end == "logout":
            site("DELETE", "session", headers=cookie)
        elif end == "expiry":
            change(path, "UPDATE sessions SET ends = 1")
        elif end == "open":
            tokens.open_to_all()
        elif end == "damage":
            empty(file_of(path))
        with file, other:
            assert file.read().endswith(b"0\r\n\r\n")
            if end in ("open", "damage"):
                other.read()
            assert len(site.service.viewers) == (end not in ("open", "damage"))
