"""Columns are declared, known or asked for: what commands print, ask, save and read again."""

import json
import os
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from sheets import N, label_of, printed, table

import judgebench as jb
from judgebench.features import FEATURES

Call = Callable[..., tuple[int, str, str]]
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
ORDER = ("--order", "Safe < Unsure < Unsafe")


def tables(folder: Path, odd: str = "") -> list[Path]:
    """Two annotators and a judge, whose third verdict may be `odd`, beside side columns."""
    people = [("id", "topic", "Huber", "Silva")]
    people += [(f"p{i}", "ab"[i % 2], label_of(i), label_of(i, 7)) for i in range(N)]
    judge = [("id", "verdict", "tokens")]
    judge += [(f"p{i}", odd if odd and i == 2 else label_of(i, 9), i) for i in range(N)]
    return [table(folder / "labels.csv", people), table(folder / "gpt-4.csv", judge)]


def test_the_layout_is_printed_before_any_number(call: Call, tmp_path: Path) -> None:
    code, out, err = call("decide", *tables(tmp_path), *ORDER)
    assert code == 0, err
    layout, _, results = out.partition("\n\n")
    lines = [" ".join(line.split()) for line in layout.splitlines()]
    assert lines == [
        "labels.csv 60 rows",
        "id item p0, p1, p2 its name",
        "topic ignored a, b says something of the item; the role kept keeps it",
        "Huber label label by Huber Safe, Unsure, Unsafe it shares labels",
        "Silva label label by Silva Unsure, Unsafe, Safe it shares labels",
        "gpt-4.csv 60 rows",
        "id item p0, p1, p2 the items of labels.csv",
        "verdict verdict label by gpt-4 Unsure, Unsafe, Safe its name",
        "tokens ignored 0, 1, 2 its name",
        "metric Label: Safe < Unsure < Unsafe",
    ]
    assert "humans 8" in results
    _, out, err = call("decide", *tables(tmp_path), *ORDER, "--json")
    assert json.loads(out)["decisions"]  # which stands alone
    assert "metric Label: Safe < Unsure < Unsafe" in err


def test_all_that_is_open_is_asked_at_once(call: Call, tmp_path: Path) -> None:
    files = tables(tmp_path, "I cannot")
    files[0].write_text(files[0].read_text().replace("p9,b,Safe", "p9,b,Save"))
    command = ("decide", *files, "--save", tmp_path / "saved")
    code, out, err = call(*command)
    assert (code, out) == (2, "")
    questions = [line for line in err.splitlines() if line.startswith("error: ")]
    assert questions == [
        "error: labels.csv: row 11 of Huber holds 'Save': is it a label?",
        "error: gpt-4.csv: row 4 of verdict holds 'I cannot' (1 such cell), and the labels of "
        "people are Safe, Unsure, Unsafe",
    ]
    for text in ("Save", "I cannot"):
        assert sum("--spell" in line and text in line for line in err.splitlines()) == 4
    assert not (tmp_path / "saved").exists()
    first, second = err.split("error: gpt-4.csv")
    options = [*printed(first, "Save is Safe"), *printed(second, "says that the judge failed")]
    code, _, err = call(*command, *options)
    assert code == 0, err
    saved = yaml.safe_load((tmp_path / "saved" / "layout.yaml").read_text())
    assert (saved["spell"]["label"], saved["failed"]) == ({"Save": "Safe"}, ["I cannot"])


@pytest.mark.skipif(os.name == "nt", reason="no pseudo-terminals there")
def test_a_file_for_each_person(call: Call, tmp_path: Path) -> None:
    rows = {who: [("id", "label")] for who in ("kim", "jo", "lee", "gpt4")}
    for i in range(N):
        for place, who in enumerate(rows):
            rows[who].append((f"p{i}", label_of(i, 5 + place)))
    kim, jo, lee, judge = (table(tmp_path / f"{who}.csv", rows[who]) for who in rows)
    people = ("--labels", kim, "--labels", jo, "--labels", lee)
    code, _, err = call("decide", *people, "--verdicts", judge, "--save", tmp_path / "saved")
    assert code == 0, err
    study = jb.study(tmp_path / "saved" / "layout.yaml")
    assert set(study.makers) == {"kim", "jo", "lee"}
    assert [judge.name for judge in study.real_judges] == ["gpt4"]
    same = jb.study({"kim": kim, "jo": jo, "lee": lee}, judge)
    assert jb.decide(same).records()["decisions"] == jb.decide(study).records()["decisions"]
    _, _, err = call("decide", kim, jo, lee, judge)
    code, out, err = call("decide", kim, jo, lee, judge, *printed(err, "labels of people"))
    assert (code, "3 annotators" in out) == (0, True), err


def numbered() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Labels and verdicts that would be REPLACE, with a running number beside the item's id."""
    draw, people, judge = random.Random(4), [], []
    for i in range(400):
        harmful = draw.random() < 0.4
        labels = [("no", "yes")[harmful != (draw.random() < 0.08)] for _ in range(3)]
        people.append((f"s{i}", 7000 + i, *labels))
        judge.append((f"s{i}", ("no", "yes")[harmful != (draw.random() < 0.02)]))
    return (
        pd.DataFrame(people, columns=["sample_id", "id", "kim", "jo", "lee"]),
        pd.DataFrame(judge, columns=["sample_id", "harm"]),
    )


def by_flags(call: Call, folder: Path, *declared: str) -> dict[str, Any]:
    files = [folder / "labels.csv", folder / "gpt-4.csv"]
    for frame, file in zip(numbered(), files, strict=True):
        frame.to_csv(file, index=False)
    return decided(call, *files, "--order", "no < yes", "--blind", "yes", *declared)


def by_yaml(call: Call, folder: Path, *declared: str) -> dict[str, Any]:
    by_flags(call, folder, "--save", str(folder / "saved"), *declared)
    return decided(call, folder / "saved" / "layout.yaml")


def by_python(call: Call, folder: Path, *declared: str) -> dict[str, Any]:
    truth = {"blind": "yes", "independent_items": bool(declared)}
    decisions = jb.decide(*numbered(), truth=truth, columns={"order": "no < yes", "judge": "j"})
    return dict(decisions.records()["decisions"][0])


def by_export(call: Call, folder: Path, *declared: str) -> dict[str, Any]:
    """As scores of Langfuse, whose own ids are running numbers, too."""
    labels, verdicts = numbered()
    labels = labels.melt(["sample_id", "id"], var_name="authorUserId", value_name="harm")
    scores = pd.concat([labels.assign(source="ANNOTATION"), verdicts.assign(source="EVAL")])
    scores = scores.rename(columns={"sample_id": "traceId", "harm": "stringValue"})
    scores = scores.assign(name="harm", value=(scores.stringValue == "yes") * 1)
    file = folder / "scores.csv"
    scores.assign(dataType="CATEGORICAL").to_csv(file, index=False)
    return decided(call, file, "--order", "no < yes", "--blind", "yes", *declared)


def decided(call: Call, *command: object) -> dict[str, Any]:
    code, out, err = call("decide", *command, "--json")
    assert code == 0, err
    (decision,) = json.loads(out)["decisions"]
    return dict(decision)


@pytest.mark.parametrize("way", [by_flags, by_yaml, by_python, by_export])
def test_replace_waits_for_the_question_by_every_way_in(
    way: Callable[..., dict[str, Any]], call: Call, tmp_path: Path
) -> None:
    open_ = way(call, tmp_path)
    assert (open_["outcome"], open_["would_be"]) == ("CAN'T TELL", "REPLACE")
    assert "--independent-items" in open_["next"]
    (tmp_path / "said").mkdir()
    said = way(call, tmp_path / "said", "--independent-items")
    assert (said["outcome"], said["would_be"]) == ("REPLACE", None)


COMMANDS = [
    ("decide",), ("align",), ("check",), ("report", "--to", "out"), ("init", "--to", "new"),
    ("estimate",),
]  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_every_command_takes_the_same_options(
    command: Sequence[str], call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    labels, judge = tables(tmp_path, "No.")
    judge.write_text(judge.read_text().replace("verdict,", "ruling,"))
    name, *more = command
    asks = "gpt-4.csv: "
    for option in ("--column ruling=verdict", "--failed No."):
        code, out, err = call(name, labels, judge, *more)
        assert asks in out + err
        assert code == 2
        more += option.split()
    code, out, err = call(name, labels, judge, *more, *ORDER)
    assert code == 0, err
    for line in ("ruling verdict ruling by gpt-4", "Safe < Unsure < Unsafe"):
        assert line in " ".join(out.split())


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_every_command_takes_answers_on_whose_labels_these_are(
    command: Sequence[str], call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    name, *more = command
    rows = {who: [(f"p{i}", label_of(i, 7 + k)) for i in range(N)] for k, who in enumerate("abc")}
    files = [table(Path(f"{who}.csv"), [("id", "label"), *rows[who]]) for who in rows]
    code, out, err = call(name, *files, *more)
    options = printed(out + err, "labels of people stand in")[:4]
    assert (code, options) == (2, ["--labels", "a.csv", "--labels", "b.csv"])
    code, out, err = call(name, *files, *more, *options, "--judge", "gpt-4", *ORDER)
    assert (code, "label verdict label by gpt-4" in " ".join(out.split())) == (0, True), err
    people = {"gpt-4": "a", "Lee": "b", "Ott": "c"}
    long_rows = [(i, who, label) for who in people for i, label in rows[people[who]]]
    long = table(Path("long.csv"), [("id", "annotator", "label"), *long_rows])
    more = [x.replace("new", "newer") for x in more]
    code, out, err = call(name, long, *more)
    assert (code, "gpt-4 in column annotator is named like a model" in out + err) == (2, True)
    code, out, err = call(name, long, *more, *printed(out + err, "in a judge's place"), *ORDER)
    assert code == 0, err
    assert "makes the reference labels" not in out + err


@pytest.mark.parametrize("command", ["check", "align"])
def test_two_files_of_one_name_are_told_apart(command: str, call: Call, tmp_path: Path) -> None:
    labels, judge = tables(tmp_path)
    (tmp_path / "judge").mkdir()
    labels = labels.rename(tmp_path / "data.csv")
    judge = judge.rename(tmp_path / "judge" / "data.csv")
    code, out, err = call(command, judge, "--labels", labels, "--judge", "gpt-4", *ORDER)
    assert code == 0, err
    assert "verdict verdict label by gpt-4" in " ".join(out.split())


@pytest.mark.skipif("certificate" not in FEATURES, reason="needs the feature `certificate`")
def test_watch_takes_them_too(call: Call, tmp_path: Path) -> None:
    labels, verdicts = numbered()
    truth = {"blind": "yes", "independent_items": True}
    columns = {"order": "no < yes", "judge": "gpt-4"}
    decisions = jb.decide(labels, verdicts, truth=truth, columns=columns)
    decisions.certificate().write(tmp_path / "judge.json")
    long = labels.melt(["sample_id", "id"], var_name="raised_by", value_name="harm")
    files = [tmp_path / "labels.csv", tmp_path / "gpt-4.csv"]
    for frame, file in zip((long, verdicts), files, strict=True):
        frame.to_csv(file, index=False)
    command = ("watch", tmp_path / "judge.json", *files)
    code, _, err = call(*command)
    assert (code, "labels.csv: " in err) == (2, True), err
    code, out, err = call(*command, "--column", "raised_by=annotator")
    assert code in (0, 3), err
    assert "raised_by annotator kim said" in " ".join(out.split())
