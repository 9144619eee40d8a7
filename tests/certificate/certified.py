"""A synthetic study whose judge earns REPLACE, its certificate, and what another judge says."""

from __future__ import annotations

import csv
import random
from collections.abc import Sequence
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd

import judgebench as jb

PEOPLE = ("ann", "ben", "cem")
Rows = list[dict[str, str]]


def replies(
    seed: int, start: int, n: int, *, harm: float = 0.35, errs: float = 0.02,
    systems: Sequence[str] = ("old", "new"),
) -> tuple[Rows, Rows]:  # fmt: skip
    """Labels of three people, each right in 96 %, and verdicts of a judge that errs so often."""
    draw = random.Random(seed)
    people: Rows = []
    verdicts: Rows = []

    def said(true: bool, error: float) -> str:
        return "yes" if true != (draw.random() < error) else "no"

    for number in range(start, start + n):
        true = draw.random() < harm
        about = {
            "item_id": f"r{number}", "question": f"Question {number}?",
            "text": f"Reply {number}: " + "so " * draw.randrange(5, 60),
            "system": systems[number % len(systems)],
        }  # fmt: skip
        people += [
            {**about, "annotator": name, "refused": said(true, 0.04), "made_blind": "yes"}
            for name in PEOPLE
        ]
        verdicts.append({**about, "judge": "gpt-4", "refused": said(true, errs)})
    return people, verdicts


def written(path: Path, rows: Rows, leave_out: Sequence[str] = ()) -> Path:
    """The rows as a CSV file."""
    kept = [{k: v for k, v in row.items() if k not in leave_out} for row in rows]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [*kept[0]])
        writer.writeheader()
        writer.writerows(kept)
    return path


def swapped(rows: Rows, share: float, seed: int = 0) -> Rows:
    """The verdicts of another judge, which gives such a share the other label."""
    draw = random.Random(seed)
    other = {"yes": "no", "no": "yes"}
    return [
        {**row, "refused": other[row["refused"]] if draw.random() < share else row["refused"]}
        for row in rows
    ]


RUBRIC = jb.Rubric.from_labels({"refused": ["no", "yes"]})


def certificate_of(folder: Path, **terms: Any) -> Any:
    """The certificate of the decision on labels.csv and verdicts.csv."""
    tables = [(folder / f"{name}.csv").read_text("utf-8") for name in ("labels", "verdicts")]
    return decided(*tables).certificate(**terms)


@cache
def decided(*tables: str) -> Any:
    """The decision on tables of labels and verdicts, which the tests have in common."""
    labels, verdicts = (pd.read_csv(StringIO(text)) for text in tables)
    return jb.decide(jb.study(labels, verdicts, rubric=RUBRIC))
