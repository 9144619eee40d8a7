"""A study of pairs, conversations and criteria whose judges give reasons, to be shown."""

from collections.abc import Collection, Sequence

from aligned import align

from judgebench.alignment import Alignment
from judgebench.records import (
    Answer,
    HumanLabel,
    Lookup,
    Part,
    Showing,
    Status,
    Usage,
    Verdict,
    in_words,
)
from judgebench.rubric import Metric, Rubric
from judgebench.studies.study import JudgeVerdicts

TEXTS = ("Can I take both?", "لا تتناول الدواءين معًا.", "请先咨询医生。", "Ask a doctor.")


def rubric() -> Rubric:
    quality = {"kind": "ordinal", "labels": ["good", "fair", "bad"]}
    met = {"kind": "nominal", "of": "criterion", "labels": ["met", "not met"]}
    kinds = {"preference": {"kind": "preference"}, "quality": quality, "met": met}
    metrics = tuple(
        Metric.model_validate({"id": name, "title": name.title(), "question": "Which?", **more})
        for name, more in kinds.items()
    )
    return Rubric(name="mixed", version="1", instructions="Compare.", metrics=metrics)


def answers(texts: Sequence[str] = TEXTS) -> list[Answer]:
    """A pair, conversations of 3 and 8 turns before an answer and of 4 turns to be judged, and a
    criterion; every text and name is one of `texts`."""
    turns = tuple(
        Part(("user", "assistant")[i % 2], texts[i % len(texts)] + f" {i}") for i in range(8)
    )
    first, second, third, fourth = texts[:4]
    responses = (Part("response", third, first), Part("response", fourth, second))
    pair = Answer("pair", f"{third}\n\n{fourth}", first, parts=responses)
    before = [
        Answer(f"after-{n}", fourth, in_words(turns[:n]), first, group=f"g{n}", parts=turns[:n])
        for n in (3, 8)
    ]
    whole = Answer("whole", in_words(turns[:4]), parts=turns[:4])
    about = {"points": "-5", "tags": "accuracy|emergency"}
    criterion = (Part("criterion", third, "c2", "hb1"),)
    checked = Answer("hb1#c2", fourth, first, second, metadata=about, parts=criterion)
    return [pair, *before, whole, checked]


def shown_study(
    judge: str = "m", texts: Sequence[str] = TEXTS, labelled: Collection[str] = ()
) -> Alignment:
    """The judge differs from both annotators everywhere; on the pair it says first twice."""
    items, metrics = answers(texts), {metric.of: metric for metric in rubric().metrics}
    labels, verdicts = [], {}
    for item in items:
        metric = metrics[item.kind]
        theirs, other = metric.label_texts[1], metric.label_texts[0]
        given = theirs if not labelled or item.item_id in labelled else None
        labels += [HumanLabel(item.item_id, who, metric.id, given) for who in ("ann", "bob")]
        said = {metric.id: "tie" if metric.preference else other}
        orders = tuple(Showing(place, 2, {metric.id: other}) for place in (0, 1))
        verdicts[item.item_id] = Verdict(
            item.item_id, item.content_hash, judge, "s", Status.OK, said,
            shown=orders if metric.preference else (Showing(2, 4, said),),
            rationale=f"First I read both. {texts[0]}",
            transcript=(Lookup(texts[1], (texts[2], texts[3])), Lookup("What dose?")),
        )  # fmt: skip
    judges = [JudgeVerdicts(judge, "judge", "s", verdicts, Usage(len(items)))]
    return align("mixed", rubric(), items, labels, judges)
