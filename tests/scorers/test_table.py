"""`judgebench score` and `jb.score`: any table, no labels."""

import csv
import doctest
import json
import math
from collections.abc import Sequence
from itertools import count
from pathlib import Path

import pandas as pd
import pytest
from sacrebleu.metrics import CHRF, TER

import judgebench as jb
from judgebench.records import Answer
from judgebench.scorers.judges import Scoring
from judgebench.scorers.scorer import EMPTY_ANSWER, NO_REFERENCE, Better, KeptScores, Scored

ROWS = (
    ("007", "Is it safe?", "Yes, it is.", "Yes, it is safe.", "3", "a long remark " * 9),
    ("008", "Is it safe?", "", "Yes, it is safe.", "4", "short"),
    ("009", "How much?", "Two a day.", "", "", "short"),
)
HEADER = ("id", "question", "answer", "gold", "points", "remark")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "answers.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([HEADER, *ROWS])
    return path


def frame() -> pd.DataFrame:
    return pd.DataFrame(ROWS, columns=HEADER)


def test_a_data_frame_gets_a_column_for_each_scorer() -> None:
    found = jb.score(frame(), ["chrf", {"scorer": "length", "name": "words"}])
    scored = found.to_frame()
    columns = ["row", "id", "question", "points", "remark"]
    scores = ["chrf", "chrf_reason", "words", "words_reason"]
    assert scored.columns.to_list() == [*columns, *scores]  # neither text nor reference
    assert scored.row.to_list() == [2, 3, 4]
    assert scored.points.to_list()[:2] == [3, 4]
    value = CHRF().sentence_score("Yes, it is.", ["Yes, it is safe."]).score
    assert scored.chrf.to_list()[0] == value
    assert scored.chrf.isna().to_list() == [False, True, True]
    assert scored.chrf_reason.to_list() == ["", EMPTY_ANSWER, NO_REFERENCE]
    assert scored.words.to_list()[::2] == [3, 3]


def test_the_summary_counts_what_has_no_score() -> None:
    found = jb.score(frame(), ["chrf", "length"])
    mean = found.results.find("mean", judge="chrf")
    assert (mean.n, mean.n_missing) == (1, 2)
    words = found.results.find("mean", judge="length")
    assert (words.value, words.n, words.n_missing) == (3, 2, 1)
    assert f"chrf: 1 answer: {NO_REFERENCE}." in str(found)


def test_a_system_that_is_the_reference_is_named() -> None:
    answers = pd.DataFrame(
        {"system": ["gold", "gold", "m", "m"], "reference": ["One.", "Two."] * 2}
    )
    text = ["ONE", "two.", "One.", "Three."]
    found = jb.score(answers.assign(text=text), ["rouge-l"])
    assert "System gold is the reference text in 2 of 2 answers" in " ".join(str(found).split())
    assert "System m " not in str(found)


def test_no_answer_with_a_score_is_undefined() -> None:
    found = jb.score(frame().drop(columns="gold"), ["chrf"])
    mean = found.results.find("mean", judge="chrf")
    assert (mean.value, mean.reason) == (None, "no answer has a score")


def test_columns_are_named_where_their_names_do_not_say(tmp_path: Path) -> None:
    given = pd.DataFrame({"note": ["a b c d e"], "model note": ["a b c"], "both": ["a b"]})
    columns = {"text": "model note", "reference": "note"}
    found = jb.score(given, ["rouge-1"], columns=columns)
    assert found.results.find("mean").value == pytest.approx(0.75)
    with pytest.raises(jb.SetupError) as error:
        jb.score(given, ["rouge-1"], columns={"answer": "note"})
    assert str(error.value) == (
        "columns: is no role; found answer; allowed: text, question, reference, system, group\n"
        "answers:1: text: no column is called `text` or alike: say which one holds the answers; "
        "allowed: note, model note, both"
    )
    with pytest.raises(jb.SetupError) as error:
        jb.score(given, ["rouge-1"], columns={"text": "notes"})
    assert str(error.value) == (
        "answers:1: notes: the column is missing; did you mean 'note'?; found note, model note, "
        "both"
    )


def test_lists_of_references_in_jsonl(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    references = (["x", "a b"], "a 'c")
    lines = [{"item_id": n, "text": "a b", "reference": r} for n, r in enumerate(references)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert jb.score(path, ["rouge-1"]).to_frame()["rouge-1"].to_list() == [1, 0.5]
    (tmp_path / "bench.yaml").write_text(
        "name: b\nrubric: medical-safety\ndata: answers.jsonl\nscorers: [rouge-1]\n"
    )
    bench = jb.load_bench(tmp_path / "bench.yaml")
    assert [answer.reference for answer in bench.answers] == ['["x", "a b"]', "a 'c"]
    bench.close()


def test_a_metric_computed_elsewhere_is_a_column() -> None:
    """F1-RadGraph, say, whose package does not go with transformers 5."""
    reports = pd.DataFrame({"text": ["No effusion.", "Clear."], "f1_radgraph": ["0.4", ""]})
    scorer = {"scorer": "column", "name": "f1-radgraph", "from": "f1_radgraph", "better": "higher"}
    frame = jb.score(reports, [scorer]).to_frame()
    assert frame["f1-radgraph"].to_list()[0] == 0.4
    assert frame["f1-radgraph_reason"].to_list() == ["", "the column f1_radgraph is blank"]
    with pytest.raises(jb.SetupError, match="f1_radgraph, item 3: is no number; found high"):
        jb.score(reports.assign(f1_radgraph=["0.4", "high"]), [scorer])


def test_every_problem_of_the_scorers_at_once() -> None:
    with pytest.raises(jb.SetupError) as error:
        jb.score(frame(), ["rouge", {"scorer": "chrf", "stemmer": True}, "ter", "ter"])
    first, second, third = str(error.value).splitlines()
    assert first.startswith("scorers.scorer: is no scorer; found rouge; allowed: column, ")
    assert second.startswith("scorers: chrf has no setting stemmer; found ")
    assert third == "scorers: two scorers have this name: give one another `name`; found ter"
    with pytest.raises(jb.SetupError, match="has a `fit`: it belongs to `judges`; found length"):
        jb.score(frame(), [{"scorer": "length", "fit": {"metric": "points"}}])
    with pytest.raises(jb.SetupError) as error:
        jb.score(frame(), [{"scorer": "length", "name": "points"}])
    assert str(error.value) == (
        "answers:1: points: the table has this column already: give the scorer another name"
    )


def test_the_command_writes_a_csv_and_says_where(table: Path, call) -> None:  # type: ignore[no-untyped-def]
    to, kept = table.with_name("scores.csv"), table.with_name("kept")
    options = ("--to", to, "--kept", kept)
    code, out, err = call(
        "score", table, "--scorer", "length", "--scorer", "{scorer: chrf, name: chrf}",
        *options,
    )  # fmt: skip
    assert (code, err) == (0, "")
    assert f"Wrote {to}" in out
    assert "chrf is scorer:chrf|signature:nrefs:var|case:mixed" in out
    with to.open(newline="") as file:
        written = list(csv.DictReader(file))
    assert [row["id"] for row in written] == ["007", "008", "009"]
    assert [row["length"] for row in written] == ["3.0", "", "3.0"]
    assert written[1]["chrf_reason"] == EMPTY_ANSWER
    assert len(list(kept.iterdir())) == 2


def test_the_command_prints_json_alone(table: Path, tmp_path: Path, call) -> None:  # type: ignore[no-untyped-def]
    asked = ("--scorer", "length", "--kept", tmp_path / "kept", "--role", "text=gold")
    code, out, _ = call("score", table, *asked, "--json")
    assert code == 0
    rows = json.loads(out)["scores"]
    assert [row["value"] for row in rows if row["statistic"] == "mean"] == [4]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "error: name a scorer: --scorer rouge-l"),
        (["--scorer", "{scorer: chrf"], "error: --scorer:2: is not YAML: "),
        (["--scorer", "length", "--to", "answers.csv"],
         "error: answers.csv: is the table itself: write to another file"),
        (["--scorer", "length", "--to", "there/scores.csv"],
         "error: there: --to: no such folder"),
    ],
)  # fmt: skip
def test_the_command_says_what_is_wrong(  # type: ignore[no-untyped-def]
    arguments: list[str], said: str, table: Path, call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(table.parent)
    code, _, err = call("score", "answers.csv", *arguments)
    assert code == 2
    assert err.startswith(said)
    assert not Path("runs").exists()


def test_it_resumes_after_ctrl_c(  # type: ignore[no-untyped-def]
    tmp_path: Path, call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was scored by then is not scored again."""
    monkeypatch.chdir(tmp_path)
    rows = [f"a word {i},another word {i % 9}" for i in range(80)]
    Path("answers.csv").write_text("\n".join(["text,reference", *rows]) + "\n")
    real, calls = TER.sentence_score, count(1)

    def stopped(*given, **named):  # type: ignore[no-untyped-def]
        if next(calls) == 40:
            raise KeyboardInterrupt
        return real(*given, **named)

    monkeypatch.setattr(TER, "sentence_score", stopped)
    code, _, said = call("score", "answers.csv", "--scorer", "ter", "--to", "scores.csv")
    assert code == 130
    assert said == "Stopped. Scores so far are kept in runs/scores. To resume, rerun.\n"
    assert not Path("scores.csv").exists()
    (file,) = Path("runs/scores").iterdir()
    before = file.read_text().splitlines()
    assert 0 < len(before) < 40
    found = jb.score("answers.csv", ["ter"], folder="runs/scores")
    after = file.read_text().splitlines()
    assert after[: len(before)] == before
    assert len({json.loads(line)["key"] for line in after}) == len(after) == 80
    assert next(calls) == 41 + 80 - len(before)
    assert found.to_frame().ter.notna().all()


class ByName:
    """A `Scorer` that gives the number that a text spells."""

    better: Better = "lower"

    def __init__(self, at_once: int = 2) -> None:
        self.at_once = at_once
        self.about = {"scorer": "by-name"}

    def key(self, answer: Answer) -> str:
        return answer.text

    def score(self, answers: Sequence[Answer]) -> Sequence[Scored]:
        return [Scored(float(answer.text)) for answer in answers]

    def close(self) -> None:
        """Nothing to give back."""


def test_an_infinite_score_is_none_and_says_so_also_once_it_is_kept(tmp_path: Path) -> None:
    texts = ("1.5", "inf", "nan", "-inf", "-2")
    answers = [Answer(text, text) for text in texts]
    found = KeptScores(ByName(), tmp_path).of(answers)
    values = [float(text) for text in texts]
    assert [one.value for one in found] == [x if math.isfinite(x) else None for x in values]
    assert {one.reason for one in found if one.value is None} == {"its score is no finite number"}
    assert KeptScores(ByName(), tmp_path).of(answers) == found


def test_how_a_run_will_score_is_said_before_it() -> None:
    said = [Scoring("n", KeptScores(ByName(n), None)).ahead for n in (1, 4096)]
    assert said == ["n: scores answers, 1 at a time", "n: scores answers, 4,096 at a time"]


@pytest.mark.parametrize("name", ["consistency", "correlate", "score"])
def test_the_example_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "answers.csv").write_text("item_id,question,text\na,Is it safe?,It is not.\n")
    monkeypatch.chdir(tmp_path)
    (test,) = doctest.DocTestFinder(recurse=False).find(getattr(jb, name), name)
    assert test.examples
    assert doctest.DocTestRunner().run(test).failed == 0
