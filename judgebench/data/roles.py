"""The roles that a column may have: exactly one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

SAID = "said"  # why a column is what it is, where somebody says it
ROLES: Mapping[str, str] = {
    "item": "which answer a row is about; several columns together, also `item system`",
    "group": "which items share a question",
    "question": "what was asked",
    "text": "the answer",
    "system": "what gave the answer",
    "reference": "a right answer",
    "first": "the first of two responses that a row compares",
    "second": "the second of them",
    "criterion": "which criterion of the item the row is about",
    "messages": "a conversation, of which a turn is judged",
    "criteria": "what the item is to be checked by",
    "annotator": "who labelled",
    "annotators": "a list of who gave the `labels` of a row",
    "metric": "what the label is about",
    "label": "a label that a person gave: `label [METRIC] [by NAME]`",
    "labels": "a list of the labels of several people",
    "adjudicated": "a label that was settled on, of nobody",
    "judge": "whose verdict the row is",
    "verdict": "a judge's label: `verdict [METRIC] [by NAME]`",
    "reply": "a judge's whole reply, in which its label stands: `reply [by NAME]`",
    "raw": "the reply behind a verdict",
    "status": "how the judging of a row ended",
    "rationale": "the judge's reasons",
    "repeat": "which of a judge's draws the row is",
    "shown_first": "the response that the judge was shown first",
    "probability": "the judge's probability of a label: `probability METRIC=LABEL`",
    "kind": "whether people or a model gave the row's label",
    "blind": "whether the label was made without sight of a model's: `yes` or `no`",
    "kept": "stays with the item",
    "ignored": "not read",
}


@dataclass(frozen=True)
class Column:
    """What a column is. `metric` and `who` are empty where another column, or the file, says it.

    >>> str(Column.parse("label harm by Kim")), Column.parse("verdict by gpt-4").who
    ('label harm by Kim', 'gpt-4')
    """

    role: str
    metric: str = ""
    who: str = ""
    why: str = SAID

    @classmethod
    def parse(cls, text: str, why: str = SAID) -> Column:
        """The column of a role in words. Raises ValueError where it is none."""
        role, _, rest = text.strip().partition(" ")
        if role not in ROLES:
            raise ValueError(f"is no role of a column; roles: {', '.join(ROLES)}")
        metric, by, who = f" {rest.strip()} ".rpartition(" by ")
        metric, who = (metric, who) if by else (who, "")
        return cls(role, metric.strip(), who.strip(), why)

    def __str__(self) -> str:
        by = f" by {self.who}" if self.who else ""
        return " ".join(filter(None, (self.role, self.metric))) + by
