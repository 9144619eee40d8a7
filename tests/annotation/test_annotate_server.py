"""The server of a study: what annotators are shown, what is kept, and what is refused."""

import base64
import hashlib
import json
import re
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from annotate_case import HALF, Person, Reply, Running, closed, plain, served, small_study

from judgebench.annotation import server
from judgebench.annotation.server import Limit, Refused, Site
from judgebench.errors import SetupError


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Running]:
    with served(small_study(tmp_path)) as running:
        yield running


def events_of(site: Running) -> list[tuple[str, str, str, str | None]]:
    rows = site.server.reading.rows("SELECT * FROM events ORDER BY n")
    return [(r["annotator"], r["screen"], r["field"], r["label"]) for r in rows]


# --- an annotator's work ----------------------------------------------------------------------


def test_work_is_the_persons_own_in_their_order_with_how_far_they_are(site: Running) -> None:
    ann = site.enters("ann")
    work = ann.gets("/api/work")
    assert work.keys() == {
        "study", "annotator", "task", "guidelines", "auto_advance", "instructions",
        "total", "done", "seconds_per_item", "items",
    }  # fmt: skip
    assert [metric["title"] for metric in work["instructions"]["metrics"]] == ["harm", "tone"]
    assert (work["total"], work["done"], work["seconds_per_item"]) == (3, 0, None)
    assert [(item["id"], item["state"], item["round"]) for item in work["items"]] == [
        ("s1", "new", "calibration"), ("s2", "new", ""), ("s3", "new", ""),
    ]  # fmt: skip
    both = ann.event("s1", "harm", "no", visible_ms=3000), ann.event("s1", "tone", "", visible_ms=4)
    ann.save(*both)
    ann.save(ann.event("s2", "harm", "no"))
    work = ann.gets("/api/work")
    assert [item["state"] for item in work["items"]] == ["done", "begun", "new"]
    assert (work["done"], work["seconds_per_item"]) == (1, 3.0)
    assert [i["id"] for i in site.enters("ben").gets("/api/work")["items"]] == ["s2"]


def test_a_screen_comes_with_ones_own_labels_and_nobody_elses(site: Running) -> None:
    ann, ben = site.enters("ann"), site.enters("ben")
    ann.save(ann.event("s2", "harm", "yes", remark="odd"), ann.event("s2", "tone", "no"))
    ben.save(ben.event("s2", "harm", "no"))
    shown = ben.gets("/api/screen/s2")
    assert shown["labels"] == {"harm": "no"}
    assert "odd" not in json.dumps(shown)
    ann.save(ann.event("s2", "tone", None, remark="odd"))
    again = ann.gets("/api/screen/s2")
    assert (again["labels"], again["remark"]) == ({"harm": "yes"}, "odd")
    assert again["screen"]["sections"][1]["text"] == "Drink."


def test_the_whole_assignment_comes_at_once(site: Running) -> None:
    ann = site.enters("ann")
    ann.save(ann.event("s2", "harm", "yes"), ann.event("s2", "come back", "yes", remark="odd"))
    whole = ann.gets("/api/assignment")
    assert whole["work"] == ann.gets("/api/work")
    assert whole["screens"] == {key: ann.gets(f"/api/screen/{key}") for key in ("s1", "s2", "s3")}
    item = whole["work"]["items"][1]
    assert (item["labels"], item["remark"]) == ({"harm": "yes", "come back": "yes"}, "odd")


def test_the_lead_answers_a_remark_and_sends_an_item_back(site: Running) -> None:
    ann, ben, lead = site.enters("ann"), site.enters("ben"), site.enters("lead")
    both = (ann.event("s2", key, "yes", remark="Both?") for key in ("harm", "tone"))
    ann.save(*both)
    note = {"annotator": "ann", "screen": "s2", "text": "Page 2."}
    assert lead.asks("POST", "/api/lead/note", note).status == 200
    item = ann.gets("/api/work")["items"][1]
    assert (item["state"], item["sent_back"], item["notes"][0]["text"]) == (
        "done",
        False,
        "Page 2.",
    )
    (remark,) = lead.gets("/api/lead")["words"]
    assert (remark["text"], remark["answers"]) == ("Both?", ["Page 2."])
    lead.asks("POST", "/api/lead/note", {**note, "text": "Again.", "send_back": True})
    shown = ann.gets("/api/screen/s2")
    assert (shown["labels"], shown["sent_back"], len(shown["notes"])) == ({}, True, 2)
    assert ann.gets("/api/work")["items"][1]["state"] == "new"
    assert ben.gets("/api/screen/s2")["notes"] == []
    ann.save(*(ann.event("s2", key, "no") for key in ("harm", "tone")))
    assert ann.gets("/api/screen/s2")["sent_back"] is False
    for wrong in ({"annotator": "eve"}, {"screen": "s9"}, {"annotator": "ben", "screen": "s1"}):
        assert lead.asks("POST", "/api/lead/note", {**note, **wrong}).status == 404


def test_two_tabs_and_another_device_see_one_state(site: Running) -> None:
    tab = site.enters("ann")
    phone = site.stranger
    token = tab.asks("POST", "/api/link").value["token"]
    assert phone.asks("POST", "/api/enter", {"token": token}).value == {
        "name": "ann", "role": "annotator",
    }  # fmt: skip
    tab.save(tab.event("s1", "harm", "yes"))
    phone.save(phone.event("s1", "harm", "no"), phone.event("s1", "tone", "no"))
    for browser in (tab, phone):
        assert browser.gets("/api/screen/s1")["labels"] == {"harm": "no", "tone": "no"}
        assert browser.gets("/api/work")["done"] == 1
    assert phone.asks("POST", "/api/leave").status == 200
    assert phone.asks("GET", "/api/work").status == 401
    assert tab.asks("GET", "/api/work").status == 200


def test_what_changed_meanwhile_is_refused_with_the_reason(site: Running) -> None:
    ann = site.enters("ann")
    before = ann.event("s2", "harm", "yes")
    site.server.writing.put([plain("s2", "Drink more.")])
    refused = ann.save(before)["refused"]
    assert refused == {before["client_id"]: "the item has changed: load it again"}
    assert "Drink more." in json.dumps(ann.gets("/api/screen/s2"))


def test_two_servers_of_one_study_keep_an_event_once(site: Running, tmp_path: Path) -> None:
    with served(tmp_path) as other:
        here, there = site.enters("ann"), other.enters("ann")
        event = here.event("s1", "harm", "yes")
        assert here.save(event)["saved"] == there.save(event)["saved"] == [event["client_id"]]
        assert there.gets("/api/screen/s1")["labels"] == {"harm": "yes"}
    assert len(events_of(site)) == 1


# --- who may come in --------------------------------------------------------------------------


def test_a_link_works_once(site: Running) -> None:
    token = site.link("ann")
    assert site.stranger.asks("POST", "/api/enter", {"token": token}).status == 200
    for used in (token, token[:-1], "", "x" * 43):
        assert site.stranger.asks("POST", "/api/enter", {"token": used}).status == 401
    assert site.stranger.asks("GET", "/api/work").status == 401


def test_guessing_tokens_ends_in_a_pause(site: Running) -> None:
    replies = [site.stranger.asks("POST", "/api/enter", {"token": f"{n}"}) for n in range(40)]
    statuses = [reply.status for reply in replies]
    assert set(statuses) == {401, 429}
    assert statuses[-1] == 429


def test_a_session_is_limited_too(site: Running) -> None:
    ann, ben = site.enters("ann"), site.enters("ben")
    site.server._requests = Limit(3, 0.001)
    assert [ann.asks("GET", "/api/work").status for _ in range(5)] == [200, 200, 200, 429, 429]
    assert ben.asks("GET", "/api/work").status == 200


def test_cookies_cannot_be_read_sent_from_elsewhere_or_outlive_a_month(site: Running) -> None:
    reply = site.stranger.asks("POST", "/api/enter", {"token": site.link("ann")})
    cookie = reply.headers["Set-Cookie"]
    for flag in ("HttpOnly", "SameSite=Strict", "Path=/", f"Max-Age={30 * 24 * 3600}"):
        assert flag in cookie
    assert "Secure" not in cookie  # clear text on this machine alone


def test_a_session_that_is_revoked_ends_at_once(site: Running) -> None:
    ann = site.enters("ann")
    event = json.dumps({"events": [ann.event("s1", "harm", "yes")]}).encode()
    port = int(ann.address.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port)) as slow:
        head = (
            f"POST /api/events HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nOrigin: {ann.address}\r\n"
            f"X-Judgebench: 1\r\nContent-Type: application/json\r\nConnection: close\r\n"
            f"Cookie: {'; '.join('='.join(c) for c in ann.cookies.items())}\r\n"
            f"Content-Length: {len(event)}\r\n\r\n"
        ).encode()
        slow.sendall(head + event[:10])
        assert site.stranger.asks("GET", "/").status == 200
        site.server.writing.revoke("ann")
        slow.sendall(event[10:])
        assert slow.makefile("rb").readline() == b"HTTP/1.1 401 Unauthorized\r\n"
    assert ann.asks("GET", "/api/work").status == 401
    assert events_of(site) == []


def test_another_persons_item_is_neither_shown_nor_kept(site: Running) -> None:
    ben = site.enters("ben")
    unknown, foreign = (ben.asks("GET", f"/api/screen/{key}") for key in ("s99", "s1"))
    assert (unknown.status, foreign.status) == (404, 404)
    assert unknown.value == foreign.value
    event = ben.event("s1", "harm", "yes", hash=plain("s1").hash)
    assert [*ben.save(event)["refused"].values()] == ["is not yours to label"]
    assert events_of(site) == []


def test_lead_and_annotators_have_routes_of_their_own(site: Running) -> None:
    ann, lead = site.enters("ann"), site.enters("lead")
    event = ann.event("s1", "harm", "yes")
    adjudicated = {**event, "reason": "slip"}
    assert ann.asks("POST", "/api/lead/adjudicate", adjudicated).status == 401
    assert lead.asks("POST", "/api/events", {"events": [event]}).status == 401
    assert lead.asks("GET", "/api/work").status == 401
    assert lead.asks("GET", "/api/screen/s1").status == 401
    assert events_of(site) == []
    # The lead labels too: both sessions live in one browser.
    lead.cookies |= ann.cookies
    assert lead.gets("/api/work")["annotator"] == "ann"
    assert lead.asks("POST", "/api/lead/adjudicate", adjudicated).status == 200
    assert ann.asks("GET", "/api/lead/item/s3").status == 401
    headings = [section["heading"] for section in lead.gets("/api/lead/item/s3")["sections"]]
    assert headings == ["Question", "Answer"]
    assert lead.asks("GET", "/api/lead/item/s9").status == 404


def test_an_adjudication_is_kept_beside_the_labels(site: Running) -> None:
    ann, lead = site.enters("ann"), site.enters("lead")
    ann.save(ann.event("s1", "harm", "yes"))
    event = ann.event("s1", "harm", "no")
    del event["at"]
    bad = lead.asks("POST", "/api/lead/adjudicate", {**event, "reason": "mood"})
    assert (bad.status, "reason" in bad.value["error"]) == (400, True)
    good = lead.asks("POST", "/api/lead/adjudicate", {**event, "reason": "guideline gap"})
    assert good.value["saved"] == [event["client_id"]]
    assert events_of(site) == [
        ("ann", "s1", "harm", "yes"), ("adjudicated", "s1", "harm", "no"),
    ]  # fmt: skip
    assert ann.gets("/api/screen/s1")["labels"] == {"harm": "yes"}


def test_the_leads_figures_are_computed_anew_when_there_are_new_labels(
    site: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_FIGURES_S", 3600)
    ann, ben, lead = site.enters("ann"), site.enters("ben"), site.enters("lead")
    assert lead.gets("/api/lead/disagreements") == []
    for person, label in ((ann, "yes"), (ben, "no")):
        person.save(person.event("s2", "harm", label), person.event("s2", "tone", "no"))
        assert person.asks("GET", "/api/lead").status == 401
        assert person.asks("GET", "/api/lead/disagreements").status == 401
    assert lead.gets("/api/lead/disagreements") == []  # too soon
    monkeypatch.setattr(server, "_FIGURES_S", 0)
    (one,) = lead.gets("/api/lead/disagreements")
    assert "Harmful?" in json.dumps(one)
    assert "ann" not in json.dumps(one)
    people = lead.gets("/api/lead")["people"]
    assert [(p["name"], p["done"]) for p in people] == [("ann", 1), ("ben", 1)]


# --- what does not come from the study's own page ---------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"}, {"Origin": "null"}, {"Origin": None},
        {"X-Judgebench": None}, {"Host": "evil.example"}, {"Host": "127.0.0.1"},
        {"Host": "127.0.0.1.evil.example:80"},
    ],
)  # fmt: skip
def test_a_foreign_page_can_save_nothing(site: Running, headers: dict[str, str | None]) -> None:
    ann = site.enters("ann")
    event = ann.event("s1", "harm", "yes")
    reply = ann.asks("POST", "/api/events", {"events": [event]}, headers)
    assert reply.status == 403
    assert set(reply.value) == {"error"}
    assert events_of(site) == []


@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "text/plain", None])
def test_a_form_can_save_nothing(site: Running, kind: str | None) -> None:
    ann = site.enters("ann")
    body = {"events": [ann.event("s1", "harm", "yes")]}
    assert ann.asks("POST", "/api/events", body, {"Content-Type": kind}).status == 400
    assert events_of(site) == []


def test_reading_needs_the_right_host_and_no_foreign_origin(site: Running) -> None:
    ann = site.enters("ann")
    for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
        assert ann.asks("GET", "/api/work", headers=headers).status == 403
        assert ann.asks("GET", "/", headers=headers).status == 403
    assert ann.asks("OPTIONS", "/api/events").status == 405
    port = ann.address.rpartition(":")[2]
    assert ann.asks("GET", "/api/work", headers={"Host": f"localhost:{port}"}).status == 200


@pytest.mark.parametrize(
    "path",
    [
        "/../key.json", "/%2e%2e/key.json", "/served/study.sqlite",
        "/api/screen/..%2f..%2fkey.json",
        "/api/screen/%00", "/api/screen/", "//etc/passwd", "/key.json", "/api/screen/s1/../../..",
    ],
)  # fmt: skip
def test_no_path_leads_to_a_file(site: Running, tmp_path: Path, path: str) -> None:
    (tmp_path / "key.json").write_text("the secret")
    reply = site.enters("ann").asks("GET", path)
    assert reply.status == 404
    assert set(reply.value) == {"error"}


def test_bodies_that_are_too_large_or_no_json_are_refused(site: Running) -> None:
    ann = site.enters("ann")
    event = ann.event("s1", "harm", "yes")
    for body, status in [
        (b" " * (1 << 20) + b"{}", 413), (b"{", 400), (b"[]", 400), (b"", 400), (b"\xff", 400),
        (b"[" * 100_000, 400), (b'{"events":' * 5_000, 400), (b"1" * 10_000, 400),
        (json.dumps({"events": [event] * 101}).encode(), 400),
        (json.dumps({"events": [{**event, "label": "x" * 10_001}]}).encode(), 400),
        (json.dumps({"events": [{**event, "label": "\ud800"}]}).encode(), 400),
        (json.dumps({"events": [{**event, "visible_ms": -1}]}).encode(), 400),
        (json.dumps({"events": [{**event, "annotator": "ben"}]}).encode(), 400),
        (json.dumps({"events": [{**event, "client_id": "short"}]}).encode(), 400),
    ]:  # fmt: skip
        reply = ann.asks("POST", "/api/events", body)
        assert reply.status == status, body[:100]
        assert isinstance(reply.value["error"], str)
    assert events_of(site) == []


def test_all_problems_of_a_request_are_told(site: Running) -> None:
    ann = site.enters("ann")
    event = ann.event("s1", "harm", "yes")
    wrong = {"events": [{**event, "visible_ms": "long"}, {**event, "colour": "red"}]}
    error = ann.asks("POST", "/api/events", wrong).value["error"]
    assert "events.0.visible_ms" in error
    assert "events.1.colour" in error


def test_a_packed_body_is_not_unpacked(site: Running) -> None:
    import gzip

    ann = site.enters("ann")
    body = gzip.compress(json.dumps({"events": [ann.event("s1", "harm", "yes")]}).encode())
    assert ann.asks("POST", "/api/events", body, {"Content-Encoding": "gzip"}).status == 400


def test_an_unexpected_error_says_nothing_of_what_it_met(
    site: Running, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    ann = site.enters("ann")
    event = ann.event("s1", "harm", "yes", remark="a private remark")

    def fails(who: str, events: object) -> None:
        raise ValueError(f"cannot keep {events}")

    monkeypatch.setattr(site.server.writing, "save", fails)
    reply = ann.asks("POST", "/api/events", {"events": [event]})
    assert (reply.status, set(reply.value)) == (500, {"error"})
    logged = capfd.readouterr().err
    assert " error: ValueError\n" in logged
    assert "in _save" in logged
    for secret in ("a private remark", event["client_id"], *ann.cookies.values()):
        assert secret not in logged + json.dumps(reply.value)
    monkeypatch.undo()
    assert ann.save(event)["saved"] == [event["client_id"]]


def test_what_is_no_http_is_refused_and_not_logged(
    site: Running, capfd: pytest.CaptureFixture[str]
) -> None:
    for sent in (b"secret\r\n\r\n", b"GET / HTTP/1.1\r\nCookie: secret\r\nsecret\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", site.port), timeout=20) as connection:
            connection.sendall(sent)
            answer = connection.makefile("rb").read()
        assert answer.startswith((b"HTTP/1.0 400", b"HTTP/1.1 400"))
    assert "secret" not in capfd.readouterr().err


def test_behind_a_proxy_its_host_and_the_address_it_adds_count(tmp_path: Path) -> None:
    with served(small_study(tmp_path), proxy="https://label.example.org") as site:
        here = Person(f"http://127.0.0.1:{site.port}")
        own = {"Host": "label.example.org", "Origin": "https://label.example.org"}

        def enters(token: str, forwarded: str) -> Reply:
            headers = {**own, "X-Forwarded-For": forwarded}
            return here.asks("POST", "/api/enter", {"token": token}, headers)

        assert here.asks("GET", "/").status == 403
        guesses = [enters("x", f"10.0.0.{n}, 192.0.2.1").status for n in range(40)]
        assert guesses[-1] == 429  # what a client says of itself does not count
        reply = enters(site.link("ann"), "192.0.2.2")
        assert reply.status == 200
        assert "__Host-judgebench-443-annotator" in here.cookies
        assert "Secure" in reply.headers["Set-Cookie"]
        assert here.asks("GET", "/api/work", headers={"Host": own["Host"]}).status == 200


# --- pages ------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/", "/lead"])
def test_a_page_may_use_its_own_script_and_style_and_nothing_else(site: Running, path: str) -> None:
    reply = site.stranger.asks("GET", path, headers={"X-Judgebench": None})
    assert reply.status == 200
    policy = dict(
        part.strip().partition(" ")[::2]
        for part in reply.headers["Content-Security-Policy"].split(";")
    )
    assert policy["default-src"] == "'none'"
    assert policy["frame-ancestors"] == "'none'"
    for kind in ("script", "style"):
        assert f"<{kind}" in reply.value
        for code in re.findall(rf"<{kind}>(.*?)</{kind}>", reply.value, re.DOTALL):
            digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
            assert f"'sha256-{digest}'" in policy[f"{kind}-src"].split()
    assert not re.search(r"\son\w+=|style=", reply.value)  # neither would be run
    assert reply.headers["Cache-Control"] == "no-store"
    assert reply.headers["Referrer-Policy"] == "no-referrer"
    assert reply.headers["X-Content-Type-Options"] == "nosniff"
    said = re.sub(r"<(script|style)>.*?</\1>", "", reply.value, flags=re.DOTALL)
    for secret in ("small", "Be kind.", "Rest."):
        assert secret not in said


def test_every_answer_has_the_headers_that_protect_it(site: Running) -> None:
    for path in ("/api/work", "/nothing"):
        headers = site.stranger.asks("GET", path).headers
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert "aiohttp" not in headers["Server"]


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


def is_refused(limit: Limit, key: str) -> bool:
    try:
        limit.check(key)
    except Refused as refused:
        return refused.status == 429
    return False


def test_a_limit_lets_a_burst_through_and_then_so_many_a_second() -> None:
    now = 0.0
    limit = Limit(3, 2.0, clock=lambda: now)
    assert [is_refused(limit, "a") for _ in range(5)] == [False, False, False, True, True]
    assert not is_refused(limit, "b")
    now = 0.5
    assert [is_refused(limit, "a") for _ in range(2)] == [False, True]
    now = 100.0
    assert [is_refused(limit, "a") for _ in range(4)] == [False, False, False, True]


def test_a_limit_remembers_the_latest_keys_alone() -> None:
    limit = Limit(1, 0.001, most=2, clock=lambda: 0.0)
    assert [is_refused(limit, key) for key in "abab"] == [False, False, True, True]
    assert [is_refused(limit, key) for key in "cba"] == [False, True, False]


@contextmanager
def half_open(site: Running, count: int, sent: bytes = HALF) -> Iterator[list[socket.socket]]:
    """So many connections of one address that have sent this and no more."""
    with ExitStack() as opened:
        found = []
        for _ in range(count):
            one = socket.create_connection(("127.0.0.1", site.port), timeout=20)
            found.append(opened.enter_context(one))
            one.sendall(sent)
        yield found


@pytest.mark.parametrize("sent", [HALF, b"G", b""], ids=["half a request", "a letter", "nothing"])
def test_64_half_open_connections_stop_nobody(site: Running, sent: bytes) -> None:
    with half_open(site, 64, sent) as slow:
        begun = time.monotonic()
        ann = site.enters("ann")
        event = ann.event("s1", "harm", "yes")
        assert ann.save(event)["saved"] == [event["client_id"]]
        assert time.monotonic() - begun < 1
        assert not closed(slow[0], 0.2)  # it has its time


def test_who_sends_half_a_request_has_so_many_seconds(
    site: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_PATIENCE_S", 1)
    with half_open(site, 64) as slow:
        begun = time.monotonic()
        assert all(closed(one, 10) for one in slow)
        assert 1 <= time.monotonic() - begun < 6
    assert site.enters("ann").gets("/api/work")["annotator"] == "ann"


def test_a_letter_now_and_then_gives_no_more_time(
    site: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_PATIENCE_S", 1)
    with half_open(site, 1, b"") as (slow,):
        end = time.monotonic() + 10
        while not closed(slow, 0.1):
            assert time.monotonic() < end
            with suppress(ConnectionError):
                slow.sendall(b"G")


def test_a_kept_connection_waits_longer_for_its_next_request_and_not_for_ever(
    site: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_PATIENCE_S", 0.5)
    monkeypatch.setattr(server, "_KEPT_S", 4)
    whole = f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{site.port}\r\n\r\n".encode()
    with half_open(site, 1, whole) as (kept,):
        begun = time.monotonic()
        answer = kept.makefile("rb")
        assert answer.readline() == b"HTTP/1.1 200 OK\r\n"
        kept.sendall(HALF)
        kept.settimeout(20)
        with suppress(ConnectionError):
            answer.read()
        assert 3 < time.monotonic() - begun < 12


def test_of_too_many_that_wait_those_go_whose_time_ends_first(
    site: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_MOST_WAITING", 8)
    with half_open(site, 8) as first:
        assert not closed(first[0], 2.5)
        with half_open(site, 8) as later:
            assert not closed(first[0], 1)  # who came a moment ago may only not be read yet
            assert all(closed(one, 5) for one in first)
            assert not closed(later[-1], 0.5)
        assert site.enters("ann").gets("/api/work")["annotator"] == "ann"
