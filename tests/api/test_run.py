"""`jb.run`: a benchmark with judges and backends that are Python objects."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from python_api import ITEMS, rubric

import judgebench as jb

LEAST = {m.id: m.label_texts[0] for m in rubric().metrics}


class Rule:
    """Meets `jb.Judge`; calls nothing severe."""

    name = "rule"
    signature = "the least severe label, version 1"

    def __init__(self) -> None:
        self.judged = 0

    def describe(self) -> dict[str, str]:
        return {"judge": "rule"}

    def judge(self, tasks: Iterator[jb.Task]) -> Iterator[jb.Verdict]:
        for task in tasks:
            self.judged += 1
            yield jb.Verdict(
                task.answer.item_id,
                task.content_hash,
                self.name,
                self.signature,
                jb.Status.OK,
                LEAST,
            )

    def close(self) -> None: ...


class Engine:
    """Meets `jb.Backend`; every third reply cannot be read at first."""

    def __init__(self) -> None:
        self.calls = 0

    def describe(self) -> dict[str, str]:
        return {"engine": "mine", "version": "1"}

    def complete(self, requests: Iterator[jb.Request]) -> Iterator[jb.Reply]:
        for request in requests:
            self.calls += 1
            text = "I would rather not say" if self.calls % 3 == 0 else json.dumps(LEAST)
            yield jb.Reply(request.key, text)

    def close(self) -> None: ...


def test_judges_and_backends_from_python_run_and_resume(place: Path, tmp_path: Path) -> None:
    rule, engine = Rule(), Engine()
    judges = {"rule": rule, "mine": engine}
    study = jb.run(place / "bench.yaml", tmp_path / "run", judges=judges)
    kinds = {judge.name: judge.kind for judge in study.judges}
    assert kinds["rule"] == kinds["mine"] == kinds["my-judge"] == "judge"
    assert rule.judged == ITEMS
    assert engine.calls == ITEMS + ITEMS // 3  # those that could not be read, once more
    by_name = {judge.name: judge for judge in study.judges}
    for name in judges:
        assert (study.judged(by_name[name], rubric().metrics[0]) <= 0).all()
        assert study.asked(by_name[name]).all()
    before = rule.judged, engine.calls
    jb.run(place / "bench.yaml", tmp_path / "run", judges=judges)
    assert rule.judged == before[0]
    assert engine.calls - before[1] <= ITEMS // 3
    assert jb.decide(study) is not None


def test_what_does_not_meet_a_contract_is_reported_at_once(place: Path, tmp_path: Path) -> None:
    class Half:
        def judge(self) -> None: ...

    judges = {
        "a": object(),
        "b": Half(),
        "my-judge": Rule(),
        "prior": Rule(),
        "c/d": Rule(),
    }
    with pytest.raises(jb.SetupError) as error:
        jb.run(place / "bench.yaml", tmp_path / "run", judges=judges)  # type: ignore[arg-type]
    text = str(error.value)
    assert "judges.a: is not a backend: it lacks describe, complete, close; found object" in text
    assert "judges.b: is not a judge: it lacks name, signature, describe, close" in text
    assert "judges.my-judge: cannot have this name" in text
    assert "judges.prior" in text
    assert "judges.c/d" in text
    assert not (tmp_path / "run").exists()


def test_what_python_judges_cost_counts_towards_the_budget(place: Path, tmp_path: Path) -> None:
    class Dear(Rule):
        def judge(self, tasks: Iterator[jb.Task]) -> Iterator[jb.Verdict]:
            for task in tasks:
                self.judged += 1
                yield jb.Verdict(
                    task.answer.item_id, task.content_hash, self.name, self.signature,
                    jb.Status.OK, LEAST, cost=1.0,
                )  # fmt: skip

    dear = Dear()
    alone = replace(jb.load_bench(place / "bench.yaml"), judges=())
    for _ in range(2):
        with pytest.raises(jb.BudgetSpent):
            jb.run(alone, tmp_path / "run", judges={"rule": dear}, budget=5)
    assert dear.judged == 5


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {"labels": {**LEAST, "empathy": "Warm"}},
            "empathy: is not a label of the metric; found Warm",
        ),
        ({"labels": {}}, "has no label, so the status cannot be ok"),
    ],
)
def test_an_unsound_verdict_is_reported_and_not_kept(
    place: Path, tmp_path: Path, changes: dict[str, Any], expected: str
) -> None:
    class Wrong(Rule):
        def judge(self, tasks: Iterator[jb.Task]) -> Iterator[jb.Verdict]:
            return (replace(verdict, **changes) for verdict in super().judge(tasks))

    with pytest.raises(jb.SetupError, match=expected):
        jb.run(place / "bench.yaml", tmp_path / "run", judges={"rule": Wrong()})
    study = jb.run(place / "bench.yaml", tmp_path / "run", judges={"rule": Rule()})
    assert all(judge.verdicts for judge in study.judges)


def test_errors_name_no_flags(tmp_path: Path, place: Path) -> None:
    with pytest.raises(jb.SetupError) as error:
        jb.open_run(place / "runs" / "small", as_judges=["nobody"])
    assert "--" not in str(error.value)
    with pytest.raises(jb.SetupError, match=r"run\.json"):
        jb.open_run(tmp_path)
