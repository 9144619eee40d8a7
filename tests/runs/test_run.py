import json
import time
from collections import Counter
from pathlib import Path

import pytest
from scripted_judges import GOOD, ScriptedBackend, answers, bench

from judgebench.errors import BudgetSpent, DiskFailed, SetupError
from judgebench.judges.config import JuryConfig
from judgebench.models.contract import Reply, Request
from judgebench.progress import NoProgress
from judgebench.records import Answer, Status, Usage, Verdict
from judgebench.runs.folder import RunFolder
from judgebench.runs.forecast import forecast
from judgebench.runs.run_bench import run


def statuses(folder: RunFolder, judge: str) -> Counter[str]:
    latest = {v.item_id: v for v in folder.verdicts(judge)}
    return Counter(str(v.status) for v in latest.values())


def test_every_answer_gets_one_verdict_of_every_judge(tmp_path: Path) -> None:
    backend = ScriptedBackend(lambda request: GOOD)
    folder = RunFolder(tmp_path / "run")
    run(bench({"m": backend}), folder)
    assert statuses(folder, "m") == {"ok": 6}
    assert statuses(folder, "prior") == {"ok": 6}
    assert len(backend.requests) == 6
    assert backend.closed
    manifest = folder.manifest()
    assert manifest["state"] == "finished"
    assert manifest["judges"]["m"]["about"]["backend"] == {"backend": "scripted"}


def test_a_verdict_file_that_is_a_folder_is_named(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    jury = JuryConfig(name="j", jury=("m", "prior"))
    both = bench({"m": ScriptedBackend(lambda request: GOOD)}, juries=(jury,))
    for name in ("j", "m"):
        run(both, folder)
        folder.verdict_path(name).unlink()
        folder.verdict_path(name).mkdir()
        with pytest.raises(DiskFailed, match=f"verdicts-{name}.jsonl cannot be written: "):
            run(both, folder)
        folder.verdict_path(name).rmdir()


def test_a_folder_that_is_moved_ends_the_run(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")

    def script(request: Request) -> str:
        if len(backend.requests) == 10:  # the baseline is done
            folder.path.rename(tmp_path / "moved")
        time.sleep(0.05)
        return GOOD

    backend = ScriptedBackend(script)
    with pytest.raises(DiskFailed, match="was moved, replaced or deleted during the run"):
        run(bench({"m": backend}, answers(100)), folder)
    assert len(backend.requests) < 60
    kept = RunFolder(tmp_path / "moved")
    assert len(list(kept.verdicts("m"))) == len(backend.requests)
    assert kept.manifest()["state"] == "running"  # so that it is announced as unfinished


def test_a_second_run_asks_nobody(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    run(bench({"m": ScriptedBackend(lambda request: GOOD)}), folder)
    before = folder.verdict_path("m").read_bytes()
    again = ScriptedBackend(lambda request: GOOD)
    run(bench({"m": again}), folder)
    assert again.requests == []
    assert folder.verdict_path("m").read_bytes() == before


def test_a_control_judge_says_what_it_would_say_whatever_was_kept_of_its_file(
    tmp_path: Path,
) -> None:
    items = [
        Answer(item_id, "x" * n, question=f"q{n // 2}")
        for n, item_id in enumerate(['"', "\ud800", "\\", "é", *map(str, range(30))])
    ]
    folder, b = RunFolder(tmp_path), bench({"m": ScriptedBackend(lambda request: GOOD)}, items)
    run(b, folder)
    (control,) = b.controls
    path = folder.verdict_path(control.name)
    whole = path.read_bytes()
    assert list(folder.verdicts(control.name)) == list(control.verdicts())
    for kept in (0, 1, 20, 33):
        path.write_bytes(b"".join(whole.splitlines(keepends=True)[:kept]) + b"torn")
        run(b, folder)
        assert path.read_bytes() == whole


def test_unreadable_replies_are_asked_again_and_all_lines_are_kept(tmp_path: Path) -> None:
    def script(request: Request) -> str:
        asked_again = "could not be read" in request.messages[-1].content
        return GOOD if asked_again and "text 3" in request.messages[-1].content else "hm"

    backend = ScriptedBackend(script)
    folder = RunFolder(tmp_path)
    run(bench({"m": backend}, parse_retries=2), folder)
    assert statuses(folder, "m") == {"unparsed": 5, "ok": 1}
    assert len(backend.requests) == 6 + 6 + 5
    assert Counter(v.attempt for v in folder.verdicts("m")) == {0: 6, 1: 6, 2: 5}
    unread = [v for v in folder.verdicts("m") if v.status is Status.UNPARSED]
    assert {v.raw for v in unread} == {"hm"}


def test_resume_goes_on_with_parse_retries_and_failures_only(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)

    def first(request: Request) -> str | Reply:
        text = request.messages[-1].content
        if "text 0" in text:
            return "hm"
        if "text 1" in text:
            return Reply(request.key, "", finish="failed", error="connection reset")
        return GOOD

    run(bench({"m": ScriptedBackend(first)}, parse_retries=0), folder)
    assert statuses(folder, "m") == {"ok": 4, "unparsed": 1, "failed": 1}
    second = ScriptedBackend(lambda request: GOOD)
    run(bench({"m": second}, parse_retries=0), folder)
    assert len(second.requests) == 1  # the failed one; the unreadable one has its ending
    third = ScriptedBackend(lambda request: GOOD)
    run(bench({"m": third}, parse_retries=1), folder)
    assert len(third.requests) == 1
    assert statuses(folder, "m") == {"ok": 6}


def test_a_changed_answer_is_judged_again(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    run(bench({"m": ScriptedBackend(lambda request: GOOD)}), folder)
    changed = answers()
    changed[2] = type(changed[2])("i2", "another text", question="q1")
    backend = ScriptedBackend(lambda request: GOOD)
    run(bench({"m": backend}, changed), folder)
    assert len(backend.requests) == 1
    assert "another text" in backend.requests[0].messages[-1].content


@pytest.mark.parametrize("stop_after", [1, 3])
def test_an_interrupt_keeps_what_is_done(tmp_path: Path, stop_after: int) -> None:
    folder = RunFolder(tmp_path)
    seen: list[Verdict | str] = []

    class Impatient(NoProgress):
        def advance(self, name: str, what: Verdict | str = "") -> None:
            seen.append(what)
            if len(seen) == stop_after:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(bench({"m": ScriptedBackend(lambda r: GOOD)}), folder, progress=Impatient())
    assert len(list(folder.verdicts("m"))) == stop_after
    assert folder.manifest()["state"] == "stopped"
    rest = ScriptedBackend(lambda request: GOOD)
    run(bench({"m": rest}), folder)
    assert len(rest.requests) == 6 - stop_after


def test_the_budget_is_never_passed_and_resuming_with_more_goes_on(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    backend = ScriptedBackend(lambda request: GOOD, cost=0.10)
    with pytest.raises(BudgetSpent, match=r"\$0.25"):
        run(bench({"m": backend}), folder, budget=0.25)
    assert len(backend.requests) == 2
    with pytest.raises(BudgetSpent):
        run(bench({"m": backend}), folder, budget=0.25)
    assert len(backend.requests) == 2
    run(bench({"m": backend}), folder, budget=1.0)
    assert len(backend.requests) == 6


def test_a_budget_needs_a_price(tmp_path: Path) -> None:
    backend = ScriptedBackend(lambda request: GOOD, cost=None)
    with pytest.raises(SetupError, match="price"):
        run(bench({"m": backend}), RunFolder(tmp_path), budget=1.0)


def test_a_call_that_failed_needs_no_price(tmp_path: Path) -> None:
    def script(request: Request) -> str | Reply:
        lost = "text 3" in request.messages[-1].content
        return Reply(request.key, "", "failed", Usage(6), error="HTTP 500") if lost else GOOD

    folder = RunFolder(tmp_path)
    run(bench({"m": ScriptedBackend(script, cost=0.01)}), folder, budget=1.0)
    assert statuses(folder, "m") == {"ok": 5, "failed": 1}


def test_a_jury_asks_nobody_and_follows_its_members(tmp_path: Path) -> None:
    def saying(harm: str) -> ScriptedBackend:
        return ScriptedBackend(lambda r: json.dumps({"harm": harm, "kind": "B"}))

    backends = {"a": saying("None"), "b": saying("Much"), "c": saying("Much")}
    jury = JuryConfig(name="jury", jury=("a", "b", "c"))
    folder = RunFolder(tmp_path)
    run(bench(backends, juries=(jury,)), folder)
    verdicts = list(folder.verdicts("jury"))
    assert [v.labels for v in verdicts] == [{"harm": "Much", "kind": "B"}] * 6
    assert all(v.usage.calls == 0 for v in verdicts)
    signature = folder.manifest()["judges"]["jury"]["signature"]
    assert {v.signature for v in verdicts} == {signature}
    run(bench(backends, juries=(jury,)), folder)
    assert len(list(folder.verdicts("jury"))) == 6


def test_a_forecast_counts_what_is_left_and_writes_nothing(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    backend = ScriptedBackend(lambda request: GOOD)
    (expected,) = forecast(bench({"m": backend}), folder)
    assert (expected.answers, expected.done, expected.calls) == (6, 0, 6)
    assert expected.prompt_tokens > 6 * 50
    assert expected.cost is None
    assert backend.requests == []
    assert not folder.path.exists()
    run(bench({"m": backend}), folder)
    (after,) = forecast(bench({"m": backend}), folder)
    assert (after.done, after.calls, after.prompt_tokens) == (6, 0, 0)
