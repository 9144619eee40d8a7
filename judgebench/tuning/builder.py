"""Items to learn from, made of what a teacher judge said: `judgebench tune data`.

A run of a judge with `knowledge` over the answers of several systems is the knowledge completion
chain of AutoMedEval (section 3.1, Algorithm 1); what is done here comes after it.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import model_validator

from judgebench.errors import Problem, SetupError, shorten
from judgebench.files import to_json, to_line, write_atomically
from judgebench.learning.folds import alike
from judgebench.records import Answer, Status, Verdict
from judgebench.rubric import Rubric
from judgebench.runs.folder import RunFolder
from judgebench.studies.answers import indexed
from judgebench.words import counted
from judgebench.yaml_file import Strict

if TYPE_CHECKING:
    from pandas import DataFrame

Item = Mapping[str, Any]
_SECONDS = 10  # for one pattern over all texts
# Runs apart, so that a pattern that takes for ever can be stopped.
_SEARCH = """
import json, re, sys
pattern, texts = json.load(sys.stdin)
found = re.compile(pattern)
print(json.dumps([place for place, text in enumerate(texts) if found.search(text)]))
"""


class Filters(Strict):
    """A file of filters. `irrelevant` are regular expressions, looked for in the question and the
    answer; `characters` are the fewest and the most of an answer; `duplicates: true` keeps items
    whose question and answer are nearly those of an earlier item."""

    irrelevant: tuple[str, ...] = ()
    characters: tuple[int, int] | None = None
    duplicates: bool = False

    @model_validator(mode="after")
    def _sound(self) -> Filters:
        for pattern in self.irrelevant:
            try:
                re.compile(pattern)
            except re.error as error:
                message = f"{shorten(pattern)} is no regular expression: {error}"
                raise ValueError(message) from None
        if self.characters and not 0 <= self.characters[0] <= self.characters[1]:
            raise ValueError("characters: the fewest and the most, such as [20, 4000]")
        return self


@dataclass(frozen=True)
class Built:
    """Items for a file of silver labels, and those that a filter kept out, each with a `reason`."""

    kept: Sequence[Item]
    left_out: Sequence[Item]

    @property
    def counts(self) -> Mapping[str, int]:
        """The number kept out for each reason, the most frequent first."""
        kinds = (item["reason"].split(":")[0] for item in self.left_out)
        return dict(Counter(kinds).most_common())

    def write(self, to: Path) -> Mapping[str, Path]:
        """Both files: `to`, and beside it what was kept out."""
        beside = to.with_name(f"{to.stem}.left-out.jsonl")
        return {"items": write_items(self.kept, to), "left_out": write_items(self.left_out, beside)}

    def to_frame(self) -> DataFrame:
        """One row per item, a column per label; those kept have no reason."""
        import pandas

        rows = [
            {**item, **{f"label.{m}": x for m, x in item["labels"].items()}}
            for item in (*self.kept, *self.left_out)
        ]
        return pandas.DataFrame(rows).drop(columns="labels")


def build(
    run: Path, teacher: str, filters: Filters | None = None, metrics: Sequence[str] | None = None
) -> Built:
    """The labels of the judge `teacher` in a run folder, item by item, with where it comes from.

    Answers only: pairs, criteria and altered answers are passed over. Raises SetupError where there
    is no such run, judge or metric, where the judge learnt from human labels or is a control, where
    a pattern takes too long, and where no item is left.
    """
    folder = RunFolder.existing(run)
    signature = _signature(folder, teacher)
    rubric = folder.rubric().of_kind("answer")
    rubric = rubric and rubric.only(metrics) if metrics else rubric
    if rubric is None:
        raise SetupError(Problem("has no metric of answers", str(run), field="rubric"))
    beside = folder.ids_beside()
    answers = [a for a in folder.answers() if a.kind == "answer" and a.item_id not in beside]
    verdicts = folder.latest_verdicts(teacher, signature, indexed(answers))
    items, reasons = [], []
    for answer in answers:
        verdict = verdicts.get(answer.item_id)
        items.append(_item(answer, rubric, teacher, signature, verdict))
        reasons.append(_unlabelled(verdict, rubric))
    found = _filtered(items, reasons, filters or Filters())
    kept = [item for item, reason in zip(items, found, strict=True) if not reason]
    left_out = [{**i, "reason": why} for i, why in zip(items, found, strict=True) if why]
    built = Built(kept, left_out)
    if not kept:
        why = "; ".join(f"{n} {reason}" for reason, n in built.counts.items())
        raise SetupError(Problem(f"no item of {teacher} is left ({why or 'no answer'})", str(run)))
    return built


def write_items(items: Sequence[Item], to: Path) -> Path:
    """One JSON object per line; the file is there whole or not at all."""
    to.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(to, "".join(map(to_line, items)).encode("utf-8", "surrogatepass"))
    return to


def _signature(folder: RunFolder, teacher: str) -> str:
    judges = folder.manifest().get("judges", {})
    if teacher not in judges:
        raise SetupError(Problem("is no judge of the run", str(folder.path), None, "judge", teacher,
                                 ", ".join(judges)))  # fmt: skip
    fitted = {
        entry["signature"]
        for entry in judges.values()
        if entry["kind"] == "control" or entry["about"].get("judge") == "learnt"
    }
    entry = to_json(judges[teacher])  # a jury names the signatures of its members
    if any(signature in entry for signature in fitted):
        message = "is fitted to the human labels of the run, or a baseline: no teacher"
        raise SetupError(Problem(message, str(folder.path), None, "judge", teacher))
    return str(judges[teacher]["signature"])


def _item(
    answer: Answer, rubric: Rubric, teacher: str, signature: str, verdict: Verdict | None
) -> Item:
    keys = ("item_id", "content_hash", "question", "system", "text", "group", "reference")
    model = verdict.model if verdict else ""
    return {
        "silver": True,
        **{key: getattr(answer, key) for key in keys},
        "labels": {m.id: verdict and verdict.labels.get(m.id) for m in rubric.metrics},
        "rationale": verdict.rationale if verdict else "",
        "transcript": [asdict(lookup) for lookup in verdict.transcript] if verdict else [],
        "teacher": {"name": teacher, "signature": signature, "model": model},
        "rubric": {"name": rubric.name, "hash": rubric.content_hash},
    }


def _unlabelled(verdict: Verdict | None, rubric: Rubric) -> str:
    if verdict is None:
        return "no verdict"
    if verdict.status is not Status.OK:
        return f"verdict {verdict.status}: {verdict.reason}"
    lacking = [m.id for m in rubric.metrics if verdict.labels.get(m.id) not in m.label_texts]
    return f"no label: {', '.join(lacking)}" if lacking else ""


def _filtered(items: Sequence[Item], reasons: Sequence[str], filters: Filters) -> Sequence[str]:
    """The reason why each item is kept out, '' where it is not."""
    found = list(reasons)
    texts = [f"{item['question']}\n{item['text']}" for item in items]
    for pattern in filters.irrelevant:
        for place in _matches(pattern, texts):
            found[place] = found[place] or f"irrelevant: {pattern}"
    least, most = filters.characters or (0, sys.maxsize)
    for place, item in enumerate(items):
        n = len(item["text"])
        if not least <= n <= most:
            found[place] = found[place] or f"length: {counted(n, 'character')}"
    if not filters.duplicates:
        question = alike([item["question"] for item in items]).tolist()
        text = alike([item["text"] for item in items]).tolist()
        first: dict[tuple[int, int], str] = {}
        for place, key in enumerate(zip(question, text, strict=True)):
            if not found[place]:
                own = items[place]["item_id"]
                before = first.setdefault(key, own)
                found[place] = "" if before == own else f"near-duplicate: {before}"
    return found


def _matches(pattern: str, texts: Sequence[str]) -> Sequence[int]:
    """The places of the texts in which it is found."""
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-c", _SEARCH], input=json.dumps([pattern, texts]),
            capture_output=True, text=True, timeout=_SECONDS, check=True,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        message = f"takes longer than {_SECONDS} seconds over {counted(len(texts), 'text')}"
        raise SetupError(Problem(message, field="irrelevant", found=shorten(pattern))) from None
    places: list[int] = json.loads(done.stdout)
    return places
