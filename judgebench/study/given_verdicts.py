"""Existing verdicts, given as labels of judges, as judges of a study."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from judgebench.records import HumanLabel, Status, Verdict, content_hash
from judgebench.study.answers import IndexedAnswers
from judgebench.study.study import JudgeVerdicts, Study


def judges_of(
    said: Iterable[HumanLabel], unread: Mapping[tuple[str, str, str], str], answers: IndexedAnswers
) -> list[JudgeVerdicts]:
    """One judge for each name that `said` calls an annotator, in their order.

    A judge owes a label on every metric that it labels at all. Where one is lacking, the verdict is
    unparsed if `unread` (by item, judge and metric) holds a text that is not a label, else failed:
    a blank is never taken for an item that the judge was not asked about.
    """
    cells: dict[str, dict[str, dict[str, str | None]]] = {}
    for one in said:
        of_item = cells.setdefault(one.annotator, {}).setdefault(one.item_id, {})
        of_item[one.metric] = one.label
    return [_judge(name, of_judge, unread, answers) for name, of_judge in cells.items()]


def _judge(
    name: str,
    cells: Mapping[str, Mapping[str, str | None]],
    unread: Mapping[tuple[str, str, str], str],
    answers: IndexedAnswers,
) -> JudgeVerdicts:
    about = {"judge": "given verdicts", "name": name}
    signature = content_hash(about)
    due = list(dict.fromkeys(metric for of_item in cells.values() for metric in of_item))
    verdicts = {}
    for item_id, of_item in cells.items():
        labels = {metric: label for metric, label in of_item.items() if label is not None}
        lacking = [metric for metric in due if metric not in labels]
        raw = [unread[key] for metric in lacking if (key := (item_id, name, metric)) in unread]
        status = Status.OK if not lacking else Status.UNPARSED if raw else Status.FAILED
        verdicts[item_id] = Verdict(
            item_id, answers.content_hash(answers.row(item_id)), name, signature,
            status, labels, raw="; ".join(raw),
            reason=f"no label for {', '.join(lacking)}" if lacking else "",
        )  # fmt: skip
    return JudgeVerdicts(name, "judge", signature, verdicts, about=about)


def gaps(study: Study) -> Iterator[str]:
    """A sentence for each judge that has no row for some items with human labels."""
    labelled = np.zeros(len(study.answers), dtype=np.bool_)
    for humans in study.humans.values():
        labelled |= humans.truth >= 0
    for judge in study.judges:
        if lacking := int((labelled & ~study.asked(judge)).sum()):
            yield (
                f"{judge.name} has no row for {lacking:,} of {int(labelled.sum()):,} items with "
                "human labels. Agreement counts them as missing; decisions leave them out."
            )
