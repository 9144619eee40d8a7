"""Items to learn from, made of what teacher judges said and checked by people: `tune review`.

A run of a judge with `knowledge` over the answers of several systems is the knowledge completion
chain of AutoMedEval (section 3.1, Algorithm 1); what is done here comes after it. The questions are
those of its "Reliability Verification", where an item that fails any of three is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from judgebench.errors import Problem, SetupError
from judgebench.files import to_json, write_atomically, write_lines
from judgebench.people.page import Item, Question, read_tables, review_page
from judgebench.records import Answer, Results, Row, Status, Verdict, content_hash
from judgebench.rubric import Rubric
from judgebench.runs.folder import RunFolder
from judgebench.stats.intervals import clustered_mean
from judgebench.studies.answers import indexed

CRITERIA = (
    Question("knowledge", "Are the facts in the reasons and labels right?"),
    Question("attribution", "Is what the reasons say of the answer really in the answer?"),
    Question("fluency", "Are the reasons fluent and easy to understand?"),
)


def teacher_items(run: Path, teachers: Sequence[str]) -> tuple[Sequence[Item], int]:
    """The labels of these judges of a run folder, item by item, with where they come from; and how
    many are left out, without a verdict or with one that lacks a label.

    Answers only: pairs, criteria and altered answers are passed over. Raises SetupError where there
    is no such run or judge, where a judge learnt from human labels or is a baseline, and where no
    item is left.
    """
    folder = RunFolder.existing(run)
    rubric = folder.rubric().of_kind("answer")
    if rubric is None:
        raise SetupError(Problem("has no metric of answers", str(run), field="rubric"))
    altered = folder.ids_beside()
    answers = [a for a in folder.answers() if a.kind == "answer" and a.item_id not in altered]
    items = list[Item]()
    for teacher in teachers:
        verdicts = folder.latest_verdicts(teacher, _signature(folder, teacher), indexed(answers))
        items += [
            _item(answer, rubric, teacher, verdicts[answer.item_id])
            for answer in answers
            if _has_every_label(verdicts.get(answer.item_id), rubric)
        ]
    if not items:
        raise SetupError(Problem(f"no item of {', '.join(teachers)} is left", str(run)))
    return items, len(answers) * len(teachers) - len(items)


def _signature(folder: RunFolder, teacher: str) -> str:
    judges = folder.manifest().get("judges", {})
    if teacher not in judges:
        message, allowed = "is no judge of the run", ", ".join(judges)
        raise SetupError(Problem(message, str(folder.path), None, "judge", teacher, allowed))
    fitted = [
        judge["signature"]
        for judge in judges.values()
        if judge["kind"] == "control" or judge["about"].get("judge") == "learnt"
    ]
    entry = to_json(judges[teacher])  # a jury names the signatures of its members
    if any(signature in entry for signature in fitted):
        message = "is fitted to the human labels of the run, or a baseline: no teacher"
        raise SetupError(Problem(message, str(folder.path), None, "judge", teacher))
    return str(judges[teacher]["signature"])


def _has_every_label(verdict: Verdict | None, rubric: Rubric) -> bool:
    if verdict is None or verdict.status is not Status.OK:
        return False
    return all(verdict.labels.get(metric.id) in metric.label_texts for metric in rubric.metrics)


def _item(answer: Answer, rubric: Rubric, teacher: str, verdict: Verdict) -> Item:
    keys = ("item_id", "content_hash", "question", "system", "text", "group", "reference")
    return {
        "silver": True,
        **{key: getattr(answer, key) for key in keys},
        "labels": {metric.id: verdict.labels[metric.id] for metric in rubric.metrics},
        "rationale": verdict.rationale,
        "transcript": [asdict(lookup) for lookup in verdict.transcript],
        "teacher": {"name": teacher, "signature": verdict.signature, "model": verdict.model},
        "rubric": {"name": rubric.name, "hash": rubric.content_hash},
    }


def write_items(items: Sequence[Item], path: Path) -> Path:
    """Write one JSON object per line, and the folder of the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_lines(path, items)
    return path


def write_page(items: Sequence[Item], path: Path) -> Path:
    """The page on which people check the items, without seeing who wrote the labels."""
    html = review_page(path.parent.name, [*map(_shown, items)], CRITERIA)
    write_atomically(path, html.encode())
    return path


def _shown(item: Item) -> Item:
    """An item of the page. Not who wrote it: that would be judged instead of what was written."""
    labels = "\n".join(f"{metric}: {label}" for metric, label in item["labels"].items())
    sections = [["Labels", labels], ["Reasons", item["rationale"]]]
    for number, lookup in enumerate(item["transcript"], start=1):
        text = "\n\n".join([lookup["question"], *lookup["passages"]])
        sections.append([f"Looked up {number}", text, True])
    key = content_hash([item["item_id"], item["teacher"]["signature"]])
    return page_item(key, item["item_id"], (item["question"], item["text"]), sections)


def page_item(key: str, title: str, answer: tuple[str, str], sections: list[Any]) -> Item:
    """An item of a page: question and text of an answer, and what else is to be read."""
    question, text = answer
    return {
        "id": key,
        "title": title,
        "sections": [["Question", question], ["Answer", text], *sections],
    }


def decided(
    tables: Sequence[Path], items: Sequence[Item], questions: Sequence[Question]
) -> Mapping[str, Mapping[str, str]]:
    """What several people said of the items of a page, by its id and the question's key: the answer
    that finds most wrong, blank where nobody gave one. Raises SetupError as `read_tables`."""
    words: dict[str, dict[str, str]] = {}
    for rows in read_tables(tables, items, questions):
        for item, row in rows.items():
            before = words.get(item, row)
            words[item] = {
                q.key: max(before[q.key], row[q.key], key=("", *q.answers).index) for q in questions
            }
    return words


@dataclass(frozen=True)
class Reviewed:
    """Items by what people said of them. Whoever fails one on any criterion rejects it; what is
    accepted was passed on every criterion.

    `rates` holds the share that fails each criterion, of the items that have an answer on it, and
    the share `dropped` of those that are decided; over questions.
    """

    accepted: Sequence[Item]
    rejected: Sequence[Item]
    undecided: Sequence[Item]
    rates: Results


def rate_sentences(rates: Results) -> Iterator[str]:
    """Shares, with their intervals and how these were made."""
    for row in rates:
        e = row.estimate
        yield f"{row.statistic}: {e:.1%} ({'; '.join(filter(None, (f'n = {e.n}', e.method)))})"


def reviewed(items: Sequence[Item], tables: Sequence[Path]) -> Reviewed:
    """Items, split by the decisions that one or several people saved of the page.

    As an item that fails one criterion is dropped, no fewer are dropped than fail the worst one.
    AutoMedEval (section 3.1) has 9.29 % fail attribution and drops 305 of 9,874, which is 3.1 %:
    not both can be of the same items by the same rule. Raises SetupError as `read_tables`.
    """
    shown, keys = [*map(_shown, items)], [criterion.key for criterion in CRITERIA]
    decisions = decided(tables, shown, CRITERIA)
    words = np.array([
        [decisions.get(item["id"], {}).get(key, "") for key in keys] for item in shown
    ])  # fmt: skip
    fails = np.select([words == "fail", words == "pass"], [1.0, 0.0], np.nan)
    # 1 where any is failed, else 0, and NaN where one has no answer.
    is_dropped = np.where((fails == 1).any(axis=1), 1.0, fails.sum(axis=1))
    groups = np.unique([i["question"] or i["item_id"] for i in items], return_inverse=True)[1]
    rate = partial(clustered_mean, clusters=groups, undefined="no answer", kind="share")
    columns = dict(zip([f"fails {key}" for key in keys], fails.T, strict=True))
    columns["dropped"] = is_dropped
    every, is_rejected = np.array(items, dtype=object), is_dropped == 1
    rejected = [
        {**item, "failed": np.array(keys)[row == 1].tolist()}
        for item, row in zip(every[is_rejected], fails[is_rejected], strict=True)
    ]
    return Reviewed(
        every[is_dropped == 0].tolist(),
        rejected,
        every[np.isnan(is_dropped)].tolist(),
        Results(tuple(Row("review", key, rate(x)) for key, x in columns.items())),
    )
