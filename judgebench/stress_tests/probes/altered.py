"""An altered answer: its parent, what was changed, by whom, and what must happen to the verdict."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from judgebench.records import Answer
from judgebench.stress_tests.probes.text import differing

BY_RULE = "rule"
BY_HAND = "by hand"
Piece = tuple[str, bool]  # a text, and whether it is changed
_TOKEN = re.compile(r"\s+|\w+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Change:
    """One span of the parent's text, in characters, and what stands in its place."""

    start: int
    end: int
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class AlteredAnswer:
    """One altered answer with its provenance.

    `must_worsen` maps metrics to the least severe label that the verdict must reach; where it is
    empty the verdict must not change. `demand` is what a planted text asks for. `generator` is the
    signature of the model that wrote it, or `rule`, or `by hand`. `checks` maps each check of
    validity to the reason why it failed, '' where it passed.
    """

    item_id: str
    parent: Answer
    text: str
    recipe: str
    recipe_version: str
    recipe_hash: str
    seed: int = 0
    generator: str = BY_RULE
    must_worsen: Mapping[str, str] = field(default_factory=dict)
    demand: Mapping[str, str] = field(default_factory=dict)
    area: str = ""
    false_claim: str = ""
    true_claim: str = ""
    why_plausible: str = ""
    source: str = ""
    changes: tuple[Change, ...] = ()
    checks: Mapping[str, str] = field(default_factory=dict)

    @property
    def answer(self) -> Answer:
        """What a judge is shown. It shares its parent's cluster."""
        return replace(self.parent, item_id=self.item_id, text=self.text)

    @property
    def made_by(self) -> str:
        """Who altered it, in words: `altered by hand`, `altered by rule`, `altered by m:1a2b`."""
        return f"altered by {self.generator.removeprefix('by ')}"

    @property
    def by_model(self) -> bool:
        """Whether a model wrote it."""
        return self.generator not in (BY_RULE, BY_HAND)

    @property
    def failed_checks(self) -> Mapping[str, str]:
        """Check -> reason, for the checks that failed. An item with any is never counted."""
        return {check: reason for check, reason in self.checks.items() if reason}


@dataclass(frozen=True, slots=True)
class Edited:
    """A new text. A rule that makes an answer worse also says which claim is now false, as it
    stands in the new text, and which true claim it breaks."""

    text: str
    false_claim: str = ""
    true_claim: str = ""


@dataclass(frozen=True, slots=True)
class Nothing:
    """The rule found nothing to change; `reason` says what it looked for."""

    reason: str


def not_alterable(answer: Answer) -> str:
    """Why an answer is never altered; empty where it may be."""
    if not answer.text.strip():
        return "the answer is empty"
    single = answer.kind == "answer" and not answer.is_conversation
    return "" if single else "pairs, criteria and whole conversations are not altered"


# All chance comes from the generator, which depends on seed, recipe and answer alone: the same
# seed gives the same set, whatever is edited before.
Edit = Callable[[Answer, Random], Edited | Nothing]


def span_diff(old: str, new: str) -> tuple[Change, ...]:
    """The spans of `old` that differ in `new`, word by word, in order."""
    a, b = _TOKEN.findall(old), _TOKEN.findall(new)
    starts = [0]
    for token in a:
        starts.append(starts[-1] + len(token))
    return tuple(
        Change(starts[i1], starts[i2], "".join(a[i1:i2]), "".join(b[j1:j2]))
        for i1, i2, j1, j2 in differing(a, b)
    )


def apply_changes(old: str, changes: tuple[Change, ...]) -> str:
    """The text that `span_diff` compared `old` with."""
    parts, end = [], 0
    for change in changes:
        parts += [old[end : change.start], change.new]
        end = change.end
    return "".join([*parts, old[end:]])


def marked(item: AlteredAnswer) -> tuple[list[Piece], list[Piece]]:
    """The sound and the altered text in pieces, with what differs marked.

    Marked pieces of the two stand beside each other in order; one is '' where something was left
    out or added. Pieces come from here because a browser counts characters otherwise.
    """
    old, changes = item.parent.text, item.changes
    if apply_changes(old, changes) != item.text:  # a set written by hand need not name its changes
        changes = span_diff(old, item.text)
    parent, text, end = [], [], 0
    for change in _as_phrases(old, changes):
        same = (old[end : change.start], False)
        parent += [same, (old[change.start : change.end], True)]
        text += [same, (change.new, True)]
        end = change.end
    return [*parent, (old[end:], False)], [*text, (old[end:], False)]


def _as_phrases(old: str, changes: Sequence[Change]) -> list[Change]:
    """Changes with nothing but white space between them as one, so that a phrase is one mark."""
    joined: list[Change] = []
    for change in changes:
        gap = old[joined[-1].end : change.start] if joined else "-"
        if gap.strip():
            joined.append(change)
        else:
            last = joined.pop()
            both = old[last.start : change.end], last.new + gap + change.new
            joined.append(Change(last.start, change.end, *both))
    return joined
