"""Answers that repeat another under a different id count as one group, and it is said."""

import csv
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

import judgebench as jb
from judgebench.judges.control import Fit
from judgebench.records import Answer
from judgebench.studies.answers import indexed, likeness
from judgebench.studies.study import Study

TONE = jb.Rubric.from_labels({"tone": ["Polite", "Curt", "Rude"]})
QUESTIONS, TIMES = 40, 10
NOTE = (
    "360 answers repeat the question and text of another under a different id; identical answers "
    "count as one group"
)
EXAMPLES = " ('i40' repeats 'i0', 'i41' repeats 'i1', 'i42' repeats 'i2' and 357 more)"


def repeated() -> list[dict[str, str]]:
    """40 questions, each repeated ten times under other ids and groups."""
    spelt = ["Is tea {} warm?", "is  tea {} WARM? ", "Is tea\u00a0{} warm?"]
    return [
        {
            "item_id": f"i{i}",
            "question": spelt[i // QUESTIONS % 3].format(i % QUESTIONS),
            "text": f"It's the tea of pot {i % QUESTIONS}.".replace("'", "'’"[i // QUESTIONS % 2]),
            "group": f"g{i}",
        }
        for i in range(QUESTIONS * TIMES)
    ]


def labels() -> list[dict[str, str]]:
    rng = np.random.default_rng(0)
    return [
        {"item_id": row["item_id"], "annotator": who, "tone": str(rng.choice(["Polite", "Rude"]))}
        for row in repeated()
        for who in ("ann", "bob")
    ]


def clusters(study: Study) -> set[frozenset[int]]:
    codes = study.clusters.codes
    return {frozenset(np.flatnonzero(codes == code).tolist()) for code in range(study.clusters.n)}


BY_POT = {frozenset(range(pot, QUESTIONS * TIMES, QUESTIONS)) for pot in range(QUESTIONS)}


def of(question: str, text: str) -> int:
    return likeness(Answer("i", text, question))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("What helps?", "Drink water."), ("what  HELPS?\n", "drink\twater.")),
        (("", "Caf\u00e9 after lunch helps."), ("", "Cafe\u0301 after lunch helps.")),
        (("Why?", "It\u2019s \u201cfine\u201d."), ("Why?", "It's \"fine\".")),
        (("Why?", "yes"), ("Why?", "Yes.")),
        (("Straße?", "In der Straße."), ("STRASSE?", "in der strasse.")),
    ],
)  # fmt: skip
def test_spelling_does_not_hide_a_repeat(one: tuple[str, str], other: tuple[str, str]) -> None:
    assert of(*one) == of(*other) != 0


def test_what_differs_or_says_too_little_repeats_nothing() -> None:
    said = [("Why?", "1.5 mg"), ("Why?", "15 mg"), ("How?", "1.5 mg"), ("", "Why? 1.5 mg, I think")]
    assert len({of(*pair) for pair in said}) == 4
    assert of("", "yes") == of("Why?", "") == of("", " \u200b") == 0


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 8)), min_size=1, max_size=30))
def test_clusters_are_the_connected_components(drawn: list[tuple[int, int]]) -> None:
    """Against scipy: answers are joined by their group and by their question and text."""
    answers = [Answer(f"i{n}", f"t{t}", "q", group=f"g{g}") for n, (g, t) in enumerate(drawn)]
    same = [
        (i, j)
        for i, one in enumerate(drawn)
        for j, other in enumerate(drawn)
        if one[0] == other[0] or one[1] == other[1]
    ]
    rows, columns = np.array(same).T
    n = len(drawn)
    graph = coo_matrix((np.ones(len(rows)), (rows, columns)), (n, n))
    parts, expected = connected_components(graph, directed=False)
    found = indexed(answers).clusters
    assert found.n == parts
    assert len(set(zip(found.codes.tolist(), expected.tolist(), strict=True))) == parts


def test_a_study_of_tables_counts_repeats_as_one_group() -> None:
    people = pd.DataFrame(labels())
    tables = people, people.rename(columns={"annotator": "judge"}).replace({"ann": "m", "bob": "k"})
    with pytest.warns(UserWarning, match="repeat") as warned:
        study = jb.study(*tables, pd.DataFrame(repeated()), rubric=TONE)
    assert clusters(study) == BY_POT
    assert study.humans["tone"].clusters.n == QUESTIONS
    assert [note for note in study.notes if "repeat" in note] == [f"{NOTE}."]
    assert f"{NOTE}{EXAMPLES}" in str(warned[0].message)


def test_labels_without_texts_do_not_become_one_group() -> None:
    frame = pd.DataFrame(labels()).assign(question="Is it polite?")
    frame["group"] = frame.item_id
    study = jb.study(frame, rubric=TONE)
    assert study.clusters.n == QUESTIONS * TIMES
    assert not any("repeat" in note for note in study.notes)
    assert jb.study(frame.drop(columns=["question", "group"]), rubric=TONE).clusters.n == 400


def test_a_short_text_without_a_question_joins_nothing_and_a_long_one_does() -> None:
    short = [Answer(f"i{n}", "yes") for n in range(3)]
    long = [Answer(f"j{n}", "The tea in this pot is warm.") for n in range(2)]
    assert indexed([*short, *long]).clusters.codes.tolist() == [0, 1, 2, 3, 3]
    # A stock reply does not join groups, a whole text does.
    stock = [Answer(f"i{n}", "Sorry, I don't know that one.", group=f"g{n}") for n in range(3)]
    whole = [Answer(f"j{n}", "The tea in this pot is warm. " * 10, group=f"h{n}") for n in range(2)]
    assert indexed([*stock, *whole]).clusters.codes.tolist() == [0, 1, 2, 3, 3]


def test_no_control_learns_from_a_repeat_of_what_it_judges() -> None:
    answers = [Answer(**row) for row in repeated()]
    halves = Fit(TONE, answers, []).half.tolist()
    assert halves == halves[:QUESTIONS] * TIMES
    assert sum(halves[:QUESTIONS]) == QUESTIONS / 2
    assert Fit(TONE, answers[::-1], []).half.tolist() == halves[::-1]


# --- from the command line -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("repeats")
    for name, rows in (("answers", repeated()), ("labels", labels())):
        with (folder / f"{name}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)
    (folder / "tone.yaml").write_text(json.dumps(TONE.model_dump(mode="json")))
    (folder / "replies.jsonl").write_text(json.dumps({"text": {"tone": "Polite"}}) + "\n")
    (folder / "bench.yaml").write_text(
        "name: repeats\nrubric: tone.yaml\ndata: [answers.csv, labels.csv]\n"
        f"judges: [{{name: judge, backend: 'scripted:{folder}/replies.jsonl'}}]\n"
        "controls: false\n"
    )
    return folder


def test_check_reports_repeats_as_a_warning(call, bench: Path) -> None:  # type: ignore[no-untyped-def]
    files = (bench / "answers.csv", bench / "labels.csv")
    code, out, _ = call("check", *files, "--rubric", bench / "tone.yaml")
    assert code == 0
    assert f"warning: {NOTE}{EXAMPLES}" in out
    code, out, _ = call("check", bench / "bench.yaml")
    assert code == 0
    assert f"warning: {NOTE}{EXAMPLES}" in out


def test_a_run_counts_repeats_as_one_group(call, bench: Path) -> None:  # type: ignore[no-untyped-def]
    code, out, _ = call("run", bench / "bench.yaml", "--run", bench / "run")
    assert code == 0
    assert f"warning: {NOTE}{EXAMPLES}" in out
    study = jb.open_run(bench / "run")
    assert clusters(study) == BY_POT
    assert study.notes == (f"{NOTE}.",)
    assert f"{NOTE}." in (bench / "run" / "report" / "tables.md").read_text()


def test_of_a_part_only_its_own_repeats_are_counted(call, bench: Path) -> None:  # type: ignore[no-untyped-def]
    code, *_ = call("run", bench / "bench.yaml", "--run", bench / "part", "--limit", 41)
    assert code == 0
    assert jb.open_run(bench / "part").notes == (
        "1 answer repeats the question and text of another under a different id; identical "
        "answers count as one group.",
    )
