"""Rounds from the command line: a real run, real files, a server on this machine, and people."""

import csv
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from learning_case import hide_labels, write_bench
from loopback import Loopback, Play, said
from rounds_case import proposal

import judgebench as jb
from judgebench.errors import SetupError
from judgebench.runs import run_bench
from judgebench.runs.folder import RunFolder
from judgebench.runs.load import load_bench
from judgebench.tuning.judges import TuningExtension
from judgebench.tuning.measure import measure_tuning
from judgebench.tuning.rounds import revisions

Call = Callable[..., tuple[int, str, str]]


def spoken(body: Mapping[str, Any], number: int) -> Play:
    """A judge that finds all friendly; as suggester it proposes Rude, and holds to it; as objector
    it says Friendly of model-x."""
    text = "\n".join(message["content"] for message in body["messages"])
    if "Label of your colleague: Rude" in text and "of model-x" in text:
        return said(proposal("Friendly", "so it is"))
    if "A judge of answers is taught" in text:
        return said(proposal("Rude", "it is an insult"))
    return said(json.dumps({"tone": "Friendly"}))


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Path]:
    with Loopback(spoken) as server:
        judges = (
            f"  - {{name: expert, backend: 'openai-compatible:m@{server.base_url}'}}\n"
            "  - name: who\n    learn: bag-of-words\n"
            "    rounds: {suggester: expert, objector: expert, decide: DECIDE}"
        )
        bench = write_bench(tmp_path, judges, questions=8, more="tuning: {folds: 2}")
        hide_labels(tmp_path)
        yield bench


def set_up(bench: Path, decide: str) -> None:
    bench.write_text(bench.read_text().replace("DECIDE", decide))


def tune(bench: Path, run: Path) -> None:
    loaded = load_bench(bench, run_folder=run, extend=TuningExtension())
    run_bench.run(loaded, RunFolder(run))
    loaded.close()


def facts(run: Path) -> list[dict[str, Any]]:
    signature = json.loads((run / "run.json").read_text())["judges"]["who"]["signature"]
    home = run / "tuning" / "who" / signature
    return [json.loads(path.read_text()) for path in sorted(home.glob("fold-*/learnt.json"))]


def waiting_in(fact: Mapping[str, Any]) -> list[str]:
    return [line["key"] for line in fact.get("proposals", ()) if not line["decision"]]


def decide(
    run: Path, table: Path, answers: Mapping[str, str], leave: int = 0, reviewer: str = "Dr Who"
) -> None:
    """Save the table of the page as a browser does; `answers` by the item's beginning."""
    from judgebench.people.page import item_hash

    page = (run / "tuning" / "who" / "revisions.html").read_text()
    data = page.partition('type="application/json" id="data">')[2]
    items = json.loads(data.partition("</script>")[0])
    with table.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["item_id", "content_hash", "decision", "reviewer", "remark", "edit"])
        for number, item in enumerate(items["items"]):
            made = {key: item[key] for key in ("title", "sections")}
            assert item_hash({**made, "edit": None}) == item["hash"]
            word = next(v for k, v in answers.items() if item["title"].startswith(k))
            word = "" if number < leave else word
            writer.writerow([item["id"], item["hash"], word, reviewer, "", ""])


def test_people_decide_and_the_next_run_learns(tmp_path: Path, bench: Path, call: Call) -> None:
    set_up(bench, "people")
    run, table = tmp_path / "run", tmp_path / "said.csv"
    code, out, err = call("tune", bench, "--run", run)
    assert code == 0, err
    # The judge is measured as it is, and what it has not learnt yet is said.
    found = measure_tuning(jb.open_run(run))
    assert found is not None
    assert found.waiting["who"]
    assert found.rows.select("gain", judge="who")
    assert "who waits for " in out
    assert all(waiting_in(fact) and len(fact["rounds"]) == 1 for fact in facts(run))
    code, out, _ = call("tune", "rounds", run, "who")
    assert code == 0
    every = [json.loads(p.read_text()) for p in (run / "tuning").glob("who*/*/*/learnt.json")]
    waiting = len({key for fact in every for key in waiting_in(fact)})
    assert any(
        path.parent.name == "all" for path in (run / "tuning").glob("who~in*/*/*/learnt.json")
    )
    assert f"0 of {waiting} that wait are decided: {run}/tuning/who/revisions.html" in out
    lines = [line for fact in facts(run) for line in fact["proposals"]]
    assert {line["now"] for line in lines} == {"Rude"}
    assert {line["outcome"] for line in lines} == {"agreed", "disputed"}
    # Half of it is not enough.
    decide(run, table, {"model-x": "reject", "model-y": "accept"}, leave=1)
    code, out, _ = call("tune", "rounds", run, "who", "--decisions", table)
    assert f"{waiting - 1} of {waiting} that wait are decided" in out
    assert not (run / "tuning" / "who" / "decisions.json").exists()
    code, _, err = call("tune", "rounds", run, "who", "--decisions", table, "--decisions", table)
    assert "said.csv: is given twice" in err
    # Of two who differ, the one who rejects counts, whoever is named last.
    decide(run, table, {"model-x": "reject", "model-y": "accept"})
    second = tmp_path / "second.csv"
    decide(run, second, {"model-x": "accept", "model-y": "accept"}, reviewer="Amy")
    code, out, _ = call("tune", "rounds", run, "who", "--decisions", table, "--decisions", second)
    assert "All is decided: run judgebench tune again to learn from it." in out
    decisions = json.loads((run / "tuning" / "who" / "decisions.json").read_text()).values()
    assert set(decisions) == {"accept", "reject"}
    tune(bench, run)
    found = facts(run)
    assert sum(fact["rounds"][0]["revised"] for fact in found) > 0
    # What was decided before may be given again, though the page shows other things now.
    code, out, _ = call("tune", "rounds", run, "who", "--decisions", table)
    assert code == 0
    manifest = json.loads((run / "run.json").read_text())["judges"]
    assert manifest["who~unrevised"]["kind"] == "tuning"
    assert manifest["who~unrevised"]["as"] == "unrevised"
    assert "who~n50" not in manifest
    # What the rounds brought is shown: the judge minus the baseline, with its interval.
    found = measure_tuning(jb.open_run(run))
    assert found is not None
    (row,) = found.rows.select("otherwise", "accuracy", **{"as": "unrevised", "side": "difference"})
    assert row.judge == "who"


def test_what_is_wrong_is_said(tmp_path: Path, bench: Path) -> None:
    set_up(bench, "people")
    run = tmp_path / "run"
    tune(bench, run)
    with pytest.raises(
        SetupError, match="is no judge of this run for which rounds proposed anything; found by"
    ):
        revisions(run, "by-system")
    table = tmp_path / "said.csv"
    table.write_text("item_id,content_hash,decision\nx,h1,perhaps\n")
    with pytest.raises(SetupError) as caught:
        revisions(run, "who", [table])
    assert "is not among the items" in str(caught.value)
    assert "decision: is no answer; found 'perhaps'; allowed: accept, reject, or blank" in str(
        caught.value
    )
    text = bench.read_text()
    bench.write_text(text.replace("suggester: expert", "suggester: nobody"))
    with pytest.raises(SetupError, match=r"rounds\.suggester: is no language model of this bench"):
        tune(bench, run)
