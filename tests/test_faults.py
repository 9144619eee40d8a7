"""Thousands of answers through a server that fails in every known way: nothing lost, nothing twice.

The ending of every answer is known before the run (tests/fault_server.py), so the account is exact.
"""

import json
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import fault_account
import fault_server
import pytest
import yaml
from fault_account import (
    JUDGE,
    MAX_RETRIES,
    PARSE_RETRIES,
    complaints,
    endings,
    judge_all,
    write_bench,
)
from fault_server import FAULTS, HEALTHY, Act, Fault, FaultServer, Line, Wire, expected

from judgebench.records import Status
from judgebench.rubric import Rubric
from judgebench.runs.folder import RunFolder
from judgebench.runs.verdict_log import signed


def names(faults: tuple[Fault, ...]) -> set[str]:
    return {fault.name for fault in faults}


@pytest.mark.parametrize(
    ("kind", "answers", "seed"),
    [
        ("openai-compatible", 400, 1),
        pytest.param("openai-compatible", 5_000, 1, marks=pytest.mark.long),
        pytest.param("litellm", 500, 4, marks=pytest.mark.long),
    ],
)
def test_every_answer_ends_in_one_right_verdict(
    tmp_path: Path, kind: str, answers: int, seed: int
) -> None:
    folder = RunFolder(tmp_path / "run")
    with FaultServer(seed) as server:
        judge_all(write_bench(tmp_path, server, answers, kind), folder)
    found = endings(server, folder)
    assert complaints(server, found, answers) == []
    assert len(found) == answers
    met = names(tuple({ending.fault for ending in found.values()}))
    if answers >= 1_000:
        assert server.deaths > 0
        rare = set() if answers >= 10_000 else {"body of 50 MB"}
        assert met | rare >= names(FAULTS)
        assert {ending.status for ending in found.values()} == set(Status)
    else:
        assert len(met) > 20


def test_without_a_death_every_call_is_accounted_for(tmp_path: Path) -> None:
    """The calls that the verdicts account for are those that came, to the last."""
    folder = RunFolder(tmp_path / "run")
    left_out = ("dies", "timeout_s", "50 MB")
    living = tuple(f for f in FAULTS if not any(part in f.name for part in left_out))
    with FaultServer(2, living) as server:
        judge_all(write_bench(tmp_path, server, 400, "openai-compatible"), folder)
    found = endings(server, folder)
    assert complaints(server, found, 400) == []
    assert server.deaths == server.cut_off.total() == 0
    assert server.received == {number: ending.calls for number, ending in found.items()}


def test_running_again_asks_for_failures_alone(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    chosen = tuple(f for f in FAULTS if f.name in ("another bad request (400)", "extra keys"))
    with FaultServer(3, (*chosen, HEALTHY)) as server:
        bench = write_bench(tmp_path, server, 60, "openai-compatible")
        judge_all(bench, folder)
        before = Counter(server.received)
        failed = {v.item_id for v in folder.verdicts(JUDGE) if v.status is Status.FAILED}
        judge_all(bench, folder)
    assert 0 < len(failed) < 60
    asked = {f"case-{number}" for number in server.received - before}
    assert asked == failed
    lines = Counter(verdict.item_id for verdict in folder.verdicts(JUDGE))
    assert {item for item, count in lines.items() if count == 2} == failed
    assert set(lines.values()) == {1, 2}


def test_the_account_sees_what_it_is_to_see(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    with FaultServer(4, (HEALTHY,)) as server:
        judge_all(write_bench(tmp_path, server, 5, "openai-compatible"), folder)
    path = folder.verdict_path(JUDGE)
    undigested = re.sub(rb',"crc":"\w{8}"', b"", path.read_bytes())
    lines = undigested.splitlines(keepends=True)
    for damaged, told in (
        (lines[1:], "has no verdict"),
        ([*lines, lines[0]], "not as"),
        ([lines[0].replace(b'"ok"', b'"unparsed"'), *lines[1:]], "not as"),
        ([lines[0].replace(b'"calls":1', b'"calls":2'), *lines[1:]], "accounted for"),
    ):
        path.write_bytes(b"".join(map(signed, damaged)))
        (complaint,) = complaints(server, endings(server, folder), 5)
        assert told in complaint
    server.seed += 1  # other labels
    path.write_bytes(b"".join(map(signed, lines)))
    assert any("labels" in told for told in complaints(server, endings(server, folder), 5))


def test_what_is_expected_follows_from_the_acts() -> None:
    again = Act(None, lambda labels: Wire())
    unread = Act(Status.UNPARSED, lambda labels: Wire())
    good = Act(Status.OK, lambda labels: Wire())

    def lines(*acts: Act) -> list[Line]:
        return expected(Fault("made up", 0, acts, ""), MAX_RETRIES, PARSE_RETRIES)

    assert lines(good) == [Line(Status.OK, 1)]
    assert lines(again, again, good) == [Line(Status.OK, 3)]
    assert lines(again, unread, again, good) == [Line(Status.UNPARSED, 2), Line(Status.OK, 2)]
    assert lines(unread) == [Line(Status.UNPARSED, 1)] * 2
    assert lines(again) == [Line(Status.FAILED, MAX_RETRIES + 1, exhausted=True)]


def test_lists_of_labels_meet_the_same_faults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A metric on which several labels may be right: the server sends lists in every fault, too."""
    of = [
        {**m.model_dump(mode="json"), "several": m.id == "channel", "prompt_order": ()}
        for m in fault_server.RUBRIC.metrics
    ]
    rubric = Rubric(name="r", version="1", instructions="Label.", metrics=of)
    (tmp_path / "lists.yaml").write_text(yaml.safe_dump(rubric.model_dump(mode="json")))
    plain = fault_server.labels_of

    def sets(seed: int, number: int) -> dict[str, str]:
        ways = rubric.metrics[2].label_texts
        kept = ways[number % 2 : 2 + number % 3]
        return {**plain(seed, number), "channel": " | ".join(kept)}

    def lists(labels: Mapping[str, str]) -> str:
        return json.dumps({**labels, "channel": labels["channel"].split(" | ")})

    monkeypatch.setattr(fault_server, "labels_of", sets)
    monkeypatch.setattr(fault_server, "as_json", lists)
    monkeypatch.setattr(fault_account, "labels_of", sets)
    monkeypatch.setattr(fault_account, "RUBRIC_NAME", str(tmp_path / "lists.yaml"))
    folder = RunFolder(tmp_path / "run")
    with FaultServer(5) as server:
        bench = write_bench(tmp_path, server, 100, "openai-compatible")
        judge_all(bench, folder)
        found = endings(server, folder)
        assert complaints(server, found, 100) == []
        heard = server.received.total()
        judge_all(bench, folder)  # nothing is asked again but what had no reply
        assert server.received.total() - heard < 20
    said = [v.labels["channel"] for v in folder.verdicts(JUDGE) if v.status is Status.OK]
    assert sum(" | " in label for label in said) > 20
