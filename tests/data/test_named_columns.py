"""What somebody names is obeyed, or refused with a reason: never another column in its place."""

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import judgebench as jb
from judgebench.data.guess import Hints
from judgebench.data.understand import Understood, understand_files, understand_given
from judgebench.errors import SetupError
from judgebench.features import WINGS

N = 40
LABELS = ("Serious", "Not medical", "Non-serious")
PEOPLE = pd.DataFrame(
    {"Nr.": range(N), "Huber": [*LABELS, "Serious"] * 10, "Nowak": [*LABELS, *LABELS[:1]] * 10}
)
JUDGES = pd.DataFrame(
    {"Nr.": range(N), "GPT-4o (2024-08)": PEOPLE["Huber"], "Llama 3 70B": ["Serious", *LABELS] * 10}
)


def read(labels: pd.DataFrame, *verdicts: pd.DataFrame, **hints: tuple[str, ...]) -> Understood:
    return understand_given(labels, list(verdicts), hints=Hints(**hints))


@pytest.mark.parametrize("named", ["Llama 3 70B", "Llama-3-70B", "llama 3 70b"])
@pytest.mark.parametrize("beside", [True, False])
def test_a_judge_is_named_as_its_column_or_as_it_is_printed(named: str, beside: bool) -> None:
    tables = [PEOPLE.merge(JUDGES, on="Nr.")] if beside else [PEOPLE, JUDGES]
    [judge] = read(*tables, judge=(named,)).judges
    assert (judge.names, judge.read) == (["Llama-3-70B"], ["Llama 3 70B"])


@pytest.mark.parametrize("beside", [True, False])
def test_a_name_that_is_no_judges_is_an_error(beside: bool) -> None:
    tables = [PEOPLE.merge(JUDGES, on="Nr.")] if beside else [PEOPLE, JUDGES]
    message = "judge: no such judge; did you mean 'Llama-3-70B'?; found Llama; allowed: GPT-4o"
    with pytest.raises(SetupError, match=re.escape(message)):
        read(*tables, judge=("Llama",))
    one = JUDGES.drop(columns="GPT-4o (2024-08)")  # its head says whose verdicts it holds
    with pytest.raises(SetupError, match="no such judge; found Claude; allowed: Llama-3-70B"):
        read(PEOPLE, one, judge=("Claude",))


def test_a_judge_that_no_head_names_gets_the_name() -> None:
    verdicts = JUDGES[["Nr.", "Llama 3 70B"]].rename(columns={"Llama 3 70B": "label"})
    [judge] = read(PEOPLE, verdicts, judge=("Claude 3",)).judges
    assert (judge.names, judge.spec["judge"]) == (["Claude-3"], {"value": "Claude-3"})
    two = pd.concat([verdicts.assign(judge="gpt-4"), verdicts.assign(judge="llama-3")])
    with pytest.raises(SetupError, match="is one of several judges in a column"):
        read(PEOPLE, two, judge=("llama-3",))
    assert read(PEOPLE, two, judge=("label",)).judges[0].names == ["gpt-4", "llama-3"]
    with pytest.raises(SetupError, match="is no judge: its cells are not the labels"):
        read(PEOPLE, verdicts.assign(note=["x", "y"] * 20), judge=("note",))


def test_named_annotators_are_read_though_another_column_looks_like_theirs() -> None:
    stars = ["1", "2", "3", "4"] * 10
    table = pd.DataFrame({
        "conversation": [i // 4 for i in range(N)], "bot": ["a", "b", "c", "d"] * 10,
        "Stars Maria": stars, "Stars Jonas": stars[::-1], "GPT-4": stars,
    })  # fmt: skip
    found = read(table, annotators=("Stars Maria", "Stars Jonas"), judge=("GPT-4",))
    assert [*found.found.columns] == ["Maria", "Jonas"]
    assert found.found.by == ("conversation", "bot")
    assert found.found.roles["group"] == "conversation"
    with pytest.raises(SetupError, match=r"is no judge: .*; found bot; allowed: GPT-4"):
        read(table, annotators=("Stars Maria", "Stars Jonas"), judge=("bot",))


def test_the_questions_of_pairs_are_not_grouped_further() -> None:
    rows = [(i // 2, i % 2, who) for i in range(N) for who in ("ann", "ben")]
    votes = pd.DataFrame(rows, columns=["question_id", "turn", "annotator"]).assign(
        model_a="x", model_b="y", winner=["model_a", "model_b", "tie", "model_a"] * (N // 2)
    )
    message = "known by question_id, turn, and is grouped no further; found question_id"
    with pytest.raises(SetupError, match=f"question: .*{message}"):
        read(votes, question=("question_id",))


@pytest.mark.parametrize("step", [0.5, 0.07])
@pytest.mark.parametrize("beside", [True, False])
def test_decimals_are_no_verdicts_and_name_the_commands_for_scores(
    step: float, beside: bool
) -> None:
    people = pd.DataFrame({
        "no": [f"n{i}" for i in range(N)], "conversation": [i // 4 for i in range(N)],
        "Stars Maria": [1 + i % 5 for i in range(N)], "Stars Jonas": [1 + i % 5 for i in range(N)],
    })  # fmt: skip
    values = [round(1 + i % (9 if step == 0.5 else N) * step, 2) for i in range(N)]
    scores = pd.DataFrame({"no": people["no"], "LLM score": values})
    tables = [people.merge(scores, on="no")] if beside else [people, scores]
    commands = (
        "`judgebench score correlate TABLE --against 'Stars Maria' --group conversation` or "
        "`judgebench estimate TABLE --score 'Stars Maria=LLM score'`"
    )
    with pytest.raises(SetupError, match=re.escape(commands)):
        read(*tables, judge=("LLM score",))


@pytest.mark.parametrize("beside", [True, False])
def test_no_column_of_verdicts_is_left_out_without_a_word(beside: bool) -> None:
    verdicts = JUDGES.assign(**{
        "GPT-4o (2024-08)": JUDGES["GPT-4o (2024-08)"].str.upper(),
        "Llama 3 70B": "I would say " + JUDGES["Llama 3 70B"], "GPT-4 cost": range(N),
    })  # fmt: skip
    lines = read(*([PEOPLE.merge(verdicts, on="Nr.")] if beside else [PEOPLE, verdicts])).lines
    why = "Llama 3 70B, because its cells are not the labels of the annotators"
    assert any(why in line and "not read: " in line for line in lines)
    assert any("GPT-4 cost, because it has too many different values" in line for line in lines)


@pytest.mark.parametrize("beside", [True, False])
@pytest.mark.parametrize("form", [
    "{} - seen {} times", '{{"reason": "Serious? {1}", "verdict": "{0}"}}', "The label is: {0}",
    "It is about {1}.\n\n**Verdict:** {0}",
])  # fmt: skip
def test_a_column_of_replies_is_read_for_the_label_of_each(form: str, beside: bool) -> None:
    said = [form.format(label, i) for i, label in enumerate(JUDGES["Llama 3 70B"])]
    said[3] = "I'm sorry, but I cannot tell."
    said[4] = "It depends on the patient."
    verdicts = pd.DataFrame({"Nr.": range(N), "Llama 3 70B reply": said})
    tables = [PEOPLE.merge(verdicts, on="Nr.")] if beside else [PEOPLE, verdicts]
    found = read(*tables)
    counted = "38 of 40 replies give a label, the others count as unparsed"
    line = f"judge Llama-3-70B in column Llama 3 70B reply ({counted})"
    assert any(line in one for one in found.lines)
    assert not any("not read" in one for one in found.lines)
    judge = next(j for j in jb.study(found).judges if j.kind == "judge")
    statuses = [judge.verdicts[str(i)].status for i in range(N)]
    assert (statuses[3:5], statuses.count("ok")) == (["refused", "unparsed"], N - 2)
    labels = [judge.verdicts[str(i)].labels.get("label") for i in range(N) if i not in (3, 4)]
    assert labels == [x for i, x in enumerate(JUDGES["Llama 3 70B"]) if i not in (3, 4)]


def test_a_reply_behind_a_label_is_no_judge_of_its_own() -> None:
    label = JUDGES["Llama 3 70B"]
    both = {"llama label": label, "llama reply": [f"{x} - {i}" for i, x in enumerate(label)]}
    for tables in ([PEOPLE, JUDGES[["Nr."]].assign(**both)], [PEOPLE.assign(**both)]):
        assert [judge.read for judge in read(*tables).judges] == [["llama label"]]


def test_replies_are_saved_as_they_were_read(tmp_path: Path) -> None:
    PEOPLE.to_csv(tmp_path / "people.csv", index=False)
    said = [f"{label} - seen {i} times" for i, label in enumerate(JUDGES["Llama 3 70B"])]
    JUDGES[["Nr."]].assign(output=said).to_csv(tmp_path / "llama.csv", index=False)
    started = jb.init([tmp_path / "people.csv", tmp_path / "llama.csv"], tmp_path / "bench")
    assert "{name: llama, from: data.yaml, reply: label}" in started.files[0].read_text()
    assert not jb.check([started.files[0]]).errors


def test_people_who_head_columns_are_not_looked_for_in_rows() -> None:
    stars = ["1", "2", "3", "4"] * 10
    table = pd.DataFrame({
        "conversation": [i // 4 for i in range(N)], "decoding": ["a", "b", "c", "d"] * 10,
        "Stars Maria": stars, "Stars Jonas": stars[::-1], "GPT-4": stars,
    })  # fmt: skip
    found = read(table)
    assert [*found.found.columns] == ["Maria", "Jonas"]
    assert found.found.by == ("conversation", "decoding")
    assert read(table.drop(columns="decoding")).found.by == ()  # each row is an item


def test_a_rare_opposite_is_no_slip() -> None:
    spelt = ["safe"] * 38 + ["unsafe"] + ["asafe"]
    table = pd.DataFrame({"Nr.": range(N), "Huber": spelt, "Nowak": spelt})
    assert not any("correct rare labels" in line for line in read(table).lines)


def test_surnames_keep_their_hyphen() -> None:
    heads = {"Huber": "Safety Müller-Lüdenscheidt", "Nowak": "Safety Nowak"}
    found = read(PEOPLE.rename(columns=heads)).found
    assert [*found.columns] == ["Müller-Lüdenscheidt", "Nowak"]


@pytest.mark.skipif("estimate" not in WINGS, reason="needs the wing `estimate`")
def test_a_misspelt_column_is_a_problem_of_by_and_not_of_keep() -> None:
    table = PEOPLE.assign(system=["a", "b"] * (N // 2))
    with pytest.raises(SetupError, match="by: is not a column of the tables; did you mean 'system"):
        jb.estimate(table, JUDGES, by="sytem")


def test_bytes_that_are_no_utf_8_are_not_printed_as_escapes(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_bytes("Nr.,Müller,Nowak\n1,a,b\n".encode("latin-1"))
    with pytest.raises(SetupError, match="found 'M\ufffdller'"):
        understand_files([path])


def test_a_table_is_no_benchmark(call: Any, tmp_path: Path) -> None:
    PEOPLE.to_csv(tmp_path / "labels.csv", index=False)
    code, _, err = call("run", tmp_path / "labels.csv")
    assert (code, "is a table, and no bench.yaml: `judgebench init`" in err) == (2, True)


def test_an_annotator_who_labelled_nothing_is_named_by_the_option(
    call: Any, tmp_path: Path
) -> None:
    PEOPLE.merge(JUDGES, on="Nr.").to_csv(tmp_path / "labels.csv", index=False)
    code, _, err = call("align", tmp_path / "labels.csv", "--annotator", "bob")
    assert code == 2
    assert "error: --annotator: fits no annotator; found bob; allowed: Huber, Nowak" in err


def test_a_wrong_answer_to_blind_is_said_plainly(call: Any, tmp_path: Path) -> None:
    PEOPLE.to_csv(tmp_path / "labels.csv", index=False)
    JUDGES.to_csv(tmp_path / "judges.csv", index=False)
    code, _, err = call("decide", tmp_path / "labels.csv", tmp_path / "judges.csv", "--blind", "x")
    assert code == 2
    assert err.endswith("error: --blind: must be 'yes', 'no' or 'unknown'; found 'x'\n")


def test_a_table_in_the_encoding_of_windows_is_read_so(tmp_path: Path) -> None:
    text = PEOPLE.replace("Non-serious", "Grün").to_csv(index=False, sep=";")
    (tmp_path / "people.csv").write_bytes(text.encode("cp1252"))
    JUDGES.replace("Non-serious", "Grün").to_csv(tmp_path / "gpt-4.csv", index=False, sep=";")
    found = understand_files([tmp_path / "people.csv", tmp_path / "gpt-4.csv"])
    assert "people.csv: read as Windows-1252, for not all of it is UTF-8" in found.lines
    assert found.found.metrics["Label"] == ("Serious", "Not medical", "Grün")
    assert [file.get("encoding") for file in found.as_spec()["files"][:1]] == ["cp1252"]
    judge = next(one for one in jb.study(found).judges if one.kind == "judge")
    assert {v.status for v in judge.verdicts.values()} == {"ok"}


def test_labels_of_a_long_table_of_verdicts_belong_to_their_metrics() -> None:
    kinds = {"tone": ("kind", "rude"), "safety": ("safe", "unsafe")}
    rows = [(i, who, metric, labels[i % 2]) for i in range(N) for who in ("Ann", "Ben")
            for metric, labels in kinds.items()]  # fmt: skip
    people = pd.DataFrame(rows, columns=["item", "rater", "criterion", "rating"])
    judge = people[people["rater"] == "Ann"].drop(columns="rater")
    assert {m: set(labels) for m, labels in read(people, judge).found.metrics.items()} == {
        metric: set(labels) for metric, labels in kinds.items()
    }


def test_the_metric_is_no_part_of_a_judges_name() -> None:
    heads = {"Huber": "tone_Huber", "Nowak": "tone_Nowak", "Llama 3 70B": "tone_llama3"}
    table = PEOPLE.merge(JUDGES[["Nr.", "Llama 3 70B"]], on="Nr.").rename(columns=heads)
    assert [judge.names for judge in read(table).judges] == [["llama3"]]
    with pytest.raises(SetupError, match="no such judge; did you mean 'llama3'"):
        read(table, judge=("llama4",))
    people, verdicts = table[["Nr.", "tone_Huber", "tone_Nowak"]], table[["Nr.", "tone_llama3"]]
    assert [judge.names for judge in read(people, verdicts).judges] == [["llama3"]]


TWO = {"Refuses?": ("Yes", "No"), "Severity": ("Yes", "No")}
OTHER = {"Refuses?": ("Yes", "No"), "Severity": ("Low", "Mid", "High")}


def sheet(form: str, who: tuple[str, ...], labels: dict[str, tuple[str, ...]] = TWO) -> Any:
    """A column for each metric and each of these, of the given form of head."""
    cells = {
        form.format(who=one, metric=metric): [own[(i + i // (3 + j)) % len(own)] for i in range(N)]
        for metric, own in labels.items()
        for j, one in enumerate(who)
    }
    return pd.DataFrame({"Nr.": range(N), **cells})


@pytest.mark.parametrize("labels", [TWO, OTHER])
@pytest.mark.parametrize("beside", [True, False])
@pytest.mark.parametrize("form", ["{metric} ({who})", "{who} - {metric}", "{metric}_{who}"])
def test_a_judge_of_several_metrics_is_one_as_annotators_are(
    form: str, beside: bool, labels: dict[str, tuple[str, ...]]
) -> None:
    people, verdicts = sheet(form, ("Maria", "Tom"), labels), sheet(form, ("GPT-4o",), labels)
    tables = [people.merge(verdicts, on="Nr.")] if beside else [people, verdicts]
    for hints in ({}, {"judge": ("GPT-4o",)}):
        found = read(*tables, **hints)
        heads = [form.format(who="GPT-4o", metric=metric) for metric in labels]
        assert [judge.names for judge in found.judges] == [["GPT-4o"]]
        assert found.judges[0].spec["metrics"] == dict(
            zip(("refuses", "severity"), heads, strict=True)
        )
        assert [*found.found.columns] == ["Maria", "Tom"]
    judge = next(one for one in jb.study(found).judges if one.kind == "judge")
    assert {*judge.verdicts["0"].labels} == {"refuses", "severity"}


@pytest.mark.parametrize("beside", [True, False])
def test_judges_of_several_metrics_are_told_apart(beside: bool) -> None:
    people = sheet("{metric} ({who})", ("Maria", "Tom"))
    verdicts = sheet("{metric}_{who}", ("gpt4", "llama3")).drop(columns="Severity_llama3")
    verdicts = verdicts.rename(columns={"Refuses?_gpt4": "gpt4_refuses"})
    found = read(*([people.merge(verdicts, on="Nr.")] if beside else [people, verdicts]))
    assert {judge.called: sorted(judge.read) for judge in found.judges} == {
        "gpt4": ["Severity_gpt4", "gpt4_refuses"], "llama3": ["Refuses?_llama3"]
    }  # fmt: skip


def test_two_columns_on_one_metric_are_two_judges_of_the_same_model() -> None:
    people = sheet("{metric} ({who})", ("Maria", "Tom"))
    verdicts = sheet("{metric}_{who}", ("gpt4",)).assign(**{"gpt4 Severity": ["Yes", "No"] * 20})
    found = read(people.merge(verdicts, on="Nr."))
    assert {judge.called: judge.read for judge in found.judges} == {
        "Refuses-_gpt4": ["Refuses?_gpt4"], "Severity_gpt4": ["Severity_gpt4"],
        "gpt4-Severity": ["gpt4 Severity"],
    }  # fmt: skip


def test_an_id_keeps_letters_with_accents() -> None:
    heads = {"Huber": "Größe_Huber", "Nowak": "Größe_Nowak"}
    (metric,) = read(PEOPLE.rename(columns=heads)).rubric.metrics
    assert (metric.id, metric.title) == ("grosse", "Größe")


def test_no_order_for_all_leaves_the_orders_that_are_named(tmp_path: Path) -> None:
    ways = ["Label: Not medical < Non-serious < Serious", "none"]
    for order in (ways, ways[::-1], ["Not medical < Non-serious < Serious", "none"]):
        (metric,) = read(PEOPLE, order=tuple(order)).rubric.metrics
        assert metric.most_severe == "Serious"
    (metric,) = read(PEOPLE, order=("Label: none",)).rubric.metrics
    assert (metric.kind, metric.order) == ("nominal", None)


def test_a_column_called_judge_holds_verdicts_or_names(tmp_path: Path) -> None:
    said = JUDGES["GPT-4o (2024-08)"]
    one = PEOPLE.assign(judge=said)
    assert [(judge.names, judge.read) for judge in read(one).judges] == [(["judge"], ["judge"])]
    two = JUDGES[["Nr."]].assign(judge=said)
    (judge,) = read(PEOPLE, two).judges
    assert judge.read == ["judge"]
    named = pd.concat([two.rename(columns={"judge": "label"}).assign(judge=n) for n in "ab"])
    assert read(PEOPLE, named).judges[0].names == ["a", "b"]
    wide = PEOPLE.rename(columns={"Huber": "ann", "Nowak": "ben"})
    mixed = named.assign(judge=named.judge.replace({"a": "gpt4", "b": "claude"}))
    paths = [tmp_path / "two.csv", tmp_path / "wide.csv"]
    for path, table in zip(paths, (mixed, wide), strict=True):
        table.to_csv(path, index=False)
    assert understand_files(paths).judges[0].names == ["gpt4", "claude"]


@pytest.mark.parametrize("title", ["Off-topic", "Tone-of-voice", "Self harm", "Is it rude?"])
def test_a_metric_of_several_words_is_named_whole(title: str) -> None:
    heads = {who: f"{title} ({who})" for who in ("Huber", "Nowak")}
    assert [*read(PEOPLE.rename(columns=heads)).found.metrics] == [title]


def ordered(column: pd.Series, *labels: str) -> pd.Series:
    return pd.Series(pd.Categorical(column, labels, ordered=True))


def test_ordered_categories_say_the_order_of_labels() -> None:
    scale = ("Not medical", "Non-serious", "Serious", "Deadly")
    wide = PEOPLE.assign(Huber=ordered(PEOPLE["Huber"], *scale))
    (metric,) = read(wide, JUDGES).rubric.metrics
    assert (metric.kind, metric.label_texts) == ("ordinal", scale)
    assert "labels Not medical < Non-serious < Serious < Deadly" in read(wide, JUDGES).lines[0]
    given = " < ".join(LABELS)
    assert read(wide, order=(given,)).rubric.metrics[0].label_texts == LABELS
    assert read(wide, order=("none",)).rubric.metrics[0].kind == "nominal"
    plain = PEOPLE.assign(Huber=pd.Categorical(PEOPLE["Huber"], scale))
    assert read(plain).rubric.metrics[0].order == "unknown"
    short = wide.assign(Nowak=["Odd", *wide["Nowak"][1:]])  # a label that is no category
    assert read(short).rubric.metrics[0].order == "unknown"


def test_in_one_column_of_several_metrics_each_has_its_own_labels_in_order() -> None:
    rows = pd.concat(
        pd.DataFrame(
            {"item_id": range(N), "annotator": who, "metric": metric, "label": labels * 20}
        )
        for who in ("Ann", "Bob")
        for metric, labels in (("tone", ["kind", "rude"]), ("harm", ["none at all", "severe"]))
    ).reset_index(drop=True)
    rows["label"] = ordered(rows["label"], "none at all", "severe", "kind", "rude")
    found = {m.id: m.label_texts for m in read(rows).rubric.metrics if m.kind == "ordinal"}
    assert found == {"tone": ("kind", "rude"), "harm": ("none at all", "severe")}


@pytest.mark.parametrize("name", ["metric", "harm_type", "category"])
def test_a_long_table_says_what_each_label_is_about_by_whatever_name(name: str) -> None:
    """The metric is no part of an item, also where the judge's table has that column too."""
    about = ["Self-harm", "Violence"]
    rows = [(f"c{i}", f"p{i // 2}", who, of, "Yes" if (i + j) % 3 else "No")
            for i in range(N) for who in ("Ann", "Ben") for j, of in enumerate(about)]  # fmt: skip
    people = pd.DataFrame(rows, columns=["case", "prompt_id", "rater", name, "label"])
    judge = people[people["rater"] == "Ann"].drop(columns="rater")
    found = read(people, judge)
    assert [metric.title for metric in found.rubric.metrics] == about
    assert found.found.by == ("case",)
    assert len(jb.study(found).answers) == N


def test_a_category_of_each_item_is_no_metric() -> None:
    rows = [(f"c{i}", who, "ab"[i % 2], "Yes" if i % 3 else "No")
            for i in range(N) for who in ("Ann", "Ben")]  # fmt: skip
    people = pd.DataFrame(rows, columns=["case", "rater", "category", "label"])
    assert len(read(people).found.metrics) == 1


def test_columns_that_could_all_be_verdicts_are_to_be_called_by_the_metric() -> None:
    both = PEOPLE.rename(columns={"Huber": "Tone (Huber)", "Nowak": "Tone (Nowak)"})
    said = JUDGES["GPT-4o (2024-08)"]
    judge = JUDGES[["Nr."]].assign(first=said, second=said)
    with pytest.raises(SetupError, match="a column called 'Tone': rename the one that is meant"):
        read(both, judge)
