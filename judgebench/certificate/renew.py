"""Renew a certificate: what must be labelled again, and the labels and verdicts to decide on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from judgebench.certificate import levels
from judgebench.certificate.reading import Batch
from judgebench.certificate.record import Certificate, Noise, sealed
from judgebench.certificate.result import Watching
from judgebench.certificate.seen import Seen, noise, population_of
from judgebench.errors import Problem, SetupError
from judgebench.files import all_or_nothing, to_line, write_atomically
from judgebench.words import counted

_FEWEST = 20  # answers that are labelled anew, whatever the watch says
_FILES = ("answers.jsonl", "verdicts.jsonl", "rubric.yaml", "annotate.yaml")


@dataclass(frozen=True)
class Plan:
    """How many answers are to be labelled anew, why, and whether old labels count again."""

    items: int
    why: str
    old_labels: bool
    new_verdicts: bool


def plan_of(w: Watching) -> Plan:
    """What the watch allows.

    Labels of people do not depend on the judge. So long as answers and annotators are what they
    were, those of the anchors hold for another judge too, once it has judged the anchors; fresh
    ones guard against a judge that was fitted to them.
    """
    c, needed = w.certificate, w.labels_needed or _FEWEST
    whole = max(_FEWEST, c.labels.labels // max(1, c.labels.annotators))
    if w.of("fallen"):
        why = "Agreement with people has fallen: labels from before do not speak for today, and as "
        return Plan(whole, f"{why}many answers as at first are labelled anew.", False, True)
    if w.of("shifted") or w.seen.new:
        why = "The answers are not what they were: labels from before do not speak for them, and as"
        return Plan(whole, f"{why} many as at first are labelled anew.", False, True)
    if w.of("changed") or w.seen.model_changes:
        why = (
            "The judge changed and the answers did not: people's labels of the anchors hold, as "
            "none of them depends on a judge, and count with its new verdicts. Fresh labels guard "
            "against a judge that was fitted to the anchors."
        )
        return Plan(max(_FEWEST, min(needed, whole)), why, True, True)
    left = max(_FEWEST, min(needed, whole) - sum(w.seen.labelled.values()))
    why = "Nothing is shown to have changed: old labels and verdicts count again."
    return Plan(left, why, True, False)


def write_study(
    w: Watching, answers: Sequence[tuple[Seen, Mapping[str, Any]]], folder: Path,
    annotators: Sequence[str], items: int | None, by: str,
) -> str:  # fmt: skip
    """Write the study of what is to be labelled, and say what is in it. Raises SetupError where no
    answer has a text."""
    plan, c = plan_of(w), w.certificate
    kept = [(row, told) for row, told in answers if told.get("text") and row.item not in c.by_id]
    kept = [(row, told) for row, told in kept if not any(row.labels.values())]
    if not kept:
        message = "holds no new answer with its text: people cannot label what they cannot read"
        allowed = "a run folder, or a table with a column text"
        raise SetupError(Problem(message, field="NEW", allowed=allowed))
    n, who = min(items or plan.items, len(kept)), list(annotators) or ["annotator-1", "annotator-2"]
    study: dict[str, Any] = {
        "name": "renewal", "items": "answers.jsonl", "rubric": "rubric.yaml",
        "metrics": [*c.certified], "annotators": who, "per_item": min(2, len(who)),
        "choose": {"by": by, "items": n, "verdicts": "verdicts.jsonl"},
    }  # fmt: skip
    if any(row.system for row, _ in kept):
        study["choose"]["strata"] = "system"
    content = (
        "".join(to_line(told) for _, told in kept),
        "".join(to_line(one) for row, _ in kept for one in verdict_lines(row, c)),
        yaml.safe_dump(c.rubric, sort_keys=False, allow_unicode=True),
        yaml.safe_dump(study, sort_keys=False, allow_unicode=True),
    )
    paths = [folder / name for name in _FILES]
    with all_or_nothing(folder, paths):
        for path, text in zip(paths, content, strict=True):
            write_atomically(path, text.encode())
    return (
        f"{plan.why}\n{counted(n, 'answer')} of {len(kept):,} are to be labelled: {paths[-1]}\n"
        f"Next: judgebench annotate init {paths[-1]} --to {folder / 'labels'}"
    )


def verdict_lines(row: Seen, c: Certificate) -> Iterator[dict[str, Any]]:
    """The judge's verdicts on an answer, a line for each certified metric."""
    for metric in c.certified:
        if metric in row.verdicts:
            p = {f"probability_{k}": v for k, v in row.severe.get(metric, {}).items()}
            yield {"item_id": row.item, "judge": c.judge.name, "metric": metric,
                   "label": row.verdicts[metric], **p}  # fmt: skip


@dataclass(frozen=True)
class Renewed:
    """The decision on fresh labels, with old ones where the plan allows it."""

    decisions: Any
    old: Certificate
    plan: Plan
    rows: Sequence[Seen]

    def certificate(self, key: str | Path | None = None, **terms: Any) -> Certificate:
        """The new certificate, on the terms of `Decisions.certificate`. It covers the answers that
        the judge judges now; of a judge that is what it was, it keeps the description and the
        noise. Raises SetupError where no metric has the outcome REPLACE or ASSIST."""
        made: Certificate = self.decisions.certificate(**terms)
        encoder = self.old.population.encoder if any(row.text for row in self.rows) else ""
        update: dict[str, Any] = {
            "population": population_of(self.rows, self.old.of_rubric, encoder),
            "study": self.old.study,
        }
        if not self.plan.new_verdicts:
            update["judge"] = self.old.judge
            update["metrics"] = {
                m: one.model_copy(update={"noise": self._noise(m, made)})
                if one.noise and not one.noise.pairs
                else one
                for m, one in made.metrics.items()
            }
        return sealed(made.model_copy(update=update), Path(key) if key else None)

    def _noise(self, metric: str, made: Certificate) -> Noise | None:
        """The noise on the old anchors, as far as it speaks for the new ones."""
        before, alpha = self.old.metrics[metric].noise, levels.NOISE / len(made.certified)
        n = len(made.anchors)
        return before and noise(before.pairs, before.changed, alpha, n)


@dataclass(frozen=True)
class Tables:
    """What is decided on: rows of labels and verdicts, and whether the labels were made blind."""

    labels: list[dict[str, Any]]
    verdicts: list[dict[str, Any]]
    blind: str


def tables(w: Watching, new: Sequence[Batch]) -> Tables:
    """Fresh labels with their verdicts, and those of the anchors where the plan allows it. Raises
    SetupError without any fresh label, and where a changed judge has not judged the anchors."""
    plan, c = plan_of(w), w.certificate
    rows = {row.item: row for batch in new for row in batch.rows}
    fresh = [r for r in rows.values() if any(r.labels.values()) and r.item not in c.by_id]
    if not fresh:
        message = "no new human label: label what `certificate renew --to` draws, and give verdicts"
        raise SetupError(Problem(message, field="NEW"))
    old = [*_anchors(c, rows, new_verdicts=plan.new_verdicts)] if plan.old_labels else []
    if plan.old_labels and not old:
        message = "the judge changed: give its verdicts on the anchors (`certificate anchors`)"
        raise SetupError(Problem(message, field="NEW"))
    both = [*fresh, *old]
    blind = {c.labels.blind} if old else set()
    blind |= {batch.blind for batch in new if any(r.item in rows for r in batch.rows)}
    return Tables(
        [
            {"item_id": row.item, "annotator": who, "metric": metric, "label": label,
             "system": row.system, "group": row.group}
            for row in both
            for metric, given in row.labels.items()
            for who, label in given.items()
        ],
        [one for row in both for one in verdict_lines(row, c)],
        blind.pop() if len(blind) == 1 else "unknown",
    )  # fmt: skip


def _anchors(c: Certificate, rows: Mapping[str, Seen], *, new_verdicts: bool) -> Iterator[Seen]:
    """The anchors as rows, with new verdicts where there are any; with none but those if asked."""
    for anchor in c.anchors:
        now = rows.get(anchor.id)
        if now is None and new_verdicts:
            continue
        yield Seen(
            anchor.id, anchor.group, anchor.system, anchor.hash, None,
            now.verdicts if now else anchor.verdicts, now.severe if now else {},
            {m: {f"annotator {k} at first": label for k, label in given.items()}
             for m, given in anchor.labels.items()},
        )  # fmt: skip
