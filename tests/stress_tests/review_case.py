"""Altered answers to review; synthetic, not clinically reviewed."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from odd_texts import HOSTILE

from judgebench.data.formats import to_csv
from judgebench.files import to_line
from judgebench.records import Answer
from judgebench.stress_tests.item_sets import to_set_line, write_review
from judgebench.stress_tests.recipes import BY_HAND, AlteredAnswer

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
            checks={text: "", "fine": ""},
        )
        for i, (item, text) in enumerate(zip(altered(len(HOSTILE)), HOSTILE, strict=True))
    ]


def written(folder: Path, items: list[AlteredAnswer]) -> Path:
    path = folder / "violations.jsonl"
    path.write_text("".join(to_line(to_set_line(item)) for item in items), encoding="utf-8")
    return path


def decide(path: Path, decisions: Mapping[str, str]) -> None:
    """The table that the page of the set saves, with these decisions by item."""
    page = write_review(path).read_text(encoding="utf-8")
    data = json.loads(page.split('id="data">')[1].split("</script>")[0])
    hashes = {item["id"]: item["hash"] for item in data["items"]}
    rows = [[i, hashes[i], decision, "A. Person", ""] for i, decision in decisions.items()]
    table = to_csv(["item_id", "content_hash", "decision", "reviewer", "remark"], rows)
    path.with_name(data["table"]).write_bytes(table)
