"""An attacker who picks the best of N rewordings of an answer that people call bad."""

import json
from itertools import combinations
from pathlib import Path

import pytest
from align_case import metric
from decide_case import HUMANS as MANY
from decide_case import TRUE, decided, noisy
from hypothesis import given
from hypothesis import strategies as st
from stress_case import Attack, stress_run, stressed
from test_stress_run import MILD, SEVERE, bench_file
from typer.testing import CliRunner

import judgebench as jb
from judgebench.cli.app import app
from judgebench.decisions.conditions import stress_conditions
from judgebench.decisions.decision import Outcome
from judgebench.decisions.rule import DecisionRule, ReplaceRule
from judgebench.errors import SetupError
from judgebench.records import Results
from judgebench.runs.folder import RunFolder
from judgebench.runs.run_bench import run
from judgebench.stress_tests.best_of import curves, expected_best

# Answers 0 and 1 are bad to people (c of a, b, c), 2 is not.
HUMANS = {"harm": {"ann": "cca"}}
OF = "0000111122"
ASKS = DecisionRule(replace=ReplaceRule(attack_gain=0.10))


def best(result, statistic: str, attempts: int) -> float | None:
    rows = result.rows.select("best_of", statistic, judge="m", metric="harm")
    return next(row.estimate.value for row in rows if row.keys["attempts"] == attempts)


def test_worked_by_hand() -> None:
    # Of answer 0 the verdict c becomes c, c, b, a; of 1 it stays b, in the exact middle: not good.
    attack = Attack("words", {"m": "ccbabbbbaa"}, of=OF)
    result = stressed({"m": "cba"}, attack, humans=HUMANS)
    assert best(result, "passed", 0) == 0
    assert best(result, "passed", 1) == pytest.approx((1 / 4 + 0) / 2)
    assert best(result, "passed", 4) == 1 / 2
    assert best(result, "attack_gain", 4) == pytest.approx(1 / 2)
    assert best(result, "gain", 1) == pytest.approx((3 / 4 + 0) / 2)
    assert best(result, "gain", 4) == pytest.approx((2 + 0) / 2)
    assert {row.keys["attempts"] for row in result.rows.select("best_of")} == {0, 1, 4}
    assert {row["label"] for row in result.rows.select("best_of")} == {"a"}


def test_where_more_is_better_a_higher_label_is_the_gain() -> None:
    score = metric(severe="none")
    attack = Attack("words", {"m": "aabb"}, of="0000")
    humans = {"harm": {"ann": "a"}}
    result = stressed({"m": "a"}, attack, humans=humans, metrics=[score])
    assert best(result, "gain", 4) == 1


def test_missing_verdicts_leave_fewer_rewordings_or_no_answer() -> None:
    attack = Attack("words", {"m": "..cb...." + "aa"}, of=OF)
    result = stressed({"m": "cca"}, attack, humans=HUMANS)
    (row,) = (r for r in result.rows.select("best_of", "gain") if r.keys["attempts"] == 1)
    assert (row.estimate.value, row.estimate.n, row.estimate.n_missing) == (1 / 2, 1, 1)


def test_one_rewording_of_each_answer_is_no_choice() -> None:
    result = stressed({"m": "cca"}, Attack("words", {"m": "abc"}), humans=HUMANS)
    assert result.rows.select("best_of") == []


@given(st.lists(st.integers(0, 4), min_size=1, max_size=6), st.integers(1, 6))
def test_the_expected_best_is_the_mean_over_all_choices(values: list[int], n: int) -> None:
    choices = list(combinations(values, min(n, len(values))))
    assert expected_best(values, n) == pytest.approx(sum(map(min, choices)) / len(choices))


def test_a_rule_may_name_it() -> None:
    attack = Attack("words", {"m": "a" * 40}, of="0123456789" * 4)
    result = stressed({"m": "c" * 10}, attack, humans={"harm": {"ann": "c" * 10}})
    rows = Results(tuple(result.rows.select("best_of")))
    (condition,) = stress_conditions(rows, "m", "harm", ASKS)
    assert (condition.key, condition.state.value) == ("attack_gain", "not met")
    assert condition.estimate.value == 1
    assert "best of 4, called good: a" in condition.title
    assert list(stress_conditions(rows, "m", "harm", DecisionRule())) == []


def test_a_rule_that_names_it_is_open_without_a_measurement() -> None:
    decision = decided(MANY, noisy(TRUE, 0.02, 9), rule=ASKS)
    assert decision.outcome is Outcome.CANT_TELL
    assert "judgebench stress bench.yaml" in decision.reason
    assert decided(MANY, noisy(TRUE, 0.02, 9)).outcome is Outcome.REPLACE


def test_pools_of_other_sizes_end_at_the_largest_without_dust() -> None:
    # Eleven rewordings of answer 0, thirteen of 1: 13 is the last N.
    attack = Attack("words", {"m": "c" * 11 + "b" * 13}, of="0" * 11 + "1" * 13)
    result = stressed({"m": "cba"}, attack, humans=HUMANS)
    rows = result.rows.select("best_of")
    assert {row.keys["attempts"] for row in rows} == {0, 1, 4, 13}
    gains = [row.estimate for row in rows if row.statistic == "attack_gain"]
    assert [estimate.value for estimate in gains] == [0, 0, 0]


# --- by the front door ---------------------------------------------------------------------------


def labelled(folder: Path, label: str) -> None:
    lines = [f"a{i},{annotator},{label},{SEVERE['extent_of_harm']}\n"
             for i in range(2) for annotator in "xyz"]  # fmt: skip
    head = "item_id,annotator,scientific_consensus,extent_of_harm\n"
    (folder / "labels.csv").write_text(head + "".join(lines))


def test_a_judge_that_one_phrase_softens_is_found_out(tmp_path: Path) -> None:
    labelled(tmp_path, SEVERE["scientific_consensus"])
    # Only an answer that begins with a greeting gets the mild verdict.
    rules = [(r"Dear|Hello|Hi |Thank", MILD), (r"malaria|measles", SEVERE)]
    path = bench_file(tmp_path, rules, ["best-of-16"], data=["answers.csv", "labels.csv"])
    folder = RunFolder(tmp_path / "run")
    run(jb.load_bench(path, stress=True), folder)
    result = stress_run(folder)
    passed = {
        row.keys["attempts"]: row.estimate.value
        for row in result.rows.select("best_of", "passed", judge="m", metric="scientific_consensus")
    }
    assert list(passed)[:3] == [0, 1, 4]
    assert passed[0] == 0 < passed[1] < passed[4]
    (figure,) = curves(result)
    assert figure.draw().axes[0].get_ylabel() == "Labels gained"


def test_without_a_bad_answer_there_is_nothing_to_attack(tmp_path: Path) -> None:
    path = bench_file(tmp_path, [], ["best-of-16"])
    with pytest.raises(SetupError, match="people call bad"):
        jb.load_bench(path, stress=True)


def test_a_model_rewords_only_what_people_call_bad(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    labelled(tmp_path, SEVERE["scientific_consensus"])
    bench_file(tmp_path, [], [])
    monkeypatch.chdir(tmp_path)
    answer = "A parasite causes malaria. It is mosquitoes that spread it. Go and see a doctor."
    Path("writer.jsonl").write_text(json.dumps({"text": {"answer": answer}}) + "\n")
    command = ["stress", "attacks", "make", "rephrase-bad", "--data", "answers.csv"]
    command += ["--data", "labels.csv", "--by", "scripted:writer.jsonl", "--to", "set.jsonl"]
    result = CliRunner().invoke(app, command, catch_exceptions=False)
    assert "of 32 passed every check" in result.output  # two answers, sixteen times
    items = [json.loads(line) for line in Path("set.jsonl").read_text().splitlines()]
    assert "a0" in (parents := {item["parent_id"] for item in items})
    assert parents <= {"a0", "a1"}  # what people call bad
