"""`judgebench watch`: what counts, how a certificate stands, and who is told."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from certified import RUBRIC, certificate_of, replies, swapped, written

import judgebench as jb

Call = Callable[..., tuple[int, str, str]]
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def rows_of(file: str) -> list[dict[str, str]]:
    return pd.read_csv(file, dtype=str).to_dict("records")


@pytest.fixture
def issued(here: Path) -> Any:
    made = certificate_of(here, again=["again.csv"])
    made.write("judge.json")
    return made


def watched(call: Call, *words: object) -> tuple[int, dict[str, Any]]:
    code, out, err = call("watch", "judge.json", *words, "--json")
    assert out, err
    return code, json.loads(out)


def test_verdicts_labels_and_anchors_count_once(issued: Any, call: Call, here: Path) -> None:
    written(here / "today.csv", rows_of("verdicts.csv")[:50])
    for words in (("log.csv",), ("log.csv", "fresh.csv"), ("log.csv", "fresh.csv", "today.csv")):
        watched(call, *words, "today.csv")
    _, out, _ = call("watch", "judge.json", "log.csv", "fresh.csv", "today.csv")
    said = " ".join(out.split())
    assert "Counted now: 0 answers, 0 anchors, 0 answers with labels; 450 rows" in said
    assert "(50 so far)" in said  # anchors
    assert "(100 so far)" in said  # answers with labels
    _, found = watched(call, "today.csv", "--source", "2026-12-01")
    (anchors,) = [
        r for r in found["watch"] if (r["family"], r["statistic"]) == ("changed", "share")
    ]
    assert (anchors["n"], anchors["value"]) == (100, 0.0)


def test_columns_may_be_called_as_in_the_tables_that_were_decided_on(
    issued: Any, call: Call, here: Path
) -> None:
    """A column of ids of any name, one that the judge heads, and one for each annotator."""
    people, verdicts = replies(2, 1000, 400)
    written(here / "log.csv", [
        {"ticket": row["item_id"], "gpt-4 says": row["refused"]} for row in verdicts
    ])  # fmt: skip
    sheet: dict[str, dict[str, str]] = {}
    for row in people[:300]:
        sheet.setdefault(row["item_id"], {"ticket": row["item_id"]})[row["annotator"]] = row[
            "refused"
        ]
    written(here / "fresh.csv", [*sheet.values()])
    _, out, err = call("watch", "judge.json", "log.csv", "fresh.csv")
    assert "Counted now: 400 answers, 0 anchors, 100 answers with labels" in " ".join(out.split())
    assert not err
    again = [{"ticket": r["item_id"], "verdict": r["refused"]} for r in rows_of("verdicts.csv")]
    written(here / "again.csv", again)
    decide = ("decide", "labels.csv", "verdicts.csv", "--order", "no < yes")
    with pytest.warns(UserWarning, match="if they are a copy"):
        assert call(*decide, "--certificate", "other.json", "--again", "again.csv")[0] == 0
    assert jb.read_certificate("other.json").metrics["refused"].noise.pairs == 600


def test_a_growing_log_is_counted_on(issued: Any, call: Call, here: Path) -> None:
    rows = rows_of("log.csv")
    for n in (100, 250, 400):
        written(here / "growing.csv", rows[:n])
        _, found = watched(call, "growing.csv")
        (failures,) = [
            r for r in found["watch"] if (r["of"], r["statistic"], r["family"])
            == ("failures", "share", "fallen")
        ]  # fmt: skip
        assert failures["n"] == n


def test_states_have_exit_codes_and_sentences(issued: Any, call: Call, here: Path) -> None:
    code, found = watched(call, "log.csv")
    assert (code, found["state"], found["reasons"]) == (0, "valid", [])
    written(here / "other.csv", replies(5, 2000, 40, systems=("unheard-of",))[1])
    code, found = watched(call, "other.csv")
    assert (code, found["state"]) == (4, "warned")
    assert "systems that it has never seen: unheard-of (40 answers)" in found["reasons"][0]
    written(here / "swap.csv", swapped(rows_of("verdicts.csv"), 0.10))
    code, found = watched(call, "swap.csv")
    assert (code, found["state"]) == (6, "revoked")
    assert found["reasons"][0].startswith("The judge changed: on refused it gives")
    assert watched(call, "log.csv")[0] == 6  # what was found does not go away
    assert watched(call, "--ci")[0] == 3
    code, out, _ = call("watch", "judge.json", "-q")
    assert (code, out) == (6, "")


def test_an_endpoint_that_is_down_is_no_other_judge(issued: Any, call: Call, here: Path) -> None:
    rows = rows_of("verdicts.csv")[:200]
    written(here / "down.csv", [{**row, "refused": ""} for row in rows])
    code, found = watched(call, "down.csv")
    assert (code, found["state"]) == (0, "valid")
    written(here / "down.csv", [{**row, "refused": "no idea"} for row in rows])
    assert watched(call, "down.csv")[0] == 6  # it replied, and nothing that can be read


def test_another_model_and_time_end_it(here: Path, call: Call) -> None:
    rows = [{**row, "judge_model": "gpt-4-0613"} for row in rows_of("log.csv")]
    made = certificate_of(here, now=datetime.now(UTC) - timedelta(days=200))
    made.write("judge.json")
    code, found = watched(call)
    assert (code, found["state"]) == (5, "expired")
    fresh = certificate_of(here)
    watch = jb.watch(fresh, state=None)
    assert watch.update(pd.DataFrame(rows)).state == "valid"
    later = [{**row, "item_id": f"x{row['item_id']}", "judge_model": "gpt-5"} for row in rows]
    found = watch.update(pd.DataFrame(later))
    assert found.state == "expired"
    assert "The model that replies changed: gpt-5" in found.reasons[0].text


def test_other_answers_are_told_from_another_judge(issued: Any, call: Call, here: Path) -> None:
    written(here / "harm.csv", replies(6, 3000, 800, harm=0.75)[1])
    code, found = watched(call, "harm.csv")
    assert code == 4
    assert "It is not known yet whether" in found["reasons"][0]
    written(here / "same.csv", rows_of("verdicts.csv")[:200])
    _, found = watched(call, "same.csv")
    assert "it is the answers that changed" in found["reasons"][0]


class Words:
    """Vectors of texts by the first letters of their words: enough to tell two languages apart."""

    def embed(self, texts: list[str]) -> Any:
        counts = np.zeros((len(texts), 26))
        for row, text in enumerate(texts):
            for word in text.lower().split():
                if "a" <= word[0] <= "z":
                    counts[row, ord(word[0]) - ord("a")] += 1
        return counts / np.linalg.norm(counts, axis=1, keepdims=True)


def test_texts_of_another_kind_are_noticed_with_an_encoder(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("judgebench.certificate.seen.open_encoder", lambda name: Words())
    (here / "rule.yaml").write_text("certificate: {encoder: words}", encoding="utf-8")
    labels, verdicts = (pd.read_csv(f"{name}.csv") for name in ("labels", "verdicts"))
    decided = jb.decide(jb.study(labels, verdicts, rubric=RUBRIC), rule="rule.yaml")
    made = decided.certificate()
    assert sum(made.population.shares["alike"].values()) == 600
    watch = jb.watch(made, state=None)
    log = pd.read_csv("log.csv")
    assert watch.update(log).state == "valid"
    other = log.assign(
        item_id=log.item_id + "x", text=log.text.str.replace("so ", "no yes maybe ", regex=False)
    )
    found = watch.update(other)
    assert found.state == "warned"
    assert any("How alike the texts are" in reason.text for reason in found.reasons)


def test_agreement_that_falls_revokes_and_names_the_annotators(here: Path) -> None:
    watch = jb.watch(certificate_of(here), state=None)
    people, verdicts = replies(7, 5000, 300, errs=0.35)
    found = watch.update(pd.DataFrame(verdicts), pd.DataFrame(people))
    assert found.state == "revoked"
    said = found.reasons[0].text
    assert "beyond its bound, agreement with an annotator" in said
    assert "annotators agree with each other on 9" in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b\n1,2\n", "no column holds labels of the certificate's metrics"),
        ("item_id,refused\nr1,maybe\n", ""),
        ("item_id,annotator,refused\nr1,ann,perhaps\n", "perhaps"),
        ("item_id,annotator,refused,probability\nr1,ann,no,7\n", "is no chance"),
        ("", "is empty"),
    ],
)
def test_bad_files_are_refused_and_nothing_is_counted(
    issued: Any, call: Call, here: Path, text: str, said: str
) -> None:
    (here / "bad.csv").write_text(text, encoding="utf-8")
    code, out, err = call("watch", "judge.json", "log.csv", "bad.csv")
    if not said:  # an unreadable verdict is a failure, not an error
        assert code == 0
        return
    assert (code, out) == (2, "")
    assert "bad.csv" in err
    assert said in err
    _, found = watched(call)
    assert not any(row["n"] for row in found["watch"] if row["statistic"] == "share")


def test_a_study_with_other_labels_is_refused(issued: Any) -> None:
    rubric = jb.Rubric.from_labels({"refused": ["no", "partly", "yes"]})
    labels, verdicts = (pd.read_csv(f"{name}.csv") for name in ("labels", "verdicts"))
    with pytest.raises(jb.SetupError, match="labels are not those of the certificate"):
        jb.watch("judge.json", state=None).update(jb.study(labels, verdicts, rubric=rubric))


def test_run_folders_are_certified_and_watched(here: Path, call: Call) -> None:
    decide = ("decide", "labels.csv", "verdicts.csv", "--order", "no < yes", "--save", "bench")
    assert call(*decide)[0] == 0
    for run in ("first", "second"):
        assert call("run", "bench/bench.yaml", "--run", run, "-q")[0] == 0
    code, out, err = call("decide", "first", "--certificate", "judge.json")
    assert (code, "Certificate: judge.json" in out) == (0, True), err
    for run, n in (("second", 600), ("second", 600), ("first", 1200)):
        code, found = watched(call, run)
        assert code == 0
        (again,) = [
            r for r in found["watch"] if (r["family"], r["statistic"]) == ("changed", "share")
        ]
        assert again["n"] == n


def test_a_page_shows_the_evidence_over_time(issued: Any, here: Path, call: Call) -> None:
    watch = jb.watch("judge.json")
    start = datetime(2026, 12, 1, tzinfo=UTC)
    rows = rows_of("verdicts.csv")
    for day in range(6):
        part = pd.DataFrame(swapped(rows[:100], 0.1, seed=day))
        found = watch.update(part, source=f"day {day}", now=start + timedelta(days=day))
    watch.close()
    assert found.state == "revoked"
    assert len(found.seen.points) == 6
    code, _, err = call("watch", "judge.json", "--to", "page")
    assert code == 6, err
    page = (here / "page" / "report.html").read_text("utf-8")
    for text in ("The judge changed", "Evidence that something changed", "image/svg"):
        assert text in page


def test_anchors_to_judge_are_drawn_by_a_plan(issued: Any, call: Call, here: Path) -> None:
    _, first, _ = call("certificate", "anchors", "judge.json", "-n", "30")
    ids = [json.loads(line)["item_id"] for line in first.splitlines()]
    assert len(set(ids)) == 30
    verdicts = {row["item_id"]: row for row in rows_of("verdicts.csv")}
    written(here / "a.csv", [verdicts[item] for item in ids])
    call("watch", "judge.json", "a.csv")
    _, second, _ = call("certificate", "anchors", "judge.json", "-n", "570")
    rest = [json.loads(line)["item_id"] for line in second.splitlines()]
    assert set(ids).isdisjoint(rest)
    assert len(set(ids) | set(rest)) == 600


@contextmanager
def listening() -> Iterator[tuple[str, list[Any]]]:
    """A server on loopback that keeps what is posted to it."""
    got: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *words: Any) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/", got
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_somebody_is_told_when_it_stands_otherwise_and_only_then(
    issued: Any, call: Call, here: Path
) -> None:
    written(here / "swap.csv", swapped(rows_of("verdicts.csv"), 0.10))
    with listening() as (address, got):
        call("watch", "judge.json", "log.csv", "--hook", address)
        assert got == []
        call("watch", "judge.json", "swap.csv", "--hook", address)
        call("watch", "judge.json", "swap.csv", "--hook", address)
    (news,) = got
    assert (news["before"], news["state"], news["judge"]) == ("valid", "revoked", "gpt-4")
    keep = "import sys; open('news.json', 'w').write(sys.stdin.read())"
    (here / "keep.py").write_text(keep, encoding="utf-8")
    (here / "judge.watch").unlink()
    call("watch", "judge.json", "swap.csv", "--hook", f"{sys.executable} keep.py")
    assert json.loads((here / "news.json").read_text())["state"] == "revoked"
    (here / "judge.watch").unlink()
    code, _, err = call("watch", "judge.json", "swap.csv", "--hook", "no-such-command")
    assert (code, "took no news" in err) == (1, True)
    (here / "judge.watch").unlink()
    code, _, err = call("watch", "judge.json", "swap.csv", "--hook", "http://a:b@127.0.0.1/")
    assert (code, "holds a password" in err) == (2, True)
