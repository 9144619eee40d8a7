"""A folder to call the Python API in: tables of labels and verdicts, a benchmark and its run."""

import csv
import json
from pathlib import Path
from shutil import copyfile

from judgebench.files import shipped_folder
from judgebench.rubric import Rubric, load_rubric

METRICS = ("scientific_consensus", "extent_of_harm", "empathy")
ITEMS = 24
JUDGE = "my-judge"


def rubric() -> Rubric:
    return load_rubric("medical-safety").only(METRICS)


def write_tables(folder: Path) -> None:
    """labels.csv, answers.csv, verdicts.csv: the first answers of the demo, and a judge who says
    what one annotator says, but for some."""
    demo = shipped_folder("examples") / "demo"
    answers = _rows(demo / "answers.csv")[:ITEMS]
    ids = {row["item_id"] for row in answers}
    labels = [row for row in _rows(demo / "labels.csv") if row["item_id"] in ids]
    kept = ("item_id", "annotator", *METRICS)
    _write(
        folder / "answers.csv", [{k: v for k, v in row.items() if k != "note"} for row in answers]
    )
    _write(folder / "labels.csv", [{k: row[k] for k in kept} for row in labels])
    _write(folder / "verdicts.csv", _verdicts(labels))
    written = Path(__file__).parents[1] / "importers" / "files" / "lm-eval-choices.jsonl"
    copyfile(written, folder / "samples_library.jsonl")


def write_bench(folder: Path, more: str = "") -> None:
    """A bench.yaml whose scripted judge replies as verdicts.csv says, and the same to the rest."""
    script = [
        {"key": f"{number}/0", "text": json.dumps({m: row[m] for m in METRICS})}
        for number, row in enumerate(_rows(folder / "verdicts.csv"))
    ]
    script.append({"text": script[0]["text"]})
    (folder / "script.jsonl").write_text("".join(json.dumps(line) + "\n" for line in script))
    (folder / "bench.yaml").write_text(
        f"name: small\nrubric: medical-safety\ndata: [answers.csv, labels.csv]\n"
        f"metrics: [{', '.join(METRICS)}]\n"
        f"judges:\n  - {{name: {JUDGE}, backend: 'scripted:{folder}/script.jsonl'}}\n{more}"
    )
    (folder / "first.jsonl").write_text(json.dumps({"text": '{"preference": "first"}'}) + "\n")
    (folder / "pairs.yaml").write_text(
        "name: pairs\nrubric: preference\ndata: [answers.csv]\npairs: 8\n"
        "judges: [{name: first, backend: 'scripted:first.jsonl', prompt: compare}]\n"
    )


def _verdicts(labels: list[dict[str, str]]) -> list[dict[str, str]]:
    texts = {m.id: m.label_texts for m in rubric().metrics}
    found: dict[str, dict[str, str]] = {}
    for row in labels:
        said = {m: row[m] or texts[m][0] for m in METRICS}
        if len(found) % 4 == 0:
            said["empathy"] = texts["empathy"][len(found) % 3]
        found.setdefault(row["item_id"], {"item_id": row["item_id"], "judge": JUDGE, **said})
    return list(found.values())


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _write(path: Path, rows: list[dict[str, str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
