"""`judgebench rank sheet` and `judgebench rank suitability` as people call them."""

import json
from collections.abc import Callable
from pathlib import Path

import yaml
from rank_case import by_reason, fill, items

import judgebench.ranking.human
from judgebench.ranking.human import write_sheets
from judgebench.ranking.task_file import load_task
from judgebench.runs.folder import RunFolder

Call = Callable[..., tuple[int, str, str]]


def own_task() -> None:
    """A task of twelve claims, four of which are ranked, and the arguments of two systems."""
    rows = [f"Claim {i},{'yes' if i % 2 else 'no'},Trial {i} says so" for i in range(12)]
    Path("claims.csv").write_text("\n".join(["claim,verdict,why", *rows]) + "\n")
    spec = {
        "name": "claims", "files": {"data": "claims.csv"}, "labels": ["yes", "no"],
        "prompt": "misinformation", "split": {"train": 6, "development": 2, "test": 4},
        "columns": {"text": "claim", "label": "verdict", "argument": "why"},
    }  # fmt: skip
    Path("task.yaml").write_text(yaml.safe_dump(spec))
    items = [i.item_id for i in load_task("task.yaml", relative_to=Path()).instances]
    given = [
        {"task": "claims", "item_id": item, "system": system, "text": f"{word} {item}."}
        for item in items
        for system, word in (("model-a", "Because of"), ("model-b", "See"))
    ]
    Path("given.jsonl").write_text("".join(json.dumps(line) + "\n" for line in given))


def by_letter(row: dict[str, str]) -> str:
    """1 for A, 4 for D, whoever wrote it."""
    return str("ABCD".index(row["letter"]) + 1)


def suitable(to: Path, n: int = 6) -> Path:
    write_sheets(items(n), ["anna", "ben"], to, n=None, seed=0)
    for name in ("anna", "ben"):
        fill(to / "sheets" / f"{name}.csv", by_reason)
    return to / "sheets"


def test_filled_sheets_give_a_verdict(call: Call, here: Path) -> None:
    sheets = suitable(here / "human")
    given = ("--require-suitable", "--min-alpha", 0.6)
    code, out, _ = call("rank", "suitability", sheets, *given)
    assert code == 0
    assert "claims: suitable, for now" in out
    assert "alpha of 1.00 reaches the bar of 0.60" in out


def test_an_unsuitable_task_is_an_exit_code_where_asked(call: Call, here: Path) -> None:
    sheets = suitable(here / "human")
    fill(sheets / "ben.csv", by_letter)
    code, out, _ = call("rank", "suitability", sheets)
    assert (code, "claims: not suitable" in out) == (0, True)
    assert call("rank", "suitability", sheets, "--require-suitable")[0] == 3


def test_a_label_can_be_left_out(call: Call, here: Path) -> None:
    sheets = suitable(here / "human", 12)
    refuted = {str(n) for n in range(2, 13, 2)}
    fill(
        sheets / "ben.csv",
        lambda row: by_letter(row) if row["item"] in refuted else by_reason(row),
    )
    _, out, _ = call("rank", "suitability", sheets)
    assert "claims: suitable" not in out
    assert "Without the items of the label 'refuted' alpha would be 1.00" in out
    code, out, _ = call(
        "rank", "suitability", sheets, "--leave-out", "refuted", "--require-suitable"
    )
    assert code == 0
    assert "Left out: items of refuted." in out
    code, _, err = call("rank", "suitability", sheets, "--leave-out", "unknown")
    assert (code, "no item has this label" in err) == (2, True)


def test_bad_ranks_are_told_all_at_once(call: Call, here: Path) -> None:
    sheets = suitable(here / "human")
    fill(sheets / "anna.csv", lambda row: "6" if row["letter"] == "A" else "first")
    code, out, err = call("rank", "suitability", sheets)
    assert (code, out) == (2, "")
    assert (
        "anna.csv:2: rank: is no rank (24 times, rows 2-25); found '6', 'first'; allowed: 1" in err
    )
    code, _, err = call("rank", "suitability", sheets / "ben.csv")
    assert code == 2
    assert "fewer than two experts ranked a whole item" in err


def test_sheets_are_written_from_a_run(call, here, monkeypatch) -> None:
    monkeypatch.setattr(RunFolder, "existing", RunFolder)
    monkeypatch.setattr(judgebench.ranking.human, "items_of_run", lambda run: items(9))
    code, out, _ = call("rank", "sheet", "runs/mine", "--expert", "anna", "--seed", 3)
    assert code == 0
    assert "claims: 5 items on every sheet" in out
    assert "runs/mine/human/sheets/anna.csv" in out
    assert Path("runs/mine/human/sheet-key.json").is_file()
    code, out, _ = call("rank", "sheet", "runs/mine", "--expert", "anna", "--seed", 3)
    assert "kept, not overwritten: runs/mine/human/sheets/anna.csv" in out
    code, _, err = call("rank", "sheet", "runs/mine", "--all")
    assert (code, "belongs to sheets of other items" in err) == (2, True)
    code, out, _ = call("rank", "sheet", "runs/mine", "--all", "--to", "all")
    assert "claims: 9 items on every sheet" in out
    assert Path("all/sheets/expert-2.html").is_file()


def test_models_on_other_machines_are_named(call: Call, tmp_path: Path) -> None:
    hosted = {"name": "g", "backend": "litellm:openai/gpt-4o"}
    bench = {
        "name": "r",
        "rubric": "argument-quality",
        "judges": [{**hosted, "name": "j"}],
        "proxy": {
            "tasks": ["none.yaml"],
            "generators": [hosted],
            "evaluators": {"encoder": "owner/encoder"},
        },
    }
    (tmp_path / "bench.yaml").write_text(json.dumps(bench))
    code, _, err = call("rank", "run", tmp_path / "bench.yaml", "--local-only")
    assert code == 2
    message = "contacts another machine, which local-only forbids"
    for field in ("judges.j.backend", "proxy.generators.g.backend", "proxy.evaluators.encoder"):
        assert f"{field}: {message}" in err
