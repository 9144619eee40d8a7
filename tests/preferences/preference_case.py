"""Small studies of several responses to one question, and of criteria."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from pathlib import Path

import judgebench as jb
from judgebench.judges.control import control_judges
from judgebench.records import Answer, HumanLabel, Part, Showing, Status, Verdict
from judgebench.rubric import Rubric
from judgebench.studies.reference_labels import TruthConfig
from judgebench.studies.study import JudgeVerdicts, Study, study_of

POINTS = ["5", "4", "3", "2", "1"]  # the best first: the least severe
Labels = Mapping[str, Mapping[str, str]]  # item -> metric -> label


def rubric(*metrics: Mapping[str, object], **more: object) -> Rubric:
    named = [{"title": str(m["id"]).title(), "question": "?", **m} for m in metrics]
    about = {"name": "several", "version": "1", "instructions": "Compare.", **more}
    return Rubric.model_validate({**about, "metrics": named})


PREFERENCE = {"id": "better", "kind": "preference"}
QUALITY = {"id": "quality", "kind": "ordinal", "labels": POINTS}


def answer(question: str, system: str, text: str = "") -> Answer:
    return Answer(f"{question}/{system}", text or f"{system} on {question}", question, system)


def pair(question: str, first: str, second: str) -> Answer:
    """The pair of two systems' answers to a question, the first with the longer text."""
    parts = [
        Part("response", f"{system} on {question}" + "." * more, system, f"{question}/{system}")
        for system, more in ((first, 9), (second, 0))
    ]
    return Answer(f"{question}/{first} vs {second}", "two", question, parts=tuple(parts))


def study(
    rubric: Rubric, answers: Sequence[Answer], humans: Mapping[str, Labels],
    judges: Mapping[str, Labels], shown: Mapping[str, Sequence[Showing]] = {},
) -> Study:  # fmt: skip
    """With annotators and judges by name; `shown` is by item and the same for all judges, who fail
    on other answers, and were never asked about what has None. The control `random` stands beside
    them."""
    given = [
        HumanLabel(item, who, metric, label)
        for who, items in humans.items()
        for item, labels in items.items()
        for metric, label in labels.items()
    ]
    found = study_of(rubric, list(answers), given, TruthConfig())
    real = [
        JudgeVerdicts(
            name, "judge", name,
            {
                i: Verdict(
                    i, "", name, name, Status.OK if i in items else Status.FAILED,
                    items.get(i) or {}, shown=tuple(shown.get(i, ())),
                )
                for i in map(attrgetter("item_id"), answers) if items.get(i, {}) is not None
            },
        )
        for name, items in judges.items()
    ]  # fmt: skip
    controls = [
        JudgeVerdicts(c.name, "control", c.signature, {v.item_id: v for v in c.verdicts()})
        for c in control_judges(["random"], rubric, found.answers, given)
    ]
    return replace(found, judges=(*real, *controls))


def mtbench(folder: Path, tables: Path) -> Study:
    """The experts' votes on first turns of MT-bench (Zheng et al., 2023), and GPT-4's verdicts, as
    they were published."""
    about = "question_id: item, model_a: first, model_b: second, turn: ignored"
    layout = tables / "layout.yaml"
    layout.write_text(
        f"tables:\n  - file: {folder}/human.jsonl.gz\n    only: {{turn: '1'}}\n"
        f"    columns: {{{about}, judge: annotator, winner: label}}\n"
        f"  - file: {folder}/gpt4_pair.jsonl.gz\n    only: {{turn: '1'}}\n    who: gpt-4\n"
        f"    columns: {{{about}, judge: ignored, winner: verdict}}\n"
        'spell: {better: {"tie (inconsistent)": tie}}\n'
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # other turns and authors are left out
        truth = {"rule": "majority", "annotators": ["expert*"]}
        found = jb.study(layout, rubric=rubric(PREFERENCE), truth=truth)
    return replace(found)
