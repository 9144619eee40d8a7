"""Small studies of every task, with names in them that no annotator may see."""

import csv
from collections.abc import Sequence
from pathlib import Path

import yaml

SYSTEMS = ("secretgpt", "hiddenllama", "maskedclaude")
QUESTIONS = ("Is rest enough?", "Must I fast?", "How long does it last?", "Is it catching?")
_ITEMS = ["item_id", "question", "system", "text", "reference"]
_RUBRIC = {
    "name": "mine",
    "version": "1",
    "instructions": "Say what you think.",
    "metrics": [
        {"id": "tone", "title": "Tone", "question": "Kind?", "kind": "ordinal",
         "labels": [{"text": "Kind", "description": "as to a friend"}, "Curt", "Rude"],
         "abstain": "No idea"},
        {"id": "truth", "title": "Truth", "question": "True?", "kind": "nominal",
         "labels": ["Yes", "No"]},
    ],
}  # fmt: skip
_MORE = {
    "labels": {"items": ["answers.csv", "labels.csv"]},
    "preference": {"rubric": "preference", "pairs": "all"},
    "criteria": {"rubric": "criteria", "items": "criteria.csv"},
}
TASKS = ("labels", "ranking", "preference", "criteria")
HIDDEN = (*SYSTEMS, "quartz-", "answers.csv", "labels.csv", "drspy")


def table(path: Path, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([columns, *rows])


def answers(questions: Sequence[str] = QUESTIONS) -> list[list[str]]:
    """A row for each question and system."""
    return [
        [f"quartz-{q}{system[0]}", question, system, f"Answer {q}{system[-1]} to you.", f"Ref {q}."]
        for q, question in enumerate(questions)
        for system in SYSTEMS
    ]


def study_file(folder: Path, task: str = "labels", **changes: object) -> Path:
    """An annotate.yaml with its files; an answer that is changed in them later may stay."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = answers()
    table(folder / "answers.csv", _ITEMS, rows)
    table(folder / "labels.csv", ["item_id", "annotator", "tone"], [[rows[0][0], "drspy", "Rude"]])
    criteria = '[{"id": "quartz-x", "text": "Names a dose"}, {"id": "quartz-y", "text": "Warns"}]'
    table(folder / "criteria.csv", [*_ITEMS, "criteria"], [[*row, criteria] for row in rows])
    (folder / "mine.yaml").write_text(yaml.safe_dump(_RUBRIC, sort_keys=False), "utf-8")
    value = {
        "name": "demo", "task": task, "items": "answers.csv", "annotators": ["ann", "ben", "cem"],
        **({} if task == "ranking" else {"rubric": "mine.yaml"}),
        **_MORE.get(task, {}), **changes,
    }  # fmt: skip
    file = folder / "annotate.yaml"
    file.write_text(yaml.safe_dump(value), "utf-8")
    return file
