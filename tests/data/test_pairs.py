"""Pairs of answers, of tables, and the preferences that follow from labels of each response."""

from collections import Counter
from collections.abc import Iterable
from itertools import combinations
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import judgebench as jb
from judgebench.data.conversation import WantedPairs, chosen, oriented
from judgebench.data.load import load_data
from judgebench.errors import SetupError
from judgebench.records import Answer, Dataset
from judgebench.rubric import Rubric, load_rubric
from judgebench.runs.load import load_bench
from tests.data.conftest import Write

RUBRIC = """
name: pairs
version: "1"
instructions: Rate them.
metrics:
  - {id: quality, title: Quality, question: "How good?", kind: ordinal, labels: [good, fair, bad]}
  - {id: style, title: Style, question: "How nice?", kind: ordinal, labels: [good, fair, bad]}
  - {id: better, title: Better, question: "Which?", kind: preference}
  - {id: margin, title: Margin, question: "By how much?", kind: ordinal, of: pair,
     labels: [none, slight, clear]}
composite: {overall: [quality, style]}
"""
ANSWERS = "item_id,question,system,text\n" + "".join(
    f"{q}-{s},question {q},{s},{s} answers {q} at some length\n" for q in "kl" for s in "abc"
)


@pytest.fixture
def files(write: Write) -> list[Path]:
    write("rubric.yaml", RUBRIC)
    labels = "item_id,annotator,quality,style\n"
    labels += "k-a,Ann,good,bad\nk-b,Ann,bad,bad\nk-c,Ann,good,\n"
    labels += "k-a,Bob,fair,good\nk-b,Bob,good,fair\nl-a,Bob,good,good\n"
    return [write("answers.csv", ANSWERS), write("labels.csv", labels)]


@pytest.fixture
def both(write: Write) -> Rubric:
    return load_rubric(write("rubric.yaml", RUBRIC))


def pair_rows(dataset: Dataset) -> list[Answer]:
    return [answer for answer in dataset.answers if answer.kind == "pair"]


def systems(pair: Answer) -> frozenset[str]:
    return frozenset(part.name for part in pair.responses)


def preferred(dataset: Dataset, metric: str = "better") -> dict[tuple[str, str], set[str]]:
    """Whom each annotator prefers of which two: nobody of a tie."""
    rows = {row.item_id: row for row in pair_rows(dataset)}
    preferences: dict[tuple[str, str], set[str]] = {}
    for label in dataset.labels:
        if label.metric == metric and label.label is not None:
            of = rows[label.item_id].responses
            place = {"first": [0], "second": [1], "tie": []}[label.label]
            key = (label.annotator, " ".join(sorted(p.name for p in of)))
            preferences[key] = {of[i].name for i in place}
    return preferences


def problems(source: Iterable[Path], rubric: Rubric, pairs: WantedPairs | None = None) -> list[str]:
    with pytest.raises(SetupError) as error:
        load_data(list(source), rubric, pairs=pairs)
    return [str(problem) for problem in error.value.problems]


def test_the_order_of_two_names_says_nothing_of_them() -> None:
    names = [f"system-{i}" for i in range(40)]
    pairs = [oriented(a, b) for a in names for b in names if a < b]
    assert all(oriented(b, a) == (a, b) for a, b in pairs)
    low_first = sum(a < b for a, b in pairs) / len(pairs)
    assert 0.4 < low_first < 0.6


# Of answers ----------------------------------------------------------------------------------


def test_all_answers_to_a_question_are_compared(files: list[Path], both: Rubric) -> None:
    dataset = load_data(files, both, pairs=WantedPairs())
    rows = pair_rows(dataset)
    assert Counter(row.group for row in rows) == {"question k": 3, "question l": 3}
    assert {systems(row) for row in rows} == {frozenset(two) for two in combinations("abc", 2)}
    assert [a.item_id for a in dataset.answers[:6]] == [f"{q}-{s}" for q in "kl" for s in "abc"]
    for row in rows:
        first, second = row.responses
        assert row.item_id == f"{first.item_id} vs {second.item_id}"
        assert oriented(first.item_id, second.item_id) == (first.item_id, second.item_id)
        assert row.text == f"first: {first.text}\n\nsecond: {second.text}"
        assert row.question == f"question {row.item_id[0]}"


def test_without_a_metric_of_answers_there_are_pairs_alone(files: list[Path], both: Rubric) -> None:
    dataset = load_data(files, both, metrics=["better"], pairs=WantedPairs(prefer="quality"))
    assert {answer.kind for answer in dataset.answers} == {"pair"}
    assert {label.metric for label in dataset.labels} == {"better"}


def test_a_rubric_of_pairs_needs_some(files: list[Path], both: Rubric) -> None:
    (problem,) = problems(files, both)
    assert (
        "the rubric has metrics of pairs, and the data hold none; allowed: `pairs: all`" in problem
    )


def test_equal_texts_are_compared_and_one_answer_is_not(write: Write, both: Rubric) -> None:
    path = write("answers.csv", "item_id,question,text\nx,q,same text\ny,q,same text\nz,r,alone\n")
    (pair,) = pair_rows(load_data([path], both, pairs=WantedPairs()))
    assert {part.item_id for part in pair.responses} == {"x", "y"}
    alone = write("alone.csv", "item_id,question,text\nx,q,a text\nz,r,alone\n")
    (problem,) = problems([alone], both, WantedPairs())
    assert "no question has two answers, so there are no pairs" in problem


@given(
    sizes=st.lists(st.integers(0, 7), min_size=1, max_size=6).filter(lambda s: max(s) > 1),
    wanted=st.integers(1, 60),
    seed=st.integers(0, 9),
)
def test_a_sample_is_spread_over_the_questions(sizes: list[int], wanted: int, seed: int) -> None:
    ends = [sum(sizes[: i + 1]) for i in range(len(sizes))]
    questions = [list(range(end - n, end)) for n, end in zip(sizes, ends, strict=True)]
    every = list(chosen(questions, WantedPairs()))
    assert sorted(every) == sorted(p for rows in questions for p in combinations(rows, 2))
    sample = list(chosen(questions, WantedPairs(wanted, seed=seed)))
    assert sample == list(chosen(questions, WantedPairs(wanted, seed=seed)))
    assert len(sample) == len(set(sample)) == min(wanted, len(every))
    assert set(sample) <= set(every)
    of = {row: q for q, rows in enumerate(questions) for row in rows}
    taken, most = Counter(of[a] for a, _ in sample), Counter(of[a] for a, _ in every)
    unfilled = [taken[q] for q in most if taken[q] < most[q]]
    assert not unfilled or max(taken.values()) - min(unfilled) <= 1


def test_too_many_pairs_are_refused() -> None:
    with pytest.raises(SetupError, match=r"found 1,124,250; allowed: a number, as in pairs: 1000"):
        list(chosen([range(1500)], WantedPairs()))
    assert len(list(chosen([range(1500)], WantedPairs(10)))) == 10


def test_a_file_names_pairs(files: list[Path], both: Rubric, write: Write) -> None:
    path = write("pairs.csv", "one,other\nk-a,k-b\nl-c,l-a\n")
    rows = pair_rows(load_data(files, both, pairs=WantedPairs(path)))
    assert [systems(row) for row in rows] == [{"a", "b"}, {"a", "c"}]


def test_every_fault_of_a_file_of_pairs_is_reported(
    files: list[Path], both: Rubric, write: Write
) -> None:
    path = write("pairs.csv", "one,other\nk-a,k-b\nk-a,k-z\nk-a,l-a\nk-b,k-b\n,x\n")
    messages = [text.removeprefix(f"{path}:") for text in problems(files, both, WantedPairs(path))]
    assert messages == [
        "3: other: no answer has this id; found 'k-z'",
        "4: other: answers another question; found 'l-a'",
        "5: other: is the same answer; found 'k-b'",
        "6: one: no answer has this id; found ''",
        "6: other: no answer has this id; found 'x'",
    ]
    wide = write("wide.csv", "one,other,more\na,b,c\n")
    (problem,) = problems(files, both, WantedPairs(wide))
    assert "a file of pairs has two columns, of item ids; found 'one, other, more'" in problem


# Preferences from labels of each response ----------------------------------------------------


def test_preferences_follow_from_labels_of_both(files: list[Path], both: Rubric) -> None:
    dataset = load_data(files, both, pairs=WantedPairs(prefer="quality"))
    assert preferred(dataset) == {
        ("Ann", "a b"): {"a"},
        ("Ann", "a c"): set(),
        ("Ann", "b c"): {"c"},
        ("Bob", "a b"): {"b"},
    }
    note = "the preferences of Ann, Bob on better are derived: of two responses they prefer the one"
    assert note in next(w for w in dataset.warnings if w.kind == "derived_preference").message


def test_a_composite_called_like_a_metric_is_preferred_by(files: list[Path], write: Write) -> None:
    overall = '  - {id: overall, title: All in all, question: "?", kind: ordinal, labels: [a, b]}\n'
    rubric = load_rubric(write("named.yaml", RUBRIC.replace("composite:", f"{overall}composite:")))
    for name in ("overall", "All in all"):
        dataset = load_data(files, rubric, pairs=WantedPairs(prefer=name))
        assert preferred(dataset) == {("Ann", "a b"): {"a"}, ("Bob", "a b"): set()}


def test_places_in_a_list_have_no_preference(write: Write, both: Rubric) -> None:
    answers = write("answers.csv", ANSWERS)
    write("labels.csv", "item_id,quality\nk-a,good|bad\nk-b,bad|good\n")
    columns = "{item_id: item, quality: labels quality}"
    data = write("layout.yaml", f"tables: [{{file: labels.csv, columns: {columns}}}]")
    (problem,) = problems([answers, data], both, WantedPairs(prefer="quality", file="bench.yaml"))
    assert problem == (
        "bench.yaml: pairs.prefer: nobody labelled both responses of a pair, so that no preference "
        "follows"
    )


def test_prefer_names_a_metric_of_answers(files: list[Path], both: Rubric) -> None:
    (problem,) = problems(files, both, WantedPairs(prefer="margin"))
    assert "is no ordinal metric of answers and no composite of the rubric; found margin" in problem
    assert problem.endswith("allowed: quality, style, overall")
    (problem,) = problems(files, both.only(["quality", "margin"]), WantedPairs(prefer="quality"))
    assert "needs a rubric with one preference; this one has 0" in problem


# In tables -----------------------------------------------------------------------------------

VOTES = """q,model_a,model_b,who,turn,winner,by
k,a,b,Ann,1,model_a,clear
k,b,a,Bob,1,model_b,slight
k,c,a,Ann,1,tie,none
k,c,b,Bob,1,c,clear
k,a,b,Bob,2,model_b,clear
"""
LAYOUT = """
tables:
- file: votes.csv
  only: {turn: ["1"]}
  columns: {q: item, model_a: first, model_b: second, who: annotator, turn: ignored,
            winner: label better, by: label margin}
"""


def test_votes_of_a_table_name_responses_in_any_order(write: Write, both: Rubric) -> None:
    write("votes.csv", VOTES)
    rubric = both.only(["better", "margin"])
    dataset = load_data(write("layout.yaml", LAYOUT), rubric)
    assert preferred(dataset) == {
        ("Ann", "a b"): {"a"},
        ("Bob", "a b"): {"a"},
        ("Ann", "a c"): set(),
        ("Bob", "b c"): {"c"},
    }
    assert {row.group for row in dataset.answers} == {"k"}
    assert all(not row.text and row.item_id.startswith("k: ") for row in dataset.answers)
    assert dataset.textless  # no model can compare them
    assert sorted(x.label or "" for x in dataset.labels if x.metric == "margin") == [
        "clear", "clear", "none", "slight",
    ]  # fmt: skip


def test_votes_find_the_texts_of_answers(write: Write, both: Rubric) -> None:
    rows = "".join(f"k{s},k,How is it?,{s},text of {s}\n" for s in "abc")
    answers = write("answers.csv", "item_id,group,question,system,text\n" + rows)
    write("votes.csv", VOTES)
    data = write("layout.yaml", LAYOUT)
    rubric = both.only(["better", "margin"])
    dataset = load_data([answers, data], rubric)
    assert not dataset.textless
    assert len(dataset.answers) == 3
    for row in dataset.answers:
        assert [(p.text, p.item_id) for p in row.responses] == [
            (f"text of {p.name}", f"k{p.name}") for p in row.responses
        ]
    # Pairs that votes name are not made twice.
    assert len(load_data([answers, data], rubric, pairs=WantedPairs()).answers) == 3
    write("votes.csv", VOTES + "k,a,d,Ann,1,tie,none\n")
    assert all(
        "no two answers of this group, the question, have these names as systems or ids; "
        "found 'k: " in text
        for text in problems([answers, data], rubric)
    )


def test_faults_of_votes_name_file_and_row(write: Write, both: Rubric) -> None:
    votes = write(
        "votes.csv", VOTES + "k,a,a,Ann,1,tie,none\nk,a,,Ann,1,tie,none\nk,a,c,Bob,1,b,\n"
    )
    messages = problems([write("layout.yaml", LAYOUT)], both.only(["better", "margin"]))
    assert messages == [
        f"{votes}:7: model_b: a response is compared with itself; found 'a'",
        f"{votes}:8: model_b: names no response; found ''",
        f"{votes}:9: winner: is not a label of better; found 'b'; allowed: first, second, tie; "
        "`spell` or `blank` settles another text",
    ]


def test_metrics_and_rows_must_be_of_one_kind(
    write: Write, both: Rubric, files: list[Path]
) -> None:
    wrong = write("wrong.csv", "item_id,annotator,better\nk-a,Ann,first\n")
    (problem,) = problems([*files, wrong], both, WantedPairs())
    assert problem.startswith(
        f"{wrong}:2: item_id: the metric better is about pairs, and this is an answer; found 'k-a'"
    )


def test_a_wide_table_may_hold_answers_and_pairs(
    files: list[Path], both: Rubric, write: Write
) -> None:
    pairs = pair_rows(load_data(files, both, pairs=WantedPairs()))
    rows = "".join(f"{pair.item_id},Cid,,first\n" for pair in pairs)
    wide = write("wide.csv", "item_id,annotator,quality,better\nk-a,Cid,good,\n" + rows)
    dataset = load_data([*files, wide], both, pairs=WantedPairs())
    labels = [(x.metric, x.label) for x in dataset.labels if x.annotator == "Cid"]
    assert labels == [("quality", "good"), *[("better", "first")] * len(pairs)]


def test_two_pairs_of_one_id_are_an_error(write: Write, both: Rubric) -> None:
    ends = [("x", "y vs z"), ("y", "z vs x"), ("z", "x vs y"), ("x vs y", "z"), ("y vs z", "x")]
    rows = "".join(f"k,{a},{b},Ann,1,tie,none\n" for a, b in [*ends, ("z vs x", "y")])
    votes = write("votes.csv", VOTES.splitlines()[0] + "\n" + rows)
    messages = problems([write("layout.yaml", LAYOUT)], both.only(["better", "margin"]))
    assert any(
        f"{votes}:" in text and "names others that have this item id" in text for text in messages
    )


def test_frames_of_votes_and_verdicts_make_a_study() -> None:
    votes = pd.DataFrame(
        [
            ("k", "a", "b", "Ann", "model_a"),
            ("l", "b", "a", "Ann", "b"),
            ("m", "a", "b", "Ann", "tie"),
        ],
        columns=["item_id", "model_a", "model_b", "annotator", "winner"],
    )
    verdicts = votes.assign(
        model_a=votes.model_b, model_b=votes.model_a,
        winner=["second", "second", "tie"], judge="gpt-4",
        probability_preference_first=[0.1, 0.2, 0.2], probability_preference_second=[0.8, 0.7, 0.2],
    ).drop(columns="annotator")  # fmt: skip
    study = jb.study(votes, verdicts, rubric="preference")
    (judge,) = (judge for judge in study.judges if judge.kind == "judge")
    metric = study.rubric.metrics[0]
    assert (study.judged(judge, metric) == study.humans["preference"].truth).all()
    for verdict in list(judge.verdicts.values())[:2]:
        shares = (verdict.probabilities or {})["preference"]
        assert max(shares, key=shares.__getitem__) == verdict.labels["preference"]


# In a bench.yaml -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "n"), [("all", 6), ("4", 4), ("pairs.csv", 1), ("{from: all, prefer: overall}", 6)]
)
def test_pairs_of_a_bench(files: list[Path], write: Write, key: str, n: int) -> None:
    write("pairs.csv", "one,other\nk-a,k-b\n")
    path = write(
        "bench.yaml",
        f"{{name: b, rubric: rubric.yaml, data: [answers.csv, labels.csv], pairs: {key}}}",
    )
    bench = load_bench(path)
    assert len(pair_rows(bench.dataset)) == n
    assert f"a benchmark of 6 answers and {n} pair" in bench.in_words
    few = load_bench(path, limit=1)
    assert [answer.kind for answer in few.answers] == ["answer", "pair"]


@pytest.mark.parametrize("named", ["system", "item_id"])
def test_verdicts_of_a_table_are_on_the_pairs_of_the_answers(
    files: list[Path], write: Write, named: str
) -> None:
    names = {s: s if named == "system" else f"k-{s}" for s in "abc"}
    rows = "".join(
        f"question k,{names[a]},{names[b]},{names[min(a, b)]},0.{7 if a < b else 2},"
        f"0.{2 if a < b else 7}\n"
        for a, b in ("ab", "ca", "bc")
    )
    head = "item_id,model_a,model_b,better,probability_better_first,probability_better_second\n"
    write("gpt4.csv", head + rows)
    path = write(
        "bench.yaml",
        "name: b\nrubric: rubric.yaml\nmetrics: [quality, better]\n"
        "data: [answers.csv, labels.csv]\npairs: {from: all, prefer: quality}\n"
        "judges: [{name: gpt-4, verdicts: gpt4.csv}]\n",
    )
    study = jb.run(path, files[0].parent / "run")
    (judge,) = (judge for judge in study.judges if judge.name == "gpt-4")
    better = set()
    for answer in study.answers:
        verdict = judge.verdicts.get(answer.item_id)
        if answer.kind == "pair" and verdict and verdict.labels:
            places = ["first", "second"]
            better.add(answer.responses[places.index(verdict.labels["better"])].item_id)
            shares = (verdict.probabilities or {})["better"]
            assert max(shares, key=shares.__getitem__) == verdict.labels["better"]
    assert better == {"k-a", "k-b"}
    assert study.judged(judge, study.rubric.metrics[1]).tolist().count(-1) == 12 - 3


SOME = "needs `all`, a number of pairs, or a file that names them"


@pytest.mark.parametrize(
    ("key", "field", "message"),
    [
        *((key, "pairs", SOME) for key in ("0", "true", "-3", "[a]", "2.5", "{from: [1]}")),
        ("{from: 0}", "pairs", SOME),
        ("{from: all, prefer: nope}", "pairs.prefer", "is no ordinal metric of answers"),
        ("{from: all, metric: quality}", "pairs.metric", "is not a known key"),
    ],
)
def test_faults_of_pairs_name_their_key(
    files: list[Path], write: Write, key: str, field: str, message: str
) -> None:
    path = write("bench.yaml", f"{{name: b, rubric: rubric.yaml, data: answers.csv, pairs: {key}}}")
    with pytest.raises(SetupError) as error:
        load_bench(path)
    (problem,) = error.value.problems  # and not that there are no pairs
    assert (problem.file, problem.field) == (str(path), field)
    assert message in problem.message


def test_the_documented_rubric_has_a_composite(write: Write) -> None:
    docs = (Path(__file__).parents[2] / "docs" / "bench.md").read_text(encoding="utf-8")
    (example,) = (text for text in docs.split("```") if "composite: {" in text)
    rubric = load_rubric(write("rubric.yaml", example.removeprefix("yaml\n")))
    assert rubric.composite == {"overall": ("relevancy", "fluency")}
    assert rubric.kinds == {"answer", "pair"}
