"""What each tool's files become; `files/README.md` says which tools wrote them."""

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest

import judgebench as jb

FILES = Path(__file__).parent / "files"
Rows = list[dict[str, str]]
Read = Callable[..., "Found"]


class Found:
    """What was written, as rows, and what was reported."""

    def __init__(self, folder: Path, imported: jb.Started) -> None:
        self.report = imported
        self.answers, self.labels, self.verdicts = (
            self._rows(folder / f"{name}.csv") for name in ("answers", "labels", "verdicts")
        )

    @staticmethod
    def _rows(path: Path) -> Rows:
        if not path.exists():
            return []
        with path.open(newline="") as file:
            return list(csv.DictReader(file))

    def texts(self) -> dict[str, str]:
        return {row["item_id"]: row["text"] for row in self.answers}

    def of(self, judge: str, metric: str) -> dict[str, tuple[str, str]]:
        """Label and status of a judge by item; of a repeat, by item and number."""
        return {
            row["item_id"] + (f" again {row['repeat']}" if row.get("repeat", "0") != "0" else ""): (
                row["label"], row["status"],
            )
            for row in self.verdicts
            if (row["judge"], row["metric"]) == (judge, metric)
        }  # fmt: skip

    def by(self, annotator: str, metric: str) -> dict[str, str]:
        found = ((row["annotator"], row["metric"]) == (annotator, metric) for row in self.labels)
        pairs = zip(self.labels, found, strict=True)
        return {row["item_id"]: row["label"] for row, wanted in pairs if wanted}


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def run(name: str, judge: str | None = None) -> Found:
        imported = jb.import_file(FILES / name, tmp_path / "to", replies_as_verdicts=judge)
        return Found(tmp_path / "to", imported)

    return run


OK, NONE = "ok", ""


# inspect_ai ------------------------------------------------------------------------------------


def test_inspect_scorers_are_judges_and_what_they_did_not_grade_is_no_label(read: Read) -> None:
    found = read("inspect.json")
    first = next(row for row in found.answers if row["item_id"] == "loan")
    assert first == {
        "item_id": "loan",
        "question": "For how long may I keep a book?",
        "text": 'Four weeks, then "renew", please.',
        "system": "mockllm/small",
        "reference": "For four weeks.",
        "topic": "loan",
        "words": "[1, 2]",
    }
    assert found.texts()["room"] == ""  # an empty answer is an answer
    assert found.of("model_graded_qa", "correct") == {
        "opening": ("C", OK),
        "loan": ("C", OK),
        "café": ("C", OK),
        "room": (NONE, "unparsed"),  # the grader wrote no grade
        "print": (NONE, "failed"),  # the request to the grader was refused
    }
    assert found.of("style", "length")["room"] == ("short", OK)
    assert found.of("style", "polite")["loan"] == ("true", OK)
    raw = {r["item_id"]: r["raw"] for r in found.verdicts if r["judge"] == "model_graded_qa"}
    assert raw["room"] == "The answer could be right or wrong, I would rather not say."
    assert raw["loan"] == "It agrees with the rules.\nGRADE: C"
    assert raw["print"] == "RuntimeError('the prompt was rejected')"
    assert not found.labels
    assert found.report.left_out == {"samples that ended in an error, without an answer": 1}
    assert found.report.found[:3] == (
        "inspect_ai 0.3.285, task library, model mockllm/small",
        "5 answers of mockllm/small to 5 questions",
        "5 verdicts of model_graded_qa: 1 failed, 3 ok, 1 unparsed",
    )


def test_inspect_epochs_are_repeats_where_the_model_wrote_the_same(read: Read) -> None:
    pytest.importorskip("inspect_ai", reason="needs the extra `inspect`")
    found = read("inspect.eval")
    texts = found.texts()
    assert {texts["opening"], texts["opening#2"]} == {"From 10 to 16.", "Sundays from 10."}
    assert "loan#2" not in texts
    grades = found.of("model_graded_qa", "correct")
    assert sorted([grades["café"], grades["café again 1"]]) == [("C", OK), ("I", OK)]
    assert grades["room again 1"] == (NONE, "unparsed")
    assert grades["opening"] == grades["opening#2"] == ("C", OK)
    assert found.report.left_out == {"samples that ended in an error, without an answer": 2}


def changed(tmp_path: Path, name: str, change: Callable[[dict[str, object]], object]) -> Found:
    """What a file of a tool becomes with a change."""
    value = json.loads((FILES / name).read_text())
    change(value)
    path = tmp_path / name
    path.write_text(json.dumps(value))
    return Found(tmp_path / "to", jb.import_file(path, tmp_path / "to"))


def test_a_grade_that_an_old_inspect_scored_as_wrong_is_unreadable(tmp_path: Path) -> None:
    def old(log: dict[str, object]) -> None:
        (room,) = [sample for sample in log["samples"] if sample["id"] == "room"]  # type: ignore[index,attr-defined]
        score = room["scores"]["model_graded_qa"]
        score["value"] = "I"
        del score["reason"]

    found = changed(tmp_path, "inspect.json", old)
    assert found.of("model_graded_qa", "correct")["room"] == (
        NONE, "unparsed",
    )  # fmt: skip


def test_an_edited_score_counts_as_the_scorer_gave_it(tmp_path: Path) -> None:
    def edit(log: dict[str, object]) -> None:
        (loan,) = [sample for sample in log["samples"] if sample["id"] == "loan"]  # type: ignore[index,attr-defined]
        score = loan["scores"]["model_graded_qa"]
        score["history"] = [{"value": "C"}, {"value": "I", "provenance": {"author": "ann"}}]
        score["value"] = "I"

    found = changed(tmp_path, "inspect.json", edit)
    assert found.of("model_graded_qa", "correct")["loan"] == ("C", OK)
    assert found.report.left_out["edits of scores (the scorer's own value was kept)"] == 1


def test_an_unfinished_log_says_how_many_samples_were_never_run(tmp_path: Path) -> None:
    def cut(log: dict[str, object]) -> None:
        log["status"], log["samples"] = "cancelled", log["samples"][:2]  # type: ignore[index]

    found = changed(tmp_path, "inspect.json", cut)
    assert found.report.left_out["samples that were never run"] == 4
    assert "the log is incomplete: its status is 'cancelled'" in found.report.found


def test_texts_that_inspect_keeps_apart_are_put_back(tmp_path: Path) -> None:
    def attach(log: dict[str, object]) -> None:
        (loan,) = [sample for sample in log["samples"] if sample["id"] == "loan"]  # type: ignore[index,attr-defined]
        loan["input"] = [
            {"role": "system", "content": "You work in a library."},
            {"role": "user", "content": [
                {"type": "text", "text": "attachment://0123abcd"}, {"type": "image", "image": "x"},
            ]},
        ]  # fmt: skip
        loan["attachments"] = {"0123abcd": "May I keep it for long?"}

    found = changed(tmp_path, "inspect.json", attach)
    (row,) = [r for r in found.answers if r["item_id"] == "loan"]
    assert row["question"] == "May I keep it for long?\n[image]"


def test_a_sample_that_was_marked_as_invalid_is_left_out(tmp_path: Path) -> None:
    def mark(log: dict[str, object]) -> None:
        log["samples"][0]["invalidation"] = {"author": "ann", "reason": "wrong tool"}  # type: ignore[index]

    found = changed(tmp_path, "inspect.json", mark)
    assert found.report.left_out["samples that were marked as invalid"] == 1
    assert len(found.answers) == 4


def test_replies_of_a_judge_that_inspect_evaluated_are_verdicts(read: Read) -> None:
    found = read("inspect.json", judge="small")
    replies = {row["item_id"]: (row["raw"], row["status"]) for row in found.verdicts}
    assert replies["loan"] == ('Four weeks, then "renew", please.', "")
    assert replies["fine"] == ("ValueError('the tool of the agent was missing')", "failed")
    assert found.texts()["loan"] == "For how long may I keep a book?"
    assert found.report.left_out == {"values that the tool gave to the judge's replies": 15}


# lm-evaluation-harness -------------------------------------------------------------------------


def test_filters_of_lm_eval_are_judges_of_the_same_replies(read: Read) -> None:
    found = read("lm-eval-filters.jsonl")
    assert len(found.answers) == 6
    assert found.answers[1]["question"] == "For how long may I keep a book?"
    assert found.answers[1]["text"] == 'Four weeks, then "renew", please.'
    assert found.answers[1]["reference"] == "For four weeks."
    strict = found.of("exact_match.strict-match", "correct")
    assert strict == {str(n): ("1" if n == 0 else "0", OK) for n in range(6)}
    assert found.of("exact_match.flexible-extract", "correct")["0"] == ("0", OK)
    assert "the file does not name the model: `system` is blank" in found.report.found


def test_the_likeliest_choice_is_the_answer(read: Read) -> None:
    found = read("lm-eval-choices.jsonl")
    by_item = found.of("acc", "correct")
    for row in found.answers:
        right = row["text"] == row["metadata.reference"]
        assert by_item[row["item_id"]] == ("1" if right else "0", OK)
    assert {label for label, _ in by_item.values()} == {"0", "1"}


def test_of_several_replies_the_one_that_was_scored_is_the_answer(read: Read) -> None:
    found = read("lm-eval-repeats.jsonl")
    assert found.texts()["0"] == "From 10 to 16."  # twice, and once something else
    reason = "replies that no metric is about (`--replies-as-verdicts` reads all)"
    assert found.report.left_out == {reason: 12}


def test_several_replies_of_a_judge_are_repeats(read: Read) -> None:
    found = read("lm-eval-judge.jsonl", judge="grader")
    assert found.texts()["1"] == 'Four weeks, then "renew", please.'  # what was judged
    grades = [row["raw"].split()[-1] for row in found.verdicts if row["item_id"] == "3"]
    assert grades == ["C", "I"]
    assert [row["repeat"] for row in found.verdicts if row["item_id"] == "3"] == ["0", "1"]
    assert {row["judge"] for row in found.verdicts} == {"grader"}
    assert "label" not in found.verdicts[0]
    assert "12 verdicts of grader: 12 to be parsed" in found.report.found
    assert "reply: json" in found.report.next_steps[-1]


def test_what_a_filter_read_from_a_judges_reply_is_its_verdict(read: Read) -> None:
    found = read("lm-eval-grades.jsonl", judge="grader")
    assert found.of("grader", "verdict") == {
        "0": ("C", OK), "1": ("C", OK), "2": ("I", OK), "3": ("C", OK), "4": ("I", OK),
        "5": (NONE, "unparsed"),  # the filter found no grade
    }  # fmt: skip
    assert found.verdicts[5]["raw"].startswith("The answer could be right or wrong")
    assert found.texts()["2"] == "Nothing, books are free."
    assert "metric 'verdict': C, I" in found.report.found


# promptfoo -------------------------------------------------------------------------------------


def test_assertions_of_promptfoo_are_judges_and_failed_graders_no_verdicts(read: Read) -> None:
    found = read("promptfoo.json")
    texts = found.texts()
    assert texts["test-1@small"] == "From 10 to 16."
    assert "test-5@broken" not in texts  # the provider failed
    first = next(row for row in found.answers if row["item_id"] == "test-2@broken")
    assert (first["system"], first["reference"], first["topic"]) == (
        "broken", "For four weeks.", "loan",
    )  # fmt: skip
    correct = found.of("llm-rubric", "Correct")
    assert correct["test-1@small"] == correct["test-1@small again 1"] == ("pass", OK)
    assert correct["test-3@small"] == ("fail", OK)
    assert correct["test-5@small"] == (NONE, "failed")  # promptfoo says `fail`
    assert correct["test-6@small"] == (NONE, "unparsed")  # promptfoo says `fail`
    assert found.of("llm-rubric", "llm-rubric")["test-1@small"] == ("pass", OK)
    assert found.of("icontains", "icontains")["test-6@small"] == ("fail", OK)
    raw = {(r["item_id"], r["metric"]): r["raw"] for r in found.verdicts}
    assert raw["test-3@small", "Correct"] == "It does not agree with the rules."
    assert found.report.left_out == {"samples that ended in an error, without an answer": 2}
    assert "44 verdicts of llm-rubric: 4 failed, 30 ok, 10 unparsed" in found.report.found


def test_a_rating_by_hand_in_promptfoo_is_a_human_label(tmp_path: Path) -> None:
    def rate(value: dict[str, object]) -> None:  # as promptfoo's web page does
        for result in value["results"]["results"]:  # type: ignore[index]
            if result["gradingResult"] and result["provider"]["label"] == "small":
                result["gradingResult"]["componentResults"].append(
                    {"pass": True, "score": 1, "comment": "fine", "assertion": {"type": "human"},
                     "reason": "Manual result (overrides all other grading results)"}
                )  # fmt: skip

    found = changed(tmp_path, "promptfoo.json", rate)
    assert found.by("human", "result") == {f"test-{n}@small": "pass" for n in range(1, 7)}
    assert {row["judge"] for row in found.verdicts} == {"llm-rubric", "icontains"}
    assert found.report.left_out["further labels of one text by the same person"] == 6  # --repeat 2
    assert any(
        fact.startswith("ratings by hand are labels of `human`") for fact in found.report.found
    )


def test_a_sample_without_any_grading_has_failed_verdicts(tmp_path: Path) -> None:
    def lose(value: dict[str, object]) -> None:
        first = value["results"]["results"][1]  # type: ignore[index]
        first |= {"gradingResult": None, "error": "grader timed out\nfar away"}
        first["testCase"] = {"assert": [{"type": "llm-rubric", "metric": "Correct"}]}
        first["response"]["output"] = "Something else."

    found = changed(tmp_path, "promptfoo.json", lose)
    (row,) = [r for r in found.verdicts if r["raw"] == "grader timed out"]
    assert (row["judge"], row["metric"], row["status"]) == ("llm-rubric", "Correct", "failed")


# Label Studio ----------------------------------------------------------------------------------


def test_a_snapshot_of_label_studio_has_labels_by_person_and_predictions_as_verdicts(
    read: Read,
) -> None:
    found = read("label-studio-snapshot.json")
    assert found.by("ann@example.org", "correct") == {
        "opening": "Right", "loan": "Wrong", "fine": "Right", "café": "Wrong", "print": "Right",
    }  # fmt: skip
    assert found.by("bob@example.org", "tone") == {"opening": "1", "loan": "2", "café": "4"}
    assert found.by("ann@example.org", "topic") == dict.fromkeys(("loan", "café"), "Rules / Money")
    assert {row["annotator"] for row in found.labels} == {"ann@example.org", "bob@example.org"}
    assert set(found.of("grader-1", "correct").values()) == {("Right", OK)}
    assert len(found.verdicts) == 6
    assert found.texts()["café"] == "Yes:\n- coffee, tea\n- cards are accepted"
    assert found.report.left_out == {
        "values of 'problems', where several can be chosen": 3,
        "values of 'comment' (textarea), which are no label of the answer": 3,
        "values of 'spans' (labels), which are no label of the answer": 3,
        "annotations that were skipped": 1,
        "annotations without any result": 1,
    }
    columns = "columns of the answers: item_id from 'item_id', text from 'text', question from "
    assert f"{columns}'question', reference from 'reference'" in found.report.found


def test_the_usual_export_of_label_studio_names_predictions_by_id_alone(read: Read) -> None:
    found = read("label-studio.json")
    assert {row["annotator"] for row in found.labels} == {"2", "3"}
    assert not found.verdicts
    reason = "predictions of which the export has the id alone (a snapshot has all of them)"
    assert found.report.left_out[reason] == 6


@pytest.mark.parametrize("name", ["label-studio-min.json", "label-studio.csv"])
def test_the_small_exports_of_label_studio_say_the_same(read: Read, name: str) -> None:
    found = read(name)
    assert found.by("2", "correct") == {
        "opening": "Right", "loan": "Wrong", "fine": "Right", "café": "Wrong", "print": "Right",
    }  # fmt: skip
    assert found.by("3", "tone") == {"opening": "1", "loan": "2", "café": "4"}
    assert found.texts()["loan"] == 'Four weeks, then "renew", please.'
    assert found.texts()["room"] == "(no reply)"  # nobody has labelled it
    assert found.report.left_out["values of 'problems', where several can be chosen"] == 3
    assert found.report.left_out["annotations without any result"] == 1
    facts = "\n".join(found.report.found)
    assert "this export lacks predictions and the annotations that were skipped" in facts
    assert "this export does not say which are, the JSON export does" in facts


# Argilla ---------------------------------------------------------------------------------------


def test_responses_of_argilla_are_labels_once_they_are_submitted(read: Read) -> None:
    found = read("argilla-flat.json")
    ann, bob = (f"00000000-0000-0000-0000-00000000000{n}" for n in (1, 2))
    assert found.by(ann, "correct") == {
        "opening": "yes", "loan": "no", "fine": "yes", "café": "no", "print": "yes",
    }  # fmt: skip
    assert found.by(bob, "tone") == {"opening": "1", "café": "4"}
    assert set(found.of("grader-1", "correct").values()) == {("yes", OK)}
    assert list(found.of("grader-1", "tone")) == ["opening", "fine", "print"]
    assert found.texts()["fine"] == "Nothing, books are free."
    assert found.report.left_out == {
        "values of 'problems', which are lists": 5,
        "values of 'why', which are texts": 5,
        "responses with the status draft": 4,
        "responses with the status discarded": 2,
    }


def test_the_json_of_argilla_does_not_say_what_was_submitted(read: Read) -> None:
    found = read("argilla.json")
    assert len({row["item_id"] for row in found.labels}) == 5
    assert any(fact.startswith("to_json leaves out which responses") for fact in found.report.found)
    assert {row["judge"] for row in found.verdicts} == {"grader-1"}
