"""What an outcome rests on is declared; until it is, the outcome waits and says for what."""

import json
import re
import shlex
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import judgebench as jb
from judgebench.decisions.decision import Decision, Outcome
from judgebench.decisions.sentences import undeclared
from judgebench.studies.study import NOT_COMPARED, Study

FLAGS = {"order": "--order", "question": "--question", "blind": "--blind"}
ITEMS = 400


@cache
def tables(judge_errors: float = 0.02, metrics: int = 1) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return labels of three annotators and verdicts of a judge; nobody says how they were made."""
    rng = np.random.default_rng(4)
    harmful = rng.random(ITEMS) < 0.4
    items = [f"i{i}" for i in range(ITEMS)]
    names = ["harm", "tone"][:metrics]

    def draw(errors: float) -> dict[str, list[str]]:
        wrong = (rng.random(ITEMS) < errors for _ in names)
        labels = (np.where(harmful ^ w, "yes", "no").tolist() for w in wrong)
        return dict(zip(names, labels, strict=True))

    people = [pd.DataFrame({"item": items, "annotator": f"p{p}", **draw(0.08)}) for p in range(3)]
    return pd.concat(people), pd.DataFrame({"item": items, "judge": "j", **draw(judge_errors)})


@cache
def declared(*facts: str, judge_errors: float = 0.02, metrics: int = 1) -> Study:
    """Return the study of these tables with these facts declared, and no others."""
    blind = "yes" if "blind" in facts else "unknown"
    truth = {"blind": blind, "independent_items": "question" in facts}
    columns = {"order": "no < yes"} if "order" in facts else {}
    return jb.study(*tables(judge_errors, metrics), truth=truth, columns=columns)


def written(folder: Path) -> list[Path]:
    """Return the files of these tables."""
    paths = [folder / "labels.csv", folder / "gpt-4.csv"]
    for table, path in zip(tables(), paths, strict=True):
        table.to_csv(path, index=False)
    return paths


def decide(study: Study) -> Decision:
    return jb.decide(study).decisions[0]


@pytest.mark.parametrize(
    "missing", [(), ("order",), ("question",), ("blind",), ("order", "question", "blind")]
)
def test_replace_waits_for_every_declaration(missing: tuple[str, ...]) -> None:
    decision = decide(declared(*(fact for fact in FLAGS if fact not in missing)))
    if not missing:
        assert (decision.outcome, decision.would_be) == (Outcome.REPLACE, None)
        return
    assert (decision.outcome, decision.would_be) == (Outcome.CANT_TELL, Outcome.REPLACE)
    assert decision.more is not None
    assert "declared, not labelled" in decision.more.reason
    named = [fact for fact, flag in FLAGS.items() if f"`{flag}" in decision.advice]
    assert named == [*missing]


def test_the_sentence_says_what_would_make_it_replace() -> None:
    decision = decide(declared("order", "question"))
    would_be = "It would be REPLACE if the labels were made without sight of a model. It agrees "
    assert decision.reason.startswith(would_be)
    assert "in Python truth={'blind': 'yes'}" in decision.advice


@pytest.mark.parametrize("facts", [(), ("question", "blind"), ("order",)])
def test_do_not_use_waits_for_the_order_alone(facts: tuple[str, ...]) -> None:
    decision = decide(declared(*facts, judge_errors=0.45))
    waits = "order" not in facts
    assert (decision.would_be or decision.outcome) is Outcome.DO_NOT_USE
    assert (decision.outcome is Outcome.CANT_TELL) is waits
    assert ("`--order 'no < yes'` or `--order 'yes < no'`" in decision.advice) is waits
    assert "--blind" not in decision.advice


def test_assist_waits_for_nothing() -> None:
    study = declared()
    assert undeclared(study, study.rubric.metrics[0], Outcome.ASSIST, NOT_COMPARED) == []


def test_labels_made_in_sight_forbid_and_nothing_waits() -> None:
    study = declared("order", "question")
    in_sight = study.config.model_copy(update={"blind": "no"})
    decision = decide(replace(study, config=in_sight))
    assert (decision.outcome, decision.would_be) == (Outcome.CANT_TELL, None)
    assert "in sight of a model's label" in decision.reason


def test_a_column_taken_by_its_name_is_no_declared_question() -> None:
    labels, verdicts = tables()
    labels = labels.assign(question=labels.item.str.replace("i", "q"))
    said = {"order": "no < yes"}

    def study(columns: dict[str, str], **truth: object) -> jb.Study:
        known = {"blind": "yes", **truth}
        return jb.study(labels, verdicts, truth=known, columns=columns)

    decisions = jb.decide(study(said))
    (decision,) = decisions.decisions
    assert decision.would_be is Outcome.REPLACE
    assert "items with the same question shared a question" in decision.reason
    assert "`--question question`, or `--independent-items`" in decision.advice
    assert any("taken from the column question" in note for note in decisions.notes)
    assert decide(study(said, independent_items=True)).outcome is Outcome.REPLACE
    assert decide(study({**said, "question": "question"})).outcome is Outcome.REPLACE


def test_of_several_metrics_the_order_names_its_metric() -> None:
    _, tone = jb.decide(declared("question", "blind", metrics=2))
    orders = re.findall("`--order '([^`]+)'`", tone.advice)
    assert orders == ["tone: no < yes", "tone: yes < no", "tone: none"]


def test_results_and_page_show_what_waits() -> None:
    decisions = jb.decide(declared())
    (row,) = decisions.results.select("decision")
    assert (row["outcome"], row["would_be"]) == ("CAN'T TELL", "REPLACE")
    table = decisions.part.blocks[0].tables[0]
    assert table.rows[0][1].text == "CAN'T TELL (would be REPLACE)"


def test_the_flags_that_are_printed_settle_the_outcome(call, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    asked = ("decide", *written(tmp_path), "--json", "--require", "REPLACE:harm")
    code, out, _ = call(*asked)
    (found,) = (answer := json.loads(out))["decisions"]
    assert (code, answer["not_reached"]) == (3, ["REPLACE:harm"])
    assert (found["outcome"], found["would_be"]) == ("CAN'T TELL", "REPLACE")
    flags = [shlex.split(flag) for flag in re.findall("`(--[^`]+)`", found["next"])]
    first = {flag: values for flag, *values in reversed(flags) if values != ["COLUMN"]}
    code, out, _ = call(*asked, *(x for flag, values in first.items() for x in (flag, *values)))
    (found,) = json.loads(out)["decisions"]
    assert (code, found["outcome"], found["would_be"]) == (0, "REPLACE", None)


def test_the_gate_says_all_that_is_missing_at_once(call, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    code, out, _ = call("decide", *written(tmp_path), "--require", "REPLACE:harm")
    line = " ".join(out.partition("not reached: REPLACE:harm: ")[2].split())
    assert code == 3
    assert line.startswith("the outcome is CAN'T TELL. It would be REPLACE if no label were worse")
    assert all(f"`{flag} " in line for flag in FLAGS.values())
