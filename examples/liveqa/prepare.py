"""Write answers.csv and cdc.jsonl from the LiveQA medical answers: prepare.py FOLDER [QUESTIONS].

FOLDER holds the three files that README.md names. The consumers' questions are not part of them, so
the question that the best answer of each was written for stands in: it favours that answer, for
people who read the table as for judges. Of every question with three grades or more, up to four
answers are kept, of different grades first; texts are cut at the last sentence within 600
characters.
"""

from __future__ import annotations

import csv
import gzip
import json
import re
import sys
from collections import defaultdict
from pathlib import Path

LENGTH, ANSWERS = 600, 4


def graded(folder: Path) -> dict[str, dict[str, str]]:
    """question -> answer id -> grade, 1 (incorrect) to 4 (excellent), of answers with a text."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    with gzip.open(folder / "liveqa_qrels_2479.txt.gz", "rt", encoding="utf-8") as lines:
        for question, grade, answer in map(str.split, lines):
            found[question][answer] = grade[0]
    return found


def texts(folder: Path) -> dict[str, tuple[str, str]]:
    """answer id -> the question that it was written for, and its text."""
    found = {}
    with gzip.open(folder / "liveqa_answers_565.csv.gz", "rt", encoding="utf-8", newline="") as f:
        for row in csv.DictReader(f):
            parts = re.fullmatch(r"Question: (.*?)\s*URL:.*?\sAnswer: (.*)", row["Answer"], re.S)
            if parts:
                question = re.sub(r"\(Also called:.*?\)", "", parts[1])
                found[row["AnswerID"]] = (" ".join(question.split()), cut(parts[2]))
    return found


def passages(folder: Path) -> list[str]:
    """The CDC questions with their answers, to be looked up."""
    with gzip.open(folder / "medquad_cdc_270.csv.gz", "rt", encoding="utf-8", newline="") as f:
        return [f"{row['question']} {row['answer']}" for row in csv.DictReader(f)]


def cut(text: str) -> str:
    """The text, cut at the last sentence within LENGTH."""
    text = " ".join(text.split())
    if len(text) <= LENGTH:
        return text
    end = max(text.rfind(mark, 0, LENGTH) for mark in (". ", "? ", "! "))
    return text[: end + 1] if end > 0 else text[:LENGTH]


def rows(folder: Path, most: int) -> list[list[str]]:
    """The rows of answers.csv, of the first `most` questions."""
    answers, found = texts(folder), []
    for question, grades in sorted(graded(folder).items(), key=lambda one: int(one[0])):
        known = [(answer, grade) for answer, grade in sorted(grades.items()) if answer in answers]
        if len({grade for _, grade in known}) < 3 or len(found) == most:
            continue
        best = max(known, key=lambda one: one[1])[0]
        ranks: dict[str, int] = defaultdict(int)
        spread = []
        for answer, grade in known:  # the first of each grade, then the second of each, …
            spread.append((ranks[grade], answer, grade))
            ranks[grade] += 1
        kept = sorted(spread)[:ANSWERS]
        found.append(
            [
                [f"{question}-{a.removesuffix('.txt')}", question, answers[best][0],
                 a.partition("_")[0], answers[a][1], "assessor", g]
                for _, a, g in kept
            ]
        )  # fmt: skip
    return [row for of_question in found for row in of_question]


if __name__ == "__main__":
    most = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    with Path("answers.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        columns = ["item_id", "group", "question", "system", "text", "annotator", "grade"]
        table.writerow(columns)
        table.writerows(rows(Path(sys.argv[1]), most))
    texts_to_read = (json.dumps({"text": text}) + "\n" for text in passages(Path(sys.argv[1])))
    Path("cdc.jsonl").write_text("".join(texts_to_read), encoding="utf-8")
