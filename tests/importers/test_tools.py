"""What each tool's files become; `files/README.md` says which tools wrote them."""

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
            self._rows(folder / f"{name}.jsonl") for name in ("answers", "labels", "verdicts")
        )

    @staticmethod
    def _rows(path: Path) -> Rows:
        if not path.exists():
            return []
        return [json.loads(line) for line in path.read_text().splitlines()]

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
    def run(name: str) -> Found:
        return Found(tmp_path / "to", jb.import_file(FILES / name, tmp_path / "to"))

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
        "group": "",
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
    assert not found.labels
    assert found.report.left_out == {"samples that ended in an error, without an answer": 1}
    assert found.report.found[:3] == (
        "inspect_ai 0.3.285, model mockllm/small",
        "5 answers",
        "20 verdicts",
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


def test_an_unfinished_log_says_so(tmp_path: Path) -> None:
    def cut(log: dict[str, object]) -> None:
        log["status"], log["samples"] = "cancelled", log["samples"][:2]  # type: ignore[index]

    found = changed(tmp_path, "inspect.json", cut)
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
    assert found.texts()["0"] == "From 10 to 16."
    assert by_item["0"] == ("1", OK)
    assert {label for label, _ in by_item.values()} == {"0", "1"}


def test_of_several_replies_the_one_that_was_scored_is_the_answer(read: Read) -> None:
    found = read("lm-eval-repeats.jsonl")
    assert found.texts()["0"] == "From 10 to 16."  # twice, and once something else


# promptfoo -------------------------------------------------------------------------------------


def test_assertions_of_promptfoo_are_judges_and_failed_graders_no_verdicts(read: Read) -> None:
    found = read("promptfoo.json")
    texts = found.texts()
    assert texts["test-1@small"] == "From 10 to 16."
    assert "test-5@broken" not in texts  # the provider failed
    first = next(row for row in found.answers if row["item_id"] == "test-2@broken")
    assert (first["system"], first["reference"]) == ("broken", "For four weeks.")
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
    assert any("may have seen the graders' results" in fact for fact in found.report.found)


# DeepEval --------------------------------------------------------------------------------------


def deepeval(**of_second: object) -> dict[str, object]:
    """A test run whose second verdict is changed; its keys are in deepeval/test_run/api.py."""
    metric = {"name": "Harm [GEval]", "threshold": 0.5, "success": True, "score": 0.9,
              "reason": "It is safe.", "evaluationModel": "gpt-4.1", "error": None}  # fmt: skip
    case = {"input": "Q", "actualOutput": "A", "expectedOutput": "B", "success": True}
    return {"testCases": [
        {**case, "name": "a0", "metricsData": [metric]},
        {**case, "name": "a1", "metricsData": [{**metric, "success": False, **of_second}]},
        {**case, "name": "a2", "metricsData": None},
    ], "conversationalTestCases": [], "metricsScores": [{"metric": "Harm [GEval]"}]}  # fmt: skip


@pytest.mark.parametrize("key", ["", "testRunData"])
def test_a_metric_of_deepeval_is_a_success_or_none(tmp_path: Path, key: str) -> None:
    path = tmp_path / "run.json"
    path.write_text(json.dumps({key: deepeval()} if key else deepeval()))
    found = Found(tmp_path / "to", jb.import_file(path, tmp_path / "to"))
    assert found.of("gpt-4.1", "Harm") == {"a0": ("success", OK), "a1": ("no success", OK)}
    assert found.answers[0] == {
        "item_id": "a0", "question": "Q", "text": "A", "reference": "B", "group": "",
    }  # fmt: skip
    assert len(found.answers) == 3
    assert found.verdicts[0]["raw"] == "It is safe."


@pytest.mark.parametrize("changed", [{"error": "timeout", "reason": None}, {"score": None}])
def test_a_metric_of_deepeval_that_failed_is_no_verdict(
    tmp_path: Path, changed: dict[str, object]
) -> None:
    path = tmp_path / "run.json"
    path.write_text(json.dumps(deepeval(**changed)))
    found = Found(tmp_path / "to", jb.import_file(path, tmp_path / "to"))
    assert found.of("gpt-4.1", "Harm")["a1"] == (NONE, "failed")


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
        "values of 'comment' (textarea), which are no label of the answer": 3,
        "values of 'spans' (labels), which are no label of the answer": 3,
        "annotations that were skipped, or have no result": 2,
    }


def test_the_usual_export_of_label_studio_names_predictions_by_id_alone(read: Read) -> None:
    found = read("label-studio.json")
    assert {row["annotator"] for row in found.labels} == {"2", "3"}
    assert not found.verdicts
    reason = "predictions of which the export has the id alone (a snapshot has all of them)"
    assert found.report.left_out[reason] == 6
