"""What columns are: by what is said, by their names, and by the labels that they share; and where
several readings are possible, a question with a way on."""

import json
import shutil
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import judgebench as jb
from judgebench.data.layout import Layout
from judgebench.data.load import read_study
from judgebench.data.reading import GivenTables, infer_layout, sources_of
from judgebench.data.settings import Question, Unsettled
from judgebench.errors import SetupError

N = 40
LABELS = ("Serious", "Not medical", "Non-serious")
PEOPLE = pd.DataFrame(
    {"Nr.": range(N), "Huber": [*LABELS, "Serious"] * 10, "Nowak": [*LABELS, *LABELS[:1]] * 10}
)
JUDGES = pd.DataFrame(
    {"Nr.": range(N), "GPT-4o (2024-08)": PEOPLE["Huber"], "Llama 3 70B": ["Serious", *LABELS] * 10}
)
ROWS = PEOPLE.melt("Nr.", var_name="rater", value_name="label")
GPT, LLAMA = JUDGES.drop(columns="Llama 3 70B"), JUDGES.drop(columns="GPT-4o (2024-08)")


def roles(layout: Layout, *names: str) -> list[str]:
    """What columns are, the last table that has one counting."""
    columns = {n: str(column) for sheet in layout.sheets for n, column in sheet.columns.items()}
    return [columns[name] for name in names]


def asked(*tables: Any, **columns: Any) -> Question:
    """The question on these tables, of which every reading leads on."""
    with pytest.raises(Unsettled) as error:
        jb.layout(*tables, columns=columns)
    question: Question = error.value.questions[0]
    for reading in question.readings:
        assert reading.settings.flags()
        assert question_of(*tables, **{**columns, **reading.columns}) != question.asks
    return question


def question_of(*tables: Any, **columns: Any) -> str:
    """What is asked of these tables, if anything."""
    try:
        jb.layout(*tables, columns=columns)
    except Unsettled as error:
        return str(error.questions[0].asks)
    except SetupError:
        return "an error"
    return ""


def flags(question: Question) -> list[str]:
    return [reading.settings.flags() for reading in question.readings]


@pytest.fixture(params=["beside", "apart"])
def arranged(request: pytest.FixtureRequest) -> Callable[[pd.DataFrame, pd.DataFrame], list[Any]]:
    """Labels and verdicts in one table, or in two."""

    def tables(labels: pd.DataFrame, verdicts: pd.DataFrame) -> list[Any]:
        both = [*{*labels.columns} & {*verdicts.columns}]
        return (
            [labels.merge(verdicts, on=both)] if request.param == "beside" else [labels, verdicts]
        )

    return tables


def statuses(study: jb.Study) -> list[str]:
    """How the only judge's verdicts ended."""
    (judge,) = (judge for judge in study.judges if judge.kind == "judge")
    return [str(judge.verdicts[answer.item_id].status) for answer in study.answers]


# Questions ---------------------------------------------------------------------------------------

NAMES = [(a, b) for a in ("Kim", "Lee") for b in ("Tone", "Harm")]
PAIRS = pd.DataFrame({f"{a} {b}": ["a", "b", "b", "a"] * 10 for a, b in NAMES}).reset_index(
    names="id"
)
HARM = pd.DataFrame({
    "id": range(N), "harmful (Kim)": ["yes", "no"] * 20, "harmful (Lee)": ["yes", *["no"] * 3] * 10,
})  # fmt: skip
NUMBERED = PEOPLE.assign(case_id=[f"c{i}" for i in range(N)])
SORTED = GPT.assign(case_id=[f"c{N - 1 - i}" for i in range(N)])
AGREED = pd.DataFrame({"Nr.": range(N)} | {
    name: [LABELS[(i + (i % 7 == slip)) % 3] for i in range(N)]
    for name, slip in (("Huber", 0), ("Nowak", 1), ("Ott", 2), ("Council", 9))
})  # fmt: skip
PROMPTS = [f"Why {i}?" for i in range(N)]
NUMBERS = {"id": range(N), "prompt": PROMPTS}
SHUFFLED = GPT.drop(columns="Nr.").assign(id=range(N), prompt=PROMPTS[::-1])
TWICE = pd.concat([LLAMA, LLAMA.iloc[::-1]]).set_axis(["Nr.", "verdict"], axis=1)


def with_text(text: str) -> list[pd.DataFrame]:
    return [PEOPLE.assign(Huber=[text, *PEOPLE["Huber"][1:]]), GPT]


def with_row(item: str, huber: str, nowak: str) -> list[pd.DataFrame]:
    row = pd.DataFrame({"Nr.": [item], "Huber": [huber], "Nowak": [nowak]})
    return [pd.concat([PEOPLE, row]), GPT]


ASKED: dict[str, tuple[list[pd.DataFrame], str, list[str]]] = {
    "no item": ([PEOPLE.assign(x=range(N)).drop(columns="Nr.")], "Huber, Nowak", []),
    "two items": ([ROWS.assign(id=range(2 * N))], "Nr., id",
                  ["--column Nr.=item", "--column id=item"]),
    "other ids": ([PEOPLE, GPT.assign(**{"Nr.": [i + i % 2 * 99 for i in range(N)]})], "100, 102",
                  ["--set only_common=yes"]),
    "people": ([PEOPLE], "Huber, Nowak", ["--column Huber=label --column Nowak=label",
               "--column 'Huber=label Huber' --column 'Nowak=label Nowak'"]),
    "part of a name": ([PAIRS], "Kim Tone", [
        " ".join(f"--column '{a} {b}=label {b} by {a}'" for a, b in NAMES)]),
    "side column": ([ROWS.assign(name=["safe", "sane"] * N)], "name", [
        "--column name=metric", "--column label=label --column name=label",
        "--column name=ignored"]),
    "model": ([ROWS.replace("Nowak", "gpt-4")], "gpt-4", [
        "--judge gpt-4", "--as-judge gpt-4", "--annotator Huber --annotator gpt-4"]),
    "error": (with_text("#REF!"), "#REF!", ["--blank '#REF!'"]),
    "none": (with_text("none"), "none", ["--blank none", "--spell none=Serious"]),
    "slip": (with_text("Seriouss"), "row 2 of Huber", ["--blank Seriouss",
             "--spell Seriouss=Serious"]),
    "list": (with_text("Serious, Non-serious"), "row 2 of Huber", ["--set several=,"]),
    "total": (with_row("Total", "10 serious", "12 serious"), "row 42", ["--set skip=labels:42"]),
    "two pairings": ([NUMBERED, SORTED], "another case_id",
                     ["--column Nr.=item", "--column case_id=item"]),
    "two running numbers": (
        [pd.DataFrame(NUMBERS).join(PEOPLE.drop(columns="Nr.")), SHUFFLED], "another prompt",
        ["--column prompt=item", "--column id=item"]),
    "labels among words": (
        [HARM.replace({"yes": "1", "no": "2"}),
         pd.DataFrame({"id": range(N), "verdict": ["1 star", "2 stars"] * 20})],
        "holds '1 star' (20 such cells; also '2 stars')",
        ["--spell '1 star=1' --spell '2 stars=2'", "--spell '1 star=1'"]),
    "codes of yes and no": (
        [HARM, pd.DataFrame({"id": range(N), "flag": ["1.0", "0.0"] * 20})], "yes mean the same",
        ["--column 'flag=verdict harmful' --spell 1.0=no --spell 0.0=yes",
         "--column 'flag=verdict harmful'"]),
    "gold": ([PEOPLE.assign(**{"Expert gold": PEOPLE["Nowak"]}), GPT], "people settled on",
             ["--column 'Expert gold=adjudicated Label'"]),
    "gold beside rows": ([ROWS.assign(gold_answer=PEOPLE["Huber"][0]), GPT], "gold_answer",
                         ["--column gold_answer=adjudicated"]),
    "merged questions": ([PEOPLE.assign(group_id=["a", "", "", ""] * 10), GPT],
                         "30 rows have a blank cell in group_id", ["--set fill_down=group_id"]),
    "scores": ([PEOPLE, GPT.assign(**{"GPT-4o (2024-08)": [i / 100 for i in range(N)]})],
               "holds '0.0' (1 such cell; also '0.01'", ["--column 'GPT-4o (2024-08)=ignored'"]),
    "opposites": ([HARM, pd.DataFrame({"id": range(N), "is_safe": ["True", "False"] * 20})],
                  "does yes mean the same in both",
                  ["--column 'is_safe=verdict harmful' --spell True=no --spell False=yes"]),
    "a name of people and models": ([PEOPLE.assign(Claude=PEOPLE["Huber"]), GPT], "Claude", [
        "--column Claude=verdict",
        "--column Huber=label --column Nowak=label --column Claude=label"]),
    "a person's name with an initial": (
        [PEOPLE.assign(**{"Claude M.": PEOPLE["Huber"], "gpt-4.1": PEOPLE["Nowak"]})], "Claude M.",
        ["--column 'Claude M.=verdict'",
         "--column Huber=label --column Nowak=label --column 'Claude M.=label'"]),
    "a tool's labels": ([PEOPLE.assign(**{"Keyword filter": PEOPLE["Huber"]}), GPT],
                        "is Keyword filter an annotator", ["--column 'Keyword filter=ignored'"]),
    "earlier labels": ([PEOPLE.assign(**{"Old label": PEOPLE["Huber"]}), GPT],
                       "is Old label an annotator", ["--column 'Old label=verdict'"]),
    "codes of a judge": (
        [HARM, pd.DataFrame({"id": range(N), "verdict": ["safe", "unsafe", "error", "safe"] * 10})],
        "also 'unsafe', 'error'",
        ["--spell safe=yes --spell unsafe=no", "--spell safe=no --spell unsafe=yes"]),
    "a failure alone": (
        [PEOPLE, GPT.replace({GPT.columns[1]: {"Not medical": "error"}})], "'error'",
        ["--failed error"]),
    "an agreed label": ([AGREED, GPT], "what most of the others say", []),
    "decimals": ([PEOPLE.assign(Huber=[*"1234"] * 10, Nowak=["1,0", *"234"] * 10),
                  GPT.assign(**{"GPT-4o (2024-08)": [*"1234"] * 10})], "1,0",
                 ["--spell 1,0=1"]),
    "note": (with_row("* seen twice", "", ""), "* seen twice", ["--set skip=labels:42"]),
    "two verdicts": ([PEOPLE, GPT.set_axis(["Nr.", "one"], axis=1).assign(other=PEOPLE["Huber"])],
                     "one, other", ["--column one=verdict", "--column other=verdict"]),
    "no judge": ([PEOPLE, TWICE.assign(hour=["x"] * N + ["y"] * N)], "several rows about one item",
                 ["--column hour=judge"]),
}  # fmt: skip


@pytest.mark.parametrize("case", ASKED)
def test_what_may_be_read_in_two_ways_is_asked(case: str) -> None:
    tables, fragment, options = ASKED[case]
    question = asked(*tables)
    assert fragment in question.asks
    assert {*options} <= {*flags(question)}


def test_a_label_that_an_order_leaves_out_is_asked_about() -> None:
    question = asked(PEOPLE, GPT, order=LABELS[:2])
    assert "holds 'Non-serious'" in question.asks
    assert {"--blank Non-serious", "--spell Non-serious=Serious"} <= {*flags(question)}


def test_a_table_of_a_column_for_each_item_is_refused() -> None:
    columns = {f"k{i}": ["yes", "no", "yes" if i % 2 else "no"] for i in range(N)}
    with pytest.raises(SetupError, match="has 40 columns of labels and 3 rows: are its columns"):
        jb.layout(pd.DataFrame(columns))


# Items -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("items", "item"),
    [
        ({"id": [f"c{i}" for i in range(N)]}, ["id"]),
        ({"Beleg": range(N), "prompt_id": [i // 2 for i in range(N)]}, ["Beleg"]),
        ({"prompt": [f"Why {i}?" for i in range(N)]}, ["prompt"]),
        ({"conversation": [i // 4 for i in range(N)], "bot": [*"abcd"] * 10},
         ["conversation", "bot"]),
        ({"item_id": [f"c{i}" for i in range(N)], "uuid": [f"u{i}" for i in range(N)]},
         ["item_id"]),
        ({"run_id": [f"r{i}" for i in range(N)], "case_id": [f"c{i}" for i in range(N)]},
         ["run_id"]),
    ],
)  # fmt: skip
def test_an_item_is_what_no_row_shares(items: Mapping[str, Any], item: list[str]) -> None:
    table = pd.DataFrame(items).join(PEOPLE.drop(columns="Nr.")).join(GPT.drop(columns="Nr."))
    sheet = jb.layout(table).sheets[0]
    assert sheet.of("item") == item
    others = [c for c in items if c not in item and sheet.columns[c].role != "group"]
    assert all(sheet.columns[column].role == "ignored" for column in others)


def test_what_a_judges_table_says_of_the_judge_is_nothing_of_the_answers() -> None:
    judged = GPT.assign(model="gpt-4o", status=["closed", "open"] * 20, **{"GPT-4o why": "x"})
    layout = jb.layout(PEOPLE, judged.rename(columns={"GPT-4o why": "GPT-4o rationale"}))
    assert roles(layout, "model", "status") == ["ignored", "ignored"]
    assert not any(answer.system for answer in jb.study(layout).answers)
    beside = PEOPLE.merge(judged.drop(columns="model"), on="Nr.").rename(
        columns={"GPT-4o why": "GPT-4o rationale"}
    )
    assert roles(jb.layout(beside), "GPT-4o rationale", "status") == ["rationale", "ignored"]


def test_of_texts_and_names_of_responses_the_names_count() -> None:
    pairs = pd.DataFrame({
        "id": range(N), "response_a": [f"text {i}" for i in range(N)],
        "response_b": [f"other {i}" for i in range(N)], "model_a": ["new", "old"] * 20,
        "model_b": ["old", "new"] * 20, "Dana": ["A", "B"] * 20, "Eli": ["A", "B", "B", "B"] * 10,
    })  # fmt: skip
    judged = pairs[["id", "model_a", "model_b"]].assign(winner=["A", "B"] * 20)
    layout = jb.layout(pairs, judged, columns={"Dana": "label", "Eli": "label"})
    assert roles(layout, "response_a", "model_a", "model_b") == ["ignored", "first", "second"]
    assert statuses(jb.study(layout)) == ["ok"] * N


def test_columns_of_an_item_stand_in_one_order_in_all_tables() -> None:
    about = pd.DataFrame({"q": [f"q{i // 2}" for i in range(N)], "bot": [*"xy"] * 20})
    labels = about.join(PEOPLE.drop(columns="Nr."))
    verdicts = about[["bot", "q"]].join(GPT.drop(columns="Nr."))
    assert statuses(jb.study(labels, verdicts)) == ["ok"] * N


def test_blank_ids_are_merged_cells_or_rows_that_do_not_count() -> None:
    labels = pd.DataFrame({
        "id": ["a", "", "b", "", "c", ""], "rater": ["ann", "ben"] * 3,
        "tone": ["kind", "rude", "rude", "rude", "kind", "kind"],
    })  # fmt: skip
    question = asked(labels)
    assert "3 rows have a blank cell in id, the first of them row 3" in question.asks
    assert flags(question) == ["--set fill_down=id", "--set skip=labels:3,5,7"]
    study = jb.study(labels, columns={"fill_down": "id"})
    assert (len(study.answers), study.n_labels) == (3, 6)


IDS = [f"Case {i}" for i in range(20)]


@pytest.mark.parametrize(
    ("spelt", "form"),
    [
        ([text.upper() for text in IDS], "case, spaces and accents"),
        ([text.replace(" ", "_") for text in IDS], "signs"),
        ([text.removeprefix("Case ") for text in IDS], "what is no digit"),
        ([f"case_{i:03}" for i in range(20)], "case, signs and leading zeros"),
    ],
)
def test_ids_are_compared_in_the_form_that_pairs_them_all(spelt: list[str], form: str) -> None:
    labels = PEOPLE.head(20).assign(**{"Nr.": spelt})
    layout = jb.layout(labels, GPT.head(20).assign(**{"Nr.": IDS}))
    assert layout.ids == form
    assert any(form in note for note in layout.notes)
    assert statuses(jb.study(layout)) == ["ok"] * 20


@pytest.mark.parametrize("digits", [("{:03}", "{}"), ("{}", "{}.0")])
def test_zeros_and_points_of_ids_make_no_others(digits: tuple[str, str]) -> None:
    here, there = ([form.format(i) for i in range(1, 41)] for form in digits)
    layout = jb.layout(PEOPLE.assign(**{"Nr.": here}), GPT.assign(**{"Nr.": there}))
    assert layout.ids in ("leading zeros", "a final .0")
    assert len(jb.study(layout).answers) == N


# People ------------------------------------------------------------------------------------------


def test_tables_of_people_have_the_same_columns_or_are_refused(tmp_path: Path) -> None:
    """Beside a model's, whose they are is asked."""
    heads = {"ann": ["case", "rating"], "ben": ["Case ID", "My verdict"], "gpt-4": ["n", "verdict"]}
    for name, columns in heads.items():
        PEOPLE[["Nr.", "Huber"]].set_axis(columns, axis=1).to_csv(
            tmp_path / f"{name}.csv", index=False
        )
    ann, ben, judge = (str(tmp_path / f"{name}.csv") for name in heads)
    with pytest.raises(Unsettled, match=r"whose labels stand in ben\.csv") as error:
        infer_layout(GivenTables(unsorted=sources_of([ann, ben, judge], "tables")))
    said = error.value.questions[0].readings[0].settings
    assert said.flags() == f"--labels {ann} --labels {ben}"
    with pytest.raises(SetupError, match=r"ben\.csv:1: has other columns than ann\.csv"):
        jb.study([ann, ben], judge)
    renamed = pd.read_csv(ben).set_axis(heads["ann"], axis=1)
    assert jb.study({"ann": ann, "ben": renamed}, judge).makers == ("ann", "ben")


@pytest.mark.parametrize("order", ["none", "No < Y", ""])
@pytest.mark.parametrize("is_long", [False, True])
def test_two_words_for_no_are_asked_about(order: str, is_long: bool) -> None:
    cells = ["Y", "N", "No", "No"] * 10
    people = pd.DataFrame({"id": range(N), "Ann": cells, "Ben": [*cells[:-1], "Y"]})
    if is_long:
        people = people.melt("id", var_name="rater", value_name="harm").assign(criterion="harm")
    judge = pd.DataFrame({"id": range(N), "harm": ["Yes", "No"] * 20})
    said = {"order": order} if order else {}
    question = asked(people, judge, **said)
    assert "holds 'N' (" in question.asks
    assert flags(question)[0] == "--spell N=No"
    assert question_of(people, judge, **said, spell={"N": "No"}) == ""
    question = asked(people, judge, order="none", spell={"N": "N"})
    assert "holds 'Yes'" in question.asks
    assert flags(question)[:2] == ["--spell Yes=Y", "--failed Yes"]
    assert len({*flags(question)}) == len(flags(question))


@pytest.mark.parametrize("head", ["Question", "Group", "Type", "Aspekt"])
def test_a_column_of_names_of_verdict_columns_is_of_metrics(head: str) -> None:
    harm, topic, other = ["Safe", "Unsafe"] * 20, ["Yes", *["No"] * 3] * 10, ["Long", "Short"] * 20
    labels = pd.concat(
        pd.DataFrame({"who": who, "Ticket": range(N), head: name, "Rating": texts})
        for who in ("Ann", "Ben")
        for name, texts in (("Harm", harm), ("Off topic", topic), ("Length", other))
    )
    verdicts = pd.DataFrame({"Ticket": range(N), "Harm": harm[::-1], "Off topic": topic})
    layout = jb.layout(labels, verdicts)
    assert roles(layout, head, "Ticket", "Off topic") == [
        "metric",
        "item",
        "verdict off_topic by verdicts",
    ]
    assert len(read_study(layout).labels) == len(labels)


@pytest.mark.parametrize("head", ["P({})", "prob_{}", "{} share", "probability_{}"])
def test_numbers_named_after_labels_may_be_probabilities(head: str) -> None:
    labels = ["not ok", "ok"] * 20
    people = pd.DataFrame({"id": range(N), "Ann": labels, "Ben": [*labels[:-2], "ok", "ok"]})
    sure = [0.05 + i / 50 for i in range(N)]
    judge = pd.DataFrame({"id": range(N), "ok": people["Ann"]})
    shares = {head.format("ok"): sure, head.format("not ok"): [1 - share for share in sure]}
    columns = asked(people, judge.assign(**shares)).readings[0].columns
    assert columns == {head.format(x): f"probability {x}" for x in ("ok", "not ok")}
    study = jb.study(people, judge.assign(**shares), columns=columns)
    (verdicts,) = [one.verdicts for one in study.judges if one.kind == "judge"]
    assert verdicts["0"].probabilities == {"ok": pytest.approx({"ok": 0.05, "not ok": 0.95})}
    shares[head.format("ok")] = [0.5, *sure[1:]]
    assert question_of(people, judge.assign(**shares)) == ""


@pytest.mark.parametrize("columns", [{}, {"order": "safe < Unsure < DANGEROUS"}])
def test_a_label_is_called_as_most_cells_spell_it(columns: dict[str, str]) -> None:
    cells = ["safe", "DANGEROUS", "Safe", "Unsure", "Safe", "Dangerous", "Safe ", "dangerous."] * 5
    people = pd.DataFrame({"id": range(N), "Ann": cells, "Ben": ["Dangerous", *cells[1:]]})
    judge = pd.DataFrame({"id": range(N), "harm": ["Safe", "dangerous"] * 20})
    layout = jb.layout(people, judge, columns=columns)
    assert {*layout.rubric.metrics[0].label_texts} == {"Safe", "Unsure", "Dangerous"}
    assert len(read_study(layout).labels) == 2 * N


def test_ids_that_overlap_are_counted_before_they_are_paired() -> None:
    judge = GPT.assign(**{"Nr.": range(N // 2, N + N // 2)})
    (reading,) = asked(PEOPLE, judge).readings
    assert reading.means == "only what both tables have counts: 20 ids, taken as the same items"
    assert asked(PEOPLE, GPT.assign(**{"Nr.": range(N, 2 * N)})).readings == ()


def test_ids_of_tables_of_labels_are_compared_alike(tmp_path: Path) -> None:
    for name, digits in (("ann", 4), ("ben", 0), ("cem", 4)):
        ids = [str(i).zfill(digits) for i in range(N)]
        table = pd.DataFrame({"id": ids, "tone": PEOPLE["Huber"]})
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    labels = [tmp_path / f"{name}.csv" for name in ("ann", "ben", "cem")]
    study = jb.study(labels, {"gpt": pd.read_csv(labels[0], dtype=str)})
    assert (len(study.answers), study.makers) == (N, ("ann", "ben", "cem"))


def test_a_few_rows_may_lack_their_id(tmp_path: Path) -> None:
    more = PEOPLE.rename(columns={"Nr.": "conversation"}).assign(no=range(N))
    more = pd.concat([more, pd.DataFrame({"no": ["Total"], "Huber": ["12"], "Nowak": ["9"]})])
    question = asked(more, GPT.rename(columns={"Nr.": "conversation"}))
    assert flags(question)[0] == f"--set skip=labels:{N + 2}"


def test_people_have_a_column_each_or_a_row_each(arranged: Any) -> None:
    layout = jb.layout(*arranged(PEOPLE, GPT))
    assert roles(layout, "Huber", "Nowak") == ["label label by Huber", "label label by Nowak"]
    long = PEOPLE.melt("Nr.", var_name="Gutachter", value_name="Urteil")
    layout = jb.layout(long, GPT)
    assert roles(layout, "Gutachter", "Urteil") == ["annotator", "label urteil"]
    assert roles(jb.layout({"kim": PEOPLE[["Nr.", "Huber"]].rename(columns={"Huber": "label"}),
                            "lee": PEOPLE[["Nr.", "Nowak"]].rename(columns={"Nowak": "label"})},
                           GPT), "label") == ["label label"]  # fmt: skip


def test_without_a_judge_names_or_labels_say_who_labelled() -> None:
    layout = jb.layout(PEOPLE.rename(columns={"Huber": "rater 1", "Nowak": "rater 2"}))
    assert roles(layout, "rater 1") == ["label label by rater 1"]
    questions = PEOPLE.assign(Nowak=["yes", "no"] * 20)  # of other labels
    assert roles(jb.layout(questions), "Nowak", "Huber") == ["label nowak", "label huber"]


@pytest.mark.parametrize(
    ("form", "people"),
    [("{metric} ({who})", ("Maria", "Tom")), ("{who} - {metric}", ("Maria", "Tom")),
     ("{metric}_{who}", ("Maria", "Tom")), ("{metric}{who}", ("1", "2"))],
)  # fmt: skip
@pytest.mark.parametrize("labels", [("Yes", "No"), ("Low", "Mid", "High")])
def test_names_of_columns_are_pairs_of_metrics_and_people(
    arranged: Any, form: str, people: Sequence[str], labels: Sequence[str]
) -> None:
    scales = {"Refuses?": ("Yes", "No"), "Severity": labels}

    def sheet(names: Sequence[str]) -> pd.DataFrame:
        cells = {
            form.format(who=name, metric=metric): [
                own[(i + i // (3 + j)) % len(own)] for i in range(N)
            ]
            for metric, own in scales.items()
            for j, name in enumerate(names)
        }
        return pd.DataFrame({"Nr.": range(N), **cells})

    verdicts = sheet(["GPT-4o"]).rename(columns=lambda c: c.replace("?GPT", "? GPT"))
    layout = jb.layout(*arranged(sheet(people), verdicts))
    assert [m.title for m in layout.rubric.metrics] == [*scales]
    named = {(c.metric, c.who) for s in layout.sheets for c in s.columns.values() if c.metric}
    names = [f"annotator-{p}" if p.isdigit() else p for p in people]
    assert {who for _, who in named} == {*names, *layout.judges}
    assert len(named) == 2 * 3
    (judge,) = layout.judges
    assert judge in ("GPT-4o", "y GPT-4o")


@pytest.mark.parametrize("title", ["Off-topic", "Self harm", "Is it rude?", "Größe"])
def test_what_names_of_people_share_is_the_metric(arranged: Any, title: str) -> None:
    heads = {name: f"{title} ({name})" for name in ("Huber", "Nowak")}
    layout = jb.layout(*arranged(PEOPLE.rename(columns=heads), LLAMA))
    (metric,) = layout.rubric.metrics
    assert metric.title == title
    assert metric.id.isascii()
    assert [c.who for c in layout.sheets[0].columns.values()][1:3] == ["Huber", "Nowak"]


@pytest.mark.parametrize("name", ["criterion", "metric", "harm_type", "category"])
def test_a_long_table_says_what_each_label_is_about(name: str) -> None:
    about = {"tone": ("kind", "rude"), "safety": ("safe", "unsafe")}
    rows = [(i, f"p{i // 2}", rater, metric, labels[i % 2]) for i in range(N)
            for rater in ("Ann", "Ben") for metric, labels in about.items()]  # fmt: skip
    people = pd.DataFrame(rows, columns=["case", "prompt_id", "rater", name, "label"])
    judge = people[people["rater"] == "Ann"].drop(columns="rater")
    roles_by_name = {name: "metric"} if name in ("category", "harm_type") else {}
    if roles_by_name:  # which no name of a metric says
        assert f"--column {name}=metric" in flags(asked(people, judge))
    layout = jb.layout(people, judge, columns=roles_by_name)
    assert {m.title: {*m.label_texts} for m in layout.rubric.metrics} == {
        metric: {*labels} for metric, labels in about.items()
    }
    assert layout.sheets[0].of("item") == ["case"]
    assert len(jb.study(layout).answers) == N


def test_a_further_row_of_a_person_is_asked_about() -> None:
    again = pd.concat([ROWS, ROWS.head(2).assign(label="Serious", hour="late")])
    assert flags(asked(again))[:2] == ["--set repeats=last", "--set repeats=first"]
    for repeats, label in (("last", "Serious"), ("first", "Not medical")):
        labels = read_study(jb.layout(again, columns={"repeats": repeats})).labels
        assert {x.label for x in labels if (x.item_id, x.annotator) == ("1", "Huber")} == {label}


def test_contradictory_rows_make_no_metric_of_the_column_of_labels() -> None:
    twice = ROWS.head(3).assign(label=[*ROWS["label"].iloc[1:4]])
    again = pd.concat([ROWS.assign(sure=[*"12345"] * (2 * N // 5)), twice.assign(sure="1")])
    again = pd.concat([again, again.iloc[[9]]])
    judge = GPT.set_axis(["id", "label"], axis=1)
    for tables in ((again,), (again, judge)):
        assert flags(asked(*tables))[:2] == ["--set repeats=last", "--set repeats=first"]
    with pytest.warns(UserWarning, match="the last one counts") as warned:
        jb.study(again, judge, columns={"repeats": "last", "sure": "ignored"})
    warnings = " ".join(str(warning.message) for warning in warned)
    assert "another label of the same annotator, the last one counts (3 times" in warnings
    assert "kept once (1 time" in warnings


def test_items_without_the_question_that_others_have_are_counted() -> None:
    topics = [""] * (N - 6) + ["a", "a", "b", "b", "c", "c"]
    judge, settings = GPT.assign(topic=topics), {"topic": "group"}
    with pytest.warns(UserWarning, match="34 of 40 items name no question, though others do"):
        study = jb.study(PEOPLE, judge, columns=settings)
    assert study.clusters.n == 37


def test_what_annotators_say_of_themselves_is_no_label() -> None:
    layout = jb.layout(ROWS.assign(sex=["f"] * N + ["m"] * N), GPT)
    assert roles(layout, "sex", "label") == ["ignored", "label label"]
    votes = ROWS.rename(columns={"label": "harm"}).assign(team=["x"] * N + ["y"] * N)
    assert roles(jb.layout(votes, GPT), "team", "harm") == ["ignored", "label harm"]


# Labels and other texts --------------------------------------------------------------------------


def test_a_label_that_somebody_names_is_none_to_ask_about() -> None:
    labels = PEOPLE.assign(Huber=["Deadly", *PEOPLE["Huber"][1:]])
    assert "--spell Deadly=Serious" in flags(asked(labels, GPT))
    for columns in ({"order": ["Not medical", "Non-serious", "Serious", "Deadly"]},
                 {"spell": {"Deadly": "Deadly"}}):  # fmt: skip
        assert "Deadly" in jb.layout(labels, GPT, columns=columns).rubric.metrics[0].label_texts
    spelt = jb.layout(labels, GPT, columns={"spell": {"Deadly": "Serious"}})
    assert {*spelt.rubric.metrics[0].label_texts} == {*LABELS}


@pytest.mark.parametrize("words", [("ja", "nein"), ("TRUE", "FALSE"), ("Y", "N")])
def test_yes_and_no_may_be_written_in_other_words(arranged: Any, words: Sequence[str]) -> None:
    people = PEOPLE.assign(Huber=["yes", "no"] * 20, Nowak=["yes", "no", "no", "no"] * 10)
    study = jb.study(*arranged(people, GPT.assign(**{GPT.columns[1]: [*words] * 20})))
    (judge,) = (judge for judge in study.judges if judge.kind == "judge")
    assert {v.labels["label"] for v in judge.verdicts.values()} == {"yes", "no"}


def ordered(column: Any, *labels: str) -> pd.Series:
    return pd.Series(pd.Categorical(column, labels, ordered=True))


def test_ordered_categories_say_the_order_of_labels() -> None:
    scale = ("Not medical", "Non-serious", "Serious", "Deadly")
    wide = PEOPLE.assign(Huber=ordered(PEOPLE["Huber"], *scale))
    (metric,) = jb.layout(wide, JUDGES).rubric.metrics
    assert (metric.kind, metric.label_texts) == ("ordinal", scale)
    (metric,) = jb.layout(wide, JUDGES, columns={"order": LABELS}).rubric.metrics
    assert metric.label_texts == LABELS
    (metric,) = jb.layout(wide, JUDGES, columns={"order": "none"}).rubric.metrics
    assert (metric.kind, metric.order) == ("nominal", None)
    others = wide.assign(Nowak=["Odd"] * 5 + [*wide["Nowak"][5:]])  # a label that is no category
    unordered = PEOPLE.assign(Huber=pd.Categorical(PEOPLE["Huber"], scale))
    for table in (others, unordered, PEOPLE):
        assert jb.layout(table, JUDGES).rubric.metrics[0].order == "unknown"


def test_each_metric_of_a_column_has_its_labels_in_order() -> None:
    rows = pd.concat(
        pd.DataFrame({"item_id": range(N), "rater": rater, "metric": metric, "label": labels * 20})
        for rater in ("Ann", "Bob")
        for metric, labels in (("tone", ["kind", "rude"]), ("harm", ["none at all", "severe"]))
    ).reset_index(drop=True)
    rows["label"] = ordered(rows["label"], "none at all", "severe", "kind", "rude")
    orders = {m.id: m.label_texts for m in jb.layout(rows).rubric.metrics if m.kind == "ordinal"}
    assert orders == {"tone": ("kind", "rude"), "harm": ("none at all", "severe")}


@pytest.mark.parametrize(
    ("order", "message"),
    [
        ("a < b", "leaves out labels that labels holds: Serious, Not medical, Non-serious"),
        ("Serious", "is no order of labels; found Serious; allowed: LABEL < LABEL"),
        ("Serious <", "leaves out labels"),
    ],
)
def test_an_order_that_is_none_says_what_is(order: str, message: str) -> None:
    with pytest.raises(SetupError, match=message):
        jb.layout(PEOPLE, JUDGES, columns={"order": order})


def test_an_order_may_be_that_of_one_metric() -> None:
    order = ["none", "Label: Not medical < Non-serious < Serious"]
    (metric,) = jb.layout(PEOPLE, JUDGES, columns={"order": order}).rubric.metrics
    assert metric.most_severe == "Serious"


# Judges ------------------------------------------------------------------------------------------


def test_judges_are_named_by_columns_or_by_rows(arranged: Any) -> None:
    assert jb.layout(*arranged(PEOPLE, JUDGES)).judges == ("GPT-4o (2024-08)", "Llama 3 70B")
    for name in ("Llama 3 70B", "Llama-3-70B", "llama 3 70b"):
        layout = jb.layout(*arranged(PEOPLE, JUDGES), columns={"judge": name})
        assert layout.judges == ("Llama 3 70B",)
    message = "--judge: no judge is called so; did you mean 'Llama 3 70B'"
    with pytest.raises(SetupError, match=message):
        jb.layout(*arranged(PEOPLE, JUDGES), columns={"judge": "Llama"})
    rows = JUDGES.melt("Nr.", var_name="judge", value_name="verdict")
    assert jb.layout(PEOPLE, rows).judges == ("GPT-4o (2024-08)", "Llama 3 70B")
    assert jb.layout(PEOPLE, rows, columns={"judge": "llama 3 70b"}).judges == ("Llama 3 70B",)


def test_a_judge_that_no_head_names_is_its_tables(tmp_path: Any) -> None:
    verdicts = LLAMA.rename(columns={"Llama 3 70B": "verdict"})
    verdicts.to_csv(tmp_path / "claude-3.csv", index=False)
    assert jb.layout(PEOPLE, tmp_path / "claude-3.csv").judges == ("claude-3",)
    assert jb.layout(PEOPLE, {"mine": verdicts, "other": GPT.set_axis(["Nr.", "v"], axis=1)}
                     ).judges == ("mine", "other")  # fmt: skip
    assert jb.layout(PEOPLE, verdicts, columns={"judge": "Claude 3"}).judges == ("Claude 3",)
    (tmp_path / "b").mkdir()
    again = shutil.copy(tmp_path / "claude-3.csv", tmp_path / "b")
    with pytest.raises(SetupError, match="two tables have verdicts of a judge of this name"):
        jb.layout(PEOPLE, [tmp_path / "claude-3.csv", again])
    with pytest.raises(SetupError, match="the same table is given twice"):
        jb.layout(PEOPLE, [again, again])


def test_a_judge_of_several_metrics_is_one() -> None:
    names = ("Refuses? (Maria)", "Refuses? (Tom)", "Severity (Maria)", "Severity (Tom)")
    people = PEOPLE[["Nr."]].assign(**{name: ["Yes", "No", "No", "Yes"] * 10 for name in names})
    own = ("gpt4_refuses", "Severity_gpt4", "Refuses?_llama3")
    verdicts = PEOPLE[["Nr."]].assign(**{name: ["Yes", "No"] * 20 for name in own})
    for layout in (jb.layout(people, verdicts), jb.layout(people.merge(verdicts, on="Nr."))):
        assert roles(layout, *own) == [
            "verdict refuses by gpt4", "verdict severity by gpt4", "verdict refuses by llama3"
        ]  # fmt: skip
        assert layout.judges == ("gpt4", "llama3")


def test_a_column_called_judge_holds_verdicts_or_names() -> None:
    verdicts = GPT.set_axis(["Nr.", "judge"], axis=1)
    people = {"annotators": ["Huber", "Nowak"]}
    layout = jb.layout(PEOPLE.merge(verdicts, on="Nr."), columns=people)
    assert (roles(layout, "judge"), layout.judges) == (["verdict label by judge"], ("judge",))
    assert roles(jb.layout(PEOPLE, verdicts, columns=people), "judge") == [
        "verdict label by verdicts"
    ]  # fmt: skip


@pytest.mark.parametrize("form", [
    "{} - seen {} times", '{{"reason": "Serious? {1}", "verdict": "{0}"}}', "The label is: {0}",
    "It is about {1}.\n\n**Verdict:** {0}",
])  # fmt: skip
def test_a_column_of_replies_is_read_for_the_label_of_each(arranged: Any, form: str) -> None:
    replies = [form.format(label, i) for i, label in enumerate(LLAMA["Llama 3 70B"])]
    replies[3:5] = ["I'm sorry, but I cannot tell.", "It depends on the patient."]
    tables = arranged(PEOPLE, LLAMA[["Nr."]].assign(**{"Llama 3 70B reply": replies}))
    assert roles(jb.layout(*tables), "Llama 3 70B reply") == ["reply by Llama 3 70B"]
    study = jb.study(*tables)
    (judge,) = (judge for judge in study.judges if judge.kind == "judge")
    assert statuses(study)[3:5] == ["refused", "unparsed"]
    labels = [judge.verdicts[str(i)].labels.get("label") for i in range(N) if i not in (3, 4)]
    assert labels == [x for i, x in enumerate(LLAMA["Llama 3 70B"]) if i not in (3, 4)]


def test_texts_among_verdicts_are_asked_about(arranged: Any) -> None:
    texts = ["ERROR 429", "Serious!!", *LLAMA["Llama 3 70B"][2:]]
    question = asked(*arranged(PEOPLE, LLAMA.assign(**{"Llama 3 70B": texts})))
    assert "row 2 of Llama 3 70B holds 'ERROR 429'" in question.asks
    assert {"--failed '*'", "--failed 'ERROR 429'", "--spell 'ERROR 429=Serious'"} <= {
        *flags(question)
    }  # fmt: skip


def test_scores_are_no_verdicts(arranged: Any) -> None:
    people = PEOPLE.assign(Huber=[1 + i % 5 for i in range(N)])
    people["Nowak"] = people["Huber"].replace(5, 4)
    scores = PEOPLE[["Nr."]].assign(**{"LLM score": [1 + i % 9 / 2 for i in range(N)]})
    question = asked(*arranged(people, scores))
    assert "row 3 of LLM score holds '1.5'" in question.asks
    assert "--column 'LLM score=ignored'" in flags(question)


def test_verdicts_on_what_nobody_labelled_are_left_out() -> None:
    verdicts = pd.DataFrame({"id": range(N), "judge": "gpt", "harmful": ["yes", "no"] * 20,
                             "rude": "no"}).melt(["id", "judge"], ["harmful", "rude"],
                                                 "metric", "label")  # fmt: skip
    layout = jb.layout(HARM, verdicts)
    assert [len(sheet.table) for sheet in layout.sheets if sheet.table] == [N, N]
    assert "verdicts on rude, which nobody labelled, are left out" in repr(layout)


def test_a_column_of_systems_that_labels_lack_names_the_judge() -> None:
    both = pd.concat([GPT.set_axis(["Nr.", "label"], axis=1).assign(model=m) for m in "ab"])
    assert jb.layout(PEOPLE, both).judges == ("a", "b")


def test_who_labelled_is_no_judge_of_a_table_of_verdicts() -> None:
    with pytest.raises(SetupError, match="Huber labelled, too, in labels: --as-judge Huber"):
        jb.layout(ROWS, ROWS[:N].rename(columns={"rater": "judge"}))


@pytest.mark.parametrize("role", ["label", "verdict"])
def test_a_role_of_a_column_in_both_tables_fits_either(role: str) -> None:
    labels = PEOPLE.melt("Nr.", var_name="rater", value_name="tone")
    layout = jb.layout(labels, GPT.set_axis(["Nr.", "tone"], axis=1), columns={"tone": role})
    assert [str(sheet.columns["tone"]) for sheet in layout.sheets] == [
        "label tone", "verdict tone by verdicts"
    ]  # fmt: skip


def test_what_is_said_of_verdicts_is_taken_or_an_error() -> None:
    verdicts = GPT.set_axis(["Nr.", "verdict"], axis=1)
    layout = jb.layout(PEOPLE, verdicts, columns={"verdict": "verdict LABEL by me"})
    assert roles(layout, "verdict") == ["verdict label by me"]
    message = "verdict: no labels are about this; found harm; allowed: Label"
    with pytest.raises(SetupError, match=message):
        jb.layout(PEOPLE, verdicts, columns={"verdict": "verdict harm"})
    columns = {"failed": "*", "verdict": "verdict", "annotators": ["Huber", "Nowak"]}
    assert statuses(jb.study(PEOPLE, verdicts.assign(verdict="?!"), columns=columns)) == (
        ["failed"] * N
    )
    with pytest.raises(SetupError, match=r"the spelling '\[\]' has no letters"):
        jb.layout(*with_text("[]"), columns={"spell": {"[]": "[]"}})


def test_side_columns_never_become_people_or_judges() -> None:
    """Random labels in a column of any name: it is read as what it is, or asked about."""
    rng = np.random.default_rng(0)
    for name in ("cached", "split", "passed", "checked", "x1"):
        table = PEOPLE.assign(**{name: rng.choice(LABELS, N)}).merge(GPT, on="Nr.")
        asks = question_of(table)
        assert name in asks or (not asks and roles(jb.layout(table), name) == ["ignored"])


# With a rubric -----------------------------------------------------------------------------------

SEVERITY = jb.Rubric.from_labels({"Severity": [*LABELS, "Deadly"]})


def test_a_rubric_says_which_labels_there_are_and_where() -> None:
    labels = pd.DataFrame({"item_id": [*"aabb"], "annotator": ["ann", "ben"] * 2})
    labels["severity"], labels["noise"] = "Serious", ["x", "y"] * 2
    verdicts = pd.DataFrame({"item_id": [*"ab"], "judge": "j", "severity": "Deadly"})
    study = jb.study(labels, verdicts, rubric=SEVERITY)  # labels that are all the same
    (judge,) = (judge for judge in study.judges if judge.kind == "judge")
    assert [v.labels for v in judge.verdicts.values()] == [{"severity": "Deadly"}] * 2
    agreement = jb.Rubric.from_labels({"Agreement": ["yes", "no"]})  # also a word for a share
    table = PEOPLE[["Nr."]].assign(agreement=["yes", "no"] * 20)
    layout = jb.layout(table, table.assign(agreement=["no", "yes"] * 20), rubric=agreement)
    assert [str(s.columns["agreement"]) for s in layout.sheets] == [
        "label agreement", "verdict agreement by verdicts"
    ]  # fmt: skip


def test_labels_that_no_name_says_are_of_the_only_metric(arranged: Any) -> None:
    layout = jb.layout(*arranged(PEOPLE, GPT), rubric=SEVERITY)
    assert roles(layout, "Huber", "Nowak") == [
        "label severity by Huber", "label severity by Nowak"
    ]  # fmt: skip
    assert len(jb.study(layout).answers) == N
    two = jb.Rubric.from_labels({"Severity": [*LABELS], "Other": [*LABELS]})
    with pytest.raises(Unsettled) as error:
        jb.layout(*arranged(PEOPLE, GPT), rubric=two)
    (question, *_) = error.value.questions
    assert question.asks == "which metric of the rubric are the labels in Huber, Nowak about?"
    assert "--column 'Huber=label other by Huber'" in flags(question)[1]


def test_a_number_is_no_other_spelling_of_another() -> None:
    rows = [(i, name, i % 4 + 1) for i in range(N) for name in ("ann", "ben")]
    people = pd.DataFrame(rows, columns=["id", "annotator", "score"])
    judge = pd.DataFrame({"id": range(N), "score": [1, 2, 3, "~4"] * 10})

    question = asked(people, judge)

    spelled = [reading.settings.spell for reading in question.readings]
    assert {"~4": "4"} in spelled
    assert {"~4": "2"} not in spelled


def test_a_record_that_is_read_for_each_annotator_repeats_no_verdict(tmp_path: Path) -> None:
    records = [
        {
            "id": f"q{i}",
            "annotations": [
                {"annotator": "ann", "harm": "yes" if i % 2 else "no"},
                {"annotator": "ben", "harm": "yes" if i % 4 else "no"},
            ],
            "gpt-4": {"harm": "no" if i % 3 else "yes"},
        }
        for i in range(N)
    ]
    (tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, records)))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        study = jb.study(tmp_path / "log.jsonl")

    assert len(study.real_judges[0].verdicts) == N
