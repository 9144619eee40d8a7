"""Several answers of a model to every question: `judgebench score answers`."""

import json
from pathlib import Path

import pandas as pd
import pytest

import judgebench as jb
from judgebench.data.tables import read_table
from judgebench.errors import SetupError
from judgebench.files import read_lines
from judgebench.judges.config import Decoding
from judgebench.models.contract import Reply, Request
from judgebench.models.scripted import Scripted
from judgebench.runs.judging import Interrupted, Stop
from judgebench.scorers.table import questions_of, replies_path, write_answers
from judgebench.writer import TextWriter, WritingTerms

DRAWN = Decoding(temperature=1.0, top_p=0.9)
QUESTIONS = pd.DataFrame(
    {
        "id": ["a", "b", "c"], "prompt": ["Why?", 'Who, "then"?', "Why?"],
        "gold": ["Because.", "She", "Because."], "answer": ["old", "old", "old"],
    }
)  # fmt: skip


def questions() -> list[dict[str, str]]:
    return questions_of(read_table(QUESTIONS))


def write(to: Path, reply, repeats: int = 3, decoding: Decoding = DRAWN, **terms) -> list[str]:  # type: ignore[no-untyped-def]
    writer = TextWriter(Scripted(reply), decoding, replies_path(to), WritingTerms(**terms))
    return write_answers(questions(), repeats, "m", to, writer)


def seeded(request: Request) -> str:
    return f"{request.messages[-1].content} {request.seed}\nyes"


def test_every_question_is_answered_by_different_seeds_and_keeps_its_columns(tmp_path) -> None:
    asked: list[Request] = []

    def reply(request: Request) -> str:
        asked.append(request)
        return seeded(request)

    to = tmp_path / "answers.csv"
    assert write(to, reply) == ["6 of 6 answers"]
    assert {request.seed for request in asked} == {1, 2, 3}
    assert {(r.temperature, r.top_p, r.schema) for r in asked} == {(1.0, 0.9, None)}
    found = pd.read_csv(to)
    assert list(found["item_id"]) == [f"{q}~m~{n}" for q in "ab" for n in (1, 2, 3)]
    assert list(found["group"].unique()) == ["a", "b"]  # a question that is there twice is one
    assert list(found["gold"].unique()) == ["Because.", "She"]
    assert found["text"][4] == 'Who, "then"? 2\nyes'
    assert "answer" not in found.columns


def test_what_is_there_is_not_asked_again_and_more_repeats_add_to_it(tmp_path) -> None:
    to = tmp_path / "answers.csv"
    write(to, seeded, repeats=2)
    first = pd.read_csv(to)
    assert write(to, lambda request: pytest.fail("asked again"), repeats=2) == ["4 of 4 answers"]
    again: list[int | None] = []
    write(to, lambda request: again.append(request.seed) or "new", repeats=3)
    assert again == [3, 3]
    found = pd.read_csv(to)
    kept = found[found["repeat"] < 3].reset_index(drop=True)
    pd.testing.assert_frame_equal(kept, first)
    hotter = DRAWN.model_copy(update={"temperature": 1.5})
    write(to, lambda request: "hot", decoding=hotter)
    assert set(pd.read_csv(to)["text"]) == {"hot"}


def test_how_answers_ended_is_told_and_a_failed_one_is_asked_for_again(tmp_path) -> None:
    def reply(request: Request) -> Reply | str:
        match request.seed:
            case 1:
                return Reply(request.key, "cut o", finish="length")
            case 2:
                return Reply(request.key, "", finish="failed", error="no reply")
        return Reply(request.key, "<think>So", finish="length")

    to = tmp_path / "answers.csv"
    assert write(to, reply) == [
        "4 of 6 answers: rerun to ask for the others", "2 ended as 'length'",
        "2 ended as 'unclear'",
    ]  # fmt: skip
    assert list(pd.read_csv(to, keep_default_na=False)["finish"]) == ["length", "unclear"] * 2
    assert write(to, lambda request: "whole")[0] == "6 of 6 answers"


def test_the_reasoning_of_a_model_is_no_part_of_its_answer(tmp_path) -> None:
    assert write(tmp_path / "a.csv", lambda request: "<think>x</think> yes") == ["6 of 6 answers"]
    assert set(pd.read_csv(tmp_path / "a.csv")["text"]) == {"yes"}


def test_an_interruption_and_a_torn_line_lose_no_other_reply(tmp_path) -> None:
    to, stop = tmp_path / "answers.csv", Stop()

    def reply(request: Request) -> str:
        if request.seed == 2:
            stop()
        return seeded(request)

    with pytest.raises(Interrupted):
        write(to, reply, stop=stop)
    kept = list(read_lines(replies_path(to)))
    assert len(kept) == 2
    assert not to.exists()
    with replies_path(to).open("a") as file:
        file.write('{"key": "torn')
    asked: list[Request] = []
    write(to, lambda request: asked.append(request) or seeded(request))
    assert len(asked) == 4
    assert len(pd.read_csv(to)) == 6


def test_what_is_wrong_with_questions() -> None:
    with pytest.raises(SetupError, match="no column is called `question` or alike"):
        questions_of(read_table(pd.DataFrame({"x": ["a"]})))
    blank = pd.DataFrame({"item_id": ["a", "b"], "question": ["One?", ""]})
    with pytest.raises(SetupError, match=r"q\.csv:3: question: is blank"):
        questions_of(read_table(blank, name="q.csv"))
    twice = pd.DataFrame({"question": ["One?", "One?"], "reference": ["a", "b"]})
    with pytest.raises(SetupError, match=r"q\.csv:3: reference: the same question has another"):
        questions_of(read_table(twice, name="q.csv"))


def test_from_questions_to_how_steady_scores_are(call, tmp_path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.chdir(tmp_path)
    lines = [
        {"pattern": f"Question {q}", "text": f"An answer to {q}." + " More." * q} for q in range(4)
    ]
    Path("replies.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    rows = {"question": [f"Question {q}?" for q in range(4)], "reference": ["An answer."] * 4}
    pd.DataFrame(rows).to_csv("questions.csv", index=False)
    code, out, err = call(
        "score", "answers", "questions.csv", "--backend", "scripted:replies.jsonl",
        "--repeats", "3", "--to", "answers.csv", "--name", "echo",
    )  # fmt: skip
    assert code == 0, err
    assert out.splitlines()[:2] == ["echo: 12 to do", "12 of 12 answers: answers.csv"]
    code, _, err = call("score", "answers.csv", "--scorer", "rouge-l", "--to", "scores.csv")
    assert code == 0, err
    found = jb.consistency("scores.csv")
    assert found.results.find("units").value == 4
    assert found.results.find("icc", judge="rouge-l").value == 1
    Path("m.yaml").write_text("{name: m, backend: 'scripted:replies.jsonl'}")
    asked = ("score", "answers", "questions.csv", "--backend", "m.yaml", "--to", "b.csv")
    assert call(*asked, "--limit", "1", "--repeats", "1")[0] == 0
    assert list(pd.read_csv("b.csv")["system"]) == ["m"]
    code, _, err = call("score", "answers", "questions.csv", "--backend", "gpt", "--to", "c.csv")
    assert code != 0
    assert "is no backend" in err
    asked = pd.read_csv("questions.csv")
    for to, said in [("questions.csv", "is the table itself"), ("there/a.csv", "no such folder")]:
        code, _, err = call("score", "answers", "questions.csv", "--backend", "m.yaml", "--to", to)
        assert (code, said in err) == (2, True), err
    assert pd.read_csv("questions.csv").equals(asked)
