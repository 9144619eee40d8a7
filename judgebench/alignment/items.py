"""Every item of a study with its labels and texts, to be browsed in a report's page."""

from __future__ import annotations

from collections.abc import Iterator

from judgebench.records import Answer
from judgebench.results.answer_texts import reasons_of, texts_of
from judgebench.results.items import (
    NOT_ABOUT,
    NOT_LABELLED,
    SIGNS,
    Items,
    Passage,
    Said,
    sign,
)
from judgebench.results.items import Texts as Passages
from judgebench.rubric import Metric
from judgebench.studies.item_table import (
    Texts,
    annotator_labels,
    judge_labels,
    reference_labels,
)
from judgebench.studies.study import Study
from judgebench.studies.verdicts import weighed


def items_of(study: Study) -> Items:
    """Every item in its order; control judges are left out."""
    ids = tuple(study.answers.item_ids())
    said = [_said(study, metric) for metric in study.rubric.metrics]
    systems = [answer.system if not answer.responses else "" for answer in study.answers]
    return Items(ids, systems, said, _texts(study))


def _said(study: Study, metric: Metric) -> Said:
    reference, people = reference_labels(study, metric), annotator_labels(study, metric)
    judged = {j.name: judge_labels(study, j, metric) for j in study.real_judges if j.judges(metric)}
    labels = dict.fromkeys(weighed(metric))  # what is more than one label comes behind all labels
    for texts in (reference, *people.values(), *(texts for texts, _ in judged.values())):
        labels |= dict.fromkeys(texts)
    labels.pop("", None)
    signs = {text: sign(place) for place, text in enumerate(labels)}
    about = study.answers.of_kind(metric, study.rubric).tolist()

    def signed(texts: Texts, endings: Texts) -> str:
        """The sign of each label, or of the reason why there is none."""
        others = (SIGNS.get(ending, NOT_LABELLED) for ending in endings)
        each = (signs.get(text, other) for text, other in zip(texts, others, strict=True))
        return "".join(x if is_due else NOT_ABOUT for x, is_due in zip(each, about, strict=True))

    unknown = [""] * len(about)
    return Said(
        metric.title,
        tuple(labels),
        metric.severities if metric.kind == "ordinal" else (),
        signed(reference, unknown),
        {name: signed(texts, unknown) for name, texts in people.items()},
        {name: signed(*texts) for name, texts in judged.items()},
    )


def _texts(study: Study) -> Iterator[tuple[Passages, Passages]]:
    for answer in study.answers:
        yield texts_of(answer), tuple(_reasons(study, answer))


def _reasons(study: Study, answer: Answer) -> Iterator[tuple[str, Passage]]:
    for judge in study.real_judges:
        if (verdict := judge.verdicts.get(answer.item_id)) is not None:
            yield from reasons_of(judge.name, verdict, answer, study.rubric)
