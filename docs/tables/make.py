"""Write the tables of the tutorial: a synthetic study that earns all four outcomes.

Nobody wrote, labelled or judged anything: true labels are drawn, and three annotators and a judge
err with known probabilities. What the judge deserves on each metric is therefore known.

    python docs/tables/make.py        # writes the tables beside this file

`few-labels.csv` and `all-verdicts.csv` are of the page on rates: three assistants answer the same
questions, people labelled a part of the answers, drawn at random, and a judge all of them.

`next-month.csv`, `new-labels.csv` and `judged-again.csv` are of the page on certificates: the
judge's verdicts on 300 later replies, two annotators' labels of 100 of these, and another judge's
verdicts on 200 of the first ones. `replies.csv` are the replies, with their language.
"""

from __future__ import annotations

import csv
import random
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).parent
REPLIES = 600
PEOPLE = ("ann", "ben", "cem")
# Metric: labels from least to most severe, how often each is true, how often an annotator errs, and
# for each true label how often the judge gives which label.
METRICS = {
    # The judge errs half as often as an annotator: REPLACE.
    "Refused": (("no", "yes"), (0.65, 0.35), 0.04, ((0.98, 0.02), (0.02, 0.98))),
    # It cries wolf, and misses nearly nothing: ASSIST.
    "Harmful": (("no", "yes"), (0.75, 0.25), 0.03, ((0.85, 0.15), (0.01, 0.99))),
    # It finds nearly everything friendly: DO NOT USE.
    "Tone": (
        ("friendly", "curt", "rude"),
        (0.6, 0.25, 0.15),
        0.06,
        ((0.97, 0.02, 0.01), (0.7, 0.28, 0.02), (0.5, 0.2, 0.3)),
    ),
    # It is as good as an annotator, but few replies are wrong: CAN'T TELL.
    "False claim": (("no", "yes"), (0.92, 0.08), 0.04, ((0.98, 0.02), (0.01, 0.99))),
}

Rows = list[dict[str, str]]


def slip(draw: random.Random, true: int, labels: int, share: float) -> int:
    """The true label or, in that share of the cases, one of the others."""
    if draw.random() >= share:
        return true
    return draw.choice([label for label in range(labels) if label != true])


QUESTIONS, LABELLED = 700, 210
# How often an answer of each assistant is harmful, and how often the judge calls a harmless one so.
ASSISTANTS = {"baseline": (0.12, 0.05), "tuned": (0.04, 0.03), "guarded": (0.035, 0.10)}
FINDS = 0.85  # of the harmful ones


def rates(draw: random.Random) -> tuple[Rows, Rows]:
    """The labels of a few answers and the verdicts on all."""
    people, judge = [], []
    for question in range(1, QUESTIONS + 1):
        for system, (rate, alarms) in ASSISTANTS.items():
            harmful = draw.random() < rate
            said = draw.random() < (FINDS if harmful else alarms)
            about = {
                "id": f"q{question:03}-{system}",
                "question": f"q{question:03}",
                "system": system,
            }
            people.append({**about, "Harmful": "yes" if harmful else "no"})
            judge.append({**about, "Harmful": "yes" if said else "no"})
    chosen = sorted(draw.sample(range(len(people)), LABELLED))
    return [people[place] for place in chosen], judge


def replies(draw: random.Random, numbers: range, who: Sequence[str] = PEOPLE) -> tuple[Rows, Rows]:
    """The labels of people and the judge's verdicts on the replies of these numbers."""
    people: Rows = []
    judge: Rows = []
    for number in numbers:
        said = {name: {"id": f"r{number:03}", "annotator": name} for name in who}
        verdict = {"id": f"r{number:03}"}
        for metric, (labels, shares, error, matrix) in METRICS.items():
            (true,) = draw.choices(range(len(labels)), shares)
            for name in who:
                said[name][metric] = labels[slip(draw, true, len(labels), error)]
            verdict[metric] = draw.choices(labels, matrix[true])[0]
        people += said.values()
        judge.append(verdict)
    return people, judge


def another(draw: random.Random, judge: Rows) -> Rows:
    """What a judge says that gives one reply in seven the other label on whether it is refused."""
    swapped = {"no": "yes", "yes": "no"}
    chosen = draw.sample(judge, 200)
    return [
        {**row, "Refused": swapped[row["Refused"]] if draw.random() < 0.15 else row["Refused"]}
        for row in sorted(chosen, key=lambda row: row["id"])
    ]


def main() -> None:
    """Write all tables."""
    draw = random.Random(20261126)
    people, judge = replies(draw, range(1, REPLIES + 1))
    few, every = rates(draw)
    later = random.Random(20261226)
    labels, verdicts = replies(later, range(REPLIES + 1, REPLIES + 301), PEOPLE[:2])
    tables = {
        "labels.csv": people, "my-judge.csv": judge, "few-labels.csv": few,
        "all-verdicts.csv": every, "next-month.csv": verdicts, "new-labels.csv": labels[:200],
        "judged-again.csv": another(later, judge),
        "replies.csv": [
            {"id": row["id"], "text": f"Reply {n + 1}.", "language": "de" if n % 3 == 2 else "en"}
            for n, row in enumerate(judge)
        ],
    }  # fmt: skip
    for file, rows in tables.items():
        with (HERE / file).open("w", newline="", encoding="utf-8") as out:
            writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
