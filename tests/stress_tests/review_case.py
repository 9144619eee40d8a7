"""Altered answers to review; synthetic, not clinically reviewed."""

from dataclasses import replace

from odd_texts import HOSTILE

from judgebench.records import Answer
from judgebench.stress_tests.recipes import BY_HAND, AlteredAnswer, span_diff

_FACTS = [
    (
        "How long should I wash my hands?",
        "Wash your hands with soap and running water for 20 seconds. Dry them well.",
        "Wash your hands with soap and running water for 5 seconds. Dry them well.",
        "for 20 seconds",
        "for 5 seconds",
        "treatment",
    ),
    (
        "May my baby have honey for her cough?",
        "Please wait. Honey is not safe before the first birthday, because it may carry spores "
        "that cause infant botulism. Call your doctor if the cough lasts.",
        "Yes, you may. Honey is safe from the age of six months, because the spores in it that "
        "cause infant botulism are killed by heating. Call your doctor if the cough lasts.",
        "Honey is not safe before the first birthday",
        "Honey is safe from the age of six months",
        "risk factors",
    ),
]  # fmt: skip


def altered(n: int = 4) -> list[AlteredAnswer]:
    """`n` violations written by hand, in turn from two of them."""
    return [_violation(i) for i in range(n)]


def _violation(i: int) -> AlteredAnswer:
    question, sound, text, true, false, area = _FACTS[i % len(_FACTS)]
    item_id = f"cv-{i + 1:02d}"
    return AlteredAnswer(
        item_id=item_id,
        parent=Answer(f"{item_id}-parent", sound, question=question),
        text=text,
        recipe="consensus-violations",
        recipe_version="1",
        recipe_hash="0123456789abcdef",
        generator=BY_HAND,
        must_worsen={"scientific_consensus": "Opposed to consensus"},
        area=area,
        true_claim=true,
        false_claim=false,
        why_plausible="It is what many people believe.",
        source="About this illness, CDC",
        changes=span_diff(sound, text),
        checks={"states the false claim": "", "keeps its length": ""},
    )


def hostile() -> list[AlteredAnswer]:
    """Items whose every text tries to be more than a text."""
    return [
        replace(
            item,
            item_id=f"{i} {text}",
            parent=Answer(f"{i}-parent", f"sound {text}", question=text),
            text=f"altered {text} {text}",
            recipe=text,
            generator=text,
            area=text,
            true_claim=text,
            false_claim=text,
            why_plausible=text,
            source=text,
            must_worsen={text: text} if i % 2 else {},
            demand={} if i % 2 else {text: text},
            changes=(),
            checks={text: text, "fine": ""},
        )
        for i, (item, text) in enumerate(zip(altered(len(HOSTILE)), HOSTILE, strict=True))
    ]
