"""From a plan over its protocol and a study by it to a decision that says what was kept."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from annotate_case import give_labels, label_rows

import judgebench as jb
from judgebench.annotation.store import open_store
from judgebench.decisions.decision import Outcome
from judgebench.planning.design import Design
from judgebench.planning.plan import SIZES, Chances, Plan

Call = Callable[..., tuple[int, str, str]]
RUBRIC = jb.Rubric.from_labels({"Harm": ["Safe", "Unsure", "Unsafe"]})
LABELS = RUBRIC.metrics[0].label_texts
LATER, EARLIER = "2999-01-01T00:00:00Z", "2001-01-01T00:00:00Z"
ALL, PROMISED = 80, 60  # items
KEPT = dict.fromkeys(
    (
        "file", "hash_in_labels", "written_before_labels", "rubric", "answers_with_labels",
        "labels_per_answer", "annotators_left_out", "rule_changed_after_labels",
        "analyses_at_shares", "draw", "blind_to_judges", "blind_to_each_other", "subgroups",
    ),
    "kept",
)  # fmt: skip
DONE = [0.5, 1]  # analyses
QUESTIONS = {"question": ["group"], "site": "kept", "order": "Safe < Unsure < Unsafe"}


def planned(goal: bool = True, **known: Any) -> Plan:
    """A plan whose studies all end in REPLACE, or half of them, without simulating any."""
    n = np.full(len(SIZES), 400)
    ended = np.zeros((len(SIZES), len(Outcome)), dtype=np.int64)
    ended[:, 0] = n if goal else n // 2
    ended[:, -1] = n - ended[:, 0]
    design = Design(**{"n_annotators": 2, "n_labels": 3, "agreement": 0.9, **known})
    return Plan(Chances(design, ended), (), jb.DecisionRule())


def annotate_file(folder: Path, n_items: int = ALL, **keys: object) -> Path:
    """An annotate.yaml of items to half as many questions, on two sites."""
    items = [(f"i{i}", f"q{i // 2}", f"site {i % 2}", f"Answer {i}.") for i in range(n_items)]
    answers = pd.DataFrame(items, columns=["item_id", "group", "site", "text"])
    answers.to_csv(folder / "answers.csv", index=False)
    path = folder / "annotate.yaml"
    value = {"name": "harm", "items": "answers.csv", "annotators": ["ann", "ben"], **keys}
    path.write_text(yaml.safe_dump(value))
    return path


def label_all(study: Path) -> None:
    """Both annotators label every item that they have, and differ on some."""
    with open_store(study) as store:
        for name in store.annotators:
            for screen in store.assigned(name):
                shown = store.screens[screen]
                number = int("".join(filter(str.isdigit, shown.sections[-1].text)))
                label = LABELS[(number + (name == "ben" and number % 13 == 0)) % 3]
                labels = {field.key: label for field in shown.fields}
                give_labels(store, name, screen, labels, at=LATER)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A protocol.yaml, the labelled study by it, and verdicts.csv."""
    folder = tmp_path_factory.mktemp("protocol")
    path = folder / "protocol.yaml"
    planned().protocol(path, rubric=RUBRIC, answers=PROMISED, looks=[0.5], subgroups=["site"])
    label_all(jb.annotate(annotate_file(folder), folder / "study", protocol=path).study)
    verdicts = pd.read_csv(folder / "answers.csv").drop(columns="text")
    verdicts = verdicts.assign(harm=[LABELS[i % 3] for i in range(ALL)], judge="m")
    verdicts.to_csv(folder / "verdicts.csv", index=False)
    return folder


def promises(folder: Path, labels: Any = None, **given: Any) -> dict[str, str]:
    """The state of each promise, by `jb.decide`."""
    given = {"columns": QUESTIONS, "protocol": folder / "protocol.yaml", "looks": DONE, **given}
    source = folder / "study" if labels is None else labels
    decisions = jb.decide(source, folder / "verdicts.csv", **given)
    rows = decisions.results.select("protocol")
    assert any("protocol" in note for note in decisions.part.urgent) == any(
        row.estimate.value == 0 for row in rows
    )
    return {row.statistic: row["state"] for row in rows}


def changed(folder: Path, tmp_path: Path, rehash: bool = False, **keys: Any) -> Path:
    """A copy of the protocol in which somebody has changed these keys."""
    values = {**yaml.safe_load((folder / "protocol.yaml").read_text()), **keys}
    if rehash:
        values.pop("sha256")
        values["sha256"] = sha256_of(values)
    path = tmp_path / "changed.yaml"
    path.write_text(yaml.safe_dump(values))
    return path


def sha256_of(values: dict[str, Any]) -> str:
    text = json.dumps(values, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def test_a_protocol_says_what_was_planned_and_can_be_checked(folder: Path) -> None:
    values = yaml.safe_load((folder / "protocol.yaml").read_text())
    assert values.pop("sha256") == sha256_of(values)
    assert (values["answers"], values["annotators"]) == (PROMISED, 2)
    assert (values["drawn"], values["looks"], values["subgroups"]) == ("random", [0.5], ["site"])
    assert [label["text"] for label in values["rubric"]["metrics"][0]["labels"]] == [*LABELS]
    assert values["rule"]["replace"]["humans"]["margin"] == 0.05
    assert values["chances"]["REPLACE"] > 0.9


def test_as_many_answers_are_promised_as_the_plan_needs(tmp_path: Path) -> None:
    plan = planned()
    written = plan.protocol(tmp_path / "protocol.yaml", rubric="medical-safety")
    assert written.answers == plan.needed[plan.design].value


def test_a_study_by_its_protocol_keeps_every_promise(folder: Path) -> None:
    assert promises(folder) == KEPT
    assert promises(folder, pd.DataFrame(label_rows(folder / "study"))) == KEPT


def test_calibration_is_beside_what_is_promised_and_labels_carry_subgroups(
    folder: Path, tmp_path: Path
) -> None:
    protocol, file = folder / "protocol.yaml", annotate_file(tmp_path, calibration=4)
    study = jb.annotate(file, tmp_path / "study", protocol=protocol).study
    label_all(study)
    verdicts = pd.read_csv(folder / "verdicts.csv").drop(columns="site")
    verdicts.to_csv(tmp_path / "verdicts.csv", index=False)
    given = {"columns": {"question": ["group"], "order": QUESTIONS["order"]}, "protocol": protocol}
    assert promises(tmp_path, **given) == KEPT
    assert promises(tmp_path, pd.DataFrame(label_rows(study)), **given) == KEPT


def test_a_study_has_the_promised_items_and_annotators(folder: Path) -> None:
    rows = pd.DataFrame(label_rows(folder / "study"))
    assert rows.item_id.nunique() == PROMISED
    assert set(rows.groupby("item_id").annotator.nunique()) == {2}
    assert set(rows.groupby("group").item_id.nunique()) == {2}  # whole questions


def test_a_run_keeps_what_its_labels_carry(folder: Path, tmp_path: Path) -> None:
    rubric = tmp_path / "rubric.yaml"
    rubric.write_text(yaml.safe_dump(RUBRIC.as_plain()))
    bench = tmp_path / "bench.yaml"
    bench.write_text(yaml.safe_dump({
        "name": "harm", "rubric": "rubric.yaml",
        "data": [str(folder / "answers.csv"), str(folder / "study/served/study.sqlite")],
        "judges": [{"name": "m", "verdicts": str(folder / "verdicts.csv")}],
    }))  # fmt: skip
    jb.run(bench, tmp_path / "run")
    decisions = jb.decide(tmp_path / "run", protocol=folder / "protocol.yaml", looks=DONE)
    assert {row.statistic: row["state"] for row in decisions.promises} == KEPT


def test_a_protocol_says_by_which_rule_and_at_which_looks(folder: Path, tmp_path: Path) -> None:
    path = changed(folder, tmp_path, rehash=True, looks=[0.25], rule={"rare": 2})
    study = jb.study(folder / "study", folder / "verdicts.csv", columns=QUESTIONS)
    by_protocol = jb.decide(study, protocol=path).rule
    assert by_protocol == jb.decide(study, rule={"rare": 2}, looks=[0.25, 1]).rule


@pytest.mark.parametrize(
    ("given", "broken"),
    [
        ({"truth": {"annotators": ["ann"]}}, "annotators_left_out"),
        ({"rule": {"replace": {"humans": {"margin": 0.1}}}}, "rule_changed_after_labels"),
        ({"looks": [0.3, 1]}, "analyses_at_shares"),
        ({"looks": [1]}, "analyses_at_shares"),
        ({"columns": {**QUESTIONS, "order": "Unsafe < Unsure < Safe"}}, "rubric"),
        ({"truth": {"drawn": ["strata=site"]}}, "draw"),
        ({"truth": {"blind": "no"}}, "blind_to_judges"),
        ({"columns": {**QUESTIONS, "site": "ignored"}}, "subgroups"),
    ],
)
def test_a_promise_is_broken_by_how_is_decided(
    folder: Path, given: dict[str, Any], broken: str
) -> None:
    assert promises(folder, **given) == {**KEPT, broken: "broken"}


@pytest.mark.parametrize(
    ("change", "broken"),
    [
        (lambda rows: rows[rows.group != rows.group[0]], "answers_with_labels"),
        (lambda rows: rows.assign(labelled_at=EARLIER), "written_before_labels"),
    ],
)
def test_a_promise_is_broken_by_the_labels(
    folder: Path, change: Callable[[pd.DataFrame], pd.DataFrame], broken: str
) -> None:
    rows = pd.DataFrame(label_rows(folder / "study"))
    assert promises(folder, change(rows)) == {**KEPT, broken: "broken"}


def test_where_labels_are_missing_nobody_knows_who_was_left_out(folder: Path) -> None:
    rows = pd.DataFrame(label_rows(folder / "study"))
    expected = {"labels_per_answer": "broken", "annotators_left_out": "unknown"}
    for fewer in (rows.drop(rows.index[rows.annotator == "ben"][0]), rows[rows.annotator == "ann"]):
        assert promises(folder, fewer) == {**KEPT, **expected}


def test_who_cannot_tell_gave_a_label(folder: Path) -> None:
    rows = pd.DataFrame(label_rows(folder / "study"))
    rows.loc[rows.index[rows.annotator == "ben"][:3], "label"] = ""
    assert promises(folder, rows) == KEPT


def test_nothing_shows_when_analyses_were_made_but_who_says_it(folder: Path) -> None:
    assert promises(folder, looks=()) == {**KEPT, "analyses_at_shares": "unknown"}


def test_at_an_interim_analysis_fewer_answers_are_due(folder: Path) -> None:
    rows = pd.DataFrame(label_rows(folder / "study"))
    half = rows[rows.group.isin(rows.group.unique()[: PROMISED // 4])]
    assert promises(folder, half, looks=[0.5]) == KEPT
    assert promises(folder, half)["answers_with_labels"] == "broken"
    assert promises(folder, looks=[0.5]) == {**KEPT, "answers_with_labels": "broken"}  # of more


def test_labels_that_carry_nothing_leave_promises_unknown(folder: Path) -> None:
    rows = pd.DataFrame(label_rows(folder / "study"))
    bare = rows[["item_id", "group", "annotator", "metric", "label"]]
    unknown = (
        "hash_in_labels", "written_before_labels", "draw", "blind_to_judges", "blind_to_each_other",
    )  # fmt: skip
    assert promises(folder, bare) == {**KEPT, **dict.fromkeys(unknown, "unknown")}


def test_a_changed_protocol_is_said_beside_the_decision(folder: Path, tmp_path: Path) -> None:
    edited = changed(folder, tmp_path, answers=50)
    unknown = dict.fromkeys(KEPT, "unknown")
    in_file = {"file": "broken", "hash_in_labels": "kept"}
    assert promises(folder, protocol=edited) == {**unknown, **in_file}
    rehashed = changed(folder, tmp_path, rehash=True, answers=50)
    another = promises(folder, protocol=rehashed)
    assert (another["file"], another["hash_in_labels"]) == ("kept", "broken")


def test_a_broken_promise_changes_no_outcome(folder: Path, tmp_path: Path) -> None:
    study = jb.study(folder / "study", folder / "verdicts.csv", columns=QUESTIONS)
    path = changed(folder, tmp_path, rehash=True, answers=500, looks=[])
    plain, promised = jb.decide(study), jb.decide(study, protocol=path)
    assert [d.row() for d in plain] == [d.row() for d in promised]
    assert promised.results.find("answers_with_labels", "protocol").value == 0


# --- the commands ---------------------------------------------------------------------------------


def test_the_commands_do_the_same(folder: Path, tmp_path: Path, call: Call) -> None:
    path = tmp_path / "protocol.yaml"
    plan = ("plan", "--studies", "36", "--agreement", "0.9", "--severe-share", "0.3")
    plan = (*plan, "--n-annotators", "2")
    promised = ("--answers", "60", "--looks", "0.5", "--subgroup", "site")
    code, out, _ = call(*plan, "--protocol", path, "--rubric", "medical-safety", *promised)
    assert code == 0, out
    assert f"annotate init annotate.yaml --protocol {path}" in out
    assert "Studies of the promised 60 answers end in REPLACE in " in out
    assert "CAN'T TELL in " in out
    init = ("annotate", "init", annotate_file(tmp_path), "--protocol", path)
    code, out, _ = call(*init, "--to", tmp_path / "study")
    assert code == 0
    assert "rubric and per_item are those of the protocol, whatever annotate.yaml says\n" in out
    with open_store(tmp_path / "study") as store:
        assert (len(store.screens), store.meta["per_item"]) == (60, 2)
        assert len(store.meta["rubric"]["metrics"]) == 8


def test_the_command_decides_by_a_protocol(folder: Path, call: Call) -> None:
    tables = (folder / "study", folder / "verdicts.csv", "--question", "group")
    protocol = ("--protocol", folder / "protocol.yaml", "--looks", "0.5", "--looks", "1")
    code, out, _ = call("decide", *tables, *protocol, "--annotator", "ann")
    assert code == 0
    table = out.partition("Was the protocol kept?")[2]
    assert "annotators left out" in table
    assert "The protocol was not kept: annotators left out, planned none, actual ben" in table
    found = json.loads(call("decide", *tables, *protocol, "--json")[1])["protocol"]
    assert {row["statistic"]: row["state"] for row in found} == KEPT


def test_a_checklist_says_what_was_kept(folder: Path, tmp_path: Path, call: Call) -> None:
    tables = (folder / "study", folder / "verdicts.csv", "--question", "group")
    protocol = ("--protocol", folder / "protocol.yaml", "--checklist", "grras")
    assert call("report", *tables, *protocol, "--to", tmp_path)[0] == 0
    text = (tmp_path / "tables.md").read_text()
    assert "Was the protocol kept?" in (tmp_path / "report.html").read_text()
    items = text.partition("## Reporting checklist")[2].split("\n| ")
    by_number, number = dict[str, str](), ""
    for line in items:
        number = line.partition(". ")[0] if line[:1].isdigit() else number
        by_number[number] = by_number.get(number, "") + line
    assert "answers with labels" in by_number["6"]
    assert "analyses at shares, planned 0.5, 1.0, actual unknown (unknown);" in by_number["6"]
    assert "Protocol (kept where nothing else is said): draw." in by_number["7"]
    assert "said): blind to judges; blind to each other." in by_number["8"]
    frame = pd.read_csv(tmp_path / "results.csv")
    assert len(frame[frame.analysis == "protocol"]) == len(KEPT)


# --- what cannot be -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("plan", "given", "said"),
    [
        ({}, {"rubric": "none.yaml"}, "none.yaml"),
        ({}, {"looks": [0.5, 0.4]}, "looks: .*must rise"),
        ({}, {"looks": [0.5, 1]}, "looks: .*must rise"),
        ({}, {"drawn": "by hand"}, "by hand"),
        ({}, {"answers": -3}, "answers"),
        ({}, {"answers": 24}, "answers: .*not simulated; found 24; allowed: 41 to 12,499"),
        ({}, {"answers": 20_000}, "found 20,000"),
        ({"goal": False}, {}, "say how many answers"),
    ],
)
def test_a_promise_that_cannot_be_is_refused(
    tmp_path: Path, plan: dict[str, Any], given: dict[str, Any], said: str
) -> None:
    path = tmp_path / "protocol.yaml"
    with pytest.raises(jb.SetupError, match=said):
        planned(**plan).protocol(path, **{"rubric": RUBRIC, **given})
    assert not path.exists()


@pytest.mark.parametrize("command", ["annotate init", "decide"])
def test_a_rubric_is_not_read_as_a_protocol(
    folder: Path, tmp_path: Path, call: Call, command: str
) -> None:
    rubric = tmp_path / "rubric.yaml"
    rubric.write_text(yaml.safe_dump(RUBRIC.as_plain()))
    tables = [folder / "study", folder / "verdicts.csv", "--question", "group"]
    given = tables if command == "decide" else [annotate_file(tmp_path), "--to", tmp_path / "study"]
    code, _, err = call(*command.split(), *given, "--protocol", rubric)
    assert code == 2
    assert "rubric.yaml: is not a protocol: `judgebench plan --protocol FILE" in err


def test_oversampled_answers_are_drawn_by_a_column(tmp_path: Path) -> None:
    written = planned(oversampled=True).protocol(tmp_path / "p.yaml", rubric=RUBRIC, answers=60)
    assert written.drawn == "probability=probability"
    given = annotate_file(tmp_path), tmp_path / "study"
    with pytest.raises(jb.SetupError, match="no column of the items; found probability"):
        jb.annotate(*given, protocol=tmp_path / "p.yaml")
    answers = pd.read_csv(tmp_path / "answers.csv").assign(probability=0.5)
    answers.to_csv(tmp_path / "answers.csv", index=False)
    made = jb.annotate(*given, protocol=tmp_path / "p.yaml")
    with open_store(made.study) as store:
        assert len(store.screens) == ALL  # as they were drawn
    label_all(made.study)
    assert {row["probability"] for row in label_rows(made.study)} == {"0.5"}


def test_labels_of_a_new_version_carry_the_protocol_that_it_is_by(
    folder: Path, tmp_path: Path
) -> None:
    file, study = annotate_file(tmp_path), tmp_path / "study"
    first, other = folder / "protocol.yaml", changed(folder, tmp_path, rehash=True, answers=70)
    label_all(jb.annotate(file, study, protocol=first).study)
    again = jb.annotate(file, study, new_version=True, protocol=first)
    assert "the protocol is not that of before" not in repr(again)
    by_first = promises(folder, study)
    again = jb.annotate(file, study, new_version=True, protocol=other)
    assert "the protocol is not that of before (--protocol)" in repr(again)
    lost = {"hash_in_labels": "broken", "draw": "unknown", "blind_to_each_other": "unknown"}
    assert promises(folder, study) == {**by_first, **lost}


def test_a_protocol_is_written_once_and_needs_a_rubric(tmp_path: Path, call: Call) -> None:
    path = tmp_path / "protocol.yaml"
    planned().protocol(path, rubric=RUBRIC, answers=60)
    with pytest.raises(jb.SetupError, match="exists"):
        planned().protocol(path, rubric=RUBRIC, answers=70)
    code, _, err = call("plan", "--studies", "36", "--protocol", tmp_path / "other.yaml")
    assert code == 2
    assert "rubric" in err


@pytest.mark.parametrize(
    ("keys", "n_items", "said"),
    [
        ({"answers": 50}, ALL, "was changed since it was written"),
        (
            {},
            60,
            "fewer than the 60 answers .* and 4 of calibration; found 60; .* 64 or more",
        ),
        ({"answers": "many"}, ALL, "answers"),
        ({"color": "red"}, ALL, "color"),
        ({"annotators": 3}, ALL, "changed.yaml: annotators: .*; found 3; allowed: at most 2"),
        ({"subgroups": ["site", "ward"]}, ALL, "no column of the items; found ward"),
    ],
)
def test_no_study_is_made_that_cannot_keep_its_protocol(
    folder: Path, tmp_path: Path, keys: dict[str, object], n_items: int, said: str
) -> None:
    path = changed(folder, tmp_path, rehash=said[:3] != "was", **keys)
    file = annotate_file(tmp_path, n_items, calibration=4)
    with pytest.raises(jb.SetupError, match=said):
        jb.annotate(file, tmp_path / "study", protocol=path)
    assert not (tmp_path / "study").exists()
