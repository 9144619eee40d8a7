"""Sentences about an Alignment, and text made fit to print."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from judgebench.align import Alignment
from judgebench.records import is_slot
from judgebench.study.study import JudgeKind

_KINDS: Mapping[JudgeKind, tuple[str, str]] = {
    "judge": ("judge", "judges"),
    "jury": ("jury", "juries"),
    "calibration": ("calibrated judge", "calibrated judges"),
    "control": ("control judge", "control judges"),
}

_MOST_NAMED = 12


def describe(alignment: Alignment) -> list[str]:
    """What was compared, in a few plain sentences."""
    a = alignment
    kinds = Counter(judge.kind for judge in a.judges)
    found = [counted(kinds[kind], *word) for kind, word in _KINDS.items() if kinds[kind]]
    makers = f"; the truth is made by {listed(_truth_makers(a))}" if a.annotators else ""
    said = [
        f"{counted(a.n_answers, 'answer')} and {counted(a.n_labels, 'human label')}{makers}.",
        f"Rubric {a.rubric.name}, version {a.rubric.version}: "
        f"{counted(len(a.rubric.metrics), 'metric')}.",
        f"{listed(found)}.",
    ]
    if a.n_labels:
        said += [
            *_truth_sentences(a),
            f"{counted(len(a.disagreements), 'answer')} listed on which a judge differs from the "
            "human truth.",
        ]
    if a.n_labels and not kinds["control"]:
        said.append("There is no control judge, so no judge can be called good by this report.")
    return said


def _truth_makers(alignment: Alignment) -> list[str]:
    """People by name, and lists of labels whose people nobody knows by their common name."""
    people = [name for name in alignment.annotators if not is_slot(name)]
    slots = Counter(name.split("#")[0] for name in alignment.annotators if is_slot(name))
    named = people[:_MOST_NAMED]
    if len(people) > _MOST_NAMED:
        named.append(f"{len(people) - _MOST_NAMED:,} others")
    return [*named, *(f"{name} (up to {n} labels an answer)" for name, n in slots.items())]


def _truth_sentences(alignment: Alignment) -> Iterator[str]:
    """One sentence a rule; the metrics are named where there are several rules."""
    titles = {metric.id: metric.title for metric in alignment.rubric.metrics}
    by_rule: dict[str, list[str]] = {}
    for metric, rule in alignment.truth_rule.items():
        by_rule.setdefault(rule, []).append(titles.get(metric, metric))
    for rule, metrics in by_rule.items():
        which = f" ({', '.join(metrics)})" if len(by_rule) > 1 else ""
        yield f"Human truth{which}: {rule.rstrip('.')}."


def counted(n: int, one: str, many: str = "") -> str:
    """`1 judge`, `1,204 judges`, `2 juries`."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def listed(parts: Sequence[str]) -> str:
    """`a, b and c`; `no judge` where there is nothing."""
    head, last = ", ".join(parts[:-1]), parts[-1] if parts else "no judge"
    return f"{head} and {last}" if head else last


def wrapped(text: str, width: int) -> str:
    """Printable text in lines of at most `width`, cut at spaces and the signs inside names."""
    spaced = re.sub(r"(?<=[/:_.@-])(?=\w)", "\u200b ", printable(text))
    lines = textwrap.wrap(spaced, width, break_on_hyphens=False) or [""]
    return "\n".join(line.replace("\u200b ", "").replace("\u200b", "") for line in lines)


def printable(text: str, escape: Callable[[str], str] = str) -> str:
    """`text` with control characters and lone surrogates shown as U+FFFD, then escaped.

    Tabs and line breaks stay; a terminal or an XML reader must not see the others.
    """
    shown = "".join(
        "\ufffd" if (ord(c) < 32 and c not in "\t\n\r") or 127 <= ord(c) < 160 or _lone(c) else c
        for c in text
    )
    return escape(shown)


def _lone(character: str) -> bool:
    return 0xD800 <= ord(character) <= 0xDFFF
