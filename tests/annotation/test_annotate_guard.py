"""Hosts, origins and limits of a study's server."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from judgebench.annotation.server import Limit, Refused, Site
from judgebench.errors import SetupError


def status(site: Site, method: str, path: str, headers: Mapping[str, str]) -> int:
    try:
        site.check(method, path, headers)
    except Refused as refused:
        return refused.status
    return 200


def page(host: str, origin: str | None = None) -> dict[str, str]:
    sent = {"Host": host, "X-Judgebench": "1", "Content-Type": "application/json; charset=utf-8"}
    return sent | ({} if origin is None else {"Origin": origin})


def test_this_machine_is_served_under_its_own_names_and_port() -> None:
    site = Site.at("localhost", 8765)
    assert site.address == "http://127.0.0.1:8765"
    for name in ("127.0.0.1", "localhost", "LOCALHOST", "[::1]"):
        host = f"{name}:8765"
        assert status(site, "POST", "/api/x", page(host, f"http://{name.lower()}:8765")) == 200
        assert status(site, "GET", "/api/x", page(host)) == 200
    for host in (
        "localhost",
        "localhost:80",
        "evil.example:8765",
        "127.0.0.1.evil.example:8765",
        "",
    ):
        assert status(site, "GET", "/", page(host)) == 403
    for origin in ("https://localhost:8765", "http://localhost", "null", "http://evil.example", ""):
        assert status(site, "POST", "/api/x", page("localhost:8765", origin)) == 403
        assert status(site, "GET", "/", page("localhost:8765", origin)) == 403
    assert status(site, "POST", "/api/x", page("localhost:8765")) == 403
    assert not site.secure


def test_a_default_port_may_be_left_out() -> None:
    site = Site.at("label.example.org", 443, secure=True)
    for host in ("label.example.org", "label.example.org:443"):
        assert status(site, "POST", "/api/x", page(host, "https://label.example.org")) == 200
    assert site.secure


def test_behind_a_proxy_only_its_own_address_counts() -> None:
    site = Site.at("0.0.0.0", 8765, proxy="https://Label.Example.org:443/")
    assert site.address == "https://label.example.org"
    own = page("label.example.org", site.address)
    assert status(site, "POST", "/api/x", own) == 200
    assert status(site, "GET", "/", page("127.0.0.1:8765")) == 403
    assert site.client("10.0.0.1", "6.6.6.6, 192.0.2.7") == "192.0.2.7"
    assert site.client("10.0.0.1", "") == "10.0.0.1"
    assert Site.at("127.0.0.1", 1).client("127.0.0.1", "6.6.6.6") == "127.0.0.1"
    for port in (8443, 4430):
        proxy = f"https://x.org:{port}"
        assert Site.at("::1", 1, proxy=proxy).address == proxy
    for wrong in ("http://x.org", "https://x.org/label", "x.org", "https://a@x.org", "https://"):
        with pytest.raises(SetupError, match="is not the address of a proxy"):
            Site.at("127.0.0.1", 1, proxy=wrong)


def test_labels_never_cross_a_network_as_clear_text() -> None:
    for host in ("0.0.0.0", "192.0.2.1", "label.example.org", "::"):
        with pytest.raises(SetupError, match="clear text"):
            Site.at(host, 8765)
    with pytest.raises(SetupError, match="a browser can open"):
        Site.at("0.0.0.0", 8765, secure=True)
    assert Site.at("2001:db8::1", 8765, secure=True).address == "https://[2001:db8::1]:8765"


def test_a_cookie_is_bound_to_the_host_where_there_is_tls() -> None:
    assert Site.at("127.0.0.1", 8765).cookie("lead") == "judgebench-8765-lead"
    behind = Site.at("127.0.0.1", 8765, proxy="https://x.org")
    assert behind.cookie("annotator") == "__Host-judgebench-443-annotator"


def waits(limit: Limit, key: str) -> float:
    try:
        limit.check(key)
    except Refused as refused:
        return refused.wait if refused.status == 429 else -1.0
    return 0.0


def test_a_limit_lets_a_burst_through_and_then_so_many_a_second() -> None:
    now = 0.0
    limit = Limit(3, 2.0, clock=lambda: now)
    assert [waits(limit, "a") for _ in range(5)] == [0, 0, 0, 0.5, 0.5]
    assert waits(limit, "b") == 0
    now = 0.5
    assert [waits(limit, "a") for _ in range(2)] == [0, 0.5]
    now = 100.0
    assert [waits(limit, "a") for _ in range(4)] == [0, 0, 0, 0.5]


def test_a_limit_remembers_the_latest_keys_alone() -> None:
    limit = Limit(1, 0.001, most=2, clock=lambda: 0.0)
    assert [waits(limit, key) > 0 for key in "abab"] == [False, False, True, True]
    assert [waits(limit, key) > 0 for key in "cba"] == [False, True, False]
