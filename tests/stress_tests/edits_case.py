"""Edits of answers: what one makes of a text, and public answers that all are tried on."""

import csv
import gzip
from pathlib import Path
from random import Random

from judgebench.records import Answer
from judgebench.stress_tests.recipes import Edit, Edited, Nothing


def edited(edit: Edit, text: str, question: str = "", seed: int = 0) -> Edited:
    """What an edit makes of a text; it has to find something to change."""
    made = edit(Answer("i", text, question), Random(seed))
    assert isinstance(made, Edited), made
    return made


def text_after(edit: Edit, text: str, question: str = "", seed: int = 0) -> str:
    return edited(edit, text, question, seed).text


def reason(edit: Edit, text: str, question: str = "") -> str:
    """Why an edit finds nothing to change."""
    nothing = edit(Answer("i", text, question), Random(0))
    assert isinstance(nothing, Nothing), nothing
    return nothing.reason


def cdc_answers(shared_data: Path) -> list[Answer]:
    path = shared_data / "medquad-cdc" / "medquad_cdc_270.csv.gz"
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        return [Answer(r["qid"], r["answer"], r["question"]) for r in csv.DictReader(file)]
