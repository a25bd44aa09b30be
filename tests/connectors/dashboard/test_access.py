"""Access to the page, `abers_connectors.http.middleware`, over a real socket."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.connectors.dashboard.pages import Listening, Worked, asked

from abers.exceptions import ConfigError
from abers_connectors.config.sections import HttpSection
from abers_connectors.dashboard.server import serving

if TYPE_CHECKING:
    from collections.abc import Iterator

TOKEN = "long+and/secret=="  # noqa: S105 - of a test
QUOTED = "long%2Band%2Fsecret%3D%3D"
PATHS = ["/", "/live/events", "/live/page.js", "/live/page.css"]


@pytest.fixture
def guarded(worked: Worked, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Serve a page that asks for a token."""
    monkeypatch.setenv("ABERS_HTTP_TOKEN", TOKEN)
    with serving(HttpSection(port=0), None, worked.feed) as where:
        yield where


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "localhost.evil.example", ""])
@pytest.mark.parametrize("path", PATHS)
def test_a_name_that_is_not_ours(url: str, path: str, host: str) -> None:
    """A site that points its own name at this machine reads nothing."""
    answer = asked(url, path, Host=host)
    assert answer.code == 403
    assert "http.hosts" in answer.text


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:8090", "127.0.0.1", "[::1]:8090", "10.0.0.7:80"]
)
def test_names_that_are_ours(url: str, host: str) -> None:
    """Localhost and every address are allowed: no foreign name can be an address."""
    assert asked(url, "/", Host=host).code == 200


def test_a_configured_name(worked: Worked) -> None:
    """A host name from the configuration is allowed too."""
    with serving(HttpSection(port=0, hosts=("Abers.Internal",)), None, worked.feed) as url:
        assert asked(url, "/", Host="abers.internal:443").code == 200
        assert asked(url, "/", Host="abers.external").code == 403


@pytest.mark.parametrize("path", PATHS)
def test_without_the_token(guarded: str, path: str) -> None:
    """Without the token nothing is shown but where to put it."""
    for more in ({}, {"Authorization": "Bearer wrong"}, {"Cookie": f"abers_live={QUOTED}"}):
        answer = asked(guarded, path, **more)
        assert (answer.code, answer.headers["www-authenticate"]) == (401, "Bearer")
        assert "ABERS_HTTP_TOKEN" in answer.text
        assert TOKEN not in answer.text


def test_the_token_in_a_header(guarded: str) -> None:
    """A program sends the token in each request."""
    for scheme in ("Bearer", "bearer"):
        with Listening(guarded, Authorization=f"{scheme} {TOKEN}") as client:
            assert client.answer.status == 200
    assert asked(guarded, "/", Authorization=f"Basic Bearer {TOKEN}").code == 401


def test_the_token_once_in_the_address(guarded: str) -> None:
    """A browser sends the token once; its cookie is not the token, and no script can read it."""
    answer = asked(guarded, f"/?token={QUOTED}")
    assert (answer.code, answer.headers["location"]) == (303, "/")
    cookie, *rest = answer.headers["set-cookie"].split("; ")
    assert {"HttpOnly", "SameSite=strict"} <= {*rest}
    assert QUOTED not in cookie
    assert TOKEN not in cookie
    page = asked(guarded, "/", Cookie=cookie)
    assert page.code == 200
    assert TOKEN not in page.text
    assert asked(guarded, "/?token=wrong").code == 401


def test_the_token_as_it_is_in_the_address(guarded: str) -> None:
    """An unquoted token works too, since it has no character that needs quoting."""
    answer = asked(guarded, f"/?token={TOKEN}")
    assert (answer.code, answer.headers["location"]) == (303, "/")


def test_a_token_that_cannot_be_sent(worked: Worked, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is served with a token that cannot be sent."""
    monkeypatch.setenv("ABERS_HTTP_TOKEN", "pässword")
    problem = r"^ABERS_HTTP_TOKEN: cannot be sent"
    with pytest.raises(ConfigError, match=problem), serving(HttpSection(port=0), None, worked.feed):
        pass


def test_the_token_survives_a_restart(worked: Worked, monkeypatch: pytest.MonkeyPatch) -> None:
    """An open page continues after a restart of the service with the same token."""
    monkeypatch.setenv("ABERS_HTTP_TOKEN", TOKEN)
    with serving(HttpSection(port=0), None, worked.feed) as url:
        cookie = asked(url, f"/?token={QUOTED}").headers["set-cookie"].split("; ")[0]
    with serving(HttpSection(port=0), None, Worked().feed) as url:
        assert asked(url, "/", Cookie=cookie).code == 200
    monkeypatch.setenv("ABERS_HTTP_TOKEN", "another")
    with serving(HttpSection(port=0), None, Worked().feed) as url:
        assert asked(url, "/", Cookie=cookie).code == 401


def test_headers_for_a_browser(url: str) -> None:
    """The page may run its own scripts and call its own server; no other site may use it."""
    headers = asked(url, "/").headers
    policy = dict(
        one.strip().split(" ", 1) for one in headers["content-security-policy"].split(";")
    )
    assert policy["default-src"] == policy["frame-ancestors"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert headers["cache-control"] == "no-store"
    assert headers["referrer-policy"] == "no-referrer"
    for path in PATHS[2:]:
        headers = asked(url, path).headers
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert headers["x-content-type-options"] == "nosniff"
