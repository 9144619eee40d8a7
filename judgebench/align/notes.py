"""What a reader of the tables must not overlook, one sentence each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from judgebench.align.annotators import MOST_ANNOTATORS_IN_PAIRS
from judgebench.align.result import Confusion, Score
from judgebench.backends.weights import WEIGHTS
from judgebench.records import is_slot
from judgebench.rubric import Rubric
from judgebench.study.study import Humans, JudgeVerdicts, backend_fact


def data_notes(rubric: Rubric, humans: Mapping[str, Humans], n_answers: int) -> Iterator[str]:
    """What is missing on the human side, and what the annotators are."""
    for metric in rubric.metrics:
        found = humans[metric.id]
        without = int((found.truth < 0).sum())
        if without:
            yield f"{metric.title}: {without} of {n_answers} answers have no human truth."
        if found.ratings.abstained:
            yield f"{metric.title}: {found.ratings.abstained} human labels are abstentions."
    blank = {m.title: int(humans[m.id].ratings.blank.sum()) for m in rubric.metrics}
    if any(blank.values()):
        counts = ", ".join(f"{title} {n}" for title, n in blank.items() if n)
        yield f"Blank human cells, taken as no label: {counts}."
    if any(is_slot(a) for h in humans.values() for a in h.makers):
        yield (
            "Annotators written name#1, name#2, … are places in a list, not people: "
            "they are pooled and never compared in pairs."
        )
    if any(
        sum(not is_slot(a) for a in h.makers) > MOST_ANNOTATORS_IN_PAIRS for h in humans.values()
    ):
        yield f"More than {MOST_ANNOTATORS_IN_PAIRS} annotators: their pairs are not listed."


def disagreement_note(listed: int, total: int) -> Iterator[str]:
    """That a list of disagreements was cut short, where it was."""
    if listed < total:
        yield f"{total} answers show a disagreement; the {listed} farthest from it are listed."


def judge_notes(
    rubric: Rubric,
    judges: Sequence[JudgeVerdicts],
    scores: Sequence[Score],
    confusions: Sequence[Confusion],
) -> Iterator[str]:
    """What a reader must not overlook: weak or collapsed judges, and those that a control matches.

    What is shipped for trying things out is known by the sum of its weights, however it was run.
    """
    shipped = {weights.sha256: weights for weights in WEIGHTS.values()}
    for judge in judges:
        if weights := shipped.get(backend_fact(judge.about, "sha256")):
            yield (
                f"{judge.name} runs {weights.name}, a very small model ({weights.note}). Its "
                "verdicts carry no clinical weight and are no measure of other models."
            )
    kinds = {judge.name: judge.kind for judge in judges}
    accuracy = {
        (s.judge, s.metric): s.estimate.value
        for s in scores
        if s.statistic == "accuracy" and s.failures == "left_out" and s.estimate.value is not None
    }
    title = {m.id: m.title for m in rubric.metrics}
    for judge in (j for j in judges if j.kind != "control"):
        single = [
            title[c.metric] for c in confusions
            if c.judge == judge.name and (c.counts[:, :-1].sum(axis=0) > 0).sum() == 1
        ]  # fmt: skip
        if single:
            yield f"{judge.name} gave one and the same label throughout on {', '.join(single)}."
        beaten = [
            title[metric]
            for (name, metric), value in accuracy.items()
            if name == judge.name
            and any(
                other >= value
                for (rival, m), other in accuracy.items()
                if m == metric and kinds[rival] == "control"
            )
        ]
        if beaten:
            yield (
                f"{judge.name} is no more accurate than a control judge, which reads nothing, "
                f"on {', '.join(beaten)}."
            )
