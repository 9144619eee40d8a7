"""What is said of tables: the same in Python, by options, and as the answer to a question."""

import shlex
from typing import Any

import pandas as pd
import pytest

import judgebench as jb
from judgebench.cli.options import Named
from judgebench.data.settings import TableSettings, Unsettled, settings_of
from judgebench.data.vocabulary import Column
from judgebench.errors import SetupError

LABEL = Column("label")
SETTINGS = {
    "role": ({"kim": "label harm by Kim"}, {"columns": {"kim": Column("label", "harm", "Kim")}}),
    "model": ({"r": "reply by gpt-4"}, {"columns": {"r": Column("reply", "", "gpt-4")}}),
    "by": ({"x": "label by and by by Jo"}, {"columns": {"x": Column("label", "by and by", "Jo")}}),
    "people": ({"annotators": ["kim", "lee"]}, {"columns": {"kim": LABEL, "lee": LABEL}}),
    "item": ({"item": ["id", "bot"]}, {"columns": dict.fromkeys(["id", "bot"], Column("item"))}),
    "question": ({"question": "prompt"}, {"columns": {"prompt": Column("group")}}),
    "by itself": ({"question": "question"}, {"columns": {"question": Column("group")}}),
    "no item": ({"item": "ignored"}, {"columns": {"item": Column("ignored")}}),
    "kept": ({"type": "kept"}, {"columns": {"type": Column("kept")}}),
    "order": ({"order": ["no", "yes"]}, {"order": ("no < yes",)}),
    "orders": ({"order": {"tone": ["mild", "rude"], "harm": "none"}},
               {"order": ("tone: mild < rude", "harm: none")}),
    "spell": ({"spell": {1: "yes", "J": "yes"}}, {"spell": {"1": "yes", "J": "yes"}}),
    "texts": ({"blank": "-", "failed": ["ERROR", "*"]},
              {"blank": ("-",), "failed": ("ERROR", "*")}),
    "header": ({"header": 3}, {"header": {"": (3,)}}),
    "headers": ({"header": "a.csv:1,2"}, {"header": {"a.csv": (1, 2)}}),
    "skip": ({"skip": {"a.csv": [3, 4]}}, {"skip": {"a.csv": (3, 4)}}),
    "rest": ({"several": ";", "repeats": "last", "only_common": True, "fill_down": "id"},
             {"several": ";", "repeats": "last", "only_common": True, "fill_down": ("id",)}),
}  # fmt: skip


@pytest.mark.parametrize("case", SETTINGS)
def test_a_mapping_is_the_settings_that_it_says(case: str) -> None:
    mapping, parts = SETTINGS[case]
    settings = settings_of(mapping)
    assert settings == TableSettings(**parts)
    assert settings_of(settings.as_columns()) == settings


@pytest.mark.parametrize("case", SETTINGS)
def test_its_options_say_the_same(case: str) -> None:
    settings = settings_of(SETTINGS[case][0])
    options: dict[str, Any] = {}
    words = shlex.split(settings.flags())
    while words:
        name = words.pop(0).removeprefix("--").replace("-", "_")
        if name == "question":
            options[name] = words.pop(0)
        else:
            options.setdefault(name, []).append(words.pop(0))
    assert Named(**options).settings == settings


def test_an_option_of_a_column_may_hold_signs_of_equality() -> None:
    settings = Named(column=["a=b=label", "p=probability harm=yes"], spell=["a=b=yes"]).settings
    assert settings.columns == {"a=b": LABEL, "p": Column("probability", "harm=yes")}
    assert settings.spell == {"a=b": "yes"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("headr=2", "--set: is no such setting; found headr=2; allowed: header, skip, fill_down"),
        ("header=two", "--set: is no number of a row, as a spreadsheet shows it"),
    ],
)
def test_a_wrong_setting_names_its_option(text: str, message: str) -> None:
    with pytest.raises(SetupError) as error:
        _ = Named(set=[text]).settings

    assert message in str(error.value)


def test_every_entry_that_says_nothing_is_an_error() -> None:
    entries = {"ordr": "a < b", "kim": "lable", "repeats": "any", "header": "x:y", "kept": 3}
    with pytest.raises(SetupError) as error:
        settings_of(entries)
    assert [problem.field for problem in error.value.problems] == [
        f"columns.{key}" for key in entries
    ]
    assert "did you mean 'order'?" in str(error.value.problems[0])
    assert "kept, ignored" in str(error.value.problems[1])


def test_later_settings_win_and_lists_grow() -> None:
    first = settings_of({"kim": "label", "failed": "a", "repeats": "last", "spell": {"1": "yes"}})
    later = settings_of({"kim": "ignored", "failed": ["b", "a"], "spell": {"2": "no"}})
    assert first.with_more(later) == settings_of({
        "kim": "ignored", "failed": ["a", "b"], "repeats": "last", "spell": {"1": "yes", "2": "no"},
    })  # fmt: skip


LABELS = pd.DataFrame(
    {"Item": [*"abcd"], "kim": ["yes", "no"] * 2, "lee": ["yes", "no", "no", "no"]}
)


def test_columns_are_named_in_any_case_and_must_be_there() -> None:
    layout = jb.layout(LABELS, columns={"KIM": "label", "lee": "ignored"})
    assert str(layout.sheets[0].columns["kim"]) == "label label by kim"
    with pytest.raises(SetupError) as error:
        jb.layout(LABELS, columns={"kym": "label", "annotators": ["ann"]})
    problems = [(p.found, p.allowed) for p in error.value.problems]
    assert problems == [("kym", "Item, kim, lee"), ("ann", "Item, kim, lee")]
    assert "did you mean 'kim'?" in error.value.problems[0].message


def test_a_question_lists_readings_and_each_is_an_answer() -> None:
    with pytest.raises(Unsettled) as error:
        jb.layout(LABELS)
    (question,) = error.value.questions
    assert question.table == "labels"
    flags = [reading.settings.flags() for reading in question.readings]
    assert flags == ["--column kim=label --column lee=label",
                     "--column 'kim=label kim' --column 'lee=label lee'"]  # fmt: skip
    assert all(flag in str(question) for flag in flags)
    assert "columns={'kim': 'label', 'lee': 'label'}    people" in str(error.value)
    roles = [jb.layout(LABELS, columns=one.columns).sheets[0].columns for one in question.readings]
    assert [[str(columns[name]) for name in ("kim", "lee")] for columns in roles] == [
        ["label label by kim", "label label by lee"], ["label kim", "label lee"]
    ]  # fmt: skip
