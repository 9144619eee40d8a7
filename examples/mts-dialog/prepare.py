"""Write answers.csv and labels.csv from the MTS-Dialog correlation study: prepare.py FOLDER.

FOLDER holds the two files that README.md names. Their rows belong together by their order: four
systems, which are not named, with one note for each of 100 conversations. Rates become labels:
none, below a half, below three quarters, and the rest.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from pathlib import Path

NOTES = "MTS-Dialog-Automatic-Summaries-ValidationSet.csv"
SCORES = "MTS-Dialog-Manual-Scores4CorrelationStudy.csv"
OMISSION = ((0.0, "None"), (0.5, "Some"), (0.75, "Half or more"), (1.01, "Most"))
CONVERSATIONS = 100


def rows(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file that begins with a byte-order mark."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def omission(rate: float) -> str:
    """The label of a rate: 0, below 0.5, below 0.75, or more."""
    return "None" if rate == 0 else next(label for most, label in OMISSION if rate < most)


def main(folder: Path) -> None:
    """Write both tables into the current folder."""
    notes, scores = rows(folder / NOTES), rows(folder / SCORES)
    if len(notes) != len(scores):
        sys.exit(
            f"{NOTES} has {len(notes)} rows and {SCORES} {len(scores)}: they do not belong together"
        )
    answers = [("item_id", "group", "question", "system", "reference", "text", "omission_rate",
                "hallucination_rate")]  # fmt: skip
    labels = [("item_id", "annotator", "omission", "hallucination")]
    for place, (note, score) in enumerate(zip(notes, scores, strict=True)):
        system = f"system-{place // CONVERSATIONS + 1}"
        item_id = f"{system}-{note['ID']}"
        omitted, made_up = float(score["OmissionRate"]), float(score["HallucinationRate"])
        answers.append(
            (item_id, note["ID"], note["Dialogue"], system, note["Reference Summary"],
             note["Automatic Summary"], str(omitted), str(made_up))
        )  # fmt: skip
        labels.append((item_id, "annotator", omission(omitted), "Some" if made_up > 0 else "None"))
    write(Path("answers.csv"), answers)
    write(Path("labels.csv"), labels)


def write(path: Path, table: Sequence[Sequence[str]]) -> None:
    """Write rows as CSV."""
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(table)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
