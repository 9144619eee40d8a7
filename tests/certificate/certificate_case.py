"""A small certificate, and rows for it."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import judgebench as jb
from judgebench.certificate.reading import Batch
from judgebench.certificate.record import (
    Anchor,
    Certificate,
    CertifiedMetric,
    Judged,
    Labelled,
    Noise,
    Population,
    Validity,
    Watched,
    sealed,
)
from judgebench.certificate.seen import Seen
from judgebench.certificate.watch import Watch

METRIC, LABELS = "safety", ("Safe", "Unsafe")
A_STEP = 7  # answers of `write`
START = datetime(2026, 1, 1, tzinfo=UTC)


def certificate(study: str = "made up", **changes: Any) -> Certificate:
    """A certificate of a judge that may replace annotators on one metric, with 20 anchors."""
    watched = (
        Watched(key="agreement", title="agreement", value=0.9, bound=0.75, near=0.8),
        Watched(key="failures", title="no label", value=0.0, bound=0.05, near=0.03, at_least=False),
    )
    metric = CertifiedMetric(
        title="Safety", outcome="REPLACE", reason="It agrees.", conditions=(), watched=watched,
        noise=Noise(pairs=400, changed=0, most=0.015), severe_from="Unsafe",
    )  # fmt: skip
    content: dict[str, Any] = {
        "study": study, "issued": START, "judgebench": "0",
        "judge": Judged(name="gpt-4", signature="s"),
        "rubric": jb.Rubric.from_labels({METRIC: [*LABELS]}).model_dump(mode="json"), "rule": {},
        "labels": Labelled(annotators=2, labels=400, rule="majority", blind="yes"),
        "metrics": {METRIC: metric},
        "population": Population(
            answers=400, questions=400, cuts=(100,),
            shares={
                f"label:{METRIC}": {"Safe": 280, "Unsafe": 120, "no label": 0},
                "system": {"a": 200, "b": 200}, "length": {"under 100": 200, "100 or more": 200},
            },
        ),
        "anchors": tuple(
            Anchor(id=f"anchor {i}", hash="", verdicts={METRIC: LABELS[i % 3 == 0]})
            for i in range(20)
        ),
        "valid": Validity(until=None, answers=None, model_changes=0),
    }  # fmt: skip
    return sealed(Certificate(**{**content, **changes}))


def answer(item: object, label: str = "Safe", **about: Any) -> Seen:
    """A new answer of the system a, shorter than 100 characters."""
    about = {"group": f"question {item}", "system": "a", "length": 50, **about}
    return Seen(str(item), hash="", verdicts={METRIC: label}, **about)


def usual(first: int, n: int) -> list[Seen]:
    """Answers as in the certificate, with ids from `first` on."""
    return [
        answer(
            i, LABELS[i % 10 < 3], system="ab"[i % 2], length=50 + 100 * (i // 2 % 2),
            group=f"question {i}",
        )
        for i in range(first, first + n)
    ]  # fmt: skip


def anchors(of: Certificate, n: int, changed: int = 0) -> list[Seen]:
    """The first n anchors, judged again; of the first `changed` the label is another one."""
    found = []
    for i, one in enumerate(of.anchors[:n]):
        label = one.verdicts[METRIC]
        other = LABELS[label == LABELS[0]]
        found.append(Seen(one.id, "", "", "", None, {METRIC: other if i < changed else label}))
    return found


def write(path: Path, told: Path, who: str, first: int, last: int) -> None:
    """Update step by step, and write down every step once it is acknowledged."""
    watch = Watch(certificate(), path)
    with told.open("a") as file:
        os.write(file.fileno(), b"ready\n")
        for step in range(first, last):
            rows = [replace(r, item=f"{who}{r.item}") for r in usual(step * A_STEP, A_STEP)]
            watch.update_rows([Batch([*rows, answer("shared")])])
            os.write(file.fileno(), f"{step}\n".encode())
