"""The texts of an answer, and of a judge's reasons, on a card: texts under headings."""

from __future__ import annotations

from collections.abc import Iterable

from judgebench.records import Answer, Part, Showing, Status, Verdict
from judgebench.results.items import Mark, Passage, Texts
from judgebench.rubric import Rubric

# Characters of a reply or a rationale that a page shows.
MOST_SHOWN = 4000
_PLACES = ("First response", "Second response")


def asked_of(answer: Answer) -> Texts:
    """The texts before the one that is judged: a question, or a conversation turn by turn."""
    if not answer.question:
        return ()
    if answer.turns and not answer.is_conversation:
        return (("Conversation before it", _turns(answer.turns)),)
    return (("Question", answer.question),)


def texts_of(answer: Answer) -> Texts:
    """The whole answer: one text, two responses, or a conversation; with what it is checked by.

    >>> texts_of(Answer("1", "Yes.", question="Is it safe?"))
    (('Question', 'Is it safe?'), ('Answer', 'Yes.'))
    """
    found = [*asked_of(answer)]
    if answer.responses:
        pieces = [
            (f"{place}, by {part.name}" if part.name else place, part.text)
            for place, part in zip(_PLACES, answer.responses, strict=True)
        ]
        found.append(("Responses", _pieces("column", pieces)))
    elif answer.is_conversation:
        found.append(("Conversation", _turns(answer.turns)))
    else:
        found.append(("Answer", answer.text or "(no text)"))
    if answer.criterion:
        about = {key: answer.metadata.get(key, "") for key in ("points", "tags")}
        facts = [f"{key}: {text.replace('|', ', ')}" for key, text in about.items() if text]
        name = f"Criterion {answer.criterion.name}".rstrip()
        found.append((f"{name} ({'; '.join(facts)})" if facts else name, answer.criterion.text))
    if answer.reference is not None:
        found.append(("Reference", answer.reference))
    return tuple(found)


def reasons_of(judge: str, verdict: Verdict, answer: Answer, rubric: Rubric) -> Texts:
    """The reason why a verdict is none, with the reply; and the judge's rationale, its thoughts,
    what it looked up, and what it said in each order in which it was shown several texts."""
    found: list[tuple[str, Passage]] = []
    if verdict.status is not Status.OK:
        why = f": {verdict.reason}" if verdict.reason else ""
        said = f"{judge} gave no usable verdict ({verdict.status.value}){why}"
        found.append((said, _cut(verdict.raw, "reply") or "(no reply)"))
    looked_up = [
        (f"Looked up: {one.question}", "\n\n".join(one.passages) or "(no passage was found)")
        for one in verdict.transcript
    ]
    shown = [_shown(one, answer, rubric) for one in verdict.shown]
    if shown and verdict.status is Status.OK and verdict.reason:
        shown.append(("Both together", verdict.reason))
    groups = {
        "its rationale": [("Rationale", _cut(verdict.rationale, "rationale"))],
        "its thoughts": [("Thoughts", _cut(verdict.reasoning, "reasoning"))],
        "what it looked up": looked_up, "how it was shown": shown,
    }  # fmt: skip
    names = [name for name, texts in groups.items() if any(text for _, text in texts)]
    if names:
        texts = (pair for name in names for pair in groups[name])
        found.append((f"{judge}: {', '.join(names)}", _pieces("column", texts)))
    return tuple(found)


def _shown(one: Showing, answer: Answer, rubric: Rubric) -> tuple[str, str]:
    """The way in which a row was shown, and what the judge said of it then."""
    title = f"Shown as number {one.place + 1} of {one.of}"
    if answer.responses:
        title = f"The {'second' if one.place else 'first'} response shown first"
    said = []
    for metric in (metric for metric in rubric.metrics if metric.id in one.labels):
        label = one.labels[metric.id]
        said.append(f"{metric.title}: {label}")
        if one.place and metric.swapped(label) != label:
            said[-1] += f" as shown, so {metric.swapped(label)} as listed above"
    return title, "\n".join(said) or "(no label)"


def _turns(turns: Iterable[Part]) -> Passage:
    return _pieces("turn", ((turn.role, turn.text) for turn in turns))


def _pieces(kind: Mark, pieces: Iterable[tuple[str, str]]) -> Passage:
    marked: list[tuple[Mark, str]] = []
    for heading, text in pieces:
        marked += [(kind, heading), ("", text or "(no text)")]
    return marked


def _cut(text: str, what: str) -> str:
    if len(text) <= MOST_SHOWN:
        return text
    return f"{text[:MOST_SHOWN]}\n[cut; the {what} has {len(text)} characters]"
