"""Write answers.csv from the MTS-Dialog correlation study: prepare.py FOLDER.

FOLDER holds the two files that README.md names. Their rows belong together by their order: four
systems, which are not named, with one note for each of 100 conversations. Rates become labels:
none, below a half, below three quarters, and the rest.
"""

from __future__ import annotations

import csv
import sys
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
    """Write answers.csv into the current folder."""
    notes, scores = rows(folder / NOTES), rows(folder / SCORES)
    if len(notes) != len(scores):
        sys.exit(
            f"{NOTES} has {len(notes)} rows and {SCORES} {len(scores)}: they do not belong together"
        )
    with Path("answers.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(
            ("item_id", "conversation", "system", "dialogue", "reference", "note",
             "omission", "hallucination", "omission_rate", "hallucination_rate")
        )  # fmt: skip
        for place, (note, score) in enumerate(zip(notes, scores, strict=True)):
            system = f"system-{place // CONVERSATIONS + 1}"
            omitted, made_up = float(score["OmissionRate"]), float(score["HallucinationRate"])
            table.writerow(
                (f"{system}-{note['ID']}", note["ID"], system, note["Dialogue"],
                 note["Reference Summary"], note["Automatic Summary"], omission(omitted),
                 "Some" if made_up > 0 else "None", omitted, made_up)
            )  # fmt: skip


if __name__ == "__main__":
    main(Path(sys.argv[1]))
